//! Missed fires are made up for as the job's settings say: once, at once, merged and counted; or not at all,
//! and then it is said so.

use elasticjob_core::event::{Skip, Source};
use elasticjob_core::spec::JobSpec;

use super::Violation;
use super::case::{Case, How, takes_turns};
use crate::history::{ProcessId, UserRun};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str =
    "an overrun is replayed once, at once and merged if the job asks for it, and otherwise skipped";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    for run in case.history.runs.iter().filter(|it| it.source == Source::Misfire) {
        let mut known = case.configs_between(run.job, case.claimed_at(run), run.started).peekable();
        if known.peek().is_some() && !known.any(|it| it.misfire) {
            let what = format!("job {}: item {} makes up for a missed fire, unasked", run.job, run.item);
            found.push(Violation { invariant: "merge-lawful", at: run.started, what });
        }
    }
    if !case.has_wrong_clocks() {
        case.history.runs.iter().for_each(|run| exaggerates(case, run, found));
    }
    for stretch in &case.calm {
        for job in 0..case.jobs.len() {
            let Some((spec, fires)) = case.fires(job, *stretch) else { continue };
            // Hooks are in the way of rounds, too, here and elsewhere.
            let judged = |it: &(Ms, _)| it.0 >= stretch.0 + case.clock_error() && !case.has_hooks(job);
            for (at, fire) in fires.into_iter().filter(judged) {
                for item in 0..spec.sharding_total_count {
                    let from = at.saturating_sub(case.clock_error());
                    let Some(outcome) = case.jobs[job].outcome(item, fire, from) else { continue };
                    let why = match outcome.how {
                        How::Ran(run) => excuse_for_run(case, spec, run, at, outcome.nominal == fire),
                        How::Skipped(why) => excuse_for_skip(case, spec, (job, item, outcome.by), why, at),
                    };
                    if let Some(why) = why.filter(|_| outcome.at + 1_000 < stretch.1) {
                        let what = format!("job {job}: item {item} at {fire}: {why}");
                        found.push(Violation { invariant: "merge-lawful", at, what });
                    }
                }
            }
            counted(case, job, spec, *stretch, found);
        }
    }
}

/// Nobody makes up for fires from before the job was there, nor without knowing what was settled.
fn exaggerates(case: &Case<'_>, run: &UserRun, found: &mut Vec<Violation>) {
    let job = &case.jobs[run.job];
    let there_since = job.existence.iter().rev().find(|it| it.1 && it.0 <= run.started).map_or(0, |it| it.0);
    let mut known = case.configs_around(run.job, run.started);
    let most = match (known.next(), known.next(), run.nominal) {
        (Some(spec), None, Some(nominal)) if spec.monitor_execution => {
            let from = there_since.saturating_sub(case.clock_error());
            case.schedule(spec).map_or(0, |it| it.count_between(case.history.scenario.wall(from), nominal))
        }
        (Some(spec), None, _) if !spec.monitor_execution => 0,
        _ => return,
    };
    if run.merged > most {
        let what = format!(
            "job {}: run {} says that it made up for {} fires of {most}",
            run.job, run.id, run.merged
        );
        found.push(Violation { invariant: "merge-lawful", at: run.started, what });
    }
}

/// What is wrong with a run that settled a fire.
fn excuse_for_run(case: &Case<'_>, spec: &JobSpec, run: &UserRun, at: Ms, itself: bool) -> Option<String> {
    if itself && run.source == Source::Schedule {
        return None;
    }
    if falls_between_turns(case, spec, run.job, at) {
        return None;
    }
    // What may have kept the item from running: what its instance ran, or who had the item before.
    let here = |it: &UserRun| it.round < run.round && it.instance.process == run.instance.process;
    let in_the_way = |it: &&&UserRun| here(it) || (it.item == run.item && it.id < run.id);
    let mut others = case.jobs[run.job].runs.iter().filter(in_the_way);
    if !others.any(|it| it.over().is_none_or(|over| over + 4_000 >= at)) {
        return Some(format!("run {} makes up for it, though nothing was on before", run.id));
    }
    let bound = 1_000 + 2 * case.clock_error() + 12 * case.history.scenario.latency.1;
    let others = case.jobs[run.job].runs.iter().filter(in_the_way).filter_map(|it| it.over());
    let free = others.filter(|over| *over <= run.started).max().unwrap_or_default();
    if run.source == Source::Schedule && spec.misfire {
        // It is lawful only if the later fire came before the replay of this one could begin.
        let due = run.nominal.map_or(0, |it| case.true_time(it)).unsigned_abs();
        // What still runs for an earlier session is in the way, and without monitoring nobody can note it.
        let zombie = !spec.monitor_execution && case.is_outlived(run, at);
        return (free + bound < due && !zombie)
            .then(|| format!("run {} of a later fire swallowed it", run.id));
    }
    let late = run.started.saturating_sub(free.max(at));
    let slow = run.source == Source::Misfire && late > bound;
    slow.then(|| format!("run {} makes up for it only {late} ms later", run.id))
}

/// Without monitoring, a fire that comes just as the turn is passed on is nobody's, and nobody can tell.
fn falls_between_turns(case: &Case<'_>, spec: &JobSpec, job: usize, at: Ms) -> bool {
    let passing = 2 * case.clock_error() + 6 * case.history.scenario.latency.1;
    let mut ends = case.jobs[job].runs.iter().filter_map(|it| it.over());
    takes_turns(spec) && !spec.monitor_execution && ends.any(|it| it.abs_diff(at) <= passing)
}

fn excuse_for_skip(
    case: &Case<'_>,
    spec: &JobSpec,
    skipped: (usize, u32, ProcessId),
    why: Skip,
    at: Ms,
) -> Option<String> {
    let (job, item, by) = skipped;
    let busy = case.is_busy(job, by, at);
    let lawful = match why {
        // The item may run elsewhere, for an instance that died.
        Skip::Overrun => !spec.misfire && (busy || case.is_running(job, item, at)),
        Skip::ItemDisabled => true,
        // An item that runs, and those that began with it, are not moved until they have ended.
        Skip::ServerDisabled => busy || spec.static_sharding || !case.anybody_may_work(job, at),
        Skip::TooLate | Skip::ClockOff | Skip::NoItems | Skip::Interrupted | Skip::ShutDown => false,
    };
    (!lawful).then(|| format!("it was skipped because {why}"))
}

/// A round says how many fires it made up for.
fn counted(case: &Case<'_>, job: usize, spec: &JobSpec, stretch: (Ms, Ms), found: &mut Vec<Violation>) {
    let Some(schedule) = case.schedule(spec) else { return };
    let runs = case.jobs[job].runs.iter().filter(|it| {
        stretch.0 <= it.started
            && it.started <= stretch.1
            && matches!(it.source, Source::Schedule | Source::Misfire)
    });
    for run in runs.filter(|_| spec.monitor_execution) {
        let Some(nominal) = run.nominal else { continue };
        let of_round = case.jobs[job].runs.iter().filter(|it| it.task_id == run.task_id);
        let before = of_round.map(|it| {
            let settled = case.jobs[job].settled.get(&it.item)?;
            let decided = case.decided_at(it);
            let last = settled.iter().filter(|s| s.at < decided).max_by_key(|s| s.nominal)?;
            (last.at >= stretch.0).then_some(last.nominal)
        });
        // All of its items must have been settled within the stretch before.
        let Some(before) = before.collect::<Option<Vec<_>>>() else { continue };
        let expected =
            before.iter().min().map_or(0, |from| schedule.count_between(*from, nominal).saturating_sub(1));
        if run.merged != expected {
            let what =
                format!("job {job}: run {} says that it made up for {}, not {expected}", run.id, run.merged);
            found.push(Violation { invariant: "merge-lawful", at: run.started, what });
        }
    }
}
