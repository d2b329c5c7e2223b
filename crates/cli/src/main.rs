//! The `elasticjob` command: runs the jobs of a YAML file.

mod live;
mod run;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

/// Distributed periodic jobs without a scheduling centre.
#[derive(Debug, Parser)]
#[command(version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the jobs of a YAML file until Ctrl-C, which lets running shards end
    Run(run::Arguments),
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("ELASTICJOB_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let result = match Arguments::parse().command {
        Command::Run(arguments) => run::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
