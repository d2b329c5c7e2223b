//! What can go wrong before a job runs.

use std::path::PathBuf;

use elasticjob_core::event::StopReason;
use elasticjob_core::spec::SpecError;

use crate::executor::TypeError;
use crate::host::HostError;
use crate::job::JobError;
use crate::registry::RegistryError;

/// Why a worker cannot do what it was asked to.
///
/// ```
/// use elasticjob::{Error, Job, Shard, Worker};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let job = Job::simple("hello", async |_: Shard| Ok(())).cron("every day");
/// let error = Worker::new("embedded://").job(job).start().await.unwrap_err();
/// assert!(matches!(&error, Error::Spec { job, .. } if job == "hello"));
/// println!("{error}"); // Names the field, the value, and what would be right.
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The registry cannot be opened or reached.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A job's configuration is wrong.
    #[error("job `{job}`: {error}")]
    Spec {
        /// The job.
        job: String,
        /// What is wrong, and the remedy.
        error: SpecError,
    },
    /// A job's properties are not what its type needs, or the type is not there.
    #[error("job `{job}`: {error}")]
    Type {
        /// The job.
        job: String,
        /// What is wrong, and the remedy.
        error: TypeError,
    },
    /// An error handler cannot work with a job's properties.
    #[error("job `{job}`: error handler {handler}: {error}")]
    Handler {
        /// The job.
        job: String,
        /// The handler.
        handler: String,
        /// What is wrong, and the remedy.
        error: JobError,
    },
    /// A job type cannot work with a job's properties.
    #[error("job `{job}`: {error}")]
    Custom {
        /// The job.
        job: String,
        /// What is wrong, and the remedy.
        error: JobError,
    },
    /// A job names an error handler or a type that is not registered here.
    #[error(
        "job `{job}`: {what} `{name}` is unknown here; known: {known}; register your own with the worker"
    )]
    Unknown {
        /// The job.
        job: String,
        /// What it names.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A name is blank, or stands for something already.
    #[error(
        "{what} `{name}` cannot be registered: the name is blank, has a comma, or is taken; choose another"
    )]
    NameTaken {
        /// What was to be registered.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A job cannot start.
    #[error("job `{job}` cannot start: {reason}")]
    Start {
        /// The job.
        job: String,
        /// Why.
        reason: StopReason,
    },
    /// Two jobs of one name.
    #[error("job `{job}` is added twice: give one of them another name")]
    DuplicateJob {
        /// The name.
        job: String,
    },
    /// No such job.
    #[error("job `{job}` does not exist here; known: {known}")]
    UnknownJob {
        /// The name.
        job: String,
        /// The names there are.
        known: String,
    },
    /// A job of a file has no code.
    #[error(
        "{file}: job `{job}` has neither a script nor code here: add `script:` or `http:`, or bind code to that name; bound: {bound}"
    )]
    Unbound {
        /// The file.
        file: String,
        /// The job.
        job: String,
        /// The names that have code.
        bound: String,
    },
    /// Code was given for a job that the file does not have.
    #[error("{file}: no job is called `{job}`; known: {known}")]
    NotInFile {
        /// The file.
        file: String,
        /// The job.
        job: String,
        /// The names there are.
        known: String,
    },
    /// A jobs file cannot be used.
    #[error(transparent)]
    File(#[from] crate::file::FileError),
    /// A jobs file names no registry.
    #[error("{}: no registry: add a line such as `registry: embedded://`", path.display())]
    NoRegistry {
        /// The file.
        path: PathBuf,
    },
    /// This host has no address to go by.
    #[error(transparent)]
    Host(#[from] HostError),
    /// What was asked of a job was not done.
    #[error(transparent)]
    Ops(#[from] crate::ops::OpsError),
    /// The registry is not connected at the moment.
    #[error("the registry is not connected at the moment: try again when it is")]
    Disconnected,
    /// A port for operators cannot be opened.
    #[error("cannot open the {what} at {address}: {error}")]
    Port {
        /// Which.
        what: &'static str,
        /// Where.
        address: String,
        /// Why.
        error: std::io::Error,
    },
    /// The file that events are to be kept in cannot be written.
    #[error("cannot write events to {}: {error}", path.display())]
    EventFile {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The signals that end a worker cannot be listened to.
    #[error("cannot listen to signals: {0}")]
    Signal(std::io::Error),
}
