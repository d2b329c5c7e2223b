//! What happened on a worker, kept: the last of it in memory, all of it in a file if somebody wants that, and read
//! again by `explain`.
//!
//! A line is a JSON object with `at`, `job`, `instance` and `event`, and what the kind of event has besides.

mod file;
mod line;
mod source;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elasticjob_core::event::Event;
use elasticjob_core::ops::explain::Past;

use crate::recorder::Record;

pub use file::{EventFile, FileKeeper};
pub use line::{LineError, read_line, write_line};
pub use source::{EventPort, History, HistoryError, Span, gather};

/// So many records are kept in memory; fewer, if they name many items.
const KEPT: usize = 4096;
/// A record takes as much room as so many items.
const RECORD: usize = 16;

/// The last records of a worker, in memory. Cheap to clone: all clones are one.
///
/// ```
/// use elasticjob::{Job, Shard, Worker};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let job = Job::simple("nightly", async |_: Shard| Ok(())).cron("0 0 2 * * ?");
/// let worker = Worker::new("embedded://").job(job).start().await?;
/// let log = worker.events();
/// assert!(log.of("nightly").iter().any(|it| matches!(it.event, elasticjob::Event::Registered { .. })));
/// # worker.shutdown().await; Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventLog(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    records: VecDeque<Record>,
    weight: usize,
}

impl EventLog {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner) // Nothing panics while it is held.
    }

    pub(crate) fn keep(&self, record: Record) {
        let mut kept = self.lock();
        kept.weight += weight(&record);
        kept.records.push_back(record);
        // The last one stays, whatever it weighs.
        while kept.weight > KEPT * RECORD && kept.records.len() > 1 {
            let oldest = kept.records.pop_front();
            kept.weight -= oldest.as_ref().map_or(0, weight);
        }
    }

    /// What is kept of all jobs, the oldest first.
    pub fn all(&self) -> Vec<Record> {
        self.lock().records.iter().cloned().collect()
    }

    /// What is kept of a job, the oldest first.
    pub fn of(&self, job: &str) -> Vec<Record> {
        self.lock().records.iter().filter(|it| &*it.job == job).cloned().collect()
    }
}

/// A round of a job with a million shards is one record, and takes up as much room as thousands.
fn weight(record: &Record) -> usize {
    let items = match &record.event {
        Event::RoundStarted { items, .. }
        | Event::Missed { items, .. }
        | Event::Skipped { items, .. }
        | Event::Crashed { items }
        | Event::TriggerHandedOn { items, .. } => items.len(),
        _ => 0,
    };
    RECORD + items
}

impl From<Record> for Past {
    fn from(record: Record) -> Past {
        Past { at: record.at, instance: record.instance.to_string(), event: record.event }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(items: u32) -> Record {
        let event = Event::Crashed { items: (0..items).collect() };
        let at = jiff::Timestamp::UNIX_EPOCH;
        Record { at, job: "j".into(), instance: "i".into(), event, next_fire: None }
    }

    #[test]
    fn what_is_kept_is_bounded_by_what_it_takes() {
        let log = EventLog::default();
        (0..5000).for_each(|_| log.keep(record(0)));
        assert_eq!(log.all().len(), KEPT);
        log.keep(record(40_000));
        assert_eq!(log.all().len(), 1 + KEPT - 40_000_usize.div_ceil(RECORD) - 1);
        log.keep(record(1_000_000));
        assert_eq!(log.all().len(), 1, "the last one stays");
        (0..10).for_each(|_| log.keep(record(0)));
        assert_eq!(log.all().len(), 10);
    }
}
