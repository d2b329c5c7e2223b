//! What is to be called once for a fire is called once, before the first of its items starts and after the last has
//! ended, whoever ran one of them waits for it, and nothing waits in vain.

use std::collections::BTreeMap;

use elasticjob_core::event::{Event, Hook, Source};

use super::Violation;
use super::case::Case;
use crate::history::{HookCall, Instance, UserRun};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str = "hooks that are to be called once for a fire are called once, before its first item starts and after its last has ended and before anybody goes on to the next, and nothing hangs";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    for job in 0..case.jobs.len() {
        if case.history.scenario.jobs[job].hooks.once.is_some()
            && !case.has_wrong_clocks()
            && is_steady(case, job)
        {
            twice(case, job, found);
            too_early(case, job, found);
            in_vain(case, job, found);
            misnamed(case, job, found);
            ahead(case, job, found);
        }
        goes_on(case, job, found);
    }
}

/// It was monitored all the time, and never removed: otherwise nothing is known of earlier calls.
fn is_steady(case: &Case<'_>, job: usize) -> bool {
    let removed = case.jobs[job].existence.iter().any(|it| !it.1);
    let unmonitored =
        |it: &(Ms, Option<&elasticjob_core::spec::JobSpec>)| it.1.is_none_or(|it| !it.monitor_execution);
    !removed && !case.jobs[job].configs.iter().any(unmonitored)
}

fn calls<'a>(case: &Case<'a>, job: usize, hook: Hook) -> impl Iterator<Item = &'a HookCall> {
    case.history.calls.iter().filter(move |it| it.job == job && it.hook == hook && it.nominal.is_some())
}

/// The instance was lost before that: its session ended, or an operator ended the job there.
fn was_lost(case: &Case<'_>, job: usize, instance: Instance, before: Ms) -> bool {
    let ended = case.session_end(instance).is_some_and(|it| it.0 <= before);
    let shut_down = case.turns.iter().any(|it| {
        matches!(it.1, crate::history::Fact::ShutDown(j, i) if j == job && i == instance) && it.0 <= before
    });
    ended || shut_down
}

fn twice(case: &Case<'_>, job: usize, found: &mut Vec<Violation>) {
    for hook in [Hook::OnceBefore, Hook::OnceAfter] {
        let all: Vec<&HookCall> = calls(case, job, hook).collect();
        for (at, second) in all.iter().enumerate() {
            let first = all[..at]
                .iter()
                .find(|it| it.nominal >= second.nominal && !was_lost(case, job, it.instance, second.started));
            if let Some(first) = first {
                let what = format!(
                    "job {job}: the {hook} for {:?} is called at {} by {:?}, and again by {:?}",
                    second.nominal, first.started, first.instance, second.instance
                );
                found.push(Violation { invariant: "hooks", at: second.started, what });
            }
        }
    }
}

fn too_early(case: &Case<'_>, job: usize, found: &mut Vec<Violation>) {
    let before: Vec<&HookCall> = calls(case, job, Hook::OnceBefore).collect();
    let gave_up = |run: &UserRun| {
        case.jobs[job].events.iter().any(|(at, instance, event)| {
            *instance == run.instance
                && *at <= run.started
                && matches!(event, Event::HookFailed { hook: Hook::OnceBefore, task_id, .. } if *task_id == run.task_id)
        })
    };
    for run in &case.jobs[job].runs {
        let (Source::Schedule | Source::Misfire, Some(_)) = (run.source, run.nominal) else { continue };
        let called = before
            .iter()
            .any(|it| it.nominal >= run.nominal && it.ended.is_some_and(|ended| ended <= run.started));
        if !called && !gave_up(run) {
            let what = format!(
                "job {job}: run {} starts for {:?} before the hook has returned",
                run.id, run.nominal
            );
            found.push(Violation { invariant: "hooks", at: run.started, what });
        }
    }
    for call in calls(case, job, Hook::OnceAfter) {
        let on = case.jobs[job].runs.iter().find(|it| {
            it.nominal == call.nominal
                && it.started < call.started
                && it.over().is_none_or(|over| over > call.started)
                && !was_lost(case, job, it.instance, call.started)
                && !is_late(case, it)
        });
        if let Some(run) = on {
            let what =
                format!("job {job}: the hook after {:?} is called while run {} is on", call.nominal, run.id);
            found.push(Violation { invariant: "hooks", at: call.started, what });
        }
    }
}

/// What starts only after the next fire is not waited for.
fn is_late(case: &Case<'_>, run: &UserRun) -> bool {
    let spec = case.jobs[run.job].config_at(run.started);
    let next =
        spec.and_then(|it| case.schedule(it)).zip(run.nominal).and_then(|(it, fire)| it.next_after(fire));
    let error = case.clock_error().cast_signed();
    next.is_some_and(|it| case.true_time(it) <= run.started.cast_signed() + error)
}

/// The hook after a fire is told of a round for that fire, or of what was taken over for it.
fn misnamed(case: &Case<'_>, job: usize, found: &mut Vec<Violation>) {
    for call in calls(case, job, Hook::OnceAfter) {
        let of_call = |it: &&&UserRun| (it.instance, it.round) == (call.instance, call.round);
        let mut told_of = case.jobs[job].runs.iter().filter(of_call);
        let other = told_of.find(|it| it.nominal != call.nominal && it.source != Source::Failover);
        if let Some(run) = other {
            let (of, told) = (call.nominal, run.nominal);
            let what = format!("job {job}: the hook after {of:?} is told of run {}, for {told:?}", run.id);
            found.push(Violation { invariant: "hooks", at: call.started, what });
        }
    }
}

/// Who ran something for a fire goes on to the next only after the hook after that fire has returned. If it takes
/// something over meanwhile, it may be for the next, and both end together.
fn ahead(case: &Case<'_>, job: usize, found: &mut Vec<Violation>) {
    let after: Vec<&HookCall> = calls(case, job, Hook::OnceAfter).collect();
    let gave_up = |run: &UserRun| {
        case.jobs[job].events.iter().any(|(at, instance, event)| {
            *instance == run.instance
                && *at <= run.started
                && matches!(event, Event::HookFailed { hook: Hook::OnceAfter, error, .. } if is_late_call(error))
        })
    };
    let mut last: BTreeMap<Instance, &UserRun> = BTreeMap::new();
    for run in &case.jobs[job].runs {
        let earlier = match (run.source, run.nominal) {
            (Source::Failover, _) => last.remove(&run.instance).and(None),
            (Source::Schedule | Source::Misfire, Some(_)) => last.insert(run.instance, run),
            _ => None,
        };
        let Some(earlier) = earlier.filter(|it| it.nominal < run.nominal) else { continue };
        let called = after
            .iter()
            .any(|it| it.nominal >= earlier.nominal && it.ended.is_some_and(|ended| ended <= run.started));
        if !called && !gave_up(run) {
            let what = format!(
                "job {job}: run {} starts, but the hook after {:?}, for which {:?} ran something, was not called",
                run.id, earlier.nominal, run.instance
            );
            found.push(Violation { invariant: "hooks", at: run.started, what });
        }
    }
}

/// Once nothing goes wrong, nobody waits until he gives up.
fn in_vain(case: &Case<'_>, job: usize, found: &mut Vec<Violation>) {
    let Some(stretch) = case.calm.last() else { return };
    let deadlines = case.history.scenario.jobs[job].hooks.once;
    let wait = deadlines.map_or(0, |it| it.started.as_millis().max(it.completed.as_millis())) as Ms;
    for (at, instance, event) in &case.jobs[job].events {
        if *at >= stretch.0 + wait
            && let Event::HookFailed { error, .. } = event
            && is_late_call(error)
        {
            let what = format!("job {job}: {instance:?} waits in vain: {error}");
            found.push(Violation { invariant: "hooks", at: *at, what });
        }
    }
}

fn is_late_call(error: &str) -> bool {
    error.starts_with("not called in time")
}

/// Rounds are held up, but they come.
fn goes_on(case: &Case<'_>, job: usize, found: &mut Vec<Violation>) {
    let scenario = &case.history.scenario;
    let setup = &scenario.jobs[job];
    if !scenario.has_hooks() || setup.period == 0 {
        return;
    }
    let (Some(stretch), Some(spec)) = (case.calm.last(), case.jobs[job].config_at(scenario.ends_at)) else {
        return;
    };
    // A call takes up to eight seconds, and there may be four of them around a round.
    let bound = 2 * setup.period + 2 * setup.longest_run() + 4 * 8_000 + 10_000;
    let since = scenario.ends_at.saturating_sub(bound);
    let fires = case
        .schedule(spec)
        .is_some_and(|it| it.count_between(scenario.wall(since), scenario.wall(since + setup.period)) > 0);
    let enabled =
        (0..spec.sharding_total_count).any(|item| case.item_disabled(job, item, since, 0) == Some(false));
    let ran = case.jobs[job].runs.iter().any(|it| it.started >= since);
    if stretch.0 <= since && fires && enabled && case.anybody_may_work(job, since) && !ran {
        let what = format!("job {job}: nothing has run since {since}");
        found.push(Violation { invariant: "hooks", at: since, what });
    }
}
