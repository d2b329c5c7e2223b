//! `kill -9` of a worker that runs an item: when does another run it?

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::{Context as _, Result};
use elasticjob_fleet::line::Fact;
use elasticjob_fleet::{What, ledger};

use crate::samples::Run;
use crate::side::{Setup, Side, Stage};

const LONG: Duration = Duration::from_secs(60);
/// How long a session lives without its client.
pub(crate) const SESSION: Duration = Duration::from_secs(2);
const CRON: &str = "0/10 * * * * ?";
const PERIOD_MICROS: i64 = 10_000_000;
/// The run is hurt somewhere in this time after its begin, so that its session is over long before the next fire.
const PHASE_MILLIS: u64 = 3_000;

/// One death. All in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Death {
    /// From the kill to the start of the code that takes over.
    pub(crate) after_kill: f64,
    /// From the end of the session, by ZooKeeper's own log.
    pub(crate) after_expiry: f64,
}

/// So many deaths. One worker survives them all, idle when they happen; the others run an item that lasts.
pub(crate) async fn measure(stage: &Stage, side: Side, deaths: usize) -> Result<Vec<Death>> {
    let namespace = stage.namespace();
    let mut setup = Setup::each_second(namespace.clone(), 1, 2);
    setup = Setup { cron: CRON, session: SESSION, failover: true, ..setup };
    let lasting = Setup { work: LONG, ..setup.clone() };
    let mut survivor = stage.start(side, &setup)?;
    survivor.until(LONG, "the survivor's first run", |it| it.runs.first().copied()).await?;
    let mut moments = Vec::new();
    for _ in 0..deaths {
        let mut victim = stage.start(side, &lasting)?;
        let run = victim.until(LONG, "the victim's run", |it| it.runs.first().copied()).await?;
        let phase = RandomState::new().hash_one(run.start) % PHASE_MILLIS;
        tokio::time::sleep(Duration::from_millis(phase)).await;
        let killed = victim.kill()?;
        let took_over = survivor.until(LONG, "the failover", |samples| {
            // A run for the next fire would be no failover.
            let is_failover = |it: &&Run| it.nominal == 0 || it.nominal % PERIOD_MICROS != 0;
            let mut later = samples.runs.iter().filter(|it| it.item == run.item && it.start > killed);
            later.find(is_failover).map(|it| it.start)
        });
        moments.push((killed, took_over.await?));
    }
    survivor.end().await?;
    with_expiries(stage, &namespace, &moments)
}

fn with_expiries(stage: &Stage, namespace: &str, moments: &[(i64, i64)]) -> Result<Vec<Death>> {
    let facts = ledger::read([stage.server.transactions().as_path()], namespace)?;
    let expiries: Vec<i64> = facts
        .iter()
        .filter(|it| matches!(it.what, What::Registry(Fact::Closed { expired: true, .. })))
        .filter_map(|it| i64::try_from(it.at * 1000).ok())
        .collect();
    let death = |&(killed, taken): &(i64, i64)| {
        let within = |it: &&i64| (killed..=taken + 1000).contains(*it);
        let expired = expiries.iter().find(within).context("a session's end is not in ZooKeeper's log")?;
        let millis = |micros: i64| micros as f64 / 1e3;
        Ok(Death { after_kill: millis(taken - killed), after_expiry: millis(taken - expired) })
    };
    moments.iter().map(death).collect()
}
