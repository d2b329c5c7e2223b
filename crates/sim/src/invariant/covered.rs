//! A fire's items are exactly those that the configuration has: none beyond them, none of another number.

use super::Violation;
use super::case::Case;

pub(super) const SENTENCE: &str =
    "what runs for a fire are exactly the items of the configuration that stands";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    for run in &case.history.runs {
        let known = case.configs_around(run.job, run.started).any(|it| it.sharding_total_count == run.total);
        let removed = case.jobs[run.job].removed_between(0, run.started);
        if run.item >= run.total || (!known && !removed && !case.in_doubt(run.started)) {
            let what = format!("job {}: item {} of {}", run.job, run.item, run.total);
            found.push(Violation { invariant: "covered", at: run.started, what });
        }
    }
    for stretch in &case.calm {
        for (number, job) in case.jobs.iter().enumerate() {
            let Some(spec) = job.config_at(stretch.0) else { continue };
            let within = job.runs.iter().filter(|it| stretch.0 <= it.started && it.started < stretch.1);
            for run in within.filter(|it| it.total != spec.sharding_total_count) {
                let what =
                    format!("job {number}: {} items instead of {}", run.total, spec.sharding_total_count);
                found.push(Violation { invariant: "covered", at: run.started, what });
            }
        }
    }
}
