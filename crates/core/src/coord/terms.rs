//! The words between a coordinator and its driver: what it is told, and what it wants done.

use std::collections::BTreeSet;
use std::time::Duration;

use elasticjob_cron::Zone;
use jiff::Timestamp;

use crate::event::{Event, Hook, Outcome, Source, StopReason};
use crate::spec::JobSpec;
use crate::tree::{Change, Entry, Op, Zxid};

/// The time, as the driver sees it: schedules follow the wall clock, waits follow one that never jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The time of day.
    pub wall: Timestamp,
    /// Time since some fixed moment.
    pub mono: Duration,
}

/// When [`Coordinator::step`](super::Coordinator::step) wants to be called again, if nothing else happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakeup {
    /// At this time of day.
    pub wall: Option<Timestamp>,
    /// Or at this moment.
    pub mono: Option<Duration>,
}

/// The job as this program knows it.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its configuration. The registry's is used instead if it has one, unless this one says `overwrite`.
    pub spec: JobSpec,
    /// What tells this job from another of the same name; empty accepts any.
    pub class: String,
    /// Where its schedule lives if the configuration does not say.
    pub zone: Zone,
    /// The calls around its rounds that it wants.
    pub hooks: Hooks,
}

/// The calls around rounds that a job wants.
///
/// ```
/// assert_eq!(elasticjob_core::coord::Hooks::default().once, None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Before and after the items of every round.
    pub each: bool,
    /// Before the first and after the last item of a round, on one instance of all.
    pub once: Option<Deadlines>,
}

/// How long a round is held up by calls that are made once per cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Items that were claimed start without the call after so long.
    pub started: Duration,
    /// The next round begins without the call after so long.
    pub completed: Duration,
}

/// The items whose nodes a mirror follows. Everything else, and who owns which item, it always follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Focus {
    /// All of them: what a leader needs.
    Everything,
    /// These: what others need. They are not told of each other's runs.
    Items(BTreeSet<u32>),
}

impl Focus {
    /// Whether the item's nodes are followed.
    pub fn covers(&self, item: u32) -> bool {
        match self {
            Focus::Everything => true,
            Focus::Items(items) => items.contains(&item),
        }
    }
}

/// What the world tells the coordinator.
#[derive(Clone, Debug)]
pub enum Input {
    /// What the mirror follows from now on; it has told all there is to tell about that. Without this, it
    /// follows everything.
    Sees(Focus),
    /// A session stands, and this is the whole subtree.
    Connected {
        /// Our instance id in this session.
        me: String,
        /// All nodes.
        nodes: Vec<Entry>,
        /// The session is the one that stood before.
        same_session: bool,
    },
    /// The connection is gone. What the registry says is unknown.
    Suspended,
    /// The session may be over by now: others may run our items.
    Distrusted,
    /// The subtree changed.
    Changed(Vec<Change>),
    /// A transaction is done with. The changes that decided its fate were told before.
    Settled(Slot, Verdict),
    /// An item ended.
    ItemFinished {
        /// The round it belonged to.
        round: u64,
        /// The item.
        item: u32,
        /// How.
        outcome: Outcome,
        /// What it printed, for the record.
        output: Option<String>,
    },
    /// A hook was called.
    HookFinished {
        /// The round it was called for.
        round: u64,
        /// Which.
        hook: Hook,
        /// What went wrong.
        error: Option<String>,
    },
    /// Finish what runs, and leave. What still runs after the grace is told to stop.
    Leave {
        /// How long running items may go on.
        grace: Duration,
    },
    /// Time has passed.
    Tick,
}

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done.
    Done,
    /// Refused: the registry was not as we thought.
    Refused,
    /// Nobody knows.
    Unknown,
}

/// What the coordinator wants done. Whatever comes of it comes back as an [`Input`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Commit these, all or nothing, and answer [`Input::Settled`].
    Commit {
        /// The concern.
        slot: Slot,
        /// The transaction.
        ops: Vec<Op>,
    },
    /// Run these items, and answer [`Input::ItemFinished`] for each.
    Run(Order),
    /// Call this, and answer [`Input::HookFinished`].
    Hook(HookOrder),
    /// Tell the items of this round that they should end after what they are at.
    Yield {
        /// The round.
        round: u64,
    },
    /// Tell the items and hooks of this round to end now.
    Cancel {
        /// The round.
        round: u64,
    },
    /// Read the subtree anew, and answer [`Input::Connected`].
    Resync,
    /// Something worth recording.
    Record(Event),
    /// This job is over here. No more inputs are expected.
    Stop(StopReason),
}

/// A hook to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookOrder {
    /// Which.
    pub hook: Hook,
    /// The round that it is called for.
    pub round: Order,
}

/// A round to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Counts the rounds of this process.
    pub round: u64,
    /// Unique for each round, in Java's five parts.
    pub task_id: String,
    /// Why it runs.
    pub source: Source,
    /// The fire it stands for.
    pub nominal: Option<Timestamp>,
    /// How many earlier fires it makes up for.
    pub merged: u64,
    /// The job's number of items.
    pub total: u32,
    /// The job's parameter.
    pub job_parameter: String,
    /// What to run.
    pub items: Vec<OrderItem>,
}

/// One item of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderItem {
    /// Its number.
    pub item: u32,
    /// Its parameter.
    pub parameter: Option<String>,
    /// What came along with the trigger that it runs for.
    pub trigger_parameter: Option<String>,
    /// Its fencing token: greater than that of any earlier run of this item.
    pub token: Zxid,
}

/// A concern that may have one transaction under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Slot {
    /// The job's document.
    SetUp,
    /// Being registered.
    Presence,
    /// Leading.
    Election,
    /// As leader: asking for a new assignment.
    Reshard,
    /// As leader: making it.
    Assign,
    /// As leader: marks of the dead.
    Crashed,
    /// As leader: marks that the configuration no longer wants.
    Forget,
    /// As leader: requests to the dead.
    Orphans,
    /// Beside a Java leader: asking in its stead.
    Remind,
    /// Marks of ours without a run.
    Leftovers,
    /// Taking over an item.
    Takeover,
    /// Missed fires.
    Misfire,
    /// The hook before the round, once per cluster.
    Before,
    /// The hook after it.
    After,
    /// The current round.
    Run,
}
