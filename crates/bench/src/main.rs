//! The same work done by ElasticJob for Java and for Rust, on one ZooKeeper, one after the other, round by round.
//! `cargo xtask bench` builds and runs it.

mod failover;
mod goals;
mod leave;
mod load;
mod pause;
mod report;
mod reshard;
mod samples;
mod side;
mod soak;
mod wire;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use load::Load;
use pause::Scene;
use report::Results;
use side::{Side, Stage};
use wire::Pace;

/// Between these lines docs/benchmarks.md holds what was measured last.
const BEGIN: &str = "<!-- measured: cargo xtask bench --write replaces this -->\n";
const END: &str = "<!-- measured: end -->\n";
/// How long 100,000 idle jobs may take to be registered.
const IDLE_START: Duration = Duration::from_secs(600);
const DATAFLOW_ITEMS: [usize; 2] = [1, 8];

/// Measures ElasticJob for Java and for Rust side by side.
#[derive(Parser)]
struct Options {
    /// Fewer rounds, shorter ones, and of Java only what starts quickly: ten minutes.
    #[arg(long, conflicts_with = "smoke")]
    quick: bool,
    /// Only see that it works: numbers without meaning.
    #[arg(long)]
    smoke: bool,
    /// Put the tables into docs/benchmarks.md, too.
    #[arg(long)]
    write: bool,
    /// Measure only these.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Kind>,
    /// Instead of all this: let 1,000 jobs of Rust fire each second for so long, with a line for each minute
    /// and a verdict.
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["quick", "smoke", "write", "only"])]
    soak: Option<i64>,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Lateness, start-up, and what jobs that fire use.
    Load,
    /// What jobs that never fire use.
    Idle,
    /// Death and its consequences.
    Failover,
    /// Clean leave.
    Leave,
    /// A new assignment of many items.
    Reshard,
    /// Dataflow.
    Rows,
    /// Requests and bytes.
    Wire,
}

/// How much is measured.
struct Plan {
    rounds: usize,
    /// Done by both sides in every round.
    both: Vec<Load>,
    /// Done by both sides once.
    both_once: Vec<Load>,
    /// Done by Rust alone, once.
    rust: Vec<Load>,
    /// Of each side in every round.
    deaths: usize,
    leaves: usize,
    /// How long rows are counted, in seconds.
    rows: i64,
    /// Jobs that never fire: of Java, and of Rust.
    idle: [Vec<usize>; 2],
    /// Items and instances that Rust's are resharded with.
    reshard: Vec<(usize, usize)>,
    /// What is resharded while it runs.
    pauses: Vec<Scene>,
    /// Fleets, by their number of instances, whose requests are counted; those of a group at the same time.
    wire: Vec<Vec<(Side, usize)>>,
    wire_pace: Pace,
}

impl Plan {
    fn in_words(&self) -> String {
        let seconds = self.both.first().map_or(0, |it| it.seconds);
        let name = |loads: &[Load]| loads.iter().map(|it| report::name(*it)).collect::<Vec<_>>().join(", ");
        format!(
            "{} rounds of {}, failover, leaving and dataflow, each by Java and then by Rust; once {} by \
             both, and {} by Rust. Lateness is that of all fires in {seconds} s.",
            self.rounds,
            name(&self.both),
            name(&self.both_once),
            name(&self.rust),
        )
    }

    fn of(options: &Options) -> Plan {
        let seconds = if options.quick { 8 } else { 30 };
        let patience = Duration::from_secs(if options.quick { 60 } else { 900 });
        let load = |jobs, items| Load { jobs, items, seconds, patience, restart: false };
        let with_restart = |jobs| Load { restart: true, ..load(jobs, 1) };
        let pause = |side, (items, instances), changes| Scene { side, items, instances, changes };
        if options.smoke {
            let tiny = Load { seconds: 3, ..load(3, 2) };
            return Plan {
                rounds: 1,
                both: vec![Load { seconds: 3, ..with_restart(5) }],
                both_once: vec![tiny],
                rust: vec![],
                deaths: 1,
                leaves: 1,
                rows: 2,
                idle: [vec![5], vec![50]],
                reshard: vec![(20, 3)],
                pauses: vec![Scene { side: Side::Rust, items: 20, instances: 3, changes: 1 }],
                wire: vec![vec![(Side::Rust, 2)]],
                wire_pace: Pace { apart: 2, rounds: 1 },
            };
        }
        if options.quick {
            return Plan {
                rounds: 2,
                both: vec![with_restart(100)],
                both_once: vec![load(100, 10)],
                rust: vec![load(500, 1), with_restart(1000), load(5000, 1)],
                deaths: 1,
                leaves: 1,
                rows: 3,
                idle: [vec![], vec![1000, 10_000]],
                reshard: vec![(100, 2), (1000, 10), (10_000, 50)],
                pauses: vec![],
                wire: vec![vec![(Side::Java, 1), (Side::Rust, 1), (Side::Rust, 5)]],
                wire_pace: Pace { apart: 2, rounds: 1 },
            };
        }
        Plan {
            rounds: 3,
            both: vec![with_restart(100), load(100, 10)],
            both_once: vec![load(500, 1), load(1000, 1)],
            rust: vec![with_restart(1000), load(5000, 1), with_restart(10_000)],
            deaths: 10,
            leaves: 3,
            rows: 20,
            idle: [vec![100, 1000], vec![100, 1000, 10_000, 100_000]],
            reshard: [100, 1000, 10_000].iter().flat_map(|it| [2, 10, 50].map(|of| (*it, of))).collect(),
            pauses: vec![
                pause(Side::Java, (100, 2), 5),
                pause(Side::Rust, (100, 2), 5),
                pause(Side::Rust, (1000, 10), 5),
                pause(Side::Rust, (10_000, 50), 2),
            ],
            wire: vec![
                vec![(Side::Java, 1), (Side::Java, 5), (Side::Rust, 1), (Side::Rust, 5), (Side::Rust, 20)],
                vec![(Side::Java, 20)],
            ],
            // Twenty JVMs take seconds for a round.
            wire_pace: Pace { apart: 6, rounds: 2 },
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let began = Instant::now();
    let stage = tokio::task::spawn_blocking(Stage::open).await??;
    if let Some(seconds) = options.soak {
        println!("{}", about(&stage));
        return soak::run(&stage, seconds).await;
    }
    let plan = Plan::of(&options);
    let about = about(&stage);
    println!("{about}");
    let measured = measure(&stage, &plan, &options.only).await;
    let results = measured.with_context(|| format!("workers said:\n{}", stage.errors()))?;
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let text = format!(
        "{about}\n{} It took {minutes:.1} minutes; the load at its end was {}.\n{}{}",
        plan.in_words(),
        load_average(),
        goals::table(&results),
        results.tables()
    );
    println!("\n{text}");
    if options.write {
        put_into_document(&text)?;
    }
    Ok(())
}

async fn measure(stage: &Stage, plan: &Plan, only: &[Kind]) -> Result<Results> {
    let wanted = |kind: Kind| only.is_empty() || only.contains(&kind);
    let mut results = Results::default();
    for side in Side::BOTH.into_iter().filter(|_| wanted(Kind::Load) || wanted(Kind::Idle)) {
        results.baselines.insert(side, load::baseline(stage, side).await?);
    }
    for round in 1..=plan.rounds {
        println!("round {round} of {}", plan.rounds);
        for (load, side) in sides(&plan.both).filter(|_| wanted(Kind::Load)) {
            one(stage, side, load, &mut results).await;
        }
        for side in Side::BOTH {
            if wanted(Kind::Failover) {
                deaths(stage, side, plan.deaths, &mut results).await;
            }
            if wanted(Kind::Leave) {
                leaves(stage, side, plan.leaves, &mut results).await;
            }
            if wanted(Kind::Rows) {
                rows(stage, side, plan.rows, &mut results).await;
            }
        }
    }
    for (load, side) in sides(&plan.both_once).filter(|_| wanted(Kind::Load)) {
        one(stage, side, load, &mut results).await;
    }
    for load in plan.rust.iter().filter(|_| wanted(Kind::Load)) {
        one(stage, Side::Rust, *load, &mut results).await;
    }
    once(stage, plan, wanted, &mut results).await;
    Ok(results)
}

/// Each load by both sides, one after the other.
fn sides(loads: &[Load]) -> impl Iterator<Item = (Load, Side)> {
    loads.iter().flat_map(|load| Side::BOTH.map(|side| (*load, side)))
}

/// What is measured once.
async fn once(stage: &Stage, plan: &Plan, wanted: impl Fn(Kind) -> bool, results: &mut Results) {
    for fleets in plan.wire.iter().filter(|_| wanted(Kind::Wire)) {
        // Together: nothing is timed, and what a fleet sends does not depend on how quickly it is answered.
        let counts = fleets.iter().map(|&(side, instances)| async move {
            (side, wire::measure(stage, side, instances, plan.wire_pace).await)
        });
        for (side, measured) in futures_util::future::join_all(counts).await {
            results.note(&format!("requests, {}", side.name()), measured, |it, costs| {
                it.wire.entry(side).or_default().extend(costs);
            });
        }
    }
    for (items, instances) in plan.reshard.iter().filter(|_| wanted(Kind::Reshard)) {
        let measured = reshard::measure(stage, Side::Rust, *items, *instances).await;
        results.note("resharding", measured, |it, resharded| it.resharded.push(resharded));
    }
    for scene in plan.pauses.iter().filter(|_| wanted(Kind::Reshard)) {
        let measured = pause::measure(stage, *scene).await;
        results.note("resharding while it runs", measured, |it, pauses| it.pauses.push((*scene, pauses)));
    }
    for (side, sizes) in Side::BOTH.into_iter().zip(&plan.idle).filter(|_| wanted(Kind::Idle)) {
        for jobs in sizes {
            let measured = load::idle(stage, side, *jobs, IDLE_START).await;
            results.note("idle jobs", measured, |it, idle| it.idle.push((side, idle)));
        }
    }
}

async fn deaths(stage: &Stage, side: Side, count: usize, results: &mut Results) {
    let measured = failover::measure(stage, side, count).await;
    let name = format!("failover, {}", side.name());
    results.note(&name, measured, |it, deaths| it.deaths.entry(side).or_default().extend(deaths));
}

async fn leaves(stage: &Stage, side: Side, count: usize, results: &mut Results) {
    for _ in 0..count {
        let measured = leave::measure(stage, side).await;
        let name = format!("clean leave, {}", side.name());
        results.note(&name, measured, |it, leave| it.leaves.entry(side).or_default().push(leave));
    }
}

async fn rows(stage: &Stage, side: Side, lasting: i64, results: &mut Results) {
    for items in DATAFLOW_ITEMS {
        let measured = load::rows(stage, side, items, lasting).await;
        let name = format!("dataflow, {items} items, {}", side.name());
        results.note(&name, measured, |it, rows| it.rows.entry((items, side)).or_default().push(rows));
    }
}

/// One that cannot be measured, because the load is too much for the machine, is a result, too.
async fn one(stage: &Stage, side: Side, load: Load, results: &mut Results) {
    let name = format!("{}, {}", report::name(load), side.name());
    match load::measure(stage, side, load).await {
        Ok(measured) => {
            println!("{name}: {measured:?}");
            results.loads.push((load, side, measured));
        }
        Err(error) => {
            println!("{name}: {error:#}; workers said:\n{}", stage.errors());
            results.failed.push(format!("{name}: {error:#}"));
        }
    }
}

/// On what it was measured.
fn about(stage: &Stage) -> String {
    let said = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        let output = output.ok().filter(|it| it.status.success());
        output.map(|it| String::from_utf8_lossy(&[it.stdout, it.stderr].concat()).trim().to_owned())
    };
    let unknown = || "unknown".to_owned();
    let first_line = |text: String| text.lines().next().unwrap_or_default().to_owned();
    let commit = said("git", &["describe", "--always", "--dirty", "--abbrev=12"]).unwrap_or_else(unknown);
    let java = said("java", &["-version"]).map_or_else(unknown, first_line);
    let server = stage.server.ask("srvr").map_or_else(unknown, first_line);
    // Behind the number of the release comes what it was built from.
    let server = server.split('-').next().unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!(
        "`cargo xtask bench {}` at commit `{commit}`, {}, {cores} cores, load before it began (1, 5, 15 minutes) {}. \
         {java}. {server}.\n",
        words.join(" "),
        jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC"),
        load_average(),
    )
}

/// How busy the machine is, over 1, 5 and 15 minutes.
fn load_average() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".to_owned());
    load.split(' ').take(3).collect::<Vec<_>>().join(", ")
}

fn put_into_document(text: &str) -> Result<()> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/benchmarks.md");
    let document = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (before, rest) =
        document.split_once(BEGIN).context("docs/benchmarks.md lacks the line of the begin")?;
    let (_, after) = rest.split_once(END).context("docs/benchmarks.md lacks the line of the end")?;
    fs::write(&path, format!("{before}{BEGIN}\n{text}\n{END}{after}"))?;
    Ok(())
}
