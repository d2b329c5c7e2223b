//! An item never runs twice at once, but for those who have lost the right to it and whose effects are
//! refused; and never twice in one process.

use std::collections::BTreeMap;

use super::Violation;
use super::case::Case;
use super::fenced::lost_its_right;
use crate::history::UserRun;

pub(super) const SENTENCE: &str =
    "runs of an item do not overlap, but for one whose session is over and whose effects are refused";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    for (number, job) in case.jobs.iter().enumerate() {
        let mut open: BTreeMap<u32, Vec<&UserRun>> = BTreeMap::new();
        for run in &job.runs {
            let others = open.entry(run.item).or_default();
            others.retain(|it| it.over().is_none_or(|over| over > run.started));
            for other in others.iter() {
                let here = other.instance.process == run.instance.process;
                let monitored = case.is_monitored_between(number, other.started, run.started);
                // Either of the two may be the one whose effects are refused.
                let fenced =
                    lost_its_right(case, other, run.started) || lost_its_right(case, run, run.started);
                if here || (monitored && !fenced) {
                    let what =
                        format!("job {number}: item {} runs twice, as {} and {}", run.item, other.id, run.id);
                    found.push(Violation { invariant: "no overlap", at: run.started, what });
                }
            }
            others.push(run);
        }
    }
}
