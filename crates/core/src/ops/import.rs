//! Jobs of 1.x and 2.x, as the nodes that 3.x would have.

use std::collections::{BTreeMap, BTreeSet};

use super::{JobTree, Refusal};
use crate::node::Node;
use crate::spec::legacy::{Generation, Imported, JobType, from_v1, from_v2};
use crate::tree::Op;
use crate::view::{DISABLED, ENABLED};

/// The class that 3.x gives to script jobs.
const SCRIPT: &str = "SCRIPT";

/// A job of an older generation, converted.
///
/// ```
/// use elasticjob_core::ops::JobTree;
/// use elasticjob_core::ops::import::Import;
/// use elasticjob_core::tree::{Kind, Op, Tree};
/// use jiff::Timestamp;
///
/// let json = r#"{"jobName":"j","jobClass":"a.B","jobType":"SIMPLE","cron":"0 0 2 * * ?","shardingTotalCount":2}"#;
/// let old = Op::Create { path: "/config".into(), data: json.into(), kind: Kind::Persistent };
/// let mut tree = Tree::default();
/// let session = tree.open_session();
/// tree.commit(session, "/j", &[old], Timestamp::UNIX_EPOCH).unwrap();
///
/// let import = Import::of(&JobTree::new("j", tree.snapshot("/j"))).unwrap().unwrap();
/// assert_eq!(import.nodes[0], (String::new(), "a.B".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The job.
    pub job: String,
    /// `1.x` or `2.x`.
    pub generation: &'static str,
    /// What to write: the path below the job, and the data; parents first.
    pub nodes: Vec<(String, String)>,
    /// What has no counterpart, one sentence each.
    pub warnings: Vec<String>,
}

impl Import {
    /// The conversion; `None` if it is a job of 3.x already.
    ///
    /// # Errors
    ///
    /// The settings that cannot be converted, or who is still at work.
    pub fn of(tree: &JobTree) -> Result<Option<Import>, Refusal> {
        let Some(config) = &tree.view.config else { return Err(Refusal::NoConfig) };
        let (generation, imported) = match tree.generation() {
            Generation::V1 => ("1.x", from_v1(&tree.name, &children(tree, "/config/"))),
            Generation::V2 => ("2.x", from_v2(&config.text)),
            Generation::V3 => return Ok(None),
        };
        refuse_the_living(tree)?;
        let imported = imported.map_err(Refusal::Import)?;
        imported.spec.validate().map_err(Refusal::Import)?;
        if imported.spec.job_name != tree.name {
            return Err(Refusal::OtherName { job: tree.name.clone(), given: imported.spec.job_name });
        }
        let mut warnings = imported.warnings.clone();
        warnings.extend(left_out(tree));
        Ok(Some(Import { job: tree.name.clone(), generation, nodes: nodes(tree, &imported), warnings }))
    }

    /// The transaction that makes the job where there is none.
    pub fn create(&self) -> Vec<Op> {
        self.nodes.iter().map(|(path, data)| Node::parse(path).create(data.clone())).collect()
    }

    /// The transaction that puts the job in the place of the old one.
    pub fn replace(&self, old: &JobTree) -> Vec<Op> {
        let gone = old.entries().rev().map(|it| Op::Delete { path: it.path.clone() });
        gone.chain(self.create()).collect()
    }
}

fn nodes(tree: &JobTree, imported: &Imported) -> Vec<(String, String)> {
    let class = match imported.job_type {
        Some(JobType::Script) => SCRIPT.to_owned(),
        Some(JobType::Simple | JobType::Dataflow) | None => imported.job_class.clone().unwrap_or_default(),
    };
    let mut nodes = vec![(Node::Root, class), (Node::Config, imported.spec.to_yaml())];
    for ip in tree.view.servers.keys() {
        let off = |mark: &str| tree.entries.contains_key(&format!("/servers/{ip}/{mark}"));
        // Up to 1.0.6 the mark of a paused server was spelled `stoped`.
        let disabled = tree.view.servers[ip] == DISABLED || off("disabled") || off("paused") || off("stoped");
        let status = if disabled { DISABLED } else { ENABLED };
        nodes.push((Node::Server(ip.clone()), status.to_owned()));
    }
    let total = imported.spec.sharding_total_count;
    for item in missed(tree).into_iter().filter(|item| *item < total) {
        nodes.push((Node::Misfire(item), String::new()));
    }
    for (&item, _) in tree.view.items.range(..total).filter(|(_, it)| it.disabled) {
        nodes.push((Node::Disabled(item), String::new()));
    }
    nodes.into_iter().map(|(node, data)| (node.path(), data)).collect()
}

/// Items with a missed fire, where 1.x or 2.x note it.
fn missed(tree: &JobTree) -> BTreeSet<u32> {
    let old = tree
        .below("/execution/")
        .filter_map(|it| it.path.strip_prefix("/execution/")?.strip_suffix("/misfire")?.parse().ok());
    let new = tree.view.items.iter().filter(|(_, it)| it.misfire).map(|(item, _)| *item);
    old.chain(new).collect()
}

fn refuse_the_living(tree: &JobTree) -> Result<(), Refusal> {
    let old =
        tree.below("/servers/").find_map(|it| it.path.strip_prefix("/servers/")?.strip_suffix("/status"));
    let living = old.or_else(|| tree.view.instances.keys().next().map(String::as_str));
    match living {
        None => Ok(()),
        Some(id) => Err(Refusal::StillAlive { what: format!("{id} is still at work") }),
    }
}

/// Nothing disappears silently.
fn left_out(tree: &JobTree) -> Vec<String> {
    let mut warnings = Vec::new();
    for (item, offset) in children(tree, "/offset/") {
        warnings.push(format!(
            "offset of shard {item} is `{offset}`: nothing keeps offsets here; hand it to the job's own code"
        ));
    }
    let past = |path: &str| {
        let last = path.rsplit('/').next().unwrap_or_default();
        ["lastBeginTime", "lastCompleteTime", "nextFireTime", "processSuccessCount", "processFailureCount"]
            .contains(&last)
    };
    let times = tree.entries().filter(|it| past(&it.path)).count();
    if times > 0 {
        warnings.push(format!("{times} node(s) with times and counts of past runs are left out"));
    }
    let owners = tree.view.items.values().any(|it| it.owner.is_some());
    if owners || tree.below("/servers/").any(|it| it.path.ends_with("/sharding")) {
        warnings.push("who owned which shard is left out: the first leader hands them out anew".to_owned());
    }
    warnings
}

fn children(tree: &JobTree, prefix: &str) -> BTreeMap<String, String> {
    let child = |path: &str| path.strip_prefix(prefix).filter(|name| !name.contains('/')).map(str::to_owned);
    tree.below(prefix).filter_map(|it| Some((child(&it.path)?, it.data.clone()))).collect()
}
