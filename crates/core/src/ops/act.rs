//! What an operator tells a job to do.

use std::collections::BTreeSet;

use super::config::Paused;
use super::words::shards;
use super::{Act, Done, JobTree, Refusal, request};
use crate::node::Node;
use crate::tree::Op;
use crate::view::{DISABLED, ENABLED, keeps_cursors};

/// Which part of a job a command is about.
///
/// ```
/// use elasticjob_core::ops::act::{Part, enable};
/// use elasticjob_core::ops::JobTree;
///
/// let refusal = enable(&JobTree::new("nightly", vec![]), &Part::Item(3)).unwrap_err();
/// assert_eq!(refusal.to_string(), "there is no shard 3: the job has no shards");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Job,
    /// One host, for this job.
    Server(String),
    /// One instance.
    Instance(String),
    /// One shard.
    Item(u32),
}

/// Asks all instances, or one, to run their shards now. Those that were asked before and have not begun are not
/// asked twice.
///
/// ```
/// use elasticjob_core::ops::act::{Part, trigger};
/// use elasticjob_core::ops::{JobTree, Refusal};
///
/// let nobody = JobTree::new("nightly", vec![]);
/// assert_eq!(trigger(&nobody, None, ""), Err(Refusal::NoInstances));
/// ```
pub fn trigger(tree: &JobTree, instance: Option<&str>, parameter: &str) -> Result<Act, Refusal> {
    check_parameter(parameter, tree.total())?;
    let view = &tree.view;
    let whom: Vec<&String> = match instance {
        None => view.instances.keys().collect(),
        Some(id) => vec![known_instance(tree, id)?],
    };
    if whom.is_empty() {
        return Err(Refusal::NoInstances);
    }
    if whom.iter().all(|id| !view.is_enabled(&tree.server_of(id))) {
        let who =
            if instance.is_some() { "its server is disabled" } else { "all servers of it are disabled" };
        return Err(Refusal::WouldNotRun { why: format!("{who}: enable one first") });
    }
    let mut act = Act::default();
    for id in whom {
        if let Some(asked_with) = view.triggers.get(id) {
            if asked_with != parameter {
                return Err(Refusal::AskedOtherwise { id: id.clone() });
            }
            act.then(format!("{id} had been asked already, and has not begun yet"));
            continue;
        }
        act.ops.extend(request(id, parameter));
        act.done.changes.push(format!("{id} is asked to run"));
        act.then(what_a_trigger_causes(tree, id));
    }
    Ok(act)
}

/// A script gets it as part of an argument, an HTTP service as part of a header.
const PARAMETER_MAX: usize = 4096;
/// What a transaction may hold; ZooKeeper takes a little more.
const TRANSACTION: usize = 900 << 10;
/// What a shard takes up in the transaction that begins it, at most; in the one that hands on the trigger of a dead
/// instance it takes less.
const TO_BEGIN: usize = 700;

/// A parameter is kept with every shard that it is for, up to a thousand of them in one transaction, which must not be
/// too large to be done.
fn check_parameter(parameter: &str, total: u32) -> Result<(), Refusal> {
    let shards = usize::try_from(total.max(1)).unwrap_or(usize::MAX);
    let begin = (TRANSACTION / shards.min(crate::coord::CHUNK)).saturating_sub(TO_BEGIN);
    let (size, limit) = (parameter.len(), PARAMETER_MAX.min(begin));
    if size > limit {
        return Err(Refusal::ParameterTooLong { size, limit, total });
    }
    Ok(())
}

fn what_a_trigger_causes(tree: &JobTree, id: &str) -> String {
    let (owned, running) = (tree.items_of(id), tree.run_by(id));
    if !tree.view.is_enabled(&tree.server_of(id)) {
        format!("{id} runs nothing: its server is disabled")
    } else if owned.is_empty() && !tree.view.necessary {
        format!("{id} runs nothing: no shard belongs to it")
    } else if running.is_empty() {
        let owned =
            if owned.is_empty() { "the shards that it is about to get".to_owned() } else { shards(&owned) };
        format!("{id} runs {owned} now")
    } else if keeps_cursors(id) {
        format!("{id} runs {} when the round it is in has ended", shards(&owned))
    } else {
        format!("{id} is a Java peer at work: it will ignore the request")
    }
}

/// Lets no server of the job work, or not this one, or not this shard.
///
/// ```
/// use elasticjob_core::ops::act::{Part, disable};
/// use elasticjob_core::ops::JobTree;
///
/// let refusal = disable(&JobTree::new("nightly", vec![]), &Part::Server("10.0.0.1".into())).unwrap_err();
/// assert_eq!(refusal.to_string(), "it has no server `10.0.0.1`; there is none");
/// ```
pub fn disable(tree: &JobTree, part: &Part) -> Result<Act, Refusal> {
    let mut act = Act::default();
    if let Part::Item(item) = part {
        let item = known_item(tree, *item)?;
        if !tree.view.items.get(&item).is_some_and(|it| it.disabled) {
            // A job that was removed meanwhile must not come back to life.
            act.ops.push(Node::Config.exists());
            act.add(Node::Disabled(item).create(""), format!("shard {item} is disabled"));
            act.then(format!("shard {item} does not run again until it is enabled; what runs of it may end"));
        }
        return Ok(act);
    }
    for ip in part_servers(tree, part)? {
        if tree.view.servers.get(&ip).is_none_or(|it| it != DISABLED) {
            act.add(Node::Server(ip.clone()).set(DISABLED), format!("server {ip} is disabled"));
        }
    }
    if !act.ops.is_empty() {
        let off: BTreeSet<&str> =
            act.ops.iter().filter_map(|it| it.path().strip_prefix("/servers/")).collect();
        let left =
            tree.view.available().into_iter().filter(|id| !off.contains(tree.server_of(id).as_str())).count();
        act.then(match left {
            0 => "nothing of the job runs until a server is enabled; shards that run may end".to_owned(),
            left => format!("its shards move to the {left} instance(s) that may still work"),
        });
    }
    Ok(act)
}

/// Lets all servers of the job work again, or this one, or this shard.
///
/// ```
/// use elasticjob_core::ops::act::{Part, enable};
/// use elasticjob_core::ops::JobTree;
///
/// let nothing_to_do = enable(&JobTree::new("nightly", vec![]), &Part::Job).unwrap();
/// assert!(nothing_to_do.ops.is_empty());
/// ```
pub fn enable(tree: &JobTree, part: &Part) -> Result<Act, Refusal> {
    let mut act = Act::default();
    if let Part::Item(item) = part {
        let item = known_item(tree, *item)?;
        if tree.view.items.get(&item).is_some_and(|it| it.disabled) {
            act.add(Node::Disabled(item).delete(), format!("shard {item} is enabled"));
            act.then(format!("shard {item} runs again from its next fire on"));
        }
        return Ok(act);
    }
    let servers = part_servers(tree, part)?;
    if let Some(paused) = tree.spec().ok().as_ref().and_then(Paused::of) {
        return Err(Refusal::Paused { paused: paused.to_string() });
    }
    for ip in servers {
        if !tree.view.is_enabled(&ip) {
            act.add(Node::Server(ip.clone()).set(ENABLED), format!("server {ip} is enabled"));
        }
    }
    if !act.ops.is_empty() {
        act.then("the shards are handed out anew, and run from the next fire on");
    }
    Ok(act)
}

/// Ends the job on all instances, those of a server, or one. Their processes go on, without this job, until
/// they are started again.
///
/// ```
/// use elasticjob_core::ops::act::{Part, shutdown};
/// use elasticjob_core::ops::{JobTree, Refusal};
///
/// let nobody = JobTree::new("nightly", vec![]);
/// assert_eq!(shutdown(&nobody, &Part::Job), Err(Refusal::NoInstances));
/// ```
pub fn shutdown(tree: &JobTree, part: &Part) -> Result<Act, Refusal> {
    let mut act = Act::default();
    let instances = part_instances(tree, part)?;
    if instances.is_empty() {
        return Err(Refusal::NoInstances);
    }
    shut_down(tree, &instances, &mut act);
    Ok(act)
}

fn shut_down(tree: &JobTree, instances: &[String], act: &mut Act) {
    for id in instances {
        act.add(Node::Instance(id.clone()).delete(), format!("instance {id} is shut down for this job"));
        let running = tree.run_by(id);
        if !running.is_empty() {
            act.then(format!("{id} is running {}: what runs may end", shards(&running)));
        }
    }
    if instances.is_empty() {
        return;
    }
    act.then(match tree.view.instances.len() - instances.len() {
        0 => "nothing of the job runs until a process that has it is started".to_owned(),
        left => format!("its shards move to the {left} instance(s) that stay"),
    });
    act.then("the processes themselves go on; the job comes back to them when they are restarted");
}

/// Forgets a server: shuts its instances down, and removes it from the job.
///
/// ```
/// use elasticjob_core::ops::act::remove_server;
/// use elasticjob_core::ops::JobTree;
///
/// assert!(remove_server(&JobTree::new("nightly", vec![]), "10.0.0.1").is_err());
/// ```
pub fn remove_server(tree: &JobTree, ip: &str) -> Result<Act, Refusal> {
    let mut act = Act::default();
    let part = Part::Server(ip.to_owned());
    part_servers(tree, &part)?;
    shut_down(tree, &part_instances(tree, &part)?, &mut act);
    act.add(Node::Server(ip.to_owned()).delete(), format!("server {ip} is removed"));
    Ok(act)
}

/// Removes the job and all its nodes: its document and its instances first, so that what is still alive notices
/// at once and does not come back; then everything else, children first.
///
/// ```
/// use elasticjob_core::ops::act::remove_job;
/// use elasticjob_core::ops::JobTree;
///
/// assert!(remove_job(&JobTree::new("nightly", vec![])).ops.is_empty());
/// ```
pub fn remove_job(tree: &JobTree) -> Act {
    let first = |path: &str| path == "/config" || path.starts_with("/instances/");
    let (heads, others): (Vec<&str>, Vec<&str>) =
        tree.entries().rev().map(|it| it.path.as_str()).partition(|path| first(path));
    // 1.x keeps its settings below `config`, which must not go before them.
    let (heads, others) = match tree.entries().any(|it| it.path.starts_with("/config/")) {
        true => (Vec::new(), tree.entries().rev().map(|it| it.path.as_str()).collect()),
        false => (heads, others),
    };
    let delete = |path: &str| Op::Delete { path: path.to_owned() };
    let mut act = Act { ops: heads.into_iter().chain(others).map(delete).collect(), done: Done::default() };
    if !act.ops.is_empty() {
        act.done.changes.push(format!("job {} is removed, with {} node(s)", tree.name, act.ops.len()));
    }
    for id in tree.view.instances.keys() {
        act.then(format!("{id} stops working at the job; what runs may end"));
    }
    act
}

fn known_instance<'a>(tree: &'a JobTree, id: &str) -> Result<&'a String, Refusal> {
    let known = || tree.view.instances.keys().cloned().collect();
    let found = tree.view.instances.get_key_value(id).map(|(id, _)| id);
    found.ok_or_else(|| Refusal::NoSuchInstance { id: id.to_owned(), known: known() })
}

fn known_item(tree: &JobTree, item: u32) -> Result<u32, Refusal> {
    let total = tree.total();
    if item < total { Ok(item) } else { Err(Refusal::NoSuchItem { item, total }) }
}

fn known_server(tree: &JobTree, ip: &str) -> Result<String, Refusal> {
    let known = || tree.view.servers.keys().cloned().collect();
    let found = tree.view.servers.get_key_value(ip).map(|(ip, _)| ip.clone());
    found.ok_or_else(|| Refusal::NoSuchServer { ip: ip.to_owned(), known: known() })
}

fn part_servers(tree: &JobTree, part: &Part) -> Result<Vec<String>, Refusal> {
    match part {
        Part::Job => Ok(tree.view.servers.keys().cloned().collect()),
        Part::Server(ip) => Ok(vec![known_server(tree, ip)?]),
        Part::Instance(id) => Ok(vec![known_server(tree, &tree.server_of(known_instance(tree, id)?))?]),
        Part::Item(item) => known_item(tree, *item).map(|_| Vec::new()),
    }
}

fn part_instances(tree: &JobTree, part: &Part) -> Result<Vec<String>, Refusal> {
    match part {
        Part::Job => Ok(tree.view.instances.keys().cloned().collect()),
        Part::Server(ip) => {
            let ip = known_server(tree, ip)?;
            Ok(tree.instances_of(&ip).cloned().collect())
        }
        Part::Instance(id) => Ok(vec![known_instance(tree, id)?.clone()]),
        Part::Item(item) => {
            let item = known_item(tree, *item)?;
            let state = tree.view.items.get(&item);
            let owner = state.and_then(|it| it.owner.as_ref()).map(|it| it.by.clone());
            Ok(owner.into_iter().filter(|id| tree.view.is_alive(id)).collect())
        }
    }
}
