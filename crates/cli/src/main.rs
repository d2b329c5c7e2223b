//! The `elasticjob` command: runs the jobs of a YAML file, and lets operators see and steer every job of a
//! registry.

mod ask;
mod check;
mod cron;
mod edit;
mod explain;
mod failure;
mod generate;
mod import;
mod job;
mod jobs;
mod json;
mod live;
mod place;
mod run;
mod screen;
mod servers;
mod table;
mod time;
mod watch;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use failure::Failure;
use place::Place;
use screen::Screen;

/// Distributed periodic jobs without a scheduling centre.
#[derive(Debug, Parser)]
#[command(name = "elasticjob", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "Exit codes:
  0  done
  1  failed, or `check` found problems
  2  wrong usage
  3  not found, or refused: nothing was changed
  4  the registry cannot be reached";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the jobs of a YAML file until Ctrl-C, which lets running shards end
    Run(run::Arguments),
    /// List all jobs
    Jobs(jobs::Arguments),
    /// See and steer one job
    #[command(subcommand)]
    Job(job::Command),
    /// List the shards of a job: who owns them, what they do
    Shards {
        /// The job
        job: String,
    },
    /// List all servers
    Servers,
    /// Steer one server, for all jobs
    #[command(subcommand)]
    Server(servers::Command),
    /// Say when a cron expression fires, in words and in times
    Cron(cron::Arguments),
    /// Is the fleet healthy? What is stuck, orphaned, unassigned or offline, and what to do
    Check {
        /// Only this job
        job: Option<String>,
    },
    /// Why did a job run, not run, or run late?
    Explain(explain::Arguments),
    /// Convert jobs of ElasticJob 1.x and 2.x to 3.x
    Import(import::Arguments),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write one for every command into a directory
    Man {
        /// The directory
        directory: Option<std::path::PathBuf>,
    },
}

fn main() -> ExitCode {
    let filter = EnvFilter::try_from_env("ELASTICJOB_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let arguments = Arguments::parse();
    let screen = Screen::new(arguments.json);
    match dispatch(arguments, &screen) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn dispatch(arguments: Arguments, screen: &Screen) -> Result<(), Failure> {
    match arguments.command {
        Command::Run(arguments) => return run::run(&arguments),
        Command::Cron(arguments) => return cron::run(&arguments, screen),
        Command::Completions { shell } => return generate::completions(shell),
        Command::Man { directory } => return generate::man(directory.as_deref()),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    runtime.block_on(operate(arguments, screen))
}

/// The commands that need a registry.
async fn operate(arguments: Arguments, screen: &Screen) -> Result<(), Failure> {
    let place = &arguments.place;
    if let Command::Job(job::Command::Dump { job, from: Some(address) }) = &arguments.command {
        return job::dump_from(address, job).await;
    }
    let ops = place.connect().await?;
    let outcome = match arguments.command {
        Command::Jobs(arguments) => jobs::run(&ops, screen, &arguments).await,
        Command::Job(command) => Box::pin(job::run(&ops, screen, command)).await,
        Command::Shards { job } => jobs::shards(&ops, screen, &job).await,
        Command::Servers => servers::list(&ops, screen).await,
        Command::Server(command) => servers::run(&ops, screen, command).await,
        Command::Check { job } => check::run(&ops, screen, job.as_deref()).await,
        Command::Explain(arguments) => explain::run(&ops, screen, &arguments).await,
        Command::Import(arguments) => Box::pin(import::run(&ops, screen, place, &arguments)).await,
        Command::Run(_) | Command::Cron(_) | Command::Completions { .. } | Command::Man { .. } => Ok(()),
    };
    ops.close().await;
    outcome
}
