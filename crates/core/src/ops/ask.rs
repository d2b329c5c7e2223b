//! What an operator sees. The statuses are those of Java's consoles, found by Java's rules; but an owner that is
//! gone is shown as gone, where Java's page of shards fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;

use elasticjob_cron::Zone;
use jiff::Timestamp;

use super::JobTree;
use super::config::Paused;
use crate::node::Node;
use crate::spec::{JobSpec, SHARDS_MAX};
use crate::view::{DISABLED, keeps_cursors};

/// The state of a job, as Java's consoles name it.
///
/// ```
/// assert_eq!(elasticjob_core::ops::ask::JobStatus::ShardingFlag.to_string(), "SHARDING_FLAG");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobStatus {
    /// At work.
    Ok,
    /// All of its servers are disabled.
    Disabled,
    /// Its shards are about to be handed out: none is, or some belong to an instance that is gone.
    ShardingFlag,
    /// It has no instances.
    Crashed,
}

impl fmt::Display for JobStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            JobStatus::Ok => "OK",
            JobStatus::Disabled => "DISABLED",
            JobStatus::ShardingFlag => "SHARDING_FLAG",
            JobStatus::Crashed => "CRASHED",
        })
    }
}

/// The state of a shard, as Java's consoles name it.
///
/// ```
/// assert_eq!(elasticjob_core::ops::ask::ShardStatus::Pending.to_string(), "PENDING");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShardStatus {
    /// It must not run.
    Disabled,
    /// It runs.
    Running,
    /// It has no owner, or one that is gone.
    ShardingFlag,
    /// It waits for its next fire.
    Pending,
}

impl fmt::Display for ShardStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ShardStatus::Disabled => "DISABLED",
            ShardStatus::Running => "RUNNING",
            ShardStatus::ShardingFlag => "SHARDING_FLAG",
            ShardStatus::Pending => "PENDING",
        })
    }
}

/// A job in one line.
///
/// ```
/// use elasticjob_core::ops::ask::{JobStatus, JobSummary};
/// use elasticjob_core::ops::JobTree;
///
/// let nobody_there = JobSummary::of(&JobTree::new("nightly", vec![]));
/// assert_eq!(nobody_there.status, JobStatus::Crashed);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSummary {
    /// Its name.
    pub name: String,
    /// Its state.
    pub status: JobStatus,
    /// For people.
    pub description: String,
    /// When it fires; `None` if only when asked.
    pub cron: Option<String>,
    /// How many instances are there.
    pub instances: usize,
    /// How many shards it has.
    pub shards: u32,
    /// Since when and by whom it is paused, if it is.
    pub paused: Option<Paused>,
    /// Why its settings cannot be read, if so.
    pub problem: Option<String>,
}

impl JobSummary {
    /// The job in one line.
    pub fn of(tree: &JobTree) -> JobSummary {
        let spec = tree.spec();
        JobSummary {
            name: tree.name.clone(),
            status: status(tree),
            instances: tree.view.instances.len(),
            shards: tree.total_by(spec.as_ref().ok()),
            problem: spec.as_ref().err().map(ToString::to_string),
            paused: spec.as_ref().ok().and_then(Paused::of),
            cron: spec.as_ref().ok().and_then(|it| it.cron.clone()).filter(|it| !it.trim().is_empty()),
            description: spec.map(|it| it.description).unwrap_or_default(),
        }
    }
}

/// Java's rules, the first that fits.
fn status(tree: &JobTree) -> JobStatus {
    let view = &tree.view;
    let disabled = view.servers.values().filter(|it| *it == DISABLED).count();
    let mut owners = view.items.values().filter_map(|it| it.owner.as_ref()).peekable();
    if view.instances.is_empty() {
        JobStatus::Crashed
    } else if disabled == view.servers.len() {
        JobStatus::Disabled
    } else if owners.peek().is_none() || owners.any(|it| !view.is_alive(&it.by)) {
        JobStatus::ShardingFlag
    } else {
        JobStatus::Ok
    }
}

/// A live instance of a job.
///
/// ```
/// use elasticjob_core::ops::{JobTree, ask};
///
/// assert!(ask::instances(&JobTree::new("nightly", vec![])).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceInfo {
    /// Its id.
    pub id: String,
    /// Its host.
    pub server: String,
    /// Whether its host may work.
    pub enabled: bool,
    /// Whether it leads.
    pub leads: bool,
    /// Whether it is one of ours; otherwise it is a Java peer.
    pub rust: bool,
    /// Since when it is there.
    pub since: Option<Timestamp>,
    /// What it owns.
    pub items: BTreeSet<u32>,
    /// What it runs.
    pub running: BTreeSet<u32>,
    /// It was asked to run now, and has not begun.
    pub asked: bool,
}

/// The instances of a job, by id.
pub fn instances(tree: &JobTree) -> Vec<InstanceInfo> {
    let info = |id: &String| {
        let server = tree.server_of(id);
        InstanceInfo {
            id: id.clone(),
            enabled: tree.view.is_enabled(&server),
            leads: tree.view.leader.as_ref() == Some(id),
            rust: keeps_cursors(id),
            since: tree.written(&Node::Instance(id.clone())),
            items: tree.items_of(id),
            running: tree.run_by(id),
            asked: tree.view.triggers.contains_key(id),
            server,
        }
    };
    tree.view.instances.keys().map(info).collect()
}

/// A shard of a job.
///
/// ```
/// use elasticjob_core::ops::{JobTree, ask};
///
/// assert!(ask::shards(&JobTree::new("nightly", vec![])).is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardInfo {
    /// Its number.
    pub item: u32,
    /// Its parameter.
    pub parameter: Option<String>,
    /// Its state.
    pub status: ShardStatus,
    /// The instance it belongs to.
    pub owner: Option<String>,
    /// The owner's host.
    pub server: Option<String>,
    /// Whether the owner lives.
    pub owner_alive: bool,
    /// The instance that runs it.
    pub running: Option<String>,
    /// Whether that instance lives.
    pub runner_alive: bool,
    /// Since when it runs.
    pub running_since: Option<Timestamp>,
    /// The instance that took it over from a dead one.
    pub failover: Option<String>,
    /// Its runner died, and nobody has taken it over yet.
    pub crashed: bool,
    /// A fire was missed and will be made up for.
    pub misfire: bool,
    /// Which fire, if it was noted.
    pub missed: Option<Timestamp>,
    /// The last settled fire: it ran, or was skipped for a reason. Only Rust peers note it.
    pub settled: Option<Timestamp>,
    /// The job has fewer shards than this number.
    pub surplus: bool,
}

/// The shards of a job, those without an owner included, and those with nodes beyond the job's number.
pub fn shards(tree: &JobTree) -> Vec<ShardInfo> {
    let spec = tree.spec().ok();
    let total = tree.total_by(spec.as_ref());
    let parameters = spec.as_ref().and_then(|it| it.item_parameters().ok()).unwrap_or_default();
    // A number that cannot be meant must not be counted up to.
    let listed = spec.map_or(0, |it| it.sharding_total_count).min(SHARDS_MAX);
    let beyond = tree.view.items.range(listed..).map(|(item, _)| *item);
    (0..listed).chain(beyond).map(|item| shard(tree, item, &parameters, item >= total)).collect()
}

fn shard(tree: &JobTree, item: u32, parameters: &BTreeMap<u32, String>, surplus: bool) -> ShardInfo {
    let state = tree.view.items.get(&item).map(|it| (**it).clone()).unwrap_or_default();
    let alive = |id: Option<&String>| id.is_some_and(|id| tree.view.is_alive(id));
    let owner = state.owner.map(|it| it.by);
    let running = state.running.map(|it| it.by);
    let owner_alive = alive(owner.as_ref());
    let status = if state.disabled {
        ShardStatus::Disabled
    } else if running.is_some() {
        ShardStatus::Running
    } else if !owner_alive {
        ShardStatus::ShardingFlag
    } else {
        ShardStatus::Pending
    };
    ShardInfo {
        item,
        parameter: parameters.get(&item).cloned(),
        status,
        server: owner.as_ref().map(|id| tree.server_of(id)),
        owner_alive,
        owner,
        runner_alive: alive(running.as_ref()),
        running_since: running.as_ref().and_then(|_| tree.written(&Node::Running(item))),
        running,
        failover: state.failover.or(state.failovering),
        crashed: tree.view.crashed.contains(&item),
        misfire: state.misfire,
        missed: state.missed,
        settled: state.cursor.and_then(|it| it.at),
        surplus,
    }
}

/// All that there is to see of a job.
///
/// ```
/// use elasticjob_core::ops::{JobTree, ask};
/// use elasticjob_cron::Zone;
///
/// let nobody = JobTree::new("nightly", vec![]);
/// let detail = ask::JobDetail::of(&nobody, jiff::Timestamp::UNIX_EPOCH, &Zone::UTC);
/// assert_eq!(detail.leader, None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobDetail {
    /// In one line.
    pub summary: JobSummary,
    /// Its settings, if they can be read.
    pub spec: Option<JobSpec>,
    /// Its class, in a fleet with Java peers.
    pub class: String,
    /// What the cron means.
    pub schedule: Option<String>,
    /// When it fires next.
    pub next_fire: Option<Timestamp>,
    /// Who leads.
    pub leader: Option<String>,
    /// The shards are to be handed out anew.
    pub resharding: bool,
    /// What each host may do.
    pub servers: BTreeMap<String, String>,
    /// Who is there.
    pub instances: Vec<InstanceInfo>,
    /// Who has what.
    pub shards: Vec<ShardInfo>,
}

impl JobDetail {
    /// The job as it is; `zone` is where its schedule lives if its settings do not say.
    pub fn of(tree: &JobTree, now: Timestamp, zone: &Zone) -> JobDetail {
        let schedule = tree.schedule(zone);
        JobDetail {
            summary: JobSummary::of(tree),
            spec: tree.spec().ok(),
            class: tree.view.class.clone().unwrap_or_default(),
            schedule: schedule.as_ref().map(crate::timer::Timer::describe),
            next_fire: schedule.and_then(|it| it.next_after(now)),
            leader: tree.view.leader.clone(),
            resharding: tree.view.necessary,
            servers: tree.view.servers.clone(),
            instances: instances(tree),
            shards: shards(tree),
        }
    }
}

/// A host, over all jobs.
///
/// ```
/// use elasticjob_core::ops::{JobTree, ask};
///
/// assert!(ask::servers(&[JobTree::new("nightly", vec![])]).is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerSummary {
    /// Its address.
    pub ip: String,
    /// The live instances on it.
    pub instances: BTreeSet<String>,
    /// The jobs that know it.
    pub jobs: BTreeSet<String>,
    /// Those of them that must not run on it.
    pub disabled: BTreeSet<String>,
}

/// All hosts, by address.
pub fn servers<'a>(trees: impl IntoIterator<Item = &'a JobTree>) -> Vec<ServerSummary> {
    let mut servers: BTreeMap<String, ServerSummary> = BTreeMap::new();
    for tree in trees {
        for (ip, status) in &tree.view.servers {
            let server = servers.entry(ip.clone()).or_default();
            server.ip.clone_from(ip);
            server.jobs.insert(tree.name.clone());
            server.instances.extend(tree.instances_of(ip).cloned());
            if status == DISABLED {
                server.disabled.insert(tree.name.clone());
            }
        }
    }
    let mut servers: Vec<ServerSummary> = servers.into_values().collect();
    servers.sort_by_key(|it| it.ip.parse::<Ipv4Addr>().ok());
    servers
}
