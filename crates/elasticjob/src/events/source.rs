//! Where the past of a job can be read from.

use std::io;

use async_trait::async_trait;
use elasticjob_core::ops::explain::Past;
use jiff::Timestamp;

use super::line::{LineError, read_line};
use super::{EventFile, EventLog};
use crate::recorder::Record;
use crate::status;

/// From when to when, both included.
///
/// ```
/// use elasticjob::events::Span;
/// use jiff::Timestamp;
///
/// let span = Span { from: Timestamp::UNIX_EPOCH, to: Timestamp::now() };
/// assert!(span.contains(Timestamp::UNIX_EPOCH));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first instant.
    pub from: Timestamp,
    /// The last.
    pub to: Timestamp,
}

impl Span {
    /// Whether an instant lies in it.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.from <= at && at <= self.to
    }
}

/// Somebody who kept what happened to jobs: the memory of a worker, its file, its status port, or a database.
///
/// ```
/// use elasticjob::events::{EventLog, History, Span};
/// use jiff::Timestamp;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let nothing_kept = EventLog::default();
/// let span = Span { from: Timestamp::UNIX_EPOCH, to: Timestamp::now() };
/// assert!(nothing_kept.past("nightly", span).await.unwrap().is_empty());
/// # }
/// ```
#[async_trait]
pub trait History: Send + Sync {
    /// What happened to a job in that time, the oldest first.
    async fn past(&self, job: &str, span: Span) -> Result<Vec<Past>, HistoryError>;
}

/// Why a history cannot be read.
///
/// ```
/// use elasticjob::events::{EventFile, History, Span};
/// use jiff::Timestamp;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let span = Span { from: Timestamp::UNIX_EPOCH, to: Timestamp::now() };
/// let error = EventFile::new("/no/such/file").past("nightly", span).await.unwrap_err();
/// assert!(error.to_string().starts_with("the events of `/no/such/file` cannot be read: "));
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[error("the events of `{place}` cannot be read: {error}")]
pub struct HistoryError {
    /// Where.
    pub place: String,
    /// Why.
    pub error: io::Error,
}

/// What several histories say of a job in that time, the oldest first, and what two of them say, once.
///
/// ```
/// use elasticjob::events::{EventLog, History, Span, gather};
/// use jiff::Timestamp;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let histories: [Box<dyn History>; 2] = [Box::new(EventLog::default()), Box::new(EventLog::default())];
/// let span = Span { from: Timestamp::UNIX_EPOCH, to: Timestamp::now() };
/// assert!(gather(&histories, "nightly", span).await.unwrap().is_empty());
/// # }
/// ```
///
/// # Errors
///
/// The first history that cannot be read.
pub async fn gather(
    histories: &[Box<dyn History>],
    job: &str,
    span: Span,
) -> Result<Vec<Past>, HistoryError> {
    let mut all: Vec<Past> = Vec::new();
    for history in histories {
        all.extend(history.past(job, span).await?);
    }
    // By instance, too, so that what was told twice stands side by side.
    all.sort_by(|a, b| (a.at, &a.instance).cmp(&(b.at, &b.instance)));
    all.dedup();
    Ok(all)
}

fn chosen(records: Vec<Record>, job: &str, span: Span) -> Vec<Past> {
    records.into_iter().filter(|it| &*it.job == job && span.contains(it.at)).map(Past::from).collect()
}

#[async_trait]
impl History for EventLog {
    async fn past(&self, job: &str, span: Span) -> Result<Vec<Past>, HistoryError> {
        Ok(chosen(self.of(job), job, span))
    }
}

#[async_trait]
impl History for EventFile {
    async fn past(&self, job: &str, span: Span) -> Result<Vec<Past>, HistoryError> {
        let file = self.clone();
        let read = tokio::task::spawn_blocking(move || file.read()).await.map_err(io::Error::other);
        let place = || self.path().display().to_string();
        let (records, unreadable) =
            read.and_then(|it| it).map_err(|error| HistoryError { place: place(), error })?;
        if unreadable > 0 {
            tracing::warn!("{unreadable} line(s) of {} cannot be read, and are passed over", place());
        }
        Ok(chosen(records, job, span))
    }
}

/// The status port of a worker, which tells what the worker keeps in memory.
///
/// ```
/// use elasticjob::events::{EventPort, History, Span};
/// use jiff::Timestamp;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let span = Span { from: Timestamp::UNIX_EPOCH, to: Timestamp::now() };
/// assert!(EventPort::new("127.0.0.1:1").past("nightly", span).await.is_err()); // Nobody listens there.
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct EventPort {
    address: String,
}

impl EventPort {
    /// The status port at an address, such as `10.0.0.1:9400`.
    pub fn new(address: impl Into<String>) -> EventPort {
        EventPort { address: address.into() }
    }
}

#[async_trait]
impl History for EventPort {
    async fn past(&self, job: &str, span: Span) -> Result<Vec<Past>, HistoryError> {
        let text = status::get(&self.address, "/events").await;
        let text = text.map_err(|error| HistoryError { place: self.address.clone(), error })?;
        let read = |line: &str| match read_line(line) {
            Ok(record) => Some(Ok(record)),
            Err(LineError::UnknownEvent(_)) => None, // It is of a later version.
            Err(error) => Some(Err(io::Error::new(io::ErrorKind::InvalidData, error))),
        };
        let records = text.lines().filter_map(read).collect::<io::Result<Vec<Record>>>();
        let records = records.map_err(|error| HistoryError { place: self.address.clone(), error })?;
        Ok(chosen(records, job, span))
    }
}
