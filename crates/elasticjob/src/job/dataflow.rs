//! Jobs that fetch what is to be done, and process it.

use std::ops::AddAssign;
use std::sync::Arc;

use super::{Job, JobError, Shard, Work};
use crate::executor::{caught, dataflow};

/// A job that fetches elements and processes them, batch by batch.
///
/// A round is one fetch and, if that brought anything, one call of `process` for each shard. A
/// [streaming](Job::streaming) job repeats that until a fetch brings nothing, or the shard
/// [should yield](Shard::should_yield), or a batch fails. What was fetched is always handed to `process`.
///
/// ```
/// use std::sync::Mutex;
/// use elasticjob::{DataflowJob, Job, JobError, Outcome, Shard, testing};
///
/// struct SyncOrders {
///     open: Mutex<Vec<u32>>,
/// }
///
/// impl DataflowJob for SyncOrders {
///     type Item = u32;
///
///     async fn fetch(&self, shard: &Shard) -> Result<Vec<u32>, JobError> {
///         // `SELECT … WHERE id % total = item AND state = 'open' LIMIT fetch_size`
///         let limit = shard.fetch_size.map_or(100, |size| size as usize);
///         let open = self.open.lock().unwrap();
///         Ok(open.iter().copied().filter(|id| id % shard.total == shard.item).take(limit).collect())
///     }
///
///     async fn process(&self, _: &Shard, orders: Vec<u32>) -> Result<(), JobError> {
///         self.open.lock().unwrap().retain(|id| !orders.contains(id));
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let orders = SyncOrders { open: Mutex::new((0..1000).collect()) };
/// let job = Job::dataflow("sync-orders", orders).shards(2).streaming(true).fetch_size(50);
/// let outcomes = testing::run_once(&job).await?;
/// assert_eq!(outcomes[&1], Outcome::Succeeded);
/// # Ok(()) }
/// ```
pub trait DataflowJob: Send + Sync + 'static {
    /// What is fetched and processed.
    type Item: Send + 'static;

    /// What is to be done for this shard; nothing, if there is nothing.
    fn fetch(&self, shard: &Shard) -> impl Future<Output = Result<Vec<Self::Item>, JobError>> + Send;

    /// Does it. An error counts for all of `items`, unless it is [`PartlyFailed`], which says how many.
    fn process(
        &self,
        shard: &Shard,
        items: Vec<Self::Item>,
    ) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// A [`DataflowJob`] that processes one element at a time: one that fails does not keep the others from being
/// processed. The first error is reported, with how many there were.
///
/// ```
/// use elasticjob::{EachJob, Job, JobError, Outcome, Shard, testing};
///
/// struct Mails;
///
/// impl EachJob for Mails {
///     type Item = &'static str;
///
///     async fn fetch(&self, _: &Shard) -> Result<Vec<&'static str>, JobError> {
///         Ok(vec!["ann@example.com", "nobody", "bob@example.com"])
///     }
///
///     async fn process_each(&self, _: &Shard, address: &'static str) -> Result<(), JobError> {
///         if address.contains('@') { Ok(()) } else { Err(format!("`{address}` is no address").into()) }
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let outcomes = testing::run_once(&Job::dataflow_each("mails", Mails)).await?;
/// assert_eq!(outcomes[&0], Outcome::Failed("1 of 3 failed: `nobody` is no address".into()));
/// # Ok(()) }
/// ```
pub trait EachJob: Send + Sync + 'static {
    /// What is fetched and processed.
    type Item: Send + 'static;

    /// What is to be done for this shard; nothing, if there is nothing.
    fn fetch(&self, shard: &Shard) -> impl Future<Output = Result<Vec<Self::Item>, JobError>> + Send;

    /// Does one of it.
    fn process_each(
        &self,
        shard: &Shard,
        item: Self::Item,
    ) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// How many elements were processed.
///
/// ```
/// let mut sum = elasticjob::Processed::default();
/// sum += elasticjob::Processed { succeeded: 2, failed: 1 };
/// assert_eq!((sum.succeeded, sum.failed, sum.total()), (2, 1, 3));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processed {
    /// So many with success.
    pub succeeded: u64,
    /// So many without.
    pub failed: u64,
}

impl Processed {
    /// So many altogether.
    ///
    /// ```
    /// assert_eq!(elasticjob::Processed { succeeded: 2, failed: 1 }.total(), 3);
    /// ```
    pub fn total(&self) -> u64 {
        self.succeeded.saturating_add(self.failed)
    }
}

impl AddAssign for Processed {
    fn add_assign(&mut self, other: Processed) {
        self.succeeded = self.succeeded.saturating_add(other.succeeded);
        self.failed = self.failed.saturating_add(other.failed);
    }
}

/// Some elements of a batch failed. Return it from [`DataflowJob::process`] to say how many.
///
/// ```
/// use elasticjob::{JobError, PartlyFailed, Processed};
///
/// let processed = Processed { succeeded: 9, failed: 1 };
/// let error: JobError = PartlyFailed { processed, first: "no such customer".into() }.into();
/// assert_eq!(error.to_string(), "1 of 10 failed");
/// assert_eq!(error.source().unwrap().to_string(), "no such customer");
/// ```
#[derive(Debug, thiserror::Error)]
#[error("{} of {} failed", processed.failed, processed.total())]
pub struct PartlyFailed {
    /// How many did, and how many did not.
    pub processed: Processed,
    /// The first error.
    #[source]
    pub first: JobError,
}

/// An [`EachJob`] as a [`DataflowJob`].
struct Each<J>(J);

impl<J: EachJob> DataflowJob for Each<J> {
    type Item = J::Item;

    async fn fetch(&self, shard: &Shard) -> Result<Vec<J::Item>, JobError> {
        self.0.fetch(shard).await
    }

    async fn process(&self, shard: &Shard, items: Vec<J::Item>) -> Result<(), JobError> {
        let mut processed = Processed::default();
        let mut first = None;
        for item in items {
            if shard.is_cancelled() {
                first.get_or_insert_with(|| "it was stopped before the others".into());
                break;
            }
            match caught(async { self.0.process_each(shard, item).await }).await {
                Ok(()) => processed.succeeded += 1,
                Err(error) => {
                    processed.failed += 1;
                    first.get_or_insert(error);
                }
            }
            // A job that never waits must not keep its worker from telling it to stop.
            tokio::task::coop::consume_budget().await;
        }
        first.map_or(Ok(()), |first| Err(PartlyFailed { processed, first }.into()))
    }
}

impl Job {
    /// A job that fetches elements and processes them, batch by batch. See [`DataflowJob`].
    ///
    /// ```
    /// use elasticjob::{DataflowJob, Job, JobError, Shard};
    ///
    /// struct Nothing;
    ///
    /// impl DataflowJob for Nothing {
    ///     type Item = u64;
    ///     async fn fetch(&self, _: &Shard) -> Result<Vec<u64>, JobError> {
    ///         Ok(Vec::new())
    ///     }
    ///     async fn process(&self, _: &Shard, _: Vec<u64>) -> Result<(), JobError> {
    ///         Ok(())
    ///     }
    /// }
    /// let job = Job::dataflow("nothing", Nothing).cron("0/30 * * * * ?").streaming(true);
    /// # drop(job);
    /// ```
    pub fn dataflow(name: impl Into<String>, job: impl DataflowJob) -> Job {
        Job::new(name, Work::Dataflow(Arc::new(job)))
    }

    /// A dataflow job that processes one element at a time. See [`EachJob`].
    ///
    /// ```
    /// use elasticjob::{EachJob, Job, JobError, Shard};
    ///
    /// struct Nothing;
    ///
    /// impl EachJob for Nothing {
    ///     type Item = u64;
    ///     async fn fetch(&self, _: &Shard) -> Result<Vec<u64>, JobError> {
    ///         Ok(Vec::new())
    ///     }
    ///     async fn process_each(&self, _: &Shard, _: u64) -> Result<(), JobError> {
    ///         Ok(())
    ///     }
    /// }
    /// let job = Job::dataflow_each("nothing", Nothing).workers(4);
    /// # drop(job);
    /// ```
    pub fn dataflow_each(name: impl Into<String>, job: impl EachJob) -> Job {
        Job::dataflow(name, Each(job))
    }

    /// A dataflow job fetches again until there is nothing. Off by default: then a round is one fetch. It is
    /// the property `streaming.process`, which operators can change between two rounds.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.streaming(true)
    /// # }
    /// ```
    pub fn streaming(self, on: bool) -> Job {
        self.prop(dataflow::STREAMING, on.to_string())
    }

    /// How many elements a dataflow job should fetch at a time, for its own code to read from
    /// [`Shard::fetch_size`]. At least 1. It is the property `elasticjob.dataflow.fetch.size`.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.fetch_size(500)
    /// # }
    /// ```
    pub fn fetch_size(self, elements: u32) -> Job {
        self.prop(dataflow::FETCH_SIZE, elements.to_string())
    }

    /// What a dataflow job fetched is split over so many calls of `process` at a time, from 1 to 1024. With
    /// 1, the default, the elements keep their order; with more, they do not. It is the property
    /// `elasticjob.dataflow.workers`.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.workers(8)
    /// # }
    /// ```
    pub fn workers(self, calls: u32) -> Job {
        self.prop(dataflow::WORKERS, calls.to_string())
    }
}
