//! One instance's part in one job, as a state machine without I/O.
//!
//! [`Coordinator::step`] folds one input into the state, looks at the clock, then lets the rules look at the
//! state until none of them has anything to add. Rules never wait: what others write as
//! `while !condition { sleep }` is a rule here that stays silent until a later view makes its condition true.
//!
//! Two properties carry it. A settled transaction only frees its slot; nothing but the view moves the machine
//! on, so a lost answer, a duplicate, a conflict and a reconnect are one case: look again. And there is one
//! transaction per concern under way, so no rule reacts to its own unfinished work.

mod catchup;
mod clock;
mod delay;
mod election;
mod failover;
mod guarantee;
mod misfire;
mod orders;
mod presence;
mod remind;
mod run;
mod sharding;
mod standpoint;
mod terms;
mod trigger;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::event::{Event, Hook, Skip, Source, StopReason};
use crate::mutants::{Mutant, on};
use crate::node::Phase;
use crate::plan::Plan;
use crate::spec::JobSpec;
use crate::strategy::Strategies;
use crate::tree::{Entry, Op, Stat};
use crate::view::{DISABLED, ENABLED, View, ip_of};
use guarantee::Barriers;
pub use run::{Asked, Awaits, Round, Run};
use standpoint::Standpoint;
pub use terms::{
    Deadlines, Effect, Focus, HookOrder, Hooks, Input, Local, Now, Order, OrderItem, Slot, Verdict, Wakeup,
};

/// Items that one transaction deals with. More are done in several, so that none grows beyond what a
/// registry takes.
pub(crate) const CHUNK: usize = 1000;

/// How long a leader waits for running items that must move, before it moves the others without them.
const PATIENCE: Duration = Duration::from_secs(10);

/// A clock that goes back by more was wrong before; by less, its fires are settled already.
const CLOCK_TRUST: SignedDuration = SignedDuration::from_hours(1);

const LEADER_SLOTS: [Slot; 5] = [Slot::Reshard, Slot::Assign, Slot::Crashed, Slot::Forget, Slot::Orphans];

/// What a rule wants: a transaction, and what to record once it is done.
#[derive(Debug, Default)]
struct Move {
    ops: Vec<Op>,
    tell: Vec<Event>,
}

impl Move {
    fn telling(mut self, event: Event) -> Move {
        self.tell.push(event);
        self
    }
}

impl From<Vec<Op>> for Move {
    fn from(ops: Vec<Op>) -> Move {
        Move { ops, tell: Vec::new() }
    }
}

type Rule = fn(&Standpoint<'_>) -> Option<Move>;

/// The coordination architecture: every rule, and the concern it belongs to. Order matters only for how soon
/// things happen.
const RULES: [(Slot, Rule); 14] = [
    (Slot::Presence, presence::be_present),
    (Slot::Election, election::campaign),
    (Slot::Election, election::abdicate),
    (Slot::Orphans, trigger::hand_on),
    (Slot::Crashed, failover::collect_crashed),
    (Slot::Forget, failover::forget),
    (Slot::Reshard, sharding::ask_for_resharding),
    (Slot::Assign, sharding::reassign),
    (Slot::Remind, remind::remind),
    (Slot::Leftovers, failover::drop_leftovers),
    (Slot::Misfire, misfire::settle),
    (Slot::Takeover, failover::take_over),
    (Slot::Before, guarantee::before),
    (Slot::After, guarantee::after),
];

#[derive(Debug)]
struct Leaving {
    reason: StopReason,
    cancel_at: Duration,
}

#[derive(Debug, Default)]
struct Backoff {
    refusals: u32,
    retry_at: Duration,
}

/// One instance's part in one job. See the module's description.
#[derive(Debug)]
pub struct Coordinator {
    local: Local,
    strategies: Strategies,
    now: Now,
    /// The configuration in force, and the document that was looked at last.
    plan: Option<Plan>,
    read: Option<Stat>,
    me: String,
    view: View,
    sees: Focus,
    connected: bool,
    /// Our instance node has been seen in this session: if it goes, we were asked to leave.
    registered: bool,
    ever_registered: bool,
    /// The status that our host had last, to restore it if it vanishes while we live.
    last_status: Option<&'static str>,
    leaving: Option<Leaving>,
    stopped: bool,
    /// Transactions under way, with what to record when they are done.
    pending: BTreeMap<Slot, Vec<Event>>,
    /// Those of them that nobody knows the fate of.
    unknown: BTreeSet<Slot>,
    backoff: BTreeMap<Slot, Backoff>,
    run: Run,
    next_round: u64,
    /// What rounds are called whose items have not all ended: the name they began with, whatever our id is by
    /// now.
    task_ids: BTreeMap<u64, String>,
    told_to_yield: bool,
    told_to_cancel: bool,
    /// Items that still run here for an earlier session, with their round.
    zombies: BTreeMap<u32, u64>,
    /// Hooks that are waited for.
    barriers: Barriers,
    /// When the clock fires next.
    next_fire: Option<Timestamp>,
    /// The last fire that the clock has passed.
    passed: Option<Timestamp>,
    /// A fire that has not begun to run.
    due: Option<Timestamp>,
    /// The last fire passed while a round was on.
    overran: bool,
    /// Since when this instance follows the schedule.
    watching_since: Option<Timestamp>,
    /// As leader: items that run for so long that they are moved later.
    gave_up: BTreeSet<u32>,
    waiting_since: Option<Duration>,
    /// Beside a Java leader: who is there.
    roll: remind::Roll,
    reconcile_at: Option<Duration>,
}

impl Coordinator {
    /// A coordinator that waits for its first [`Input::Connected`].
    pub fn new(local: Local, strategies: Strategies, now: Now) -> Coordinator {
        Coordinator {
            local,
            strategies,
            now,
            plan: None,
            read: None,
            me: String::new(),
            view: View::default(),
            sees: Focus::Everything,
            connected: false,
            registered: false,
            ever_registered: false,
            last_status: None,
            leaving: None,
            stopped: false,
            pending: BTreeMap::new(),
            unknown: BTreeSet::new(),
            backoff: BTreeMap::new(),
            run: Run::Idle,
            next_round: 1,
            task_ids: BTreeMap::new(),
            told_to_yield: false,
            told_to_cancel: false,
            zombies: BTreeMap::new(),
            barriers: Barriers::default(),
            next_fire: None,
            passed: None,
            due: None,
            overran: false,
            watching_since: None,
            gave_up: BTreeSet::new(),
            waiting_since: None,
            roll: remind::Roll::default(),
            reconcile_at: None,
        }
    }

    /// Takes one input and says what to do.
    pub fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        if self.stopped {
            return;
        }
        let went_back = now.wall < self.now.wall;
        self.now = now;
        if went_back && !on(Mutant::WaitForOldClock) {
            self.clock_went_back();
        }
        let an_item_ended = matches!(input, Input::ItemFinished { .. });
        self.absorb(input, out);
        if an_item_ended && self.more_will_end() && self.next_fire.is_none_or(|at| at > now.wall) {
            return; // In a round of thousands, looking at everything for each of them would take for ever.
        }
        if self.connected {
            self.read_config(out);
            self.notice_presence(out);
        }
        self.look_at_clock(out);
        if self.connected {
            self.look_at_patience();
            self.roll.call(&self.view);
            self.look_at_javas_registrations();
            self.settle(out); // A view that may be stale decides nothing.
        }
        self.tell_items(out);
        self.reconcile(out);
        self.finish_leaving(out);
    }

    /// When to call [`Coordinator::step`] at the latest.
    pub fn next_wakeup(&self) -> Wakeup {
        if self.stopped {
            return Wakeup::default();
        }
        let cancels = (self.run.has_code() && !self.told_to_cancel) || self.has_calls_to_stop();
        let cancel = self.leaving.as_ref().filter(|_| cancels).map(|it| it.cancel_at);
        let retry = self.backoff.values().map(|it| it.retry_at).filter(|at| *at > self.now.mono).min();
        // Nobody can act on it without a connection: waking up for it would be waking up for ever.
        let patience = self
            .waiting_since
            .filter(|_| self.connected && !on(Mutant::NoPatience))
            .map(|since| since + PATIENCE)
            .filter(|at| *at > self.now.mono);
        let reconcile = self.reconcile_at.filter(|_| self.connected);
        let mono = [cancel, retry, patience, reconcile, self.next_hook_wakeup()].into_iter().flatten().min();
        Wakeup { wall: self.next_fire.filter(|_| self.leaving.is_none()), mono }
    }

    // ---- Inputs ----

    fn absorb(&mut self, input: Input, out: &mut Vec<Effect>) {
        match input {
            Input::Sees(focus) => self.sees = focus,
            Input::Connected { me, nodes, same_session } => self.connect(me, &nodes, same_session, out),
            Input::Suspended => {
                if self.connected {
                    out.push(Effect::Record(Event::Suspended));
                }
                self.connected = false;
            }
            Input::Distrusted if on(Mutant::IgnoreDistrust) => {}
            Input::Distrusted => {
                self.connected = false;
                out.push(Effect::Record(Event::Distrusted));
                if !on(Mutant::NoCancelOnDistrust) {
                    self.cancel(out);
                }
            }
            Input::Changed(changes) => changes.iter().for_each(|change| self.view.apply(change)),
            Input::Settled(slot, verdict) => self.free(slot, verdict, out),
            Input::ItemFinished { round, item, outcome, output } => {
                self.finish_item(round, item, out, |task_id| Event::ItemFinished {
                    task_id,
                    item,
                    outcome,
                    output,
                });
            }
            Input::HookFinished { round, hook, error } => self.finish_hook(round, hook, error, out),
            Input::Leave { grace } => {
                let cancel_at = self.now.mono.saturating_add(grace);
                self.leaving.get_or_insert(Leaving { reason: StopReason::Left, cancel_at });
            }
            Input::Tick => {}
        }
    }

    fn connect(&mut self, me: String, nodes: &[Entry], same_session: bool, out: &mut Vec<Effect>) {
        if self.ever_registered && !self.connected {
            out.push(Effect::Record(Event::Reconnected));
        }
        if !same_session {
            self.abandon_round(out);
            self.registered &= on(Mutant::StopOnSessionEnd);
        }
        // What was lost is in the view by now, or never will be. What was sent since the view was asked for
        // is not in it yet, and will be answered.
        let stays = self.connected && same_session && !on(Mutant::ForgetPending);
        let unknown = std::mem::take(&mut self.unknown);
        self.pending.retain(|slot, _| stays && !unknown.contains(slot));
        self.backoff.clear();
        self.me = me;
        self.view = View::new(nodes);
        self.connected = true;
    }

    /// Our marks are no longer ours. What still runs here is told to stop, and kept apart until it has.
    fn abandon_round(&mut self, out: &mut Vec<Effect>) {
        self.cancel(out);
        self.forget_hooks();
        self.run = match std::mem::replace(&mut self.run, Run::Idle) {
            Run::Beginning { round, .. } if round.nominal.is_some() => {
                Run::Sharding { source: round.source, nominal: round.nominal }
            }
            Run::Running { round, left } => {
                let left = left.into_iter().filter(|_| !on(Mutant::ForgetZombies));
                self.zombies.extend(left.map(|item| (item, round.number)));
                Run::Idle
            }
            waiting @ Run::Sharding { .. } => waiting,
            Run::Starting { round, .. } => {
                out.push(Effect::Record(round.skipped(Skip::Interrupted)));
                Run::Idle
            }
            Run::Idle | Run::Beginning { .. } | Run::Completing { .. } | Run::Ending { .. } => Run::Idle,
        };
    }

    fn free(&mut self, slot: Slot, verdict: Verdict, out: &mut Vec<Effect>) {
        match verdict {
            Verdict::Done => {
                self.backoff.remove(&slot);
                self.unknown.remove(&slot);
                self.roll.reminded |= slot == Slot::Remind;
                let told = self.pending.remove(&slot).unwrap_or_default();
                out.extend(told.into_iter().map(Effect::Record));
            }
            Verdict::Refused if on(Mutant::AwaitRefused) => {}
            Verdict::Refused => {
                self.pending.remove(&slot);
                let backoff = self.backoff.entry(slot).or_default();
                // Once is a race that somebody else won. More often, something is slow: give it time.
                let wait = Duration::from_millis(5 << backoff.refusals.min(10));
                backoff.retry_at = self.now.mono + if backoff.refusals == 0 { Duration::ZERO } else { wait };
                backoff.refusals += 1;
            }
            Verdict::Unknown if on(Mutant::AwaitUnknown) => {}
            Verdict::Unknown if self.pending.contains_key(&slot) => {
                self.unknown.insert(slot);
                out.push(Effect::Resync);
            }
            Verdict::Unknown => {}
        }
    }

    fn finish_item(
        &mut self,
        number: u64,
        item: u32,
        out: &mut Vec<Effect>,
        record: impl FnOnce(String) -> Event,
    ) {
        let mut task_id = self.task_ids.get(&number).cloned().unwrap_or_default();
        if on(Mutant::RenameRounds) {
            task_id = format!("{}-{number}", self.me);
        }
        out.push(Effect::Record(record(task_id)));
        if self.zombies.get(&item) == Some(&number) {
            self.zombies.remove(&item);
            if !self.zombies.values().any(|it| *it == number) {
                self.finish_round(number, out);
            }
        }
        if let Run::Running { round, left } = &mut self.run
            && round.number == number
        {
            left.remove(&item);
        }
    }

    /// The round goes on, and nobody waits for the items of it that have ended.
    fn more_will_end(&self) -> bool {
        let goes_on = matches!(&self.run, Run::Running { left, .. } if !left.is_empty());
        goes_on && !self.view.necessary && self.leaving.is_none()
    }

    fn finish_round(&mut self, number: u64, out: &mut Vec<Effect>) {
        let task_id = self.task_ids.remove(&number).unwrap_or_default();
        out.push(Effect::Record(Event::RoundFinished { task_id }));
    }

    // ---- What the view says about us ----

    fn read_config(&mut self, out: &mut Vec<Effect>) {
        if on(Mutant::IgnoreConfig) && self.plan.is_some() {
            return;
        }
        let may_overwrite = self.may_overwrite();
        let Some(document) = self.view.config.as_ref().filter(|it| self.read != Some(it.stat)) else {
            return;
        };
        if may_overwrite && presence::set_up(&self.local, &self.view, true).is_some() {
            return; // It will be replaced.
        }
        self.read = Some(document.stat);
        let spec = JobSpec::from_yaml(&document.text)
            .map(|spec| JobSpec { job_name: self.local.spec.job_name.clone(), ..spec });
        match spec.and_then(|spec| Plan::compile(spec, &self.strategies, &self.local.zone)) {
            Ok(plan) => self.adopt(plan, out),
            Err(error) if self.plan.is_none() => self.stop(StopReason::BadConfig(error.to_string()), out),
            Err(error) => out.push(Effect::Record(Event::ConfigRefused { error: error.to_string() })),
        }
    }

    fn adopt(&mut self, plan: Plan, out: &mut Vec<Effect>) {
        let timing = |it: &Plan| (it.spec.cron.clone(), it.spec.time_zone.clone(), it.spec.props.clone());
        let another_clock = self.plan.as_ref().is_some_and(|old| timing(old) != timing(&plan));
        if self.plan.is_some() {
            out.push(Effect::Record(Event::ConfigChanged));
        }
        self.plan = Some(plan);
        if another_clock && self.watching_since.is_some() && !on(Mutant::KeepAlarm) {
            // Fires of the new schedule count from now on; what the old one missed is forgotten.
            (self.passed, self.due, self.overran) = (None, None, false);
            self.watching_since = Some(self.now.wall);
            self.arm();
        }
    }

    fn may_overwrite(&self) -> bool {
        self.local.spec.overwrite && !self.ever_registered
    }

    fn notice_presence(&mut self, out: &mut Vec<Effect>) {
        match self.view.servers.get(ip_of(&self.me)) {
            Some(status) => self.last_status = [ENABLED, DISABLED].into_iter().find(|it| it == status),
            // A job that is made anew knows nothing of what was disabled in the one before.
            None if self.view.config.is_none() => self.last_status = None,
            None => {}
        }
        if self.view.config.is_none() && (on(Mutant::ReviveRemovedJob) || on(Mutant::IgnoreRemoval)) {
            self.registered = false;
            return;
        }
        let alive = self.view.is_alive(&self.me);
        let removed = self.ever_registered && self.view.config.is_none();
        if removed || (self.registered && !alive) {
            let reason = if removed { StopReason::Removed } else { StopReason::ShutDown };
            self.leaving.get_or_insert(Leaving { reason, cancel_at: self.now.mono });
        }
        if alive && !self.registered {
            self.registered = true;
            out.push(Effect::Record(Event::Registered { id: self.me.clone() }));
            if !self.ever_registered {
                self.ever_registered = true;
                self.start_watching();
            }
        }
    }

    // ---- The rules ----

    fn settle(&mut self, out: &mut Vec<Effect>) {
        if self.stopped || self.set_up(out) {
            return;
        }
        // Each rule acts at most once before an answer frees its slot, and the run passes each state at most
        // twice: reaching the bound would be a mistake in the rules.
        for _ in 0..4 * RULES.len() {
            let mut moved = false;
            let mut rules = RULES.iter();
            while let Some((slot, wanted)) = self.next_move(&mut rules) {
                self.commit(slot, wanted, out);
                moved = true;
            }
            moved |= self.look_at_hooks(out) | self.look_at_delays() | self.advance_run(out);
            if !moved {
                // Items of a round that begins are not judged yet.
                let begins = matches!(self.run, Run::Beginning { .. }) && !on(Mutant::LoseFireWhileBeginning);
                self.overran &= !self.is_free(Slot::Misfire) || begins;
                return;
            }
        }
        debug_assert!(false, "the rules go in circles: {}", self.describe());
    }

    /// What the first of these rules wants that wants anything. They all look from the same standpoint: it is theirs
    /// until one of them moves.
    fn next_move(&self, rules: &mut std::slice::Iter<'_, (Slot, Rule)>) -> Option<(Slot, Move)> {
        let at = self.standpoint()?;
        rules.filter(|(slot, _)| self.is_free(*slot)).find_map(|(slot, rule)| Some((*slot, rule(&at)?)))
    }

    /// Makes sure that the job's document stands. Says whether there is something to wait for.
    fn set_up(&mut self, out: &mut Vec<Effect>) -> bool {
        let theirs = self.view.class.as_deref().unwrap_or_default().trim();
        let ours = &self.local.class;
        if !theirs.is_empty() && !ours.is_empty() && theirs != ours {
            let reason = StopReason::Conflict { theirs: theirs.to_owned(), ours: ours.clone() };
            self.stop(reason, out);
            return true;
        }
        if self.leaving.is_none()
            && (!self.ever_registered || on(Mutant::ReviveRemovedJob))
            && self.is_free(Slot::SetUp)
            && let Some(wanted) = presence::set_up(&self.local, &self.view, self.may_overwrite())
        {
            self.commit(Slot::SetUp, wanted, out);
        }
        self.plan.is_none() || self.pending.contains_key(&Slot::SetUp)
    }

    fn is_free(&self, slot: Slot) -> bool {
        let retries = self.backoff.get(&slot).is_none_or(|it| it.retry_at <= self.now.mono);
        retries && !self.pending.contains_key(&slot)
    }

    fn commit(&mut self, slot: Slot, wanted: Move, out: &mut Vec<Effect>) {
        debug_assert!(!wanted.ops.is_empty(), "an empty transaction for {slot:?}");
        let before = self.pending.insert(slot, wanted.tell);
        debug_assert!(before.is_none(), "two transactions for {slot:?}");
        out.push(Effect::Commit { slot, ops: wanted.ops });
    }

    fn advance_run(&mut self, out: &mut Vec<Effect>) -> bool {
        if !self.is_free(Slot::Run) {
            return false;
        }
        let Some(standpoint) = self.standpoint() else { return false };
        let step = run::advance(&standpoint);
        let moved = step.commit.is_some() || step.next.is_some();
        out.extend(step.tell.map(Effect::Record));
        if let Some(wanted) = step.commit {
            self.commit(Slot::Run, wanted, out);
        }
        if let Some(next) = step.next {
            self.enter(next, out);
        }
        moved
    }

    fn enter(&mut self, next: Run, out: &mut Vec<Effect>) {
        match (&self.run, &next) {
            (Run::Idle, Run::Sharding { source: Source::Schedule, .. }) => self.due = None,
            (Run::Idle | Run::Sharding { .. }, Run::Beginning { round, .. }) => {
                self.next_round += 1;
                // A replay stands for all that was missed so far.
                self.overran &= round.source != Source::Misfire;
            }
            (Run::Starting { awaits: Awaits::Cluster, .. }, Run::Starting { awaits: Awaits::Own, round }) => {
                self.call(Hook::Before, round, out);
            }
            (Run::Beginning { .. }, Run::Starting { round, awaits }) => {
                self.told_to_cancel = false;
                match awaits {
                    Awaits::Cluster => self.await_hook(Phase::Started, round),
                    Awaits::Own | Awaits::Nothing => self.call(Hook::Before, round, out),
                }
            }
            // Nobody who gave up waiting for the hook before is kept from leaving by it.
            (Run::Starting { .. }, Run::Completing { .. }) if !on(Mutant::KeepWaitingForHook) => {
                self.barriers.before = None;
            }
            (_, Run::Running { round, .. }) => {
                (self.told_to_yield, self.told_to_cancel) = (false, false);
                let order = self.order(round);
                self.complain_of_missing_marks(&order.task_id, out);
                self.task_ids.insert(order.round, order.task_id.clone());
                out.push(Effect::Record(Event::RoundStarted {
                    task_id: order.task_id.clone(),
                    source: round.source,
                    nominal: round.nominal,
                    items: round.items.clone(),
                    merged: round.merged,
                }));
                out.push(Effect::Run(order));
            }
            (Run::Running { round, .. }, _) => self.finish_round(round.number, out),
            (Run::Completing { round, ran: true }, _) => {
                self.await_hook(Phase::Completed, &round.clone());
                if let Run::Ending { round } = &next {
                    self.told_to_cancel = false;
                    self.call(Hook::After, round, out);
                }
            }
            _ => {}
        }
        self.run = next;
    }

    // ---- Time limits ----

    /// What must move and runs is waited for, but not for ever: a job with one endless item would stand still
    /// as a whole.
    fn look_at_patience(&mut self) {
        if !self.view.necessary && self.waiting_since.is_none() && self.gave_up.is_empty() {
            return; // The usual case, at every step.
        }
        let Some(at) = self.standpoint() else { return };
        let gave_up: BTreeSet<u32> = at.gave_up.iter().copied().filter(|item| at.is_busy(*item)).collect();
        let reshards = at.leads() && at.view.necessary;
        self.gave_up = gave_up;
        // Patience is for the whole of a new assignment: when an item that was given up ends after all, others may
        // be in the way.
        self.waiting_since = self.waiting_since.filter(|_| reshards);
        let mut busy = self.in_the_way();
        if busy.is_empty() {
            self.waiting_since = self.waiting_since.filter(|_| !on(Mutant::WaitAgain));
            return;
        }
        let since = *self.waiting_since.get_or_insert(self.now.mono);
        if self.now.mono.saturating_sub(since) < PATIENCE || on(Mutant::NoPatience) {
            return;
        }
        // What is done without some of them may need others: all of that is given up at once, each after the
        // other would cost another wait. Ends, as there are only so many items.
        while !busy.is_empty() {
            self.gave_up.extend(busy);
            busy = if on(Mutant::WaitForEach) { BTreeSet::new() } else { self.in_the_way() };
        }
        self.waiting_since =
            self.waiting_since.filter(|_| !on(Mutant::WaitAgain) && !on(Mutant::WaitForEach));
    }

    /// As leader: items that run and would have to move.
    fn in_the_way(&self) -> BTreeSet<u32> {
        let Some(at) = self.standpoint().filter(|at| at.leads() && at.view.necessary) else {
            return BTreeSet::new();
        };
        let gap = sharding::gap(&at);
        gap.items().filter(|item| at.is_busy(*item)).collect()
    }

    fn tell_items(&mut self, out: &mut Vec<Effect>) {
        let wanted_elsewhere = self.view.necessary || self.leaving.is_some();
        if let Run::Running { round, .. } = &self.run
            && wanted_elsewhere
            && !self.told_to_yield
        {
            self.told_to_yield = true;
            out.push(Effect::Yield { round: round.number });
        }
        if self.leaving.as_ref().is_some_and(|it| it.cancel_at <= self.now.mono) {
            self.cancel(out);
        }
    }

    fn cancel(&mut self, out: &mut Vec<Effect>) {
        self.stop_calls(out);
        if let Some(round) = self.run.round().filter(|_| self.run.has_code() && !self.told_to_cancel) {
            self.told_to_cancel = true;
            out.push(Effect::Cancel { round: round.number });
        }
    }

    /// Now and then the mirror is made anew, in case it is not one any more. The rules repair the rest.
    fn reconcile(&mut self, out: &mut Vec<Effect>) {
        let minutes = self.plan.as_ref().map_or(0, |it| it.spec.reconcile_interval_minutes.max(0));
        let interval = Duration::from_secs(60 * u64::from(minutes.unsigned_abs()));
        if interval.is_zero() || !self.connected {
            self.reconcile_at = None;
        } else if self.reconcile_at.is_some_and(|at| at <= self.now.mono) {
            let often = Duration::from_millis(200);
            let wait = if on(Mutant::ReconcileAlways) { often } else { interval };
            self.reconcile_at = Some(self.now.mono + wait);
            self.roll.doubt();
            out.push(Effect::Resync);
        } else {
            self.reconcile_at.get_or_insert(self.now.mono + interval);
        }
    }

    fn finish_leaving(&mut self, out: &mut Vec<Effect>) {
        let Some(leaving) = &self.leaving else { return };
        let cleaned_up = self.run.is_idle() && self.pending.is_empty() && !self.view.is_alive(&self.me);
        let leads = self.view.leader.as_deref() == Some(&self.me);
        // Our place in a line goes with our session, which may live on for other jobs: others would stand behind us.
        let calls = self.barriers.is_any() && !on(Mutant::StopWhileCalling);
        if cleaned_up && !calls && !leads && (self.connected || !self.ever_registered) {
            let reason = leaving.reason.clone();
            self.stop(reason, out);
        }
    }

    fn stop(&mut self, reason: StopReason, out: &mut Vec<Effect>) {
        self.stopped = true;
        out.push(Effect::Record(Event::Stopped { reason: reason.clone() }));
        out.push(Effect::Stop(reason));
    }

    // ---- For those who ask ----

    fn standpoint(&self) -> Option<Standpoint<'_>> {
        Some(Standpoint {
            now: self.now,
            me: &self.me,
            is_registered: self.view.is_alive(&self.me),
            status: self.view.servers.get(ip_of(&self.me)).map(String::as_str),
            plan: self.plan.as_ref()?,
            view: &self.view,
            sees: &self.sees,
            run: &self.run,
            leaving: self.leaving.is_some(),
            hold_back: self.may_overwrite() && self.local.spec.disabled,
            last_status: self.last_status,
            busy_leading: LEADER_SLOTS.iter().any(|slot| self.pending.contains_key(slot)),
            due: self.due,
            passed: self.passed,
            overran: self.overran,
            watching_since: self.watching_since,
            next_round: self.next_round,
            zombies: &self.zombies,
            gave_up: &self.gave_up,
            hooks: self.local.hooks,
            barriers: &self.barriers,
            out_of_time: self.leaving.as_ref().is_some_and(|it| it.cancel_at <= self.now.mono),
            roll: &self.roll,
        })
    }

    /// Our instance id in the current session.
    pub fn me(&self) -> &str {
        &self.me
    }

    /// What our mirror should follow.
    pub fn focus(&self) -> Focus {
        if self.view.leader.as_deref() == Some(&self.me) || self.local.hooks.once.is_some() {
            return Focus::Everything;
        }
        let turns = self.plan.as_ref().is_some_and(Plan::takes_turns);
        let ours = |id: Option<&String>| id == Some(&self.me);
        let wanted = self.view.items.iter().filter(|(_, state)| {
            turns || ours(state.owner.as_ref().map(|it| &it.by)) || ours(state.failover.as_ref())
        });
        let mut items: BTreeSet<u32> = wanted.map(|(item, _)| *item).collect();
        items.extend(self.run.items().iter().copied());
        items.extend(&self.view.crashed);
        Focus::Items(items)
    }

    /// What the registry says, as far as we know.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Where the current round is.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The configuration in force.
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Whether we are registered, in a session that stands.
    pub fn stands(&self) -> bool {
        self.connected && !self.stopped && self.view.is_alive(&self.me)
    }

    /// Whether it has ended.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// When the clock fires next.
    pub fn next_fire(&self) -> Option<Timestamp> {
        self.next_fire
    }

    /// One line for traces.
    pub fn describe(&self) -> String {
        let pending: Vec<String> = self.pending.keys().map(|slot| format!("{slot:?}")).collect();
        format!(
            "{} {} items={:?} pending=[{}] due={:?} passed={:?} leaving={:?}",
            self.me,
            self.run.name(),
            self.run.items(),
            pending.join(","),
            self.due,
            self.passed,
            self.leaving
        )
    }
}

/// How long after `earlier` is `later`; negative if it is not.
fn since(earlier: Timestamp, later: Timestamp) -> SignedDuration {
    later.duration_since(earlier)
}
