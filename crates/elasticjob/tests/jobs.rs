//! The types of jobs, with real workers, real processes and a real HTTP server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "jobs/dataflow.rs"]
mod dataflow;
#[expect(dead_code, reason = "its main is not called")]
#[path = "../examples/dataflow.rs"]
mod dataflow_example;
#[path = "jobs/examples.rs"]
mod examples;
#[path = "jobs/hooks.rs"]
mod hooks;
#[expect(dead_code, reason = "its main is not called")]
#[path = "../examples/hooks.rs"]
mod hooks_example;
#[cfg(feature = "http")]
#[path = "jobs/http.rs"]
mod http;
#[path = "jobs/offsets.rs"]
mod offsets;
#[expect(dead_code, reason = "its main is not called")]
#[path = "../examples/offsets.rs"]
mod offsets_example;
#[path = "jobs/policies.rs"]
mod policies;
#[path = "jobs/script.rs"]
mod script;
#[cfg(feature = "http")]
#[path = "jobs/server.rs"]
mod server;
#[path = "jobs/throughput.rs"]
mod throughput;

use std::collections::BTreeMap;
use std::time::Duration;

use elasticjob::registry::{self, Registry};
use elasticjob::{Event, Job, Outcome, Recorded, Records, RunningWorker, Worker, testing};
use tokio::time::timeout;

/// Nothing here takes so long, however slow the machine is.
const LONG: Duration = Duration::from_secs(60);

fn registry() -> std::sync::Arc<dyn Registry> {
    registry::open("embedded://?session-timeout=6s").unwrap()
}

async fn start(registry: &std::sync::Arc<dyn Registry>, job: Job) -> RunningWorker {
    let worker = Worker::new(registry.clone()).job(job).shutdown_grace(Duration::from_secs(5));
    // All workers of a test live by one clock: what has passed of it since the first one started.
    testing::clock_from(worker, now()).start().await.unwrap()
}

/// The time of day of a test: midnight, and what tokio's clock says has passed since.
fn now() -> jiff::Timestamp {
    thread_local!(static START: tokio::time::Instant = tokio::time::Instant::now());
    let passed = START.with(tokio::time::Instant::elapsed);
    let midnight: jiff::Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    midnight + jiff::SignedDuration::try_from(passed).unwrap()
}

#[cfg(not(feature = "http"))]
#[tokio::test]
async fn a_program_without_http_jobs_says_so_at_the_start() {
    let said =
        "HTTP jobs need the feature `http` of the crate elasticjob, which this program is built without";
    let job = Job::http("ping", "https://example.com/");
    let error = Worker::new("embedded://").job(job.clone()).start().await.unwrap_err();
    assert_eq!(error.to_string(), format!("job `ping`: {said}"));
    assert!(testing::run_once(&job).await.is_err());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.yaml");
    std::fs::write(&path, "registry: embedded://\njobs: { ping: { http: 'https://example.com/' } }\n")
        .unwrap();
    let error = Worker::from_file(&path).unwrap().start().await.unwrap_err();
    assert_eq!(error.to_string(), format!("job `ping`: {said}"));
}

/// How the only shard of a job ends that is run once.
async fn run_once(job: &Job) -> Outcome {
    let outcomes = timeout(LONG, testing::run_once(job)).await.expect("it ends");
    outcomes.unwrap().remove(&0).unwrap()
}

/// Why it failed.
async fn failure(job: &Job) -> String {
    match run_once(job).await {
        Outcome::Failed(error) => error,
        outcome => panic!("{outcome:?}"),
    }
}

async fn find<T>(records: &mut Records, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
    let search = async {
        loop {
            match records.next().await.expect("the worker lives") {
                Recorded::Record(record) => {
                    if let Some(found) = wanted(&record.event) {
                        return found;
                    }
                }
                Recorded::Missed(count) => panic!("missed {count} records"),
            }
        }
    };
    // By a paused clock an hour is nothing; by a real one, nobody waits so long.
    timeout(Duration::from_secs(3600), search).await.expect("it happens")
}

async fn finished(records: &mut Records) -> (u32, Outcome) {
    find(records, |event| match event {
        Event::ItemFinished { item, outcome, .. } => Some((*item, outcome.clone())),
        _ => None,
    })
    .await
}

/// The outcomes of the next so many items.
async fn outcomes(records: &mut Records, count: usize) -> BTreeMap<u32, Outcome> {
    let mut outcomes = BTreeMap::new();
    while outcomes.len() < count {
        let (item, outcome) = finished(records).await;
        outcomes.insert(item, outcome);
    }
    outcomes
}
