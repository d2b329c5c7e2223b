//! Jobs without fires that everybody agrees on: an item runs again some time after it ended, wherever that was.
//!
//! Its cursor says when: while it runs, since when; then, the end of the run, written in the transaction that removes
//! its mark. Whoever owns the item goes by that. So an item that moves, or whose owner restarts, keeps its pace, and
//! nobody needs to be told.

use jiff::{SignedDuration, Timestamp};

use super::{Coordinator, Run, Standpoint, run};
use crate::event::Source;
use crate::node::Node;
use crate::tree::Op;
use crate::view::{Item, write_fire};

impl Coordinator {
    /// Says whether a round is due that was not before.
    pub(super) fn look_at_delays(&mut self) -> bool {
        let Some(delay) = self.plan.as_ref().and_then(|it| it.policies.delay) else { return false };
        self.next_fire = None;
        if self.due.is_some() || self.leaving.is_some() || self.run != Run::Idle {
            return false;
        }
        let now = to_millisecond(self.now.wall);
        let next = self.standpoint().and_then(|at| next_run(&at, delay, now));
        self.due = next.filter(|it| *it <= now).map(|_| now);
        self.next_fire = next.filter(|it| *it > now);
        self.due.is_some()
    }
}

/// Cursors are written so.
fn to_millisecond(at: Timestamp) -> Timestamp {
    Timestamp::from_millisecond(at.as_millisecond()).unwrap_or(at)
}

fn next_run(at: &Standpoint<'_>, delay: SignedDuration, now: Timestamp) -> Option<Timestamp> {
    let free = at.my_items().filter(|(item, state)| run::may_run(at, **item, state, Source::Schedule, None));
    free.map(|(_, state)| due_at(at, state, delay).unwrap_or(now)).min()
}

/// When the item is due; at once, if nobody knows that it ever ran.
fn due_at(at: &Standpoint<'_>, state: &Item, delay: SignedDuration) -> Option<Timestamp> {
    Some(at.cursor(state)?.saturating_add(delay).unwrap_or(Timestamp::MAX))
}

/// Whether the item is due by then. `None` if the job has fires.
pub(super) fn is_due(at: &Standpoint<'_>, state: &Item, by: Timestamp) -> Option<bool> {
    let delay = at.plan.policies.delay?;
    Some(due_at(at, state, delay).is_none_or(|due| due <= by))
}

/// The end of a run, for the next to count from.
pub(super) fn note_end(at: &Standpoint<'_>, item: u32, state: &Item) -> Option<Op> {
    at.plan.policies.delay?;
    let now = to_millisecond(at.now.wall);
    let end = write_fire(Some(at.cursor(state).map_or(now, |it| it.max(now))));
    Some(match state.cursor {
        Some(it) => Node::Cursor(item).set_at(it.version, end),
        None => Node::Cursor(item).create(end),
    })
}
