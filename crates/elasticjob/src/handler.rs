//! Error handlers: who is told when an item of a job fails.
//!
//! A driver hands a failure to its [`Reporter`], which never waits: what takes time is done by the worker's [`desk`],
//! where failures are piled up, so that many of them become one report.

mod builtin;
pub(crate) mod desk;
#[cfg(feature = "http")]
mod hook;
#[cfg(feature = "email")]
mod mail;
mod pile;
mod reporter;
#[cfg(any(feature = "http", feature = "email"))]
mod secret;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;

use jiff::Timestamp;

use crate::job::JobError;
pub(crate) use builtin::{Known, builtins};
pub use desk::{HandlerCounts, Thrown};
pub(crate) use reporter::{Reporter, check, choose, tell_once, write};

/// Something of a job failed.
///
/// ```
/// use elasticjob::{Job, Report, Shard, Worker};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
/// let job = Job::simple("settle", async |_: Shard| Err("no rows".into())).one_off().error_handlers(["pager"]);
/// let pager = move |report: Report| {
///     let first = report.first().clone();
///     tell.send(format!("{} {:?}: {}", first.job, first.item, first.message)).unwrap();
///     async { Ok(()) }
/// };
/// let worker = Worker::new("embedded://").job(job).error_handler("pager", pager).start().await?;
/// worker.trigger("settle").await?;
/// assert_eq!(told.recv().await.unwrap(), "settle Some(0): no rows");
/// # worker.shutdown().await; Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The job.
    pub job: Arc<str>,
    /// The item; `None` if it was not one item that failed.
    pub item: Option<u32>,
    /// The run: what [`Shard::task_id`](crate::Shard::task_id) says; `None` if it happened outside of one.
    pub run: Option<Arc<str>>,
    /// When it was noticed.
    pub at: Timestamp,
    /// What went wrong, with its causes, up to 16 KiB. A panic is said to be one.
    pub message: Arc<str>,
}

/// More of a message is not kept: a thousand of them may lie in a queue.
const MESSAGE_MAX: usize = 16 * 1024;

impl Failure {
    pub(crate) fn new(
        job: Arc<str>,
        item: Option<u32>,
        run: Option<&str>,
        at: Timestamp,
        message: &str,
    ) -> Failure {
        let message = text::cut(message, MESSAGE_MAX).into();
        Failure { job, item, run: run.map(Arc::from), at, message }
    }
}

/// Failures of one job with the same message.
///
/// ```
/// # fn f(kind: &elasticjob::FailureKind) {
/// println!("{} times since {}: {}", kind.count, kind.first.at, kind.first.message);
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailureKind {
    /// The first of them.
    pub first: Failure,
    /// How many there were.
    pub count: u64,
    /// The items that they were of; some, if they were many.
    pub items: BTreeSet<u32>,
    /// When the last of them was noticed.
    pub last: Timestamp,
}

/// What an error handler is to tell: one failure, or many that came within a short time.
///
/// ```
/// # fn f(report: &elasticjob::Report) {
/// for kind in &report.kinds {
///     println!("{}: {} × {}", kind.first.job, kind.count, kind.first.message);
/// }
/// println!("as Java would say it: {}", report.text());
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The failures, those of one job with the same message together. There is at least one.
    pub kinds: Vec<FailureKind>,
    /// How many more there were, of which only the number is known.
    pub others: u64,
    /// The properties of the job that failed last.
    pub props: Arc<BTreeMap<String, String>>,
}

impl Report {
    /// The first failure.
    pub fn first(&self) -> &Failure {
        &self.kinds[0].first
    }

    /// How many failures it is about.
    pub fn count(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum::<u64>() + self.others
    }

    /// What happened, in words. One failure begins as Java says it: `Job 'x' exception occur in job processing,
    /// caused by …`.
    pub fn text(&self) -> String {
        text::of(self)
    }
}

/// Tells somebody that a job failed. Register it by name, with [`Worker::error_handler`](crate::Worker::error_handler).
///
/// It is called away from the jobs, never twice at a time for one [destination](ErrorHandler::destination), and
/// dropped where it waits if it takes longer than `elasticjob.error.timeout`. If it fails, it is called again
/// later, a few times.
///
/// ```
/// use std::collections::BTreeMap;
/// use elasticjob::{ErrorHandler, JobError, Report, Worker};
///
/// struct Pager;
///
/// impl ErrorHandler for Pager {
///     fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
///         props.get("pager.team").map(drop).ok_or_else(|| "property pager.team is missing: name a team".into())
///     }
///
///     async fn handle(&self, report: Report) -> Result<(), JobError> {
///         println!("to {}: {}", report.props["pager.team"], report.text());
///         Ok(())
///     }
/// }
/// let worker = Worker::from_file("jobs.yaml").map(|worker| worker.error_handler("pager", Pager));
/// # drop(worker);
/// ```
///
/// Functions and closures from a [`Report`] to a future are error handlers too.
pub trait ErrorHandler: Send + Sync + 'static {
    /// Whether it can work with a job's properties. Asked before a worker starts.
    ///
    /// # Errors
    ///
    /// Which property is wrong or missing, and what to write.
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
        let _ = props;
        Ok(())
    }

    /// Where reports go, as far as a job's properties decide it. Failures of all jobs that share a destination share
    /// their reports. The default is all properties.
    fn destination(&self, props: &BTreeMap<String, String>) -> String {
        format!("{props:?}")
    }

    /// Tells what happened.
    fn handle(&self, report: Report) -> impl Future<Output = Result<(), JobError>> + Send;
}

impl<F, Fut> ErrorHandler for F
where
    F: Fn(Report) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), JobError>> + Send,
{
    fn handle(&self, report: Report) -> impl Future<Output = Result<(), JobError>> + Send {
        self(report)
    }
}

/// A PEM file of certificates to trust besides the host's.
#[cfg(any(feature = "http", feature = "email"))]
const CA: &str = "elasticjob.error.ca";

/// The properties that begin so, and those that all handlers share, in a text that tells them from others.
#[cfg(any(feature = "http", feature = "email"))]
fn own(props: &BTreeMap<String, String>, prefix: &str) -> String {
    let is_own = |key: &str| key.starts_with(prefix) || key.starts_with("elasticjob.error.");
    let own: BTreeMap<_, _> = props.iter().filter(|(key, _)| is_own(key)).collect();
    format!("{own:?}")
}

/// [`ErrorHandler`], in a form that can be stored.
pub(crate) trait Handler: Send + Sync {
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError>;
    fn destination(&self, props: &BTreeMap<String, String>) -> String;
    fn handle(&self, report: Report) -> Pin<Box<dyn Future<Output = Result<(), JobError>> + Send + '_>>;
}

impl<H: ErrorHandler> Handler for H {
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
        ErrorHandler::check(self, props)
    }

    fn destination(&self, props: &BTreeMap<String, String>) -> String {
        ErrorHandler::destination(self, props)
    }

    fn handle(&self, report: Report) -> Pin<Box<dyn Future<Output = Result<(), JobError>> + Send + '_>> {
        Box::pin(ErrorHandler::handle(self, report))
    }
}
