//! A worker process that prints what happens in it, one line for each event.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use elasticjob::{Recorded, Records, RunningWorker, Worker};
use elasticjob_fleet::What;
use elasticjob_fleet::job::{FleetJob, Reporter};

/// Runs jobs that do nothing but say so, until it is asked to end (SIGTERM).
#[derive(Parser)]
struct Options {
    /// The registry.
    #[arg(long)]
    registry: String,
    /// A name that no other process of the fleet has or had.
    #[arg(long)]
    process: String,
    /// A job: `name=orders;cron=0/5 * * * * ?;count=4;failover=true;work=300`.
    #[arg(long = "job", required = true)]
    jobs: Vec<FleetJob>,
    /// The socket of the fenced store that runs write to.
    #[arg(long)]
    store: Option<PathBuf>,
    /// How long what runs may go on after SIGTERM, in milliseconds.
    #[arg(long, default_value_t = 5000)]
    grace: u64,
    /// A bug to plant.
    #[cfg(feature = "mutants")]
    #[arg(long, value_parser = mutant)]
    mutant: Option<elasticjob_core::mutants::Mutant>,
}

#[cfg(feature = "mutants")]
fn mutant(name: &str) -> Result<elasticjob_core::mutants::Mutant, String> {
    use elasticjob_core::mutants::Mutant;
    let found = Mutant::ALL.iter().find(|it| format!("{it:?}") == name).copied();
    found.ok_or_else(|| format!("`{name}` is no mutant: see crates/core/src/mutants.rs"))
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all();
    #[cfg(feature = "mutants")]
    {
        let mutant = options.mutant;
        runtime.on_thread_start(move || elasticjob_core::mutants::plant(mutant));
    }
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let ended = runtime.build().map_err(|error| error.to_string()).and_then(|runtime| {
        // On the runtime's own threads, where a bug is planted.
        let work = runtime.spawn(run(options));
        let ended = runtime.block_on(work).map_err(|error| error.to_string())?;
        ended.map_err(|error| error.to_string())
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), elasticjob::Error> {
    let reporter = Reporter::new(&options.process, options.store);
    reporter.say(What::Born { pid: std::process::id() });
    let mut worker = Worker::new(options.registry).shutdown_grace(Duration::from_millis(options.grace));
    for job in &options.jobs {
        worker = worker.job(job.build(&reporter));
    }
    let running = worker.start().await?;
    let told = tokio::spawn(tell(running.records(), reporter.clone()));
    reporter.say(What::Ready { instance: running.instance_id().unwrap_or_default() });
    let asked = elasticjob::until_asked_to_end().await;
    leave(running, told).await;
    reporter.say(What::Left);
    asked
}

async fn leave(running: RunningWorker, told: tokio::task::JoinHandle<()>) {
    running.shutdown().await;
    // With the worker the records end, and with them the task.
    if let Err(error) = told.await {
        eprintln!("error: the records are not complete: {error}");
    }
}

async fn tell(mut records: Records, reporter: Reporter) {
    while let Some(record) = records.next().await {
        match record {
            Recorded::Record(record) => {
                let at = u64::try_from(record.at.as_millisecond()).unwrap_or_default();
                let what = What::Record { job: record.job.to_string(), event: record.event };
                reporter.said_at(at, what);
            }
            Recorded::Missed(count) => eprintln!("error: {count} records were missed"),
        }
    }
}
