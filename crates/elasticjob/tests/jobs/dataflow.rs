//! Dataflow jobs. Time is tokio's, paused: it moves only when everybody waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elasticjob::registry::{Embedded, Op, Registry};
use elasticjob::{
    DataflowJob, EachJob, Job, JobError, Outcome, PartlyFailed, Pool, Processed, Shard, Worker,
};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use super::{finished, outcomes, registry, run_once, start};

/// Batches that are there, and a note of what was done with them.
#[derive(Clone, Default)]
struct Store {
    batches: Arc<Mutex<VecDeque<Vec<u32>>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Store {
    fn with(batches: &[&[u32]]) -> Store {
        let batches = batches.iter().map(|batch| batch.to_vec()).collect();
        Store { batches: Arc::new(Mutex::new(batches)), seen: Arc::default() }
    }

    fn note(&self, what: impl Into<String>) {
        self.seen.lock().unwrap().push(what.into());
    }

    fn seen(&self) -> String {
        self.seen.lock().unwrap().drain(..).collect::<Vec<_>>().join(" ")
    }
}

impl DataflowJob for Store {
    type Item = u32;

    async fn fetch(&self, _: &Shard) -> Result<Vec<u32>, JobError> {
        let batch = self.batches.lock().unwrap().pop_front().unwrap_or_default();
        self.note(format!("fetch{batch:?}"));
        match batch[..] {
            [404] => Err("the table is gone".into()),
            [500] => panic!("the driver is broken"),
            _ => Ok(batch),
        }
    }

    async fn process(&self, _: &Shard, items: Vec<u32>) -> Result<(), JobError> {
        self.note(format!("process{items:?}"));
        match items[..] {
            [13, ..] => Err("unlucky".into()),
            [17, ..] => panic!("out of luck"),
            _ => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_round_is_one_fetch_and_what_it_brought() {
    let store = Store::with(&[&[1, 2], &[3]]);
    let job = Job::dataflow("once", store.clone());
    assert_eq!(run_once(&job).await, Outcome::Succeeded);
    assert_eq!(store.seen(), "fetch[1, 2] process[1, 2]");
    assert_eq!(run_once(&job).await, Outcome::Succeeded);
    assert_eq!(store.seen(), "fetch[3] process[3]");
    assert_eq!(run_once(&job).await, Outcome::Succeeded);
    assert_eq!(store.seen(), "fetch[]", "nothing is not processed");
}

#[tokio::test(start_paused = true)]
async fn a_streaming_round_goes_on_until_there_is_nothing() {
    let store = Store::with(&[&[1, 2], &[3], &[], &[4]]);
    let job = Job::dataflow("stream", store.clone()).streaming(true);
    assert_eq!(run_once(&job).await, Outcome::Succeeded);
    assert_eq!(store.seen(), "fetch[1, 2] process[1, 2] fetch[3] process[3] fetch[]");
    // As Java reads the property.
    for (text, rest) in [("TRUE", "fetch[4] process[4] fetch[]"), ("yes", "fetch[]")] {
        let job = Job::dataflow("stream", store.clone()).prop("streaming.process", text);
        assert_eq!(run_once(&job).await, Outcome::Succeeded);
        assert_eq!(store.seen(), rest);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_and_panics_end_the_round_as_failures() {
    for (batch, outcome, seen) in [
        (404, "the table is gone", "fetch[1] process[1] fetch[404]"),
        (500, "panicked: the driver is broken", "fetch[1] process[1] fetch[500]"),
        (13, "unlucky", "fetch[1] process[1] fetch[13] process[13]"),
        (17, "panicked: out of luck", "fetch[1] process[1] fetch[17] process[17]"),
    ] {
        let store = Store::with(&[&[1], &[batch], &[2]]);
        let job = Job::dataflow("rough", store.clone()).streaming(true);
        assert_eq!(run_once(&job).await, Outcome::Failed(outcome.to_owned()));
        assert_eq!(store.seen(), seen);
    }
}

#[tokio::test(start_paused = true)]
async fn the_round_after_a_failure_comes() {
    let store = Store::with(&[&[17], &[1]]);
    let worker = start(&registry(), Job::dataflow("again", store).one_off()).await;
    let mut records = worker.records();
    worker.trigger("again").await.unwrap();
    assert_eq!(finished(&mut records).await.1, Outcome::Failed("panicked: out of luck".into()));
    worker.trigger("again").await.unwrap();
    assert_eq!(finished(&mut records).await.1, Outcome::Succeeded);
    worker.shutdown().await;
}

/// Notes how many calls run at a time.
#[derive(Clone, Default)]
struct Crowd {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    chunks: Arc<Mutex<Vec<Vec<u32>>>>,
}

impl DataflowJob for Crowd {
    type Item = u32;

    async fn fetch(&self, _: &Shard) -> Result<Vec<u32>, JobError> {
        Ok((0..10).collect())
    }

    async fn process(&self, _: &Shard, items: Vec<u32>) -> Result<(), JobError> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        sleep(Duration::from_secs(1)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        self.chunks.lock().unwrap().push(items.clone());
        match items[..] {
            [3, ..] => Err("three".into()),
            [6, ..] => panic!("six"),
            [8, ..] => {
                let processed = Processed { succeeded: 1, failed: 1 };
                Err(PartlyFailed { processed, first: "nine".into() }.into())
            }
            _ => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn workers_share_a_batch_and_each_of_them_ends() {
    let crowd = Crowd::default();
    let outcome = run_once(&Job::dataflow("crowd", crowd.clone()).workers(4)).await;
    assert_eq!(crowd.most.load(Ordering::SeqCst), 4);
    let mut chunks = crowd.chunks.lock().unwrap().clone();
    chunks.sort();
    assert_eq!(chunks, [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7], vec![8, 9]]);
    // 3, 4 and 5 by an error, 6 and 7 by a panic, and 9.
    assert_eq!(outcome, Outcome::Failed("6 of 10 failed: three".into()));

    let crowd = Crowd::default();
    assert_eq!(run_once(&Job::dataflow("alone", crowd.clone())).await, Outcome::Succeeded);
    assert_eq!(*crowd.chunks.lock().unwrap(), [(0..10).collect::<Vec<u32>>()], "one call keeps the order");
}

struct OneByOne {
    seen: mpsc::UnboundedSender<u32>,
}

impl EachJob for OneByOne {
    type Item = u32;

    async fn fetch(&self, shard: &Shard) -> Result<Vec<u32>, JobError> {
        Ok((0..shard.fetch_size.unwrap_or(6)).collect())
    }

    async fn process_each(&self, _: &Shard, item: u32) -> Result<(), JobError> {
        self.seen.send(item)?;
        match item {
            2 => panic!("two"),
            4 => Err("four".into()),
            _ => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_element_that_fails_does_not_keep_the_others() {
    for workers in [1, 3] {
        let (seen, mut reader) = mpsc::unbounded_channel();
        let job = Job::dataflow_each("each", OneByOne { seen }).workers(workers);
        assert_eq!(run_once(&job).await, Outcome::Failed("2 of 6 failed: panicked: two".into()));
        drop(job);
        let mut all = Vec::new();
        while let Some(item) = reader.recv().await {
            all.push(item);
        }
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3, 4, 5]);
    }
    let (seen, _reader) = mpsc::unbounded_channel();
    let job = Job::dataflow_each("each", OneByOne { seen }).fetch_size(2);
    assert_eq!(run_once(&job).await, Outcome::Succeeded, "the fetch size reaches the code");
}

/// There is always more.
#[derive(Clone)]
struct Endless {
    began: mpsc::UnboundedSender<Shard>,
}

impl DataflowJob for Endless {
    type Item = ();

    async fn fetch(&self, _: &Shard) -> Result<Vec<()>, JobError> {
        Ok(vec![()])
    }

    async fn process(&self, shard: &Shard, _: Vec<()>) -> Result<(), JobError> {
        self.began.send(shard.clone())?;
        sleep(Duration::from_millis(100)).await;
        Ok(())
    }
}

fn endless(name: &str) -> (Job, mpsc::UnboundedReceiver<Shard>) {
    let (began, reader) = mpsc::unbounded_channel();
    let job = Job::dataflow(name, Endless { began }).streaming(true).pool(Pool::Size(2));
    (job, reader)
}

async fn next(reader: &mut mpsc::UnboundedReceiver<Shard>) -> Shard {
    let next = timeout(Duration::from_secs(3600), reader.recv()).await;
    next.expect("a batch begins").expect("a worker lives")
}

#[tokio::test(start_paused = true)]
async fn a_streaming_job_yields_to_a_worker_that_joins() {
    let registry = registry();
    let (job, mut ours) = endless("shared");
    let first = start(&registry, job.clone().shards(2).cron("0/10 * * * * ?")).await;
    let mut records = first.records();
    for _ in 0..20 {
        next(&mut ours).await; // It streams on, in one round.
    }
    let (joins, mut theirs) = endless("shared");
    let second = start(&registry, joins.shards(2).cron("0/10 * * * * ?")).await;
    for (_, outcome) in outcomes(&mut records, 2).await {
        assert_eq!(outcome, Outcome::Succeeded, "it ends after the batch, as if there were no more");
    }
    let moved = next(&mut theirs).await;
    while ours.try_recv().is_ok() {}
    let kept = next(&mut ours).await;
    assert_ne!(moved.item, kept.item);
    second.shutdown().await;
    first.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_job_ends_when_its_worker_leaves() {
    let (job, mut began) = endless("leaves");
    let worker = start(&registry(), job.one_off()).await;
    let mut records = worker.records();
    worker.trigger("leaves").await.unwrap();
    next(&mut began).await;
    let asked = tokio::time::Instant::now();
    let leaving = tokio::spawn(worker.shutdown());
    assert_eq!(finished(&mut records).await.1, Outcome::Succeeded);
    leaving.await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
}

/// Fetches when it is allowed to, however often it is told to stop.
#[derive(Clone)]
struct Slow {
    fetching: mpsc::UnboundedSender<Shard>,
    allowed: Arc<Semaphore>,
    processed: Arc<AtomicUsize>,
}

impl DataflowJob for Slow {
    type Item = ();

    async fn fetch(&self, shard: &Shard) -> Result<Vec<()>, JobError> {
        self.fetching.send(shard.clone())?;
        self.allowed.acquire().await?.forget();
        Ok(vec![()])
    }

    async fn process(&self, _: &Shard, _: Vec<()>) -> Result<(), JobError> {
        self.processed.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_fetched_is_processed_even_if_the_session_is_lost_and_then_it_stops() {
    let embedded = Embedded::new();
    let shared: Arc<dyn Registry> = Arc::new(embedded.clone());
    let (fetching, mut reader) = mpsc::unbounded_channel();
    let slow = Slow { fetching, allowed: Arc::new(Semaphore::new(0)), processed: Arc::default() };
    let job = Job::dataflow("slow", slow.clone()).streaming(true).one_off();
    let worker = start(&shared, job).await;
    let mut records = worker.records();
    worker.trigger("slow").await.unwrap();
    let shard = next(&mut reader).await;
    embedded.sessions().into_iter().for_each(|session| embedded.expire(session));
    timeout(Duration::from_secs(5), shard.cancelled()).await.expect("it is told to stop");
    slow.allowed.add_permits(1);
    assert_eq!(finished(&mut records).await.1, Outcome::Cancelled);
    assert_eq!(slow.processed.load(Ordering::SeqCst), 1);
    worker.shutdown().await;
}

/// Goes on whatever it is told, and says when it is dropped.
struct Stubborn {
    events: mpsc::UnboundedSender<&'static str>,
}

impl DataflowJob for Stubborn {
    type Item = ();

    async fn fetch(&self, _: &Shard) -> Result<Vec<()>, JobError> {
        Ok(vec![(); 10])
    }

    async fn process(&self, _: &Shard, _: Vec<()>) -> Result<(), JobError> {
        struct Dropped(mpsc::UnboundedSender<&'static str>);
        impl Drop for Dropped {
            fn drop(&mut self) {
                self.0.send("dropped").ok();
            }
        }
        let _dropped = Dropped(self.events.clone());
        self.events.send("began")?;
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_stop_is_dropped_with_all_its_workers() {
    for workers in [1, 2] {
        let (events, mut reader) = mpsc::unbounded_channel();
        let job = Job::dataflow("stubborn", Stubborn { events }).workers(workers).one_off();
        let worker = start(&registry(), job).await;
        let mut records = worker.records();
        worker.trigger("stubborn").await.unwrap();
        for _ in 0..workers {
            assert_eq!(reader.recv().await, Some("began"));
        }
        let leaving = tokio::spawn(worker.shutdown());
        assert_eq!(finished(&mut records).await.1, Outcome::Cancelled);
        for _ in 0..workers {
            assert_eq!(reader.recv().await, Some("dropped"));
        }
        leaving.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn operators_turn_streaming_on_and_off_between_two_rounds() {
    let registry = registry();
    let store = Store::with(&[&[1], &[2], &[3], &[]]);
    let worker = start(&registry, Job::dataflow("live", store.clone()).streaming(false).one_off()).await;
    let mut records = worker.records();
    worker.trigger("live").await.unwrap();
    finished(&mut records).await;
    assert_eq!(store.seen(), "fetch[1] process[1]");

    let session = registry.connect().await.unwrap();
    let nodes = session.read("/live").await.unwrap();
    let config = &nodes.iter().find(|node| node.path == "/config").unwrap().data;
    let changed = config.replace("streaming.process: 'false'", "streaming.process: 'true'");
    assert_ne!(*config, changed, "{config}");
    let set = Op::Set { path: "/config".into(), data: changed, version: None };
    session.commit("/live", vec![set]).await.unwrap();
    super::find(&mut records, |event| matches!(event, elasticjob::Event::ConfigChanged).then_some(())).await;
    worker.trigger("live").await.unwrap();
    finished(&mut records).await;
    assert_eq!(store.seen(), "fetch[2] process[2] fetch[3] process[3] fetch[]");
    session.close().await;
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn code_that_is_bound_to_a_file_keeps_the_file_s_settings() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.yaml");
    std::fs::write(
        &path,
        "registry: embedded://\njobs:\n  flow: { props: { streaming.process: true, elasticjob.dataflow.workers: 2 } }\n",
    )
    .unwrap();
    let store = Store::with(&[&[1, 2], &[3, 4]]);
    // The file says nothing of the fetch size: what the code says holds. It says workers: the file wins.
    let code = Job::dataflow("flow", store.clone()).streaming(false).fetch_size(2).workers(1);
    let worker = Worker::from_file(&path).unwrap().bind(code).unwrap().start().await.unwrap();
    let mut records = worker.records();
    worker.trigger("flow").await.unwrap();
    assert_eq!(finished(&mut records).await.1, Outcome::Succeeded);
    assert_eq!(store.seen(), "fetch[1, 2] process[1] process[2] fetch[3, 4] process[3] process[4] fetch[]");
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn numbers_that_are_none_are_said_at_the_start() {
    let said =
        |job: Job| async { Worker::new("embedded://").job(job).start().await.unwrap_err().to_string() };
    let job = || Job::dataflow("j", Store::default());
    assert_eq!(
        said(job().workers(0)).await,
        "job `j`: property elasticjob.dataflow.workers `0` is no such number: write one from 1 to 1024"
    );
    assert_eq!(
        said(job().prop("elasticjob.dataflow.fetch.size", "many")).await,
        "job `j`: property elasticjob.dataflow.fetch.size `many` is no such number: write one from 1 to 4294967295"
    );
}
