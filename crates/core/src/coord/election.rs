//! Who leads: `leader/election/*`. Java holds a latch while it looks and writes, so do we.

use super::{Move, Standpoint};
use crate::event::Event;
use crate::mutants::{Mutant, on};
use crate::node::{Latch, Node};

pub(super) fn campaign(at: &Standpoint<'_>) -> Option<Move> {
    let stands = at.is_able() && at.view.leader.is_none();
    match at.place_in_line(Latch::Election) {
        _ if at.leaving => None,
        None if stands => Some(vec![at.i_exist(), Latch::Election.join(&at.ticket())].into()),
        None => None,
        Some(place) if !stands && !on(Mutant::StayInLine) => {
            Some(vec![Node::InLine(Latch::Election, place.clone()).delete()].into())
        }
        Some(place) if at.view.head_of_line(Latch::Election) == Some(place) => {
            let place = Node::InLine(Latch::Election, place.clone()).delete();
            let ops = vec![at.i_exist(), Node::Leader.create_ephemeral(at.me), place];
            Some(Move::from(ops).telling(Event::Elected))
        }
        Some(_) => None,
    }
}

/// A leader whose host is disabled steps down. Not while it acts as leader: what it has under way would
/// arrive after its successor began.
pub(super) fn abdicate(at: &Standpoint<'_>) -> Option<Move> {
    let ought = at.holds_lead() && !at.is_able() && !at.busy_leading && at.is_registered() && !at.leaving;
    ought.then(|| Move::from(vec![Node::Leader.delete()]).telling(Event::Abdicated))
}
