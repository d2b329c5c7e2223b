//! Code begins at its fire, however long the registry takes to grant it, and never before. Time is tokio's, paused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use elasticjob::registry::{self, CommitError, Entry, Op, Registry, RegistryError, Session, Watch};
use elasticjob::{
    Event, Job, JobError, Listener, Recorded, Records, Round, RunningWorker, Shard, Worker, testing,
};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

const MIDNIGHT: &str = "2030-01-01T00:00:00Z";
/// Until a transaction is done, in milliseconds.
const SLOW: u64 = 60;

/// A registry that takes its time: so many milliseconds for a transaction.
#[derive(Debug)]
struct Slow(Arc<dyn Registry>, Arc<AtomicU64>);

struct SlowSession(Arc<dyn Session>, Arc<AtomicU64>);

#[async_trait]
impl Registry for Slow {
    async fn connect(&self) -> Result<Arc<dyn Session>, RegistryError> {
        Ok(Arc::new(SlowSession(self.0.connect().await?, self.1.clone())))
    }
}

#[async_trait]
impl Session for SlowSession {
    fn watch(&self, root: &str) -> Watch {
        self.0.watch(root)
    }

    async fn commit(&self, root: &str, ops: Vec<Op>) -> Result<(), CommitError> {
        sleep(Duration::from_millis(self.1.load(Ordering::Relaxed))).await;
        self.0.commit(root, ops).await
    }

    async fn read(&self, root: &str) -> Result<Vec<Entry>, RegistryError> {
        self.0.read(root).await
    }

    async fn children(&self, root: &str) -> Result<Vec<String>, RegistryError> {
        self.0.children(root).await
    }

    fn trusted_for(&self) -> Duration {
        self.0.trusted_for()
    }

    async fn close(&self) {
        self.0.close().await;
    }
}

/// A worker whose job says how late each run begins, in milliseconds, and then takes some time.
struct Watched {
    worker: RunningWorker,
    records: Records,
    late: mpsc::UnboundedReceiver<i128>,
    slow: Arc<AtomicU64>,
}

impl Watched {
    async fn start(change: impl FnOnce(Job) -> Job, lasting: Duration) -> Watched {
        let (began, midnight) = (Instant::now(), MIDNIGHT.parse::<Timestamp>().unwrap());
        let (tell, late) = mpsc::unbounded_channel();
        let run = move |shard: Shard| {
            let now = midnight + SignedDuration::try_from(began.elapsed()).unwrap();
            let told = tell.send(now.duration_since(shard.nominal.unwrap()).as_millis());
            async move {
                told?;
                sleep(lasting).await;
                Ok::<(), JobError>(())
            }
        };
        let job = Job::simple("five", run).cron("0/5 * * * * ?").time_zone("GMT+0:00").misfire(false);
        let slow = Arc::new(AtomicU64::new(SLOW));
        let registry: Arc<dyn Registry> =
            Arc::new(Slow(registry::open("embedded://").unwrap(), slow.clone()));
        let worker = Worker::new(registry).job(change(job));
        let worker = testing::clock_from(worker, midnight).start().await.unwrap();
        Watched { records: worker.records(), worker, late, slow }
    }

    async fn next(&mut self) -> i128 {
        timeout(Duration::from_secs(60), self.late.recv()).await.expect("it runs").unwrap()
    }

    /// What was skipped until now.
    async fn skipped(&mut self) -> Vec<Event> {
        let mut skipped = Vec::new();
        while let Ok(next) = timeout(Duration::ZERO, self.records.next()).await {
            let Some(Recorded::Record(record)) = next else { panic!("{next:?}") };
            skipped.extend(Some(record.event).filter(|it| matches!(it, Event::Skipped { .. })));
        }
        skipped
    }
}

#[tokio::test(start_paused = true)]
async fn who_knows_how_long_the_registry_takes_begins_in_time() {
    let mut watched = Watched::start(|it| it, Duration::ZERO).await;
    assert!(watched.next().await >= i128::from(SLOW), "nobody knows it yet");
    for _ in 0..20 {
        let late = watched.next().await;
        assert!((0..=2).contains(&late), "{late} ms late");
    }
    watched.worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_ends_just_before_the_next_fire_has_not_missed_it() {
    let mut watched = Watched::start(|it| it, Duration::from_millis(4_850)).await;
    watched.slow.store(200, Ordering::Relaxed);
    watched.next().await; // Fires are asked for a quarter of a second early from now on.
    watched.slow.store(10, Ordering::Relaxed);
    watched.next().await;
    watched.skipped().await; // The first run was late, and went on into the next fire.
    for _ in 0..5 {
        let late = watched.next().await;
        assert!((0..=2).contains(&late), "{late} ms late");
    }
    assert_eq!(watched.skipped().await, []);
    watched.worker.shutdown().await;
}

/// Says when it is called before a round.
struct Told(mpsc::UnboundedSender<Instant>);

impl Listener for Told {
    async fn before(&self, _: &Round) -> Result<(), JobError> {
        Ok(self.0.send(Instant::now())?)
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_called_before_a_round_is_not_called_before_its_fire() {
    let ((tell, mut called), began) = (mpsc::unbounded_channel(), Instant::now());
    let mut watched = Watched::start(|it| it.listener(Told(tell)), Duration::ZERO).await;
    for _ in 0..5 {
        watched.next().await;
        let since = called.recv().await.unwrap().duration_since(began);
        assert!(since.as_millis() % 5_000 < 1_000, "called {since:?} after midnight");
    }
    watched.worker.shutdown().await;
}
