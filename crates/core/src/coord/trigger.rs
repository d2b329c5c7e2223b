//! A run asked for by hand: `trigger/{id}`. The instance that is asked removes the node when its round
//! begins, not before, so that a crash in between does not lose the request.

use std::collections::BTreeSet;

use super::{Move, Standpoint};
use crate::event::Event;
use crate::mutants::{Mutant, on};
use crate::node::Node;

/// A request to an instance that died stays with its items: whoever gets them next runs them.
pub(super) fn hand_on(at: &Standpoint<'_>) -> Option<Move> {
    if on(Mutant::KeepOrphanTrigger) {
        return None;
    }
    let dead = at.view.triggers.keys().find(|id| at.leads() && !at.view.is_alive(id))?;
    let mut items = BTreeSet::new();
    let mut ops = vec![Node::Leader.exists(), Node::Trigger(dead.clone()).delete()];
    for (&item, state) in &at.view.items {
        let owned = state.owner.as_ref().is_some_and(|it| it.by == *dead);
        if owned && at.plan.spec.misfire && !state.disabled {
            ops.extend((!state.misfire).then(|| Node::Misfire(item).create("")));
            items.insert(item);
        }
    }
    Some(Move::from(ops).telling(Event::TriggerHandedOn { from: dead.clone(), items }))
}
