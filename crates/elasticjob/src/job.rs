//! What users write: jobs, and the shard that a job is given to work on.

mod dataflow;
pub(crate) mod http;
pub(crate) mod listener;
mod policies;
pub(crate) mod script;
mod throughput;
pub(crate) mod typed;

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use elasticjob_core::event::Source;
use elasticjob_core::spec::JobSpec;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::executor::dataflow::Flow;
use crate::offsets::{Offset, OffsetError};
pub use dataflow::{DataflowJob, EachJob, PartlyFailed, Processed};
pub(crate) use listener::Listeners;
pub use listener::{Listener, OnceListener, Round};
pub use policies::CatchUp;
pub use throughput::ThroughputJob;
pub use typed::JobType;

/// Why a shard failed. Any error converts into it, and so does a text.
///
/// ```
/// use elasticjob::JobError;
///
/// fn rows(text: &str) -> Result<u32, JobError> {
///     match text.trim().parse()? {
///         0 => Err("no rows".into()),
///         rows => Ok(rows),
///     }
/// }
/// assert_eq!(rows("0").unwrap_err().to_string(), "no rows");
/// assert_eq!(rows("x").unwrap_err().to_string(), "invalid digit found in string");
/// ```
pub type JobError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// One part of a job, to be worked on now.
///
/// ```
/// use elasticjob::{Job, JobError, Shard};
///
/// async fn settle_orders(shard: Shard) -> Result<(), JobError> {
///     for page in 0..10 {
///         if shard.is_cancelled() {
///             return Err("stopped half-way".into());
///         }
///         // `UPDATE … WHERE id % total = item AND fence <= token`
///         println!("page {page}: orders with id % {} = {}, fence {}", shard.total, shard.item, shard.token);
///     }
///     Ok(())
/// }
/// let job = Job::simple("settle-orders", settle_orders).cron("0 0 2 * * ?").shards(4);
/// assert_eq!(job.name(), "settle-orders");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Shard {
    /// The job's name.
    pub job: Arc<str>,
    /// Unique for each round: the same for all shards that this worker runs in it.
    pub task_id: Arc<str>,
    /// How many shards the job has.
    pub total: u32,
    /// Which of them this is, counted from 0.
    pub item: u32,
    /// This shard's parameter.
    pub parameter: Option<String>,
    /// The job's parameter.
    pub job_parameter: Arc<str>,
    /// The time for which it was scheduled; `None` if it was triggered by hand or taken over.
    pub nominal: Option<Timestamp>,
    /// Why it runs.
    pub source: Source,
    /// How many earlier fires this run makes up for.
    pub merged: u64,
    /// The fencing token: greater than that of any earlier run of this shard, anywhere. Put it into your
    /// writes, and let your store refuse those that carry a smaller one than it has seen: then nothing that an
    /// isolated worker still does can do harm.
    pub token: u64,
    /// Which attempt this is, counted from 1. See [`Job::retries`].
    pub attempt: u32,
    /// What came along with the trigger that it runs for: see [`Ops::trigger_with`](crate::Ops::trigger_with).
    /// Whoever takes the run over from a dead instance gets it, too.
    pub trigger_parameter: Option<Arc<str>>,
    /// How many elements a dataflow job should fetch at a time. See [`Job::fetch_size`].
    pub fetch_size: Option<u32>,
    pub(crate) cancel: CancellationToken,
    pub(crate) yielding: CancellationToken,
    /// Code of the user's has begun: a token, because that is said once and waited for.
    pub(crate) begun: CancellationToken,
    pub(crate) offset: Offset,
    /// The shards that it stands for, if it does.
    pub(crate) together: Arc<[Shard]>,
}

impl Shard {
    /// Whether to stop now: the session with the registry can no longer be trusted, the time that a leaving
    /// worker has is over, or that of [the attempt](Job::time_limit).
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until it is time to stop.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// How far the job has come with this shard: what the last run that wrote it left, on whatever worker. `None` if there
    /// is nothing, or only an empty text.
    ///
    /// ```
    /// use elasticjob::{JobError, Shard};
    ///
    /// async fn copy_new_rows(shard: Shard) -> Result<(), JobError> {
    ///     let mut last: u64 = shard.offset().await?.map_or(Ok(0), |text| text.parse())?;
    ///     for row in last + 1..=last + 100 {
    ///         println!("copy row {row}");
    ///         last = row;
    ///     }
    ///     shard.set_offset(last.to_string()).await?;
    ///     Ok(())
    /// }
    /// ```
    pub async fn offset(&self) -> Result<Option<String>, OffsetError> {
        Ok(self.offset.read(self.item).await?.filter(|text| !text.is_empty()))
    }

    /// Writes how far the job has come with this shard, for the next run to read: it survives restarts, and moves with the
    /// shard. A run that is over, or whose worker lost its session, is refused with [`OffsetError::Fenced`], however late it
    /// wakes up. It costs a read and a transaction. Code that blocks writes
    /// `tokio::runtime::Handle::current().block_on(shard.set_offset(…))`.
    pub async fn set_offset(&self, text: impl AsRef<str>) -> Result<(), OffsetError> {
        self.offset.write(self.item, text.as_ref()).await
    }

    /// Whether to stop when convenient: the shards are to be handed out anew, or the worker leaves.
    pub fn should_yield(&self) -> bool {
        self.yielding.is_cancelled() || self.is_cancelled()
    }
}

/// A job whose shards are worked on by one call each.
///
/// ```
/// use elasticjob::{Job, JobError, Shard, SimpleJob};
///
/// struct CleanUp {
///     keep_days: u32,
/// }
///
/// impl SimpleJob for CleanUp {
///     async fn run(&self, shard: Shard) -> Result<(), JobError> {
///         println!("shard {}: drop what is older than {} days", shard.item, self.keep_days);
///         Ok(())
///     }
/// }
/// let job = Job::simple("clean-up", CleanUp { keep_days: 30 }).cron("0 0 3 * * ?").shards(4);
/// # assert_eq!(job.name(), "clean-up");
/// ```
///
/// Functions and closures from a [`Shard`] to a future are simple jobs too.
pub trait SimpleJob: Send + Sync + 'static {
    /// Works on one shard. Dropped at its next `.await` if it does not stop soon after it was cancelled.
    fn run(&self, shard: Shard) -> impl Future<Output = Result<(), JobError>> + Send;
}

impl<F, Fut> SimpleJob for F
where
    F: Fn(Shard) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), JobError>> + Send,
{
    fn run(&self, shard: Shard) -> impl Future<Output = Result<(), JobError>> + Send {
        self(shard)
    }
}

type BoxFuture<'a> = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send + 'a>>;

/// [`SimpleJob`], in a form that can be stored.
pub(crate) trait Runnable: Send + Sync {
    fn run(&self, shard: Shard) -> BoxFuture<'_>;
}

impl<J: SimpleJob> Runnable for J {
    fn run(&self, shard: Shard) -> BoxFuture<'_> {
        Box::pin(SimpleJob::run(self, shard))
    }
}

pub(crate) type BlockingWork = dyn Fn(Shard) -> Result<(), JobError> + Send + Sync;

/// What a shard is worked on by.
#[derive(Clone)]
pub(crate) enum Work {
    Async(Arc<dyn Runnable>),
    Blocking(Arc<BlockingWork>),
    Dataflow(Arc<dyn Flow>),
    /// One run for all shards of a round.
    Throughput(Arc<dyn Flow>),
    Script,
    Http,
    /// Of a type that the program adds; the worker finds it by its name.
    Named(String),
    Typed(Arc<dyn typed::Runner>),
}

/// How many shards of a job one worker works on at a time.
///
/// ```
/// use elasticjob::{Job, Pool, Shard};
///
/// let one_after_another = Job::simple("j", async |_: Shard| Ok(())).pool(Pool::Single);
/// # drop(one_after_another);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Twice the number of processors.
    Cpu,
    /// One.
    Single,
    /// This many. Java peers that read the same configuration fall back to [`Pool::Cpu`].
    Size(usize),
}

/// A job: a name, what to do, and when.
///
/// Everything but the name and the work has a safe default; what is wrong is said by
/// [`Worker::start`](crate::Worker::start), before anything is changed.
///
/// ```
/// use elasticjob::{Job, Shard};
///
/// let job = Job::simple("greet", async |shard: Shard| {
///     println!("hello, {:?}", shard.parameter);
///     Ok(())
/// })
/// .cron("0/5 * * * * ?")
/// .time_zone("Europe/Vienna")
/// .shards(3)
/// .shard_parameters(["Beijing", "Shanghai", "Guangzhou"])
/// .failover(true);
/// # drop(job);
/// ```
#[derive(Clone)]
#[must_use = "a job runs when a worker is given it"]
pub struct Job {
    pub(crate) spec: JobSpec,
    pub(crate) class: String,
    pub(crate) work: Work,
    pub(crate) listeners: Listeners,
}

impl Job {
    /// A job of async code. See [`SimpleJob`].
    pub fn simple(name: impl Into<String>, job: impl SimpleJob) -> Job {
        Job::new(name, Work::Async(Arc::new(job)))
    }

    /// A job of code that blocks its thread: it gets one of its own. It cannot be stopped from outside: look
    /// at [`Shard::is_cancelled`] now and then.
    ///
    /// ```
    /// use elasticjob::{Job, Shard};
    ///
    /// let job = Job::blocking("crunch", |shard: Shard| {
    ///     std::thread::sleep(std::time::Duration::from_millis(u64::from(shard.item)));
    ///     Ok(())
    /// });
    /// # drop(job);
    /// ```
    pub fn blocking(
        name: impl Into<String>,
        work: impl Fn(Shard) -> Result<(), JobError> + Send + Sync + 'static,
    ) -> Job {
        Job::new(name, Work::Blocking(Arc::new(work)))
    }

    fn new(name: impl Into<String>, work: Work) -> Job {
        Job::from_spec(JobSpec::new(name, 1), "", work)
    }

    pub(crate) fn from_spec(spec: JobSpec, class: &str, work: Work) -> Job {
        Job { spec, class: class.to_owned(), work, listeners: Listeners::default() }
    }

    /// The job's name.
    pub fn name(&self) -> &str {
        &self.spec.job_name
    }

    /// When it runs, in Quartz's spelling: second, minute, hour, day of month, month, day of week, year.
    pub fn cron(mut self, expression: impl Into<String>) -> Job {
        self.spec.cron = Some(expression.into());
        self
    }

    /// It runs only when somebody asks for it. This is also what a job without [`Job::cron`] does.
    pub fn one_off(mut self) -> Job {
        self.spec.cron = None;
        self
    }

    /// Where its schedule lives: an IANA name, or `GMT+8:00`. Java peers can read the latter only. The
    /// default is the zone of the host.
    pub fn time_zone(mut self, zone: impl Into<String>) -> Job {
        self.spec.time_zone = Some(zone.into());
        self
    }

    /// How many shards it has. The default is 1.
    pub fn shards(mut self, total: u32) -> Job {
        self.spec.sharding_total_count = total;
        self
    }

    /// A parameter for each shard, from shard 0 on. A parameter must not contain `,` or `=`.
    pub fn shard_parameters<T: fmt::Display>(mut self, parameters: impl IntoIterator<Item = T>) -> Job {
        let numbered: BTreeMap<usize, T> = parameters.into_iter().enumerate().collect();
        let pairs: Vec<String> = numbered.iter().map(|(item, text)| format!("{item}={text}")).collect();
        self.spec.sharding_item_parameters = pairs.join(",");
        self
    }

    /// A parameter for all shards.
    pub fn parameter(mut self, parameter: impl Into<String>) -> Job {
        self.spec.job_parameter = parameter.into();
        self
    }

    /// When a worker dies, the shards that it was running are run again by others at once. Off by default.
    pub fn failover(mut self, on: bool) -> Job {
        self.spec.failover = on;
        self
    }

    /// Fires that are missed, because a run takes longer than the time to the next, are made up for once, when
    /// it ends. On by default.
    pub fn misfire(mut self, on: bool) -> Job {
        self.spec.misfire = on;
        self
    }

    /// The registry keeps who runs what, which is what guarantees that no shard runs twice at a time. On by
    /// default. Without it a round costs no request, and there is neither that guarantee nor failover.
    pub fn monitor_execution(mut self, on: bool) -> Job {
        self.spec.monitor_execution = on;
        self
    }

    /// A round is skipped if the clock differs more than this from the registry's. Off by default.
    pub fn max_time_diff(mut self, limit: Duration) -> Job {
        self.spec.max_time_diff_seconds = i32::try_from(limit.as_secs()).unwrap_or(i32::MAX);
        self
    }

    /// Every so many minutes what this worker knows is compared with the registry. 10 by default, 0 is never.
    pub fn reconcile_every(mut self, minutes: u16) -> Job {
        self.spec.reconcile_interval_minutes = i32::from(minutes);
        self
    }

    /// Who gets which shard: `AVG_ALLOCATION` (the default), `ODEVITY`, `ROUND_ROBIN`,
    /// `SINGLE_SHARDING_BALANCE`, or the name of [your own](crate::Worker::strategy).
    pub fn strategy(mut self, name: impl Into<String>) -> Job {
        self.spec.job_sharding_strategy_type = Some(name.into());
        self
    }

    /// Who is told when a shard fails: `LOG` (the default), `EMAIL`, `DINGTALK`, `WECHAT`, `SLACK`, `WEBHOOK`,
    /// `THROW`, `IGNORE`, or the names of [your own](crate::Worker::error_handler). See `docs/error-handlers.md` for
    /// their properties.
    ///
    /// ```
    /// use elasticjob::{Job, Shard};
    ///
    /// let job = Job::simple("settle", async |_: Shard| Ok(()))
    ///     .error_handlers(["LOG", "SLACK"])
    ///     .prop("elasticjob.slack.webhook", "https://hooks.slack.com/services/${SLACK_HOOK}");
    /// # drop(job);
    /// ```
    pub fn error_handlers<T: AsRef<str>>(mut self, names: impl IntoIterator<Item = T>) -> Job {
        let names: Vec<T> = names.into_iter().collect();
        crate::handler::choose(&mut self.spec, &names);
        self
    }

    /// How many shards one worker works on at a time.
    pub fn pool(mut self, pool: Pool) -> Job {
        self.spec.job_executor_thread_pool_size_provider_type = match pool {
            Pool::Cpu => None,
            Pool::Single => Some("SINGLE_THREAD".to_owned()),
            Pool::Size(size) => Some(size.to_string()),
        };
        self
    }

    /// What it is for.
    pub fn description(mut self, text: impl Into<String>) -> Job {
        self.spec.description = text.into();
        self
    }

    /// It waits, at its first start, until an operator enables it.
    pub fn disabled(mut self, on: bool) -> Job {
        self.spec.disabled = on;
        self
    }

    /// This configuration replaces the registry's whenever a worker starts. Off by default: then what an
    /// operator changed stays.
    pub fn overwrite(mut self, on: bool) -> Job {
        self.spec.overwrite = on;
        self
    }

    /// A label, for operators.
    pub fn label(mut self, label: impl Into<String>) -> Job {
        self.spec.label = Some(label.into());
        self
    }

    /// Shards stay where they are when workers come and go; only those of a dead worker move, to an idle one.
    pub fn static_sharding(mut self, on: bool) -> Job {
        self.spec.static_sharding = on;
        self
    }

    /// A property, for job types and handlers.
    pub fn prop(mut self, key: impl Into<String>, value: impl Into<String>) -> Job {
        self.spec.props.insert(key.into(), value.into());
        self
    }

    /// What tells this job from another of the same name. In a fleet with Java peers, their class name. Empty
    /// by default, which accepts whatever is there.
    pub fn class_name(mut self, class: impl Into<String>) -> Job {
        self.class = class.into();
        self
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("spec", &self.spec).field("class", &self.class).finish_non_exhaustive()
    }
}

/// The class that Java gives to script jobs.
pub(crate) const SCRIPT_CLASS: &str = "SCRIPT";
