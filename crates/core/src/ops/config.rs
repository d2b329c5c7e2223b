//! Changes of a job's stored document: edits, and the pause that is kept in it.

use std::collections::BTreeSet;
use std::fmt;

use elasticjob_cron::Zone;
use jiff::Timestamp;

use super::words::{diff, near, time};
use super::{Act, JobTree, Refusal, schedule_of};
use crate::node::Node;
use crate::spec::{ERROR_HANDLERS, JobSpec};
use crate::strategy::Strategies;
use crate::view::{DISABLED, ENABLED};

/// Since when and by whom the job is paused: a key of `props`.
pub const PAUSED: &str = "elasticjob.paused";
/// What resuming must leave disabled, because it was before: a key of `props`.
pub const PAUSED_BEFORE: &str = "elasticjob.paused.disabled-before";
/// Stands among the servers of [`PAUSED_BEFORE`] for the setting `disabled`.
const THE_SETTING: &str = "setting";

/// A job's document as it was read: whoever replaces it says what he replaces.
///
/// ```
/// use elasticjob_core::ops::config::{Stored, stored};
/// use elasticjob_core::ops::{JobTree, Refusal};
///
/// assert_eq!(stored(&JobTree::new("nightly", vec![])), Err(Refusal::NoConfig));
/// let read_before = Stored { text: "jobName: nightly\n".into(), version: 4 };
/// assert_eq!(read_before.version, 4);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The document.
    pub text: String,
    /// How often it had been written.
    pub version: u32,
}

/// The document of a job.
pub fn stored(tree: &JobTree) -> Result<Stored, Refusal> {
    let config = tree.view.config.as_ref().ok_or(Refusal::NoConfig)?;
    Ok(Stored { text: config.text.clone(), version: config.stat.version })
}

/// Replaces the document, if it is still the one that was read. It is written in Java's form, so that comments
/// and order are lost; keys of others are kept.
///
/// ```
/// use elasticjob_core::node::Node;
/// use elasticjob_core::ops::{JobTree, config};
/// use elasticjob_core::spec::JobSpec;
/// use elasticjob_core::tree::Tree;
/// use jiff::Timestamp;
///
/// let mut tree = Tree::default();
/// let session = tree.open_session();
/// let document = JobSpec::new("nightly", 3).to_yaml();
/// tree.commit(session, "/nightly", &[Node::Config.create(document)], Timestamp::UNIX_EPOCH).unwrap();
/// let nightly = JobTree::new("nightly", tree.snapshot("/nightly"));
///
/// let read = config::stored(&nightly).unwrap();
/// let edited = read.text.replace("shardingTotalCount: 3", "shardingTotalCount: 4");
/// let act = config::update(&nightly, &read, &edited, Timestamp::UNIX_EPOCH, &elasticjob_cron::Zone::UTC).unwrap();
/// assert_eq!(act.done.changes, ["- shardingTotalCount: 3", "+ shardingTotalCount: 4"]);
/// ```
pub fn update(
    tree: &JobTree,
    read: &Stored,
    text: &str,
    now: Timestamp,
    zone: &Zone,
) -> Result<Act, Refusal> {
    let current = stored(tree)?;
    if current.text != read.text {
        return Err(Refusal::Edited { diff: diff(&read.text, &current.text) });
    }
    let spec = JobSpec::from_yaml(text).map_err(Refusal::NewConfig)?;
    spec.validate().map_err(Refusal::NewConfig)?;
    if spec.job_name != tree.name {
        return Err(Refusal::OtherName { job: tree.name.clone(), given: spec.job_name });
    }
    let before = JobSpec::from_yaml(&current.text).ok();
    refuse_new_keys(before.as_ref(), &spec)?;
    spec.check_secrets(before.as_ref()).map_err(Refusal::NewConfig)?;
    Ok(replace(&current, before.as_ref(), &spec, now, zone))
}

/// A key that no peer knows makes every Java peer refuse the whole document; those that stood there already
/// are somebody else's business.
fn refuse_new_keys(before: Option<&JobSpec>, spec: &JobSpec) -> Result<(), Refusal> {
    let new = |key: &&String| before.is_none_or(|it| !it.unknown.contains_key(*key));
    match spec.unknown.keys().find(new) {
        None => Ok(()),
        Some(key) => Err(Refusal::UnknownKey { key: key.clone(), near: near(key, KEYS.iter().copied()) }),
    }
}

const KEYS: &[&str] = &[
    "cron",
    "description",
    "disabled",
    "failover",
    "jobErrorHandlerType",
    "jobExecutorThreadPoolSizeProviderType",
    "jobExtraConfigurations",
    "jobListenerTypes",
    "jobName",
    "jobParameter",
    "jobShardingStrategyType",
    "label",
    "maxTimeDiffSeconds",
    "misfire",
    "monitorExecution",
    "overwrite",
    "props",
    "reconcileIntervalMinutes",
    "shardingItemParameters",
    "shardingTotalCount",
    "staticSharding",
    "timeZone",
];

fn replace(current: &Stored, before: Option<&JobSpec>, spec: &JobSpec, now: Timestamp, zone: &Zone) -> Act {
    let mut act = Act::default();
    if before == Some(spec) {
        return act;
    }
    let document = spec.to_yaml();
    act.done.changes = diff(&current.text, &document);
    act.ops.push(Node::Config.set_at(current.version, document));
    act.done.consequences = consequences(before, spec, now, zone);
    act
}

fn consequences(before: Option<&JobSpec>, spec: &JobSpec, now: Timestamp, zone: &Zone) -> Vec<String> {
    let differs = |what: fn(&JobSpec) -> String| before.is_none_or(|it| what(it) != what(spec));
    let mut told = Vec::new();
    if differs(|it| format!("{:?} {:?}", it.cron, it.time_zone)) {
        let next = schedule_of(spec, zone).map(|it| it.next_after(now));
        told.push(match next {
            None => "it no longer fires by itself: it runs when it is triggered".to_owned(),
            Some(None) => "it never fires again".to_owned(),
            Some(Some(at)) => format!("it fires next at {}", time(at, zone)),
        });
    }
    if differs(|it| it.sharding_total_count.to_string()) {
        told.push("the shards are handed out anew when those that move are at rest".to_owned());
    }
    if differs(|it| format!("{:?}", it.job_error_handler_type)) && spec.props.contains_key(ERROR_HANDLERS) {
        told.push(format!(
            "`jobErrorHandlerType` counts for Java peers only: `{ERROR_HANDLERS}` says who is told"
        ));
    }
    if let Some(name) = spec.job_sharding_strategy_type.as_deref()
        && differs(|it| format!("{:?}", it.job_sharding_strategy_type))
        && Strategies::default().find(Some(name)).is_none()
    {
        told.push(format!(
            "instances that do not know the strategy `{name}` refuse the change, and go on with what they have"
        ));
    }
    if before.is_some_and(|it| it.monitor_execution && !spec.monitor_execution) {
        told.push(
            "nothing prevents a shard from running twice at once any more, and failover is off".to_owned(),
        );
    }
    if before.is_some_and(|it| it.disabled != spec.disabled) {
        told.push(
            "`disabled` counts for servers that are new; use enable and disable for those there are"
                .to_owned(),
        );
    }
    if spec.overwrite {
        told.push(
            "`overwrite` is on: a worker that is started with other settings replaces these".to_owned(),
        );
    }
    if let Err(problems) = spec.java_readable() {
        told.push(problems.to_string());
    }
    told
}

/// Since when and by whom a job is paused.
///
/// ```
/// use elasticjob_core::ops::config::{PAUSED, Paused};
/// use elasticjob_core::spec::JobSpec;
///
/// let mut spec = JobSpec::new("nightly", 3);
/// spec.props.insert(PAUSED.into(), "2026-11-15T02:00:00Z by alice".into());
/// assert_eq!(Paused::of(&spec).unwrap().to_string(), "2026-11-15T02:00:00Z by alice");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paused {
    note: String,
    before: BTreeSet<String>,
}

impl Paused {
    /// The pause that a document tells of.
    pub fn of(spec: &JobSpec) -> Option<Paused> {
        let note = spec.props.get(PAUSED)?.clone();
        let before = spec.props.get(PAUSED_BEFORE).map(String::as_str).unwrap_or_default();
        let before =
            before.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect();
        Some(Paused { note, before })
    }
}

impl fmt::Display for Paused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.note)
    }
}

/// Disables all servers, and says so in the document, so that servers that start later are disabled, too: ours
/// keep the status they had, Java's take the document's. Pausing ends with [`resume`], not with a restart.
///
/// ```
/// use elasticjob_core::ops::config::pause;
/// use elasticjob_core::ops::{JobTree, Refusal};
///
/// let nothing = JobTree::new("nightly", vec![]);
/// assert_eq!(pause(&nothing, "alice", jiff::Timestamp::UNIX_EPOCH), Err(Refusal::NoConfig));
/// ```
pub fn pause(tree: &JobTree, by: &str, now: Timestamp) -> Result<Act, Refusal> {
    let mut spec = tree.spec()?;
    if let Some(paused) = Paused::of(&spec) {
        return Err(Refusal::Paused { paused: paused.to_string() });
    }
    let mut before: Vec<&str> = tree
        .view
        .servers
        .iter()
        .filter(|(_, status)| *status == DISABLED)
        .map(|(ip, _)| ip.as_str())
        .collect();
    before.extend(spec.disabled.then_some(THE_SETTING));
    let note = format!("{now:.0} by {by}");
    let mut act = Act::default();
    if !before.is_empty() {
        spec.props.insert(PAUSED_BEFORE.to_owned(), before.join(","));
    }
    spec.props.insert(PAUSED.to_owned(), note.clone());
    spec.disabled = true;
    act.add(Node::Config.set_at(stored(tree)?.version, spec.to_yaml()), format!("the job is paused: {note}"));
    for (ip, _) in tree.view.servers.iter().filter(|(_, status)| *status != DISABLED) {
        act.add(Node::Server(ip.clone()).set(DISABLED), format!("server {ip} is disabled"));
    }
    act.then("nothing of the job runs until it is resumed, on no server, also not on those that start later");
    act.then("fires that come meanwhile are skipped, and not made up for; shards that run may end");
    if spec.overwrite {
        act.then("`overwrite` is on: a worker that is started replaces the document, and with it the pause");
    }
    Ok(act)
}

/// Ends a pause: enables the servers that the pause disabled, and those that came since.
///
/// ```
/// use elasticjob_core::ops::config::resume;
/// use elasticjob_core::ops::{JobTree, Refusal};
///
/// assert_eq!(resume(&JobTree::new("nightly", vec![])), Err(Refusal::NoConfig));
/// ```
pub fn resume(tree: &JobTree) -> Result<Act, Refusal> {
    let mut spec = tree.spec()?;
    let paused = Paused::of(&spec).ok_or(Refusal::NotPaused)?;
    spec.props.remove(PAUSED);
    spec.props.remove(PAUSED_BEFORE);
    spec.disabled = paused.before.contains(THE_SETTING);
    let mut act = Act::default();
    act.add(Node::Config.set_at(stored(tree)?.version, spec.to_yaml()), "the job is resumed");
    for (ip, _) in tree.view.servers.iter().filter(|(_, status)| *status != ENABLED) {
        if paused.before.contains(ip) {
            act.then(format!("server {ip} stays disabled, as it was before the pause"));
        } else {
            act.add(Node::Server(ip.clone()).set(ENABLED), format!("server {ip} is enabled"));
        }
    }
    act.then("the shards are handed out anew, and run from the next fire on");
    Ok(act)
}
