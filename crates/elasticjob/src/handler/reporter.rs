//! From a job's configuration to its error handlers, and from a failure to each of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use elasticjob_core::spec::{ERROR_HANDLERS, JobSpec};

use super::builtin::{Known, OURS};
use super::desk::{self, Inbox, Route};
use super::{Failure, text};
use crate::error::Error;
use crate::executor::{Props, TypeError};
use crate::extensions::Named;

/// At most one report in this time, for each destination.
const INTERVAL: &str = "elasticjob.error.interval";
/// How long one call of a handler may take.
const TIMEOUT: &str = "elasticjob.error.timeout";

const INTERVAL_DEFAULT: Duration = Duration::from_secs(60);
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Java's default.
const LOG: &str = "LOG";

/// The names of a job's handlers, in order.
fn names(spec: &JobSpec) -> Vec<&str> {
    let written = [spec.props.get(ERROR_HANDLERS), spec.job_error_handler_type.as_ref()];
    let lists = written.into_iter().flatten().map(|text| split(text));
    lists.into_iter().find(|names| !names.is_empty()).unwrap_or_else(|| vec![LOG])
}

fn split(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !names.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            names.push(name);
        }
    }
    names
}

/// Writes down a job's handlers so that Java can still load the document: what it has no name for goes to `props`,
/// and it takes the first that it knows.
pub(crate) fn choose<T: AsRef<str>>(spec: &mut JobSpec, handlers: &[T]) {
    let all = handlers.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(",");
    let names = split(&all);
    let is_ours = |name: &&str| OURS.iter().any(|it| it.eq_ignore_ascii_case(name));
    spec.props.remove(ERROR_HANDLERS);
    spec.job_error_handler_type = names.iter().find(|name| !is_ours(name)).map(|name| (*name).to_owned());
    if names.len() > 1 || names.first().is_some_and(is_ours) {
        spec.props.insert(ERROR_HANDLERS.to_owned(), names.join(","));
    }
}

/// The same for a jobs file, whose properties may say for themselves what Java is not to see.
pub(crate) fn write(spec: &mut JobSpec, handlers: &[String]) {
    if spec.props.contains_key(ERROR_HANDLERS) {
        spec.job_error_handler_type = handlers.first().cloned();
    } else {
        choose(spec, handlers);
    }
}

/// Whether a job's handlers exist and can work with its properties.
pub(crate) fn check(spec: &JobSpec, known: &Named<Known>) -> Result<(), Error> {
    let job = || spec.job_name.clone();
    for name in names(spec) {
        let handler = known.find(name).ok_or_else(|| Error::Unknown {
            job: job(),
            what: "error handler",
            name: name.to_owned(),
            known: known.list(),
        })?;
        if let Known::Told(handler) = handler {
            handler.check(&spec.props).map_err(|error| Error::Handler {
                job: job(),
                handler: name.to_owned(),
                error,
            })?;
        }
    }
    pace(Props(&spec.props)).map(drop).map_err(|error| Error::Type { job: job(), error })
}

/// Has each handler of a job tell one failure, and says which could not.
pub(crate) async fn tell_once(spec: &JobSpec, known: &Named<Known>, failure: Failure) -> Result<(), Error> {
    for channel in Current::read(spec, known).channels {
        match channel {
            Channel::Log | Channel::Throw | Channel::Unknown(_) => log(&failure),
            Channel::Desk(route) => {
                let (job, handler) = (spec.job_name.clone(), route.name.to_string());
                let told = desk::tell_one(route, failure.clone()).await;
                told.map_err(|error| Error::Handler { job, handler, error: error.into() })?;
            }
        }
    }
    Ok(())
}

fn pace(props: Props<'_>) -> Result<(Duration, Duration), TypeError> {
    let interval = props.duration(INTERVAL)?.unwrap_or(INTERVAL_DEFAULT);
    Ok((interval, props.duration(TIMEOUT)?.unwrap_or(TIMEOUT_DEFAULT)))
}

/// Hands the failures of one job to its handlers, as its configuration names them at the moment.
#[derive(Clone)]
pub(crate) struct Reporter {
    /// What the program says of the job, until the registry says what counts.
    ours: Arc<JobSpec>,
    known: Named<Known>,
    inbox: Inbox,
    current: Option<Current>,
}

/// What a configuration comes to.
#[derive(Clone)]
struct Current {
    named: Option<String>,
    props: Arc<BTreeMap<String, String>>,
    channels: Vec<Channel>,
}

#[derive(Clone)]
enum Channel {
    Log,
    Throw,
    Desk(Route),
    /// Somebody wrote it into the registry, for peers who know it.
    Unknown(String),
}

impl Reporter {
    pub(crate) fn new(ours: JobSpec, known: Named<Known>, inbox: Inbox) -> Reporter {
        Reporter { ours: Arc::new(ours), known, inbox, current: None }
    }

    /// Tells a failure to all handlers of the job. It does not wait for any of them.
    pub(crate) fn handle(&mut self, spec: Option<&JobSpec>, failure: &Failure) {
        let spec = spec.unwrap_or(&self.ours);
        let fits = |it: &Current| *it.props == spec.props && it.named == spec.job_error_handler_type;
        if !self.current.as_ref().is_some_and(fits) {
            self.current = Some(Current::read(spec, &self.known));
        }
        let current = self.current.as_ref().expect("it has just been read");
        for channel in &current.channels {
            match channel {
                Channel::Log => log(failure),
                Channel::Throw => {
                    log(failure);
                    self.inbox.throw(failure.clone());
                }
                Channel::Desk(route) => self.inbox.put(route.clone(), failure.clone()),
                Channel::Unknown(name) => {
                    tracing::error!("error handler `{name}` is unknown here; known: {}", self.known.list());
                    log(failure);
                }
            }
        }
    }
}

impl Current {
    fn read(spec: &JobSpec, known: &Named<Known>) -> Current {
        let props = Arc::new(spec.props.clone());
        let (interval, limit) = pace(Props(&props)).unwrap_or_else(|error| {
            tracing::error!(job = spec.job_name, "{error}; it counts as not written");
            (INTERVAL_DEFAULT, TIMEOUT_DEFAULT)
        });
        let channel = |name: &str| match known.find(name) {
            Some(Known::Ignore) => None,
            Some(Known::Log) => Some(Channel::Log),
            Some(Known::Throw) => Some(Channel::Throw),
            Some(Known::Told(handler)) => Some(Channel::Desk(Route {
                name: name.into(),
                destination: handler.destination(&props).into(),
                handler: handler.clone(),
                props: props.clone(),
                interval,
                limit,
            })),
            None => Some(Channel::Unknown(name.to_owned())),
        };
        let channels = names(spec).into_iter().filter_map(channel).collect();
        Current { named: spec.job_error_handler_type.clone(), props, channels }
    }
}

fn log(failure: &Failure) {
    let Failure { job, item, run, message, .. } = failure;
    let job = &**job;
    tracing::error!(job, item, task_id = run.as_deref(), "{}: {message}", text::headline(job));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(handlers: &[&str]) -> (Option<String>, Option<String>) {
        let mut spec = JobSpec::new("j", 1);
        choose(&mut spec, handlers);
        (spec.job_error_handler_type.clone(), spec.props.get(ERROR_HANDLERS).cloned())
    }

    #[test]
    fn java_can_load_whatever_is_chosen() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(chosen(&[]), (None, None));
        assert_eq!(chosen(&["EMAIL"]), (text("EMAIL"), None));
        assert_eq!(chosen(&["pager"]), (text("pager"), None));
        assert_eq!(chosen(&["SLACK"]), (None, text("SLACK")));
        assert_eq!(chosen(&["slack", "EMAIL", " slack", "log "]), (text("EMAIL"), text("slack,EMAIL,log")));
        assert_eq!(chosen(&["LOG, EMAIL", ""]), (text("LOG"), text("LOG,EMAIL")));
    }

    #[test]
    fn what_is_chosen_is_what_is_read() {
        for (handlers, read) in [
            (&[][..], &["LOG"][..]),
            (&["EMAIL"], &["EMAIL"]),
            (&["SLACK", "LOG"], &["SLACK", "LOG"]),
            (&["WEBHOOK"], &["WEBHOOK"]),
        ] {
            let mut spec = JobSpec::new("j", 1);
            choose(&mut spec, handlers);
            assert_eq!(names(&spec), read);
        }
        // Whoever wrote it into the registry, it is read as it was meant.
        let spec = JobSpec { job_error_handler_type: Some(" LOG,,EMAIL ".into()), ..JobSpec::new("j", 1) };
        assert_eq!(names(&spec), ["LOG", "EMAIL"]);
        let spec = JobSpec { job_error_handler_type: Some(" ".into()), ..JobSpec::new("j", 1) };
        assert_eq!(names(&spec), ["LOG"]);
    }
}
