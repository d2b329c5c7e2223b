//! Runs the shards of one job: as many at a time as its pool allows, each with a way to be stopped.

mod attempts;
mod context;
pub(crate) mod dataflow;
mod hooks;
#[cfg(feature = "http")]
pub(crate) mod http;
#[cfg(not(feature = "http"))]
#[path = "no_http.rs"]
mod http;
pub(crate) mod output;
mod props;
pub(crate) mod script;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use elasticjob_core::coord::{HookOrder, Order, OrderItem};
use elasticjob_core::event::{Hook, Outcome};
use elasticjob_core::policy::{DELAY, Policies};
use elasticjob_core::spec::JobSpec;
use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::job::{Job, JobError, Listeners, Shard, Work};
use crate::lead::Start;
use crate::offsets::{Offset, OffsetStore};
use hooks::Hooks;
use http::Http;
pub(crate) use props::Props;
pub use props::TypeError;

/// Something that ended.
pub(crate) enum Ended {
    Item { round: u64, item: u32, end: End },
    Hook { round: u64, hook: Hook, error: Option<String> },
}

/// How an item ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) outcome: Outcome,
    /// The last lines of a script that succeeded.
    pub(crate) output: Option<String>,
}

impl From<Outcome> for End {
    fn from(outcome: Outcome) -> End {
        End { outcome, output: None }
    }
}

/// Whether what was granted may still begin.
pub(crate) type MayBegin = Arc<dyn Fn() -> bool + Send + Sync>;

/// What runs of one job on this worker.
pub(crate) struct Executor {
    job: Arc<str>,
    work: Work,
    http: Arc<Http>,
    cancel_grace: Duration,
    rounds: BTreeMap<u64, Round>,
    hooks: Hooks,
    tasks: JoinSet<Ended>,
}

struct Round {
    left: usize,
    cancel: CancellationToken,
    yielding: CancellationToken,
}

impl Executor {
    pub(crate) fn new(job: Arc<str>, work: Work, listeners: Listeners, cancel_grace: Duration) -> Executor {
        let (http, hooks) = (Arc::default(), Hooks::new(listeners));
        Executor { job, work, http, cancel_grace, rounds: BTreeMap::new(), hooks, tasks: JoinSet::new() }
    }

    /// They begin when they are to start. An item may wait for its turn, too, and the process may stand still
    /// meanwhile: whether it may begin is asked when it does.
    pub(crate) fn start(
        &mut self,
        order: Order,
        spec: &JobSpec,
        may_begin: &MayBegin,
        offsets: &Arc<dyn OffsetStore>,
        start: Option<&Start>,
    ) {
        let [cancel, yielding] = std::array::from_fn(|_| CancellationToken::new());
        let (number, round) = (order.round, Round { left: order.items.len(), cancel, yielding });
        let item_run = ItemRun {
            work: self.work.clone(),
            http: self.http.clone(),
            props: Arc::new(spec.props.clone()),
            // What cannot be read is refused with the configuration, before it comes to a round.
            policies: Arc::new(Policies::read(spec).unwrap_or_default()),
            permits: Arc::new(Semaphore::new(pool_size(spec))),
            may_begin: may_begin.clone(),
            cancel_grace: self.cancel_grace,
        };
        let shards = self.shards(order, &item_run.props, &round, offsets);
        self.rounds.insert(number, round);
        if matches!(self.work, Work::Throughput(_)) {
            return self.run_together(number, item_run, &shards, start);
        }
        for shard in shards {
            let (item, item_run, span) = (shard.item, item_run.clone(), span(&shard));
            let waiting = start.map(Start::wait);
            let run =
                async move { Ended::Item { round: number, item, end: item_run.run(shard, waiting).await } };
            self.tasks.spawn(run.instrument(span));
        }
    }

    /// One run for all of them, which ends for all of them.
    fn run_together(&mut self, round: u64, item_run: ItemRun, shards: &[Shard], start: Option<&Start>) {
        let Some(first) = shards.first() else { return };
        // One offset for all, so that all are closed with the run.
        let of = |it: &Shard| Shard { offset: first.offset.clone(), ..it.clone() };
        let shard = Shard { together: shards.iter().map(of).collect(), ..first.clone() };
        let span = span(&shard);
        let run = item_run.run(shard, start.map(Start::wait)).instrument(span).boxed().shared();
        for shard in shards {
            let (item, run) = (shard.item, run.clone());
            self.tasks.spawn(async move { Ended::Item { round, item, end: run.await } });
        }
    }

    fn shards(
        &self,
        order: Order,
        props: &BTreeMap<String, String>,
        round: &Round,
        offsets: &Arc<dyn OffsetStore>,
    ) -> Vec<Shard> {
        let (task_id, job_parameter): (Arc<str>, Arc<str>) =
            (order.task_id.into(), order.job_parameter.into());
        // A number that is none is said by the job that needs it.
        let fetch_size = dataflow::fetch_size(Props(props)).ok().flatten();
        let (begun, alone): (_, Arc<[Shard]>) = (CancellationToken::new(), Arc::default());
        let shard = |it: OrderItem| Shard {
            job: self.job.clone(),
            task_id: task_id.clone(),
            total: order.total,
            item: it.item,
            parameter: it.parameter,
            job_parameter: job_parameter.clone(),
            nominal: order.nominal,
            source: order.source,
            merged: order.merged,
            token: it.token,
            attempt: 1,
            trigger_parameter: it.trigger_parameter.map(Arc::from),
            fetch_size,
            cancel: round.cancel.clone(),
            yielding: round.yielding.clone(),
            begun: begun.clone(),
            offset: Offset::new(offsets.clone()),
            together: alone.clone(),
        };
        order.items.into_iter().map(shard).collect()
    }

    /// No item of a round is left to run.
    pub(crate) fn is_idle(&self) -> bool {
        self.rounds.is_empty()
    }

    pub(crate) fn call(&mut self, order: HookOrder) {
        self.tasks.spawn(self.hooks.call(self.job.clone(), order, self.cancel_grace));
    }

    pub(crate) fn tell_to_yield(&self, round: u64) {
        if let Some(round) = self.rounds.get(&round) {
            round.yielding.cancel();
        }
    }

    pub(crate) fn cancel(&self, round: u64) {
        self.hooks.cancel(round);
        if let Some(round) = self.rounds.get(&round) {
            round.cancel.cancel();
        }
    }

    /// The next item or hook that ends; never, if none runs. Cancel safe.
    pub(crate) async fn next(&mut self) -> Ended {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(ended)) => {
                    self.note(&ended);
                    return ended;
                }
                // A task catches the panics of its job, and only the drop of all tasks aborts one.
                Some(Err(error)) => tracing::error!(job = &*self.job, "an item was lost: {error}"),
                None => return std::future::pending().await,
            }
        }
    }

    fn note(&mut self, ended: &Ended) {
        match ended {
            Ended::Item { round, item, end } => {
                self.hooks.note(*round, *item, &end.outcome);
                self.count(*round);
            }
            Ended::Hook { round, hook, .. } => self.hooks.ended(*round, *hook),
        }
    }

    fn count(&mut self, number: u64) {
        if let Some(round) = self.rounds.get_mut(&number) {
            round.left -= 1;
            if round.left == 0 {
                self.rounds.remove(&number);
            }
        }
    }
}

/// What user code logs carries these. The level is that of errors, so that it carries them whatever is filtered.
fn span(shard: &Shard) -> tracing::Span {
    let (job, item, run, token) = (&*shard.job, shard.item, &*shard.task_id, shard.token);
    tracing::error_span!("shard", job, item, run, token)
}

/// Whether the properties of a job are what its type needs.
pub(crate) fn check(job: &Job) -> Result<(), TypeError> {
    let props = Props(&job.spec.props);
    let once = job.listeners.hooks().once.is_some();
    if once && !job.spec.monitor_execution {
        return Err(TypeError::NotMonitored);
    }
    if once && let Some(delay) = props.text(DELAY) {
        let remedy =
            "has no rounds that all shards share: remove the listeners that are called once per cluster";
        return Err(TypeError::wrong(DELAY, delay, remedy));
    }
    check_work(&job.work, props)
}

fn check_work(work: &Work, props: Props<'_>) -> Result<(), TypeError> {
    match work {
        Work::Async(_) | Work::Blocking(_) => Ok(()),
        Work::Dataflow(_) | Work::Throughput(_) => dataflow::Settings::read(props).map(drop),
        Work::Script => script::check(props),
        Work::Http => http::check(props),
        // The worker that finds it asks it.
        Work::Named(_) | Work::Typed(_) => Ok(()),
    }
}

fn pool_size(spec: &JobSpec) -> usize {
    // Asking for the number of processors reads files: once is enough.
    static CPUS: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    let cpus = || 2 * *CPUS;
    match spec.job_executor_thread_pool_size_provider_type.as_deref().map(str::trim) {
        Some(text) if text.eq_ignore_ascii_case("SINGLE_THREAD") => 1,
        Some(text) => text.parse().ok().filter(|size| *size > 0).unwrap_or_else(cpus),
        None => cpus(),
    }
}

/// What one item needs to run.
#[derive(Clone)]
struct ItemRun {
    work: Work,
    http: Arc<Http>,
    props: Arc<BTreeMap<String, String>>,
    policies: Arc<Policies>,
    permits: Arc<Semaphore>,
    may_begin: MayBegin,
    cancel_grace: Duration,
}

impl ItemRun {
    async fn attempt(&self, shard: Shard) -> End {
        let cancel = shard.cancel.clone();
        let _permit = tokio::select! {
            permit = self.permits.acquire() => permit,
            () = cancel.cancelled() => return Outcome::Cancelled.into(),
        };
        if cancel.is_cancelled() || !(self.may_begin)() {
            return Outcome::Cancelled.into();
        }
        shard.begun.cancel();
        let (props, grace) = (Props(&self.props), self.cancel_grace);
        let outcome = match self.work.clone() {
            Work::Async(job) => stoppable(async { job.run(shard).await }, &cancel, grace).await,
            Work::Blocking(job) => {
                let span = tracing::Span::current();
                let run = tokio::task::spawn_blocking(move || span.in_scope(|| job(shard)));
                match run.await.map_err(JoinError::try_into_panic) {
                    Ok(result) => outcome_of(result, &cancel),
                    Err(Ok(panic)) => outcome_of(Err(Panicked::from(panic).into()), &cancel),
                    Err(Err(_)) => Outcome::Cancelled, // The runtime ends.
                }
            }
            Work::Dataflow(job) | Work::Throughput(job) => match dataflow::Settings::read(props) {
                Ok(settings) => stoppable(async { job.run(shard, settings).await }, &cancel, grace).await,
                Err(error) => Outcome::Failed(error.to_string()),
            },
            // Boxed, so that the items of other jobs do not take up the room that these need.
            Work::Script => {
                let (result, output) = match Box::pin(script::run(&shard, props, grace)).await {
                    Ok(output) => (Ok(()), output),
                    Err(error) => (Err(error), None),
                };
                return End { outcome: outcome_of(result, &cancel), output };
            }
            Work::Http => outcome_of(Box::pin(self.http.run(&shard, props)).await, &cancel),
            Work::Typed(job) => stoppable(job.run(shard, self.props.clone()), &cancel, grace).await,
            Work::Named(name) => Outcome::Failed(format!("there is no job type `{name}` here")),
        };
        outcome.into()
    }
}

/// Code that is told to stop, and dropped where it waits if it does not.
async fn stoppable(
    work: impl Future<Output = Result<(), JobError>>,
    cancel: &CancellationToken,
    grace: Duration,
) -> Outcome {
    tokio::select! {
        result = caught(work) => outcome_of(result, cancel),
        () = cancelled_for(cancel, grace) => Outcome::Cancelled,
    }
}

async fn cancelled_for(cancel: &CancellationToken, grace: Duration) {
    cancel.cancelled().await;
    tokio::time::sleep(grace).await;
}

fn outcome_of(result: Result<(), JobError>, cancel: &CancellationToken) -> Outcome {
    match result {
        Ok(()) => Outcome::Succeeded,
        // A panic is a bug, and said even if nobody waits for the result any more.
        Err(error) if cancel.is_cancelled() && !error.is::<Panicked>() => Outcome::Cancelled,
        Err(error) => Outcome::Failed(with_causes(error.as_ref())),
    }
}

/// Code of the user's that panicked.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Panicked(String);

impl From<Box<dyn Any + Send>> for Panicked {
    fn from(panic: Box<dyn Any + Send>) -> Panicked {
        Panicked(panic_text(panic.as_ref()))
    }
}

/// The result of code that may panic.
pub(crate) async fn caught<T>(work: impl Future<Output = Result<T, JobError>>) -> Result<T, JobError> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(result) => result,
        Err(panic) => Err(Panicked::from(panic).into()),
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("(no text)"))
}

pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use elasticjob_core::event::Source;

    use super::*;

    #[tokio::test]
    async fn what_waits_for_its_turn_does_not_begin_once_the_session_cannot_be_trusted() {
        let (trusted, begun) = (Arc::new(AtomicBool::new(true)), Arc::new(AtomicU32::new(0)));
        let (ends_trust, counts) = (trusted.clone(), begun.clone());
        let job = Job::simple("j", move |_: Shard| {
            // As if the process had stood still in here until the session was over.
            ends_trust.store(false, Ordering::SeqCst);
            counts.fetch_add(1, Ordering::SeqCst);
            async { Ok(()) }
        });
        let job = job.pool(crate::Pool::Single);
        let mut executor = Executor::new("j".into(), job.work, Listeners::default(), Duration::ZERO);
        let may_begin: MayBegin = Arc::new(move || trusted.load(Ordering::SeqCst));
        executor.start(order(3), &job.spec, &may_begin, &crate::testing::offsets(), None);
        let mut outcomes = Vec::new();
        for _ in 0..3 {
            let Ended::Item { end, .. } = executor.next().await else { panic!("no hooks here") };
            outcomes.push(end.outcome);
        }
        assert_eq!(begun.load(Ordering::SeqCst), 1);
        assert_eq!(outcomes.iter().filter(|it| **it == Outcome::Cancelled).count(), 2, "{outcomes:?}");
    }

    #[tokio::test]
    async fn what_waits_for_its_fire_does_not_begin_once_it_is_told_to_stop() {
        let job = Job::simple("j", async |_: Shard| panic!("it must not begin"));
        let mut executor = Executor::new("j".into(), job.work, Listeners::default(), Duration::ZERO);
        let (wall, mono) = (jiff::Timestamp::now(), Duration::ZERO);
        let fire = wall + jiff::SignedDuration::from_millis(200);
        let start = crate::lead::Starts::default().of(fire, elasticjob_core::coord::Now { wall, mono });
        let may_begin: MayBegin = Arc::new(|| true);
        executor.start(order(1), &job.spec, &may_begin, &crate::testing::offsets(), start.as_ref());
        executor.cancel(1);
        let Ended::Item { end, .. } = executor.next().await else { panic!("no hooks here") };
        assert_eq!(end.outcome, Outcome::Cancelled);
    }

    fn order(items: u32) -> Order {
        let item = |item| OrderItem { item, parameter: None, token: 1, trigger_parameter: None };
        Order {
            round: 1,
            task_id: "t".into(),
            source: Source::Schedule,
            nominal: None,
            merged: 0,
            total: items,
            job_parameter: String::new(),
            items: (0..items).map(item).collect(),
        }
    }
}
