//! No fire starts twice for an item, whoever runs it, and none starts after a later one.

use std::collections::BTreeMap;

use elasticjob_core::event::Source;
use jiff::Timestamp;

use super::Violation;
use super::case::Case;
use crate::scenario::Deed;

pub(super) const SENTENCE: &str =
    "a fire starts at most once for each item, and never after a later one, while the job is monitored";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    // Nobody believes a cursor that lies more than an hour ahead.
    let absurd = |deed: &Deed| matches!(deed, Deed::ClockStep(_, by) if by.unsigned_abs() > 3_000_000);
    if case.history.scenario.plan.iter().any(|it| absurd(&it.1)) {
        return;
    }
    for (number, job) in case.jobs.iter().enumerate() {
        let mut latest: BTreeMap<u32, (Timestamp, u64)> = BTreeMap::new();
        for run in &job.runs {
            let (Source::Schedule | Source::Misfire, Some(nominal)) = (run.source, run.nominal) else {
                continue;
            };
            if !case.is_monitored(number, run.started) {
                continue;
            }
            let before = latest.insert(run.item, (nominal, run.started));
            if let Some((before, at)) = before.filter(|it| it.0 >= nominal)
                && !job.removed_between(at, run.started)
                && !job.lost_item_between(run.item, at, run.started)
            {
                let what = format!(
                    "job {number}: item {} of {} started for {nominal} after {before} (run {})",
                    run.item, run.total, run.id
                );
                found.push(Violation { invariant: "unique", at: run.started, what });
            }
        }
    }
}
