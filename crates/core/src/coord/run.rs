//! The life of one round on this instance, from being wanted to having cleaned up.
//!
//! ```text
//! Idle ──► Sharding ──► Beginning ──► (Starting) ──► Running ──► Completing ──► (Ending) ──► Idle
//!   └──────── failover ────▲  └── clock off ──────────────────────▲
//! ```

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{CHUNK, Move, Standpoint, catchup, delay, failover, guarantee};
use crate::event::{Event, Skip, Source};
use crate::mutants::{Mutant, on};
use crate::node::Node;
use crate::tree::Op;
use crate::view::{Item, ip_of, write_cursor};

static NO_ITEMS: BTreeSet<u32> = BTreeSet::new();

/// What a round is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    /// Counts the rounds of this process.
    pub number: u64,
    /// Why it runs.
    pub source: Source,
    /// The fire that it stands for.
    pub nominal: Option<Timestamp>,
    /// What it runs.
    pub items: BTreeSet<u32>,
    /// How many earlier fires it makes up for.
    pub merged: u64,
    /// What came along with the triggers that its items run for.
    pub parameters: BTreeMap<u32, String>,
}

impl Round {
    fn new(at: &Standpoint<'_>, source: Source, nominal: Option<Timestamp>, items: BTreeSet<u32>) -> Round {
        let (number, merged, parameters) = (at.next_round, merged(at, nominal, &items), BTreeMap::new());
        Round { number, source, nominal, items, merged, parameters }
    }

    /// This round, with what comes along with the triggers that the claim of these items answers. The first
    /// claim of several takes the request away; one that comes later is another. If an earlier try was refused, fires may
    /// have been settled since.
    fn answering(&self, at: &Standpoint<'_>, items: impl Iterator<Item = u32>, is_first: bool) -> Round {
        let mut round = self.clone();
        if is_first {
            round.merged = merged(at, self.nominal, &self.items);
        }
        for item in items.filter(|_| self.source != Source::Trigger || is_first) {
            let state = at.item(item);
            let came = match self.source {
                Source::Trigger => at.view.triggers.get(at.me),
                Source::Failover => state.and_then(|it| it.parameter.as_ref()),
                Source::Schedule | Source::Misfire => state.and_then(|it| it.asked_with.as_ref()),
            };
            match came.filter(|it| !it.is_empty()) {
                Some(text) => drop(round.parameters.insert(item, text.clone())),
                None => drop(round.parameters.remove(&item)),
            }
        }
        round
    }

    /// It will not run.
    pub(super) fn skipped(&self, why: Skip) -> Event {
        Event::Skipped { nominal: self.nominal, items: self.items.clone(), why }
    }

    /// Whether it stands for fires, and so for missed ones too.
    fn makes_up(&self) -> bool {
        matches!(self.source, Source::Schedule | Source::Misfire)
    }
}

/// Where the current round is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// There is none.
    Idle,
    /// Waiting until the assignment stands.
    Sharding {
        /// Why it runs.
        source: Source,
        /// The fire that it stands for.
        nominal: Option<Timestamp>,
    },
    /// Waiting until the registry says that all items are ours to run.
    Beginning {
        /// The round.
        round: Round,
        /// The registry was asked to let us.
        asked: Option<Asked>,
    },
    /// Everything is ours to run; the hooks before it come first.
    Starting {
        /// The round.
        round: Round,
        /// What is waited for.
        awaits: Awaits,
    },
    /// User code runs.
    Running {
        /// The round.
        round: Round,
        /// Items that have not ended.
        left: BTreeSet<u32>,
    },
    /// Waiting until our marks are gone.
    Completing {
        /// The round.
        round: Round,
        /// User code ran.
        ran: bool,
    },
    /// The hook after it is called.
    Ending {
        /// The round.
        round: Round,
    },
}

/// What a round waits for before its items start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaits {
    /// The hook that one instance of all calls.
    Cluster,
    /// The hook that this instance calls.
    Own,
    /// Nothing any more.
    Nothing,
}

/// A claim that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// When, by our clock.
    pub sent: Timestamp,
    /// The version that the registry's time had.
    pub version: Option<u32>,
}

impl Asked {
    /// The registry's time, if it has told it since.
    fn answer(self, at: &Standpoint<'_>) -> Option<Timestamp> {
        at.view.system_time.filter(|it| Some(it.version) != self.version).map(|it| it.modified)
    }
}

#[derive(Default)]
pub(super) struct Step {
    pub(super) commit: Option<Move>,
    pub(super) next: Option<Run>,
    pub(super) tell: Option<Event>,
}

impl Step {
    fn stay() -> Step {
        Step::default()
    }

    fn go(next: Run) -> Step {
        Step { next: Some(next), ..Step::default() }
    }

    fn commit(ops: Vec<Op>) -> Step {
        Step { commit: Some(ops.into()), ..Step::default() }
    }
}

pub(super) fn advance(at: &Standpoint<'_>) -> Step {
    match at.run {
        Run::Idle => idle(at),
        Run::Sharding { source, nominal } => await_assignment(at, *source, *nominal),
        // A mirror that was narrowed before it knew of the round does not say what became of it.
        Run::Beginning { round, .. } | Run::Completing { round, .. } if !sees_all(at, round) => Step::stay(),
        Run::Beginning { round, asked } => begin(at, round, *asked),
        Run::Starting { round, awaits } => await_hooks(at, round, *awaits),
        Run::Running { round, left } if left.is_empty() => {
            Step::go(Run::Completing { round: round.clone(), ran: true })
        }
        Run::Running { .. } | Run::Ending { .. } => Step::stay(),
        Run::Completing { round, ran } => complete(at, round, *ran),
    }
}

fn sees_all(at: &Standpoint<'_>, round: &Round) -> bool {
    round.items.iter().all(|it| at.sees.covers(*it)) || on(Mutant::TrustNarrowMirror)
}

/// Failover goes ahead of everything, so that a busy survivor does not starve a dead peer's items.
fn idle(at: &Standpoint<'_>) -> Step {
    if at.leaving || !at.is_registered() {
        return Step::stay();
    }
    let taken_over = select(at, Source::Failover, None);
    if !taken_over.is_empty() {
        let round = Round::new(at, Source::Failover, None, taken_over);
        return Step::go(Run::Beginning { round, asked: None });
    }
    let due = at.due.map(|fire| Run::Sharding { source: Source::Schedule, nominal: Some(fire) });
    if let Some(last) = &at.barriers.after {
        // The next round waits for the end of this one. What belongs to this one does not.
        let belongs = |run: &Run| matches!(run, Run::Sharding { nominal, .. } if *nominal <= last.fire);
        let free = last.fire.is_some() && !failover::waits_for_us(at);
        let next = due.filter(belongs).or_else(|| replay(at));
        return next.filter(|run| free && belongs(run)).map_or_else(Step::stay, Step::go);
    }
    let next = if failover::waits_for_us(at) {
        None
    } else if at.view.triggers.contains_key(at.me) {
        Some(Run::Sharding { source: Source::Trigger, nominal: None })
    } else {
        due.or_else(|| replay(at))
    };
    next.map_or_else(Step::stay, Step::go)
}

/// Marked items run for the last fire, by our clock or by that of whoever noted it. A mark whose fire is settled
/// was left by a trigger that reached nobody, or by a schedule that no longer stands: it stands for no fire.
fn replay(at: &Standpoint<'_>) -> Option<Run> {
    if at.view.necessary || !at.view.items.values().any(|state| state.misfire) {
        return None;
    }
    let noted = at.my_items().filter_map(|(_, state)| at.noted(state)).max();
    let marked = at.my_items().filter(|(_, state)| state.misfire);
    let oldest = marked.filter_map(|(_, state)| catchup::owed(at, state)).min();
    let mut fires = oldest.into_iter().map(Some).chain([at.passed.max(noted), None]);
    let nominal = fires.find(|it| !select(at, Source::Misfire, *it).is_empty())?;
    Some(Run::Sharding { source: Source::Misfire, nominal })
}

fn await_assignment(at: &Standpoint<'_>, source: Source, nominal: Option<Timestamp>) -> Step {
    let pending = at.view.necessary || at.view.processing;
    // A trigger that comes before anything was handed out, for the first time or after all owners have died, is for
    // what will be.
    let coming = pending || (source == Source::Trigger && is_asked(at) && !is_handed_out(at));
    if coming && !at.leaving && at.view.is_any_available() {
        return Step::stay();
    }
    if !at.leaving && owns_unseen(at) && !on(Mutant::TrustNarrowMirror) {
        return Step::stay(); // The mirror is about to show it.
    }
    if source == Source::Trigger && !is_asked(at) {
        return Step::go(Run::Idle);
    }
    // While we waited the schedule may have changed; what the old one fired is forgotten.
    let stands = nominal.is_none_or(|fire| at.is_fire(fire));
    let may_go_on = stands && !pending && !at.leaving;
    let items = if may_go_on { select(at, source, nominal) } else { BTreeSet::new() };
    if !items.is_empty() {
        let round = Round::new(at, source, nominal, items);
        return Step::go(Run::Beginning { round, asked: None });
    }
    if source == Source::Trigger && !at.leaving {
        let told = Event::Skipped { nominal: None, items: BTreeSet::new(), why: Skip::NoItems };
        let answered = Move::from(vec![Node::Trigger(at.me.to_owned()).delete()]).telling(told);
        return Step { commit: Some(answered), next: Some(Run::Idle), tell: None };
    }
    Step::go(Run::Idle)
}

/// How many fires before this one are made up for with it. An item without a cursor has missed nothing that anybody
/// knows of.
fn merged(at: &Standpoint<'_>, nominal: Option<Timestamp>, items: &BTreeSet<u32>) -> u64 {
    let settled = items.iter().filter_map(|item| at.open_since(at.item(*item)?)).min();
    let settled = settled.or(at.watching_since.filter(|_| on(Mutant::CountAllAsMerged)));
    let since = settled.map(|it| at.watching_since.map_or(it, |watching| it.max(watching)));
    match (&at.plan.schedule, since, nominal) {
        (Some(schedule), Some(since), Some(nominal)) => {
            schedule.count_between(since, nominal).saturating_sub(1)
        }
        _ => 0,
    }
}

/// Whether somebody asks us to run now. While we waited, under another id perhaps, others may have been asked
/// in our place.
fn is_asked(at: &Standpoint<'_>) -> bool {
    at.view.triggers.contains_key(at.me) || on(Mutant::RememberTrigger)
}

/// Whether any item has an owner who lives.
fn is_handed_out(at: &Standpoint<'_>) -> bool {
    let mut known = at.view.items.range(..at.plan.spec.sharding_total_count);
    known.any(|(_, state)| state.owner.as_ref().is_some_and(|it| at.view.is_alive(&it.by)))
}

/// Whether something is ours that the mirror does not follow yet, so that nobody can say if it may run.
fn owns_unseen(at: &Standpoint<'_>) -> bool {
    let known = at.view.items.range(..at.plan.spec.sharding_total_count);
    known.into_iter().any(|(item, state)| !at.sees.covers(*item) && at.is_mine(state))
}

/// The items that this instance may run now for that reason.
fn select(at: &Standpoint<'_>, source: Source, nominal: Option<Timestamp>) -> BTreeSet<u32> {
    let total = at.plan.spec.sharding_total_count;
    let known = at.view.items.range(..total);
    known.filter(|(item, state)| may_run(at, **item, state, source, nominal)).map(|(item, _)| *item).collect()
}

pub(super) fn may_run(
    at: &Standpoint<'_>,
    item: u32,
    state: &Item,
    source: Source,
    nominal: Option<Timestamp>,
) -> bool {
    let disabled = state.disabled && !on(Mutant::IgnoreDisabledItem);
    let zombie = at.zombies.contains_key(&item) && !on(Mutant::IgnoreZombies);
    let free = at.sees.covers(item) && state.running.is_none() && !disabled && !zombie;
    let enabled = at.is_enabled() || on(Mutant::IgnoreDisabledServer);
    let mine = || enabled && state.failover.is_none() && at.is_mine(state);
    // A fire that the cursor has passed was settled already, here or elsewhere.
    let open = || at.cursor(state).is_none_or(|settled| nominal.is_none_or(|nominal| settled < nominal));
    let due = || nominal.and_then(|by| delay::is_due(at, state, by)).unwrap_or(true);
    // Where an item runs for each fire that it missed, none goes before an older one.
    let next = || catchup::owed(at, state).is_none_or(|owed| nominal.is_none_or(|it| it <= owed));
    free && match source {
        Source::Failover => at.is_me(state.failover.as_ref()),
        Source::Trigger => mine(),
        Source::Schedule => mine() && open() && due() && next(),
        Source::Misfire => {
            state.misfire && mine() && at.plan.spec.misfire && (open() || on(Mutant::RerunSettled))
        }
    }
}

fn begin(at: &Standpoint<'_>, round: &Round, asked: Option<Asked>) -> Step {
    // What the configuration has no longer must not run, even if its mark stands by now.
    let total = at.plan.spec.sharding_total_count;
    let exists = |item: &u32| at.item(*item).filter(|_| *item < total || on(Mutant::IgnoreLoweredCount));
    let begun = |item: &u32| exists(item).is_some_and(|it| is_begun(at, round, it, asked.is_some()));
    let still =
        |item: &u32| exists(item).is_some_and(|it| may_run(at, *item, it, round.source, round.nominal));
    let items: BTreeSet<u32> = round.items.iter().copied().filter(|it| begun(it) || still(it)).collect();
    // Our claim takes the request away.
    let unasked = round.source == Source::Trigger && asked.is_none() && !is_asked(at);
    let moves = at.view.necessary && round.source != Source::Failover;
    let in_doubt = moves || unasked || at.leaving || !at.is_registered();
    let tell = overtaken(at, round, asked.is_some());
    if items.is_empty() || (in_doubt && !items.iter().any(begun)) {
        return Step { tell, ..turn_back(at, round) };
    }
    if !at.is_registered() && !on(Mutant::StartShutDown) {
        return give_up(at, round);
    }
    if items != round.items {
        let next = Run::Beginning { round: Round { items, ..round.clone() }, asked };
        return Step { next: Some(next), tell, commit: None };
    }
    let waiting: Vec<u32> = items.iter().copied().filter(|it| !begun(it)).take(CHUNK).collect();
    let answered = asked.and_then(|it| it.answer(at));
    let is_first = !items.iter().any(begun);
    let round = &round.answering(at, items.iter().copied().filter(|it| !begun(it)), is_first);
    let mut ops = claim(at, round, &waiting, answered.is_none());
    // Without marks, nobody can tell an answer to the first claim that was lost from one that was refused.
    ops.extend(answer_trigger(at, round, is_first || !at.plan.spec.monitor_execution));
    if ops.len() > 1 {
        let asked = Asked { sent: at.now.wall, version: at.view.system_time.map(|it| it.version) };
        let next = Run::Beginning { round: round.clone(), asked: Some(asked) };
        return Step { commit: Some(ops.into()), next: Some(next), tell: None };
    }
    start(at, round, asked.zip(answered))
}

/// Items that were claimed, and their fire or trigger settled with it, just as the configuration lost them.
fn overtaken(at: &Standpoint<'_>, round: &Round, asked: bool) -> Option<Event> {
    let claimed = |item: &u32| match at.item(*item) {
        Some(state) => is_begun(at, round, state, asked),
        // What bears no mark is not waited for when it is taken away.
        None => asked && !at.plan.spec.monitor_execution,
    };
    let lost = |item: &u32| *item >= at.plan.spec.sharding_total_count && claimed(item);
    let items: BTreeSet<u32> = round.items.iter().copied().filter(lost).collect();
    let tell = !items.is_empty() && !on(Mutant::OvertakeSilently);
    tell.then_some(Event::Skipped { nominal: round.nominal, items, why: Skip::NoItems })
}

/// What is monitored has begun when the registry says so. What is not has no mark: it has begun when we said
/// so, and its request to make up for a missed fire is gone.
fn is_begun(at: &Standpoint<'_>, round: &Round, state: &Item, asked: bool) -> bool {
    match at.plan.spec.monitor_execution {
        true if on(Mutant::StartUnclaimed) => asked,
        true => state.running.as_ref().is_some_and(|it| it.by == at.me),
        false => asked && !(round.makes_up() && state.misfire),
    }
}

/// The assignment is about to change, or others were faster: a fire is looked at again once things stand.
fn turn_back(at: &Standpoint<'_>, round: &Round) -> Step {
    match round.source {
        Source::Schedule | Source::Misfire if !at.leaving && at.is_registered() => {
            Step::go(Run::Sharding { source: round.source, nominal: round.nominal })
        }
        _ => Step::go(Run::Idle),
    }
}

/// The job was ended here while the answer to our claim was on its way: what was granted does not start.
fn give_up(at: &Standpoint<'_>, round: &Round) -> Step {
    let told = Event::Skipped { nominal: round.nominal, items: round.items.clone(), why: Skip::ShutDown };
    let step = complete(at, round, false);
    let next = step.next.or_else(|| Some(Run::Completing { round: round.clone(), ran: false }));
    Step { commit: step.commit.map(|it| it.telling(told)), next, tell: None }
}

/// One transaction that makes these items ours to run, whatever their number: it is refused if we are gone,
/// if somebody else runs one of them, or if one was moved or settled since we looked.
fn claim(at: &Standpoint<'_>, round: &Round, items: &[u32], ask_the_time: bool) -> Vec<Op> {
    let mut ops = vec![at.i_exist()];
    for &item in items {
        let Some(state) = at.item(item) else { continue };
        if at.plan.spec.monitor_execution {
            let mark = Node::Running(item);
            // A mark that outlives us tells others that we died.
            ops.push(if at.fails_over() { mark.create(at.me) } else { mark.create_ephemeral(at.me) });
            ops.extend(advance_cursor(at, round, item, state).filter(|_| !on(Mutant::ForgetCursor)));
        }
        ops.extend(guarantee::register_start(at, round, item));
        let replayed = round.makes_up() && state.misfire && !on(Mutant::KeepMisfire);
        ops.extend(replayed.then(|| Node::Misfire(item).delete()));
        let parameter = round.parameters.get(&item).filter(|_| at.fails_over());
        ops.extend(note_parameter(item, state.parameter.as_ref(), parameter));
        // Whoever runs it now does what was to be taken over.
        ops.extend(at.view.crashed.contains(&item).then(|| Node::Crashed(item).delete()));
    }
    if at.plan.spec.max_time_diff_seconds >= 0 && ask_the_time {
        ops.push(match at.view.system_time {
            Some(_) => Node::SystemTime.set(""),
            None => Node::SystemTime.create(""),
        });
    }
    ops
}

/// The request goes with the first claim. One that comes later is another, to be run after this.
fn answer_trigger(at: &Standpoint<'_>, round: &Round, is_first_claim: bool) -> Option<Op> {
    let wanted = round.source == Source::Trigger || on(Mutant::SwallowTrigger);
    let first = is_first_claim || on(Mutant::SwallowLaterTrigger);
    let answers = wanted && first && at.view.triggers.contains_key(at.me) && !on(Mutant::KeepTrigger);
    answers.then(|| Node::Trigger(at.me.to_owned()).delete())
}

/// Whoever takes the item over must know it; and nobody must take that of an earlier run for his.
fn note_parameter(item: u32, known: Option<&String>, wanted: Option<&String>) -> Option<Op> {
    let node = Node::Parameter(item);
    match (known, wanted) {
        (known, wanted) if known == wanted => None,
        (None, Some(text)) => Some(node.create(text.clone())),
        (Some(_), Some(text)) => Some(node.set(text.clone())),
        (_, None) => Some(node.delete()),
    }
}

/// A cursor does not go back, unless nobody believes it: one that a wrong clock wrote far ahead would keep the
/// item from running when its time comes near.
fn advance_cursor(at: &Standpoint<'_>, round: &Round, item: u32, state: &Item) -> Option<Op> {
    let node = Node::Cursor(item);
    // For those who compare clocks: beside it, the registry notes what its own shows.
    let clock = state.owner.as_ref().filter(|it| it.by == at.me).map(|_| at.now.wall);
    match (round.source, state.cursor) {
        (Source::Schedule | Source::Misfire, Some(it)) => {
            let settled = if on(Mutant::BelieveFarCursor) { it.at } else { at.cursor(state) };
            let fire = write_cursor(round.nominal.max(settled), clock);
            Some(if on(Mutant::ClaimAnyVersion) { node.set(fire) } else { node.set_at(it.version, fire) })
        }
        (Source::Schedule | Source::Misfire, None) => Some(node.create(write_cursor(round.nominal, clock))),
        (Source::Trigger, Some(it)) => Some(node.is_at(it.version)),
        (Source::Trigger, None) => None,
        (Source::Failover, _) => Some(Node::Failover(item).exists()),
    }
}

/// Everything is ours. Unless the clocks disagree, user code starts.
fn start(at: &Standpoint<'_>, round: &Round, time: Option<(Asked, Timestamp)>) -> Step {
    let limit = i64::from(at.plan.spec.max_time_diff_seconds);
    let off = time.map_or(0, |(asked, answer)| off_by(answer, asked.sent, at.now.wall));
    if limit >= 0 && off > limit * 1000 && !on(Mutant::IgnoreClockGuard) {
        return skip_claimed(round, Skip::ClockOff);
    }
    let (round, own) = (round.clone(), at.hooks.each);
    Step::go(match guarantee::opens(at, &round) {
        true => Run::Starting { round, awaits: Awaits::Cluster },
        false if own => Run::Starting { round, awaits: Awaits::Own },
        false => Run::Running { left: round.items.clone(), round },
    })
}

/// What was claimed does not run after all.
fn skip_claimed(round: &Round, why: Skip) -> Step {
    let next = Run::Completing { round: round.clone(), ran: false };
    Step { next: Some(next), tell: Some(round.skipped(why)), commit: None }
}

/// While hooks were waited for, the configuration may have lost items, or somebody their marks: those must not start.
fn run_what_is_left(at: &Standpoint<'_>, round: &Round) -> Step {
    if !at.is_registered() && !on(Mutant::StartShutDown) {
        return give_up(at, round);
    }
    let total = at.plan.spec.sharding_total_count;
    let stands = |item: &u32| {
        let marked = at.item(*item).is_some_and(|it| is_begun(at, round, it, true));
        *item < total && (marked || !at.plan.spec.monitor_execution)
    };
    let (left, lost): (BTreeSet<u32>, BTreeSet<u32>) = round.items.iter().partition(|item| stands(item));
    if left.is_empty() {
        return skip_claimed(round, Skip::Interrupted);
    }
    let told = Event::Skipped { nominal: round.nominal, items: lost.clone(), why: Skip::Interrupted };
    let next = Run::Running { round: Round { items: left.clone(), ..round.clone() }, left };
    Step { next: Some(next), tell: (!lost.is_empty()).then_some(told), commit: None }
}

/// An instance that must go does not wait for others. A hook of its own is told to stop, and comes back.
fn await_hooks(at: &Standpoint<'_>, round: &Round, awaits: Awaits) -> Step {
    match awaits {
        Awaits::Own => Step::stay(),
        Awaits::Nothing => run_what_is_left(at, round),
        Awaits::Cluster if at.barriers.before.is_none() && at.hooks.each && at.is_registered() => {
            Step::go(Run::Starting { round: round.clone(), awaits: Awaits::Own })
        }
        Awaits::Cluster if at.barriers.before.is_none() => run_what_is_left(at, round),
        Awaits::Cluster if at.out_of_time && !at.barriers.is_calling() => {
            skip_claimed(round, Skip::Interrupted)
        }
        Awaits::Cluster => Step::stay(),
    }
}

/// How far the registry's time is from the interval in which it must have been read, in milliseconds. The
/// way to the registry and back does not count as a difference.
fn off_by(registry: Timestamp, sent: Timestamp, received: Timestamp) -> i64 {
    let ms = Timestamp::as_millisecond;
    (ms(sent) - ms(registry)).max(ms(registry) - ms(received)).max(0)
}

fn complete(at: &Standpoint<'_>, round: &Round, ran: bool) -> Step {
    let mut ops = Vec::new();
    for (&item, state) in at.view.items.iter().filter(|(item, _)| round.items.contains(item)) {
        if ops.len() >= CHUNK {
            break; // The rest follows when this is done.
        }
        if state.running.as_ref().is_some_and(|it| it.by == at.me) {
            ops.push(Node::Running(item).delete());
            ops.extend(guarantee::register_end(at, round, item).filter(|_| ran));
            ops.extend(delay::note_end(at, item, state).filter(|_| ran));
            ops.extend(state.parameter.is_some().then(|| Node::Parameter(item).delete()));
        }
        let taken_over = at.is_me(state.failover.as_ref()) && !on(Mutant::KeepFailover);
        ops.extend(taken_over.then(|| Node::Failover(item).delete()));
        ops.extend(at.is_me(state.failovering.as_ref()).then(|| Node::Failovering(item).delete()));
    }
    if !ops.is_empty() || !at.plan.spec.monitor_execution {
        ops.extend(pass_baton(at, round));
    }
    if !ops.is_empty() {
        return Step::commit(ops);
    }
    Step::go(if ran && at.hooks.each { Run::Ending { round: round.clone() } } else { Run::Idle })
}

/// Where instances take turns, the next host in the order of the strategies is next.
fn pass_baton(at: &Standpoint<'_>, round: &Round) -> Vec<Op> {
    if !at.plan.takes_turns() || round.source == Source::Failover {
        return Vec::new();
    }
    let mut hosts: Vec<&str> = at.view.available().into_iter().map(ip_of).collect();
    hosts.dedup();
    let here = hosts.iter().position(|ip| *ip == ip_of(at.me));
    let Some(next) = here.map(|here| hosts[(here + 1) % hosts.len()]) else { return Vec::new() };
    // Whoever creates a node in a job that was removed meanwhile brings it back to life.
    let exists = (!on(Mutant::PassBatonBlindly)).then(|| at.i_exist());
    let take = match at.view.baton.as_deref() {
        Some(holder) if holder == next => return Vec::new(),
        Some(_) => Some(Node::Baton.delete()),
        None => None,
    };
    exists.into_iter().chain(take).chain([Node::Baton.create_ephemeral(next)]).collect()
}

impl Run {
    pub(super) fn is_idle(&self) -> bool {
        *self == Run::Idle
    }

    /// A round for a fire is about to select its items.
    pub(super) fn awaits_a_fire(&self) -> bool {
        matches!(self, Run::Sharding { source: Source::Schedule | Source::Misfire, .. })
    }

    pub(super) fn round(&self) -> Option<&Round> {
        match self {
            Run::Idle | Run::Sharding { .. } => None,
            Run::Beginning { round, .. }
            | Run::Starting { round, .. }
            | Run::Running { round, .. }
            | Run::Completing { round, .. }
            | Run::Ending { round } => Some(round),
        }
    }

    /// Code of the user's may be at work for this round.
    pub(super) fn has_code(&self) -> bool {
        matches!(self, Run::Starting { .. } | Run::Running { .. } | Run::Ending { .. })
    }

    /// The items of the current round.
    pub fn items(&self) -> &BTreeSet<u32> {
        self.round().map_or(&NO_ITEMS, |it| &it.items)
    }

    /// The items of the current round that have not ended. When all have, the round itself ends.
    pub(super) fn unfinished(&self) -> &BTreeSet<u32> {
        match self {
            Run::Running { left, .. } if !left.is_empty() => left,
            Run::Idle
            | Run::Sharding { .. }
            | Run::Beginning { .. }
            | Run::Starting { .. }
            | Run::Running { .. }
            | Run::Completing { .. }
            | Run::Ending { .. } => self.items(),
        }
    }

    /// The items that the current round settles this fire for: it is the round of that fire, or one that is
    /// being claimed for another.
    pub(super) fn settles(&self, fire: Timestamp) -> &BTreeSet<u32> {
        let claims = matches!(self, Run::Beginning { round, .. } if round.nominal.is_some());
        if claims || self.is_for(fire) { self.items() } else { &NO_ITEMS }
    }

    /// Whether the current round runs for this fire.
    pub(super) fn is_for(&self, fire: Timestamp) -> bool {
        self.round().is_some_and(|it| it.nominal == Some(fire))
    }

    /// One word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Run::Idle => "idle",
            Run::Sharding { .. } => "sharding",
            Run::Beginning { .. } => "beginning",
            Run::Starting { .. } => "starting",
            Run::Running { .. } => "running",
            Run::Completing { .. } => "completing",
            Run::Ending { .. } => "ending",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_registry_is_no_difference_of_clocks() {
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        assert_eq!(off_by(at(150), at(100), at(200)), 0);
        assert_eq!(off_by(at(90), at(100), at(200)), 10);
        assert_eq!(off_by(at(230), at(100), at(200)), 30);
    }
}
