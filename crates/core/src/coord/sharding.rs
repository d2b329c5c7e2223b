//! Which instance owns which item: `leader/sharding/*` and `sharding/{item}/instance`.

use std::collections::{BTreeMap, BTreeSet};

use super::{CHUNK, Move, Standpoint};
use crate::event::Event;
use crate::mutants::{Mutant, on};
use crate::node::Node;
use crate::strategy::assignment;
use crate::tree::Op;
use crate::view::{Item, View, ip_of, keeps_cursors, write_fire};

/// What the leader would have to do for the assignment to be right.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gap<'a> {
    /// Items that exist and must not.
    surplus: BTreeSet<u32>,
    /// Items whose owner must go.
    misplaced: BTreeSet<u32>,
    /// Items that need an owner, and which.
    vacant: BTreeMap<u32, &'a str>,
}

impl Gap<'_> {
    fn is_empty(&self) -> bool {
        self.surplus.is_empty() && self.misplaced.is_empty() && self.vacant.is_empty()
    }

    /// Items that must not run while the gap is closed.
    pub(super) fn items(&self) -> impl Iterator<Item = u32> {
        self.surplus.iter().chain(&self.misplaced).chain(self.vacant.keys()).copied()
    }
}

/// The difference between what should be and what is, whatever the reason. Java reacts to single events
/// instead, and forgets to reshard when it misses one.
pub(super) fn gap<'a>(at: &Standpoint<'a>) -> Gap<'a> {
    let total = at.plan.spec.sharding_total_count;
    let mut gap = Gap { vacant: wanted(at, total), ..Gap::default() };
    for (&item, state) in &at.view.items {
        let owner = state.owner.as_ref().map(|it| it.by.as_str());
        if at.gave_up.contains(&item) && at.is_run_by_the_living(state) {
            gap.vacant.remove(&item);
        } else if item >= total {
            gap.surplus.insert(item);
        } else if owner.is_some() && owner == gap.vacant.get(&item).copied() {
            gap.vacant.remove(&item);
        } else if owner.is_some() {
            gap.misplaced.insert(item);
        }
    }
    gap
}

fn wanted<'a>(at: &Standpoint<'a>, total: u32) -> BTreeMap<u32, &'a str> {
    let available = unhindered(at);
    if at.plan.spec.static_sharding
        && let Some(owners) = complete_owners(at.view, total)
    {
        return with_replacements(owners, &available);
    }
    assignment(at.plan.strategy.as_ref(), &available, &at.plan.spec.job_name, total)
}

/// Who gets work: all that are available but those who are stuck with an item that was given up. They could
/// not begin what they get.
fn unhindered<'a>(at: &Standpoint<'a>) -> Vec<&'a str> {
    if at.gave_up.is_empty() {
        return at.view.available();
    }
    let marks = at.gave_up.iter().filter_map(|item| at.item(*item)?.running.as_ref());
    let stuck: BTreeSet<&str> = marks.map(|it| it.by.as_str()).collect();
    let (stuck, free): (Vec<_>, Vec<_>) = at.view.available().into_iter().partition(|id| stuck.contains(id));
    if free.is_empty() { stuck } else { free }
}

/// The owners of all items, if these are as many as there should be.
fn complete_owners(view: &View, total: u32) -> Option<BTreeMap<u32, &str>> {
    if view.items.range(total..).any(|(_, state)| state.owner.is_some()) {
        return None;
    }
    let owner = |item| Some((item, view.items.get(&item)?.owner.as_ref()?.by.as_str()));
    (0..total).map(owner).collect()
}

/// Static sharding moves nothing between the living. All that a dead owner had goes to one instance that has
/// nothing: a successor on its host if there is one. Java waits for the dead, whose process id never returns.
fn with_replacements<'a>(
    mut owners: BTreeMap<u32, &'a str>,
    available: &[&'a str],
) -> BTreeMap<u32, &'a str> {
    let held: BTreeSet<&str> = owners.values().copied().collect();
    let mut idle: Vec<&'a str> = available.iter().copied().filter(|id| !held.contains(id)).collect();
    for dead in held.into_iter().filter(|id| !available.contains(id)) {
        let same_host = idle.iter().position(|id| ip_of(id) == ip_of(dead));
        if idle.is_empty() || on(Mutant::NeverReplace) {
            break;
        }
        let successor = idle.remove(same_host.unwrap_or(0));
        owners.values_mut().filter(|owner| **owner == dead).for_each(|owner| *owner = successor);
    }
    owners
}

/// Announces that the assignment will change; from now on nobody starts a round.
pub(super) fn ask_for_resharding(at: &Standpoint<'_>) -> Option<Move> {
    let ought = at.leads() && !at.view.necessary && !at.leaving && at.view.is_any_available();
    let ought = ought && !on(Mutant::NeverReshard);
    (ought && (on(Mutant::ReshardAlways) || !gap(at).is_empty()))
        .then(|| vec![Node::Leader.exists(), Node::Necessary.create("")].into())
}

/// The leader makes the assignment fit, in steps. Removing old owners before writing new ones is what makes
/// Java peers look: they trust a cached owner, and ask about a missing one. Java shards only inside its own
/// fire, so its peers wait for as long as its leader is busy; we shard as soon as what moves is at rest.
pub(super) fn reassign(at: &Standpoint<'_>) -> Option<Move> {
    let orphans = at.view.triggers.keys().any(|id| !at.view.is_alive(id));
    if !at.leads() || !at.view.necessary || !at.view.is_any_available() || orphans {
        return None;
    }
    let gap = gap(at);
    if !on(Mutant::MoveRunningItems)
        && gap.items().any(|item| at.item(item).is_some_and(|it| at.is_run_by_the_living(it)))
    {
        return None;
    }
    let mut ops = vec![Node::Leader.exists()];
    if !gap.surplus.is_empty() || !gap.misplaced.is_empty() {
        ops.extend((!at.view.processing).then(|| Node::Processing.create_ephemeral("")));
        // Surplus items go last: as long as one is there, even static sharding knows that the count has changed.
        let clear = gap.misplaced.iter().chain(&gap.surplus).take(CHUNK);
        ops.extend(clear.flat_map(|&item| clear_away(at, item, gap.surplus.contains(&item))));
        return Some(ops.into());
    }
    ops.extend(gap.vacant.iter().take(CHUNK).flat_map(|(&item, owner)| hand_out(at, item, owner)));
    if gap.vacant.len() > CHUNK {
        ops.extend((!at.view.processing).then(|| Node::Processing.create_ephemeral("")));
        return Some(ops.into());
    }
    ops.extend((!on(Mutant::KeepNecessary)).then(|| Node::Necessary.delete()));
    ops.extend(at.view.processing.then(|| Node::Processing.delete()));
    Some(Move::from(ops).telling(Event::Resharded { moved: gap.vacant.len() }))
}

/// Takes an item from its owner. Writing its cursor anew refuses whatever the owner is about to begin on the
/// strength of what it saw before.
fn clear_away(at: &Standpoint<'_>, item: u32, is_surplus: bool) -> Vec<Op> {
    let Some(state) = at.item(item) else { return Vec::new() };
    if is_surplus {
        return state.nodes(item).iter().map(Node::delete).collect();
    }
    let mut ops = vec![Node::Owner(item).delete()];
    if let Some(cursor) = state.cursor {
        let known = !on(Mutant::DropCursor) && state.seamless_cursor().is_some();
        ops.push(Node::Cursor(item).set_at(cursor.version, write_fire(cursor.at.filter(|_| known))));
    }
    ops
}

/// The cursor is written anew in any case: that says that it is as old as the owner, and no Java peer had the item
/// since.
fn hand_out(at: &Standpoint<'_>, item: u32, owner: &str) -> Vec<Op> {
    let mut ops = vec![Node::Owner(item).create(owner)];
    match at.item(item).and_then(|it: &Item| it.cursor) {
        None if at.plan.spec.monitor_execution => ops.push(Node::Cursor(item).create("")),
        None => {}
        Some(cursor) => {
            let known = cursor.at.filter(|_| keeps_cursors(owner));
            ops.push(Node::Cursor(item).set_at(cursor.version, write_fire(known)));
        }
    }
    ops
}
