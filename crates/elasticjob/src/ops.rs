//! See and steer every job of a registry: read, plan (in the core), commit, and again on conflict.
//!
//! [`Ops`] is what the command line is made of, and what a console of your own would be.

mod dump_port;
mod error;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;

use elasticjob_core::ops::{self as plans, Act, JobTree, near};
use elasticjob_cron::Zone;
use futures_util::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;

use crate::registry::{self, CommitError, Session};
use crate::worker::RegistryAt;

pub use dump_port::{DumpPort, dump_from};
pub use elasticjob_core::ops::act::Part;
pub use elasticjob_core::ops::ask::{
    InstanceInfo, JobDetail, JobStatus, JobSummary, ServerSummary, ShardInfo, ShardStatus,
};
pub use elasticjob_core::ops::check::{Finding, Level};
pub use elasticjob_core::ops::config::{Paused, Stored};
pub use elasticjob_core::ops::explain::{Explanation, Past};
pub use elasticjob_core::ops::import::Import;
pub use elasticjob_core::ops::{Done, Refusal, diff};
pub use error::OpsError;
pub use watch::{JobWatch, News};

/// A plan meets the registry as it was read at most this often.
const ATTEMPTS: usize = 10;
/// So many jobs are read at once: enough to hide the way to the registry, few enough not to bury it.
const READS_AT_ONCE: usize = 32;
/// What one transaction may hold; ZooKeeper refuses more than a megabyte.
const CHUNK: usize = 1000;

/// The operator's hand in a registry.
///
/// ```
/// use elasticjob::ops::{JobStatus, Ops, Part};
/// use elasticjob::{Job, Shard, Worker, registry};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = registry::open("embedded://")?;
/// let job = Job::simple("nightly", async |_: Shard| Ok(())).cron("0 0 2 * * ?").shards(2);
/// let worker = Worker::new(registry.clone()).job(job).start().await?;
///
/// let ops = Ops::connect(registry).await?;
/// let done = ops.disable("nightly", &Part::Job).await?;
/// assert_eq!(done.changes.len(), 1);
/// assert_eq!(ops.jobs().await?[0].status, JobStatus::Disabled);
///
/// let error = ops.disable("nightly", &Part::Item(7)).await.unwrap_err();
/// assert_eq!(error.to_string(), "job `nightly`: there is no shard 7: the job has shards 0 to 1");
/// # worker.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Ops {
    session: Arc<dyn Session>,
    zone: Zone,
}

impl std::fmt::Debug for Ops {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ops").finish_non_exhaustive()
    }
}

impl Ops {
    /// Joins a registry as an operator: a member that owns nothing.
    pub async fn connect(registry: impl Into<RegistryAt>) -> Result<Ops, OpsError> {
        let registry = match registry.into() {
            RegistryAt::Url(url) => registry::open(&url)?,
            RegistryAt::Open(registry) => registry,
        };
        Ok(Ops::over(registry.connect().await?))
    }

    pub(crate) fn over(session: Arc<dyn Session>) -> Ops {
        Ops { session, zone: Zone::system() }
    }

    /// Leaves the registry.
    pub async fn close(self) {
        self.session.close().await;
    }

    /// All jobs, by name: one read for each.
    pub async fn jobs(&self) -> Result<Vec<JobSummary>, OpsError> {
        Ok(self.trees().await?.iter().map(JobSummary::of).collect())
    }

    /// All that there is to see of a job.
    pub async fn job(&self, job: &str) -> Result<JobDetail, OpsError> {
        Ok(JobDetail::of(&self.tree(job).await?, Timestamp::now(), &self.zone))
    }

    /// All servers, by address.
    pub async fn servers(&self) -> Result<Vec<ServerSummary>, OpsError> {
        Ok(plans::ask::servers(&self.trees().await?))
    }

    /// Asks all instances of a job, or one, to run their shards now. One that is at work does so when it is done.
    pub async fn trigger(&self, job: &str, instance: Option<&str>) -> Result<Done, OpsError> {
        self.trigger_with(job, instance, "").await
    }

    /// The same, with a parameter that the runs find in [`Shard::trigger_parameter`](crate::Shard), scripts and
    /// HTTP services in their context as `triggerParameter`. It may have 4 KiB; less if the job has more than 190
    /// shards: 221 bytes from a thousand on. Java peers are asked, too, and do not see it.
    pub async fn trigger_with(
        &self,
        job: &str,
        instance: Option<&str>,
        parameter: &str,
    ) -> Result<Done, OpsError> {
        self.act(job, |tree| plans::act::trigger(tree, instance, parameter)).await
    }

    /// Lets a job, a server of it, or a shard of it work no more.
    pub async fn disable(&self, job: &str, part: &Part) -> Result<Done, OpsError> {
        self.act(job, |tree| plans::act::disable(tree, part)).await
    }

    /// Lets a job, a server of it, or a shard of it work again.
    pub async fn enable(&self, job: &str, part: &Part) -> Result<Done, OpsError> {
        self.act(job, |tree| plans::act::enable(tree, part)).await
    }

    /// Disables a job until it is resumed, also on servers that start later; `by` is noted with it.
    pub async fn pause(&self, job: &str, by: &str) -> Result<Done, OpsError> {
        let now = Timestamp::now();
        self.act(job, |tree| plans::config::pause(tree, by, now)).await
    }

    /// Ends a pause.
    pub async fn resume(&self, job: &str) -> Result<Done, OpsError> {
        self.act(job, plans::config::resume).await
    }

    /// Ends a job on all its instances, those of a server, or one. The processes go on without it.
    pub async fn shutdown(&self, job: &str, part: &Part) -> Result<Done, OpsError> {
        self.act(job, |tree| plans::act::shutdown(tree, part)).await
    }

    /// Forgets a server of a job; its instances are shut down.
    pub async fn remove_server(&self, job: &str, ip: &str) -> Result<Done, OpsError> {
        self.act(job, |tree| plans::act::remove_server(tree, ip)).await
    }

    /// Removes a job with all its nodes. Many nodes take several transactions; what comes back meanwhile is
    /// removed, too.
    pub async fn remove_job(&self, job: &str) -> Result<Done, OpsError> {
        let mut first = None;
        let mut tree = self.tree(job).await?;
        // Each round removes a chunk or meets a change; a job that has more chunks has more rounds.
        let rounds = ATTEMPTS + tree.entries().count() / CHUNK;
        for _ in 0..rounds {
            let Act { ops, done } = plans::act::remove_job(&tree);
            if ops.is_empty() {
                return Ok(first.unwrap_or_default());
            }
            first.get_or_insert(done);
            let chunk: Vec<_> = ops.into_iter().take(CHUNK).collect();
            self.commit(job, chunk).await?;
            tree = self.read(job).await?;
        }
        if tree.exists() {
            Err(OpsError::Busy { job: job.to_owned() })
        } else {
            Ok(first.unwrap_or_default())
        }
    }

    /// Does something on one server for every job that knows it. What became of it is told for each job.
    pub async fn on_server(
        &self,
        ip: &str,
        deed: ServerDeed,
    ) -> Result<BTreeMap<String, Result<Done, OpsError>>, OpsError> {
        let trees = self.trees().await?;
        let jobs: Vec<&str> =
            trees.iter().filter(|it| it.view.servers.contains_key(ip)).map(|it| it.name.as_str()).collect();
        if jobs.is_empty() {
            let known = plans::ask::servers(&trees).into_iter().map(|it| it.ip).collect();
            return Err(OpsError::UnknownServer { ip: ip.to_owned(), known });
        }
        let part = Part::Server(ip.to_owned());
        let mut outcomes = BTreeMap::new();
        for job in jobs {
            let outcome = match deed {
                ServerDeed::Disable => self.disable(job, &part).await,
                ServerDeed::Enable => self.enable(job, &part).await,
                ServerDeed::Shutdown => match self.shutdown(job, &part).await {
                    Err(OpsError::Refused { refusal: Refusal::NoInstances, .. }) => Ok(Done::default()),
                    outcome => outcome,
                },
                ServerDeed::Remove => self.remove_server(job, ip).await,
            };
            outcomes.insert(job.to_owned(), outcome);
        }
        Ok(outcomes)
    }

    /// The job's document, to be edited and given back to [`Ops::update_config`].
    pub async fn config(&self, job: &str) -> Result<Stored, OpsError> {
        plans::config::stored(&self.tree(job).await?).map_err(|refusal| refused(job, refusal))
    }

    /// Replaces the job's document, if it is still what was read. If somebody changed it meanwhile, that is
    /// refused, and the refusal says what changed.
    pub async fn update_config(&self, job: &str, read: &Stored, text: &str) -> Result<Done, OpsError> {
        let now = Timestamp::now();
        self.act(job, |tree| plans::config::update(tree, read, text, now, &self.zone)).await
    }

    /// What an update would do, without doing it.
    pub async fn check_config(&self, job: &str, read: &Stored, text: &str) -> Result<Done, OpsError> {
        let tree = self.tree(job).await?;
        let act = plans::config::update(&tree, read, text, Timestamp::now(), &self.zone);
        act.map(|it| it.done).map_err(|refusal| refused(job, refusal))
    }

    /// Every node of the job as text, with addresses masked: what Java's dump port gives.
    pub async fn dump(&self, job: &str) -> Result<String, OpsError> {
        Ok(plans::dump::dump(&self.tree(job).await?))
    }

    /// Everything that is remarkable about the fleet, or about one job.
    pub async fn check(&self, job: Option<&str>) -> Result<Vec<Finding>, OpsError> {
        let trees = match job {
            Some(job) => vec![self.tree(job).await?],
            None => self.trees().await?,
        };
        let now = Timestamp::now();
        let mut found = plans::clocks::compare(&trees, now, &self.zone);
        found.extend(trees.iter().flat_map(|tree| plans::check::check(tree, now, &self.zone)));
        Ok(found)
    }

    /// Why the job ran, did not run, or runs late, at an instant: from what the registry knows, and from what
    /// instances recorded, if somebody kept that.
    pub async fn explain(
        &self,
        job: &str,
        at: Option<Timestamp>,
        past: &[Past],
    ) -> Result<Explanation, OpsError> {
        let now = Timestamp::now();
        let question = plans::explain::Question { at: at.unwrap_or(now), now, zone: &self.zone, past };
        let tree = self.tree(job).await?;
        plans::explain::explain(&tree, &question).map_err(|refusal| refused(job, refusal))
    }

    /// The jobs of 1.x and 2.x that are here, converted, or why they cannot be. Jobs of 3.x are left out.
    pub async fn imports(&self) -> Result<BTreeMap<String, Result<Import, OpsError>>, OpsError> {
        let convert = |tree: &JobTree| match Import::of(tree) {
            Ok(None) => None,
            Ok(Some(import)) => Some((tree.name.clone(), Ok(import))),
            Err(refusal) => Some((tree.name.clone(), Err(refused(&tree.name, refusal)))),
        };
        Ok(self.trees().await?.iter().filter_map(convert).collect())
    }

    /// Writes a converted job that was read from elsewhere. A job of that name must not be here.
    pub async fn import(&self, import: &Import) -> Result<(), OpsError> {
        if self.read(&import.job).await?.exists() {
            return Err(refused(&import.job, Refusal::AlreadyThere));
        }
        match self.commit(&import.job, import.create()).await? {
            Committed::Yes => Ok(()),
            Committed::Conflict => Err(refused(&import.job, Refusal::AlreadyThere)),
        }
    }

    /// Puts the converted job into the place of the old one, all or nothing.
    pub async fn import_in_place(&self, job: &str) -> Result<Option<Import>, OpsError> {
        for _ in 0..ATTEMPTS {
            let tree = self.tree(job).await?;
            let import = Import::of(&tree).map_err(|refusal| refused(job, refusal))?;
            let Some(import) = import else { return Ok(None) };
            if let Committed::Yes = self.commit(job, import.replace(&tree)).await? {
                return Ok(Some(import));
            }
        }
        Err(OpsError::Busy { job: job.to_owned() })
    }

    /// Follows a job.
    pub async fn watch(&self, job: &str) -> Result<JobWatch, OpsError> {
        self.tree(job).await?; // A job that is not there is rather a slip of the hand than one to come.
        Ok(JobWatch::new(job, self.session.watch(&root(job)), self.zone.clone()))
    }

    async fn act(
        &self,
        job: &str,
        plan: impl Fn(&JobTree) -> Result<Act, Refusal>,
    ) -> Result<Done, OpsError> {
        for _ in 0..ATTEMPTS {
            let tree = self.tree(job).await?;
            let Act { ops, done } = plan(&tree).map_err(|refusal| refused(job, refusal))?;
            if ops.is_empty() {
                return Ok(done);
            }
            if let Committed::Yes = self.commit(job, ops).await? {
                return Ok(done);
            }
        }
        Err(OpsError::Busy { job: job.to_owned() })
    }

    async fn commit(&self, job: &str, ops: Vec<registry::Op>) -> Result<Committed, OpsError> {
        match self.session.commit(&root(job), ops).await {
            Ok(()) => Ok(Committed::Yes),
            Err(CommitError::Conflict { .. }) => Ok(Committed::Conflict),
            Err(error @ CommitError::Denied { .. }) => {
                Err(OpsError::NotPermitted { what: format!("job `{job}`: {error}") })
            }
            Err(CommitError::Unknown(cause)) => Err(OpsError::InDoubt { job: job.to_owned(), cause }),
            Err(
                error @ (CommitError::SessionEnded | CommitError::Invalid(_) | CommitError::TooLarge { .. }),
            ) => Err(OpsError::Commit { job: job.to_owned(), error }),
        }
    }

    /// The job, which must exist.
    async fn tree(&self, job: &str) -> Result<JobTree, OpsError> {
        let is_name = !job.is_empty() && !job.contains('/');
        let tree = if is_name { self.read(job).await? } else { JobTree::default() };
        if tree.exists() { Ok(tree) } else { Err(self.unknown(job).await?) }
    }

    async fn read(&self, job: &str) -> Result<JobTree, OpsError> {
        Ok(JobTree::new(job, self.session.read(&root(job)).await?))
    }

    /// Everything that is a job, or what is left of one.
    async fn trees(&self) -> Result<Vec<JobTree>, OpsError> {
        let names = self.session.children("").await?;
        let reads = stream::iter(names).map(|name| async move { self.read(&name).await });
        let mut trees: Vec<JobTree> = reads.buffer_unordered(READS_AT_ONCE).try_collect().await?;
        trees.retain(JobTree::is_job);
        trees.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(trees)
    }

    async fn unknown(&self, job: &str) -> Result<OpsError, OpsError> {
        let names = self.session.children("").await?;
        let alike = near(job, names.iter().map(String::as_str));
        let hint = match (alike.is_empty(), names.len()) {
            (false, _) => format!("did you mean `{}`?", alike.join("`, `")),
            (true, 0) => "the registry has no jobs".to_owned(),
            (true, count) => format!("none of the {count} job(s) is spelled alike; see `elasticjob jobs`"),
        };
        Ok(OpsError::UnknownJob { job: job.to_owned(), hint })
    }
}

/// What to do on a server, for all jobs.
///
/// ```
/// use elasticjob::ops::{Ops, OpsError, ServerDeed};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), OpsError> {
/// let ops = Ops::connect("embedded://").await?;
/// let error = ops.on_server("10.0.0.1", ServerDeed::Disable).await.unwrap_err();
/// assert!(matches!(error, OpsError::UnknownServer { .. }));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerDeed {
    /// See [`Ops::disable`].
    Disable,
    /// See [`Ops::enable`].
    Enable,
    /// See [`Ops::shutdown`].
    Shutdown,
    /// See [`Ops::remove_server`].
    Remove,
}

enum Committed {
    Yes,
    Conflict,
}

fn root(job: &str) -> String {
    format!("/{job}")
}

fn refused(job: &str, refusal: Refusal) -> OpsError {
    OpsError::Refused { job: job.to_owned(), refusal }
}
