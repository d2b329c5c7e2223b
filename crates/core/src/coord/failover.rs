//! Items whose runner died: `leader/failover/*`, `sharding/{item}/failover` and `…/failovering`.

use std::collections::BTreeSet;

use super::{CHUNK, Move, Standpoint};
use crate::event::Event;
use crate::mutants::{Mutant, on};
use crate::node::{Latch, Node};
use crate::tree::Op;
use crate::view::Mark;

/// Removes the marks of the dead, and queues what they were running. Only the leader does: its place is tied
/// to its session, so a leader that is one no longer cannot write either. If everybody cleaned up, a slow
/// peer could remove the mark of a run that began since, and ZooKeeper has no check that would stop it.
pub(super) fn collect_crashed(at: &Standpoint<'_>) -> Option<Move> {
    if !at.leads() || on(Mutant::ForgetTheDead) {
        return None;
    }
    // We live, also if an operator has ended the job here and we only wait for what runs.
    let lives = |id: &str| at.view.is_alive(id) || (id == at.me && !on(Mutant::BuryMyself));
    let dead = |id: Option<&String>| id.is_some_and(|id| !lives(id));
    // A mark that goes by itself is that of an instance that was shut down and has not finished yet.
    let stays = |mark: &&Mark| !mark.ephemeral;
    let mut queued = BTreeSet::new();
    let mut ops = vec![Node::Leader.exists()];
    for (&item, state) in &at.view.items {
        let marks = [
            (dead(state.running.as_ref().filter(stays).map(|it| &it.by)), Node::Running(item)),
            // It goes with its session, but an operator may have ended the job alone.
            (dead(state.failover.as_ref()) && !on(Mutant::KeepFailoverOfStopped), Node::Failover(item)),
            (dead(state.failovering.as_ref()), Node::Failovering(item)),
        ];
        let orphan = on(Mutant::FailOverIdleItems) && dead(state.owner.as_ref().map(|it| &it.by));
        if ops.len() >= CHUNK || (marks.iter().all(|it| !it.0) && !orphan) {
            continue; // What does not fit follows when this is done.
        }
        let taken = state.failover.is_some() && !marks[1].0;
        ops.extend(marks.into_iter().filter(|it| it.0).map(|it| it.1.delete()));
        let wanted = at.fails_over() && item < at.plan.spec.sharding_total_count && !state.disabled;
        if wanted && !taken && !at.view.crashed.contains(&item) {
            ops.push(Node::Crashed(item).create(""));
            queued.insert(item);
        }
    }
    let told = (!queued.is_empty()).then_some(Event::Crashed { items: queued });
    (ops.len() > 1).then(|| Move { ops, tell: told.into_iter().collect() })
}

/// What the configuration no longer wants: marks of a switched-off failover, of a switched-off monitoring,
/// and queued items that are disabled or do not exist any more.
pub(super) fn forget(at: &Standpoint<'_>) -> Option<Move> {
    if !at.leads() {
        return None;
    }
    let total = at.plan.spec.sharding_total_count;
    let obsolete =
        |item: u32| !at.fails_over() || item >= total || at.item(item).is_some_and(|state| state.disabled);
    let mut ops: Vec<Op> = at
        .view
        .crashed
        .iter()
        .filter(|item| obsolete(**item))
        .map(|item| Node::Crashed(*item).delete())
        .collect();
    for (&item, state) in &at.view.items {
        if !at.fails_over() && state.running.is_none() {
            ops.extend(state.failover.is_some().then(|| Node::Failover(item).delete()));
            ops.extend(state.failovering.is_some().then(|| Node::Failovering(item).delete()));
        }
        if !at.plan.spec.monitor_execution {
            ops.extend(state.running.is_some().then(|| Node::Running(item).delete()));
            // From now on nobody moves the cursors: an old one would later look like a missed fire.
            ops.extend(state.cursor.is_some().then(|| Node::Cursor(item).delete()));
        }
    }
    ops.truncate(CHUNK);
    (!ops.is_empty()).then(|| [vec![Node::Leader.exists()], ops].concat().into())
}

/// Marks of ours that no run of ours explains, left by an answer that was lost; and items that we took over
/// and must not run, because somebody disabled them since. Usually marks go when their round ends, all at
/// once. When the assignment is about to change, those of ended items go before, so that nobody waits for a
/// slow one to get a quick one.
pub(super) fn drop_leftovers(at: &Standpoint<'_>) -> Option<Move> {
    let current = if at.view.necessary { at.run.unfinished() } else { at.run.items() };
    let mut ops = Vec::new();
    for (&item, state) in at.view.items.iter().filter(|(item, _)| !current.contains(item)) {
        let runs = state.running.as_ref().is_some_and(|it| it.by == at.me);
        ops.extend((runs && !on(Mutant::KeepLeftovers)).then(|| Node::Running(item).delete()));
        let unwanted = state.disabled || item >= at.plan.spec.sharding_total_count;
        if unwanted && at.is_me(state.failover.as_ref()) {
            ops.push(Node::Failover(item).delete());
            ops.extend(at.is_me(state.failovering.as_ref()).then(|| Node::Failovering(item).delete()));
        }
    }
    ops.truncate(CHUNK); // What does not fit follows when this is done.
    (!ops.is_empty()).then(|| ops.into())
}

/// The queued item that we would take next. Java takes the first of the children, which it sorts by name,
/// greatest first.
fn next_in_queue(at: &Standpoint<'_>) -> Option<u32> {
    // A fire that has to wait for the end of the round before does not keep us from helping to end it.
    let free = at.due.is_none() || at.barriers.after.is_some();
    let idle = at.run.is_idle() && free && at.fails_over() && at.is_able();
    let free = |item: &u32| idle && at.sees.covers(*item) && !at.zombies.contains_key(item);
    let takeable = at.view.crashed.iter().copied().filter(free);
    takeable.max_by_key(u32::to_string)
}

/// A dead peer's items go ahead of what we have to make up for: an instance that is always behind would never
/// come to them.
pub(super) fn waits_for_us(at: &Standpoint<'_>) -> bool {
    next_in_queue(at).is_some()
}

/// An idle instance stands in line for the items that were queued, and takes one when it is first.
pub(super) fn take_over(at: &Standpoint<'_>) -> Option<Move> {
    let item = next_in_queue(at);
    match (item, at.place_in_line(Latch::Failover)) {
        _ if at.leaving => None,
        (None, None) => None,
        (None, Some(place)) => Some(vec![Node::InLine(Latch::Failover, place.clone()).delete()].into()),
        (Some(_), None) => Some(vec![at.i_exist(), Latch::Failover.join(&at.ticket())].into()),
        (Some(item), Some(place)) if at.view.head_of_line(Latch::Failover) == Some(place) => {
            let state = at.item(item).cloned().unwrap_or_default();
            let mut ops = vec![at.i_exist(), Node::InLine(Latch::Failover, place.clone()).delete()];
            ops.extend(state.failover.is_some().then(|| Node::Failover(item).delete()));
            ops.push(Node::Failover(item).create_ephemeral(at.me));
            ops.push(match state.failovering {
                Some(_) => Node::Failovering(item).set(at.me),
                None => Node::Failovering(item).create(at.me),
            });
            ops.extend((!on(Mutant::TakeOverAgain)).then(|| Node::Crashed(item).delete()));
            Some(Move::from(ops).telling(Event::TookOver { item }))
        }
        (Some(_), Some(_)) => None,
    }
}
