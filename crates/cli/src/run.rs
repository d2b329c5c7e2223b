//! `elasticjob run jobs.yaml`: a worker, and a line for whatever its jobs do.

use std::path::PathBuf;

use elasticjob::events::EventFile;
use elasticjob::{Error, ListenAt, OpsError, Recorded, RunningWorker, StopReason, Worker};

use crate::failure::Failure;
use crate::live::Live;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file that says which jobs to run, and where the registry is
    file: PathBuf,
    /// Print nothing but what the jobs print
    #[arg(long, short)]
    quiet: bool,
    /// Answer /healthz, /readyz, /metrics and /events there: a port of this machine only, or an address with a port
    #[arg(long, value_name = "[IP:]PORT")]
    status_port: Option<ListenAt>,
    /// Answer `dump@job` there, as Java's dump port does
    #[arg(long, value_name = "[IP:]PORT")]
    dump_port: Option<ListenAt>,
    /// Keep what happens in this file, for `elasticjob explain --events`
    #[arg(long, value_name = "FILE")]
    event_file: Option<PathBuf>,
}

impl Arguments {
    /// What the command line says comes before what the file says.
    fn applied_to(&self, mut worker: Worker) -> Worker {
        if let Some(at) = self.status_port {
            worker = worker.status_port(at);
        }
        if let Some(at) = self.dump_port {
            worker = worker.dump_port(at);
        }
        if let Some(path) = &self.event_file {
            worker = worker.event_file(EventFile::new(path));
        }
        worker
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let worker = Worker::from_file(&arguments.file).map_err(failure)?;
    let runtime =
        tokio::runtime::Runtime::new().map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    runtime.block_on(work(worker, arguments)).map_err(failure)
}

async fn work(worker: Worker, arguments: &Arguments) -> Result<(), Error> {
    let worker = arguments.applied_to(worker).start().await?;
    for (what, at) in [("status", worker.status_address()), ("dump", worker.dump_address())] {
        if let Some(at) = at {
            eprintln!("{what} port: {at}");
        }
    }
    if arguments.quiet {
        elasticjob::until_asked_to_end().await?;
    } else {
        let mut live = Live::new(&worker);
        live.greet();
        watch(&worker, &mut live).await?;
        eprintln!("leaving: running shards may end; Ctrl-C again to leave at once");
    }
    tokio::select! {
        () = worker.shutdown() => Ok(()),
        again = elasticjob::until_asked_to_end() => again,
    }
}

async fn watch(worker: &RunningWorker, live: &mut Live) -> Result<(), Error> {
    let mut records = worker.records();
    let asked = elasticjob::until_asked_to_end();
    tokio::pin!(asked);
    loop {
        tokio::select! {
            asked = &mut asked => return asked,
            Some(recorded) = records.next() => match recorded {
                Recorded::Record(record) => live.show(&record),
                Recorded::Missed(count) => eprintln!("… {count} events were not shown"),
            },
        }
    }
}

/// A file's error with the line it is about; any other in one line. The codes are those of all commands.
fn failure(error: Error) -> Failure {
    match error {
        Error::File(error) => Failure::failed(error.report()),
        Error::Registry(error) => OpsError::from(error).into(),
        Error::Ops(error) => error.into(),
        Error::Start { reason: StopReason::Denied(_) | StopReason::Conflict { .. }, .. } => {
            Failure::refused(error.to_string())
        }
        error => Failure::failed(error.to_string()),
    }
}
