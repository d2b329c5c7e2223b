//! What an operator was told is done, is done: from the next fire on, everywhere, and after restarts.

use std::collections::BTreeMap;

use elasticjob_core::event::{Event, Source, StopReason};

use super::Violation;
use super::case::Case;
use crate::history::{Fact, Instance, ProcessId, UserRun};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str =
    "disabling, removing, shutting down and configuring, once acknowledged, apply to every later fire";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    let news = case.history.scenario.news_time();
    let hosts: BTreeMap<ProcessId, usize> = case
        .turns
        .iter()
        .filter_map(|it| match it.1 {
            Fact::Born(process, host) => Some((process, host)),
            _ => None,
        })
        .collect();
    for run in &case.history.runs {
        let wrong = [
            item_is_disabled(case, run, news),
            server_is_disabled(case, run, hosts[&run.instance.process], news),
            was_ended(case, run, news),
            parameter_is_old(case, run),
            schedule_is_old(case, run),
            clock_is_off(case, run),
        ];
        for what in wrong.into_iter().flatten() {
            found.push(Violation { invariant: "obeys", at: run.started, what });
        }
    }
    comes_back(case, found);
    goes_on(case, news, found);
    stops_unasked(case, found);
    (0..case.jobs.len()).for_each(|job| is_handed_out(case, job, found));
}

/// Another number of items is handed out in bounded time, also while some of them run and do not end.
fn is_handed_out(case: &Case<'_>, job: usize, found: &mut Vec<Violation>) {
    let settling = case.history.scenario.settling_time();
    let mut count = 0;
    for (at, fact) in case.turns.iter().copied() {
        let Fact::Config(j, Some(spec)) = fact else { continue };
        if *j != job || std::mem::replace(&mut count, spec.sharding_total_count) == spec.sharding_total_count
        {
            continue;
        }
        // What was changed back before it was taken away, or could be because it ran, needs no handing out.
        let is_it = |it: &&(Ms, Instance, &Event)| it.0 <= *at && matches!(it.2, Event::Resharded { .. });
        let last = case.jobs[job].events.iter().rev().find(is_it);
        let handed_out = last.and_then(|it| case.jobs[job].config_at(it.0));
        // The last assignment may have been for this very number, by a document that was replaced and put back since.
        let mut known = last.into_iter().flat_map(|it| case.configs_around(job, it.0));
        if known.any(|it| it.sharding_total_count == count) {
            continue;
        }
        let old = handed_out.map_or(0, |it| it.sharding_total_count);
        // Where hooks come first, what was claimed counts as running, and nobody sees it.
        let stayed = |item| case.is_running(job, item, *at) || case.has_hooks(job);
        if old <= count && (old..count).all(stayed) {
            continue;
        }
        let undisturbed = case.calm.iter().any(|it| it.0 == at + settling);
        let done =
            case.jobs[job].events.iter().any(|it| *at <= it.0 && matches!(it.2, Event::Resharded { .. }));
        if undisturbed && !done && case.anybody_may_work(job, *at) {
            let what = format!("job {job}: {count} items are not handed out");
            found.push(Violation { invariant: "obeys", at: at + settling, what });
        }
    }
}

/// A job ends on an instance because somebody said so, and for no other reason.
fn stops_unasked(case: &Case<'_>, found: &mut Vec<Violation>) {
    for (at, fact) in case.turns.iter().copied() {
        let Fact::Stopped(instance, job, reason) = fact else { continue };
        let before = || case.turns.iter().take_while(|it| it.0 <= *at);
        // A removal in several steps takes the instances first.
        let removing = before().any(|it| matches!(it.1, Fact::Fault("remove", _)));
        let asked =
            match reason {
                StopReason::Left => {
                    before().any(|it| matches!(it.1, Fact::Leaving(process) if process == instance.process))
                }
                StopReason::ShutDown => before().any(
                    |it| matches!(it.1, Fact::ShutDown(j, i) if j == *job && i.process == instance.process),
                ) || removing,
                StopReason::Removed => removing,
                StopReason::BadConfig(_) => case.in_doubt(*at),
                StopReason::Conflict { .. } | StopReason::Denied(_) | StopReason::Broken(_) => false,
            };
        if !asked {
            let what = format!("job {job} ends on {instance:?}, and nobody asked: {reason}");
            found.push(Violation { invariant: "obeys", at: *at, what });
        }
    }
}

/// When a run was due, or claimed. What was claimed in time may start late, after an answer that was long on its way
/// or hooks that took their time.
fn due(case: &Case<'_>, run: &UserRun) -> Ms {
    let fire = run.nominal.map_or(run.started, |it| case.true_time(it).max(0).unsigned_abs());
    fire.min(case.claimed_at(run))
}

fn item_is_disabled(case: &Case<'_>, run: &UserRun, news: Ms) -> Option<String> {
    let disabled = case.item_disabled(run.job, run.item, run.started, news) == Some(true)
        && case.item_disabled(run.job, run.item, due(case, run), news) == Some(true)
        // With a job goes what says so, and the rest of the job a moment later.
        && !case.jobs[run.job].removed_between(run.started, run.started + 2_000);
    disabled.then(|| format!("job {}: item {} runs though it is disabled", run.job, run.item))
}

fn server_is_disabled(case: &Case<'_>, run: &UserRun, host: usize, news: Ms) -> Option<String> {
    let mut disabled = None;
    for (at, fact) in case.turns.iter().take_while(|it| it.0 <= run.started) {
        match fact {
            Fact::Server(job, h, on) if (*job, *h) == (run.job, host) => disabled = (!on).then_some(*at),
            Fact::Exists(job, false) | Fact::Config(job, None) if *job == run.job => disabled = None,
            _ => {}
        }
    }
    let late = disabled.is_some_and(|at| at + news <= due(case, run)) && run.source != Source::Failover;
    late.then(|| format!("job {}: item {} runs on a disabled host", run.job, run.item))
}

/// The job was removed, or ended on this instance.
fn was_ended(case: &Case<'_>, run: &UserRun, news: Ms) -> Option<String> {
    let job = &case.jobs[run.job];
    let gone = job.existence.iter().take_while(|it| it.0 <= run.started).last();
    if gone.is_some_and(|it| !it.1 && it.0 + news <= run.started) {
        return Some(format!("job {}: item {} runs though the job was removed", run.job, run.item));
    }
    // One whose session ended at the same time cannot know: its node would be gone in any case.
    let heard = |at: Ms| match case.has_faults(at, run.started) {
        true => at + news,
        false => at + 1_000 + 12 * case.history.scenario.latency.1,
    };
    // Who has not heard yet that it is registered does not know either: to it, it was not.
    let registered = |before: Ms| {
        let mut told = job.events.iter().filter(|it| it.0 <= before && it.1 == run.instance);
        told.any(|it| matches!(it.2, Event::Registered { .. }))
    };
    let shut_down = case.turns.iter().any(|it| {
        matches!(it.1, Fact::ShutDown(j, instance) if j == run.job && instance == run.instance)
            && heard(it.0) <= run.started
            && registered(it.0)
    });
    shut_down.then(|| format!("job {}: item {} runs though it was shut down there", run.job, run.item))
}

fn parameter_is_old(case: &Case<'_>, run: &UserRun) -> Option<String> {
    let mut known = case.configs_around(run.job, run.started).peekable();
    known.peek()?;
    (!case.in_doubt(run.started) && !known.any(|it| it.job_parameter == run.parameter))
        .then(|| format!("job {}: item {} runs with an old parameter", run.job, run.item))
}

fn schedule_is_old(case: &Case<'_>, run: &UserRun) -> Option<String> {
    let nominal = run.nominal?;
    let just_before = nominal - jiff::SignedDuration::from_millis(1);
    // A fire that waited is one of the schedule that stood when it was due, or claimed by a clock that was ahead.
    let due = due(case, run);
    let mut known = case.configs_between(run.job, due, run.started).peekable();
    known.peek()?;
    let fires =
        known.filter_map(|it| case.schedule(it)).any(|it| it.next_after(just_before) == Some(nominal));
    (!fires && !case.in_doubt(run.started))
        .then(|| format!("job {}: {nominal} is no fire of a schedule that stands", run.job))
}

/// The job tolerates only so much difference to the registry's clock.
fn clock_is_off(case: &Case<'_>, run: &UserRun) -> Option<String> {
    let limits = case.configs_around(run.job, run.started).map(|it| i64::from(it.max_time_diff_seconds));
    let limit = limits.min().filter(|it| *it >= 0)?;
    // The registry read its clock at some time between question and answer: nobody knows when. What has been claimed by
    // a clock that was right may wait for a hook, and start by one that is not.
    let waited = run.started - case.claimed_at(run);
    let uncertain = i64::try_from(waited).unwrap_or(i64::MAX);
    // Asked a while ago, it may have been right then.
    let off = run.clock_off.abs() > limit * 1_000 + 5_000 + uncertain
        && run.clock_off_for > case.history.scenario.news_time() + waited;
    off.then(|| {
        format!("job {}: item {} runs by a clock that is off by {} ms", run.job, run.item, run.clock_off)
    })
}

/// A removed job ends on every instance that had it, unless user code there does not end.
fn goes_on(case: &Case<'_>, news: Ms, found: &mut Vec<Violation>) {
    for (number, job) in case.jobs.iter().enumerate() {
        let removals = job.existence.iter().filter(|it| !it.1).map(|it| it.0);
        // That somebody ends it is a disturbance, too.
        for at in removals.filter(|at| case.is_undisturbed(at + 100, at + news)) {
            let had_it = case.able(number, at + 100);
            let registered = |process: &ProcessId| {
                let joined = |it: &(Ms, Instance, &Event)| {
                    it.0 <= at && it.1.process == *process && matches!(it.2, Event::Registered { .. })
                };
                job.events.iter().any(joined) && !case.is_busy(number, *process, at + news)
            };
            if let Some(process) = had_it.iter().find(|it| registered(it)) {
                let what = format!("job {number} was removed and goes on in process {process}");
                found.push(Violation { invariant: "obeys", at: at + news, what });
            }
        }
    }
}

/// A removed job comes back only with a process that did not know it before.
fn comes_back(case: &Case<'_>, found: &mut Vec<Violation>) {
    for (number, job) in case.jobs.iter().enumerate() {
        let mut gone = None;
        for &(at, exists) in &job.existence {
            if !exists {
                gone = Some(at);
                continue;
            }
            let Some(gone) = gone.take() else { continue };
            let mut fresh: BTreeMap<ProcessId, bool> = BTreeMap::new();
            for (when, fact) in case.turns.iter().take_while(|it| it.0 <= at) {
                match fact {
                    Fact::Born(process, _) => drop(fresh.insert(*process, true)),
                    // What it sent may still be on its way.
                    Fact::Died(_) | Fact::Left(_) if when + 30_000 > at => {}
                    Fact::Died(process) | Fact::Left(process) => drop(fresh.remove(process)),
                    Fact::Stopped(instance, j, _) if *j == number => drop(fresh.remove(&instance.process)),
                    _ => {}
                }
            }
            for (_, instance, _) in
                job.events.iter().filter(|it| it.0 <= gone && matches!(it.2, Event::Registered { .. }))
            {
                fresh.remove(&instance.process);
            }
            if fresh.is_empty() {
                let what = format!("job {number} was removed and came back to life");
                found.push(Violation { invariant: "obeys", at, what });
            }
        }
    }
}
