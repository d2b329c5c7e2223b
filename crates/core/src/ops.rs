//! What operators ask and ask for, as functions of what the registry says.
//!
//! [`ask`] has the questions, [`act`] the commands, [`config`] the changes of a job's document. A command is an
//! [`Act`]: the transaction, and in words what it does and what will come of it. Nothing here waits or writes;
//! whoever commits an act and is refused looks again and plans again.

pub mod act;
pub mod ask;
pub mod check;
pub mod clocks;
pub mod config;
pub mod dump;
pub mod explain;
pub mod import;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use elasticjob_cron::Zone;
use jiff::Timestamp;

use crate::node::Node;
use crate::plan::Plan;
use crate::spec::legacy::{Generation, detect};
use crate::spec::{InstanceDoc, JobSpec, SpecError};
use crate::strategy::Strategies;
use crate::timer::Timer;
use crate::tree::{Change, Entry, Op};
use crate::view::{View, ip_of};

pub use words::{diff, near};

/// A job's subtree as it was read: the typed view, and the nodes themselves with their ages.
///
/// ```
/// use elasticjob_core::ops::JobTree;
///
/// let tree = JobTree::new("nightly", vec![]);
/// assert!(!tree.exists());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTree {
    /// The job's name.
    pub name: String,
    /// What its subtree says.
    pub view: View,
    entries: BTreeMap<String, Entry>,
}

impl JobTree {
    /// The subtree of the job of that name, root included.
    pub fn new(name: impl Into<String>, entries: Vec<Entry>) -> JobTree {
        let view = View::new(&entries);
        JobTree {
            name: name.into(),
            view,
            entries: entries.into_iter().map(|it| (it.path.clone(), it)).collect(),
        }
    }

    /// Follows one change, whose path is relative to the job.
    pub fn apply(&mut self, change: &Change) {
        self.view.apply(change);
        match change {
            Change::Put(entry) => drop(self.entries.insert(entry.path.clone(), entry.clone())),
            Change::Gone { path } => drop(self.entries.remove(path)),
        }
    }

    /// Whether there is anything.
    pub fn exists(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Whether it is a job, or what is left of one: a node that has nothing of a job is somebody else's.
    pub fn is_job(&self) -> bool {
        self.view != View { class: self.view.class.clone(), ..View::default() }
    }

    /// Every node, in the order of the paths.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.values()
    }

    /// When a node was last written, if it is there.
    pub fn written(&self, node: &Node) -> Option<Timestamp> {
        self.entries.get(&node.path()).map(|it| it.stat.modified)
    }

    /// The job's settings.
    pub fn spec(&self) -> Result<JobSpec, Refusal> {
        let Some(config) = &self.view.config else { return Err(Refusal::NoConfig) };
        match self.generation() {
            Generation::V1 => Err(Refusal::OldGeneration { generation: "1.x" }),
            Generation::V2 => Err(Refusal::OldGeneration { generation: "2.x" }),
            Generation::V3 => JobSpec::from_yaml(&config.text).map_err(Refusal::Config),
        }
    }

    /// Which generation wrote the job's settings.
    pub fn generation(&self) -> Generation {
        let has_children = self.below("/config/").next().is_some();
        detect(has_children, self.view.config.as_ref().map_or("", |it| it.text.as_str()))
    }

    /// When the job fires, if it does; `zone` is where its schedule lives if its settings do not say.
    pub fn schedule(&self, zone: &Zone) -> Option<Timer> {
        schedule_of(&self.spec().ok()?, zone)
    }

    /// The host of an instance, by its document or else by its id.
    pub fn server_of(&self, instance: &str) -> String {
        let entry = self.entries.get(&Node::Instance(instance.to_owned()).path());
        let document = entry.and_then(|it| InstanceDoc::from_yaml(&it.data).ok());
        document.and_then(|it| it.server_ip).unwrap_or_else(|| ip_of(instance).to_owned())
    }

    fn below(&self, prefix: &str) -> impl Iterator<Item = &Entry> {
        let inside = prefix.to_owned();
        self.entries
            .range(prefix.to_owned()..)
            .map(|it| it.1)
            .take_while(move |it| it.path.starts_with(&inside))
    }

    /// How many items there are; if the settings cannot be read, those that have nodes.
    fn total(&self) -> u32 {
        self.total_by(self.spec().ok().as_ref())
    }

    fn total_by(&self, spec: Option<&JobSpec>) -> u32 {
        let known = || self.view.items.keys().next_back().map_or(0, |last| last.saturating_add(1));
        spec.map_or_else(known, |spec| spec.sharding_total_count)
    }

    fn instances_of(&self, ip: &str) -> impl Iterator<Item = &String> {
        self.view.instances.keys().filter(move |id| self.server_of(id) == ip)
    }

    fn items_of(&self, instance: &str) -> BTreeSet<u32> {
        let owned = |it: &crate::view::Item| it.owner.as_ref().is_some_and(|owner| owner.by == instance);
        self.view.items.iter().filter(|(_, it)| owned(it)).map(|(item, _)| *item).collect()
    }

    fn run_by(&self, instance: &str) -> BTreeSet<u32> {
        let runs = |it: &crate::view::Item| it.running.as_ref().is_some_and(|mark| mark.by == instance);
        self.view.items.iter().filter(|(_, it)| runs(it)).map(|(item, _)| *item).collect()
    }
}

/// When a job with these settings fires.
fn schedule_of(spec: &JobSpec, zone: &Zone) -> Option<Timer> {
    // Only a process knows its own strategies, and a schedule does not depend on them.
    let mut spec = spec.clone();
    (spec.job_sharding_strategy_type, spec.sharding_item_parameters) = (None, String::new());
    Plan::compile(spec, &Strategies::default(), zone).ok()?.schedule
}

/// Asks every instance to run its items now, whatever will come of it; [`act::trigger`] looks before. Those
/// that were asked before and have not begun are not asked twice.
///
/// ```
/// use elasticjob_core::node::Node;
/// use elasticjob_core::ops::trigger;
/// use elasticjob_core::view::View;
///
/// let mut view = View::default();
/// view.instances.insert("10.0.0.1@-@1.a.1".into(), true);
/// assert_eq!(trigger(&view)[1], Node::Trigger("10.0.0.1@-@1.a.1".into()).create(""));
/// ```
pub fn trigger(view: &View) -> Vec<Op> {
    trigger_with(view, "")
}

/// The same, with a parameter for the runs that come of it.
///
/// ```
/// use elasticjob_core::node::Node;
/// use elasticjob_core::ops::trigger_with;
/// use elasticjob_core::view::View;
///
/// let mut view = View::default();
/// view.instances.insert("10.0.0.1@-@1.a.1".into(), true);
/// let asked = Node::Trigger("10.0.0.1@-@1.a.1".into()).create("day=2026-11-15");
/// assert_eq!(trigger_with(&view, "day=2026-11-15")[1], asked);
/// ```
pub fn trigger_with(view: &View, parameter: &str) -> Vec<Op> {
    let unasked = view.instances.keys().filter(|id| !view.triggers.contains_key(*id));
    unasked.flat_map(|id| request(id, parameter)).collect()
}

/// An instance that has gone meanwhile would never react.
fn request(id: &str, parameter: &str) -> [Op; 2] {
    [Node::Instance(id.to_owned()).exists(), Node::Trigger(id.to_owned()).create(parameter)]
}

/// What was done, and what will come of it: sentences for people.
///
/// ```
/// use elasticjob_core::ops::Done;
///
/// assert!(Done::default().changes.is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// What is now different in the registry; empty if everything was so already.
    pub changes: Vec<String>,
    /// What the instances will do about it.
    pub consequences: Vec<String>,
}

/// A command, planned: what to commit, and what to say when it is done.
///
/// ```
/// use elasticjob_core::node::Node;
/// use elasticjob_core::ops::{JobTree, act};
/// use elasticjob_core::tree::Tree;
/// use jiff::Timestamp;
///
/// let mut tree = Tree::default();
/// let session = tree.open_session();
/// let server = Node::Server("10.0.0.1".into()).create("ENABLED");
/// tree.commit(session, "/nightly", &[server], Timestamp::UNIX_EPOCH).unwrap();
///
/// let nightly = JobTree::new("nightly", tree.snapshot("/nightly"));
/// let act = act::disable(&nightly, &act::Part::Job).unwrap();
/// assert_eq!(act.done.changes, ["server 10.0.0.1 is disabled"]);
/// tree.commit(session, "/nightly", &act.ops, Timestamp::UNIX_EPOCH).unwrap();
/// assert_eq!(tree.get("/nightly/servers/10.0.0.1"), Some("DISABLED"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "an act is only a plan until it is committed"]
pub struct Act {
    /// The transaction; empty if there is nothing to do.
    pub ops: Vec<Op>,
    /// What to say when it is done.
    pub done: Done,
}

impl Act {
    fn add(&mut self, op: Op, change: impl Into<String>) {
        self.ops.push(op);
        self.done.changes.push(change.into());
    }

    fn then(&mut self, consequence: impl Into<String>) {
        self.done.consequences.push(consequence.into());
    }
}

/// Why a command makes no sense for the job as it is. Nothing is done.
///
/// ```
/// use elasticjob_core::ops::Refusal;
///
/// let refusal = Refusal::NoSuchItem { item: 7, total: 3 };
/// assert_eq!(refusal.to_string(), "there is no shard 7: the job has shards 0 to 2");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The job has no settings.
    #[error("it has no configuration: start a worker that has the job, or remove what is left of it")]
    NoConfig,
    /// The settings are those of an ancestor.
    #[error("its configuration is that of {generation}: convert it with `elasticjob import`")]
    OldGeneration {
        /// Which.
        generation: &'static str,
    },
    /// The stored settings cannot be read.
    #[error("its stored configuration cannot be read: {0}; correct it with `elasticjob job edit`")]
    Config(SpecError),
    /// The new settings are wrong.
    #[error("the new configuration is refused: {0}")]
    NewConfig(SpecError),
    /// The new settings are for another job.
    #[error("the new configuration names job `{given}`: a job keeps its name; write jobName: {job}")]
    OtherName {
        /// The job.
        job: String,
        /// What was given.
        given: String,
    },
    /// The new settings have a key that no peer knows.
    #[error(
        "the new configuration has an unknown setting `{key}`{}: peers would refuse the whole of it",
        words::meant(near)
    )]
    UnknownKey {
        /// The key.
        key: String,
        /// A key that is spelled alike.
        near: Vec<String>,
    },
    /// Somebody else changed the settings meanwhile.
    #[error("its configuration was changed by somebody else meanwhile; what changed since you read it:\n{}", diff.join("\n"))]
    Edited {
        /// From what was read to what is stored, by lines.
        diff: Vec<String>,
    },
    /// Nobody is there to do it.
    #[error("no instance of it is there: start a worker that has the job")]
    NoInstances,
    /// No such instance.
    #[error("it has no instance `{id}`; {}", words::known(known))]
    NoSuchInstance {
        /// What was asked for.
        id: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// No such server.
    #[error("it has no server `{ip}`; {}", words::known(known))]
    NoSuchServer {
        /// What was asked for.
        ip: String,
        /// Those there are.
        known: Vec<String>,
    },
    /// No such item.
    #[error("there is no shard {item}: the job has {}", words::shards_up_to(*total))]
    NoSuchItem {
        /// What was asked for.
        item: u32,
        /// Number of items.
        total: u32,
    },
    /// A trigger would be answered with nothing.
    #[error("nothing would run, because {why}")]
    WouldNotRun {
        /// Why, and the remedy.
        why: String,
    },
    /// An instance has not begun what it was asked for with another parameter.
    #[error(
        "{id} was asked to run with another parameter, and has not begun yet: trigger it again when it has"
    )]
    AskedOtherwise {
        /// The instance.
        id: String,
    },
    /// The parameter of a trigger is too long.
    #[error(
        "the parameter has {size} bytes, and a trigger of a job with {total} shard(s) takes {limit} at most: put what is long where the job can read it, and give its name"
    )]
    ParameterTooLong {
        /// Its size, in bytes.
        size: usize,
        /// The most that is taken.
        limit: usize,
        /// Number of items.
        total: u32,
    },
    /// It is paused.
    #[error("it is paused ({paused}): resume it with `elasticjob job resume`")]
    Paused {
        /// Since when, and by whom.
        paused: String,
    },
    /// It is not paused.
    #[error("it is not paused")]
    NotPaused,
    /// Settings of an older generation that cannot be converted.
    #[error("its configuration cannot be converted: {0}; correct it there and try again")]
    Import(SpecError),
    /// A job that is being imported is still at work.
    #[error(
        "{what}: stop every process of the old generation first, because two generations must not share a namespace"
    )]
    StillAlive {
        /// Who lives.
        what: String,
    },
    /// A job of that name is there already.
    #[error("a job of that name is there already: remove it first, or import into another namespace")]
    AlreadyThere,
}
