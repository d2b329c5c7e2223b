//! The registry: a [`Tree`] with sessions that time out, behind connections that keep order and can break.

use std::collections::{BTreeMap, VecDeque};

use elasticjob_core::coord::{Focus, Verdict};
use elasticjob_core::node::Node;
use elasticjob_core::tree::{Change, Entry, Op, SessionId, Tree};
use jiff::Timestamp;

use crate::history::{Instance, ProcessId};
use crate::scenario::Ms;

pub(crate) type ConnId = usize;

/// What a client asks for. Each carries when it was sent, by the client's counting clock.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Connect(Option<SessionId>),
    Commit {
        number: u64,
        job: usize,
        ops: Vec<Op>,
    },
    Read {
        number: u64,
        job: usize,
    },
    /// Follow only these items from now on.
    Focus(usize, Focus),
    Ping,
    Close,
}

/// What the registry tells a client.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Welcome {
        session: SessionId,
        number: u32,
    },
    Expired,
    Snapshot {
        number: Option<u64>,
        job: usize,
        nodes: Vec<Entry>,
    },
    Changed {
        job: usize,
        changes: Vec<Change>,
    },
    /// What is followed from now on.
    Sees(usize, Focus),
    Settled {
        number: u64,
        verdict: Verdict,
    },
    Pong,
}

/// A message on its way down, with the request that it answers.
#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub(crate) due: Ms,
    /// When the request was sent that this answers.
    pub(crate) asked: Option<std::time::Duration>,
    pub(crate) message: Message,
}

/// A change of a job's subtree, for all who follow the job, or the item that it is about.
pub(crate) struct News {
    pub(crate) item: Option<u32>,
    pub(crate) change: Change,
}

/// A connection. Messages never overtake each other; once one is lost, so are all that follow.
#[derive(Clone, Debug)]
pub(crate) struct Conn {
    pub(crate) process: ProcessId,
    pub(crate) session: Option<SessionId>,
    /// The registry's end is open.
    pub(crate) open: bool,
    pub(crate) lost_up: bool,
    pub(crate) lost_down: bool,
    pub(crate) last_arrival: Ms,
    pub(crate) last_delivery: Ms,
    pub(crate) fifo: VecDeque<Parcel>,
    /// What is followed of each job, where it is less than everything.
    pub(crate) focus: BTreeMap<usize, Focus>,
}

impl Conn {
    pub(crate) fn new(process: ProcessId) -> Conn {
        Conn {
            process,
            session: None,
            open: true,
            lost_up: false,
            lost_down: false,
            last_arrival: 0,
            last_delivery: 0,
            fifo: VecDeque::new(),
            focus: BTreeMap::new(),
        }
    }

    /// What of these changes this connection is told.
    pub(crate) fn seen(&self, job: usize, news: &[News]) -> Vec<Change> {
        let focus = self.focus.get(&job);
        let covers = |item: u32| focus.is_none_or(|focus| focus.covers(item));
        news.iter().filter(|it| it.item.is_none_or(covers)).map(|it| it.change.clone()).collect()
    }
}

/// A session, as the registry keeps it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) instance: Instance,
    pub(crate) last_heard: Ms,
    pub(crate) conn: Option<ConnId>,
}

/// The registry's own state.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub(crate) tree: Tree,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    pub(crate) down: bool,
    /// The operator's own, which does not expire.
    pub(crate) operator: SessionId,
}

impl Registry {
    pub(crate) fn new() -> Registry {
        let mut tree = Tree::default();
        let operator = tree.open_session();
        Registry { tree, operator, ..Registry::default() }
    }

    /// Commits for the operator. His requests get through, whatever happens to others'.
    pub(crate) fn operate(&mut self, root: &str, ops: &[Op], now: Timestamp) -> Option<Vec<Change>> {
        self.tree.commit(self.operator, root, ops, now).ok()
    }
}

/// The item whose node this is. Who owns an item is told to everybody.
pub(crate) fn item_of(path: &str) -> Option<u32> {
    match Node::parse(path) {
        Node::Item(item)
        | Node::Running(item)
        | Node::Failover(item)
        | Node::Failovering(item)
        | Node::Misfire(item)
        | Node::Disabled(item)
        | Node::Cursor(item)
        | Node::Parameter(item) => Some(item),
        _ => None,
    }
}

/// All that there is to tell about an item, also of what is not there.
pub(crate) fn all_of(tree: &Tree, job: usize, item: u32) -> Vec<Change> {
    let nodes = [
        Node::Running(item),
        Node::Failover(item),
        Node::Failovering(item),
        Node::Misfire(item),
        Node::Disabled(item),
        Node::Cursor(item),
        Node::Parameter(item),
        Node::Item(item),
    ];
    let root = root(job);
    let tell = |node: Node| {
        let path = node.path();
        match tree.entry(&[root.as_str(), &path].concat()) {
            Some(entry) => Change::Put(Entry { path, ..entry }),
            None => Change::Gone { path },
        }
    };
    nodes.into_iter().map(tell).collect()
}

/// The subtree of a job.
pub(crate) fn root(job: usize) -> String {
    format!("/job-{job}")
}

/// The job whose subtree a path lies in, and what remains of the path below its root.
pub(crate) fn job_of(path: &str) -> Option<(usize, &str)> {
    let rest = path.strip_prefix("/job-")?;
    let (number, below) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    Some((number.parse().ok()?, below))
}
