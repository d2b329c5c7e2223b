//! A fleet on a three-node ensemble, hurt by a plan that a seed decides, and judged by what it did.
//!
//! A run is a sequence of storms, in which things go wrong, each followed by a calm in which everything must
//! come right by itself. When something is wrong is decided by the seed; when exactly a process gets to
//! notice is up to the machine.

mod operator;
pub mod plan;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use elasticjob_sim::invariant::Violation;
use elasticjob_sim::scenario::{JobSetup, Ms};

use crate::history::{Setup, judge};
use crate::job::FleetJob;
use crate::line::{Deed, Fact, Line, What, Why};
use crate::log::Log;
use plan::Plan;
use stage::Stage;

/// Where the jobs of a run are.
const NAMESPACE: &str = "chaos";
/// After how long the ensemble gives a silent session up.
const SESSION_TIMEOUT: Ms = 5_000;

/// What to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Decides everything that goes wrong.
    pub seed: u64,
    /// How long it lasts.
    pub seconds: u64,
    /// How many worker processes.
    pub workers: usize,
    /// The worker's program.
    pub program: PathBuf,
    /// A bug to plant into the workers.
    pub mutant: Option<String>,
    /// Where the log and what workers say goes.
    pub home: PathBuf,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Runs of items, by why they ran.
    pub runs: BTreeMap<String, usize>,
    /// Faults and orders, by kind.
    pub faults: BTreeMap<String, usize>,
    /// How many sessions expired.
    pub sessions_lost: usize,
    /// How many writes the store refused.
    pub refused: usize,
    /// How many processes there were.
    pub processes: usize,
    /// What is wrong.
    pub violations: Vec<Violation>,
    /// What was printed and could not be read.
    pub bad_lines: Vec<String>,
}

/// The jobs of every run: one with everything, whose items sometimes take longer than its period; one whose
/// items run nearly all the time; one that neither takes over nor makes up; one without monitoring; one that
/// runs only when it is asked to.
pub fn jobs() -> Vec<FleetJob> {
    let job = |text: &str| text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"));
    vec![
        job("name=everything;cron=0/5 * * * * ?;count=5;failover=true;work=1200;long-every=23;parameter=p"),
        job("name=long;cron=0/8 * * * * ?;count=2;failover=true;work=5000;deaf=300"),
        job("name=plain;cron=0/6 * * * * ?;count=3;misfire=false;work=250;deaf=300"),
        job("name=unmonitored;cron=3/6 * * * * ?;count=4;monitor=false;work=200"),
        job("name=asked;count=2;failover=true;work=700"),
    ]
}

/// The jobs, as the checker must know them.
fn setups() -> Vec<JobSetup> {
    let period = |cron: &str| match cron.split(' ').next() {
        Some("0/5") => 5_000,
        Some("0/8") => 8_000,
        _ => 6_000,
    };
    let setup = |job: FleetJob| {
        let mut spec = elasticjob_core::spec::JobSpec::new(&job.name, job.count);
        spec.cron.clone_from(&job.cron);
        JobSetup {
            spec,
            period: job.cron.as_deref().map_or(0, period),
            long_percent: match job.work {
                2_000.. => 100,
                _ => 100_u64.checked_div(job.long_every).unwrap_or_default(),
            },
            endless_percent: 0,
            deaf_percent: if job.deaf > 0 { 100 } else { 0 },
            hooks: elasticjob_core::coord::Hooks::default(),
        }
    };
    jobs().into_iter().map(setup).collect()
}

/// Runs it.
pub async fn run(options: &Options) -> io::Result<Report> {
    let plan = Plan::new(options.seed, options.seconds * 1000, options.workers, &jobs());
    let mut stage = Stage::open(options).await?;
    let began = tokio::time::Instant::now();
    for (at, step) in plan.steps {
        tokio::time::sleep_until(began + Duration::from_millis(at)).await;
        stage.act(step).await?;
    }
    tokio::time::sleep_until(began + Duration::from_millis(plan.ends_at)).await;
    let log = stage.close().await?;
    let mut report = report(&log.lines())?;
    report.bad_lines = log.bad_lines();
    Ok(report)
}

/// Judges a log that was kept.
pub fn judge_file(path: &Path) -> io::Result<Report> {
    let log = Log::new();
    std::fs::read_to_string(path)?.lines().for_each(|it| log.add_text(it));
    let mut report = report(&log.lines())?;
    report.bad_lines = log.bad_lines();
    Ok(report)
}

fn report(lines: &[Line]) -> io::Result<Report> {
    let mut report = Report { violations: judge(&setup(lines)?, lines), ..Report::default() };
    let count = |counts: &mut BTreeMap<String, usize>, name: &str| {
        *counts.entry(name.to_owned()).or_default() += 1;
    };
    let mut known = BTreeSet::new();
    for line in lines {
        match &line.what {
            What::Start(start) => {
                let why = match start.source {
                    Some(Why::Schedule) | None => "schedule",
                    Some(Why::Trigger) => "trigger",
                    Some(Why::Misfire) => "misfire",
                    Some(Why::Failover) => "failover",
                };
                count(&mut report.runs, why);
            }
            What::Born { .. } => report.processes += 1,
            What::Wrote { accepted: false, .. } => report.refused += 1,
            What::Done(Deed::Fault { fault, on: true }) => count(&mut report.faults, fault.name()),
            What::Done(Deed::Leaving { .. }) => count(&mut report.faults, "orderly restart"),
            What::Registry(fact) => match fact {
                Fact::Closed { expired: true, .. } => report.sessions_lost += 1,
                Fact::Server { enabled: false, .. } => count(&mut report.faults, "operator: disable"),
                Fact::Item { enabled: false, .. } => count(&mut report.faults, "operator: disable item"),
                // The first is the job's own.
                Fact::Config { job, .. } if !known.insert(job) => {
                    count(&mut report.faults, "operator: configure");
                }
                Fact::Triggered { .. } => count(&mut report.faults, "operator: trigger, by instance"),
                _ => {}
            },
            _ => {}
        }
    }
    Ok(report)
}

/// What the log itself says about its run.
fn setup(lines: &[Line]) -> io::Result<Setup> {
    let find = |is_it: fn(&Deed) -> bool, what: &str| {
        let found = lines.iter().rfind(|it| matches!(&it.what, What::Done(deed) if is_it(deed)));
        found.ok_or_else(|| io::Error::other(format!("the log does not say when it {what}")))
    };
    let began = find(|it| matches!(it, Deed::Began { .. }), "began")?;
    let What::Done(Deed::Began { seed, .. }) = began.what else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    Ok(Setup {
        seed,
        jobs: setups(),
        session_timeout: SESSION_TIMEOUT,
        began: began.at,
        healed: find(|it| *it == Deed::Healed, "was healed")?.at,
        ended: find(|it| *it == Deed::Over, "was over")?.at,
    })
}
