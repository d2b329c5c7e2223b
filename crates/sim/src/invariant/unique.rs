//! No fire starts twice for an item, whoever runs it, and none starts after a later one.

use std::collections::BTreeMap;

use elasticjob_core::coord::{Slot, Verdict};
use elasticjob_core::event::{Event, Source};
use jiff::Timestamp;

use super::Violation;
use super::case::Case;
use crate::history::{Fact, Instance, UserRun};

pub(super) const SENTENCE: &str =
    "a fire starts at most once for each item, and never after a later one, while the job is monitored";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    for run in case.history.runs.iter().filter(|it| it.source == Source::Failover) {
        if !was_interrupted(case, run) {
            let what = format!(
                "job {}: item {} is taken over (run {}), but nobody died over it",
                run.job, run.item, run.id
            );
            found.push(Violation { invariant: "unique", at: run.started, what });
        }
    }
    // What was claimed before a removal may start shortly after it.
    let news = case.history.scenario.news_time();
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
                && !job.removed_between(at.saturating_sub(news), run.started)
                && !case.lost_item_between(number, run.item, at, run.started)
                && case.is_monitored_between(number, at, run.started)
                && !case.has_absurd_clocks(at, run.started)
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

/// Somebody was lost since the item last started, who may have been running it.
fn was_interrupted(case: &Case<'_>, run: &UserRun) -> bool {
    let earlier = case.jobs[run.job].runs.iter().rfind(|it| it.item == run.item && it.id < run.id);
    // Two takeovers may be for one death, if the first was not over when its own instance died.
    let since = earlier.filter(|it| it.source == Source::Failover).map_or(0, |it| it.started);
    // It may have been claimed before its instance was shut down, and have begun after.
    let since = since.saturating_sub(1_000 + 6 * case.history.scenario.latency.1);
    let lost = case.turns.iter().filter_map(|(at, fact)| match fact {
        Fact::Closed(instance, _) => Some((*at, *instance)),
        Fact::ShutDown(job, instance) if *job == run.job && !waits(case, run, *instance, *at) => {
            Some((*at, *instance))
        }
        _ => None,
    });
    let mut lost = lost.filter(|it| since <= it.0 && it.0 <= run.started);
    lost.any(|(at, instance)| was_busy(case, run, instance, at))
}

/// A leader that is shut down keeps its place until what it runs has ended. Nobody but a leader may take that from it,
/// so it is lost to nobody until its job is over there, or its session.
fn waits(case: &Case<'_>, run: &UserRun, instance: Instance, shut_down: u64) -> bool {
    let lives = case.session_end(instance).is_none_or(|it| it.0 > run.started);
    let over = |it: &&(u64, Fact)| match &it.1 {
        Fact::Stopped(i, job, _) => i.process == instance.process && *job == run.job,
        Fact::Died(process) | Fact::Left(process) => *process == instance.process,
        _ => false,
    };
    lives
        && case.leads_since(run.job, instance, run.started).is_some_and(|since| since < shut_down)
        && !case.turns.iter().take_while(|it| it.0 <= run.started).any(over)
}

/// The instance had begun a round and not cleaned up after it when it was lost, as far as could be seen.
fn was_busy(case: &Case<'_>, run: &UserRun, instance: Instance, lost_at: u64) -> bool {
    let (mut sent, mut done, mut died) = (0, 0, u64::MAX);
    let mut doubted = false;
    for (at, fact) in case.history.facts.iter().take_while(|it| it.0 <= lost_at) {
        match fact {
            Fact::Sent(i, job, Slot::Run) if (*i, *job) == (instance, run.job) => {
                (sent, doubted) = (*at, false)
            }
            Fact::Recorded(i, job, Event::Distrusted) if (*i, *job) == (instance, run.job) => doubted = true,
            Fact::Died(process) if *process == instance.process => died = *at,
            // What was granted to somebody who doubts its session does not start, and stays claimed.
            Fact::Settled(i, job, Slot::Run, Verdict::Done)
                if (*i, *job) == (instance, run.job) && !doubted =>
            {
                done = *at;
            }
            _ => {}
        }
    }
    let here = |it: &&&UserRun| it.instance == instance && it.started <= lost_at;
    let mut runs = case.jobs[run.job].runs.iter().filter(here);
    let over = |it: &UserRun| it.ended.as_ref().is_some_and(|ended| ended.0 < done);
    // Where hooks come first, or the fire is waited for, what was claimed may not have started when it died.
    let held_up = case.has_hooks(run.job) || case.history.scenario.lead > 0;
    // If its last transaction was answered before it died, that was the end of a round.
    sent >= done || done == died || held_up || runs.any(|it| !over(it))
}
