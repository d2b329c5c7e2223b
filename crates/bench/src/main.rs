//! The same work done by ElasticJob for Java and for Rust, on one ZooKeeper, one after the other, round by round.
//! `cargo xtask bench` builds and runs it.

mod failover;
mod load;
mod report;
mod samples;
mod side;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Parser;
use load::Load;
use report::Results;
use side::{Side, Stage};

/// Between these lines docs/benchmarks.md holds what was measured last.
const BEGIN: &str = "<!-- measured: cargo xtask bench --write replaces this -->\n";
const END: &str = "<!-- measured: end -->\n";

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
    /// How long rows are counted, in seconds.
    rows: i64,
}

impl Plan {
    fn in_words(&self) -> String {
        let seconds = self.both.first().map_or(0, |it| it.seconds);
        let name = |loads: &[Load]| loads.iter().map(|it| report::name(*it)).collect::<Vec<_>>().join(", ");
        format!(
            "{} rounds of {}, failover and dataflow, each by Java and then by Rust; once {} by both, and {} by Rust. \
             Lateness is that of all fires in {seconds} s.",
            self.rounds,
            name(&self.both),
            name(&self.both_once),
            name(&self.rust),
        )
    }

    fn of(options: &Options) -> Plan {
        let seconds = if options.quick { 12 } else { 30 };
        let patience = Duration::from_secs(if options.quick { 60 } else { 600 });
        let load = |jobs, items| Load { jobs, items, seconds, patience, restart: false };
        let with_restart = |jobs| Load { restart: true, ..load(jobs, 1) };
        if options.smoke {
            let tiny = Load { seconds: 3, ..load(3, 2) };
            let both = vec![Load { seconds: 3, ..with_restart(5) }];
            return Plan { rounds: 1, both, both_once: vec![tiny], rust: vec![], deaths: 1, rows: 2 };
        }
        if options.quick {
            return Plan {
                rounds: 2,
                both: vec![with_restart(100)],
                both_once: vec![load(100, 10)],
                rust: vec![load(500, 1), with_restart(1000), load(5000, 1)],
                deaths: 2,
                rows: 5,
            };
        }
        Plan {
            rounds: 3,
            both: vec![with_restart(100), load(100, 10)],
            both_once: vec![load(500, 1)],
            rust: vec![with_restart(1000), load(5000, 1)],
            deaths: 10,
            rows: 20,
        }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse();
    let began = Instant::now();
    let stage = tokio::task::spawn_blocking(Stage::open).await??;
    let plan = Plan::of(&options);
    let about = about(&stage);
    println!("{about}");
    let measured = measure(&stage, &plan).await;
    let results = measured.with_context(|| format!("workers said:\n{}", stage.errors()))?;
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    let text = format!(
        "{about}\n{} It took {minutes:.1} minutes; the load at its end was {}.\n{}",
        plan.in_words(),
        load_average(),
        results.tables()
    );
    println!("\n{text}");
    if options.write {
        put_into_document(&text)?;
    }
    Ok(())
}

async fn measure(stage: &Stage, plan: &Plan) -> Result<Results> {
    let mut results = Results::default();
    for side in Side::BOTH {
        results.baselines.insert(side, load::baseline(stage, side).await?);
    }
    for round in 1..=plan.rounds {
        println!("round {round} of {}", plan.rounds);
        for load in &plan.both {
            for side in Side::BOTH {
                one(stage, side, *load, &mut results).await;
            }
        }
        for side in Side::BOTH {
            death_and_rows(stage, side, plan, &mut results).await;
        }
    }
    for load in &plan.both_once {
        for side in Side::BOTH {
            one(stage, side, *load, &mut results).await;
        }
    }
    for load in &plan.rust {
        one(stage, Side::Rust, *load, &mut results).await;
    }
    Ok(results)
}

async fn death_and_rows(stage: &Stage, side: Side, plan: &Plan, results: &mut Results) {
    match failover::measure(stage, side, plan.deaths).await {
        Ok(deaths) => {
            println!("{}: {deaths:?}", side.name());
            results.deaths.entry(side).or_default().extend(deaths);
        }
        Err(error) => results.failed.push(format!("failover, {}: {error:#}", side.name())),
    }
    match load::rows(stage, side, plan.rows).await {
        Ok(rows) => {
            println!("{}: {rows:.0} rows/s", side.name());
            results.rows.entry(side).or_default().push(rows);
        }
        Err(error) => results.failed.push(format!("dataflow, {}: {error:#}", side.name())),
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
