//! `elasticjob run jobs.yaml`: a worker, and a line for whatever its jobs do.

use std::path::PathBuf;

use elasticjob::{Error, Recorded, RunningWorker, Worker};

use crate::live::Live;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The file that says which jobs to run, and where the registry is
    file: PathBuf,
    /// Print nothing but what the jobs print
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    let worker = Worker::from_file(&arguments.file).map_err(|error| explain(&error))?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(work(worker, arguments)).map_err(|error| explain(&error))
}

async fn work(worker: Worker, arguments: &Arguments) -> Result<(), Error> {
    let worker = worker.start().await?;
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

/// A file's error with the line it is about; any other in one line.
fn explain(error: &Error) -> String {
    match error {
        Error::File(error) => error.report(),
        error => error.to_string(),
    }
}
