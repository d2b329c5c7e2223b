//! A request to run now is answered once: by a run, or by a recorded reason why not.

use std::collections::BTreeMap;

use elasticjob_core::coord::{Slot, Verdict};
use elasticjob_core::event::{Event, Source};

use super::Violation;
use super::case::{Case, takes_turns};
use crate::history::{Fact, Instance, UserRun};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str = "a trigger runs exactly once on every instance that was asked and lives";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    for job in 0..case.jobs.len() {
        let ran = case.jobs[job].runs.iter().filter(|it| it.source == Source::Trigger);
        let ran = ran.map(|it| it.instance);
        let mut instances: Vec<Instance> = asked(case, job).map(|it| it.1).chain(ran).collect();
        instances.sort_unstable();
        instances.dedup();
        for instance in instances {
            count(case, job, instance, found);
        }
        handed_on(case, job, found);
    }
}

/// What runs for no fire was asked for, of somebody who is gone.
fn handed_on(case: &Case<'_>, job: usize, found: &mut Vec<Violation>) {
    let mut ran: BTreeMap<u32, usize> = BTreeMap::new();
    let runs = case.jobs[job].runs.iter().filter(|it| it.source == Source::Misfire && it.nominal.is_none());
    for run in runs {
        let gone = |it: &(Ms, Instance)| it.0 <= run.started && may_be_gone(case, job, it.1, run.started);
        let count = ran.entry(run.item).or_default();
        *count += 1;
        // A mark that an absurd clock left for a fire of its own names none. It waits for as long as the item runs.
        let before = case.jobs[job].runs.iter().rfind(|it| it.item == run.item && it.id < run.id);
        let absurd = case.has_absurd_clocks(before.map_or(0, |it| it.started), run.started);
        let excused = absurd || is_of_old_schedule(case, job, run);
        if *count > asked(case, job).filter(gone).count() && !excused {
            let what =
                format!("job {job}: item {} runs for no fire, and nobody asked (run {})", run.item, run.id);
            found.push(Violation { invariant: "triggers", at: run.started, what });
        }
    }
}

/// It makes up for a fire of a schedule that no longer stands. Who noted it may have died before he could say
/// so.
fn is_of_old_schedule(case: &Case<'_>, job: usize, run: &UserRun) -> bool {
    let config = |it: &&&(Ms, Fact)| matches!(it.1, Fact::Config(j, _) if j == job);
    let mut changes = case.turns.iter().filter(config).skip(1);
    changes.any(|it| it.0 <= run.started && run.started <= it.0 + 120_000)
}

fn may_be_gone(case: &Case<'_>, job: usize, instance: Instance, at: Ms) -> bool {
    let over = case.session_end(instance).is_some_and(|it| it.0 <= at);
    let ended = case.turns.iter().take_while(|it| it.0 <= at).any(|it| match it.1 {
        Fact::ShutDown(j, i) => (j, i) == (job, instance),
        Fact::Leaving(process) => process == instance.process,
        _ => false,
    });
    over || ended
}

fn asked<'a>(case: &'a Case<'_>, job: usize) -> impl Iterator<Item = (Ms, Instance)> + 'a {
    case.turns.iter().flat_map(move |(at, fact)| match fact {
        Fact::Triggered(j, instances) if *j == job => instances.iter().map(|it| (*at, *it)).collect(),
        _ => Vec::new(),
    })
}

fn count(case: &Case<'_>, job: usize, instance: Instance, found: &mut Vec<Violation>) {
    let times: Vec<Ms> = asked(case, job).filter(|it| it.1 == instance).map(|it| it.0).collect();
    let mut answers: Vec<(u64, Ms)> = case.jobs[job]
        .runs
        .iter()
        .filter(|it| it.instance == instance && it.source == Source::Trigger)
        .map(|it| (it.round, it.started))
        .collect();
    answers.dedup_by_key(|it| it.0);
    let skipped = case.jobs[job]
        .events
        .iter()
        .filter(|it| it.1 == instance)
        .filter(|it| matches!(it.2, Event::Skipped { nominal: None, .. }))
        .count();
    let answered = answers.len() + skipped;
    if answers.len() > times.len() {
        let what =
            format!("job {job}: {instance:?} was asked {} times and ran {}", times.len(), answers.len());
        found.push(Violation { invariant: "triggers", at: answers[times.len()].1, what });
    }
    let Some(&first) = times.first() else { return };
    let lives = case.session_end(instance).is_none();
    let stopped = case
        .turns
        .iter()
        .any(|it| matches!(it.1, Fact::Stopped(i, j, _) if j == job && i.process == instance.process));
    if lives
        && !stopped
        && answered < times.len()
        && !is_in_doubt(case, job, instance, first)
        && !case.jobs[job].removed_between(first, Ms::MAX)
    {
        let what = format!("job {job}: {instance:?} was asked {} times and answered {answered}", times.len());
        found.push(Violation { invariant: "triggers", at: first, what });
    }
}

/// That there was nothing to run is told with the answer, and an answer that was lost on its way is not recorded.
/// Without marks, whoever claims again, because a claim was refused, may take two requests for one.
fn is_in_doubt(case: &Case<'_>, job: usize, instance: Instance, since: Ms) -> bool {
    case.history.facts.iter().filter(|it| it.0 >= since).any(|(at, fact)| match fact {
        Fact::Settled(i, j, Slot::Run, verdict) if (*i, *j) == (instance, job) => match verdict {
            Verdict::Done => false,
            Verdict::Refused => !case.is_monitored(job, *at),
            Verdict::Unknown => !has_items(case, job, instance, *at),
        },
        _ => false,
    })
}

/// The instance ran something under marks before that, and nothing but losses has come in between: it still has
/// that to run, and sees by the marks what became of its claim.
fn has_items(case: &Case<'_>, job: usize, instance: Instance, at: Ms) -> bool {
    let until = at + case.history.scenario.session_timeout;
    let runs = &case.jobs[job].runs;
    let Some(run) = runs.iter().rfind(|it| it.instance == instance && it.started < at) else { return false };
    let loss = |it: &Fact| matches!(it, Fact::Fault("lost answers" | "lost requests", _));
    let moved = |it: &(Ms, Instance, &Event)| {
        (run.started..=until).contains(&it.0) && matches!(it.2, Event::Resharded { .. })
    };
    let turns = case.jobs[job].config_at(at).is_some_and(takes_turns);
    case.is_monitored_between(job, run.started, until)
        && case.is_left_alone(run.started, until, loss)
        && !case.jobs[job].events.iter().any(moved)
        && !turns
}
