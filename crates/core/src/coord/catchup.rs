//! Fires that passed while nobody was up, for jobs that want them made up for.
//!
//! An item's cursor says until when its fires are settled. Usually a fire that is older than
//! [`LATE_START`](super::misfire::LATE_START) is left alone; here it counts as missed however old it is, unless the
//! job's settings were written since: the schedule may have been another one then.

use jiff::Timestamp;

use super::{Coordinator, Standpoint};
use crate::policy::CatchUp;
use crate::view::Item;

impl Coordinator {
    /// Whether fires of before our time are ours, too.
    pub(super) fn watches_the_past(&mut self) -> bool {
        let wanted = self.plan.as_ref().is_some_and(|it| it.policies.catch_up != CatchUp::None);
        let written = self.view.config.as_ref().map(|it| it.stat.modified).filter(|_| wanted);
        let Some(written) = written else { return false };
        self.watching_since = Some(written);
        self.passed = self.last_fire().filter(|fire| *fire > written);
        true
    }
}

impl Standpoint<'_> {
    /// Whether missed fires are made up for however old they are.
    pub(super) fn catches_up(&self) -> bool {
        self.plan.policies.catch_up != CatchUp::None
    }
}

/// The oldest fire that the item has still to run for, where it runs for each of them.
pub(super) fn owed(at: &Standpoint<'_>, state: &Item) -> Option<Timestamp> {
    let CatchUp::All { max } = at.plan.policies.catch_up else { return None };
    let (timer, passed) = (at.plan.schedule.as_ref()?, at.passed?);
    let settled = at.open_since(state)?;
    let since = at.watching_since.map_or(settled, |watching| settled.max(watching));
    match timer.count_between(since, passed) {
        0 => None,
        count if count <= u64::from(max) => timer.next_after(since),
        _ => (1..max).try_fold(passed, |fire, _| timer.previous_before(fire)),
    }
}
