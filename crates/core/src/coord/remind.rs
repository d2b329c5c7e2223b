//! Beside a Java leader: noticing that it overlooked somebody.
//!
//! A Java leader reads who is there, waits for what runs, and then makes the assignment for those that it saw. Who
//! joins during that wait gets nothing, and items may go to one who left; the request for a new assignment that
//! either caused is removed with it, and nobody asks again. So whoever notices asks in the leader's stead: the
//! node is the same, whoever makes it.

use std::collections::BTreeSet;

use super::{Move, Standpoint};
use crate::node::Node;
use crate::tree::Zxid;
use crate::view::{View, keeps_cursors};

/// Who can be given work, as far as we have seen.
#[derive(Debug, Default)]
pub(super) struct Roll {
    members: Vec<String>,
    /// The newest part of the assignment when they were first seen.
    newest: Zxid,
    /// They were pointed out to the leader. Once is enough: an assignment that leaves somebody out again means to.
    pub(super) reminded: bool,
}

impl Roll {
    /// Keeps it up to date. Only a Java leader needs it.
    pub(super) fn call(&mut self, view: &View) {
        if !is_led_by_java(view) {
            *self = Roll::default();
            return;
        }
        let members = view.available();
        if self.members != members {
            let members = members.into_iter().map(str::to_owned).collect();
            *self = Roll { members, newest: newest(view), reminded: false };
        }
    }

    /// Forgets when these members were first seen, in case the assignment was made before we looked.
    pub(super) fn doubt(&mut self) {
        (self.newest, self.reminded) = (0, false);
    }
}

pub(super) fn remind(at: &Standpoint<'_>) -> Option<Move> {
    let view = at.view;
    if !is_led_by_java(view) || !at.is_able() || at.plan.spec.static_sharding {
        return None;
    }
    let stands = !view.necessary && !view.processing && newest(view) > at.roll.newest && !at.roll.reminded;
    if !stands {
        return None;
    }
    let total = at.plan.spec.sharding_total_count;
    let owners = view.items.range(..total).filter_map(|(_, state)| Some(state.owner.as_ref()?.by.as_str()));
    let owners: BTreeSet<&str> = owners.collect();
    let members = view.available();
    let left_out = members.len() <= total as usize && members.iter().any(|it| !owners.contains(it));
    let misdirected = owners.iter().any(|it| !view.is_alive(it));
    (left_out || misdirected).then(|| vec![at.i_exist(), Node::Necessary.create("")].into())
}

fn is_led_by_java(view: &View) -> bool {
    view.leader.as_deref().is_some_and(|it| !keeps_cursors(it))
}

fn newest(view: &View) -> Zxid {
    let owners = view.items.values().filter_map(|state| state.owner.as_ref());
    owners.map(|it| it.token).max().unwrap_or_default()
}
