//! The embedded registry keeps every law, in memory and on disk, and behaves under bad links as it says.

use std::sync::Arc;
use std::time::Duration;

use elasticjob::registry::conformance::{self, LAWS};
use elasticjob::registry::embedded::Outage;
use elasticjob::registry::{
    self, Change, CommitError, Embedded, Kind, Op, Registry, RegistryError, Session, WatchEvent,
};
use tempfile::TempDir;

fn create(path: &str, kind: Kind) -> Op {
    Op::Create { path: path.into(), data: String::new(), kind }
}

fn in_memory() -> Arc<dyn Registry> {
    registry::open("embedded://?session-timeout=100ms").expect("it opens")
}

fn on_disk() -> (TempDir, Arc<dyn Registry>) {
    let directory = tempfile::tempdir().expect("a directory");
    let url = format!("embedded://{}/new?session-timeout=100ms", directory.path().display());
    let registry = registry::open(&url).expect("it opens");
    (directory, registry)
}

#[tokio::test]
async fn it_keeps_every_law_in_memory() {
    conformance::run_all(&in_memory()).await;
    conformance::one_transaction_is_one_event(&in_memory()).await;
}

#[tokio::test]
async fn it_keeps_every_law_on_disk() {
    let (_directory, registry) = on_disk();
    conformance::run_all(&registry).await;
    conformance::one_transaction_is_one_event(&registry).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn it_keeps_every_law_while_all_are_checked_at_once_on_many_threads() {
    let (_directory, on_disk) = on_disk();
    let mut checks = tokio::task::JoinSet::new();
    for registry in [in_memory(), on_disk] {
        for law in LAWS {
            let registry = registry.clone();
            checks.spawn(async move { (law.check)(&registry).await });
        }
    }
    while let Some(check) = checks.join_next().await {
        check.unwrap();
    }
}

#[tokio::test]
async fn a_name_is_one_registry_and_no_name_is_a_new_one() {
    let (a, b) = (registry::open("embedded://here").unwrap(), registry::open("embedded://here").unwrap());
    let session = a.connect().await.unwrap();
    session.commit("/job", vec![create("/a", Kind::Persistent)]).await.unwrap();
    assert_eq!(b.connect().await.unwrap().children("").await.unwrap(), ["job"]);
    for other in ["embedded://", "embedded://there"] {
        let session = registry::open(other).unwrap().connect().await.unwrap();
        assert!(session.children("").await.unwrap().is_empty(), "{other}");
    }
    drop((a, b, session));
    let session = registry::open("embedded://here").unwrap().connect().await.unwrap();
    assert!(session.children("").await.unwrap().is_empty(), "nobody held it");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_session_ends_after_exactly_its_timeout() {
    let registry = Embedded::new().with_session_timeout(Duration::from_secs(7));
    let (a, b) = (registry.session().unwrap(), registry.session().unwrap());
    a.commit("/job", vec![create("/a", Kind::Ephemeral)]).await.unwrap();
    let mut watch = b.watch("/job");
    watch.next().await;
    let begin = tokio::time::Instant::now();
    drop(a);
    assert_eq!(watch.next().await, WatchEvent::Changed(vec![Change::Gone { path: "/a".into() }]));
    let late = begin.elapsed() - Duration::from_secs(7);
    assert!(late < Duration::from_millis(2), "{late:?}");
    assert_eq!(registry.sessions(), [b.id()]);
}

#[test]
fn a_session_ends_with_the_runtime_that_would_have_ended_it() {
    let registry = Embedded::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let before = runtime.block_on(async { registry.session().unwrap() });
    let after = runtime.block_on(async { registry.session().unwrap() });
    drop(before);
    assert_eq!(registry.sessions().len(), 2);
    drop(runtime);
    assert_eq!(registry.sessions(), [after.id()], "its countdown went with the runtime");
    drop(after);
    assert!(registry.sessions().is_empty(), "there is nobody left to count");
    drop(registry.session().unwrap());
    assert!(registry.sessions().is_empty(), "nor was there ever");
}

#[tokio::test(start_paused = true)]
async fn a_cut_session_loses_trust_before_it_is_given_up() {
    let registry = Embedded::new();
    let (a, b) = (registry.session().unwrap(), registry.session().unwrap());
    a.commit("/job", vec![create("/a", Kind::Ephemeral)]).await.unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    assert_eq!(a.trusted_for(), Duration::from_secs(8), "while the link stands the clock does not run");
    let mut watch = a.watch("/job");
    watch.next().await;
    a.suspend(Outage::RequestsLost);
    assert_eq!(watch.next().await, WatchEvent::Suspended);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(a.trusted_for(), Duration::from_secs(5));
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(a.trusted_for(), Duration::ZERO);
    assert_eq!(b.children("/job").await.unwrap(), ["a"], "trust ends before the session does");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(b.children("/job").await.unwrap().is_empty());
    assert_eq!(watch.try_next(), None, "it cannot know yet");
    assert!(matches!(a.read("/job").await, Err(RegistryError::Unreachable(_))));
    a.resume();
    assert_eq!(watch.next().await, WatchEvent::Ended);
    assert_eq!(a.commit("/job", vec![]).await, Err(CommitError::SessionEnded));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_comes_back_in_time_keeps_what_it_has() {
    let registry = Embedded::new();
    let (a, b) = (registry.session().unwrap(), registry.session().unwrap());
    a.commit("/job", vec![create("/a", Kind::Ephemeral)]).await.unwrap();
    let mut watch = a.watch("/job");
    watch.next().await;
    for outage in [Outage::RequestsLost, Outage::RepliesLost] {
        a.suspend(outage);
        b.commit("/job", vec![create(&format!("/{outage:?}"), Kind::Persistent)]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(9)).await;
        a.resume();
        assert_eq!(watch.next().await, WatchEvent::Suspended);
        let WatchEvent::Snapshot(entries) = watch.next().await else { panic!("a fresh start") };
        assert!(entries.iter().any(|it| it.path == format!("/{outage:?}")));
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(registry.sessions(), [a.id(), b.id()], "no old countdown is left");
    assert_eq!(a.trusted_for(), Duration::from_secs(8));
}

#[tokio::test]
async fn a_lost_reply_is_unknown_though_done_and_a_lost_request_though_not() {
    let registry = Embedded::new();
    let session = registry.session().unwrap();
    let mut watch = session.watch("/job");
    watch.next().await;
    for (path, outage, done) in [("/a", Outage::RequestsLost, false), ("/b", Outage::RepliesLost, true)] {
        registry.suspend_at_next_commit(session.id(), outage);
        let answer = session.commit("/job", vec![create(path, Kind::Ephemeral)]).await;
        assert!(matches!(answer, Err(CommitError::Unknown(_))), "{answer:?}");
        assert_eq!(watch.next().await, WatchEvent::Suspended);
        assert_eq!(watch.try_next(), None);
        registry.resume(session.id());
        let WatchEvent::Snapshot(entries) = watch.next().await else { panic!("the snapshot tells") };
        assert_eq!(entries.iter().any(|it| it.path == path), done, "{outage:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_goodbye_that_cannot_be_heard_takes_the_timeout() {
    let registry = Embedded::new();
    let session = registry.session().unwrap();
    let mut watch = session.watch("/job");
    session.suspend(Outage::RepliesLost);
    session.close().await;
    assert_eq!(watch.next().await, WatchEvent::Ended);
    assert_eq!(session.commit("/job", vec![]).await, Err(CommitError::SessionEnded));
    assert_eq!(registry.sessions().len(), 1);
    drop(session);
    tokio::time::sleep(Duration::from_secs(11)).await;
    assert!(registry.sessions().is_empty());
}

#[tokio::test]
async fn a_change_costs_the_same_however_many_jobs_are_watched() {
    let registry = Embedded::new();
    let session = registry.session().unwrap();
    let mut watches: Vec<_> = (0..10_000).map(|n| session.watch(&format!("/job-{n}"))).collect();
    for watch in &mut watches {
        watch.next().await;
    }
    let begin = std::time::Instant::now();
    for n in 0..10_000 {
        session.commit(&format!("/job-{n}"), vec![create("/a", Kind::Ephemeral)]).await.unwrap();
    }
    for watch in &mut watches {
        assert!(matches!(watch.try_next(), Some(WatchEvent::Changed(_))));
        assert_eq!(watch.try_next(), None);
    }
    // A visit to every watcher with every commit would be a hundred million.
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    drop(watches);
    session.close().await;
}
