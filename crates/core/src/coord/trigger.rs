//! A run asked for by hand: `trigger/{id}`. The instance that is asked removes the node when its round
//! begins, not before, so that a crash in between does not lose the request.

use super::{CHUNK, Move, Standpoint};
use crate::event::Event;
use crate::mutants::{Mutant, on};
use crate::node::Node;
use crate::tree::Op;
use crate::view::{Item, write_fire, write_mark};

/// A request to an instance that died stays with its items: whoever gets them next runs them. If they are many, the
/// request goes with the last of them: as long as it is there, no item is moved, so that none is forgotten.
pub(super) fn hand_on(at: &Standpoint<'_>) -> Option<Move> {
    if on(Mutant::KeepOrphanTrigger) {
        return None;
    }
    let (dead, asked_with) = at.view.triggers.iter().find(|(id, _)| at.leads() && !at.view.is_alive(id))?;
    let inherits = |state: &Item| {
        let owned = state.owner.as_ref().is_some_and(|it| it.by == *dead);
        owned && at.plan.spec.misfire && !state.disabled
    };
    let heirs: Vec<(u32, &Item)> =
        at.view.items.iter().map(|(&item, state)| (item, &**state)).filter(|it| inherits(it.1)).collect();
    let unmarked: Vec<(u32, &Item)> =
        heirs.iter().copied().filter(|it| !is_marked(it.1, asked_with)).collect();
    let marks = unmarked.iter().take(CHUNK).flat_map(|(item, state)| mark(*item, state, asked_with));
    let request = Node::Trigger(dead.clone());
    if unmarked.len() > CHUNK {
        let ops: Vec<Op> = [Node::Leader.exists(), request.exists()].into_iter().chain(marks).collect();
        return Some(ops.into());
    }
    let ops: Vec<Op> = [Node::Leader.exists(), request.delete()].into_iter().chain(marks).collect();
    let items = heirs.into_iter().map(|it| it.0).collect();
    Some(Move::from(ops).telling(Event::TriggerHandedOn { from: dead.clone(), items }))
}

/// It runs once more anyhow, and is told what came along.
fn is_marked(state: &Item, asked_with: &str) -> bool {
    state.misfire && (asked_with.is_empty() || state.asked_with.as_deref() == Some(asked_with))
}

/// The item runs once more, with what came along. If it is to make up for a fire anyhow, that is one run: it is
/// told what came along, and whoever is about to begin without it is refused.
fn mark(item: u32, state: &Item, asked_with: &str) -> Vec<Op> {
    let node = Node::Misfire(item);
    if !state.misfire {
        return vec![node.create(write_mark(None, asked_with))];
    }
    let cursor = state.cursor.map(|it| Node::Cursor(item).set_at(it.version, write_fire(it.at)));
    cursor.into_iter().chain([node.set(write_mark(state.missed, asked_with))]).collect()
}
