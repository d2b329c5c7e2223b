//! A real ZooKeeper keeps every law.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::{Arc, LazyLock};

use elasticjob::registry::conformance::{self, LAWS};
use elasticjob::registry::{self, CommitError, Kind, Op, Registry, Session};
use elasticjob_testkit::{Proxy, ZooKeeper};

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

/// How many jobs commit at the same moment.
const JOBS: usize = 100;

/// All jobs make this node at the same moment. Gives which of them were refused.
async fn all_make(session: &dyn Session, node: impl Fn(usize) -> String) -> Vec<usize> {
    let commits = (0..JOBS).map(|job| {
        let op = Op::Create { path: node(job), data: String::new(), kind: Kind::Persistent };
        async move { (job, session.commit(&format!("/job-{job}"), vec![op]).await) }
    });
    let mut refused = Vec::new();
    for (job, result) in futures_util::future::join_all(commits).await {
        match result {
            Ok(()) => {}
            Err(CommitError::Conflict { path }) => {
                assert_eq!(path, node(job));
                refused.push(job);
            }
            Err(error) => panic!("{error}"),
        }
    }
    refused
}

#[tokio::test]
async fn what_a_job_asks_for_is_done_in_order_also_when_it_went_with_others_and_was_refused() {
    let session = registry::open(&SERVER.url("in-order", QUICK)).unwrap().connect().await.unwrap();
    let make = |path: &str| Op::Create { path: path.into(), data: String::new(), kind: Kind::Persistent };
    for job in ["/one", "/two"] {
        session.commit(job, vec![make("/there")]).await.unwrap();
    }
    // The second is refused, so the first goes again, alone; the third must not overtake it.
    let first = session.commit("/one", vec![make("/node")]);
    let refused = session.commit("/two", vec![make("/there")]);
    let delete = session.commit("/one", vec![Op::Delete { path: "/node".into() }]);
    let (made, refused, deleted) = tokio::join!(first, refused, delete);
    assert!(matches!(refused, Err(CommitError::Conflict { .. })), "{refused:?}");
    assert_eq!((made.is_ok(), deleted.is_ok()), (true, true), "{made:?} {deleted:?}");
    assert!(session.read("/one").await.unwrap().iter().all(|it| it.path != "/node"));
    session.close().await;
}

#[tokio::test]
async fn transactions_of_many_jobs_go_together_and_one_that_is_refused_holds_no_other_back() {
    let proxy = Proxy::start(SERVER.port()).await;
    let session = registry::open(&proxy.url("together", QUICK)).unwrap().connect().await.unwrap();
    let sent = || proxy.take_requests().values().sum::<u64>();
    assert_eq!(all_make(&*session, |_| "/a".into()).await, [0; 0]);
    sent();
    assert_eq!(all_make(&*session, |_| "/b".into()).await, [0; 0]);
    let together = sent();
    assert!(together <= 4, "{JOBS} transactions took {together} requests");
    let refused = all_make(&*session, |job| if job == 7 { "/a".into() } else { "/c".into() }).await;
    assert_eq!(refused, [7]);
    let entries = session.read("").await.unwrap();
    let made = |node: &str| entries.iter().filter(|it| it.path.ends_with(node)).count();
    assert_eq!((made("/a"), made("/b"), made("/c")), (JOBS, JOBS, JOBS - 1));
    session.close().await;
}
