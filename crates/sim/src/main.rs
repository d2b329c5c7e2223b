//! `cargo xtask sim`: runs seeds, replays one, or hunts planted bugs.

use std::process::ExitCode;

use elasticjob_sim::{invariant, runner, world};

/// A seed is a few hundred thousand small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const HELP: &str = "\
usage: sim [--seeds N] [--first S] [--threads T] [--report FILE]
       sim --reproduce SEED
       sim --mutants [--only NAME] [--threads T]    (needs the feature `mutants`)";

#[derive(Default)]
struct Arguments {
    seeds: Option<u64>,
    first: u64,
    threads: Option<usize>,
    report: Option<String>,
    reproduce: Option<u64>,
    mutants: bool,
    only: Option<String>,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    // A panic of the core is a finding, and is printed as one.
    std::panic::set_hook(Box::new(|_| {}));
    let good = match arguments.reproduce {
        Some(seed) => reproduce(seed),
        None if arguments.mutants => hunt(&arguments),
        None => run(&arguments),
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut parsed = Arguments::default();
    while let Some(name) = arguments.next() {
        match name.as_str() {
            "--mutants" => parsed.mutants = true,
            "--seeds" => parsed.seeds = Some(arguments.next()?.replace('_', "").parse().ok()?),
            "--first" => parsed.first = arguments.next()?.replace('_', "").parse().ok()?,
            "--threads" => parsed.threads = Some(arguments.next()?.parse().ok()?),
            "--report" => parsed.report = Some(arguments.next()?),
            "--reproduce" => parsed.reproduce = Some(arguments.next()?.parse().ok()?),
            "--only" => parsed.only = Some(arguments.next()?),
            _ => return None,
        }
    }
    Some(parsed)
}

impl Arguments {
    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

fn run(arguments: &Arguments) -> bool {
    let (first, seeds) = (arguments.first, arguments.seeds.unwrap_or(10_000));
    let summary = runner::run(first, seeds, arguments.threads(), |bad| {
        for violation in bad.violations.iter().take(3) {
            println!("seed {}: {} at {} ms: {}", bad.seed, violation.invariant, violation.at, violation.what);
        }
        println!("    replay: cargo xtask sim --reproduce {}", bad.seed);
    });
    let command = format!("cargo xtask sim --first {first} --seeds {seeds}");
    let report = summary.report(&command);
    if let Some(file) = &arguments.report
        && let Err(error) = std::fs::write(file, &report)
    {
        eprintln!("cannot write {file}: {error}");
        return false;
    }
    println!(
        "{} seeds, {} virtual hours, {} runs, {} bad, {:.1} s ({:.0} seeds a second)",
        summary.seeds,
        summary.virtual_ms / 3_600_000,
        summary.runs,
        summary.bad.len(),
        summary.took.as_secs_f64(),
        summary.seeds as f64 / summary.took.as_secs_f64()
    );
    summary.bad.is_empty()
}

fn reproduce(seed: u64) -> bool {
    let (history, _, trace) = world::live(seed, true);
    for line in trace {
        println!("{line}");
    }
    let violations = invariant::check(&history);
    for violation in &violations {
        println!("violation: {} at {} ms: {}", violation.invariant, violation.at, violation.what);
    }
    println!("seed {seed}: {} violations", violations.len());
    violations.is_empty()
}

#[cfg(feature = "mutants")]
fn hunt(arguments: &Arguments) -> bool {
    use elasticjob_sim::hunt;
    let caught = hunt::hunt(arguments.threads(), arguments.only.as_deref(), |it| match it.seeds {
        Some(seeds) => println!("{:?}: {seeds} seeds, {}", it.mutant, it.how),
        None => println!("{:?}: NOT FOUND in {} seeds", it.mutant, hunt::SEEDS_MAX),
    });
    let found = caught.iter().filter(|it| it.seeds.is_some()).count();
    let median = hunt::median(&caught).map_or_else(|| "none".to_owned(), |it| it.to_string());
    println!("{found} of {} planted bugs found, median {median} seeds", caught.len());
    found == caught.len()
}

#[cfg(not(feature = "mutants"))]
fn hunt(_: &Arguments) -> bool {
    eprintln!("planted bugs need the feature `mutants`");
    false
}
