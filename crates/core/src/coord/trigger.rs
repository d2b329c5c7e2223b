//! A run asked for by hand: `trigger/{id}`. The instance that is asked removes the node when its round
//! begins, not before, so that a crash in between does not lose the request.

use std::collections::BTreeSet;

use super::{Move, Standpoint};
use crate::event::Event;
use crate::mutants::{Mutant, on};
use crate::node::Node;
use crate::tree::Op;
use crate::view::{Item, write_fire, write_mark};

/// A request to an instance that died stays with its items: whoever gets them next runs them.
pub(super) fn hand_on(at: &Standpoint<'_>) -> Option<Move> {
    if on(Mutant::KeepOrphanTrigger) {
        return None;
    }
    let (dead, asked_with) = at.view.triggers.iter().find(|(id, _)| at.leads() && !at.view.is_alive(id))?;
    let mut items = BTreeSet::new();
    let mut ops = vec![Node::Leader.exists(), Node::Trigger(dead.clone()).delete()];
    for (&item, state) in &at.view.items {
        let owned = state.owner.as_ref().is_some_and(|it| it.by == *dead);
        if owned && at.plan.spec.misfire && !state.disabled {
            ops.extend(mark(item, state, asked_with));
            items.insert(item);
        }
    }
    Some(Move::from(ops).telling(Event::TriggerHandedOn { from: dead.clone(), items }))
}

/// The item runs once more, with what came along. If it is to make up for a fire anyhow, that is one run: it is
/// told what came along, and whoever is about to begin without it is refused.
fn mark(item: u32, state: &Item, asked_with: &str) -> Vec<Op> {
    let node = Node::Misfire(item);
    if !state.misfire {
        return vec![node.create(write_mark(None, asked_with))];
    }
    if asked_with.is_empty() {
        return Vec::new();
    }
    let cursor = state.cursor.map(|it| Node::Cursor(item).set_at(it.version, write_fire(it.at)));
    cursor.into_iter().chain([node.set(write_mark(state.missed, asked_with))]).collect()
}
