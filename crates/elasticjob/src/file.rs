//! The jobs file: the jobs of a process, the registry they meet in, and the process' own settings, as YAML.
//!
//! The settings of a job have Java's names, so that the jobs of a Spring Boot configuration can be pasted; each name may also be
//! written with hyphens. The defaults are those of Java's builder, and `shardingTotalCount` is 1 unless it is written.
//!
//! ```yaml
//! registry: zookeeper://${ZK_HOST:localhost}:2181/billing
//! worker:
//!   preferredNetworkInterface: eth0
//!   shutdownGrace: 30s
//! jobs:
//!   nightly-report:
//!     script: /opt/report.sh
//!     cron: 0 0 2 * * ?
//!     timeZone: Europe/Vienna
//!     shardingTotalCount: 3
//!     shardingItemParameters: [Beijing, Shanghai, Guangzhou]
//!   ping:
//!     http: https://example.com/ping
//!     cron: 0 0/5 * * * ?
//!   clean-up:                # code that the program binds to this name
//!     cron: 0 0 3 * * ?
//!     failover: true
//!   import:                  # no cron: runs when it is triggered
//!     jobParameter: full
//! ```
//!
//! In every value `${VAR}` stands for an environment variable and `${VAR:default}` for one that need not be set; `$${` is
//! written for the characters `${`. Properties that hold secrets are the exception: there each worker finds the value of `${VAR}`
//! for itself, and no default is allowed. Variables are filled in after the YAML has been read, so whatever they hold, it is one value.
//!
//! Anchors, aliases and `<<` work within the file; top-level keys that start with `x-` are passed over, as a place for anchors.

mod document;
mod error;
mod field;
mod job;
mod keys;
mod variables;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use elasticjob_core::spec::JobSpec;

use crate::host::Preference;
use crate::listen::ListenAt;
use document::Map;
use error::Fault;
pub use error::FileError;
use field::{Field, Source, settings};

/// A larger file is not a jobs file.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

const TOP_KEYS: [&str; 3] = ["registry", "worker", "jobs"];
const WORKER_KEYS: [&str; 6] = [
    "preferredNetworkInterface",
    "preferredNetworkIp",
    "shutdownGrace",
    "statusPort",
    "dumpPort",
    "eventFile",
];

/// What a jobs file says.
///
/// ```
/// use elasticjob::file::{FileWork, JobsFile};
///
/// let file = JobsFile::parse(
///     "registry: embedded://${NAMESPACE}
/// jobs:
///   nightly-report: { script: /opt/report.sh, cron: 0 0 2 * * ?, shardingTotalCount: 3 }
///   clean-up:       { cron: 0 0 3 * * ?, failover: true }
/// ",
///     |name| (name == "NAMESPACE").then(|| "billing".to_owned()),
/// )?;
/// assert_eq!(file.registry.as_deref(), Some("embedded://billing"));
/// let [report, clean_up] = &file.jobs[..] else { panic!("two jobs") };
/// assert_eq!((report.spec.job_name.as_str(), report.work), ("nightly-report", FileWork::Script));
/// assert_eq!((clean_up.spec.job_name.as_str(), clean_up.work), ("clean-up", FileWork::Code));
/// # Ok::<(), elasticjob::file::FileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobsFile {
    /// Where the jobs meet their peers, such as `zookeeper://10.0.0.1:2181/billing`.
    pub registry: Option<String>,
    /// Settings of the process.
    pub worker: Settings,
    /// The jobs, in the order of the file.
    pub jobs: Vec<FileJob>,
}

/// Settings of the process that runs the jobs. What is not written is left to the worker.
///
/// ```
/// use std::time::Duration;
/// use elasticjob::file::JobsFile;
///
/// let file = JobsFile::parse("{worker: {shutdownGrace: 1m 30s, preferred-network-ip: '10.0.'}, jobs: {}}", |_| None)?;
/// assert_eq!(file.worker.shutdown_grace, Some(Duration::from_secs(90)));
/// assert_eq!(file.worker.preferred_ip.as_deref(), Some("10.0."));
/// # Ok::<(), elasticjob::file::FileError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Name of the network interface whose address the instance goes by.
    pub preferred_interface: Option<String>,
    /// Beginning of the address that the instance goes by, or a regular expression for it.
    pub preferred_ip: Option<String>,
    /// How long runs may take to end after the process has been asked to stop.
    pub shutdown_grace: Option<Duration>,
    /// Where the status port listens, if there is to be one.
    pub status_port: Option<ListenAt>,
    /// Where the dump port listens, if there is to be one.
    pub dump_port: Option<ListenAt>,
    /// The file that keeps what happens, if one is to.
    pub event_file: Option<PathBuf>,
}

impl Settings {
    /// The two settings that decide on the instance's address.
    ///
    /// ```
    /// use elasticjob::file::JobsFile;
    ///
    /// let file = JobsFile::parse("{worker: {preferredNetworkInterface: eth1}, jobs: {}}", |_| None)?;
    /// assert_eq!(file.worker.preference().interface.as_deref(), Some("eth1"));
    /// # Ok::<(), elasticjob::file::FileError>(())
    /// ```
    #[must_use]
    pub fn preference(&self) -> Preference {
        Preference { interface: self.preferred_interface.clone(), ip: self.preferred_ip.clone() }
    }
}

/// A job of the file.
///
/// ```
/// use elasticjob::file::JobsFile;
///
/// let file = JobsFile::parse("jobs:\n  ping: {script: ping -c 1 example.com}\n", |_| None)?;
/// assert_eq!(file.jobs[0].spec.props["script.command.line"], "ping -c 1 example.com");
/// assert_eq!(file.jobs[0].line, 2);
/// # Ok::<(), elasticjob::file::FileError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileJob {
    /// The job's settings, found valid.
    pub spec: JobSpec,
    /// What the job does.
    pub work: FileWork,
    /// The name of its type, if it is [`FileWork::Typed`].
    pub job_type: Option<String>,
    /// The line of the file that has the job's name.
    pub line: usize,
}

/// What a job of the file does.
///
/// ```
/// use elasticjob::file::{FileWork, JobsFile};
///
/// let text = "
/// jobs:
///   list: { script: [echo, hello] }
///   java: { elasticJobType: SCRIPT, props: { script.command.line: date } }
///   ping: { http: https://example.com/ping }
///   code: {}
///   ours: { elasticJobType: SQL, props: { sql.statement: VACUUM } }
/// ";
/// let work: Vec<FileWork> = JobsFile::parse(text, |_| None)?.jobs.iter().map(|job| job.work).collect();
/// assert_eq!(work, [FileWork::Script, FileWork::Script, FileWork::Http, FileWork::Code, FileWork::Typed]);
/// # Ok::<(), elasticjob::file::FileError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileWork {
    /// Code that the program binds to the job's name.
    Code,
    /// The command line in the property `script.command.line`.
    Script,
    /// Requests to the address in the property `http.uri`.
    Http,
    /// What a type of job does that the program adds: see [`FileJob::job_type`].
    Typed,
}

impl JobsFile {
    /// Reads a file's text; `env` answers for the environment variables.
    ///
    /// ```
    /// use elasticjob::file::JobsFile;
    ///
    /// let error = JobsFile::parse("jobs:\n  a: { cron: '${NIGHTLY}' }\n", |_| None).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "line 2, column 15: jobs.a.cron needs the environment variable NIGHTLY, which is not set: \
    ///      set it, or write a default as in ${NIGHTLY:default}"
    /// );
    /// ```
    ///
    /// # Errors
    ///
    /// The first fault of the text, with its place, the setting, its value, and what to write instead.
    pub fn parse(text: &str, env: impl Fn(&str) -> Option<String>) -> Result<JobsFile, FileError> {
        let source = Source { text, env: &env };
        document::read(text).and_then(|map| top(&source, &map)).map_err(|fault| FileError::new(fault, text))
    }

    /// Reads a file, with the environment variables of this process.
    ///
    /// ```
    /// use elasticjob::file::JobsFile;
    ///
    /// let error = JobsFile::read("no-such-directory/jobs.yaml".as_ref()).unwrap_err();
    /// assert!(error.to_string().starts_with("no-such-directory/jobs.yaml: cannot be read: "));
    /// ```
    ///
    /// # Errors
    ///
    /// Why the file cannot be read, or the first fault of its text.
    pub fn read(path: &Path) -> Result<JobsFile, FileError> {
        let text = text_of(path).map_err(|error| FileError::unreadable(error).in_file(path))?;
        let env = |name: &str| std::env::var(name).ok();
        JobsFile::parse(&text, env).map_err(|error| error.in_file(path))
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    let refused = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    if bytes.len() as u64 > BYTES_MAX {
        return refused(format!("larger than {} MiB: split it into several files", BYTES_MAX >> 20));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            refused(format!("line {line} is not UTF-8: save the file in that encoding"))
        }
    }
}

fn top(source: &Source<'_>, map: &Map) -> Result<JobsFile, Fault> {
    let mut file = JobsFile { registry: None, worker: Settings::default(), jobs: Vec::new() };
    let mut has_jobs = false;
    for (name, field) in settings(source, "", map)? {
        match name.as_str() {
            "registry" => file.registry = Some(filled(&field)?),
            "worker" => file.worker = worker(source, &field)?,
            "jobs" => {
                file.jobs = jobs(source, &field)?;
                has_jobs = true;
            }
            _ if field.path.starts_with("x-") => {}
            "elasticjob" => {
                return Err(
                    field.misplaced("is not needed: write what stands below it at the top of the file")
                );
            }
            "regCenter" => {
                return Err(field.misplaced(
                    "is written as an address: `registry: zookeeper://host:2181/namespace` at the top of the file",
                ));
            }
            _ => return Err(field.unknown(&name, "the file", &TOP_KEYS)),
        }
    }
    if !has_jobs {
        return Err(Fault::whole(
            "jobs is missing: write `jobs:` and below it the jobs, each under its name",
        ));
    }
    Ok(file)
}

fn worker(source: &Source<'_>, field: &Field<'_>) -> Result<Settings, Fault> {
    let mut worker = Settings::default();
    if field.node.is_null() {
        return Ok(worker);
    }
    let document::Value::Map(map) = &field.node.value else {
        return Err(field.wrong(&field.node.shown(), "is no mapping: write settings below the key"));
    };
    for (name, field) in settings(source, &field.path, map)? {
        match name.as_str() {
            "preferredNetworkInterface" => worker.preferred_interface = Some(filled(&field)?),
            "preferredNetworkIp" => {
                let ip = filled(&field)?;
                Preference::check_ip(&ip).map_err(|reason| field.wrong(&ip, reason))?;
                worker.preferred_ip = Some(ip);
            }
            "shutdownGrace" => worker.shutdown_grace = Some(field.duration()?),
            "statusPort" => worker.status_port = Some(listen_at(&field)?),
            "dumpPort" => worker.dump_port = Some(listen_at(&field)?),
            "eventFile" => worker.event_file = Some(filled(&field)?.into()),
            _ => return Err(field.unknown(&name, "worker", &WORKER_KEYS)),
        }
    }
    Ok(worker)
}

fn jobs(source: &Source<'_>, field: &Field<'_>) -> Result<Vec<FileJob>, Fault> {
    let document::Value::Map(map) = &field.node.value else {
        return Err(if field.node.is_null() {
            field.misplaced("is empty: write the jobs below it, each under its name")
        } else {
            field.wrong(&field.node.shown(), "is no mapping: write each job under its name")
        });
    };
    map.entries.iter().map(|entry| job::read(source, entry)).collect()
}

fn listen_at(field: &Field<'_>) -> Result<ListenAt, Fault> {
    let text = filled(field)?;
    text.parse().map_err(|reason: String| field.wrong(&text, reason))
}

fn filled(field: &Field<'_>) -> Result<String, Fault> {
    let text = field.word()?;
    if text.trim().is_empty() {
        return Err(field.wrong(&text, "is blank: write a value, or remove the key"));
    }
    Ok(text)
}
