//! What was recorded is what happened: every round, every item, every outcome, once, under a name that is
//! never used again.

use std::collections::{BTreeMap, BTreeSet};

use elasticjob_core::event::{Event, Outcome, Skip};

use super::Violation;
use super::case::{Case, JobCase};
use crate::history::{Fact, UserRun};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str = "what is recorded is what happened, each thing once";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    for (number, job) in case.jobs.iter().enumerate() {
        let mut say = |at, what: String| {
            found.push(Violation { invariant: "history is true", at, what: format!("job {number}: {what}") });
        };
        started(job, &mut say);
        finished(case, number, job, &mut say);
        skipped(case, number, job, &mut say);
    }
}

fn started(job: &JobCase<'_>, say: &mut impl FnMut(Ms, String)) {
    let mut recorded: BTreeMap<&str, (Ms, &BTreeSet<u32>)> = BTreeMap::new();
    for (at, _, event) in &job.events {
        if let Event::RoundStarted { task_id, items, .. } = event
            && recorded.insert(task_id, (*at, items)).is_some()
        {
            say(*at, format!("two rounds are called {task_id}"));
        }
    }
    let mut ran: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for run in &job.runs {
        if !recorded.get(run.task_id.as_str()).is_some_and(|it| it.1.contains(&run.item)) {
            say(run.started, format!("run {} is not on record", run.id));
        }
        ran.entry(&run.task_id).or_default().insert(run.item);
    }
    for (task_id, (at, items)) in recorded {
        let really = ran.get(task_id).cloned().unwrap_or_default();
        // A process that dies between the two has recorded what it was about to start.
        if !really.is_empty() && really != *items {
            say(at, format!("{task_id} is on record with {items:?} and ran {really:?}"));
        }
    }
}

fn finished(case: &Case<'_>, number: usize, job: &JobCase<'_>, say: &mut impl FnMut(Ms, String)) {
    let runs: BTreeMap<(&str, u32), &UserRun> =
        job.runs.iter().map(|it| ((it.task_id.as_str(), it.item), *it)).collect();
    let mut told: BTreeSet<(&str, u32)> = BTreeSet::new();
    // What was asked for early, and told to stop before its fire had come, has not run.
    let unbegun = |task_id: &str| {
        let mut of_round = runs.range((task_id, 0)..=(task_id, u32::MAX));
        case.history.scenario.lead > 0 && of_round.next().is_none()
    };
    for (at, _, event) in &job.events {
        match event {
            Event::ItemFinished { task_id, item, outcome, .. } => {
                let run = runs.get(&(task_id.as_str(), *item));
                let true_so = run.and_then(|it| it.ended.as_ref()).is_some_and(|it| it.1 == *outcome);
                let true_so = true_so || (*outcome == Outcome::Cancelled && unbegun(task_id));
                if !true_so || !told.insert((task_id, *item)) {
                    say(*at, format!("item {item} of {task_id} is on record as {outcome:?}, wrongly"));
                }
            }
            Event::RoundFinished { task_id } => {
                let mut of_round =
                    runs.range((task_id.as_str(), 0)..=(task_id.as_str(), u32::MAX)).peekable();
                let none = of_round.peek().is_none();
                if none && unbegun(task_id) {
                    continue;
                }
                if none || of_round.any(|it| it.1.ended.as_ref().is_none_or(|ended| ended.0 > *at)) {
                    say(*at, format!("{task_id} is on record as finished, and is not"));
                }
            }
            _ => {}
        }
    }
    for run in runs.values().filter(|it| it.ended.is_some()) {
        let over = || {
            case.turns.iter().any(|it| {
                matches!(it.1, Fact::Stopped(i, j, _) if j == number && i.process == run.instance.process)
                    || matches!(it.1, Fact::Died(process) if process == run.instance.process)
            })
        };
        if !told.contains(&(run.task_id.as_str(), run.item)) && !over() {
            say(run.started, format!("the end of run {} is not on record", run.id));
        }
    }
}

fn skipped(case: &Case<'_>, number: usize, job: &JobCase<'_>, say: &mut impl FnMut(Ms, String)) {
    // What was settled just before a removal may be recorded after it.
    let news = case.history.scenario.news_time();
    for (at, _, event) in &job.events {
        let Event::Skipped { nominal: Some(nominal), items, why } = event else { continue };
        if !case.is_monitored(number, *at) || *why == Skip::ClockOff {
            continue;
        }
        let ran = job.runs.iter().find(|it| {
            it.nominal == Some(*nominal)
                && items.contains(&it.item)
                && case.is_monitored_between(number, it.started.min(*at), it.started.max(*at))
                && !job.removed_between(it.started.min(at.saturating_sub(news)), it.started.max(*at))
                && !case.lost_item_between(number, it.item, it.started.min(*at), it.started.max(*at))
                && !case.has_absurd_clocks(it.started.min(*at), it.started.max(*at))
        });
        if let Some(run) = ran {
            say(
                *at,
                format!("{nominal} is on record as skipped for item {}, and ran as {}", run.item, run.id),
            );
        }
    }
}
