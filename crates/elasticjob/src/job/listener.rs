//! What users write to be told of rounds: before and after, on every worker or once for all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elasticjob_core::coord::{Deadlines, Hooks, Order};
use elasticjob_core::event::{Hook, Outcome, Source};
use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::{Job, JobError};

/// How long one call of a listener may take, if it does not say.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How long the start of a round is held up for a call that is made once for all, if the listener does not say.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// How long the next round is held up, if the listener does not say.
const END_DEADLINE: Duration = Duration::from_secs(60 * 60);

/// A round of a job, as listeners are told of it.
///
/// ```
/// use elasticjob::{Outcome, Round};
///
/// fn report(round: &Round) -> String {
///     let failed = round.outcomes.values().filter(|it| matches!(it, Outcome::Failed(_))).count();
///     format!("{}: {} of {} shards here, {failed} failed", round.job, round.items.len(), round.total)
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Round {
    /// The job's name.
    pub job: Arc<str>,
    /// Unique for each round of a worker.
    pub task_id: Arc<str>,
    /// How many shards the job has.
    pub total: u32,
    /// Those that this worker runs in the round.
    pub items: Vec<u32>,
    /// The job's parameter.
    pub job_parameter: Arc<str>,
    /// The time for which it was scheduled; `None` if it was triggered by hand or taken over.
    pub nominal: Option<Timestamp>,
    /// Why it runs.
    pub source: Source,
    /// How many earlier fires it makes up for.
    pub merged: u64,
    /// How this worker's shards ended. Empty before they have.
    pub outcomes: BTreeMap<u32, Outcome>,
}

impl Round {
    pub(crate) fn new(job: Arc<str>, order: Order, outcomes: BTreeMap<u32, Outcome>) -> Round {
        Round {
            job,
            task_id: order.task_id.into(),
            total: order.total,
            items: order.items.iter().map(|it| it.item).collect(),
            job_parameter: order.job_parameter.into(),
            nominal: order.nominal,
            source: order.source,
            merged: order.merged,
            outcomes,
        }
    }
}

/// Is called around every round of a job, on every worker that runs shards of it.
///
/// The shards start when `before` has returned, and the worker's next round of the job begins when `after` has. An
/// error is recorded like that of a shard, and stops nothing.
///
/// ```
/// use elasticjob::{Job, JobError, Listener, Round, Shard};
///
/// struct Audit;
///
/// impl Listener for Audit {
///     async fn before(&self, round: &Round) -> Result<(), JobError> {
///         println!("{} begins with {:?}", round.task_id, round.items);
///         Ok(())
///     }
///
///     async fn after(&self, round: &Round) -> Result<(), JobError> {
///         println!("{} has ended: {:?}", round.task_id, round.outcomes);
///         Ok(())
///     }
/// }
///
/// let job = Job::simple("settle", async |_: Shard| Ok(())).cron("0 0 2 * * ?").listener(Audit);
/// # drop(job);
/// ```
pub trait Listener: Send + Sync + 'static {
    /// Called before this worker's shards start.
    fn before(&self, round: &Round) -> impl Future<Output = Result<(), JobError>> + Send {
        let _ = round;
        async { Ok(()) }
    }

    /// Called after they have ended.
    fn after(&self, round: &Round) -> impl Future<Output = Result<(), JobError>> + Send {
        let _ = round;
        async { Ok(()) }
    }

    /// Listeners are called one after another, the smallest first; those that say nothing come last, in the order in
    /// which they were added.
    fn order(&self) -> i32 {
        i32::MAX
    }

    /// How long a call may take before it is given up; one minute if it does not say.
    fn time_limit(&self) -> Duration {
        TIME_LIMIT
    }
}

/// Is called once for a round, by one worker of all: before the first shard starts anywhere, and after the last has
/// ended.
///
/// All shards of a round wait for `before_first`, and the next round waits for `after_last`. Shards that are disabled
/// are not waited for, nor what nobody can run; what a dead worker was running is, if another finishes it. A worker that
/// dies during the call leaves it to the next: then there are two. All workers of the job must have such a listener, and
/// Java peers one of theirs; it needs [`Job::monitor_execution`].
///
/// ```
/// use std::time::Duration;
/// use elasticjob::{Job, JobError, OnceListener, Round, Shard};
///
/// struct Report;
///
/// impl OnceListener for Report {
///     async fn before_first(&self, round: &Round) -> Result<(), JobError> {
///         println!("make room for the results of {:?}", round.nominal);
///         Ok(())
///     }
///
///     async fn after_last(&self, round: &Round) -> Result<(), JobError> {
///         println!("all {} shards are done: send the report", round.total);
///         Ok(())
///     }
///
///     fn end_deadline(&self) -> Duration {
///         Duration::from_secs(600)
///     }
/// }
///
/// let job = Job::simple("settle", async |_: Shard| Ok(())).cron("0 0 2 * * ?").shards(8).once_listener(Report);
/// # drop(job);
/// ```
pub trait OnceListener: Send + Sync + 'static {
    /// Called before the first shard of the round starts.
    fn before_first(&self, round: &Round) -> impl Future<Output = Result<(), JobError>> + Send {
        let _ = round;
        async { Ok(()) }
    }

    /// Called after the last shard of the round has ended. [`Round::outcomes`] are those of the worker that calls.
    fn after_last(&self, round: &Round) -> impl Future<Output = Result<(), JobError>> + Send {
        let _ = round;
        async { Ok(()) }
    }

    /// Listeners are called one after another, the smallest first.
    fn order(&self) -> i32 {
        i32::MAX
    }

    /// How long a call may take before it is given up; one minute if it does not say.
    fn time_limit(&self) -> Duration {
        TIME_LIMIT
    }

    /// How long shards that could start wait for `before_first`, whoever calls it. Then they start without, and that is
    /// recorded. One minute if it does not say.
    fn start_deadline(&self) -> Duration {
        START_DEADLINE
    }

    /// How long the next round waits for `after_last`, whoever calls it. Then it begins without, and that is recorded.
    /// One hour if it does not say.
    fn end_deadline(&self) -> Duration {
        END_DEADLINE
    }
}

type Called<'a> = BoxFuture<'a, Result<(), JobError>>;

/// [`Listener`] or [`OnceListener`], in a form that can be stored.
pub(crate) trait Call: Send + Sync {
    fn call<'a>(&'a self, hook: Hook, round: &'a Round) -> Called<'a>;
    fn order(&self) -> i32;
    fn time_limit(&self) -> Duration;
    /// `None`: it is called on every worker.
    fn deadlines(&self) -> Option<Deadlines>;
}

pub(crate) struct Each<L>(pub(crate) L);

impl<L: Listener> Call for Each<L> {
    fn call<'a>(&'a self, hook: Hook, round: &'a Round) -> Called<'a> {
        match hook {
            Hook::Before => Box::pin(async move { self.0.before(round).await }),
            Hook::After => Box::pin(async move { self.0.after(round).await }),
            Hook::OnceBefore | Hook::OnceAfter => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn order(&self) -> i32 {
        self.0.order()
    }

    fn time_limit(&self) -> Duration {
        self.0.time_limit()
    }

    fn deadlines(&self) -> Option<Deadlines> {
        None
    }
}

pub(crate) struct Once<L>(pub(crate) L);

impl<L: OnceListener> Call for Once<L> {
    fn call<'a>(&'a self, hook: Hook, round: &'a Round) -> Called<'a> {
        match hook {
            Hook::OnceBefore => Box::pin(async move { self.0.before_first(round).await }),
            Hook::OnceAfter => Box::pin(async move { self.0.after_last(round).await }),
            Hook::Before | Hook::After => Box::pin(std::future::ready(Ok(()))),
        }
    }

    fn order(&self) -> i32 {
        self.0.order()
    }

    fn time_limit(&self) -> Duration {
        self.0.time_limit()
    }

    fn deadlines(&self) -> Option<Deadlines> {
        Some(Deadlines { started: self.0.start_deadline(), completed: self.0.end_deadline() })
    }
}

/// The listeners of a job, in the order in which they are called.
#[derive(Clone, Default)]
pub(crate) struct Listeners(Vec<Arc<dyn Call>>);

impl Listeners {
    pub(crate) fn add(&mut self, listener: Arc<dyn Call>) {
        self.0.push(listener);
        self.0.sort_by_key(|it| it.order());
    }

    /// What the coordinator is to ask for.
    pub(crate) fn hooks(&self) -> Hooks {
        let longer = |a: Deadlines, b: Deadlines| Deadlines {
            started: a.started.max(b.started),
            completed: a.completed.max(b.completed),
        };
        Hooks {
            each: self.0.iter().any(|it| it.deadlines().is_none()),
            once: self.0.iter().filter_map(|it| it.deadlines()).reduce(longer),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Call>> {
        self.0.iter()
    }
}

impl Job {
    /// Listeners that the worker knows by name: see [`Worker::listener`](crate::Worker::listener). They are kept in the
    /// configuration, as `jobListenerTypes`.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job, audit: impl elasticjob::Listener) -> elasticjob::Worker {
    /// elasticjob::Worker::new("embedded://").listener("audit", audit).job(job.listeners(["audit"]))
    /// # }
    /// ```
    pub fn listeners<T: Into<String>>(mut self, names: impl IntoIterator<Item = T>) -> Job {
        self.spec.job_listener_types = names.into_iter().map(Into::into).collect();
        self
    }

    /// Is called around every round, on every worker that runs shards of it. There may be several.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job, audit: impl elasticjob::Listener) -> elasticjob::Job {
    /// job.listener(audit)
    /// # }
    /// ```
    pub fn listener(mut self, listener: impl Listener) -> Job {
        self.listeners.add(Arc::new(Each(listener)));
        self
    }

    /// Is called once for a round, by one worker of all. There may be several: the longest of their deadlines counts
    /// for all of them.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job, report: impl elasticjob::OnceListener) -> elasticjob::Job {
    /// job.once_listener(report)
    /// # }
    /// ```
    pub fn once_listener(mut self, listener: impl OnceListener) -> Job {
        self.listeners.add(Arc::new(Once(listener)));
        self
    }
}
