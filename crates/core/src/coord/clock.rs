//! The coordinator's clock: which fires have passed, and what becomes of one when it does.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{CLOCK_TRUST, Coordinator, Effect, Run, misfire, since};
use crate::event::{Event, Skip, Source};
use crate::mutants::{Mutant, on};

impl Coordinator {
    /// From now on fires are ours to notice. One that has just passed may have fallen between two owners: the
    /// cursors of the items that we get will tell.
    pub(super) fn start_watching(&mut self) {
        if !self.watches_the_past() {
            self.watching_since =
                Some(self.now.wall.saturating_sub(misfire::LATE_START).unwrap_or(self.now.wall));
            self.passed = self.last_fire().filter(|at| since(*at, self.now.wall) <= misfire::LATE_START);
        }
        self.arm();
    }

    pub(super) fn arm(&mut self) {
        let schedule = self.plan.as_ref().and_then(|it| it.schedule.as_ref());
        let from = self.passed.map_or(self.now.wall, |passed| passed.max(self.now.wall));
        self.next_fire = schedule.and_then(|it| it.next_after(from));
    }

    /// Fires that it passed before are settled, unless it was absurdly wrong. It fires next after those, and not
    /// only when it is back where it was.
    pub(super) fn clock_went_back(&mut self) {
        if self.passed.is_some_and(|at| since(self.now.wall, at) > CLOCK_TRUST) {
            (self.passed, self.due, self.overran) = (None, None, false);
        }
        if self.next_fire.is_some() {
            self.arm();
        }
    }

    /// The last fire up to now.
    pub(super) fn last_fire(&self) -> Option<Timestamp> {
        let schedule = self.plan.as_ref()?.schedule.as_ref()?;
        schedule.previous_before(self.now.wall.checked_add(SignedDuration::from_nanos(1)).ok()?)
    }

    pub(super) fn look_at_clock(&mut self, out: &mut Vec<Effect>) {
        if self.plan.as_ref().is_some_and(|it| it.policies.delay.is_some()) {
            self.next_fire = None; // What the view says is looked at with the rules.
        }
        if self.next_fire.is_some_and(|at| at <= self.now.wall)
            && let Some(fire) = self.last_fire()
        {
            self.arm();
            if on(Mutant::LoseOverrun) && matches!(self.run, Run::Running { .. }) {
                return;
            }
            self.passed = Some(fire);
            self.fire(fire, out);
        }
        self.drop_stale_fire(out);
    }

    pub(super) fn fire(&mut self, fire: Timestamp, out: &mut Vec<Effect>) {
        let makes_up = self.plan.as_ref().is_some_and(|it| it.spec.misfire);
        match &mut self.run {
            _ if self.leaving.is_some() => {} // Our successors will find the items behind.
            Run::Sharding { source: Source::Schedule | Source::Misfire, nominal } => *nominal = Some(fire),
            // The clock went back and has come again to the fire of the round that is on.
            on if on.is_for(fire) => self.overran = false,
            Run::Idle | Run::Sharding { .. } | Run::Completing { .. } | Run::Ending { .. } => {
                self.due = Some(fire);
            }
            // One that waits behind what runs is made up for together with this.
            _ if self.due.is_some() && makes_up && !on(Mutant::KeepFirstDue) => self.due = Some(fire),
            Run::Beginning { .. } | Run::Starting { .. } | Run::Running { .. } => {
                self.overran = true;
                let unmonitored =
                    self.plan.as_ref().filter(|it| !it.spec.monitor_execution && !it.spec.misfire);
                if unmonitored.is_some() {
                    let items = BTreeSet::new();
                    out.push(Effect::Record(Event::Skipped {
                        nominal: Some(fire),
                        items,
                        why: Skip::Overrun,
                    }));
                }
            }
        }
    }

    /// A fire that waited for a connection too long is missed, if the job does not make up for misfires.
    pub(super) fn drop_stale_fire(&mut self, out: &mut Vec<Effect>) {
        let makes_up = self.plan.as_ref().is_some_and(|it| it.spec.misfire || it.policies.delay.is_some());
        if let Some(due) = self.due.filter(|at| !makes_up && since(*at, self.now.wall) > misfire::LATE_START)
        {
            self.due = None;
            let items = BTreeSet::new();
            out.push(Effect::Record(Event::Skipped { nominal: Some(due), items, why: Skip::TooLate }));
        }
    }
}
