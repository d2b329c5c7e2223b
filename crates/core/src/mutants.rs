//! Known bugs that can be planted, one at a time, to show that the simulator finds them. Each is a mistake that
//! a scheduler of this kind has had, or that this one had while it was written.
//!
//! Without the feature `mutants` none of them can be planted, and nothing of this is compiled in.

macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A bug that can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mutant { $($(#[$doc])* $name,)* }

        impl Mutant {
            /// Every one of them.
            pub const ALL: &[Mutant] = &[$(Mutant::$name,)*];
        }
    };
}

mutants! {
    /// A restarted host forgets that an operator disabled it.
    EnableOnJoin,
    /// A removed job is set up again by those who had it.
    ReviveRemovedJob,
    /// Who leaves does not wait for what it runs.
    LeaveWhileRunning,
    /// Who may not lead keeps his place in the line.
    StayInLine,
    /// Items are moved while they run.
    MoveRunningItems,
    /// One endless item keeps all others from being moved.
    NoPatience,
    /// Each endless item costs a wait of its own.
    WaitForEach,
    /// Moving an item forgets which of its fires are settled.
    DropCursor,
    /// The assignment is made anew though it fits.
    ReshardAlways,
    /// The assignment is never made.
    NeverReshard,
    /// The wish for a new assignment outlives it.
    KeepNecessary,
    /// Work is given to disabled hosts.
    AssignToDisabled,
    /// A host is taken for another whose name begins with its own.
    MatchServersByPrefix,
    /// Static sharding never replaces a dead owner.
    NeverReplace,
    /// Marks of the dead stay.
    ForgetTheDead,
    /// All that a dead instance owned is taken over, not only what it ran.
    FailOverIdleItems,
    /// What was taken over stays in the queue.
    TakeOverAgain,
    /// A finished failover keeps the item from its owner.
    KeepFailover,
    /// An item taken over by one who was shut down stays with him.
    KeepFailoverOfStopped,
    /// A mark of ours that no run explains stays.
    KeepLeftovers,
    /// A replay does not clear the mark it is for.
    KeepMisfire,
    /// Missed fires are replayed though the job does not want it.
    ReplayUnasked,
    /// What is skipped is not recorded.
    SkipSilently,
    /// Noting a missed fire does not exclude a claim under way.
    MarkBesideClaim,
    /// A mark does not say which fire was missed.
    NamelessMark,
    /// A skip is recorded for the last fire, whichever was skipped.
    MisnameSkip,
    /// Without monitoring, cursors are settled all the same.
    SettleUnmonitored,
    /// Missed fires are noted by the owner, also where instances take turns.
    OwnerNotesTurns,
    /// A claim does not settle its fire.
    ForgetCursor,
    /// A claim does not look whether somebody else settled the fire.
    ClaimAnyVersion,
    /// User code starts when the claim is sent, not when it is granted.
    StartUnclaimed,
    /// An item starts though it still runs here for an earlier session.
    IgnoreZombies,
    /// What still runs for an earlier session is forgotten.
    ForgetZombies,
    /// A run on schedule swallows a trigger.
    SwallowTrigger,
    /// A trigger is not removed when it runs.
    KeepTrigger,
    /// A trigger to a dead instance stays, and everything waits for it.
    KeepOrphanTrigger,
    /// A fire during a run is lost.
    LoseOverrun,
    /// A fire that comes while an earlier one waits behind what runs is forgotten.
    KeepFirstDue,
    /// A fire while a round begins is lost without monitoring.
    LoseFireWhileBeginning,
    /// A mark that a wrong clock left for a fire hours ahead is believed.
    BelieveFarMark,
    /// A clock that goes back waits until it is where it was.
    WaitForOldClock,
    /// A leader that was shut down takes what it still runs for a dead one's.
    BuryMyself,
    /// A fire that is skipped for an item without a cursor is not settled.
    SkipUnsettled,
    /// Whose turn is next is written into a job that was removed.
    PassBatonBlindly,
    /// What was granted starts, although the job was ended here meanwhile.
    StartShutDown,
    /// A new assignment is waited for anew when what was given up ends after all.
    WaitAgain,
    /// A trigger that comes while a round begins counts as answered by it.
    SwallowLaterTrigger,
    /// A trigger that was handed on while we waited runs here, too.
    RememberTrigger,
    /// A trigger handed on runs as a fire that ran.
    RerunSettled,
    /// A claim that a lowered count overtook is not recorded.
    OvertakeSilently,
    /// A cursor that a wrong clock wrote far ahead is kept.
    BelieveFarCursor,
    /// The clock guard does not stop anybody.
    IgnoreClockGuard,
    /// A session that cannot be trusted goes on.
    IgnoreDistrust,
    /// What runs is not told that its session may be over.
    NoCancelOnDistrust,
    /// A transaction of unknown fate is waited for, for ever.
    AwaitUnknown,
    /// A refused transaction is waited for, for ever.
    AwaitRefused,
    /// A mirror that does not follow an item is believed about it.
    TrustNarrowMirror,
    /// A view read anew forgets what is under way.
    ForgetPending,
    /// A changed configuration is not read.
    IgnoreConfig,
    /// A changed schedule does not set the clock anew.
    KeepAlarm,
    /// The end of a session is taken for an operator's order to stop.
    StopOnSessionEnd,
    /// A removed job goes on.
    IgnoreRemoval,
    /// A disabled host starts items.
    IgnoreDisabledServer,
    /// A disabled item starts.
    IgnoreDisabledItem,
    /// A claim that a lowered count overtook starts.
    IgnoreLoweredCount,
    /// The token is that of the owner, not of the run.
    OwnerToken,
    /// What a round is called changes with the session.
    RenameRounds,
    /// A round counts fires from before it was there.
    CountAllAsMerged,
    /// The mirror is read anew at every step.
    ReconcileAlways,
    /// Who is shut down while it waits for the hook before a round goes on waiting.
    KeepWaitingForHook,
    /// Who is shut down while it calls the hook after a round stops, and keeps its place in the line.
    StopWhileCalling,
    /// A round that ends while a hook is called takes that call for its own.
    RenameCall,
    /// The hook after a round is told of an earlier fire that only ended with it, and whose hook was called.
    NameAfterLast,
    /// Who called a hook takes it for known once another has registered what it registered.
    LetGoUntold,
    /// Who waits for a hook takes it for called once another has registered what it registered.
    LetGoByAnother,
    /// What ends for a later fire while a hook is called takes that call for its own.
    CoverLaterFire,
    /// What was asked for early begins early.
    BeginEarly,
    /// An instance id names a process, not a session.
    ReuseId,
}

#[cfg(feature = "mutants")]
std::thread_local! {
    static PLANTED: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Plants a bug in this thread, instead of the one before.
#[cfg(feature = "mutants")]
pub fn plant(mutant: Option<Mutant>) {
    PLANTED.set(mutant);
}

/// Whether this bug is planted.
#[cfg(feature = "mutants")]
pub fn on(mutant: Mutant) -> bool {
    PLANTED.get() == Some(mutant)
}

/// No bug is planted.
#[cfg(not(feature = "mutants"))]
pub const fn on(_: Mutant) -> bool {
    false
}
