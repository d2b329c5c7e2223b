//! Hurts a fleet of real processes and says whether it kept its promises. See `cargo xtask chaos`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use elasticjob_fleet::chaos::{self, Options, Report};

/// Real worker processes on a three-node ensemble, hurt for a while by a plan that a seed decides.
#[derive(Parser)]
struct Arguments {
    /// How long, in seconds: storms of 80 seconds or so, with 80 seconds of calm after each.
    #[arg(long, default_value_t = 120)]
    seconds: u64,
    /// Decides everything that goes wrong.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many worker processes.
    #[arg(long, default_value_t = 4)]
    workers: usize,
    /// Plant this bug into the workers, which must have been built with the feature `mutants`.
    #[arg(long)]
    mutant: Option<String>,
    /// Judge this log, which an earlier run kept, instead.
    #[arg(long)]
    judge: Option<PathBuf>,
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(arguments: &Arguments) -> std::io::Result<bool> {
    if let Some(path) = &arguments.judge {
        return Ok(say(&chaos::judge_file(path)?));
    }
    let Arguments { seconds, seed, workers, .. } = *arguments;
    let program = std::env::current_exe()?.with_file_name("fleet-worker");
    let home = Path::new("target/chaos").join(format!("seed-{seed}"));
    println!("{workers} workers, {seconds} seconds, seed {seed}");
    let mutant = arguments.mutant.clone();
    let report = chaos::run(&Options { seed, seconds, workers, program, mutant, home: home.clone() }).await?;
    let good = say(&report);
    if good {
        std::fs::remove_dir_all(home)?;
    } else {
        println!("the log is {}/log.jsonl", home.display());
        let bug = arguments.mutant.as_ref().map_or(String::new(), |it| format!(" --mutant {it}"));
        println!("again: cargo xtask chaos --seconds {seconds} --seed {seed} --workers {workers}{bug}");
    }
    Ok(good)
}

fn say(report: &Report) -> bool {
    let list = |counts: &std::collections::BTreeMap<String, usize>| {
        counts.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    };
    let runs: usize = report.runs.values().sum();
    println!("{runs} runs: {}", list(&report.runs));
    println!("{} processes; done to them: {}", report.processes, list(&report.faults));
    println!("{} sessions lost, {} writes refused", report.sessions_lost, report.refused);
    for line in &report.bad_lines {
        println!("unreadable: {line}");
    }
    for it in &report.violations {
        println!("{}.{:03} s: {}: {}", it.at / 1000, it.at % 1000, it.invariant, it.what);
    }
    println!("{} violations", report.violations.len());
    report.violations.is_empty() && report.bad_lines.is_empty()
}
