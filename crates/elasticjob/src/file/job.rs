//! One job of the file: Java's names on the left, a specification on the right.

use std::collections::BTreeMap;

use elasticjob_core::policy;
use elasticjob_core::spec::{JobSpec, PoolKey, SpecError};

use super::document::{Entry, Map, Value};
use super::error::{Fault, Place, Shown};
use super::field::{Field, Source, settings};
use super::{FileJob, FileWork};
use crate::executor::script::COMMAND_LINE;
use crate::handler;
use crate::job::http;
use crate::job::script::command_line;

/// What a job may say, in the order in which messages list it.
const KEYS: [&str; 33] = [
    "cron",
    "timeZone",
    "shardingTotalCount",
    "shardingItemParameters",
    "jobParameter",
    "script",
    "http",
    "elasticJobType",
    "props",
    "monitorExecution",
    "failover",
    "misfire",
    "maxTimeDiffSeconds",
    "reconcileIntervalMinutes",
    "jobShardingStrategyType",
    "jobExecutorThreadPoolSizeProviderType",
    "jobErrorHandlerType",
    "jobListenerTypes",
    "description",
    "disabled",
    "overwrite",
    "label",
    "staticSharding",
    "every",
    "delay",
    "validFrom",
    "validUntil",
    "catchUp",
    "startJitter",
    "timeLimit",
    "retries",
    "retryBackoff",
    "retryBackoffMax",
];

/// A type of job that the file alone can describe: its key, its name to Java, and the property that says what to do.
struct Kind {
    work: FileWork,
    key: &'static str,
    name: &'static str,
    prop: &'static str,
    what: &'static str,
    example: &'static str,
}

const SCRIPT: Kind = Kind {
    work: FileWork::Script,
    key: "script",
    name: "SCRIPT",
    prop: COMMAND_LINE,
    what: "command line",
    example: "/path/to/script",
};

const HTTP: Kind = Kind {
    work: FileWork::Http,
    key: "http",
    name: http::CLASS,
    prop: http::URI,
    what: "address",
    example: "https://example.com/",
};

/// Reads a job that stands under its name.
pub(super) fn read(source: &Source<'_>, entry: &Entry) -> Result<FileJob, Fault> {
    let path = format!("jobs.{}", entry.key);
    let nothing = Map { entries: Vec::new(), flow: false };
    let map = match &entry.node.value {
        Value::Map(map) => map,
        Value::Scalar { .. } | Value::List(_) if entry.node.is_null() => &nothing,
        Value::Scalar { .. } | Value::List(_) => {
            let reason = format!("`{}` is no job: write its settings below its name", entry.node.shown());
            return Err(Fault::new(entry.node.place, path, reason));
        }
    };
    let mut draft = Draft::new(&entry.key, entry.place);
    for (name, field) in settings(source, &path, map)? {
        draft.set(&name, &field)?;
    }
    draft.finish(path)
}

/// A job of which some settings are known.
struct Draft {
    spec: JobSpec,
    /// Where the job's name stands.
    place: Place,
    /// The settings that are written.
    settings: BTreeMap<String, Written>,
    items: BTreeMap<u32, Place>,
    /// Properties that have a name of their own in the file.
    policies: Vec<(&'static str, String)>,
    script: Option<String>,
    http: Option<String>,
    /// The type that the job says it is of.
    typed: Option<&'static Kind>,
    /// The same, of a type that the program adds.
    custom: Option<String>,
    error_handlers: Vec<String>,
}

/// Where a setting stands, and how it is spelled there.
struct Written {
    path: String,
    key: Place,
    value: Place,
}

impl Draft {
    fn new(name: &str, place: Place) -> Draft {
        Draft {
            spec: JobSpec::new(name, 1),
            place,
            settings: BTreeMap::new(),
            items: BTreeMap::new(),
            policies: Vec::new(),
            script: None,
            http: None,
            typed: None,
            custom: None,
            error_handlers: Vec::new(),
        }
    }

    fn set(&mut self, name: &str, field: &Field<'_>) -> Result<(), Fault> {
        let spec = &mut self.spec;
        let mut setting = name;
        match name {
            "cron" => spec.cron = Some(field.cron()?),
            "timeZone" => spec.time_zone = Some(field.zone()?),
            "shardingTotalCount" => spec.sharding_total_count = field.count()?,
            "shardingItemParameters" => {
                (spec.sharding_item_parameters, self.items) = field.item_parameters()?;
            }
            "jobParameter" => spec.job_parameter = field.text()?,
            "monitorExecution" => spec.monitor_execution = field.flag()?,
            "failover" => spec.failover = field.flag()?,
            "misfire" => spec.misfire = field.flag()?,
            "maxTimeDiffSeconds" => spec.max_time_diff_seconds = field.integer()?,
            "reconcileIntervalMinutes" => spec.reconcile_interval_minutes = field.integer()?,
            "jobShardingStrategyType" => spec.job_sharding_strategy_type = Some(field.word()?),
            "jobExecutorThreadPoolSizeProviderType" | "jobExecutorServiceHandlerType" => {
                // The older name is read, but the newer one is written: it is what today's Java reads.
                setting = PoolKey::ThreadPoolSizeProvider.name();
                spec.job_executor_thread_pool_size_provider_type = Some(field.word()?);
            }
            "jobErrorHandlerType" => self.error_handlers = field.texts()?,
            "jobListenerTypes" => spec.job_listener_types = field.texts()?,
            "description" => spec.description = field.text()?,
            "props" => spec.props = field.properties()?,
            "disabled" => spec.disabled = field.flag()?,
            "overwrite" => spec.overwrite = field.flag()?,
            "label" => spec.label = Some(field.text()?).filter(|label| !label.is_empty()),
            "staticSharding" => spec.static_sharding = field.flag()?,
            "script" => self.script = Some(command(field)?),
            "http" => self.http = Some(address(field)?),
            "elasticJobType" | "type" => {
                setting = "elasticJobType";
                let name = field.word()?;
                self.typed = kind(&name, field)?;
                self.custom = Some(name).filter(|_| self.typed.is_none());
            }
            name => match policy::NAMES.iter().find(|(it, _)| *it == name) {
                Some((_, prop)) => self.policies.push((prop, field.text()?)),
                None => return Err(refuse(name, field)),
            },
        }
        let written = Written { path: field.path.clone(), key: field.key, value: field.node.place };
        if self.settings.insert(setting.to_owned(), written).is_some() {
            return Err(field.misplaced(format!("is another name of {}: keep one of them", other(name))));
        }
        Ok(())
    }

    fn finish(mut self, path: String) -> Result<FileJob, Fault> {
        let work = self.work(&path)?;
        handler::write(&mut self.spec, &self.error_handlers);
        self.write_policies(&path)?;
        let valid = self.spec.validate().and_then(|()| self.spec.check_secrets(None));
        valid.map_err(|error| self.locate(&error, path))?;
        Ok(FileJob { spec: self.spec, work, job_type: self.custom, line: self.place.line })
    }

    fn write_policies(&mut self, path: &str) -> Result<(), Fault> {
        for (prop, value) in std::mem::take(&mut self.policies) {
            if self.spec.props.insert(prop.to_owned(), value).is_some() {
                let reason = format!("has {prop}, but {} says it already: keep one of them", name_of(prop));
                return Err(self.fault("props", path, reason));
            }
        }
        Ok(())
    }

    fn work(&mut self, path: &str) -> Result<FileWork, Fault> {
        let written = [(&SCRIPT, self.script.take()), (&HTTP, self.http.take())];
        let mut written = written.into_iter().filter_map(|(kind, value)| Some((kind, value?)));
        let first = written.next();
        if let Some((second, _)) = written.next() {
            return Err(self.fault(second.key, path, "makes the job of two types: keep one of them"));
        }
        if let (Some((kind, _)), Some(typed)) = (&first, self.typed)
            && kind.work != typed.work
        {
            let reason = format!("is {}, but the job has {}: keep one of them", typed.name, kind.key);
            return Err(self.fault("elasticJobType", path, reason));
        }
        if let (Some((kind, _)), Some(name)) = (&first, &self.custom) {
            let reason = format!("is {}, but the job has {}: keep one of them", Shown(name), kind.key);
            return Err(self.fault("elasticJobType", path, reason));
        }
        match (first, self.typed) {
            (None, None) if self.custom.is_some() => Ok(FileWork::Typed),
            (Some((kind, _)), _) if self.spec.props.contains_key(kind.prop) => {
                let reason = format!("has {}, but {} says it already: keep one of them", kind.prop, kind.key);
                Err(self.fault("props", path, reason))
            }
            (Some((kind, value)), _) => {
                self.spec.props.insert(kind.prop.to_owned(), value);
                Ok(self.of(kind))
            }
            (None, Some(kind)) => match self.spec.props.get(kind.prop) {
                Some(value) if value.trim().is_empty() => {
                    let reason = format!("has an empty {}: write the {}", kind.prop, kind.what);
                    Err(self.fault("props", path, reason))
                }
                Some(_) => Ok(self.of(kind)),
                None => {
                    let Kind { name, what, key, example, .. } = kind;
                    let reason = format!("is {name}, but there is no {what}: add `{key}: {example}`");
                    Err(self.fault("elasticJobType", path, reason))
                }
            },
            (None, None) => {
                let stray = [(&SCRIPT, "no script"), (&HTTP, "no HTTP job")];
                let stray = stray.iter().find(|(kind, _)| self.spec.props.contains_key(kind.prop));
                stray.map_or(Ok(FileWork::Code), |(Kind { prop, name, .. }, no_kind)| {
                    let reason =
                        format!("has {prop}, but the job is {no_kind}: add `elasticJobType: {name}`");
                    Err(self.fault("props", path, reason))
                })
            }
        }
    }

    fn of(&mut self, kind: &Kind) -> FileWork {
        if kind.work == FileWork::Http {
            // Java has no default for it, and may read what is stored.
            self.spec.props.entry(http::METHOD.to_owned()).or_insert_with(|| "GET".to_owned());
        }
        kind.work
    }

    fn fault(&self, setting: &str, path: &str, reason: impl Into<String>) -> Fault {
        match self.settings.get(setting) {
            Some(written) => Fault::new(written.key, &written.path, reason),
            None => Fault::new(self.place, path, reason),
        }
    }

    /// Gives an error of the specification the place of the setting it speaks of.
    fn locate(&self, error: &SpecError, path: String) -> Fault {
        let setting = match error {
            SpecError::Property { key, value, fault } => {
                let written = self.settings.get(name_of(key)).or(self.settings.get("props"));
                let reason =
                    if self.settings.contains_key(name_of(key)) { String::new() } else { format!("{key} ") };
                let reason = format!("{reason}`{}` {fault}", Shown(value));
                let (place, path) = written.map_or((self.place, &path), |it| (it.value, &it.path));
                return Fault::new(place, path, reason);
            }
            SpecError::JobName { value, fault } => {
                return Fault::new(
                    self.place,
                    "jobs",
                    format!("has the name `{}`, which {fault}", Shown(value)),
                );
            }
            SpecError::ShardCount { .. } => "shardingTotalCount",
            SpecError::ItemParameter { .. }
            | SpecError::DuplicateItem { .. }
            | SpecError::ItemOutOfRange { .. } => "shardingItemParameters",
            SpecError::Cron { .. } => "cron",
            SpecError::TimeZone { .. } => "timeZone",
            SpecError::Pool { .. } => PoolKey::ThreadPoolSizeProvider.name(),
            SpecError::EmptyPropKey { .. } | SpecError::Secret { .. } => "props",
            _ => return Fault::new(self.place, path, error.to_string()),
        };
        let text = error.to_string();
        let (Some(written), Some(reason)) = (self.settings.get(setting), text.strip_prefix(setting)) else {
            return Fault::new(self.place, path, text);
        };
        let mut place = written.value;
        if let SpecError::ItemOutOfRange { item, .. } = error {
            place = self.items.get(item).copied().unwrap_or(place);
        }
        Fault::new(place, &written.path, reason.trim_start())
    }
}

/// How the file calls a property.
fn name_of(prop: &str) -> &'static str {
    policy::NAMES.iter().find(|(_, it)| *it == prop).map_or("props", |(name, _)| name)
}

/// A command line, or a list of the words that it would have.
fn command(field: &Field<'_>) -> Result<String, Fault> {
    if matches!(field.node.value, Value::List(_)) {
        let words = field.texts()?;
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            return Err(field.misplaced("has no program: write it first in the list"));
        }
        return Ok(command_line(words));
    }
    let command = field.word()?;
    if command.trim().is_empty() {
        return Err(field.wrong(&command, "is blank: write the command line"));
    }
    Ok(command)
}

fn address(field: &Field<'_>) -> Result<String, Fault> {
    let address = field.word()?;
    let scheme = address.trim().split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("http" | "https") => Ok(address),
        _ => Err(field.wrong(&address, "is no address: write one that begins with http:// or https://")),
    }
}

/// A type that is always there; `None` if the program has to add it.
fn kind(name: &str, field: &Field<'_>) -> Result<Option<&'static Kind>, Fault> {
    match name.trim().to_ascii_uppercase().as_str() {
        "SCRIPT" => Ok(Some(&SCRIPT)),
        "HTTP" => Ok(Some(&HTTP)),
        "SIMPLE" | "DATAFLOW" => {
            Err(field
                .wrong(name, "is not written in the file: remove the key, and bind code to the job's name"))
        }
        "" => Err(field.wrong(name, "is blank: write the name of a type, or remove the key")),
        _ => Ok(None),
    }
}

/// The other name of a setting that has two.
fn other(name: &str) -> &'static str {
    match name {
        "type" => "elasticJobType",
        "elasticJobType" => "type",
        "jobExecutorServiceHandlerType" => "jobExecutorThreadPoolSizeProviderType",
        _ => "jobExecutorServiceHandlerType",
    }
}

/// Says why a key is not taken. Keys that other files have for good reasons get a remedy of their own.
fn refuse(name: &str, field: &Field<'_>) -> Fault {
    let remedy = match name {
        "elasticJobClass" | "jobClass" | "class" | "jobRef" => {
            "names a Java class, but code is bound to a job by the job's name: remove the key, and bind the code in the program"
        }
        "dataflow" => "is not written in the file: remove the key, and bind code to the job's name",
        "streamingProcess" => "is a property: write `streaming.process: true` below props",
        "scriptCommandLine" => "is called script here: rename the key",
        "httpUri" | "uri" | "url" => "is called http here: rename the key",
        "jobName" | "id" => "is not needed, the job's name is the key above: remove it",
        "jobBootstrapBeanName" => "is not needed, a job is triggered by its name: remove it",
        "jobExtraConfigurations" | "tracing" => "is not available in this version: remove the key",
        "regCenter" | "registryCenterRef" => "is not a job's: write `registry:` at the top of the file",
        _ => return field.unknown(name, "a job", &KEYS),
    };
    field.misplaced(remedy)
}

#[cfg(test)]
mod tests {
    use super::KEYS;
    use crate::file::JobsFile;

    #[test]
    fn every_policy_has_a_key() {
        assert!(elasticjob_core::policy::NAMES.iter().all(|(name, _)| KEYS.contains(name)));
    }

    #[test]
    fn every_key_that_messages_list_is_taken_in_both_spellings() {
        for key in KEYS {
            let kebab: String = key
                .chars()
                .flat_map(|c| c.is_ascii_uppercase().then_some('-').into_iter().chain(c.to_lowercase()))
                .collect();
            for key in [key, &kebab] {
                let found = JobsFile::parse(&format!("jobs: {{a: {{{key}: [[1]]}}}}"), |_| None);
                let message = found.unwrap_err().to_string();
                assert!(!message.contains("is no setting"), "{message}");
            }
        }
    }
}
