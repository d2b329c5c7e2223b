//! Java's YAML spelling of a job, byte for byte as Java 3.0.5 writes it, and read as Java reads it.
//!
//! Separate from [`JobSpec`] because these names and habits belong to Java: a missing boolean is `false` here, not the builder's default.
//!
//! More lenient than Java: unknown keys are kept instead of refused, an explicit null counts as absent, and a key of `props` may look
//! like a number. Stricter: no merge keys, and no list where a text belongs. A date in `props` stays as it was written.

mod emit;
mod node;
mod resolve;

use std::collections::BTreeMap;

use self::emit::Emitter;
use self::node::{Entry, Node};
use self::resolve::Implicit;
use super::{JobSpec, PoolKey, SpecError};

const EXTRA: &str = "jobExtraConfigurations";

impl JobSpec {
    /// The document that Java 3.0.5 would write for this job.
    ///
    /// Keys are in alphabetical order; what is unset or an empty collection is left out; properties are sorted, where Java's order is accidental.
    ///
    /// ```
    /// let yaml = elasticjob_core::spec::JobSpec::new("myJob", 3).to_yaml();
    /// assert!(yaml.starts_with("description: ''\ndisabled: false\nfailover: false\njobName: myJob\n"));
    /// ```
    #[must_use]
    pub fn to_yaml(&self) -> String {
        let mut out = Emitter::new();
        let mut fields = self.fields();
        fields.extend(self.unknown.iter().map(|(key, lines)| (key.as_str(), Field::Lines(lines))));
        fields.sort_by_key(|(key, _)| *key);
        for (key, field) in fields {
            field.write(key, &mut out);
        }
        out.finish()
    }

    /// Reads a job as Java 3.0.5 does, but keeps unknown keys and takes an explicit null for an absent setting.
    ///
    /// Values are not judged beyond their type: see [`JobSpec::validate`].
    ///
    /// ```
    /// use elasticjob_core::spec::JobSpec;
    ///
    /// let spec = JobSpec::from_yaml("{jobName: myJob, shardingTotalCount: '3', failover: yes}")?;
    /// assert!(spec.failover && !spec.misfire);
    /// # Ok::<(), elasticjob_core::spec::SpecError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Where the text stops being YAML, or which key has a value of the wrong type.
    pub fn from_yaml(text: &str) -> Result<JobSpec, SpecError> {
        let mut spec = JobSpec::new("", 0);
        spec.monitor_execution = false;
        spec.misfire = false;
        spec.reconcile_interval_minutes = 0;
        let mut pools = BTreeMap::new();
        for entry in node::entries(text)? {
            let key = entry.key.as_str();
            if let Some(pool) = [PoolKey::ThreadPoolSizeProvider, PoolKey::ServiceHandler]
                .into_iter()
                .find(|pool| pool.name() == key)
            {
                pools.insert(pool.name(), (pool, optional_text(key, &entry.value)?));
            } else {
                spec.read(entry)?;
            }
        }
        spec.read_pool(pools)?;
        Ok(spec)
    }

    fn fields(&self) -> Vec<(&str, Field<'_>)> {
        use Field::{Flag, Items, Number, Properties, Text};
        let mut fields = vec![
            ("description", Text(&self.description)),
            ("disabled", Flag(self.disabled)),
            ("failover", Flag(self.failover)),
            ("jobListenerTypes", Items(&self.job_listener_types)),
            ("jobName", Text(&self.job_name)),
            ("jobParameter", Text(&self.job_parameter)),
            ("maxTimeDiffSeconds", Number(self.max_time_diff_seconds.into())),
            ("misfire", Flag(self.misfire)),
            ("monitorExecution", Flag(self.monitor_execution)),
            ("overwrite", Flag(self.overwrite)),
            ("props", Properties(&self.props)),
            ("reconcileIntervalMinutes", Number(self.reconcile_interval_minutes.into())),
            ("shardingItemParameters", Text(&self.sharding_item_parameters)),
            ("shardingTotalCount", Number(self.sharding_total_count.into())),
            ("staticSharding", Flag(self.static_sharding)),
        ];
        let optional = [
            ("cron", &self.cron),
            ("jobErrorHandlerType", &self.job_error_handler_type),
            (self.pool_key.name(), &self.job_executor_thread_pool_size_provider_type),
            ("jobShardingStrategyType", &self.job_sharding_strategy_type),
            ("label", &self.label),
            ("timeZone", &self.time_zone),
        ];
        fields.extend(optional.into_iter().filter_map(|(key, value)| Some((key, Text(value.as_deref()?)))));
        fields.extend(self.job_extra_configurations.as_deref().map(|text| (EXTRA, Field::Below(text))));
        fields
    }

    fn read(&mut self, entry: Entry<'_>) -> Result<(), SpecError> {
        let (key, value) = (entry.key.as_str(), &entry.value);
        match key {
            "jobName" => self.job_name = text(key, value)?,
            "cron" => self.cron = optional_text(key, value)?,
            "timeZone" => self.time_zone = optional_text(key, value)?,
            "shardingTotalCount" => self.sharding_total_count = count(key, value)?,
            "shardingItemParameters" => self.sharding_item_parameters = text(key, value)?,
            "jobParameter" => self.job_parameter = text(key, value)?,
            "monitorExecution" => self.monitor_execution = flag(key, value)?,
            "failover" => self.failover = flag(key, value)?,
            "misfire" => self.misfire = flag(key, value)?,
            "maxTimeDiffSeconds" => self.max_time_diff_seconds = number(key, value)?.unwrap_or(-1),
            "reconcileIntervalMinutes" => self.reconcile_interval_minutes = number(key, value)?.unwrap_or(0),
            "jobShardingStrategyType" => self.job_sharding_strategy_type = optional_text(key, value)?,
            "jobErrorHandlerType" => self.job_error_handler_type = optional_text(key, value)?,
            "jobListenerTypes" => self.job_listener_types = items(key, value)?,
            EXTRA => self.job_extra_configurations = entry.below()?,
            "description" => self.description = text(key, value)?,
            "props" => self.props = properties(key, value)?,
            "disabled" => self.disabled = flag(key, value)?,
            "overwrite" => self.overwrite = flag(key, value)?,
            "label" => self.label = optional_text(key, value)?,
            "staticSharding" => self.static_sharding = flag(key, value)?,
            _ => {
                let lines = entry.lines()?;
                self.unknown.insert(entry.key, lines);
            }
        }
        Ok(())
    }

    fn read_pool(&mut self, mut found: BTreeMap<&str, (PoolKey, Option<String>)>) -> Result<(), SpecError> {
        found.retain(|_, (_, value)| value.is_some());
        if found.len() > 1 {
            let (field, other) = (PoolKey::ThreadPoolSizeProvider.name(), PoolKey::ServiceHandler.name());
            return Err(SpecError::TwoNames { field, other });
        }
        if let Some((_, (key, value))) = found.into_iter().next() {
            self.pool_key = key;
            self.job_executor_thread_pool_size_provider_type = value;
        }
        Ok(())
    }
}

/// One setting, ready to be written.
enum Field<'a> {
    Text(&'a str),
    Flag(bool),
    Number(i64),
    Items(&'a [String]),
    Properties(&'a BTreeMap<String, String>),
    /// YAML text that stands below or behind the key.
    Below(&'a str),
    /// Whole lines, with the key in them.
    Lines(&'a str),
}

impl Field<'_> {
    fn write(&self, key: &str, out: &mut Emitter) {
        match self {
            Field::Text(text) => out.pair(0, key, text),
            Field::Flag(flag) => out.word(key, if *flag { "true" } else { "false" }),
            Field::Number(number) => out.word(key, &number.to_string()),
            Field::Items([]) => {}
            Field::Items(items) => out.list(key, items),
            Field::Properties(entries) if entries.is_empty() => {}
            Field::Properties(entries) => out.map(key, entries.iter()),
            Field::Below(text) => out.verbatim(&node::under(key, text)),
            Field::Lines(lines) => out.verbatim(lines),
        }
    }
}

/// What stops Java 3.0.5 from reading the document as it is meant.
pub(super) fn java_problems(spec: &JobSpec) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(zone) = spec.time_zone.as_deref().filter(|zone| !zone.starts_with("GMT")) {
        problems.push(format!("timeZone `{zone}` does not start with GMT: write an offset such as GMT+8:00"));
    }
    problems.extend(
        spec.unknown.keys().map(|key| format!("key `{key}` is unknown to it: move the setting into props")),
    );
    if let Some(pool) = &spec.job_executor_thread_pool_size_provider_type {
        if spec.pool_key == PoolKey::ServiceHandler {
            problems.push(format!(
                "{} is the name that 3.0.4 had: write {}",
                spec.pool_key.name(),
                PoolKey::default().name()
            ));
        }
        if pool.parse::<u32>().is_ok() {
            problems.push(format!(
                "{} `{pool}` is taken for CPU: write CPU or SINGLE_THREAD",
                PoolKey::default().name()
            ));
        }
    }
    let extra = spec.job_extra_configurations.as_deref().unwrap_or_default();
    problems
        .extend(foreign_tags(extra).map(|tag| format!("{EXTRA} has `{tag}`, a class it refuses: remove it")));
    problems.extend(spoilt_text(spec));
    problems
}

/// Class tags that Java's reader does not let through.
fn foreign_tags(yaml: &str) -> impl Iterator<Item = &str> {
    let words = yaml.split(|c: char| c.is_whitespace() || matches!(c, '[' | ']' | '{' | '}' | ','));
    words.filter(|word| {
        word.starts_with("!!")
            && word.contains('.')
            && !word.starts_with("!!org.apache.shardingsphere.elasticjob")
    })
}

/// Text that does not come back from Java as it was.
fn spoilt_text(spec: &JobSpec) -> Vec<String> {
    let listeners =
        spec.job_listener_types.iter().map(|listener| ("jobListenerTypes".to_owned(), listener.as_str()));
    let keys = spec.props.keys().map(|key| (format!("a key of props, {key:?},"), key.as_str()));
    let values = spec.props.iter().map(|(key, value)| (format!("props.{key}"), value.as_str()));
    let collected: Vec<_> = listeners.chain(keys).chain(values).collect();
    let bytes = collected.iter().filter(|(_, text)| !resolve::is_printable(text));
    let mut spoilt: Vec<_> = bytes
        .map(|(place, _)| format!("{place} has control characters, which come back as bytes: remove them"))
        .collect();
    let fields = spec.fields();
    let single = fields.iter().filter_map(|(key, field)| match field {
        Field::Text(text) => Some((*key, *text)),
        _ => None,
    });
    let all = single.chain(collected.iter().map(|(place, text)| (place.as_str(), *text)));
    spoilt.extend(
        all.filter(|(_, text)| text.contains('\u{85}')).map(|(place, _)| {
            format!("{place} has U+0085, which comes back as a line feed: write a line feed")
        }),
    );
    spoilt
}

fn optional_text(field: &str, value: &Node) -> Result<Option<String>, SpecError> {
    if value.is_null() { Ok(None) } else { scalar(field, value, "no text: write a single value").map(Some) }
}

fn text(field: &str, value: &Node) -> Result<String, SpecError> {
    optional_text(field, value).map(Option::unwrap_or_default)
}

fn flag(field: &str, value: &Node) -> Result<bool, SpecError> {
    const FAULT: &str = "no boolean: write true or false";
    if value.is_null() {
        return Ok(false);
    }
    let word = scalar(field, value, FAULT)?;
    resolve::boolean(&word).ok_or_else(|| wrong(field, value, FAULT))
}

fn integer(field: &str, value: &Node) -> Result<Option<i128>, SpecError> {
    const FAULT: &str = "no integer: write a decimal number";
    if value.is_null() {
        return Ok(None);
    }
    let digits = scalar(field, value, FAULT)?;
    resolve::integer(&digits).map(Some).ok_or_else(|| wrong(field, value, FAULT))
}

fn number(field: &str, value: &Node) -> Result<Option<i32>, SpecError> {
    let Some(number) = integer(field, value)? else { return Ok(None) };
    i32::try_from(number)
        .map(Some)
        .map_err(|_| wrong(field, value, "out of range: write a number of 32 bits"))
}

fn count(field: &str, value: &Node) -> Result<u32, SpecError> {
    let count = integer(field, value)?.unwrap_or(0);
    u32::try_from(count).map_err(|_| wrong(field, value, "out of range: write a number of at least 1"))
}

fn items(field: &str, value: &Node) -> Result<Vec<String>, SpecError> {
    match value {
        Node::List(items) => {
            let items = items.iter().filter(|item| !item.is_null());
            items.map(|item| scalar(field, item, "no text: write a single value for each item")).collect()
        }
        _ if value.is_null() => Ok(Vec::new()),
        Node::Scalar { .. } | Node::Map(_) => {
            Err(wrong(field, value, "no list: write `- item` lines below the key"))
        }
    }
}

fn properties(field: &str, value: &Node) -> Result<BTreeMap<String, String>, SpecError> {
    match value {
        Node::Map(entries) => {
            let mut properties = BTreeMap::new();
            for (key, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
                if key.is_merge() {
                    return Err(wrong(field, key, "a merge key: write the properties out"));
                }
                let key = scalar(field, key, "no key: write a text before the colon")?;
                let value = java_text(&format!("{field}.{key}"), value)?;
                properties.insert(key, value);
            }
            Ok(properties)
        }
        _ if value.is_null() || value.is_empty_list() => Ok(BTreeMap::new()),
        Node::Scalar { .. } | Node::List(_) => {
            Err(wrong(field, value, "no mapping: write `key: value` lines below the key"))
        }
    }
}

fn scalar(field: &str, value: &Node, fault: &'static str) -> Result<String, SpecError> {
    match value {
        Node::Scalar { text, binary: true, .. } => {
            let bytes =
                resolve::unbase64(text).ok_or_else(|| wrong(field, value, "no base 64: write plain text"))?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        Node::Scalar { text, .. } => Ok(text.clone()),
        Node::List(_) | Node::Map(_) => Err(wrong(field, value, fault)),
    }
}

/// The text that Java makes of a typed value, where it does not ask for text.
fn java_text(field: &str, value: &Node) -> Result<String, SpecError> {
    let text = scalar_or_collection(field, value)?;
    let Some(implicit) = value.implicit() else { return Ok(text) };
    Ok(match implicit {
        Implicit::Bool => resolve::boolean(&text).map_or(text, |flag| flag.to_string()),
        Implicit::Int => resolve::integer(&text).map_or(text, |number| number.to_string()),
        Implicit::Float => resolve::float(&text).map_or(text, java_double),
        // Java prints a date in the reader's own zone and language; the text that was written is the better value.
        Implicit::Timestamp | Implicit::Text | Implicit::Null | Implicit::Merge | Implicit::Indicator => text,
    })
}

fn scalar_or_collection(field: &str, value: &Node) -> Result<String, SpecError> {
    let nested = |value: &Node| if value.is_null() { Ok("null".to_owned()) } else { java_text(field, value) };
    match value {
        Node::Scalar { .. } => scalar(field, value, ""),
        Node::List(items) => {
            let items: Vec<String> = items.iter().map(nested).collect::<Result<_, _>>()?;
            Ok(format!("[{}]", items.join(", ")))
        }
        Node::Map(entries) => {
            let pair = |(key, value): &(Node, Node)| Ok(format!("{}={}", nested(key)?, nested(value)?));
            let entries: Vec<String> = entries.iter().map(pair).collect::<Result<_, SpecError>>()?;
            Ok(format!("{{{}}}", entries.join(", ")))
        }
    }
}

/// `1.5`, `1.0E10`, `NaN`, `Infinity`: as Java prints a double.
fn java_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    if value == 0.0 || (1e-3..1e7).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let fraction = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{fraction}E{exponent}")
}

fn wrong(field: &str, value: &Node, fault: &'static str) -> SpecError {
    SpecError::Value { field: field.to_owned(), value: value.to_string(), fault }
}

/// Writes and reads the mapping of texts that instance documents are.
pub(super) mod flat {
    use super::{BTreeMap, Emitter, SpecError, node, optional_text};

    pub(in crate::spec) fn write<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
        let mut out = Emitter::new();
        for (key, value) in entries {
            out.pair(0, key, value);
        }
        out.finish()
    }

    pub(in crate::spec) fn read(text: &str) -> Result<BTreeMap<String, String>, SpecError> {
        let mut found = BTreeMap::new();
        for entry in node::entries(text)? {
            if let Some(value) = optional_text(&entry.key, &entry.value)? {
                found.insert(entry.key, value);
            }
        }
        Ok(found)
    }
}
