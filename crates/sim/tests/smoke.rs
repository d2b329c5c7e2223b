//! A few seeds with every test run, and the promise that a seed is a seed.

use elasticjob_sim::{runner, world};

#[test]
fn a_few_hostile_clusters_break_nothing() {
    let summary = runner::run(0, 200, 2, |bad| eprintln!("cargo xtask sim --reproduce {}", bad.seed));
    let broken: Vec<String> =
        summary.bad.iter().map(|it| format!("seed {}: {}", it.seed, it.violations[0].what)).collect();
    assert_eq!(broken, Vec::<String>::new());
    assert!(summary.runs > 10_000, "clusters that do nothing prove nothing: {} runs", summary.runs);
}

#[test]
fn a_seed_is_replayed_byte_for_byte() {
    for seed in [3, 17, 40, 99] {
        let (_, _, first) = world::live(seed, true);
        let (_, _, second) = world::live(seed, true);
        assert!(first.len() > 100 && first == second, "seed {seed}");
    }
}

#[test]
fn zombies_exist_and_are_refused() {
    let summary = runner::run(0, 200, 2, |_| {});
    assert!(summary.refused > 0, "no store refused anybody: the seeds are too friendly");
}
