//! Tokens grow with every start of an item, so that a store that refuses older ones refuses nobody who still
//! has the right to write.

use std::collections::BTreeMap;

use super::Violation;
use super::case::Case;
use crate::history::{Fact, UserRun};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str =
    "tokens of an item strictly increase; only those who have lost their right are refused";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    for (number, job) in case.jobs.iter().enumerate() {
        let mut newest: BTreeMap<u32, u64> = BTreeMap::new();
        for run in job.runs.iter().filter(|it| case.is_monitored(number, it.started)) {
            let before = newest.entry(run.item).or_default();
            if run.token <= *before && !lost_its_right(case, run, run.started) {
                let what = format!("job {number}: item {} got {} after {before}", run.item, run.token);
                found.push(Violation { invariant: "fenced", at: run.started, what });
            }
            *before = run.token.max(*before);
        }
    }
    for (at, fact) in &case.history.facts {
        let Fact::Wrote(run, false) = fact else { continue };
        let run = &case.history.runs[*run];
        if case.is_monitored_between(run.job, run.started, *at) && !lost_its_right(case, run, *at) {
            let what =
                format!("job {}: item {} was refused with {}, run {}", run.job, run.item, run.token, run.id);
            found.push(Violation { invariant: "fenced", at: *at, what });
        }
    }
}

/// Its session had ended, or an operator had ended its job.
pub(super) fn lost_its_right(case: &Case<'_>, run: &UserRun, at: Ms) -> bool {
    let ended = case.session_end(run.instance).is_some_and(|it| it.0 <= at);
    let shut_down = case.turns.iter().take_while(|it| it.0 <= at).any(
        |it| matches!(it.1, Fact::ShutDown(job, instance) if (job, instance) == (run.job, run.instance)),
    );
    // What was claimed before a removal may start shortly after it.
    let claimed = run.started.saturating_sub(case.history.scenario.news_time());
    // A removal in several steps takes marks before it takes the job.
    ended || shut_down || case.jobs[run.job].removed_between(claimed, at + 200)
}
