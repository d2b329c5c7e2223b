//! What happened on a worker, kept: the last of it in memory, all of it in a file if somebody wants that, and read
//! again by `explain`.
//!
//! A line is a JSON object with `at`, `job`, `instance` and `event`, and what the kind of event has besides.

mod file;
mod line;
mod source;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use elasticjob_core::ops::explain::Past;

use crate::recorder::Record;

pub use file::{EventFile, FileKeeper};
pub use line::{LineError, read_line, write_line};
pub use source::{EventPort, History, HistoryError, Span, gather};

/// So many records are kept in memory.
const KEPT: usize = 4096;

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
pub struct EventLog(Arc<Mutex<VecDeque<Record>>>);

impl EventLog {
    fn lock(&self) -> MutexGuard<'_, VecDeque<Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner) // Nothing panics while it is held.
    }

    pub(crate) fn keep(&self, record: Record) {
        let mut records = self.lock();
        if records.len() >= KEPT {
            records.pop_front();
        }
        records.push_back(record);
    }

    /// What is kept of all jobs, the oldest first.
    pub fn all(&self) -> Vec<Record> {
        self.lock().iter().cloned().collect()
    }

    /// What is kept of a job, the oldest first.
    pub fn of(&self, job: &str) -> Vec<Record> {
        self.lock().iter().filter(|it| &*it.job == job).cloned().collect()
    }
}

impl From<Record> for Past {
    fn from(record: Record) -> Past {
        Past { at: record.at, instance: record.instance.to_string(), event: record.event }
    }
}
