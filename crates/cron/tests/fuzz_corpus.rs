//! Goes through the texts that the fuzzer found worth keeping, without the fuzzer.

#[path = "../fuzz/check.rs"]
mod check;

#[test]
fn the_committed_corpus_passes() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/parse");
    let files = std::fs::read_dir(corpus).expect("the corpus is part of the repository");
    let texts: Vec<Vec<u8>> = files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect();
    assert!(texts.len() >= 50, "only {} texts", texts.len());
    texts.iter().for_each(|text| check::check(text));
}
