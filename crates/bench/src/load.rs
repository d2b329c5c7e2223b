//! Jobs that fire each second: how long they take to start, how late they are, what they use.

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::samples::{Lateness, lateness, seconds};
use crate::side::{Member, Setup, Side, Stage, Usage, now, sleep_until};

const SECOND: i64 = 1_000_000;
const NEVER: &str = "0 0 0 1 1 ? 2099";
/// How long one job may take to fire for the first time.
const START: Duration = Duration::from_secs(60);
/// Between the first fire of the last job and the measured time.
const SETTLE: i64 = 5 * SECOND;
/// A run that begins later than this after the measured time counts as missed.
const DRAIN: i64 = 3 * SECOND;

/// How much of it is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) jobs: usize,
    pub(crate) items: usize,
    /// How long the lateness is measured, in seconds.
    pub(crate) seconds: i64,
    /// How long all jobs may take to fire for the first time.
    pub(crate) patience: Duration,
    /// Whether it is then started again in the same tree.
    pub(crate) restart: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) start: Start,
    pub(crate) restart: Option<Start>,
    pub(crate) lateness: Lateness,
    /// When the measured time was over; the processor time is of the measured time alone.
    pub(crate) usage: Usage,
    /// Processor time of ZooKeeper in the measured time.
    pub(crate) server_cpu_seconds: f64,
}

/// Seconds from the start of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Until all jobs were registered.
    pub(crate) registered: f64,
    /// Until every item had begun a run.
    pub(crate) fired: f64,
}

/// Jobs that do nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub(crate) jobs: usize,
    pub(crate) registered: f64,
    pub(crate) usage: Usage,
}

pub(crate) async fn measure(stage: &Stage, side: Side, load: Load) -> Result<Measured> {
    let setup = Setup::each_second(stage.namespace(), load.jobs, load.items);
    let items = load.jobs * load.items;
    let (start, mut member) = begin(stage, side, &setup, load.patience).await?;
    let from = (now() + SETTLE) / SECOND * SECOND + SECOND;
    let to = from + load.seconds * SECOND;
    // Half a second off, because that is when it is idle.
    sleep_until(from - SECOND / 2).await;
    let (before, server_before) = (member.usage()?, stage.server_usage()?);
    sleep_until(to - SECOND / 2).await;
    let (mut usage, server) = (member.usage()?, stage.server_usage()?);
    usage.cpu_seconds -= before.cpu_seconds;
    let server_cpu_seconds = server.cpu_seconds - server_before.cpu_seconds;
    sleep_until(to + DRAIN).await;
    member.look()?;
    let lateness = lateness(&member.samples.runs, items, from, to)?;
    member.end().await?;
    let restart = if load.restart { Some(again(stage, side, &setup, load.patience).await?) } else { None };
    Ok(Measured { start, restart, lateness, usage, server_cpu_seconds })
}

async fn begin(stage: &Stage, side: Side, setup: &Setup, limit: Duration) -> Result<(Start, Member)> {
    let mut member = stage.start(side, setup)?;
    let items = setup.jobs * setup.items;
    let fired = member.until(limit, "the first fire of the last job", |it| it.all_began(items)).await?;
    let ready = member.until(limit, "the registration of the last job", |it| it.ready).await?;
    let start = Start { registered: seconds(ready - member.began), fired: seconds(fired - member.began) };
    Ok((start, member))
}

/// Starts the jobs in the tree that they left, once the session that left it is over for sure.
async fn again(stage: &Stage, side: Side, setup: &Setup, limit: Duration) -> Result<Start> {
    tokio::time::sleep(setup.session + Duration::from_secs(1)).await;
    let (start, member) = begin(stage, side, setup, limit).await?;
    member.end().await?;
    Ok(start)
}

/// What a process with one job uses.
pub(crate) async fn baseline(stage: &Stage, side: Side) -> Result<Usage> {
    let setup = Setup::each_second(stage.namespace(), 1, 1);
    let (_, member) = begin(stage, side, &setup, START).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let usage = member.usage()?;
    member.end().await?;
    Ok(usage)
}

/// What so many jobs use that never fire, and how long they took to be registered.
pub(crate) async fn idle(stage: &Stage, side: Side, jobs: usize, limit: Duration) -> Result<Idle> {
    let setup = Setup { cron: NEVER, ..Setup::each_second(stage.namespace(), jobs, 1) };
    let mut member = stage.start(side, &setup)?;
    let ready = member.until(limit, "the registration of the last job", |it| it.ready).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let usage = member.usage()?;
    let registered = seconds(ready - member.began);
    // Leaving would be 100,000 transactions that nobody measures.
    member.kill()?;
    Ok(Idle { jobs, registered, usage })
}

/// Rows a second of one streaming dataflow job with so many items, whose fetch is instant.
pub(crate) async fn rows(stage: &Stage, side: Side, items: usize, lasting: i64) -> Result<f64> {
    let setup = Setup { dataflow: true, ..Setup::each_second(stage.namespace(), 1, items) };
    let mut member = stage.start(side, &setup)?;
    let first = member.until(START, "the first rows", |it| it.rows.first().map(|it| it.1)).await?;
    // The compiler of the JVM has warmed up by then.
    let from = first + 3 * SECOND;
    let to = from + lasting * SECOND;
    sleep_until(to).await;
    member.look()?;
    let rate = member.samples.rows_per_second(from, to);
    member.kill()?;
    rate.context("too few rows")
}
