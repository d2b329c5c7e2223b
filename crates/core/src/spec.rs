//! What a job is: its settings, their defaults, and what is wrong with them.
//!
//! [`JobSpec`] is the program's own view. How Java spells it is in [`yaml`], how its ancestors spelled it in [`legacy`].

pub mod instance;
pub mod legacy;
pub mod secret;
pub mod yaml;

use std::collections::BTreeMap;

use elasticjob_cron::{Cron, Zone};

pub use instance::InstanceDoc;

/// The largest number of items a job may have. Every item is a node in the registry, so a larger number is a slip of the hand.
pub const SHARDS_MAX: u32 = 1_000_000;

/// Who is told when an item fails, if it is more than Java can read in `jobErrorHandlerType`: a key of `props`.
pub const ERROR_HANDLERS: &str = "elasticjob.error.handlers";

/// Every setting of a job.
///
/// The names are Java's, in Rust's spelling, and so are the defaults.
///
/// ```
/// use elasticjob_core::spec::JobSpec;
///
/// let mut spec = JobSpec::new("nightly", 3);
/// spec.cron = Some("0 0 2 * * ?".into());
/// spec.sharding_item_parameters = "0=Beijing,1=Shanghai,2=Guangzhou".into();
/// spec.validate()?;
/// assert_eq!(JobSpec::from_yaml(&spec.to_yaml())?, spec);
/// # Ok::<(), elasticjob_core::spec::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// Name of the job, and of its node in the registry.
    pub job_name: String,
    /// When to fire, in Quartz' dialect; without it the job runs only when triggered.
    pub cron: Option<String>,
    /// Zone that the cron is read in: `GMT±h:mm`, or an IANA name where no Java takes part. Without it, the host's.
    pub time_zone: Option<String>,
    /// Number of items the job is divided into.
    pub sharding_total_count: u32,
    /// Parameters of single items, as `0=text,1=text`; see [`JobSpec::item_parameters`].
    pub sharding_item_parameters: String,
    /// Parameter that every item gets.
    pub job_parameter: String,
    /// Mark items in the registry while they run. Needed for failover, and for never running an item twice at once.
    pub monitor_execution: bool,
    /// Run the items of a dead instance on another one at once. Effective only with `monitor_execution`.
    pub failover: bool,
    /// Make up for a fire that came while the previous run was still going.
    pub misfire: bool,
    /// Largest tolerated difference to the registry's clock; negative means any.
    pub max_time_diff_seconds: i32,
    /// How often to look for items owned by nobody; zero or less means never.
    pub reconcile_interval_minutes: i32,
    /// Who gets which item; unset means `AVG_ALLOCATION`.
    pub job_sharding_strategy_type: Option<String>,
    /// How many items run at once in one process: `CPU`, `SINGLE_THREAD` or a number; unset means `CPU`.
    pub job_executor_thread_pool_size_provider_type: Option<String>,
    /// What happens when an item fails; unset means `LOG`.
    pub job_error_handler_type: Option<String>,
    /// Listeners by their registered names.
    pub job_listener_types: Vec<String>,
    /// Java's further configurations (tracing), as the YAML text that stands below their key, kept byte for byte.
    pub job_extra_configurations: Option<String>,
    /// For people.
    pub description: String,
    /// Settings of the job's type and of its error handler.
    pub props: BTreeMap<String, String>,
    /// Start with this server disabled.
    pub disabled: bool,
    /// At start, replace the stored settings by the local ones.
    pub overwrite: bool,
    /// For people; stored only.
    pub label: Option<String>,
    /// Never move an item away from an instance that is alive.
    pub static_sharding: bool,
    /// Keys of somebody else's document that this version does not know: the key, and its lines as they stood, key included.
    pub unknown: BTreeMap<String, String>,
    /// Which name the document has for the pool setting.
    pub pool_key: PoolKey,
}

/// The two names that Java has had for the pool setting. A document keeps the one it came with.
///
/// ```
/// use elasticjob_core::spec::{JobSpec, PoolKey};
///
/// let old = "jobName: j\nshardingTotalCount: 1\njobExecutorServiceHandlerType: CPU\n";
/// assert_eq!(JobSpec::from_yaml(old)?.pool_key, PoolKey::ServiceHandler);
/// # Ok::<(), elasticjob_core::spec::SpecError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PoolKey {
    /// `jobExecutorThreadPoolSizeProviderType`, since 3.0.5.
    #[default]
    ThreadPoolSizeProvider,
    /// `jobExecutorServiceHandlerType`, until 3.0.4.
    ServiceHandler,
}

impl PoolKey {
    /// The key as it is spelled in documents.
    ///
    /// ```
    /// assert_eq!(elasticjob_core::spec::PoolKey::ServiceHandler.name(), "jobExecutorServiceHandlerType");
    /// ```
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            PoolKey::ThreadPoolSizeProvider => "jobExecutorThreadPoolSizeProviderType",
            PoolKey::ServiceHandler => "jobExecutorServiceHandlerType",
        }
    }
}

impl JobSpec {
    /// A job with the defaults of Java's builder.
    ///
    /// ```
    /// let spec = elasticjob_core::spec::JobSpec::new("nightly", 3);
    /// assert!(spec.monitor_execution && spec.misfire && !spec.failover);
    /// assert_eq!((spec.max_time_diff_seconds, spec.reconcile_interval_minutes), (-1, 10));
    /// ```
    #[must_use]
    pub fn new(job_name: impl Into<String>, sharding_total_count: u32) -> JobSpec {
        JobSpec {
            job_name: job_name.into(),
            cron: None,
            time_zone: None,
            sharding_total_count,
            sharding_item_parameters: String::new(),
            job_parameter: String::new(),
            monitor_execution: true,
            failover: false,
            misfire: true,
            max_time_diff_seconds: -1,
            reconcile_interval_minutes: 10,
            job_sharding_strategy_type: None,
            job_executor_thread_pool_size_provider_type: None,
            job_error_handler_type: None,
            job_listener_types: Vec::new(),
            job_extra_configurations: None,
            description: String::new(),
            props: BTreeMap::new(),
            disabled: false,
            overwrite: false,
            label: None,
            static_sharding: false,
            unknown: BTreeMap::new(),
            pool_key: PoolKey::default(),
        }
    }

    /// Finds the first setting that no instance could work with.
    ///
    /// Names of strategies, error handlers and listeners are not judged here: only a process knows what is registered in it.
    ///
    /// ```
    /// let error = elasticjob_core::spec::JobSpec::new("a/b", 3).validate().unwrap_err();
    /// assert_eq!(error.to_string(), "jobName `a/b` contains `/`: use a name without it");
    /// ```
    ///
    /// # Errors
    ///
    /// The first bad setting, with its value and what to write instead.
    pub fn validate(&self) -> Result<(), SpecError> {
        check_name(&self.job_name)?;
        if !(1..=SHARDS_MAX).contains(&self.sharding_total_count) {
            return Err(SpecError::ShardCount { value: self.sharding_total_count.into() });
        }
        self.check_items()?;
        check_schedule(self.cron.as_deref(), self.time_zone.as_deref())?;
        check_pool(self.job_executor_thread_pool_size_provider_type.as_deref())?;
        if let Some(value) = self.props.get("") {
            return Err(SpecError::EmptyPropKey { value: value.clone() });
        }
        crate::policy::Policies::read(self).map(drop)
    }

    /// The parameters of single items.
    ///
    /// Java's rules: split at `,`, trim, split at `=`, an integer and a text. So a text has neither `,` nor `=`, and is not empty.
    ///
    /// ```
    /// let mut spec = elasticjob_core::spec::JobSpec::new("nightly", 3);
    /// spec.sharding_item_parameters = "0=Beijing, 2=Guangzhou".into();
    /// assert_eq!(spec.item_parameters()?[&2], "Guangzhou");
    /// # Ok::<(), elasticjob_core::spec::SpecError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The element that is not of this form, or the item that is named twice. An item beyond the total count is an error
    /// of [`JobSpec::validate`] only, because Java runs such a job: a document with a lowered count stays usable.
    pub fn item_parameters(&self) -> Result<BTreeMap<u32, String>, SpecError> {
        let mut parameters = BTreeMap::new();
        let text = self.sharding_item_parameters.trim().trim_end_matches(',');
        for element in text.split(',').filter(|_| !text.is_empty()) {
            let (item, parameter) = item_parameter(element.trim())?;
            if parameters.insert(item, parameter).is_some() {
                return Err(SpecError::DuplicateItem { item });
            }
        }
        Ok(parameters)
    }

    /// Refuses a secret in clear, unless it stood there `before`: Java can have it in no other way.
    ///
    /// ```
    /// let mut spec = elasticjob_core::spec::JobSpec::new("nightly", 3);
    /// spec.props.insert("email.password".into(), "${SMTP_PASSWORD}".into());
    /// assert!(spec.check_secrets(None).is_ok());
    /// spec.props.insert("email.password".into(), "hunter2".into());
    /// assert!(spec.check_secrets(None).is_err() && spec.check_secrets(Some(&spec)).is_ok());
    /// ```
    ///
    /// # Errors
    ///
    /// The first property that holds a secret instead of naming its place, without the secret. See [`secret`].
    pub fn check_secrets(&self, before: Option<&JobSpec>) -> Result<(), SpecError> {
        let is_new = |key: &str, value: &str| {
            before.and_then(|it| it.props.get(key)).is_none_or(|before| before != value)
        };
        secret::check(self.props.iter().filter(|(key, value)| is_new(key, value)))
    }

    /// Says what a Java 3.0.5 peer or console would not read, or would read as something else.
    ///
    /// ```
    /// let mut spec = elasticjob_core::spec::JobSpec::new("nightly", 3);
    /// spec.time_zone = Some("Europe/Vienna".into());
    /// assert!(spec.validate().is_ok() && spec.java_readable().is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// All the obstacles at once.
    pub fn java_readable(&self) -> Result<(), SpecError> {
        let problems = yaml::java_problems(self);
        if problems.is_empty() { Ok(()) } else { Err(SpecError::NotForJava { problems }) }
    }

    fn check_items(&self) -> Result<(), SpecError> {
        let total = self.sharding_total_count;
        match self.item_parameters()?.into_keys().next_back() {
            Some(item) if item >= total => Err(SpecError::ItemOutOfRange { item, total }),
            _ => Ok(()),
        }
    }
}

fn check_name(name: &str) -> Result<(), SpecError> {
    let fault = if name.trim().is_empty() {
        "is blank: give the job a name"
    } else if name.contains('/') {
        "contains `/`: use a name without it"
    } else if name.contains("@-@") {
        "contains `@-@`, at which task ids are split: use a name without it"
    } else if matches!(name, "." | ".." | "zookeeper") {
        "is reserved by the registry: use another name"
    } else if name
        .chars()
        .any(|c| c.is_control() || matches!(c, '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}'))
    {
        "contains characters that a registry's path must not have: use printable ones"
    } else {
        return Ok(());
    };
    Err(SpecError::JobName { value: name.to_owned(), fault })
}

/// Rejects a schedule that cannot be read. A blank cron is none.
fn check_schedule(cron: Option<&str>, zone: Option<&str>) -> Result<(), SpecError> {
    read_cron(cron)?;
    zone.map_or(Ok(()), |zone| read_zone(zone).map(drop))
}

/// The one place where a cron is read: `None` if there is none, or a blank one.
pub(crate) fn read_cron(cron: Option<&str>) -> Result<Option<Cron>, SpecError> {
    let Some(text) = cron.filter(|it| !it.trim().is_empty()) else { return Ok(None) };
    let refused =
        |error| SpecError::Cron { value: text.to_owned(), fault: format!("is no schedule: {error}") };
    Cron::parse(text).map(Some).map_err(refused)
}

/// The one place where a zone is read.
pub(crate) fn read_zone(zone: &str) -> Result<Zone, SpecError> {
    Zone::parse(zone).map_err(|_| SpecError::TimeZone { value: zone.to_owned() })
}

fn check_pool(pool: Option<&str>) -> Result<(), SpecError> {
    let Some(pool) = pool else { return Ok(()) };
    let known = pool.eq_ignore_ascii_case("CPU") || pool.eq_ignore_ascii_case("SINGLE_THREAD");
    let size =
        pool.bytes().all(|byte| byte.is_ascii_digit()) && pool.parse::<u32>().is_ok_and(|size| size > 0);
    if known || size { Ok(()) } else { Err(SpecError::Pool { value: pool.to_owned() }) }
}

fn item_parameter(element: &str) -> Result<(u32, String), SpecError> {
    let malformed = || SpecError::ItemParameter { element: element.to_owned() };
    // Java forgets empty parts at the end, so `0=a=` is `0=a`.
    let (item, parameter) = element.trim_end_matches('=').split_once('=').ok_or_else(malformed)?;
    if parameter.contains('=') {
        return Err(malformed());
    }
    let item = item.trim().parse().map_err(|_| malformed())?;
    Ok((item, parameter.trim().to_owned()))
}

/// What is wrong with a job's settings, or with a document of them.
///
/// ```
/// use elasticjob_core::spec::{JobSpec, SpecError};
///
/// let error = JobSpec::from_yaml("jobName: j\ndisabled: maybe\n").unwrap_err();
/// assert!(matches!(error, SpecError::Value { .. }));
/// assert_eq!(error.to_string(), "disabled `maybe` is no boolean: write true or false");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The name cannot be a node of the registry.
    #[error("jobName `{}` {fault}", value.escape_debug())]
    JobName {
        /// The name.
        value: String,
        /// What is wrong, and the remedy.
        fault: &'static str,
    },
    /// No items, or too many.
    #[error("shardingTotalCount `{value}` is out of range: write a number from 1 to {SHARDS_MAX}")]
    ShardCount {
        /// The count.
        value: i64,
    },
    /// An element of the item parameters is malformed.
    #[error(
        "shardingItemParameters has `{element}`: write each element as item=text, with neither `,` nor `=` in the text"
    )]
    ItemParameter {
        /// The element.
        element: String,
    },
    /// An item has two parameters.
    #[error("shardingItemParameters names item {item} twice: keep one of the two")]
    DuplicateItem {
        /// The item.
        item: u32,
    },
    /// A parameter is for an item that does not exist.
    #[error(
        "shardingItemParameters names item {item}, but shardingTotalCount is {total}: raise the count or drop the parameter"
    )]
    ItemOutOfRange {
        /// The item.
        item: u32,
        /// Number of items.
        total: u32,
    },
    /// The cron cannot be read.
    #[error("cron `{value}` {fault}")]
    Cron {
        /// The cron.
        value: String,
        /// What is wrong, and the remedy.
        fault: String,
    },
    /// The zone is unknown.
    #[error(
        "timeZone `{value}` is unknown: write GMT+8:00 or the like, or an IANA name such as Europe/Vienna"
    )]
    TimeZone {
        /// The zone.
        value: String,
    },
    /// The pool is neither a known type nor a number.
    #[error(
        "jobExecutorThreadPoolSizeProviderType `{value}` is unknown: write CPU, SINGLE_THREAD or a number of at least 1"
    )]
    Pool {
        /// The type.
        value: String,
    },
    /// A setting names something that does not exist.
    #[error("{field} `{value}` is unknown: write {allowed}")]
    Choice {
        /// The setting.
        field: String,
        /// What it says.
        value: String,
        /// What it may say.
        allowed: String,
    },
    /// A property has no name.
    #[error("props has the value `{value}` under an empty key: name the property")]
    EmptyPropKey {
        /// The property's value.
        value: String,
    },
    /// A property that must name the place of a secret does not. The value is not told.
    #[error("props {key} {fault}")]
    Secret {
        /// The property.
        key: String,
        /// What is wrong, and the remedy.
        fault: &'static str,
    },
    /// A property of ours has a value that cannot be used.
    #[error("property {key} `{value}` {fault}")]
    Property {
        /// The property.
        key: String,
        /// Its value.
        value: String,
        /// What is wrong, and the remedy.
        fault: String,
    },
    /// A document has a value of the wrong type.
    #[error("{field} `{value}` is {fault}")]
    Value {
        /// The setting, as the document spells it.
        field: String,
        /// The value.
        value: String,
        /// What is wrong, and the remedy.
        fault: &'static str,
    },
    /// A document lacks a setting that has no default.
    #[error("{field} is missing: {remedy}")]
    Missing {
        /// The setting, as the document spells it.
        field: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Both names of one setting.
    #[error("{field} and {other} are names of the same setting: keep one of them")]
    TwoNames {
        /// The newer name.
        field: &'static str,
        /// The older name.
        other: &'static str,
    },
    /// A document is not YAML, or not a mapping.
    #[error("line {line}, column {column}: {reason}")]
    Yaml {
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
        /// What was found and expected.
        reason: String,
    },
    /// A 2.x document is not JSON.
    #[error("line {line}, column {column}: not a JSON document of 2.x: {reason}")]
    Json {
        /// Line, counted from 1.
        line: usize,
        /// Column, counted from 1.
        column: usize,
        /// What was found and expected.
        reason: String,
    },
    /// A Java peer would not understand the document.
    #[error("Java 3.0.5 could not read this job: {}", problems.join("; "))]
    NotForJava {
        /// One sentence for each obstacle.
        problems: Vec<String>,
    },
}

impl SpecError {
    /// A setting that names something unknown.
    pub(crate) fn choice(field: &str, value: &str, allowed: &str) -> SpecError {
        SpecError::Choice { field: field.to_owned(), value: value.to_owned(), allowed: allowed.to_owned() }
    }
}
