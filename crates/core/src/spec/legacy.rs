//! Documents of the ancestors: 1.x kept a node for each setting, 2.x one JSON document.
//!
//! Both are read for migration only. What has no counterpart today becomes a warning, so that nothing disappears silently.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{JobSpec, SpecError};

/// A job read from an older generation's settings.
///
/// ```
/// use elasticjob_core::spec::legacy::{self, JobType};
///
/// let json = r#"{"jobName":"j","jobClass":"a.B","jobType":"SIMPLE","cron":"0 0 2 * * ?","shardingTotalCount":2,"monitorPort":9888}"#;
/// let imported = legacy::from_v2(json)?;
/// assert_eq!(imported.job_type, Some(JobType::Simple));
/// assert!(imported.warnings[0].contains("monitorPort"));
/// # Ok::<(), elasticjob_core::spec::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The settings.
    pub spec: JobSpec,
    /// The class that ran the job; in 3.x it is the value of the job's own node.
    pub job_class: Option<String>,
    /// What kind of job it was, if the document said so.
    pub job_type: Option<JobType>,
    /// One sentence for everything that has no counterpart.
    pub warnings: Vec<String>,
}

/// The kinds of jobs of 1.x and 2.x.
///
/// ```
/// use elasticjob_core::spec::legacy::JobType;
///
/// assert_eq!(JobType::parse("DATA_FLOW"), Some(JobType::Dataflow));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobType {
    /// One call for each item.
    Simple,
    /// Fetch and process.
    Dataflow,
    /// A command.
    Script,
}

impl JobType {
    /// Reads the name that 1.x or 2.x had for it.
    ///
    /// ```
    /// use elasticjob_core::spec::legacy::JobType;
    ///
    /// assert_eq!(JobType::parse("SCRIPT"), Some(JobType::Script));
    /// assert_eq!(JobType::parse("HTTP"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<JobType> {
        match text.trim().to_ascii_uppercase().as_str() {
            "SIMPLE" => Some(JobType::Simple),
            "DATA_FLOW" | "DATAFLOW" => Some(JobType::Dataflow),
            "SCRIPT" => Some(JobType::Script),
            _ => None,
        }
    }
}

/// Which generation wrote a job's `config` node.
///
/// ```
/// use elasticjob_core::spec::legacy::{Generation, detect};
///
/// assert_eq!(detect(true, ""), Generation::V1);
/// assert_eq!(detect(false, "jobName: j\n"), Generation::V3);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// A node for each setting.
    V1,
    /// One JSON document.
    V2,
    /// One YAML document.
    V3,
}

/// Tells the generation from whether `config` has children, and from its data.
///
/// JSON is YAML too, so a `{` alone decides nothing: 2.x always names the job's type, and 3.x never does.
///
/// ```
/// use elasticjob_core::spec::legacy::{Generation, detect};
///
/// assert_eq!(detect(false, r#"{"jobName":"j","jobType":"SIMPLE"}"#), Generation::V2);
/// assert_eq!(detect(false, r#"{"jobName":"j","shardingTotalCount":1}"#), Generation::V3);
/// ```
#[must_use]
pub fn detect(config_has_children: bool, config_data: &str) -> Generation {
    if config_has_children {
        return Generation::V1;
    }
    match serde_json::from_str(config_data) {
        Ok(Value::Object(object)) if object.contains_key("jobType") || object.contains_key("jobClass") => {
            Generation::V2
        }
        _ => Generation::V3,
    }
}

/// Reads the children of a 1.x `config` node, given by name.
///
/// A missing setting has the builder's default; a boolean is true only if it says so.
///
/// ```
/// use std::collections::BTreeMap;
/// use elasticjob_core::spec::legacy;
///
/// let nodes = BTreeMap::from([("cron", "0 0 2 * * ?"), ("shardingTotalCount", "3"), ("failover", "TRUE")]);
/// let nodes = nodes.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect();
/// let imported = legacy::from_v1("nightly", &nodes)?;
/// assert!(imported.spec.failover && imported.spec.misfire);
/// # Ok::<(), elasticjob_core::spec::SpecError>(())
/// ```
///
/// # Errors
///
/// The setting that cannot be read, or that is missing and has no default.
pub fn from_v1(job_name: &str, nodes: &BTreeMap<String, String>) -> Result<Imported, SpecError> {
    let mut import =
        Import::new(job_name, nodes.iter().map(|(name, text)| (name.clone(), Value::String(text.clone()))));
    let spec = &mut import.imported.spec;
    (spec.monitor_execution, spec.misfire) = (true, true);
    import.common()?;
    for (name, meaning) in [
        ("processCountIntervalSeconds", "counts are metrics now"),
        ("concurrentDataProcessThreadCount", "a dataflow job processes one batch for each item"),
        ("fetchDataCount", "the job's own code decides how much to fetch"),
    ] {
        import.drop_setting(name, meaning);
    }
    import.finish()
}

/// Reads a 2.x document, as a job process or a console wrote it.
///
/// A missing setting has the default of 2.x's reader: in particular, `misfire` is off.
///
/// ```
/// use elasticjob_core::spec::legacy;
///
/// let error = legacy::from_v2(r#"{"jobName":"j","jobType":"SIMPLE","cron":"* * * * * ?"}"#).unwrap_err();
/// assert_eq!(error.to_string(), "jobClass is missing: name the class that runs the job");
/// ```
///
/// # Errors
///
/// Where the text stops being JSON, or the setting that cannot be read, or that is missing and has no default.
pub fn from_v2(json: &str) -> Result<Imported, SpecError> {
    let document: BTreeMap<String, Value> = serde_json::from_str(json).map_err(|error| SpecError::Json {
        line: error.line(),
        column: error.column(),
        reason: reason(&error),
    })?;
    let mut import = Import::new("", document);
    let spec = &mut import.imported.spec;
    (spec.monitor_execution, spec.misfire) = (true, false);
    import.imported.spec.job_name = import.text("jobName")?.unwrap_or_default();
    import.common()?;
    import.handlers()?;
    import.imported.spec.reconcile_interval_minutes =
        import.number("reconcileIntervalMinutes")?.unwrap_or(10);
    import.imported.spec.disabled = import.flag("disabled")?.unwrap_or(false);
    import.imported.spec.overwrite = import.flag("overwrite")?.unwrap_or(false);
    import.must_be_complete()?;
    import.finish()
}

/// The settings not yet understood, and what has become of the others.
struct Import {
    left: BTreeMap<String, Value>,
    imported: Imported,
}

impl Import {
    fn new(job_name: &str, settings: impl IntoIterator<Item = (String, Value)>) -> Import {
        let spec = JobSpec::new(job_name, 0);
        let imported = Imported { spec, job_class: None, job_type: None, warnings: Vec::new() };
        Import { left: settings.into_iter().filter(|(_, value)| !value.is_null()).collect(), imported }
    }

    /// What both generations have.
    fn common(&mut self) -> Result<(), SpecError> {
        self.imported.job_type = self.job_type()?;
        self.imported.job_class = self.filled("jobClass")?;
        self.imported.spec.cron = self.filled("cron")?;
        self.imported.spec.sharding_total_count = self.count("shardingTotalCount")?;
        self.imported.spec.sharding_item_parameters =
            self.text("shardingItemParameters")?.unwrap_or_default();
        self.imported.spec.job_parameter = self.text("jobParameter")?.unwrap_or_default();
        self.imported.spec.description = self.text("description")?.unwrap_or_default();
        let spec = &self.imported.spec;
        let (monitored, misfire) = (spec.monitor_execution, spec.misfire);
        self.imported.spec.monitor_execution = self.flag("monitorExecution")?.unwrap_or(monitored);
        self.imported.spec.misfire = self.flag("misfire")?.unwrap_or(misfire);
        self.imported.spec.failover = self.flag("failover")?.unwrap_or(false);
        self.imported.spec.max_time_diff_seconds = self.number("maxTimeDiffSeconds")?.unwrap_or(-1);
        self.strategy()?;
        self.properties()?;
        self.monitor_port()
    }

    fn job_type(&mut self) -> Result<Option<JobType>, SpecError> {
        let Some(text) = self.filled("jobType")? else { return Ok(None) };
        let fault = "unknown: write SIMPLE, DATAFLOW or SCRIPT";
        JobType::parse(&text).map(Some).ok_or_else(|| SpecError::Value {
            field: "jobType".to_owned(),
            value: text,
            fault,
        })
    }

    fn strategy(&mut self) -> Result<(), SpecError> {
        let Some(class) = self.filled("jobShardingStrategyClass")? else { return Ok(()) };
        let strategy = match simple_name(&class) {
            "AverageAllocationJobShardingStrategy" => "AVG_ALLOCATION",
            "OdevitySortByNameJobShardingStrategy" => "ODEVITY",
            "RotateServerByNameJobShardingStrategy" | "RoundRobinByNameJobShardingStrategy" => "ROUND_ROBIN",
            _ => {
                self.warn(format!("jobShardingStrategyClass `{class}` is custom code: register a strategy and set jobShardingStrategyType"));
                return Ok(());
            }
        };
        self.imported.spec.job_sharding_strategy_type = Some(strategy.to_owned());
        Ok(())
    }

    /// What is a property today.
    fn properties(&mut self) -> Result<(), SpecError> {
        let kind = self.imported.job_type;
        // The 2.x console writes this for every job, so it says something about a dataflow job only.
        if let Some(streaming) = self.flag("streamingProcess")?
            && (streaming || kind == Some(JobType::Dataflow))
        {
            self.imported.spec.props.insert("streaming.process".to_owned(), streaming.to_string());
        }
        if let Some(command) = self.filled("scriptCommandLine")? {
            self.imported.spec.props.insert("script.command.line".to_owned(), command);
        }
        Ok(())
    }

    fn monitor_port(&mut self) -> Result<(), SpecError> {
        if let Some(port) = self.number("monitorPort")?.filter(|port| *port >= 0) {
            self.warn(format!(
                "monitorPort {port} belongs to the process now: set the dump port of the worker"
            ));
        }
        Ok(())
    }

    /// 2.x' classes for pool and errors.
    fn handlers(&mut self) -> Result<(), SpecError> {
        let handlers = match self.left.remove("jobProperties") {
            None => return Ok(()),
            Some(Value::Object(handlers)) => handlers,
            Some(value) => {
                return Err(wrong(
                    "jobProperties",
                    &value,
                    "no object: write {\"job_exception_handler\": class}",
                ));
            }
        };
        for (name, value) in handlers {
            let class = value.as_str().unwrap_or_default();
            match (name.as_str(), simple_name(class)) {
                (_, "") => {}
                ("job_exception_handler", "DefaultJobExceptionHandler") => self.imported.spec.job_error_handler_type = Some("LOG".to_owned()),
                ("executor_service_handler", "DefaultExecutorServiceHandler") => {
                    self.imported.spec.job_executor_thread_pool_size_provider_type = Some("CPU".to_owned());
                }
                ("job_exception_handler", _) => self.warn(format!("job_exception_handler `{class}` is custom code: register a handler and set jobErrorHandlerType")),
                ("executor_service_handler", _) => self.warn(format!("executor_service_handler `{class}` is custom code: set jobExecutorThreadPoolSizeProviderType to a size")),
                (name, _) => self.warn(format!("jobProperties.{name} `{class}` has no counterpart")),
            }
        }
        Ok(())
    }

    fn must_be_complete(&self) -> Result<(), SpecError> {
        let imported = &self.imported;
        let missing = |field, remedy| Err(SpecError::Missing { field, remedy });
        if imported.spec.job_name.is_empty() {
            return missing("jobName", "name the job");
        }
        if imported.job_type.is_none() {
            return missing("jobType", "write SIMPLE, DATAFLOW or SCRIPT");
        }
        if imported.job_class.is_none() && imported.job_type != Some(JobType::Script) {
            return missing("jobClass", "name the class that runs the job");
        }
        if imported.spec.cron.is_none() {
            return missing("cron", "write when the job fires");
        }
        Ok(())
    }

    fn drop_setting(&mut self, name: &str, meaning: &str) {
        if let Some(value) = self.left.remove(name) {
            self.warn(format!("{name} `{}` has no counterpart: {meaning}", shown(&value)));
        }
    }

    fn finish(mut self) -> Result<Imported, SpecError> {
        for (name, value) in std::mem::take(&mut self.left) {
            self.warn(format!("{name} `{}` is unknown", shown(&value)));
        }
        if self.imported.spec.sharding_total_count == 0 {
            return Err(SpecError::Missing {
                field: "shardingTotalCount",
                remedy: "write the number of items, at least 1",
            });
        }
        Ok(self.imported)
    }

    fn warn(&mut self, warning: String) {
        self.imported.warnings.push(warning);
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, SpecError> {
        match self.left.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(Value::Bool(flag)) => Ok(Some(flag.to_string())),
            Some(value) => Err(wrong(name, &value, "no text: write a single value")),
        }
    }

    /// Text in which blank means unset.
    fn filled(&mut self, name: &str) -> Result<Option<String>, SpecError> {
        Ok(self.text(name)?.filter(|text| !text.trim().is_empty()))
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, SpecError> {
        Ok(self.filled(name)?.map(|text| text.trim().eq_ignore_ascii_case("true")))
    }

    fn number(&mut self, name: &str) -> Result<Option<i32>, SpecError> {
        self.parsed(name, "no number of 32 bits: write a decimal number")
    }

    fn count(&mut self, name: &str) -> Result<u32, SpecError> {
        Ok(self.parsed(name, "no number of items: write a number of at least 1")?.unwrap_or(0))
    }

    fn parsed<T: std::str::FromStr>(
        &mut self,
        name: &str,
        fault: &'static str,
    ) -> Result<Option<T>, SpecError> {
        let Some(text) = self.filled(name)? else { return Ok(None) };
        let parsed = text.trim().parse().map(Some);
        parsed.map_err(|_| SpecError::Value { field: name.to_owned(), value: text, fault })
    }
}

/// The message without the position, which is told apart from it.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or(&message).to_owned()
}

fn simple_name(class: &str) -> &str {
    class.trim().rsplit(['.', '$']).next().unwrap_or_default()
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn wrong(field: &str, value: &Value, fault: &'static str) -> SpecError {
    SpecError::Value { field: field.to_owned(), value: shown(value), fault }
}
