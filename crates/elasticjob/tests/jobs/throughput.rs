//! Dataflow jobs that fetch once for all shards of a worker.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elasticjob::{Job, JobError, Outcome, Pool, Shard, ThroughputJob, testing};

use super::{outcomes, registry, start};

/// Elements 0 to 9 of each shard, in two batches. Notes the calls.
#[derive(Clone, Default)]
struct Rows {
    calls: Arc<Mutex<Vec<String>>>,
    /// Attempts that fail.
    failures: u32,
}

impl Rows {
    fn note(&self, text: String) {
        self.calls.lock().unwrap().push(text);
    }

    fn seen(&self) -> Vec<String> {
        let mut seen = std::mem::take(&mut *self.calls.lock().unwrap());
        seen.sort();
        seen
    }
}

fn items(shards: &[Shard]) -> Vec<u32> {
    shards.iter().map(|it| it.item).collect()
}

impl ThroughputJob for Rows {
    type Item = u32;

    async fn fetch(&self, shards: &[Shard]) -> Result<Vec<u32>, JobError> {
        let mut rows = Vec::new();
        for shard in shards {
            let from: u32 = shard.offset().await?.map_or(Ok(0), |text| text.parse())?;
            rows.extend((from..(from + 2).min(4)).map(|row| shard.item * 10 + row));
            shard.set_offset((from + 2).to_string()).await?;
        }
        self.note(format!("fetch for {:?}: {rows:?}", items(shards)));
        Ok(rows)
    }

    async fn process(&self, shards: &[Shard], rows: Vec<u32>) -> Result<(), JobError> {
        self.note(format!("process {rows:?}"));
        match shards.iter().all(|it| it.attempt <= self.failures) {
            true => Err("unlucky".into()),
            false => Ok(()),
        }
    }
}

fn all(count: u32, outcome: &Outcome) -> BTreeMap<u32, Outcome> {
    (0..count).map(|item| (item, outcome.clone())).collect()
}

#[tokio::test(start_paused = true)]
async fn a_worker_fetches_once_for_all_its_shards_and_workers_share_what_came() {
    let rows = Rows::default();
    // One place is enough for all of them.
    let job = Job::dataflow_throughput("rows", rows.clone()).shards(3).workers(2).pool(Pool::Single);
    assert_eq!(testing::run_once(&job).await.unwrap(), all(3, &Outcome::Succeeded));
    assert_eq!(
        rows.seen(),
        ["fetch for [0, 1, 2]: [0, 1, 10, 11, 20, 21]", "process [0, 1, 10]", "process [11, 20, 21]"]
    );
}

#[tokio::test(start_paused = true)]
async fn each_of_two_workers_fetches_for_its_own_and_streams_with_offsets_of_each_shard() {
    let registry = registry();
    let (ours, theirs) = (Rows::default(), Rows::default());
    let job =
        |rows: &Rows| Job::dataflow_throughput("rows", rows.clone()).shards(4).streaming(true).one_off();
    let first = start(&registry, job(&ours)).await;
    let second = start(&registry, job(&theirs)).await;
    let (mut of_first, mut of_second) = (first.records(), second.records());
    first.trigger("rows").await.unwrap();
    let mut ended = outcomes(&mut of_first, 2).await;
    ended.extend(outcomes(&mut of_second, 2).await);
    assert_eq!(ended, all(4, &Outcome::Succeeded));
    let mut seen = [ours.seen(), theirs.seen()];
    seen.sort();
    let of = |a: u32, b: u32| {
        let rows = |from: u32| [a * 10 + from, a * 10 + from + 1, b * 10 + from, b * 10 + from + 1];
        let mut calls = vec![format!("fetch for [{a}, {b}]: []")];
        for from in [0, 2] {
            calls.push(format!("fetch for [{a}, {b}]: {:?}", rows(from)));
            calls.push(format!("process {:?}", rows(from)));
        }
        calls.sort();
        calls
    };
    assert_eq!(seen, [of(0, 1), of(2, 3)]);
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn they_fail_together_and_are_tried_again_together() {
    let rows = Rows { failures: 1, ..Rows::default() };
    let job = Job::dataflow_throughput("rows", rows.clone()).shards(2);
    assert_eq!(testing::run_once(&job).await.unwrap(), all(2, &Outcome::Failed("unlucky".into())));
    let job = job.retries(1);
    assert_eq!(testing::run_once(&job).await.unwrap(), all(2, &Outcome::Succeeded));
}

/// Stops when all that it was given are told to.
struct Endless;

impl ThroughputJob for Endless {
    type Item = ();

    async fn fetch(&self, shards: &[Shard]) -> Result<Vec<()>, JobError> {
        for shard in shards {
            shard.cancelled().await;
        }
        Err("stopped".into())
    }

    async fn process(&self, _: &[Shard], _: Vec<()>) -> Result<(), JobError> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_limit_is_told_to_all_of_them() {
    let job = Job::dataflow_throughput("endless", Endless).shards(3).time_limit(Duration::from_secs(1));
    let over = Outcome::Failed("took longer than 1s, and was stopped".into());
    assert_eq!(testing::run_once(&job).await.unwrap(), all(3, &over));
}
