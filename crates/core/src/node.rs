//! Every node of a job's subtree: the only place where paths are spelled.
//!
//! The spelling is that of ElasticJob 3.0.x, so that Java peers and consoles find what they look for. Some
//! nodes are our own, and Java ignores them: [`Node::Cursor`], [`Node::Parameter`] and [`Node::Hooked`]; and
//! [`Node::Offset`] is that of 1.x.

use crate::tree::{Kind, Op};

/// A line that instances stand in; the first of them may act. Java uses Curator's latches for this, and
/// stands in the same lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Latch {
    /// Who may become leader.
    Election,
    /// Who may take over a crashed item.
    Failover,
    /// Who runs the hook before a round, once per cluster.
    Started,
    /// Who runs the hook after a round, once per cluster.
    Completed,
}

/// A side of a round, at which hooks are called once per cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the first item starts.
    Started,
    /// After the last has completed.
    Completed,
}

/// A node of a job's subtree.
///
/// ```
/// use elasticjob_core::node::Node;
///
/// assert_eq!(Node::Running(3).path(), "/sharding/3/running");
/// assert_eq!(Node::parse("/sharding/3/running"), Node::Running(3));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// The job itself; its data names the job's class.
    Root,
    /// The job's configuration document.
    Config,
    /// Whether a host may work: `ENABLED` or `DISABLED`.
    Server(String),
    /// A live instance.
    Instance(String),
    /// The parent of all that belongs to an item.
    Item(u32),
    /// The instance that an item belongs to.
    Owner(u32),
    /// The instance that runs an item.
    Running(u32),
    /// The instance that runs an item in place of a dead one; goes with it.
    Failover(u32),
    /// The same, but stays when that instance dies too.
    Failovering(u32),
    /// A fire of the item was missed and is to be replayed.
    Misfire(u32),
    /// The item must not run.
    Disabled(u32),
    /// The last fire that is settled for an item: it ran, or was skipped. Our own addition.
    Cursor(u32),
    /// What came along with the trigger that an item runs for. It outlives the runner. Our own addition.
    Parameter(u32),
    /// The leading instance.
    Leader,
    /// The assignment must be made anew.
    Necessary,
    /// The assignment is being made.
    Processing,
    /// A place in a line.
    InLine(Latch, String),
    /// An item whose runner died, waiting to be taken over.
    Crashed(u32),
    /// An item has started in this round.
    Started(u32),
    /// An item has completed in this round.
    Completed(u32),
    /// The parent of all [`Node::Started`].
    AllStarted,
    /// The parent of all [`Node::Completed`].
    AllCompleted,
    /// The last fire whose hook was called, once per cluster. Our own addition.
    Hooked(Phase),
    /// An instance is asked to run now.
    Trigger(String),
    /// How far the job has come with an item: where 1.x kept it.
    Offset(u32),
    /// Written to learn the registry's time.
    SystemTime,
    /// The host that runs next, where instances take turns.
    Baton,
    /// A parent without meaning of its own, or something we do not know.
    Other,
}

impl Node {
    /// The path below the job's root.
    ///
    /// # Panics
    /// For [`Node::Other`], which has none.
    pub fn path(&self) -> String {
        match self {
            Node::Root => String::new(),
            Node::Config => "/config".into(),
            Node::Server(ip) => format!("/servers/{ip}"),
            Node::Instance(id) => format!("/instances/{id}"),
            Node::Item(item) => format!("/sharding/{item}"),
            Node::Owner(item) => format!("/sharding/{item}/instance"),
            Node::Running(item) => format!("/sharding/{item}/running"),
            Node::Failover(item) => format!("/sharding/{item}/failover"),
            Node::Failovering(item) => format!("/sharding/{item}/failovering"),
            Node::Misfire(item) => format!("/sharding/{item}/misfire"),
            Node::Disabled(item) => format!("/sharding/{item}/disabled"),
            Node::Cursor(item) => format!("/sharding/{item}/cursor"),
            Node::Parameter(item) => format!("/sharding/{item}/parameter"),
            Node::Leader => "/leader/election/instance".into(),
            Node::Necessary => "/leader/sharding/necessary".into(),
            Node::Processing => "/leader/sharding/processing".into(),
            Node::InLine(Latch::Election, name) => format!("/leader/election/latch/{name}"),
            Node::InLine(Latch::Failover, name) => format!("/leader/failover/latch/{name}"),
            Node::InLine(Latch::Started, name) => format!("/guarantee/started-latch/{name}"),
            Node::InLine(Latch::Completed, name) => format!("/guarantee/completed-latch/{name}"),
            Node::Crashed(item) => format!("/leader/failover/items/{item}"),
            Node::Started(item) => format!("/guarantee/started/{item}"),
            Node::Completed(item) => format!("/guarantee/completed/{item}"),
            Node::AllStarted => "/guarantee/started".into(),
            Node::AllCompleted => "/guarantee/completed".into(),
            Node::Hooked(Phase::Started) => "/guarantee/started-fire".into(),
            Node::Hooked(Phase::Completed) => "/guarantee/completed-fire".into(),
            Node::Trigger(id) => format!("/trigger/{id}"),
            Node::Offset(item) => format!("/offset/{item}"),
            Node::SystemTime => "/systemTime/current".into(),
            Node::Baton => "/next-job-instance-ip".into(),
            Node::Other => panic!("a node we do not know has no path"),
        }
    }

    /// The node at a path below the job's root.
    pub fn parse(path: &str) -> Node {
        if path.is_empty() {
            return Node::Root;
        }
        let Some(at) = parts(path) else { return Node::Other };
        let name = |text: &str, make: fn(String) -> Node| match text {
            "" => Node::Other,
            text => make(text.to_owned()),
        };
        let item = |text: &str, make: fn(u32) -> Node| parse_item(text).map_or(Node::Other, make);
        match at {
            ["config", "", ..] => Node::Config,
            ["servers", ip, "", ..] => name(ip, Node::Server),
            ["instances", id, "", ..] => name(id, Node::Instance),
            ["trigger", id, "", ..] => name(id, Node::Trigger),
            ["offset", i, "", ..] => item(i, Node::Offset),
            ["sharding", i, "", ..] => item(i, Node::Item),
            ["sharding", i, "instance", ""] => item(i, Node::Owner),
            ["sharding", i, "running", ""] => item(i, Node::Running),
            ["sharding", i, "failover", ""] => item(i, Node::Failover),
            ["sharding", i, "failovering", ""] => item(i, Node::Failovering),
            ["sharding", i, "misfire", ""] => item(i, Node::Misfire),
            ["sharding", i, "disabled", ""] => item(i, Node::Disabled),
            ["sharding", i, "cursor", ""] => item(i, Node::Cursor),
            ["sharding", i, "parameter", ""] => item(i, Node::Parameter),
            ["leader", "election", "instance", ""] => Node::Leader,
            ["leader", "election", "latch", it] => name(it, |it| Node::InLine(Latch::Election, it)),
            ["leader", "sharding", "necessary", ""] => Node::Necessary,
            ["leader", "sharding", "processing", ""] => Node::Processing,
            ["leader", "failover", "items", i] => item(i, Node::Crashed),
            ["leader", "failover", "latch", it] => name(it, |it| Node::InLine(Latch::Failover, it)),
            ["guarantee", "started", "", ..] => Node::AllStarted,
            ["guarantee", "completed", "", ..] => Node::AllCompleted,
            ["guarantee", "started-fire", "", ..] => Node::Hooked(Phase::Started),
            ["guarantee", "completed-fire", "", ..] => Node::Hooked(Phase::Completed),
            ["guarantee", "started", i, ""] => item(i, Node::Started),
            ["guarantee", "completed", i, ""] => item(i, Node::Completed),
            ["guarantee", "started-latch", it, ""] => name(it, |it| Node::InLine(Latch::Started, it)),
            ["guarantee", "completed-latch", it, ""] => name(it, |it| Node::InLine(Latch::Completed, it)),
            ["systemTime", "current", "", ..] => Node::SystemTime,
            ["next-job-instance-ip", "", ..] => Node::Baton,
            _ => Node::Other,
        }
    }

    /// It must exist.
    pub fn exists(&self) -> Op {
        Op::Check { path: self.path(), version: None }
    }

    /// It must exist, with this data version.
    pub fn is_at(&self, version: u32) -> Op {
        Op::Check { path: self.path(), version: Some(version) }
    }

    /// Make it, to stay.
    pub fn create(&self, data: impl Into<String>) -> Op {
        Op::Create { path: self.path(), data: data.into(), kind: Kind::Persistent }
    }

    /// Make it, to go with our session.
    pub fn create_ephemeral(&self, data: impl Into<String>) -> Op {
        Op::Create { path: self.path(), data: data.into(), kind: Kind::Ephemeral }
    }

    /// Replace its data.
    pub fn set(&self, data: impl Into<String>) -> Op {
        Op::Set { path: self.path(), data: data.into(), version: None }
    }

    /// Replace its data, if nobody else did.
    pub fn set_at(&self, version: u32, data: impl Into<String>) -> Op {
        Op::Set { path: self.path(), data: data.into(), version: Some(version) }
    }

    /// Remove it.
    pub fn delete(&self) -> Op {
        Op::Delete { path: self.path() }
    }
}

impl Latch {
    /// Stand in this line. The registry appends a number; Curator finds its own place by the `ticket`, and
    /// orders all places by what follows the last `latch-`.
    pub fn join(self, ticket: &str) -> Op {
        Op::Enqueue { prefix: Node::InLine(self, format!("{ticket}latch-")).path() }
    }
}

/// Up to four parts of a path, the others empty; `None` if there are more. Mirrors ask this for every change.
fn parts(path: &str) -> Option<[&str; 4]> {
    let mut parts = [""; 4];
    let mut rest = path.strip_prefix('/')?;
    for part in &mut parts {
        let Some(end) = rest.bytes().position(|byte| byte == b'/') else {
            *part = rest;
            return Some(parts);
        };
        (*part, rest) = (&rest[..end], &rest[end + 1..]);
    }
    None
}

/// Only the one spelling that we and Java write: `7`, not `07` or `+7`.
fn parse_item(text: &str) -> Option<u32> {
    let canonical = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| canonical)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_read_as_it_is_spelled() {
        let id = || "10.0.0.1@-@7".to_owned();
        let mut nodes = vec![Node::Root, Node::Config, Node::Leader, Node::Necessary, Node::Processing];
        nodes.extend([Node::AllStarted, Node::AllCompleted, Node::SystemTime, Node::Baton]);
        nodes.extend([Node::Hooked(Phase::Started), Node::Hooked(Phase::Completed)]);
        nodes.extend([Node::Server("10.0.0.1".into()), Node::Instance(id()), Node::Trigger(id())]);
        for i in [0, 7, 10, u32::MAX] {
            nodes.extend([Node::Item(i), Node::Owner(i), Node::Running(i), Node::Failover(i)]);
            nodes.extend([Node::Failovering(i), Node::Misfire(i), Node::Disabled(i), Node::Cursor(i)]);
            nodes.extend([Node::Parameter(i), Node::Crashed(i), Node::Started(i), Node::Completed(i)]);
            nodes.push(Node::Offset(i));
        }
        for latch in [Latch::Election, Latch::Failover, Latch::Started, Latch::Completed] {
            nodes.push(Node::InLine(latch, "_c_x-latch-0000000001".into()));
        }
        for node in nodes {
            assert_eq!(Node::parse(&node.path()), node);
        }
    }

    #[test]
    fn what_we_do_not_know_is_other() {
        let strange = ["/", "/sharding", "/sharding/x", "/sharding/07", "/sharding/+7", "/sharding/1/2/3/4"];
        let parents = [
            "/leader",
            "/leader/election",
            "/leader/failover/items",
            "/guarantee",
            "/instances",
            "/servers/",
        ];
        for path in strange.into_iter().chain(parents) {
            assert_eq!(Node::parse(path), Node::Other, "{path}");
        }
    }
}
