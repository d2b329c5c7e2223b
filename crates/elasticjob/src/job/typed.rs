//! Jobs of a type that the program adds.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use super::{Job, JobError, Shard, Work};

/// A type of job of your own: what scripts and HTTP jobs are, for something else. All jobs of the type share the code,
/// and their properties say what to do. Register it by name, with [`Worker::job_type`](crate::Worker::job_type).
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Arc;
/// use elasticjob::{Job, JobError, JobType, Shard, Worker};
///
/// struct Sql;
///
/// impl JobType for Sql {
///     fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
///         props.get("sql.statement").map(drop).ok_or_else(|| "property sql.statement is missing: write it".into())
///     }
///
///     async fn run(&self, shard: Shard, props: Arc<BTreeMap<String, String>>) -> Result<(), JobError> {
///         println!("shard {}: {}", shard.item, props["sql.statement"]);
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let vacuum = Job::typed("vacuum", "SQL").cron("0 0 3 * * ?");
/// let error = Worker::new("embedded://").job_type("SQL", Sql).job(vacuum).start().await.unwrap_err();
/// assert_eq!(error.to_string(), "job `vacuum`: property sql.statement is missing: write it");
/// # }
/// ```
pub trait JobType: Send + Sync + 'static {
    /// Whether it can work with a job's properties. Asked before a worker starts.
    ///
    /// # Errors
    ///
    /// Which property is wrong or missing, and what to write.
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
        let _ = props;
        Ok(())
    }

    /// Works on one shard, with the properties that the job has now. Dropped at its next `.await` if it does not stop
    /// soon after it was cancelled.
    fn run(
        &self,
        shard: Shard,
        props: Arc<BTreeMap<String, String>>,
    ) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// [`JobType`], in a form that can be stored.
pub(crate) trait Runner: Send + Sync {
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError>;
    fn run(
        &self,
        shard: Shard,
        props: Arc<BTreeMap<String, String>>,
    ) -> Pin<Box<dyn Future<Output = Result<(), JobError>> + Send + '_>>;
}

impl<T: JobType> Runner for T {
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
        JobType::check(self, props)
    }

    fn run(
        &self,
        shard: Shard,
        props: Arc<BTreeMap<String, String>>,
    ) -> Pin<Box<dyn Future<Output = Result<(), JobError>> + Send + '_>> {
        Box::pin(JobType::run(self, shard, props))
    }
}

impl Job {
    /// A job of a [type of your own](JobType), which the worker must know by this name.
    pub fn typed(name: impl Into<String>, job_type: impl Into<String>) -> Job {
        let job_type = job_type.into();
        Job { class: job_type.clone(), ..Job::new(name, Work::Named(job_type)) }
    }
}
