//! Every fire of every item has an outcome: it ran, it was merged into a later one, or it was skipped and
//! somebody recorded why.

use elasticjob_core::event::Source;

use super::Violation;
use super::case::Case;
use crate::history::{Fact, UserRun};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str =
    "every fire of every item ran, was merged into a later one, or was skipped with a recorded reason";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    let last = case.calm.len().saturating_sub(1);
    for stretch in &case.calm[..last] {
        lost_fires(case, *stretch, "complete", found);
    }
}

/// Fires of a calm stretch that nothing is known of.
pub(super) fn lost_fires(case: &Case<'_>, stretch: (Ms, Ms), name: &'static str, found: &mut Vec<Violation>) {
    let error = case.clock_error();
    for job in 0..case.jobs.len() {
        let Some((spec, fires)) = case.fires(job, stretch) else { continue };
        if !case.anybody_may_work(job, stretch.0) {
            continue;
        }
        // A fire near the end may be waiting for a round that is still on.
        let asked = case.turns.iter().filter(|it| {
            matches!(it.1, Fact::Triggered(j, _) if j == job)
                && stretch.0 <= it.0 + 60_000
                && it.0 <= stretch.1
        });
        let taken_over = case.jobs[job].runs.iter().filter(|it| {
            it.source == Source::Failover
                && it.over().is_none_or(|over| stretch.0 <= over)
                && it.started <= stretch.1
        });
        // What was asked for by hand goes first, and so do items of the dead, one after another.
        let rounds = 1 + (asked.count() + taken_over.count()) as Ms;
        let setup = &case.history.scenario.jobs[job];
        let round = setup.longest_run() + setup.longest_calls();
        // Where hooks are called once, the round before must have ended everywhere, also where it began last.
        let rounds = rounds + Ms::from(setup.hooks.once.is_some());
        let busy_for = rounds * round + 5_000 + 2 * error;
        let judged = fires.iter().filter(|it| it.0 >= stretch.0 + error && it.0 + busy_for <= stretch.1);
        for (at, fire) in judged {
            for item in 0..spec.sharding_total_count {
                let known = case.jobs[job].outcome(item, *fire, at.saturating_sub(error));
                let in_time = known.is_some_and(|it| it.at <= at + busy_for);
                let excused = case.item_disabled(job, item, *at, 0) != Some(false)
                    || (spec.static_sharding && nobody_is_idle(case, job, stretch))
                    || is_stuck(case, job, *at, at + busy_for)
                    || case.skips_unnamed(job, *fire);
                if !in_time && !excused {
                    let what = format!("job {job}: nothing is known of item {item} at {fire}");
                    found.push(Violation { invariant: name, at: *at, what });
                }
            }
        }
    }
}

/// Static sharding keeps a dead owner's items for whoever replaces it, and does not give them to one who has
/// items already.
fn nobody_is_idle(case: &Case<'_>, job: usize, stretch: (Ms, Ms)) -> bool {
    let mut idle = case.able(job, stretch.0);
    for run in case.jobs[job].runs.iter().filter(|it| stretch.0 <= it.started && it.started <= stretch.1) {
        idle.remove(&run.instance.process);
    }
    // Whoever has nothing but disabled items is not idle either.
    let disabled = case
        .turns
        .iter()
        .filter(|it| it.0 <= stretch.1 && matches!(it.1, Fact::Item(j, _, false) if j == job));
    idle.len() <= disabled.count()
}

/// A run that does not end keeps its instance from running anything else, also what it is given since.
fn is_stuck(case: &Case<'_>, job: usize, at: Ms, until: Ms) -> bool {
    let longest = case.history.scenario.jobs[job].longest_run();
    let endless = |run: &&UserRun| {
        let over = run.over().unwrap_or(Ms::MAX);
        run.started <= until && at <= over && over - run.started > longest
    };
    case.jobs[job].runs.iter().any(endless)
}
