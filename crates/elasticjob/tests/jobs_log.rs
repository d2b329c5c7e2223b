//! What dataflow jobs log. Alone in its process: others that log at the same time, to nobody, can make
//! `tracing` forget that somebody listens.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::Mutex;

use elasticjob::{DataflowJob, Job, JobError, Outcome, Shard, testing};

#[path = "shared/log.rs"]
mod log;
use log::Log;

/// Batches to fetch; one that begins with 13 fails.
struct Batches(Mutex<Vec<Vec<u32>>>);

impl DataflowJob for Batches {
    type Item = u32;

    async fn fetch(&self, _: &Shard) -> Result<Vec<u32>, JobError> {
        Ok(self.0.lock().unwrap().pop().unwrap_or_default())
    }

    async fn process(&self, _: &Shard, items: Vec<u32>) -> Result<(), JobError> {
        if items[0] == 13 { Err("unlucky".into()) } else { Ok(()) }
    }
}

#[tokio::test]
async fn what_was_done_is_logged_however_it_ends() {
    let (log, _guard) = Log::listen();
    let batches =
        |batches: &[&[u32]]| Batches(Mutex::new(batches.iter().rev().map(|batch| batch.to_vec()).collect()));
    let job = Job::dataflow("logged", batches(&[&[1, 2], &[13, 14, 15]])).streaming(true);
    let outcomes = testing::run_once(&job).await.unwrap();
    assert_eq!(outcomes[&0], Outcome::Failed("unlucky".into()));
    testing::run_once(&Job::dataflow("nothing", batches(&[]))).await.unwrap();
    let text = log.text();
    assert!(text.contains(r#"processed job="logged" item=0 batches=2 succeeded=2 failed=3"#), "{text}");
    assert!(!text.contains("nothing"), "{text}");
}
