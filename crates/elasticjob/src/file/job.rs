//! One job of the file: Java's names on the left, a specification on the right.

use std::collections::BTreeMap;

use elasticjob_core::spec::{JobSpec, PoolKey, SpecError};

use super::document::{Entry, Map, Value};
use super::error::{Fault, Place, Shown};
use super::field::{Field, Source, settings};
use super::{FileJob, FileWork};

/// What a job may say, in the order in which messages list it.
const KEYS: [&str; 22] = [
    "cron",
    "timeZone",
    "shardingTotalCount",
    "shardingItemParameters",
    "jobParameter",
    "script",
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
];

/// The property that holds a script job's command line.
const COMMAND: &str = "script.command.line";

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
    script: Option<String>,
    /// The job says that it is a script, without saying which one.
    typed: bool,
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
            script: None,
            typed: false,
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
            "jobErrorHandlerType" => spec.job_error_handler_type = Some(field.word()?),
            "jobListenerTypes" => spec.job_listener_types = field.texts()?,
            "description" => spec.description = field.text()?,
            "props" => spec.props = field.properties()?,
            "disabled" => spec.disabled = field.flag()?,
            "overwrite" => spec.overwrite = field.flag()?,
            "label" => spec.label = Some(field.text()?).filter(|label| !label.is_empty()),
            "staticSharding" => spec.static_sharding = field.flag()?,
            "script" => self.script = Some(command(field)?),
            "elasticJobType" | "type" => {
                setting = "elasticJobType";
                check_type(field)?;
                self.typed = true;
            }
            _ => return Err(refuse(name, field)),
        }
        let written = Written { path: field.path.clone(), key: field.key, value: field.node.place };
        if self.settings.insert(setting.to_owned(), written).is_some() {
            return Err(field.misplaced(format!("is another name of {}: keep one of them", other(name))));
        }
        Ok(())
    }

    fn finish(mut self, path: String) -> Result<FileJob, Fault> {
        let work = self.work(&path)?;
        self.spec.validate().map_err(|error| self.locate(&error, path))?;
        Ok(FileJob { spec: self.spec, work, line: self.place.line })
    }

    fn work(&mut self, path: &str) -> Result<FileWork, Fault> {
        let fault = |setting: &str, reason: &str| {
            Err(match self.settings.get(setting) {
                Some(written) => Fault::new(written.key, &written.path, reason),
                None => Fault::new(self.place, path, reason),
            })
        };
        match (self.script.take(), self.spec.props.get(COMMAND)) {
            (Some(_), Some(_)) => {
                fault("props", "has script.command.line, but script says it already: keep one of them")
            }
            (Some(command), None) => {
                self.spec.props.insert(COMMAND.to_owned(), command);
                Ok(FileWork::Script)
            }
            (None, Some(command)) if self.typed && command.trim().is_empty() => {
                fault("props", "has an empty script.command.line: write the command line")
            }
            (None, Some(_)) if self.typed => Ok(FileWork::Script),
            (None, Some(_)) => fault(
                "props",
                "has script.command.line, but the job is no script: add `elasticJobType: SCRIPT`",
            ),
            (None, None) if self.typed => fault(
                "elasticJobType",
                "is SCRIPT, but there is no command line: add `script: /path/to/script`",
            ),
            (None, None) => Ok(FileWork::Code),
        }
    }

    /// Gives an error of the specification the place of the setting it speaks of.
    fn locate(&self, error: &SpecError, path: String) -> Fault {
        let setting = match error {
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
            SpecError::EmptyPropKey { .. } => "props",
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

fn command(field: &Field<'_>) -> Result<String, Fault> {
    let command = field.word()?;
    if command.trim().is_empty() {
        return Err(field.wrong(&command, "is blank: write the command line"));
    }
    Ok(command)
}

fn check_type(field: &Field<'_>) -> Result<(), Fault> {
    let kind = field.word()?;
    match kind.to_ascii_uppercase().as_str() {
        "SCRIPT" => Ok(()),
        "HTTP" | "DATAFLOW" => Err(field.wrong(
            &kind,
            "is not available in this version: write SCRIPT, or remove the key and bind code to the job's name",
        )),
        "SIMPLE" => Err(field.wrong(
            &kind,
            "is not written in the file: remove the key, and bind code to the job's name",
        )),
        _ => Err(field.wrong(
            &kind,
            "is no type of job: known is SCRIPT; without the key, the job is code bound to its name",
        )),
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
        "http" | "dataflow" => {
            "is not available in this version: write a script, or bind code to the job's name"
        }
        "streamingProcess" => "is not available in this version, which has no dataflow jobs: remove the key",
        "scriptCommandLine" => "is called script here: rename the key",
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
