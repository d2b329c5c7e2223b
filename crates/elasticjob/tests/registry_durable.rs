//! What the registry on disk promises: nothing that was answered is lost, whenever the process is killed; one
//! process at a time; and a clear word when something is wrong.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use elasticjob::registry::{self, Embedded, Entry, Kind, Op, RegistryError, Session};

fn create(path: &str, data: &str, kind: Kind) -> Op {
    Op::Create { path: path.into(), data: data.into(), kind }
}

fn set(path: &str, data: &str) -> Op {
    Op::Set { path: path.into(), data: data.into(), version: None }
}

fn delete(path: &str) -> Op {
    Op::Delete { path: path.into() }
}

/// This program again, doing only what `role` says in that directory.
fn start(role: &str, directory: &Path, known: &str) -> Child {
    Command::new(std::env::current_exe().expect("we are a program"))
        .args(["--exact", "the_other_process", "--nocapture", "--test-threads=1"])
        .env("REGISTRY_ROLE", role)
        .env("REGISTRY_DIRECTORY", directory)
        .env("REGISTRY_KNOWN", known)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts")
}

/// What [`start`] runs. Without a role there is nothing to do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_process() {
    let Ok(role) = std::env::var("REGISTRY_ROLE") else { return };
    let directory = std::env::var("REGISTRY_DIRECTORY").unwrap();
    match role.as_str() {
        "open" => say(&format!("answer {}", Embedded::durable(directory).err().unwrap())),
        "write" => write_until_killed(&directory, &std::env::var("REGISTRY_KNOWN").unwrap()).await,
        role => panic!("no such role: {role}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Begins on a line of its own, whatever the test harness has written.
    writeln!(out, "\n{line}").and_then(|()| out.flush()).expect("somebody listens");
}

/// What the killed processes have been told, by writer: the last number, and the greatest token of all.
#[derive(Debug, Default)]
struct Known {
    numbers: BTreeMap<u64, u64>,
    token: u64,
}

impl Known {
    fn take(&mut self, line: &str) {
        let mut words = line.split(' ').skip(1).map(|it| it.parse::<u64>().unwrap());
        let mut next = || words.next().unwrap();
        let (writer, number, token) = (next(), next(), next());
        let before = self.numbers.insert(writer, number).unwrap_or(0);
        assert!(number == before || number == before + 1, "`{line}` after {before}");
        self.token = self.token.max(token);
    }

    fn print(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(|(writer, n)| format!("{writer}={n}")).collect();
        format!("{}/{}", numbers.join(","), self.token)
    }

    fn parse(text: &str) -> Known {
        let (numbers, token) = text.split_once('/').unwrap();
        let pair = |it: &str| it.split_once('=').map(|(w, n)| (w.parse().unwrap(), n.parse().unwrap()));
        Known { numbers: numbers.split(',').filter_map(pair).collect(), token: token.parse().unwrap() }
    }
}

const WRITERS: u64 = 4;

async fn write_until_killed(directory: &str, known: &str) {
    let known = Known::parse(known);
    let registry = Embedded::durable(directory).unwrap();
    let session = registry.session().unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let root = format!("/writer-{writer}");
        let entries = session.read(&root).await.unwrap();
        let last = check(writer, &known, &entries);
        say(&format!("done {writer} {last} 0")); // From now on it must be there, even if its answer was lost.
        if entries.is_empty() {
            let begin = vec![create("/a", "0", Kind::Persistent), create("/b", "0", Kind::Persistent)];
            session.commit(&root, begin).await.unwrap();
        }
        writers.spawn(write(session.clone(), writer, root, last));
    }
    session.commit("/probe", vec![create("/e", "", Kind::Ephemeral)]).await.unwrap();
    let token = session.read("/probe/e").await.unwrap()[0].stat.created;
    assert!(token > known.token, "{token} was given before: {known:?}");
    say("checked");
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
}

/// One number after the other, each in one transaction that touches several nodes.
async fn write(session: Arc<dyn Session>, writer: u64, root: String, last: u64) {
    for n in last + 1.. {
        let text = n.to_string();
        let log = create(&format!("/log/{n}"), &text, Kind::Persistent);
        let mut ops = vec![set("/a", &text), log, set("/b", &text)];
        ops.extend((n > 10).then(|| delete(&format!("/log/{}", n - 10))));
        session.commit(&root, ops).await.unwrap();
        let mark = format!("/running/{n}");
        session.commit(&root, vec![create(&mark, "", Kind::Ephemeral)]).await.unwrap();
        let token = session.read(&format!("{root}{mark}")).await.unwrap()[0].stat.created;
        say(&format!("done {writer} {n} {token}"));
    }
}

/// Nothing answered is missing, nothing is half done, and nothing of an ended session is left.
fn check(writer: u64, known: &Known, entries: &[Entry]) -> u64 {
    let nodes: BTreeMap<&str, &str> = entries.iter().map(|it| (&*it.path, &*it.data)).collect();
    let number = |path: &str| nodes.get(path).map_or(0, |it| it.parse::<u64>().unwrap());
    let answered = known.numbers.get(&writer).copied().unwrap_or(0);
    let (a, b) = (number("/a"), number("/b"));
    assert_eq!(a, b, "half a transaction");
    assert!(a == answered || a == answered + 1, "writer {writer} was told {answered}, and {a} is stored");
    let log: Vec<u64> =
        entries.iter().filter(|it| it.path.starts_with("/log/")).map(|it| it.data.parse().unwrap()).collect();
    let mut sorted = log.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (a.saturating_sub(9).max(1)..=a).collect::<Vec<_>>(), "the log of the last ten");
    for entry in entries {
        assert!(!entry.path.starts_with("/running/"), "{} outlived its session", entry.path);
        let sets = if entry.path == "/a" { a } else { 0 };
        assert!(entry.path == "/b" || u64::from(entry.stat.version) == sets, "{entry:?}");
    }
    a
}

#[test]
fn nothing_answered_is_lost_however_often_the_process_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut known = Known::default();
    let mut random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos();
    for round in 0..=15 {
        let mut child = start("write", directory.path(), &known.print());
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            match lines.next().map(Result::unwrap) {
                Some(line) if line.starts_with("done ") => known.take(&line),
                Some(line) if line == "checked" => break,
                Some(_) => {}
                None => panic!("round {round}: it found something wrong"),
            }
        }
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let answers = if round == 15 { 0 } else { random >> 24 };
        for _ in 0..answers {
            let line = lines.by_ref().map(Result::unwrap).find(|it| it.starts_with("done "));
            known.take(&line.expect("it goes on until it is killed"));
        }
        // Not just when it has said something.
        std::thread::sleep(Duration::from_micros(u64::from(random >> 12 & 0xfff)));
        child.kill().unwrap(); // SIGKILL: it gets no chance to clean up.
        child.wait().unwrap();
        for line in lines.map(Result::unwrap).filter(|it| it.starts_with("done ")) {
            // The last line may be cut short.
            if line.split(' ').count() == 4 {
                known.take(&line);
            }
        }
    }
    let total: u64 = known.numbers.values().sum();
    println!("{total} transactions were answered: {known:?}");
    assert!(total > 100, "it was killed before it did anything: {known:?}");
}

#[test]
fn a_second_process_is_told_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path().canonicalize().unwrap();
    let _registry = Embedded::durable(directory.path()).unwrap();
    let mut child = start("open", directory.path(), "");
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let answers = lines.map(Result::unwrap).filter_map(|it| it.strip_prefix("answer ").map(str::to_owned));
    let answers: Vec<String> = answers.collect();
    child.wait().unwrap();
    let expected = format!(
        "the registry in {} is in use by another process: stop that process, give this one a directory of its \
         own, or share a registry such as zookeeper://host:2181/namespace",
        home.display(),
    );
    assert_eq!(answers, [expected]);
}

#[tokio::test]
async fn the_same_process_shares_it_and_can_open_it_again_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("embedded://{}/a/b", directory.path().display());
    for n in 0..20 {
        let (one, two) = (registry::open(&url).unwrap(), registry::open(&format!("{url}/../b")).unwrap());
        let session = one.connect().await.unwrap();
        session.commit("/job", vec![create(&format!("/{n}"), "", Kind::Persistent)]).await.unwrap();
        let other = two.connect().await.unwrap();
        assert_eq!(other.children("/job").await.unwrap().len(), n + 1);
    }
}

#[tokio::test]
async fn what_is_persistent_comes_back_as_it_was_and_tokens_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let mut last = 0;
    let mut before = Vec::new();
    for life in 0..4 {
        let registry = Embedded::durable(directory.path()).unwrap();
        let session = registry.session().unwrap();
        assert_eq!(session.read("/job").await.unwrap(), before, "in life {life}");
        if life == 0 {
            let ops = vec![create("/gone", "", Kind::Persistent), create("/turned", "", Kind::Persistent)];
            session.commit("/job", ops).await.unwrap();
            session.commit("/job", vec![create("/data", "é\n\0", Kind::Persistent)]).await.unwrap();
            let ops = vec![delete("/turned"), create("/turned", "", Kind::Ephemeral), delete("/gone")];
            session.commit("/job", ops).await.unwrap();
            let ops = vec![create("/brief", "", Kind::Persistent), delete("/brief")];
            session.commit("/job", ops).await.unwrap();
        }
        session.commit("/job", vec![set("/data", &format!("life {life}"))]).await.unwrap();
        // Many that are not stored, so that the numbers pass what was reserved.
        for _ in 0..7_000 {
            let ops = vec![create("/e", "", Kind::Ephemeral), set("/e", "x"), delete("/e")];
            session.commit("/job", ops).await.unwrap();
        }
        session.commit("/job", vec![create("/e", "", Kind::Ephemeral)]).await.unwrap();
        let entries = session.read("/job").await.unwrap();
        let token = entries.iter().find(|it| it.path == "/e").unwrap().stat.created;
        assert!(token > last, "{token} after {last}");
        last = token;
        before = entries.into_iter().filter(|it| !["/e", "/turned"].contains(&&*it.path)).collect();
        assert_eq!(before.iter().map(|it| &*it.path).collect::<Vec<_>>(), ["", "/data"]);
    }
}

#[tokio::test]
async fn a_damaged_file_is_named_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().canonicalize().unwrap().join("registry.redb");
    let session = Embedded::durable(directory.path()).unwrap().session().unwrap();
    for n in 0..500 {
        session
            .commit("/job", vec![create(&format!("/{n}"), &"x".repeat(200), Kind::Persistent)])
            .await
            .unwrap();
    }
    drop(session);
    let good = fs::read(&file).unwrap();

    let mut cases = vec![("text".to_owned(), b"not a registry at all".to_vec())];
    cases.extend([10, 4096, good.len() / 2].map(|it| (format!("cut at {it}"), good[..it].to_vec())));
    for at in [0, 9, 64, 128, 200, 320] {
        let mut bytes = good.clone();
        bytes[at..at + 64].fill(0x5a);
        cases.push((format!("overwritten at {at}"), bytes));
    }
    let at = good.windows(200).position(|it| it.iter().all(|byte| *byte == b'x')).unwrap();
    let mut bytes = good.clone();
    bytes[at + 100] = b'y';
    cases.push(("one letter".into(), bytes));
    let mut all = good.clone();
    all[4096..].fill(0x5a);
    cases.push(("overwritten from 4096".into(), all));
    for (case, bytes) in cases {
        fs::write(&file, &bytes).unwrap();
        let opened = Embedded::durable(directory.path());
        match opened {
            Err(RegistryError::Damaged { path, cause }) => {
                assert_eq!(path, file, "{case}: {cause}");
                println!("{case}: {cause}");
            }
            Err(error) => panic!("{case}: {error}"),
            // redb keeps its header twice, so some damage is healed; then all must be there.
            Ok(registry) => {
                println!("{case}: healed");
                let session = registry.session().unwrap();
                let entries = session.read("/job").await.unwrap();
                assert_eq!(entries.len(), 501, "{case}");
                assert!(entries.iter().all(|it| it.data.is_empty() || it.data == "x".repeat(200)), "{case}");
            }
        }
    }
    fs::write(&file, &good).unwrap();
    let session = Embedded::durable(directory.path()).unwrap().session().unwrap();
    assert_eq!(session.children("/job").await.unwrap().len(), 500);
}

#[test]
fn a_place_that_cannot_be_a_directory_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Embedded::durable(&file).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot open the registry in {}: ", file.display())), "{error}");
}
