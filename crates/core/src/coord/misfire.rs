//! Fires that passed without a run: `sharding/{item}/misfire` and `…/cursor`.
//!
//! An item is behind when its cursor is older than the last fire. That is so when a round takes longer than
//! the schedule's period, when the item changes hands just as it is due, or when it must not run. Its owner
//! either marks it, to run once more as soon as it is idle, or settles the fire as skipped.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{CHUNK, Move, Standpoint, since};
use crate::event::{Event, Skip};
use crate::mutants::{Mutant, on};
use crate::node::Node;
use crate::tree::Op;
use crate::view::{Item, write_fire};

/// How late a fire may start, after a pause, a reconnect or a change of owner, before it counts as missed
/// for good.
pub(super) const LATE_START: jiff::SignedDuration = jiff::SignedDuration::from_secs(60);

pub(super) fn settle(at: &Standpoint<'_>) -> Option<Move> {
    let passed = at.passed.filter(|_| at.due.is_none() && !at.run.awaits_a_fire() && at.is_registered())?;
    let monitored = at.plan.spec.monitor_execution || on(Mutant::SettleUnmonitored);
    let coming = at.run.settles(passed);
    let mut ops = Vec::new();
    let mut missed = BTreeSet::new();
    let mut skipped: BTreeMap<(Skip, Option<Timestamp>), BTreeSet<u32>> = BTreeMap::new();
    for (&item, state) in at.my_items().filter(|(item, _)| !coming.contains(item)) {
        if ops.len() >= CHUNK {
            break; // The rest follows when this is done.
        }
        let behind = is_behind(at, state, passed);
        match why_not(at, state) {
            None if behind && !state.misfire => {
                ops.extend(rewrite_cursor(item, state));
                let named = Some(passed).filter(|_| !on(Mutant::NamelessMark));
                ops.push(Node::Misfire(item).create(write_fire(named)));
                missed.insert(item);
            }
            Some(why) if state.misfire || (behind && monitored) => {
                // A mark may be older than the last fire, which ran; or newer, from a clock that was ahead.
                let noted = at.noted(state);
                let fire =
                    if on(Mutant::MisnameSkip) { Some(passed) } else { noted.max(behind.then_some(passed)) };
                ops.extend(state.misfire.then(|| Node::Misfire(item).delete()));
                ops.extend(fire.filter(|_| monitored).and_then(|fire| settle_cursor(at, item, state, fire)));
                skipped.entry((why, fire)).or_default().insert(item);
            }
            // Without monitoring there is nothing to settle it in.
            None | Some(_) => {}
        }
    }
    let told = |((why, nominal), items)| Event::Skipped { nominal, items, why };
    let mut tell: Vec<Event> = skipped.into_iter().map(told).collect();
    if on(Mutant::SkipSilently) {
        tell.clear();
    }
    tell.extend((!missed.is_empty()).then_some(Event::Missed { nominal: passed, items: missed }));
    (!ops.is_empty()).then(|| Move { ops: [vec![at.i_exist()], ops].concat(), tell })
}

/// An item whose cursor is unknown, because a Java peer had it or nothing is monitored, is behind only if it
/// was ours while the fire passed.
fn is_behind(at: &Standpoint<'_>, state: &Item, passed: Timestamp) -> bool {
    match at.open_since(state) {
        Some(settled) => {
            settled < passed && (at.overran || at.catches_up() || since(passed, at.now.wall) <= LATE_START)
        }
        None => at.overran && at.cursor(state).is_none_or(|settled| settled < passed),
    }
}

fn why_not(at: &Standpoint<'_>, state: &Item) -> Option<Skip> {
    if state.disabled {
        Some(Skip::ItemDisabled)
    } else if !at.is_enabled() {
        Some(Skip::ServerDisabled)
    } else {
        (!at.plan.spec.misfire && !on(Mutant::ReplayUnasked)).then_some(Skip::Overrun)
    }
}

/// Refuses the mark if the item was claimed or moved since we looked, and a claim that does not know of the
/// mark: it would leave it behind, to be run for nothing.
fn rewrite_cursor(item: u32, state: &Item) -> Option<Op> {
    let cursor = state.cursor.filter(|_| !on(Mutant::MarkBesideClaim))?;
    Some(Node::Cursor(item).set_at(cursor.version, write_fire(cursor.at)))
}

/// What is skipped does not run later.
fn settle_cursor(at: &Standpoint<'_>, item: u32, state: &Item, fire: Timestamp) -> Option<Op> {
    let open = at.cursor(state).is_none_or(|settled| settled < fire);
    let cursor = state.cursor.filter(|_| open)?;
    Some(Node::Cursor(item).set_at(cursor.version, write_fire(Some(fire))))
}
