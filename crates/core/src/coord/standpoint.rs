//! What a rule may look at.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::guarantee::Barriers;
use super::remind::Roll;
use super::{CLOCK_TRUST, Focus, Hooks, Now, Run, since};
use crate::mutants::{Mutant, on};
use crate::node::{Latch, Node};
use crate::plan::Plan;
use crate::tree::Op;
use crate::view::{Cursor, ENABLED, Item, View, ip_of, ticket};

pub(super) struct Standpoint<'a> {
    pub(super) now: Now,
    pub(super) me: &'a str,
    /// Many rules ask for these two, so they are looked up once.
    pub(super) is_registered: bool,
    /// What our host may do.
    pub(super) status: Option<&'a str>,
    pub(super) plan: &'a Plan,
    pub(super) view: &'a View,
    pub(super) sees: &'a Focus,
    pub(super) run: &'a Run,
    pub(super) leaving: bool,
    /// The program wants its host disabled at its start.
    pub(super) hold_back: bool,
    pub(super) last_status: Option<&'static str>,
    /// Something that only a leader may do is under way.
    pub(super) busy_leading: bool,
    pub(super) due: Option<Timestamp>,
    pub(super) passed: Option<Timestamp>,
    pub(super) overran: bool,
    pub(super) watching_since: Option<Timestamp>,
    pub(super) next_round: u64,
    pub(super) zombies: &'a BTreeMap<u32, u64>,
    pub(super) gave_up: &'a BTreeSet<u32>,
    pub(super) hooks: Hooks,
    pub(super) barriers: &'a Barriers,
    /// The time that a leaving instance has is over.
    pub(super) out_of_time: bool,
    pub(super) roll: &'a Roll,
}

impl<'a> Standpoint<'a> {
    pub(super) fn is_registered(&self) -> bool {
        self.is_registered
    }

    /// Whether our host may work. A Java peer may have removed it, taking it for dead: then what it was counts.
    pub(super) fn is_enabled(&self) -> bool {
        self.status.or(self.last_status) == Some(ENABLED)
    }

    /// Whether we may lead and take work.
    pub(super) fn is_able(&self) -> bool {
        self.is_registered() && self.is_enabled() && !self.leaving
    }

    /// Whether the leader's place is ours.
    pub(super) fn holds_lead(&self) -> bool {
        self.view.leader.as_deref() == Some(self.me)
    }

    /// Whether we may act as leader: the place is ours, and we see all that a leader must.
    pub(super) fn leads(&self) -> bool {
        self.holds_lead() && *self.sees == Focus::Everything
    }

    pub(super) fn is_me(&self, id: Option<&String>) -> bool {
        id.is_some_and(|id| id == self.me)
    }

    /// Failover needs to know who runs what.
    pub(super) fn fails_over(&self) -> bool {
        self.plan.spec.failover && self.plan.spec.monitor_execution
    }

    /// Who is to be first and last can only be told of what is monitored.
    pub(super) fn calls_once(&self) -> bool {
        self.hooks.once.is_some() && self.plan.spec.monitor_execution
    }

    pub(super) fn item(&self, item: u32) -> Option<&'a Item> {
        self.view.items.get(&item).map(|it| &**it)
    }

    /// The items that are ours to run, within the job's number of items.
    pub(super) fn my_items(&self) -> impl Iterator<Item = (&'a u32, &'a Item)> {
        let known = self.view.items.range(..self.plan.spec.sharding_total_count);
        let known = known.map(|(item, state)| (item, &**state));
        let owned = |state: &Item| state.owner.as_ref().is_some_and(|it| it.by == self.me);
        let mine = move |state| if on(Mutant::OwnerNotesTurns) { owned(state) } else { self.is_mine(state) };
        known.filter(move |(item, state)| self.sees.covers(**item) && mine(state))
    }

    /// Usually an item is its owner's. Where instances take turns, it is that of the one who holds the baton.
    pub(super) fn is_mine(&self, state: &Item) -> bool {
        let holder = self.view.baton.as_deref().filter(|ip| self.plan.takes_turns() && !ip.is_empty());
        match holder.filter(|ip| self.view.available().iter().any(|id| ip_of(id) == *ip)) {
            Some(ip) => ip == ip_of(self.me),
            None => state.owner.as_ref().is_some_and(|it| it.by == self.me),
        }
    }

    pub(super) fn is_run_by_the_living(&self, state: &Item) -> bool {
        let lives = state.running.as_ref().is_some_and(|it| it.ephemeral || self.view.is_alive(&it.by));
        lives && self.plan.spec.monitor_execution
    }

    pub(super) fn is_busy(&self, item: u32) -> bool {
        self.item(item).is_some_and(|it| self.is_run_by_the_living(it))
    }

    /// The last settled fire, if it is known. One that lies in the future was written by a clock that was
    /// wrong.
    pub(super) fn cursor(&self, state: &Item) -> Option<Timestamp> {
        self.settled(state.cursor)
    }

    /// The last settled fire, if everything after it is known to be open.
    pub(super) fn open_since(&self, state: &Item) -> Option<Timestamp> {
        self.settled(state.seamless_cursor())
    }

    fn settled(&self, cursor: Option<Cursor>) -> Option<Timestamp> {
        let at = cursor.filter(|_| self.plan.spec.monitor_execution)?.at?;
        (since(self.now.wall, at) <= CLOCK_TRUST).then_some(at)
    }

    /// The fire that a mark was left for, if it is known, the schedule still has it, and no absurd clock wrote it.
    pub(super) fn noted(&self, state: &Item) -> Option<Timestamp> {
        let believed =
            |at: &Timestamp| since(self.now.wall, *at) <= CLOCK_TRUST || on(Mutant::BelieveFarMark);
        state.missed.filter(believed).filter(|it| self.is_fire(*it))
    }

    /// The schedule that stands fires then.
    pub(super) fn is_fire(&self, at: Timestamp) -> bool {
        let before = at.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(at);
        let any = self.plan.policies.delay.is_some(); // Then there is nothing to disagree on.
        any || self.plan.schedule.as_ref().is_some_and(|it| it.next_after(before) == Some(at))
    }

    /// A transaction that begins with this is refused once we are gone.
    pub(super) fn i_exist(&self) -> Op {
        Node::Instance(self.me.to_owned()).exists()
    }

    /// How our places in line begin.
    pub(super) fn ticket(&self) -> String {
        ticket(self.me)
    }

    pub(super) fn place_in_line(&self, latch: Latch) -> Option<&'a String> {
        self.view.place_in_line(latch, self.me)
    }
}
