//! Runs the shards of one job: as many at a time as its pool allows, each with a way to be stopped.

mod script;

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use elasticjob_core::coord::Order;
use elasticjob_core::event::Outcome;
use elasticjob_core::spec::JobSpec;
use futures_util::FutureExt;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::job::{JobError, Shard, Work};

/// An item that ended.
pub(crate) struct Finished {
    pub(crate) round: u64,
    pub(crate) item: u32,
    pub(crate) outcome: Outcome,
}

/// What runs of one job on this worker.
pub(crate) struct Executor {
    job: Arc<str>,
    work: Work,
    cancel_grace: Duration,
    rounds: BTreeMap<u64, Round>,
    tasks: JoinSet<Finished>,
}

struct Round {
    left: usize,
    cancel: CancellationToken,
    yielding: CancellationToken,
}

impl Executor {
    pub(crate) fn new(job: Arc<str>, work: Work, cancel_grace: Duration) -> Executor {
        Executor { job, work, cancel_grace, rounds: BTreeMap::new(), tasks: JoinSet::new() }
    }

    pub(crate) fn start(&mut self, order: Order, spec: &JobSpec) {
        let permits = Arc::new(Semaphore::new(pool_size(spec)));
        let (cancel, yielding) = (CancellationToken::new(), CancellationToken::new());
        let (task_id, job_parameter): (Arc<str>, Arc<str>) =
            (order.task_id.into(), order.job_parameter.into());
        self.rounds.insert(
            order.round,
            Round { left: order.items.len(), cancel: cancel.clone(), yielding: yielding.clone() },
        );
        let command_line = spec.props.get(crate::job::COMMAND_LINE).cloned().unwrap_or_default();
        for it in order.items {
            let shard = Shard {
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
                cancel: cancel.clone(),
                yielding: yielding.clone(),
            };
            let (round, item) = (order.round, it.item);
            let run = run(self.work.clone(), shard, command_line.clone(), permits.clone(), self.cancel_grace);
            self.tasks.spawn(async move { Finished { round, item, outcome: run.await } });
        }
    }

    pub(crate) fn tell_to_yield(&self, round: u64) {
        if let Some(round) = self.rounds.get(&round) {
            round.yielding.cancel();
        }
    }

    pub(crate) fn cancel(&self, round: u64) {
        if let Some(round) = self.rounds.get(&round) {
            round.cancel.cancel();
        }
    }

    /// The next item that ends; never, if none runs. Cancel safe.
    pub(crate) async fn next(&mut self) -> Finished {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(finished)) => {
                    self.count(finished.round);
                    return finished;
                }
                // A task catches the panics of its job, and only the drop of all tasks aborts one.
                Some(Err(error)) => tracing::error!(job = &*self.job, "an item was lost: {error}"),
                None => return std::future::pending().await,
            }
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

async fn run(
    work: Work,
    shard: Shard,
    command_line: String,
    permits: Arc<Semaphore>,
    cancel_grace: Duration,
) -> Outcome {
    let cancel = shard.cancel.clone();
    let permit = tokio::select! {
        permit = permits.acquire() => permit,
        () = cancel.cancelled() => return Outcome::Cancelled,
    };
    let outcome = match work {
        Work::Async(job) => {
            let job = AssertUnwindSafe(async move { job.run(shard).await }).catch_unwind();
            tokio::select! {
                result = job => outcome_of(result, &cancel),
                // It was told and did not stop: it is dropped where it waits.
                () = cancelled_for(&cancel, cancel_grace) => Outcome::Cancelled,
            }
        }
        Work::Blocking(job) => match tokio::task::spawn_blocking(move || job(shard)).await {
            Ok(result) => outcome_of(Ok(result), &cancel),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => outcome_of(Err(panic), &cancel),
                Err(_) => Outcome::Cancelled,
            },
        },
        Work::Script => outcome_of(Ok(script::run(&shard, &command_line, cancel_grace).await), &cancel),
    };
    drop(permit);
    outcome
}

async fn cancelled_for(cancel: &CancellationToken, grace: Duration) {
    cancel.cancelled().await;
    tokio::time::sleep(grace).await;
}

fn outcome_of(result: std::thread::Result<Result<(), JobError>>, cancel: &CancellationToken) -> Outcome {
    match result {
        Ok(Ok(())) => Outcome::Succeeded,
        Ok(Err(_)) if cancel.is_cancelled() => Outcome::Cancelled,
        Ok(Err(error)) => Outcome::Failed(with_causes(error.as_ref())),
        Err(panic) => Outcome::Failed(panic_text(panic.as_ref())),
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("(no text)"))
}

fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
