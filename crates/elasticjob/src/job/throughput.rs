//! Dataflow jobs that fetch once for all shards of a worker.

use std::sync::Arc;

use super::{DataflowJob, Job, JobError, Shard, Work};

/// A dataflow job that does not care which shard an element belongs to: a worker fetches once for all shards that it runs in a
/// round, and [`Job::workers`] share what that brought. It is for many shards and cheap elements. What is streamed, and
/// when that ends, is as for a [`DataflowJob`].
///
/// The shards of a worker end together and alike: if a batch fails, all of them have failed.
///
/// ```
/// use std::sync::Mutex;
/// use elasticjob::{Job, JobError, Outcome, Shard, ThroughputJob, testing};
///
/// struct SyncOrders {
///     open: Mutex<Vec<u32>>,
/// }
///
/// impl ThroughputJob for SyncOrders {
///     type Item = u32;
///
///     async fn fetch(&self, shards: &[Shard]) -> Result<Vec<u32>, JobError> {
///         // `SELECT … WHERE id % total IN (items) AND state = 'open'`
///         let is_ours = |id: &u32| shards.iter().any(|shard| id % shard.total == shard.item);
///         Ok(self.open.lock().unwrap().iter().copied().filter(is_ours).collect())
///     }
///
///     async fn process(&self, _: &[Shard], orders: Vec<u32>) -> Result<(), JobError> {
///         self.open.lock().unwrap().retain(|id| !orders.contains(id));
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let orders = SyncOrders { open: Mutex::new((0..1000).collect()) };
/// let job = Job::dataflow_throughput("sync-orders", orders).shards(10).workers(4);
/// let outcomes = testing::run_once(&job).await?;
/// assert_eq!(outcomes[&9], Outcome::Succeeded);
/// # Ok(()) }
/// ```
pub trait ThroughputJob: Send + Sync + 'static {
    /// What is fetched and processed.
    type Item: Send + 'static;

    /// What is to be done for these shards, of which there is at least one; nothing, if there is nothing.
    fn fetch(&self, shards: &[Shard]) -> impl Future<Output = Result<Vec<Self::Item>, JobError>> + Send;

    /// Does it, or a part of it. An error counts for all of `items`, unless it is [`PartlyFailed`](super::PartlyFailed).
    fn process(
        &self,
        shards: &[Shard],
        items: Vec<Self::Item>,
    ) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// A [`ThroughputJob`] as a [`DataflowJob`], whose shard stands for all of its round.
struct Together<J>(J);

impl<J: ThroughputJob> DataflowJob for Together<J> {
    type Item = J::Item;

    async fn fetch(&self, shard: &Shard) -> Result<Vec<J::Item>, JobError> {
        self.0.fetch(&all(shard)).await
    }

    async fn process(&self, shard: &Shard, items: Vec<J::Item>) -> Result<(), JobError> {
        self.0.process(&all(shard), items).await
    }
}

/// They are stopped with the one that stands for them, and tried again with it.
fn all(shard: &Shard) -> Vec<Shard> {
    let of = |it: &Shard| Shard { cancel: shard.cancel.clone(), attempt: shard.attempt, ..it.clone() };
    shard.together.iter().map(of).collect()
}

impl Job {
    /// A dataflow job that fetches once for all shards of a worker. See [`ThroughputJob`].
    ///
    /// ```
    /// use elasticjob::{Job, JobError, Shard, ThroughputJob};
    ///
    /// struct Nothing;
    ///
    /// impl ThroughputJob for Nothing {
    ///     type Item = u64;
    ///     async fn fetch(&self, _: &[Shard]) -> Result<Vec<u64>, JobError> {
    ///         Ok(Vec::new())
    ///     }
    ///     async fn process(&self, _: &[Shard], _: Vec<u64>) -> Result<(), JobError> {
    ///         Ok(())
    ///     }
    /// }
    /// let job = Job::dataflow_throughput("nothing", Nothing).shards(100).workers(8);
    /// # drop(job);
    /// ```
    pub fn dataflow_throughput(name: impl Into<String>, job: impl ThroughputJob) -> Job {
        Job::new(name, Work::Throughput(Arc::new(Together(job))))
    }
}
