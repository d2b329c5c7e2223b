//! The registry: a [`Tree`] with sessions that time out, behind connections that keep order and can break.

use std::collections::{BTreeMap, VecDeque};

use elasticjob_core::coord::Verdict;
use elasticjob_core::tree::{Change, Entry, Op, SessionId, Tree};
use jiff::Timestamp;

use crate::history::{Instance, ProcessId};
use crate::scenario::Ms;

pub(crate) type ConnId = usize;

/// What a client asks for. Each carries when it was sent, by the client's counting clock.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Connect(Option<SessionId>),
    Commit { number: u64, job: usize, ops: Vec<Op> },
    Read { number: u64, job: usize },
    Ping,
    Close,
}

/// What the registry tells a client.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Welcome { session: SessionId, number: u32 },
    Expired,
    Snapshot { number: Option<u64>, job: usize, nodes: Vec<Entry> },
    Changed { job: usize, changes: Vec<Change> },
    Settled { number: u64, verdict: Verdict },
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
        }
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

/// The subtree of a job.
pub(crate) fn root(job: usize) -> String {
    format!("/job-{job}")
}

/// The job whose subtree a path lies in.
pub(crate) fn job_of(path: &str) -> Option<usize> {
    path.strip_prefix("/job-")?.split('/').next()?.parse().ok()
}
