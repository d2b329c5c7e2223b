//! House keeping.
//!
//! `cargo xtask test` is everything that must hold before a change lands; continuous integration runs it and
//! nothing else. `verify` is its part without tests. Neither changes a file. `fix` does.

mod sh;
mod tidy;
mod tools;

use anyhow::{Result, bail};
use sh::{cargo, cargo_env};

const USAGE: &str = "usage: cargo xtask <command>

  test      everything: verify, all tests, examples, ten thousand simulated clusters, real ones, one with Java
  verify    formatting, lints, documentation, dependencies, tidiness; changes nothing
  fix       format, and apply what the lints suggest
  chaos     hurt real processes: --seconds N --seed S --workers N --mutant NAME | --judge LOG
  sim       simulate clusters: --seeds N --first S | --reproduce SEED | --mutants | --report FILE
  interop   fleets of Java and Rust processes; needs a JDK 17 and Maven, or apt-get to install them
  bench     Java and Rust side by side: --quick --write (into docs/benchmarks.md) --only KIND | --soak SECONDS
  hello     run examples/hello.yaml";

/// Seeds that every change is tried with.
const SEEDS: &str = "10000";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match arguments.first().map(String::as_str) {
        Some("test") => test(),
        Some("verify") => verify(),
        Some("fix") => fix(),
        Some("chaos") => chaos(&rest),
        Some("sim") => sim(&rest),
        Some("interop") => interop(),
        Some("bench") => bench(&rest),
        Some("hello") => cargo(&["run", "--package", "elasticjob-cli", "--", "run", "examples/hello.yaml"]),
        Some(unknown) => bail!("unknown command `{unknown}`\n\n{USAGE}"),
        None => {
            println!("{USAGE}");
            Ok(())
        }
    }
}

fn test() -> Result<()> {
    verify()?;
    cargo(&["test", "--workspace", "--all-features", "--all-targets", "--no-fail-fast"])?;
    cargo(&["test", "--workspace", "--all-features", "--doc"])?;
    for example in ["failover", "dataflow", "hooks", "offsets", "extend", "attribute"] {
        cargo(&["run", "--quiet", "--package", "elasticjob", "--features", "macros", "--example", example])?;
    }
    interop()?;
    sim(&["--seeds", SEEDS])?;
    chaos(&["--seconds", "120"])
}

/// Mostly they wait, for sessions to end and schedules to fire, so many may do so at a time.
fn interop() -> Result<()> {
    cargo(&["build", "--package", "elasticjob-cli"])?;
    let tests = ["test", "--package", "elasticjob-fleet", "--test", "interop"];
    cargo(&[&tests[..], &["--", "--ignored", "--test-threads=8"]].concat())
}

fn verify() -> Result<()> {
    tidy::check()?;
    cargo(&["fmt", "--all", "--check"])?;
    for features in [&["--no-default-features"][..], &[], &["--all-features"]] {
        let lint = ["clippy", "--workspace", "--all-targets"];
        cargo(&[&lint, features, &["--", "--deny", "warnings"]].concat())?;
    }
    let warnings = [("RUSTDOCFLAGS", "--deny warnings")];
    cargo_env(&["doc", "--workspace", "--all-features", "--no-deps"], &warnings)?;
    tools::cargo_deny()
}

fn fix() -> Result<()> {
    let lint = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
    ];
    cargo(&lint)?;
    cargo(&["fmt", "--all"])
}

fn chaos(arguments: &[&str]) -> Result<()> {
    let of_fleet = ["--quiet", "--profile", "sim", "--package", "elasticjob-fleet"];
    let mutants = arguments.contains(&"--mutant");
    let of_fleet = [&of_fleet[..], if mutants { &["--features", "mutants"] } else { &[] }].concat();
    cargo(&[&["build"], &of_fleet[..], &["--bins"]].concat())?;
    cargo(&[&["run"], &of_fleet[..], &["--bin", "fleet-chaos", "--"], arguments].concat())
}

fn sim(arguments: &[&str]) -> Result<()> {
    let run =
        ["run", "--quiet", "--profile", "sim", "--package", "elasticjob-sim", "--features", "mutants", "--"];
    let plain = ["run", "--quiet", "--profile", "sim", "--package", "elasticjob-sim", "--"];
    let mutants = arguments.contains(&"--mutants");
    cargo(&[if mutants { &run[..] } else { &plain[..] }, arguments].concat())
}

fn bench(arguments: &[&str]) -> Result<()> {
    let of_bench = ["--quiet", "--release", "--package", "elasticjob-bench"];
    cargo(&[&["build"], &of_bench[..], &["--bins"]].concat())?;
    cargo(&[&["run"], &of_bench[..], &["--bin", "bench", "--"], arguments].concat())
}
