//! Hooks that run once per cluster: `guarantee/started/*`, `guarantee/completed/*` and their lines.
//!
//! Whoever begins a round registers its items in the transaction that claims them, and those that ended in the one
//! that removes their marks. The first of a round stands in line, calls the hook, and writes for which fire it was;
//! that lets the others go. Afterwards the same, but only when nothing of the round is left to run.
//!
//! Java waits until all items are registered, and is let go by the removal of the registrations. So where a Java peer
//! owns items we wait for it, too, and remove what everybody registered. What Java counts and never comes, disabled items
//! for one, is not waited for here; so one peer of ours spares the Java peers their wait as well.
//!
//! Java looks whether what it registered is there, again and again without an end, and only then begins to wait. A
//! removal before that would hang it for good, so its registrations are left alone for some time: see [`JAVA_LOOKS`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use super::run::{Awaits, Round};
use super::{
    CHUNK, CLOCK_TRUST, Coordinator, Effect, Hook, HookOrder, Move, Order, Run, Slot, Standpoint, sharding,
    since,
};
use crate::event::{Event, Source};
use crate::mutants::{Mutant, on};
use crate::node::{Latch, Node, Phase};
use crate::tree::{Op, Zxid};
use crate::view::{Item, Value, keeps_cursors};

/// How long after its last registration Java may need to have looked for all of them, and to wait. It looks at once,
/// and then every tenth of a second.
const JAVA_LOOKS: Duration = Duration::from_secs(1);

/// It asks for one after another.
const JAVA_LOOKS_AT_ONE: Duration = Duration::from_millis(2);

/// A wait for a hook that one instance of all calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Barrier {
    /// What the hook is told.
    order: Order,
    /// The fire that it stands for; none for a trigger.
    pub(super) fire: Option<Timestamp>,
    /// When to go on without it.
    give_up_at: Duration,
    call: Call,
    told_to_stop: bool,
    /// What ended for a later fire while the hook was called, and is waited for next.
    next: Option<Box<Barrier>>,
}

impl Barrier {
    fn new(order: Order, fire: Option<Timestamp>, give_up_at: Duration) -> Barrier {
        Barrier { order, fire, give_up_at, call: Call::Open, told_to_stop: false, next: None }
    }

    fn may_be_stopped(&self) -> bool {
        self.call == Call::UnderWay && !self.told_to_stop
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// Not ours to make yet.
    Open,
    UnderWay,
    /// The others are not told yet.
    Made,
}

/// Both waits. They are apart, because a dead peer's items are taken over while one waits for the end of a round.
#[derive(Debug, Default)]
pub(super) struct Barriers {
    pub(super) before: Option<Barrier>,
    pub(super) after: Option<Barrier>,
    /// Java's newest registration before and after, each with when it was first seen.
    newest_of_java: BTreeMap<Phase, (Zxid, Duration)>,
}

impl Barriers {
    fn of(&self, phase: Phase) -> Option<&Barrier> {
        match phase {
            Phase::Started => self.before.as_ref(),
            Phase::Completed => self.after.as_ref(),
        }
    }

    fn slot(&mut self, phase: Phase) -> &mut Option<Barrier> {
        match phase {
            Phase::Started => &mut self.before,
            Phase::Completed => &mut self.after,
        }
    }

    /// Something is waited for.
    pub(super) fn is_any(&self) -> bool {
        self.before.is_some() || self.after.is_some()
    }

    /// A hook of ours is being called, or others wait to hear that it was.
    pub(super) fn is_calling(&self) -> bool {
        [&self.before, &self.after].into_iter().flatten().any(|it| it.call != Call::Open)
    }
}

impl Phase {
    fn latch(self) -> Latch {
        match self {
            Phase::Started => Latch::Started,
            Phase::Completed => Latch::Completed,
        }
    }

    fn slot(self) -> Slot {
        match self {
            Phase::Started => Slot::Before,
            Phase::Completed => Slot::After,
        }
    }

    fn hook(self) -> Hook {
        match self {
            Phase::Started => Hook::OnceBefore,
            Phase::Completed => Hook::OnceAfter,
        }
    }

    fn registration(self, item: u32) -> Node {
        match self {
            Phase::Started => Node::Started(item),
            Phase::Completed => Node::Completed(item),
        }
    }

    fn parent(self) -> Node {
        match self {
            Phase::Started => Node::AllStarted,
            Phase::Completed => Node::AllCompleted,
        }
    }
}

/// Whether the hook comes before this round. What is taken over belongs to a round that has begun.
pub(super) fn opens(at: &Standpoint<'_>, round: &Round) -> bool {
    at.calls_once() && round.source != Source::Failover && !was_called(at, Phase::Started, round.nominal)
}

/// A round that has a hook: that of a fire, or of a trigger.
struct Hooked(Option<Timestamp>);

/// What ends with this round, if the hook is to be called after it.
fn closes(at: &Standpoint<'_>, round: &Round) -> Option<Hooked> {
    let Hooked(fire) = stands_for(at, round).filter(|_| at.calls_once())?;
    // What runs while the end of a round is waited for ends with that round. Registered for anything else, it would look
    // as if that wait were over.
    let fire = fire.max(at.barriers.after.as_ref().and_then(|it| it.fire));
    (!was_called(at, Phase::Completed, fire)).then_some(Hooked(fire))
}

/// The fire that a round is for, or that what it takes over was for.
fn stands_for(at: &Standpoint<'_>, round: &Round) -> Option<Hooked> {
    let of = |item: &u32| at.cursor(at.item(*item)?);
    match round.source {
        Source::Failover => round.items.iter().filter_map(of).max().map(|fire| Hooked(Some(fire))),
        Source::Schedule | Source::Misfire | Source::Trigger => Some(Hooked(round.nominal)),
    }
}

/// What a claim says besides: this item is about to start.
pub(super) fn register_start(at: &Standpoint<'_>, round: &Round, item: u32) -> Option<Op> {
    opens(at, round).then(|| register(at, Phase::Started, item, round.nominal))
}

/// What the end of a round says besides: this item has ended.
pub(super) fn register_end(at: &Standpoint<'_>, round: &Round, item: u32) -> Option<Op> {
    closes(at, round).map(|Hooked(fire)| register(at, Phase::Completed, item, fire))
}

/// It says by whom and for which fire, unlike Java's: what a dead instance registered is nobody's, and who lets go
/// those of a trigger does not let go those of a fire.
fn register(at: &Standpoint<'_>, phase: Phase, item: u32, fire: Option<Timestamp>) -> Op {
    let (node, text) = (phase.registration(item), spell(at.me, fire));
    if registered(at, phase).contains_key(&item) { node.set(text) } else { node.create(text) }
}

fn spell(by: &str, fire: Option<Timestamp>) -> String {
    fire.map_or_else(|| by.to_owned(), |fire| format!("{by} {}", fire.as_millisecond()))
}

/// By whom, and for which fire. Of Java's, neither is known.
fn read(text: &str) -> (&str, Option<i64>) {
    text.split_once(' ').map_or((text, None), |(by, fire)| (by, fire.parse().ok()))
}

fn registered<'a>(at: &Standpoint<'a>, phase: Phase) -> &'a BTreeMap<u32, Value> {
    match phase {
        Phase::Started => &at.view.started,
        Phase::Completed => &at.view.completed,
    }
}

/// Something of ours is registered that this barrier waits for.
fn is_mine(at: &Standpoint<'_>, phase: Phase, barrier: &Barrier) -> bool {
    let ours = |it: &Value| read(&it.text).0 == at.me && belongs(barrier, &it.text);
    registered(at, phase).values().any(ours)
}

/// Whether a registration is one of this round, or of one before.
fn belongs(barrier: &Barrier, text: &str) -> bool {
    match (read(text).1, barrier.fire) {
        (Some(fire), Some(of_barrier)) => fire <= of_barrier.as_millisecond(),
        (fire, of_barrier) => fire.is_none() && of_barrier.is_none(),
    }
}

/// Java registers without saying what for, and waits for the removal of all.
fn has_java(at: &Standpoint<'_>) -> bool {
    at.view.instances.keys().any(|id| !keeps_cursors(id))
}

/// When the registrations may go: a Java process that lives has seen its own by then.
fn removable_at(at: &Standpoint<'_>, phase: Phase) -> Option<Duration> {
    let (_, seen) = at.barriers.newest_of_java.get(&phase).filter(|_| has_java(at))?;
    let all = registered(at, phase).values().filter(|it| is_of_java(it)).count();
    let looks = JAVA_LOOKS_AT_ONE.saturating_mul(u32::try_from(all).unwrap_or(u32::MAX));
    Some(seen.saturating_add(JAVA_LOOKS).saturating_add(looks)).filter(|it| *it > at.now.mono)
}

fn is_of_java(registration: &Value) -> bool {
    registration.text.is_empty()
}

/// The hook of this fire, or of a later one, was called. A fire that lies in the future was written by a clock that
/// was wrong.
fn was_called(at: &Standpoint<'_>, phase: Phase, fire: Option<Timestamp>) -> bool {
    let called = at.view.hooked.get(&phase).and_then(|it| it.at);
    let called = called.filter(|it| since(at.now.wall, *it) <= CLOCK_TRUST);
    fire.is_some_and(|fire| called.is_some_and(|called| called >= fire))
}

/// The hook was called, and everybody can see for which fire. Nobody says so of a trigger's, and nobody who runs Java: who
/// waits for those is let go by the removal of what it registered. Otherwise that it is gone says nothing: whoever owns the
/// item now may have registered it for another round.
fn is_let_go(at: &Standpoint<'_>, phase: Phase, barrier: &Barrier) -> bool {
    let told = at.view.hooked.get(&phase).is_some_and(|it| it.at == barrier.fire);
    let Some(_) = barrier.fire else { return !is_mine(at, phase, barrier) };
    let removal_tells = match barrier.call {
        Call::Open => has_java(at) || on(Mutant::LetGoByAnother),
        Call::UnderWay | Call::Made => on(Mutant::LetGoUntold),
    };
    told || was_called(at, phase, barrier.fire) || (removal_tells && !is_mine(at, phase, barrier))
}

/// Whether the hook may be called now.
fn is_met(at: &Standpoint<'_>, phase: Phase, barrier: &Barrier) -> bool {
    let all = *at.sees == super::Focus::Everything;
    all && match phase {
        Phase::Started => lacking_starts(at, barrier.fire).is_empty(),
        Phase::Completed => lacking_ends(at, barrier.fire).is_empty(),
    }
}

fn items<'a>(at: &Standpoint<'a>) -> impl Iterator<Item = (u32, &'a Item)> {
    let total = at.plan.spec.sharding_total_count;
    at.view.items.range(..total).map(|(item, state)| (*item, &**state))
}

/// Items that must be registered before the hook is called. For a fire, whoever of ours is first calls it. Of a
/// trigger nobody writes that its hook was called: there, all who were asked are waited for. Java has to be waited
/// for always, as it would wait for us.
fn lacking_starts(at: &Standpoint<'_>, fire: Option<Timestamp>) -> BTreeSet<u32> {
    let available = at.view.available();
    let lacks = |(item, state): &(u32, &Item)| {
        let Some(owner) = state.owner.as_ref().map(|it| it.by.as_str()) else { return false };
        let asked = fire.is_none() && will_answer(at, Phase::Started, owner);
        let comes = available.contains(&owner) && !state.disabled && !at.is_busy(*item);
        comes && (asked || !keeps_cursors(owner)) && !at.view.started.contains_key(item)
    };
    items(at).filter(lacks).map(|(item, _)| item).collect()
}

/// Whether the instance was asked to run, and will. One that waits with us answers later: it would wait for itself.
fn will_answer(at: &Standpoint<'_>, phase: Phase, instance: &str) -> bool {
    let waits = |it: &Value| read(&it.text).0 == instance;
    at.view.triggers.contains_key(instance) && !registered(at, phase).values().any(waits)
}

/// Items of the round that have not ended.
fn lacking_ends(at: &Standpoint<'_>, fire: Option<Timestamp>) -> BTreeSet<u32> {
    let available = at.view.available();
    let moving: BTreeSet<u32> = sharding::gap(at).items().collect();
    let moves = |item| at.view.necessary || at.view.processing || moving.contains(&item);
    let lacks = |(item, state): &(u32, &Item)| {
        // Its cursor may have moved on while it runs: a fire that passed meanwhile was skipped.
        let crashed = at.fails_over() && (at.view.crashed.contains(item) || state.failover.is_some());
        if state.running.is_some() || crashed {
            return true;
        }
        let later = fire.is_some_and(|fire| at.cursor(state).is_some_and(|it| it > fire));
        if later || state.disabled {
            return false;
        }
        let owner = state.owner.as_ref().map(|it| it.by.as_str());
        let Some(owner) = owner.filter(|it| available.contains(it)) else { return moves(*item) };
        let ended = at.view.completed.contains_key(item);
        match fire {
            None => will_answer(at, Phase::Completed, owner) && !ended,
            Some(_) if !keeps_cursors(owner) => !ended,
            // Who has not begun by the next fire begins for that one.
            Some(fire) => {
                at.cursor(state).is_none_or(|it| it < fire) && at.passed.is_none_or(|it| it <= fire)
            }
        }
    };
    // What the configuration has no longer may still run.
    let total = at.plan.spec.sharding_total_count;
    let surplus = at.view.items.range(total..).filter(|(_, state)| state.running.is_some());
    let surplus = surplus.map(|(item, _)| *item);
    items(at).filter(lacks).map(|(item, _)| item).chain(surplus).collect()
}

pub(super) fn before(at: &Standpoint<'_>) -> Option<Move> {
    meet(at, Phase::Started)
}

pub(super) fn after(at: &Standpoint<'_>) -> Option<Move> {
    meet(at, Phase::Completed)
}

fn meet(at: &Standpoint<'_>, phase: Phase) -> Option<Move> {
    let place = at.place_in_line(phase.latch());
    let leave = |place: &String| Node::InLine(phase.latch(), place.clone()).delete();
    let Some(barrier) = at.barriers.of(phase) else {
        let ops: Vec<Op> = place.map(leave).into_iter().chain(unexplained(at, phase)).collect();
        return (!ops.is_empty()).then(|| ops.into());
    };
    match (barrier.call, place) {
        (Call::UnderWay, _) => None,
        (Call::Made, _) if removable_at(at, phase).is_some() => None,
        (Call::Made, place) => Some(let_go(at, phase, barrier, place.map(leave)).into()),
        (Call::Open, None) if is_met(at, phase, barrier) && !is_let_go(at, phase, barrier) => {
            Some(vec![at.i_exist(), phase.latch().join(&at.ticket())].into())
        }
        (Call::Open, Some(place)) if !is_met(at, phase, barrier) => Some(vec![leave(place)].into()),
        (Call::Open, _) => None,
    }
}

/// The hook was called: everybody may go on. Removing the parent is what wakes Java.
fn let_go(at: &Standpoint<'_>, phase: Phase, barrier: &Barrier, leave: Option<Op>) -> Vec<Op> {
    let all = registered(at, phase);
    let java = has_java(at);
    let of_round = |(_, it): &(&u32, &Value)| java || belongs(barrier, &it.text);
    let gone: Vec<(&u32, &Value)> = all.iter().filter(of_round).collect();
    let mut ops = vec![at.i_exist()];
    ops.extend(gone.iter().take(CHUNK).flat_map(|(item, it)| take_away(phase, **item, it)));
    if gone.len() > CHUNK {
        return ops; // The rest follows when this is done.
    }
    ops.extend((!gone.is_empty() && gone.len() == all.len()).then(|| phase.parent().delete()));
    if let Some(fire) = barrier.fire.filter(|_| !was_called(at, phase, barrier.fire)) {
        let (node, fire) = (Node::Hooked(phase), crate::view::write_fire(Some(fire)));
        ops.push(match at.view.hooked.get(&phase) {
            Some(it) => node.set_at(it.version, fire),
            None => node.create(fire),
        });
    }
    ops.extend(leave);
    ops
}

/// Registrations of ours that no round of ours explains, and, as leader, those of the dead: Java would count them.
fn unexplained(at: &Standpoint<'_>, phase: Phase) -> Vec<Op> {
    let busy = match phase {
        Phase::Started => matches!(at.run, Run::Beginning { .. } | Run::Starting { .. }),
        Phase::Completed => matches!(at.run, Run::Completing { .. }),
    };
    let nobodys = |by: &str| {
        (by == at.me && !busy) || (at.leads() && keeps_cursors(by) && by != at.me && !at.view.is_alive(by))
    };
    let found = registered(at, phase).iter().filter(|(_, it)| nobodys(read(&it.text).0)).take(CHUNK);
    found.flat_map(|(item, it)| take_away(phase, *item, it)).collect()
}

/// Removes a registration, unless the item has been registered anew, for another round, since it was seen.
fn take_away(phase: Phase, item: u32, seen: &Value) -> [Op; 2] {
    let node = phase.registration(item);
    [node.is_at(seen.stat.version), node.delete()]
}

impl Coordinator {
    /// From now on the hook is waited for.
    pub(super) fn await_hook(&mut self, phase: Phase, round: &Round) {
        let Some(at) = self.standpoint() else { return };
        let Some(deadlines) = self.local.hooks.once else { return };
        let (wait, fire) = match phase {
            Phase::Started => (deadlines.started, Some(Hooked(round.nominal))),
            Phase::Completed => (deadlines.completed, closes(&at, round)),
        };
        let Some(Hooked(fire)) = fire else { return };
        let own = stands_for(&at, round).and_then(|it| it.0);
        let order = self.order(round);
        let give_up_at = self.now.mono.saturating_add(wait);
        let slot = self.barriers.slot(phase);
        let fire = fire.max(slot.as_ref().and_then(|it| it.fire));
        match slot {
            // A call that is under way comes back under the name that it began with, and is for no later fire.
            Some(barrier) if barrier.call != Call::Open && !on(Mutant::RenameCall) => {
                if on(Mutant::CoverLaterFire) {
                    barrier.fire = fire;
                } else if fire > barrier.fire.max(barrier.next.as_ref().and_then(|it| it.fire)) {
                    barrier.next = Some(Box::new(Barrier::new(order, fire, give_up_at)));
                }
            }
            Some(barrier) => {
                // What ends with a later round, or was taken over for this one, is told of by its name.
                let is_own = barrier.fire < own || (barrier.fire == own && round.source != Source::Failover);
                if is_own || on(Mutant::NameAfterLast) || on(Mutant::RenameCall) {
                    barrier.order = order;
                }
                (barrier.fire, barrier.give_up_at) = (fire, give_up_at);
            }
            None => *slot = Some(Barrier::new(order, fire, give_up_at)),
        }
    }

    /// Notes when Java registered last.
    pub(super) fn look_at_javas_registrations(&mut self) {
        let Some(at) = self.standpoint() else { return };
        let newest = |phase| {
            let of_java = registered(&at, phase).values().filter(|it| is_of_java(it));
            Some((phase, of_java.map(|it| it.stat.created).max()?))
        };
        for (phase, newest) in [newest(Phase::Started), newest(Phase::Completed)].into_iter().flatten() {
            let noted = self.barriers.newest_of_java.entry(phase).or_insert((newest, self.now.mono));
            if noted.0 < newest {
                *noted = (newest, self.now.mono);
            }
        }
    }

    /// Without marks nobody knows who is first or last: the hook is not called, and that is said.
    pub(super) fn complain_of_missing_marks(&self, task_id: &str, out: &mut Vec<Effect>) {
        let monitored = self.plan.as_ref().is_some_and(|it| it.spec.monitor_execution);
        if self.local.hooks.once.is_some() && !monitored {
            let error = "not called: it needs monitorExecution, which is off".to_owned();
            let (task_id, hook) = (task_id.to_owned(), Hook::OnceBefore);
            out.push(Effect::Record(Event::HookFailed { task_id, hook, error }));
        }
    }

    /// Calls hooks whose time has come, and ends waits. Says whether anything changed.
    pub(super) fn look_at_hooks(&mut self, out: &mut Vec<Effect>) -> bool {
        let before = self.look_at(Phase::Started, out);
        self.look_at(Phase::Completed, out) || before
    }

    fn look_at(&mut self, phase: Phase, out: &mut Vec<Effect>) -> bool {
        let Some(barrier) = self.barriers.of(phase) else { return false };
        let Some(at) = self.standpoint() else { return false };
        let place = at.place_in_line(phase.latch());
        let first = place.is_some() && at.view.head_of_line(phase.latch()) == place;
        let met = is_met(&at, phase, barrier);
        // Who leaves calls it if it is his to call, and waits for nobody.
        let others_turn = phase == Phase::Completed && (!met || (place.is_some() && !first));
        let over = barrier.give_up_at <= self.now.mono || (at.leaving && (others_turn || at.out_of_time));
        let said = match barrier.call {
            Call::UnderWay => return false,
            // One that was shut down cannot let the others go. To them it is one that died.
            Call::Made if at.is_registered() && !is_let_go(&at, phase, barrier) => return false,
            Call::Open if is_let_go(&at, phase, barrier) => None,
            Call::Made => None,
            // If we are about to leave the line, another is first already.
            Call::Open if first && met && self.is_free(phase.slot()) => {
                // What was taken over does not say for which fire.
                let round = Order { nominal: barrier.fire, ..barrier.order.clone() };
                let order = HookOrder { hook: phase.hook(), round };
                self.barriers.slot(phase).as_mut().expect("it stands").call = Call::UnderWay;
                out.push(Effect::Hook(order));
                return true;
            }
            Call::Open if over && !(at.leaving && phase == Phase::Started) => {
                let lacking = match phase {
                    Phase::Started => lacking_starts(&at, barrier.fire),
                    Phase::Completed => lacking_ends(&at, barrier.fire),
                };
                (!at.leaving).then(|| Event::HookFailed {
                    task_id: barrier.order.task_id.clone(),
                    hook: phase.hook(),
                    error: gave_up(phase, &lacking),
                })
            }
            Call::Open => return false,
        };
        out.extend(said.map(Effect::Record));
        let slot = self.barriers.slot(phase);
        *slot = slot.take().and_then(|it| it.next).map(|it| *it);
        true
    }

    /// A hook has returned, or was stopped.
    pub(super) fn finish_hook(
        &mut self,
        round: u64,
        hook: Hook,
        error: Option<String>,
        out: &mut Vec<Effect>,
    ) {
        let task_id = match (&self.run, hook) {
            (Run::Starting { round: it, .. } | Run::Ending { round: it }, Hook::Before | Hook::After)
                if it.number == round =>
            {
                Some(self.task_id(it))
            }
            _ => None,
        };
        let phase = match hook {
            Hook::Before | Hook::After => None,
            Hook::OnceBefore => Some(Phase::Started),
            Hook::OnceAfter => Some(Phase::Completed),
        };
        let barrier = phase.and_then(|it| self.barriers.slot(it).as_mut());
        let barrier = barrier.filter(|it| it.order.round == round && it.call == Call::UnderWay);
        let of_barrier = barrier.map(|it| {
            it.call = Call::Made;
            it.order.task_id.clone()
        });
        if let Some(error) = error {
            let task_id = task_id.clone().or(of_barrier).unwrap_or_default();
            out.push(Effect::Record(Event::HookFailed { task_id, hook, error }));
        }
        match &mut self.run {
            Run::Starting { awaits, .. } if task_id.is_some() => *awaits = Awaits::Nothing,
            Run::Ending { .. } if task_id.is_some() => self.run = Run::Idle,
            _ => {}
        }
    }

    /// Calls of ours that may still go on, and were not told to stop.
    pub(super) fn has_calls_to_stop(&self) -> bool {
        [&self.barriers.before, &self.barriers.after].into_iter().flatten().any(Barrier::may_be_stopped)
    }

    pub(super) fn stop_calls(&mut self, out: &mut Vec<Effect>) {
        let both = [&mut self.barriers.before, &mut self.barriers.after].into_iter().flatten();
        for barrier in both.filter(|it| it.may_be_stopped()) {
            barrier.told_to_stop = true;
            out.push(Effect::Cancel { round: barrier.order.round });
        }
    }

    pub(super) fn next_hook_wakeup(&self) -> Option<Duration> {
        let at = self.standpoint().filter(|_| self.connected)?;
        let wakeup = |phase| {
            let barrier = self.barriers.of(phase)?;
            match barrier.call {
                Call::Open => Some(barrier.give_up_at),
                Call::UnderWay => None,
                Call::Made => removable_at(&at, phase),
            }
        };
        [wakeup(Phase::Started), wakeup(Phase::Completed)].into_iter().flatten().min()
    }

    /// Whatever of this concerned the session that is over.
    pub(super) fn forget_hooks(&mut self) {
        self.barriers = Barriers::default();
    }
}

fn gave_up(phase: Phase, lacking: &BTreeSet<u32>) -> String {
    let what = match phase {
        Phase::Started => "started",
        Phase::Completed => "completed",
    };
    let whom = match lacking.is_empty() {
        true => "another instance is at it".to_owned(),
        false => format!("{lacking:?} had not {what}"),
    };
    format!("not called in time: {whom}")
}
