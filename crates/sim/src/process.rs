//! A process on a host: what the driver of the library keeps, without its runtime.

use std::collections::BTreeMap;
use std::time::Duration;

use elasticjob_core::coord::{Coordinator, Focus, Slot};
use elasticjob_core::mutants::{Mutant, on};
use elasticjob_core::tree::SessionId;

use crate::clock::Clock;
use crate::history::{Instance, ProcessId};
use crate::registry::ConnId;
use crate::scenario::Ms;
use crate::world::Event;

/// A host: its clock and its part of the network outlive its processes.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) clock: Clock,
    pub(crate) process: Option<ProcessId>,
    pub(crate) up: Way,
    pub(crate) down: Way,
    pub(crate) starts: u32,
}

/// One direction between a host and the registry.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    /// Nothing gets through until then.
    pub(crate) blocked_until: Ms,
    /// What is sent meanwhile arrives later, instead of never.
    pub(crate) hold: bool,
    /// So many of a hundred messages get lost.
    pub(crate) loses: u64,
    /// Messages are late by up to so much.
    pub(crate) lag: Ms,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    Paused,
    Dead,
}

/// What a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    Tick(usize),
    Ping(ConnId),
    Distrust,
    Connect(ConnId),
    Request(u64),
}

/// A request that has not been answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaited {
    Commit(usize, Slot),
    Read(usize),
}

#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: ProcessId,
    pub(crate) host: usize,
    /// Tells it from others on this host.
    pub(crate) boot: u32,
    pub(crate) state: State,
    /// What happened to it while it stood still.
    pub(crate) held: Vec<Event>,
    pub(crate) conn: Option<ConnId>,
    pub(crate) connected: bool,
    pub(crate) session: Option<SessionId>,
    pub(crate) session_number: u32,
    pub(crate) sessions_opened: u32,
    pub(crate) trusted_until: Duration,
    pub(crate) distrusts: bool,
    pub(crate) distrust_armed: bool,
    pub(crate) last_heard: Duration,
    pub(crate) awaited: BTreeMap<u64, Awaited>,
    pub(crate) next_request: u64,
    pub(crate) jobs: Vec<JobHere>,
    pub(crate) leaving: bool,
    /// It dies when it has done so many more steps.
    pub(crate) dies_in: Option<u64>,
}

/// A job in a process.
#[derive(Debug)]
pub(crate) struct JobHere {
    /// `None` once it is over.
    pub(crate) coordinator: Option<Coordinator>,
    /// The session in which it was last connected.
    pub(crate) session: Option<SessionId>,
    /// What its mirror was asked to follow last.
    pub(crate) focus: Option<Focus>,
    /// Its mirror is to be made anew, once nothing of it is under way.
    pub(crate) wants_resync: bool,
    /// When it is woken at the latest.
    pub(crate) wakes_at: Option<Ms>,
}

impl Process {
    pub(crate) fn instance(&self) -> Instance {
        Instance { process: self.id, session: self.session_number }
    }

    /// The id under which it is registered. In containers, every process is number one.
    pub(crate) fn me(&self) -> String {
        if on(Mutant::ReuseId) {
            return format!("{}@-@1.{:x}", ip(self.host), self.boot);
        }
        format!("{}@-@1.{:x}.{}", ip(self.host), self.boot, self.session_number)
    }
}

/// The address of a host. Some begin with the whole of another.
pub(crate) fn ip(host: usize) -> String {
    format!("10.0.0.{}", if host < 2 { host + 1 } else { host + 8 })
}
