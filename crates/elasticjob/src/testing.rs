//! For tests of your own jobs: a shard to hand to your code, a job run without a registry, and a registry and
//! a clock that belong to a test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use elasticjob_core::coord::{HookOrder, Order, OrderItem};
use elasticjob_core::event::{Hook, Outcome, Source};
use elasticjob_core::plan::Plan;
use elasticjob_core::strategy::{Strategies, Strategy};
use elasticjob_cron::Zone;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::executor::{self, Ended, Executor, MayBegin};
use crate::extensions::Extensions;
use crate::handler::{self, Failure};
use crate::job::{Job, Shard};
use crate::offsets::{Offset, OffsetError, OffsetStore};
use crate::worker::Worker;

/// How long a script that takes too long has to end, as on a worker.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// A shard as a job would be given it. Its offset is in memory, and empty at first.
///
/// ```
/// use elasticjob::testing;
///
/// let shard = testing::shard("clean-up", 2, 4);
/// assert_eq!((shard.item, shard.total), (2, 4));
/// assert!(!shard.is_cancelled());
/// ```
pub fn shard(job: &str, item: u32, total: u32) -> Shard {
    Shard {
        job: job.into(),
        task_id: format!("{job}@-@{item}@-@READY@-@127.0.0.1@-@1.test.1-1").into(),
        total,
        item,
        parameter: None,
        job_parameter: "".into(),
        nominal: None,
        source: Source::Trigger,
        merged: 0,
        token: 1,
        attempt: 1,
        trigger_parameter: None,
        fetch_size: None,
        cancel: CancellationToken::new(),
        yielding: CancellationToken::new(),
        begun: CancellationToken::new(),
        offset: Offset::new(offsets()),
        together: Arc::default(),
    }
}

/// Offsets that a test has for itself.
#[derive(Default)]
struct Offsets(Mutex<BTreeMap<u32, String>>);

#[async_trait]
impl OffsetStore for Offsets {
    async fn read(&self, item: u32) -> Result<Option<String>, OffsetError> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&item).cloned())
    }

    async fn write(&self, item: u32, text: &str) -> Result<(), OffsetError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(item, text.to_owned());
        Ok(())
    }
}

pub(crate) fn offsets() -> Arc<dyn OffsetStore> {
    Arc::new(Offsets::default())
}

/// The same shard, but told to stop: to see that your code does.
///
/// ```
/// use elasticjob::testing;
///
/// assert!(testing::cancelled(testing::shard("clean-up", 0, 1)).is_cancelled());
/// ```
pub fn cancelled(shard: Shard) -> Shard {
    shard.cancel.cancel();
    shard
}

/// Runs all shards of a job once, here and now, as one round on one worker would: parameters, pool, listeners and
/// panics included. There is no registry. What goes wrong in a listener is logged.
///
/// ```
/// use elasticjob::{Job, Outcome, Shard, testing};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let job = Job::simple("odd", async |shard: Shard| match shard.item % 2 {
///     0 => Ok(()),
///     _ => Err("odd".into()),
/// })
/// .shards(2);
/// let outcomes = testing::run_once(&job).await?;
/// assert_eq!(outcomes[&0], Outcome::Succeeded);
/// assert_eq!(outcomes[&1], Outcome::Failed("odd".into()));
/// # Ok(()) }
/// ```
pub async fn run_once(job: &Job) -> Result<BTreeMap<u32, Outcome>, Error> {
    executor::check(job).map_err(|error| Error::Type { job: job.name().to_owned(), error })?;
    let plan = Plan::compile(job.spec.clone(), &Strategies::default(), &Zone::system())
        .map_err(|error| Error::Spec { job: job.name().to_owned(), error })?;
    let total = plan.spec.sharding_total_count;
    let item = |item| {
        let parameter = plan.parameters.get(&item).cloned();
        OrderItem { item, parameter, trigger_parameter: None, token: 1 }
    };
    let order = Order {
        round: 1,
        task_id: shard(job.name(), 0, total).task_id.to_string(),
        source: Source::Trigger,
        nominal: None,
        merged: 0,
        total,
        job_parameter: plan.spec.job_parameter.clone(),
        items: (0..total).map(item).collect(),
    };
    let listeners = job.listeners.clone();
    let mut executor = Executor::new(Arc::from(job.name()), job.work.clone(), listeners, CANCEL_GRACE);
    for hook in [Hook::OnceBefore, Hook::Before] {
        call(&mut executor, hook, &order).await;
    }
    let always: MayBegin = Arc::new(|| true);
    executor.start(order.clone(), &plan.spec, &always, &offsets(), None);
    let mut outcomes = BTreeMap::new();
    while outcomes.len() < total as usize {
        if let Ended::Item { item, end, .. } = executor.next().await {
            outcomes.insert(item, end.outcome);
        }
    }
    for hook in [Hook::After, Hook::OnceAfter] {
        call(&mut executor, hook, &order).await;
    }
    Ok(outcomes)
}

async fn call(executor: &mut Executor, hook: Hook, order: &Order) {
    executor.call(HookOrder { hook, round: order.clone() });
    if let Ended::Hook { error: Some(error), .. } = executor.next().await {
        tracing::error!("{hook} failed: {error}");
    }
}

/// Whether a strategy of your own keeps the rules: the same question has one answer, and every item goes to exactly
/// one instance. It is asked about clusters of up to six instances and twenty items.
///
/// ```
/// use elasticjob::{Strategy, testing};
///
/// struct Forgetful;
///
/// impl Strategy for Forgetful {
///     fn assign(&self, instances: &[&str], _job: &str, _total: u32) -> Vec<Vec<u32>> {
///         vec![vec![0]; instances.len()]
///     }
/// }
/// let fault = testing::check_strategy(&Forgetful).unwrap_err();
/// assert_eq!(fault, "1 instance, 2 items: item 1 goes to nobody");
/// ```
///
/// # Errors
///
/// The first cluster for which it does not, and what it does.
pub fn check_strategy(strategy: &dyn Strategy) -> Result<(), String> {
    for (count, total) in (1..=6_u32).flat_map(|count| (1..=20_u32).map(move |total| (count, total))) {
        let ids: Vec<String> = (1..=count).rev().map(|n| format!("10.0.0.{n}@-@1")).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        let plural = |count: u32| if count == 1 { "" } else { "s" };
        let fault = |what: String| {
            Err(format!("{count} instance{}, {total} item{}: {what}", plural(count), plural(total)))
        };
        let answer = strategy.assign(&ids, "job", total);
        if answer != strategy.assign(&ids, "job", total) {
            return fault("two answers to one question".to_owned());
        }
        let mut given = BTreeMap::<u32, u32>::new();
        answer.iter().take(ids.len()).flatten().for_each(|item| *given.entry(*item).or_default() += 1);
        for item in 0..total {
            match given.get(&item) {
                Some(1) => {}
                None => return fault(format!("item {item} goes to nobody")),
                Some(times) => return fault(format!("item {item} goes to {times} instances")),
            }
        }
    }
    Ok(())
}

/// Has all error handlers of a job tell a failure that did not happen, now and once, to see that they can: a mail
/// that arrives is worth more than settings that look right. The handlers are those of `extensions`.
///
/// ```
/// use elasticjob::{Extensions, Job, Report, Shard, testing};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let ours = Extensions::new().error_handler("pager", async |report: Report| {
///     assert_eq!(&*report.first().message, "only a test");
///     Err("nobody is on call".into())
/// });
/// let job = Job::simple("settle", async |_: Shard| Ok(())).error_handlers(["pager"]);
/// let error = testing::tell(&ours, &job, "only a test").await.unwrap_err();
/// assert_eq!(error.to_string(), "job `settle`: error handler pager: nobody is on call");
/// # Ok(()) }
/// ```
pub async fn tell(extensions: &Extensions, job: &Job, message: &str) -> Result<(), Error> {
    handler::check(&job.spec, &extensions.handlers)?;
    let failure = Failure::new(job.name().into(), Some(0), None, Timestamp::now(), message);
    handler::tell_once(&job.spec, &extensions.handlers, failure).await
}

/// Lets a worker's clock begin at `start` and follow tokio's, which a test can pause and move: a job that runs
/// once a day is tested in a millisecond.
///
/// ```
/// use elasticjob::{Job, Recorded, Event, Shard, Worker, testing};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), elasticjob::Error> {
/// let job = Job::simple("daily", async |_: Shard| Ok(())).cron("0 0 2 * * ?").time_zone("GMT+0:00");
/// let midnight = "2030-01-01T00:00:00Z".parse().unwrap();
/// let worker = testing::clock_from(Worker::new("embedded://").job(job), midnight).start().await?;
/// let mut records = worker.records();
/// let started = loop {
///     if let Some(Recorded::Record(record)) = records.next().await
///         && let Event::RoundStarted { nominal, .. } = record.event
///     {
///         break nominal;
///     }
/// };
/// assert_eq!(started, Some("2030-01-01T02:00:00Z".parse().unwrap()));
/// # worker.shutdown().await; Ok(()) }
/// ```
pub fn clock_from(worker: Worker, start: Timestamp) -> Worker {
    Worker { clock: Some(start), ..worker }
}
