//! From drivers to whoever keeps records. The queue is bounded: a reader who is too slow loses the oldest
//! records and is told how many, and no job ever waits for a reader.

use std::sync::Arc;

use elasticjob_core::event::Event;
use jiff::Timestamp;
use tokio::sync::broadcast;

use crate::events::EventLog;
use crate::metrics::Metrics;

const QUEUE: usize = 4096;

/// Something that happened to a job on this worker.
///
/// ```
/// use elasticjob::{Event, Record};
///
/// fn say(record: &Record) -> Option<String> {
///     let Event::Skipped { why, .. } = &record.event else { return None };
///     Some(format!("{}: {} skipped a round: {why}", record.at, record.job))
/// }
/// let record = elasticjob::events::read_line(
///     r#"{"at":"2026-11-15T02:00:00Z","job":"nightly","instance":"","event":"skipped","items":[],"why":"no-items"}"#,
/// )?;
/// assert!(say(&record).unwrap().ends_with("nightly skipped a round: no item belongs to this instance"));
/// # Ok::<(), elasticjob::events::LineError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Record {
    /// When.
    pub at: Timestamp,
    /// The job.
    pub job: Arc<str>,
    /// The instance, by the id that it had last; empty if it has had none.
    pub instance: Arc<str>,
    /// What.
    pub event: Event,
    /// When the job's clock fires next on this worker.
    pub next_fire: Option<Timestamp>,
}

/// What a reader gets next.
///
/// ```
/// use elasticjob::{Recorded, Records};
///
/// async fn count(mut records: Records) -> (u64, u64) {
///     let (mut seen, mut lost) = (0, 0);
///     while let Some(next) = records.next().await {
///         match next {
///             Recorded::Record(_) => seen += 1,
///             Recorded::Missed(count) => lost += count,
///         }
///     }
///     (seen, lost)
/// }
/// ```
#[derive(Clone, Debug)]
pub enum Recorded {
    /// Something happened.
    Record(Record),
    /// The reader was too slow, and missed this many records.
    Missed(u64),
}

/// A reader of the records of one worker, from the moment it was made.
///
/// ```
/// use elasticjob::{Event, Job, Recorded, Shard, Worker};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let job = Job::simple("hello", async |_: Shard| Ok(())).one_off();
/// let worker = Worker::new("embedded://").job(job).start().await?;
/// let mut records = worker.records();
/// worker.trigger("hello").await?;
/// while let Some(Recorded::Record(record)) = records.next().await {
///     if let Event::ItemFinished { item, .. } = record.event {
///         assert_eq!(item, 0);
///         break;
///     }
/// }
/// worker.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Records {
    queue: broadcast::Receiver<Record>,
    metrics: Option<Metrics>,
}

impl Records {
    /// The next record; `None` when the worker has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<Recorded> {
        match self.queue.recv().await {
            Ok(record) => Some(Recorded::Record(record)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(self.missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// The next record, if it is here already.
    pub(crate) fn try_next(&mut self) -> Option<Recorded> {
        match self.queue.try_recv() {
            Ok(record) => Some(Recorded::Record(record)),
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Some(self.missed(missed)),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => None,
        }
    }

    fn missed(&self, count: u64) -> Recorded {
        if let Some(metrics) = &self.metrics {
            metrics.dropped(count);
        }
        Recorded::Missed(count)
    }
}

/// Where drivers leave their records: with readers, in the numbers, and in the memory of the worker.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    queue: broadcast::Sender<Record>,
    metrics: Option<Metrics>,
    kept: EventLog,
}

impl Recorder {
    pub(crate) fn new(metrics: Option<Metrics>, kept: EventLog) -> Recorder {
        Recorder { queue: broadcast::Sender::new(QUEUE), metrics, kept }
    }

    pub(crate) fn reader(&self) -> Records {
        Records { queue: self.queue.subscribe(), metrics: self.metrics.clone() }
    }

    pub(crate) fn kept(&self) -> &EventLog {
        &self.kept
    }

    pub(crate) fn record(&self, record: Record) {
        log(&record);
        if let Some(metrics) = &self.metrics {
            metrics.record(&record);
        }
        self.kept.keep(record.clone());
        // Nobody may be listening.
        drop(self.queue.send(record));
    }

    /// Whether the job is registered in a session that stands.
    pub(crate) fn stands(&self, job: &Arc<str>, stands: bool) {
        if let Some(metrics) = &self.metrics {
            metrics.stands(job, stands);
        }
    }
}

/// Items that fail are not here: error handlers decide who is told of them.
fn log(record: &Record) {
    let job = &*record.job;
    match &record.event {
        Event::ConfigRefused { error } => tracing::error!(job, "configuration refused: {error}"),
        Event::Stopped { reason } => tracing::info!(job, "stopped: {reason}"),
        Event::Suspended | Event::Distrusted => tracing::warn!(job, event = ?record.event, "registry lost"),
        Event::Skipped { nominal, items, why } => {
            tracing::warn!(job, ?nominal, ?items, "fire skipped: {why}");
        }
        event => tracing::debug!(job, ?event, "event"),
    }
}
