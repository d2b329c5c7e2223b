//! Jobs that a file describes and code is bound to by name.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::Error;
use crate::events::EventFile;
use crate::executor;
use crate::file::{FileWork, JobsFile};
use crate::job::{self, Job, SCRIPT_CLASS, Work};
use crate::worker::Worker;
use elasticjob_core::spec::{ERROR_HANDLERS, JobSpec};

/// What is left of a file until its jobs have code.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unbound {
    file: String,
    all: BTreeSet<String>,
    specs: Vec<JobSpec>,
}

pub(crate) fn read(path: &Path) -> Result<Worker, Error> {
    let file = JobsFile::read(path)?;
    let registry = file.registry.ok_or_else(|| Error::NoRegistry { path: path.to_owned() })?;
    let mut worker = Worker::new(registry);
    worker.host = file.worker.preference();
    worker.grace = file.worker.shutdown_grace.unwrap_or(worker.grace);
    worker.operator.status = file.worker.status_port;
    worker.operator.dump = file.worker.dump_port;
    worker.operator.events = file.worker.event_file.map(EventFile::new);
    let mut unbound = Unbound { file: path.display().to_string(), ..Unbound::default() };
    for job in file.jobs {
        unbound.all.insert(job.spec.job_name.clone());
        match job.work {
            FileWork::Http => worker.jobs.push(Job::from_spec(job.spec, job::http::CLASS, Work::Http)),
            FileWork::Script => worker.jobs.push(Job::from_spec(job.spec, SCRIPT_CLASS, Work::Script)),
            FileWork::Typed => {
                let name = job.job_type.unwrap_or_default();
                worker.jobs.push(Job::from_spec(job.spec, &name, Work::Named(name.clone())));
            }
            FileWork::Code => unbound.specs.push(job.spec),
        }
    }
    worker.unbound = Some(unbound);
    Ok(worker)
}

pub(crate) fn bind(mut worker: Worker, job: Job) -> Result<Worker, Error> {
    let mut unbound = worker.unbound.take().unwrap_or_default();
    let Some(at) = unbound.specs.iter().position(|spec| spec.job_name == job.name()) else {
        let known: Vec<&str> = unbound.all.iter().map(String::as_str).collect();
        let known = known.join(", ");
        return Err(Error::NotInFile { file: unbound.file, job: job.name().to_owned(), known });
    };
    let mut spec = unbound.specs.swap_remove(at);
    // What the code says of its own type holds unless the file says otherwise.
    for (key, value) in job.spec.props.into_iter().filter(|(key, _)| key != ERROR_HANDLERS) {
        spec.props.entry(key).or_insert(value);
    }
    let listeners = job.listeners;
    worker.jobs.push(Job { listeners, ..Job::from_spec(spec, &job.class, job.work) });
    worker.unbound = Some(unbound);
    Ok(worker)
}

pub(crate) fn check(worker: &Worker) -> Result<(), Error> {
    for job in &worker.jobs {
        executor::check(job).map_err(|error| Error::Type { job: job.name().to_owned(), error })?;
    }
    let Some(unbound) = &worker.unbound else { return Ok(()) };
    let Some(spec) = unbound.specs.first() else { return Ok(()) };
    let bound: Vec<&str> = worker.jobs.iter().map(Job::name).collect();
    let bound = if bound.is_empty() { "none".to_owned() } else { bound.join(", ") };
    Err(Error::Unbound { file: unbound.file.clone(), job: spec.job_name.clone(), bound })
}
