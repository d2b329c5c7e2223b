//! Where nothing is wrong, a fire starts when it is due, and not before.

use elasticjob_core::event::Source;

use super::Violation;
use super::case::Case;

pub(super) const SENTENCE: &str =
    "in a calm cluster a fire starts when it is due, unless the round before is still on";

/// How far ahead of their own clock nobody believes what others wrote.
const TRUST: i64 = 3_600_000;

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    from_afar(case, found);
    let error = case.clock_error();
    // There and back, with a queue in between.
    let bound = 300 + 2 * error + 6 * case.history.scenario.latency.1;
    for run in &case.history.runs {
        let calm = |stretch: &&(u64, u64)| stretch.0 + 1_000 <= run.started && run.started <= stretch.1;
        let (Some(_), Some(nominal), Source::Schedule) =
            (case.calm.iter().find(calm), run.nominal, run.source)
        else {
            continue;
        };
        let due = case.true_time(nominal);
        let late = run.started.cast_signed() - due;
        let round_before = case.jobs[run.job].runs.iter().any(|it| {
            it.instance.process == run.instance.process
                && it.round < run.round
                && it.over().is_none_or(|over| over.cast_signed() + 2 * bound.cast_signed() >= due)
        });
        // What hooks hold up must come all the same; when, says the sentence about them.
        let held_up = case.has_hooks(run.job);
        if late > bound.cast_signed() && !round_before && !held_up {
            let what = format!("job {}: item {} started {late} ms after {nominal}", run.job, run.item);
            found.push(Violation { invariant: "on time", at: run.started, what });
        }
        if late < -error.cast_signed() {
            let what = format!("job {}: item {} started {} ms before {nominal}", run.job, run.item, -late);
            found.push(Violation { invariant: "on time", at: run.started, what });
        }
    }
}

/// Whatever clocks there were: nobody claims an item for a fire that is hours ahead by his own.
fn from_afar(case: &Case<'_>, found: &mut Vec<Violation>) {
    for run in case.history.runs.iter().filter(|_| case.has_wrong_clocks()) {
        let Some(due) = run.nominal.map(|it| case.true_time(it)) else { continue };
        let ahead = due - run.started.cast_signed() - run.clock_off;
        let set_at = run.started - run.clock_off_for;
        if ahead > TRUST + case.clock_error().cast_signed() && case.claimed_at(run) > set_at {
            let what = format!("job {}: item {} runs for a fire {ahead} ms ahead", run.job, run.item);
            found.push(Violation { invariant: "on time", at: run.started, what });
        }
    }
}
