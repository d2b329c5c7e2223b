//! What an operator was told is done, is done: from the next fire on, everywhere, and after restarts.

use std::collections::BTreeMap;

use elasticjob_core::event::{Event, Source};

use super::Violation;
use super::case::{Case, schedule};
use crate::history::{Fact, ProcessId, UserRun};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str =
    "disabling, removing, shutting down and configuring, once acknowledged, apply to every later fire";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    let news = case.history.scenario.news_time();
    let hosts: BTreeMap<ProcessId, usize> = case
        .history
        .facts
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
        ];
        for what in wrong.into_iter().flatten() {
            found.push(Violation { invariant: "obeys", at: run.started, what });
        }
    }
    comes_back(case, found);
}

fn item_is_disabled(case: &Case<'_>, run: &UserRun, news: Ms) -> Option<String> {
    let disabled = case.item_disabled(run.job, run.item, run.started, news) == Some(true);
    disabled.then(|| format!("job {}: item {} runs though it is disabled", run.job, run.item))
}

fn server_is_disabled(case: &Case<'_>, run: &UserRun, host: usize, news: Ms) -> Option<String> {
    let mut disabled = None;
    for (at, fact) in case.history.facts.iter().take_while(|it| it.0 <= run.started) {
        match fact {
            Fact::Server(job, h, on) if (*job, *h) == (run.job, host) => disabled = (!on).then_some(*at),
            Fact::Exists(job, false) | Fact::Config(job, None) if *job == run.job => disabled = None,
            _ => {}
        }
    }
    let late = disabled.is_some_and(|at| at + news <= run.started) && run.source != Source::Failover;
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
    let shut_down = case.history.facts.iter().any(|it| {
        matches!(it.1, Fact::ShutDown(j, instance) if j == run.job && instance == run.instance)
            && it.0 + news <= run.started
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
    // A fire that waited is one of the schedule that stood when it was due.
    let due = case.true_time(nominal).max(0).unsigned_abs().min(run.started);
    let mut known = case.configs_between(run.job, due, run.started).peekable();
    known.peek()?;
    let fires = known.filter_map(schedule).any(|it| it.next_after(just_before) == Some(nominal));
    (!fires && !case.in_doubt(run.started))
        .then(|| format!("job {}: {nominal} is no fire of a schedule that stands", run.job))
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
            for (when, fact) in case.history.facts.iter().take_while(|it| it.0 <= at) {
                match fact {
                    Fact::Born(process, _) => drop(fresh.insert(*process, true)),
                    // What it sent may still be on its way.
                    Fact::Died(_) | Fact::Left(_) if when + 5_000 > at => {}
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
