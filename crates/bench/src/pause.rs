//! One instance more, or one less, while the items run: what do those see of it whose owner stays?

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use elasticjob::registry;

use crate::reshard::{Owners, until_assigned};
use crate::samples::Run;
use crate::side::{Setup, Side, Stage, now, sleep_until};

const SECOND: i64 = 1_000_000;
const START: Duration = Duration::from_secs(120);
/// The first change comes so long before a fire, and each further one as much earlier: some meet the fire.
const JOINS_BEFORE: i64 = SECOND / 50;
const LEAVES_BEFORE: i64 = SECOND / 200;
/// A run that begins later than this after the last fire that is looked at counts as missed.
const DRAIN: i64 = 3 * SECOND;

/// What is to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scene {
    pub(crate) side: Side,
    pub(crate) items: usize,
    /// With the one that comes and goes.
    pub(crate) instances: usize,
    /// How often it comes and goes.
    pub(crate) changes: i64,
}

/// What was seen. All in milliseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pauses {
    /// The greatest lateness of all items while nothing changed.
    pub(crate) usual: f64,
    /// The greatest lateness of items whose owner stayed, for each change.
    pub(crate) joined: Vec<f64>,
    pub(crate) left: Vec<f64>,
    /// Their fires that nobody ran, and how many there were.
    pub(crate) missed: usize,
    pub(crate) fires: usize,
}

/// Some fires of a job.
#[derive(Clone, Copy, Debug)]
struct Fires {
    first: i64,
    count: i64,
    period: i64,
}

impl Scene {
    fn cron(self) -> &'static str {
        if self.are_many() { "0/10 * * * * ?" } else { "0/1 * * * * ?" }
    }

    /// Too many to be run each second on a small machine.
    fn are_many(self) -> bool {
        self.items > 1000
    }

    /// The fires that are looked at next.
    fn next_fires(self) -> Fires {
        let (count, period) = if self.are_many() { (2, 10 * SECOND) } else { (6, SECOND) };
        let first = (now() / period + 2) * period;
        Fires { first, count, period }
    }
}

impl Fires {
    fn contain(self, nominal: i64) -> bool {
        (self.first..self.first + self.count * self.period).contains(&nominal)
    }

    async fn are_over(self) {
        sleep_until(self.first + (self.count - 1) * self.period + DRAIN).await;
    }
}

pub(crate) async fn measure(stage: &Stage, scene: Scene) -> Result<Pauses> {
    let Scene { side, items, instances, changes } = scene;
    let namespace = stage.namespace();
    let setup = Setup { cron: scene.cron(), ..Setup::each_second(namespace.clone(), 1, items) };
    let reader = registry::open(&stage.server.url(&namespace, "session-timeout=20s"))?.connect().await?;
    let mut many = stage.start(side, &Setup { instances: instances - 1, ..setup.clone() })?;
    many.until(START, "the first run of the last item", |it| it.all_began(items)).await?;
    let mut owners = until_assigned(&*reader, &many, items, instances - 1).await?;
    let mut pauses = Pauses::default();
    let fires = scene.next_fires();
    fires.are_over().await;
    many.look()?;
    pauses.usual = Pauses::default().look(fires, &many.samples.runs, &owners, &owners)?;
    for change in 1..=changes {
        let fires = scene.next_fires();
        sleep_until(fires.first - change * JOINS_BEFORE).await;
        let last = stage.start(side, &setup)?;
        fires.are_over().await;
        let with_last = until_assigned(&*reader, &last, items, instances).await?;
        many.look()?;
        let late = pauses.look(fires, &many.samples.runs, &owners, &with_last)?;
        pauses.joined.push(late);
        let fires = scene.next_fires();
        sleep_until(fires.first - change * LEAVES_BEFORE).await;
        last.end().await?;
        fires.are_over().await;
        owners = until_assigned(&*reader, &many, items, instances - 1).await?;
        many.look()?;
        let late = pauses.look(fires, &many.samples.runs, &with_last, &owners)?;
        pauses.left.push(late);
    }
    many.end().await?;
    reader.close().await;
    Ok(pauses)
}

impl Pauses {
    /// The greatest lateness of items whose owner stayed, and counts what they missed. Whoever comes and goes keeps
    /// no item, so what the others wrote is enough.
    fn look(&mut self, fires: Fires, runs: &[Run], before: &Owners, after: &Owners) -> Result<f64> {
        let stayed = before.of.iter().filter(|(item, owner)| after.of.get(*item) == Some(*owner));
        let stayed: BTreeSet<u32> = stayed.map(|(item, _)| item.parse()).collect::<Result<_, _>>()?;
        let theirs = |it: &&Run| stayed.contains(&it.item) && fires.contain(it.nominal);
        let theirs: Vec<&Run> = runs.iter().filter(theirs).collect();
        let ran: BTreeSet<(u32, i64)> = theirs.iter().map(|it| (it.item, it.nominal)).collect();
        let expected = stayed.len() * usize::try_from(fires.count)?;
        self.fires += expected;
        self.missed += expected.saturating_sub(ran.len());
        let latest = theirs.iter().map(|it| it.start - it.nominal).max();
        Ok(latest.context("no item with the same owner ran")? as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn owners(of: [&str; 3]) -> Owners {
        let of = of.iter().enumerate().map(|(item, owner)| (item.to_string(), (*owner).to_owned()));
        Owners { of: of.collect(), written: 0, instances: BTreeMap::new() }
    }

    #[test]
    fn who_moved_is_not_looked_at_and_a_fire_that_nobody_ran_is_counted() {
        let fires = Fires { first: SECOND, count: 2, period: SECOND };
        let run = |item, nominal, late| Run {
            job: 0,
            item,
            nominal: nominal * SECOND,
            start: nominal * SECOND + late,
        };
        let runs = [run(0, 1, 2000), run(0, 2, 3000), run(1, 1, 4000), run(2, 1, 9000), run(0, 3, 8000)];
        let mut pauses = Pauses::default();
        let late = pauses.look(fires, &runs, &owners(["a", "a", "a"]), &owners(["a", "a", "b"])).unwrap();
        assert_eq!((late, pauses.missed, pauses.fires), (4.0, 1, 4));
    }
}
