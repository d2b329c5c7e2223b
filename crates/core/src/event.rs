//! What happened, for whoever keeps records: logs, history, metrics, the live view of a terminal.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

/// Why a round runs.
///
/// ```
/// use elasticjob_core::event::Source;
///
/// assert_eq!(Source::Misfire.to_string(), "misfire");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The schedule fired.
    Schedule,
    /// Somebody asked for it.
    Trigger,
    /// A fire was missed and is made up for.
    Misfire,
    /// Another instance died while it ran these items.
    Failover,
}

impl Source {
    /// One word for it, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Schedule => "schedule",
            Source::Trigger => "trigger",
            Source::Misfire => "misfire",
            Source::Failover => "failover",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a fire did not run.
///
/// ```
/// use elasticjob_core::event::Skip;
///
/// assert_eq!(Skip::Overrun.to_string(), "the round before was still running");
/// assert_eq!(Skip::Overrun.name(), "overrun"); // For programs.
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// The item is disabled.
    ItemDisabled,
    /// The host is disabled.
    ServerDisabled,
    /// The round before was still running, and the job does not make up for misfires.
    Overrun,
    /// It could not start in time, and the job does not make up for misfires.
    TooLate,
    /// The clock differs too much from the registry's.
    ClockOff,
    /// Nothing belongs to this instance.
    NoItems,
    /// The instance had to stop while the hook before the round was waited for.
    Interrupted,
    /// The job was ended on this instance, or removed, before it began.
    ShutDown,
}

impl Skip {
    /// All of them.
    pub const ALL: [Skip; 8] = [
        Skip::ItemDisabled,
        Skip::ServerDisabled,
        Skip::Overrun,
        Skip::TooLate,
        Skip::ClockOff,
        Skip::NoItems,
        Skip::Interrupted,
        Skip::ShutDown,
    ];
    /// The names of all of them.
    pub const NAMES: &[&str] = &{
        let mut names = [""; Skip::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Skip::ALL[at].name();
            at += 1;
        }
        names
    };

    /// One word for it, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Skip::ItemDisabled => "item-disabled",
            Skip::ServerDisabled => "server-disabled",
            Skip::Overrun => "overrun",
            Skip::TooLate => "too-late",
            Skip::ClockOff => "clock-off",
            Skip::NoItems => "no-items",
            Skip::Interrupted => "interrupted",
            Skip::ShutDown => "shut-down",
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Skip::ItemDisabled => "the item is disabled",
            Skip::ServerDisabled => "the server is disabled",
            Skip::Overrun => "the round before was still running",
            Skip::TooLate => "it could not start in time",
            Skip::ClockOff => "the clock differs too much from the registry's",
            Skip::NoItems => "no item belongs to this instance",
            Skip::Interrupted => "the instance had to stop before it began",
            Skip::ShutDown => "the job was ended on this instance before it began",
        })
    }
}

/// How one item ended.
///
/// ```
/// use elasticjob_core::event::Outcome;
///
/// fn say(outcome: &Outcome) -> String {
///     match outcome {
///         Outcome::Failed(error) => format!("failed: {error}"),
///         Outcome::Succeeded | Outcome::Cancelled => outcome.name().to_owned(),
///     }
/// }
/// assert_eq!(say(&Outcome::Failed("no rows".into())), "failed: no rows");
/// assert_eq!(say(&Outcome::Cancelled), "cancelled");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned.
    Succeeded,
    /// It returned an error, or panicked.
    Failed(String),
    /// It was told to stop, and did.
    Cancelled,
}

impl Outcome {
    /// One word for it, for programs.
    pub const fn name(&self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed(_) => "failed",
            Outcome::Cancelled => "cancelled",
        }
    }
}

/// A call of user code around a round.
///
/// ```
/// assert_eq!(elasticjob_core::event::Hook::OnceAfter.to_string(), "hook after the round, once per cluster");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// Before the items of a round, on every instance that runs some.
    Before,
    /// After them.
    After,
    /// Before the first item of a round starts anywhere, on one instance.
    OnceBefore,
    /// After the last item of a round has ended, on one instance.
    OnceAfter,
}

impl Hook {
    /// All of them.
    pub const ALL: [Hook; 4] = [Hook::Before, Hook::After, Hook::OnceBefore, Hook::OnceAfter];
    /// The names of all of them.
    pub const NAMES: &[&str] =
        &[Hook::Before.name(), Hook::After.name(), Hook::OnceBefore.name(), Hook::OnceAfter.name()];

    /// One word for it, for programs.
    pub const fn name(self) -> &'static str {
        match self {
            Hook::Before => "before",
            Hook::After => "after",
            Hook::OnceBefore => "once-before",
            Hook::OnceAfter => "once-after",
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hook::Before => "hook before the round",
            Hook::After => "hook after the round",
            Hook::OnceBefore => "hook before the round, once per cluster",
            Hook::OnceAfter => "hook after the round, once per cluster",
        })
    }
}

/// Why a job ends on this instance.
///
/// ```
/// use elasticjob_core::event::StopReason;
///
/// let reason = StopReason::BadConfig("cron `x` has 1 field".into());
/// assert_eq!(reason.to_string(), "the stored configuration cannot be used: cron `x` has 1 field");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The program asked for it.
    Left,
    /// An operator removed our instance node.
    ShutDown,
    /// An operator removed the job.
    Removed,
    /// Another job of this name exists.
    Conflict {
        /// The class that the registry names.
        theirs: String,
        /// The class of our job.
        ours: String,
    },
    /// The stored configuration cannot be used, and there is no earlier one that could.
    BadConfig(String),
    /// The registry does not let this instance take part: which node is in the way, and the remedy.
    Denied(String),
    /// Something in this process broke that must not: a strategy panicked, or this library did.
    Broken(String),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Left => f.write_str("left"),
            StopReason::ShutDown => f.write_str("shut down by an operator"),
            StopReason::Removed => f.write_str("the job was removed from the registry"),
            StopReason::Conflict { theirs, ours } => {
                write!(
                    f,
                    "the registry holds a job of this name with class `{theirs}`, ours is `{ours}`: use another job name, or make the classes agree"
                )
            }
            StopReason::BadConfig(error) => write!(f, "the stored configuration cannot be used: {error}"),
            StopReason::Denied(error) => f.write_str(error),
            StopReason::Broken(panic) => write!(f, "broken: {panic}"),
        }
    }
}

/// Something worth recording.
///
/// ```
/// use elasticjob_core::event::{Event, Outcome};
///
/// fn failure(event: &Event) -> Option<(u32, &str)> {
///     match event {
///         Event::ItemFinished { item, outcome: Outcome::Failed(error), .. } => Some((*item, error)),
///         _ => None,
///     }
/// }
/// assert_eq!(failure(&Event::Elected), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This instance is registered, under this id.
    Registered {
        /// The instance.
        id: String,
    },
    /// The connection is lost; what the registry says is unknown.
    Suspended,
    /// The session can no longer be trusted; running items are told to stop.
    Distrusted,
    /// The connection is back.
    Reconnected,
    /// This instance leads.
    Elected,
    /// This instance led, and does no longer.
    Abdicated,
    /// As leader, this instance handed out the items anew.
    Resharded {
        /// How many items got another owner.
        moved: usize,
    },
    /// The configuration changed.
    ConfigChanged,
    /// The configuration changed to something that cannot be used; the one before stays in force.
    ConfigRefused {
        /// What is wrong with it.
        error: String,
    },
    /// A round begins.
    RoundStarted {
        /// Unique for each round.
        task_id: String,
        /// Why it runs.
        source: Source,
        /// The fire it stands for.
        nominal: Option<Timestamp>,
        /// What it runs.
        items: BTreeSet<u32>,
        /// How many earlier fires it makes up for.
        merged: u64,
    },
    /// An item ended.
    ItemFinished {
        /// The round.
        task_id: String,
        /// The item.
        item: u32,
        /// How.
        outcome: Outcome,
        /// The last lines that it printed, if it is a script that succeeded. Those of one that failed are in its
        /// error.
        output: Option<String>,
    },
    /// A hook returned an error, panicked, took too long, or could not be called. The round went on.
    HookFailed {
        /// The round.
        task_id: String,
        /// Which.
        hook: Hook,
        /// Why.
        error: String,
    },
    /// A round ended.
    RoundFinished {
        /// The round.
        task_id: String,
    },
    /// A fire passed while these items could not run; they will run once more at the end of it.
    Missed {
        /// The fire.
        nominal: Timestamp,
        /// The items.
        items: BTreeSet<u32>,
    },
    /// A fire, or a trigger, will not run for these items.
    Skipped {
        /// The fire; `None` for a trigger.
        nominal: Option<Timestamp>,
        /// The items; empty if none is known.
        items: BTreeSet<u32>,
        /// Why.
        why: Skip,
    },
    /// As leader, this instance found items whose runner is dead, to be taken over.
    Crashed {
        /// The items.
        items: BTreeSet<u32>,
    },
    /// This instance takes over an item of a dead one.
    TookOver {
        /// The item.
        item: u32,
    },
    /// An instance died before it could act on a trigger: its items will run with their next owners.
    TriggerHandedOn {
        /// The dead instance.
        from: String,
        /// The items.
        items: BTreeSet<u32>,
    },
    /// This job has ended on this instance.
    Stopped {
        /// Why.
        reason: StopReason,
    },
}
