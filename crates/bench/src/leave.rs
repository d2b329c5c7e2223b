//! A worker that is asked to end while its peer goes on: is a fire missed, how late are the others?

use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::samples::{lateness, seconds};
use crate::side::{Setup, Side, Stage, now, sleep_until};

const SECOND: i64 = 1_000_000;
const ITEMS: usize = 10;
const START: Duration = Duration::from_secs(60);
/// How long it is looked after the request to end, in whole seconds.
const AFTER: i64 = 6;
const DRAIN: i64 = 3 * SECOND;

/// One clean leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leave {
    /// From the request to the end of the process, in seconds.
    pub(crate) took: f64,
    /// Fires of an item that nobody ran.
    pub(crate) missed: usize,
    /// The greatest lateness of those that were run, in milliseconds.
    pub(crate) latest: f64,
}

pub(crate) async fn measure(stage: &Stage, side: Side) -> Result<Leave> {
    let setup = Setup::each_second(stage.namespace(), 1, ITEMS);
    let mut stays = stage.start(side, &setup)?;
    stays.until(START, "the first run", |it| it.all_began(ITEMS)).await?;
    let mut goes = stage.start(side, &setup)?;
    goes.until(START, "a run of the second worker", |it| it.runs.first().copied()).await?;
    // In the middle of the second, when everything is at rest.
    let from = now() / SECOND * SECOND + 3 * SECOND;
    sleep_until(from - SECOND / 2).await;
    let asked = now();
    let samples = goes.end().await?;
    let took = seconds(now() - asked);
    let to = from + AFTER * SECOND;
    sleep_until(to + DRAIN).await;
    stays.look()?;
    let runs = [stays.samples.runs.as_slice(), samples.runs.as_slice()].concat();
    let late = lateness(&runs, ITEMS, from, to).context("after a clean leave")?;
    stays.end().await?;
    Ok(Leave { took, missed: late.missed, latest: late.max as f64 / 1e3 })
}
