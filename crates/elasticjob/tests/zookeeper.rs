//! A real ZooKeeper keeps every law.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::{Arc, LazyLock};

use elasticjob::registry::conformance::{self, LAWS};
use elasticjob::registry::{self, Registry};
use elasticjob_testkit::ZooKeeper;

/// One server for all tests that do not harm it. It is killed by its own process's end.
static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

const QUICK: &str = "session-timeout=4s&base-sleep=50ms&max-sleep=500ms&max-retries=20";

fn open(namespace: &str) -> Arc<dyn Registry> {
    registry::open(&SERVER.url(namespace, QUICK)).unwrap()
}

/// What a server takes at once is limited by bytes.
const STEPS: usize = 5000;

#[tokio::test]
async fn it_keeps_every_law() {
    let registry = open("laws/alone");
    for law in LAWS.iter().filter(|it| it.name != "many_steps_are_one_transaction") {
        let begin = std::time::Instant::now();
        (law.check)(&registry).await;
        println!("{:>6} ms  {}", begin.elapsed().as_millis(), law.name);
    }
    conformance::many_steps(&registry, STEPS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_keeps_every_law_while_all_are_checked_at_once_on_many_threads() {
    let registry = open("laws/together");
    let mut checks = tokio::task::JoinSet::new();
    for law in LAWS.iter().filter(|it| it.name != "many_steps_are_one_transaction") {
        let registry = registry.clone();
        checks.spawn(async move { (law.check)(&registry).await });
    }
    while let Some(check) = checks.join_next().await {
        check.unwrap();
    }
}
