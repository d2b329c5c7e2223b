//! Following a job as it changes.

use elasticjob_core::ops::JobTree;
use elasticjob_core::ops::ask::JobDetail;
use elasticjob_cron::Zone;
use jiff::Timestamp;

use crate::registry::{Watch, WatchEvent};

/// A job, followed. See [`crate::Ops::watch`].
///
/// ```
/// use elasticjob::ops::{News, Ops};
/// use elasticjob::{Job, Shard, Worker, registry};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = registry::open("embedded://")?;
/// let job = Job::simple("nightly", async |_: Shard| Ok(())).cron("0 0 2 * * ?");
/// let worker = Worker::new(registry.clone()).job(job).start().await?;
/// let mut watch = Ops::connect(registry).await?.watch("nightly").await?;
/// let News::Now(detail) = watch.next().await else { panic!("the first news is how things are") };
/// assert_eq!(detail.instances.len(), 1);
/// # worker.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct JobWatch {
    tree: JobTree,
    watch: Watch,
    zone: Zone,
}

/// What a [`JobWatch`] says.
///
/// ```
/// use elasticjob::ops::News;
///
/// assert!(!matches!(News::Ended, News::Now(_)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// This is how things are.
    Now(Box<JobDetail>),
    /// The registry is out of reach; how things are is not known.
    Suspended,
    /// The session is over. Nothing follows.
    Ended,
}

impl JobWatch {
    pub(super) fn new(job: &str, watch: Watch, zone: Zone) -> JobWatch {
        JobWatch { tree: JobTree::new(job, Vec::new()), watch, zone }
    }

    /// The next news. What has changed several times since the last call is told once. Cancel safe.
    pub async fn next(&mut self) -> News {
        let mut event = self.watch.next().await;
        loop {
            match event {
                WatchEvent::Snapshot(entries) => self.tree = JobTree::new(self.tree.name.clone(), entries),
                WatchEvent::Changed(changes) => changes.iter().for_each(|it| self.tree.apply(it)),
                WatchEvent::Sees(_) => {}
                WatchEvent::Suspended => return News::Suspended,
                WatchEvent::Ended => return News::Ended,
            }
            match self.watch.try_next() {
                Some(next) => event = next,
                None => return News::Now(Box::new(self.now())),
            }
        }
    }

    /// How things were at the last news.
    pub fn now(&self) -> JobDetail {
        JobDetail::of(&self.tree, Timestamp::now(), &self.zone)
    }
}
