//! What was there to be seen: by user code, by whoever keeps records, and by the operator. The checker has
//! nothing else to go by, but for the times at which the world itself did something to the cluster.

use elasticjob_core::coord::{Slot, Verdict};
use elasticjob_core::event::{Event, Hook, Outcome, Source, StopReason};
use elasticjob_core::spec::JobSpec;
use jiff::Timestamp;

use crate::scenario::{Ms, Scenario};

/// A process, counted over the whole simulation: a host that is restarted gets another.
pub type ProcessId = usize;

/// A run of user code, counted over the whole simulation.
pub type RunId = usize;

/// A process in one of its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// The process.
    pub process: ProcessId,
    /// Its session.
    pub session: u32,
}

/// One run of one item, as user code saw it.
#[derive(Clone, Debug)]
pub struct UserRun {
    /// Which.
    pub id: RunId,
    /// Where.
    pub instance: Instance,
    /// The job.
    pub job: usize,
    /// The item.
    pub item: u32,
    /// The round of its process.
    pub round: u64,
    /// Unique for each round.
    pub task_id: String,
    /// Why it ran.
    pub source: Source,
    /// The fire that it stood for.
    pub nominal: Option<Timestamp>,
    /// How many earlier fires it made up for.
    pub merged: u64,
    /// How many items the job had.
    pub total: u32,
    /// The job's parameter.
    pub parameter: String,
    /// Its fencing token.
    pub token: u64,
    /// Whether the job was monitored, by the configuration in the registry.
    pub monitored: bool,
    /// By how much the clock of its host was off.
    pub clock_off: i64,
    /// And since when it was off by that much, or right.
    pub clock_off_for: Ms,
    /// When it began.
    pub started: Ms,
    /// When it was told to stop.
    pub cancelled: Option<Ms>,
    /// When and how it ended.
    pub ended: Option<(Ms, Outcome)>,
    /// When its process died under it.
    pub killed: Option<Ms>,
    /// It does not stop when it is told to.
    pub deaf: bool,
}

impl UserRun {
    /// The moment after which it did nothing any more.
    pub fn over(&self) -> Option<Ms> {
        self.ended.as_ref().map(|it| it.0).or(self.killed)
    }
}

/// One call of a hook.
#[derive(Clone, Debug)]
pub struct HookCall {
    /// Where.
    pub instance: Instance,
    /// The job.
    pub job: usize,
    /// The round of its process.
    pub round: u64,
    /// Which.
    pub hook: Hook,
    /// The fire that its round stands for.
    pub nominal: Option<Timestamp>,
    /// When it began.
    pub started: Ms,
    /// When it returned; not, if its process died.
    pub ended: Option<Ms>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The registry did not hear of it for too long.
    Expired,
    /// Its process closed it.
    Closed,
    /// The registry forgot it.
    Forgotten,
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Fact {
    /// The registry holds this configuration; `None`: it holds none.
    Config(usize, Option<Box<JobSpec>>),
    /// All nodes of the job are gone from the registry, or are back.
    Exists(usize, bool),
    /// A process began.
    Born(ProcessId, usize),
    /// A process died.
    Died(ProcessId),
    /// A process was asked to leave.
    Leaving(ProcessId),
    /// A process left in order.
    Left(ProcessId),
    /// A process stands still.
    Paused(ProcessId),
    /// It goes on.
    Resumed(ProcessId),
    /// A session began.
    Opened(Instance),
    /// A session ended, by the registry's time.
    Closed(Instance, SessionEnd),
    /// Something goes wrong from now on, or does no longer.
    Fault(&'static str, bool),
    /// An operator said whether a host may work.
    Server(usize, usize, bool),
    /// An operator said whether an item may run.
    Item(usize, u32, bool),
    /// An operator asked these to run now.
    Triggered(usize, Vec<Instance>),
    /// An operator ended a job on an instance.
    ShutDown(usize, Instance),
    /// A run began.
    Started(RunId),
    /// A run ended.
    Ended(RunId),
    /// A run was told to stop.
    Cancelled(RunId),
    /// A run wrote to the store.
    Wrote(RunId, bool),
    /// Something was recorded.
    Recorded(Instance, usize, Event),
    /// A job ended on a process.
    Stopped(Instance, usize, StopReason),
    /// A transaction was sent.
    Sent(Instance, usize, Slot),
    /// And this became of it.
    Settled(Instance, usize, Slot, Verdict),
    /// The subtree was read anew.
    Resynced(Instance, usize),
}

/// All of it.
#[derive(Clone, Debug)]
pub struct History {
    /// What was meant to happen.
    pub scenario: Scenario,
    /// Every run.
    pub runs: Vec<UserRun>,
    /// Every call of a hook.
    pub calls: Vec<HookCall>,
    /// Everything else, in the order of time.
    pub facts: Vec<(Ms, Fact)>,
}
