//! A round costs two transactions for whoever has items and none for the others, and nobody ever floods the
//! registry.

use std::collections::{BTreeMap, BTreeSet};

use elasticjob_core::coord::{Slot, Verdict};
use elasticjob_core::event::{Event, Source};
use elasticjob_core::spec::JobSpec;

use super::Violation;
use super::case::{Case, takes_turns};
use crate::history::{Fact, Instance, ProcessId, UserRun};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str = "in a calm cluster a round costs its instance two transactions, and idle instances none; nobody floods the registry";

/// Transactions of one job and process within [`FLOOD`], whatever goes wrong.
const MOST: usize = 120;
const FLOOD: Ms = 10_000;

/// Where hooks are called once, a round stands in line before and after it, and leaves the line.
const CALLS: usize = 4;

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    let mut sent: BTreeMap<(usize, ProcessId), Vec<Ms>> = BTreeMap::new();
    let mut read: BTreeMap<(usize, ProcessId), Vec<Ms>> = BTreeMap::new();
    for (at, fact) in &case.history.facts {
        match fact {
            Fact::Sent(instance, job, _) => sent.entry((*job, instance.process)).or_default().push(*at),
            Fact::Resynced(instance, job) => read.entry((*job, instance.process)).or_default().push(*at),
            _ => {}
        }
    }
    for ((job, process), times) in &sent {
        if let Some(burst) = times.windows(MOST).find(|it| it[MOST - 1] - it[0] < FLOOD) {
            let what = format!("job {job}: process {process} sends {MOST} transactions in ten seconds");
            found.push(Violation { invariant: "bounded", at: burst[0], what });
        }
        steady(case, *job, *process, times, found);
    }
    waits_for_ever(case, found);
    for ((job, process), times) in read {
        for stretch in &case.calm {
            let Some(spec) = case.jobs[job].config_at(stretch.0) else { continue };
            let minutes = Ms::try_from(spec.reconcile_interval_minutes).unwrap_or_default();
            let allowed = (stretch.1 - stretch.0).checked_div(minutes * 60_000).map_or(0, |it| it + 2);
            let done = within(&times, *stretch) as Ms;
            if done > allowed {
                let what =
                    format!("job {job}: process {process} reads everything {done} times, not {allowed}");
                found.push(Violation { invariant: "bounded", at: stretch.0, what });
            }
        }
    }
}

/// A leader waits for running items once, and not for long, also if there are to be more or fewer of them
/// meanwhile.
fn waits_for_ever(case: &Case<'_>, found: &mut Vec<Violation>) {
    let bound = 11_000 + 10 * case.history.scenario.latency.1 + 2 * case.clock_error();
    for (at, fact) in &case.history.facts {
        let Fact::Settled(instance, job, Slot::Reshard, Verdict::Done) = fact else { continue };
        let until = at + bound;
        // One whose host was disabled, before he heard of it perhaps, leaves it to others.
        let made = |it: &&(Ms, Instance, &Event)| match it.2 {
            Event::Resharded { .. } => *at <= it.0 && it.0 <= until,
            Event::Abdicated => at.saturating_sub(1_000) <= it.0 && it.0 <= until && it.1 == *instance,
            _ => false,
        };
        let left_alone = case.is_left_alone(*at, until, |it| matches!(it, Fact::Config(_, Some(_))));
        // Who does not hear the answer finds it made, and does not say so.
        let may_be_made = case.history.facts.iter().any(|(then, fact)| {
            matches!(fact, Fact::Settled(i, j, Slot::Assign, Verdict::Unknown) if (i, j) == (instance, job))
                && *at <= *then
                && *then <= until
        });
        // Where the last of all was shut down just before, there is nobody left to make it; nor where the job was removed.
        let exists = case.jobs[*job].existence.iter().take_while(|it| it.0 <= *at).last();
        let undisturbed = left_alone && exists.is_some_and(|it| it.1) && case.anybody_may_work(*job, *at);
        if undisturbed
            && !may_be_made
            && until <= case.history.scenario.ends_at
            && !case.jobs[*job].events.iter().any(|it| made(&it))
        {
            let what = format!("job {job}: a new assignment is not made within {bound} ms");
            found.push(Violation { invariant: "bounded", at: *at, what });
        }
    }
}

fn steady(case: &Case<'_>, job: usize, process: ProcessId, sent: &[Ms], found: &mut Vec<Violation>) {
    for stretch in &case.calm {
        let Some(spec) = case.jobs[job].config_at(stretch.0) else { continue };
        let rounds = rounds(case, job, process, *stretch);
        let cost: usize = rounds.values().map(|source| cost(spec, *source)).sum();
        // The last ones may be for a round that has yet to begin.
        let begins = 2_000 + case.history.scenario.jobs[job].longest_calls();
        let done = within(sent, (stretch.0, stretch.1.saturating_sub(begins)));
        // Those who ask for the registry's time for the first time get into each other's way.
        let asking = if spec.max_time_diff_seconds >= 0 { 2 } else { 0 };
        let clearing = usize::from(clears_old_marks(case, job, process, *stretch));
        let besides =
            remarks(case, job, process, *stretch) + calls(case, job, process, rounds.len(), *stretch);
        if done > cost + besides + asking + clearing {
            let what =
                format!("job {job}: process {process} sends {done} transactions for {} rounds", rounds.len());
            found.push(Violation { invariant: "bounded", at: stretch.0, what });
        }
    }
}

/// A round that is on at an end of the stretch has one of its two transactions within it.
fn rounds(case: &Case<'_>, job: usize, process: ProcessId, stretch: (Ms, Ms)) -> BTreeMap<u64, Source> {
    let setup = &case.history.scenario.jobs[job];
    let around = match setup.hooks.once {
        // It begins with a call before, and ends with one after the last item of all instances.
        Some(_) => 2_000 + setup.longest_calls() + setup.longest_run(),
        None => 2_000 + setup.longest_calls(),
    };
    let on = case.jobs[job].runs.iter().filter(|it| it.instance.process == process);
    let on = on.filter(|it| {
        it.started <= stretch.1 + around && it.over().is_none_or(|over| over + around >= stretch.0)
    });
    on.map(|it| (it.round, it.source)).collect()
}

/// Standing in line and taking over are two. What is missed costs a mark, and what is skipped by a clock that is off has
/// been claimed. Who has waited for a hook in vain takes away what it registered.
fn remarks(case: &Case<'_>, job: usize, process: ProcessId, stretch: (Ms, Ms)) -> usize {
    let costs = |event: &Event| match event {
        Event::Missed { .. } | Event::Skipped { .. } | Event::TookOver { .. } => true,
        Event::HookFailed { error, .. } => error.starts_with("not called in time"),
        _ => false,
    };
    let told = case.jobs[job].events.iter().filter(|it| it.1.process == process && costs(it.2));
    let told = told.map(|it| it.0).filter(|at| stretch.0 <= *at && *at <= stretch.1 + 2_000);
    2 * told.collect::<BTreeSet<Ms>>().len()
}

/// What hooks cost that are called once: standing in lines, and leaving them. Who lets the others go is refused, and
/// tries again, when one of them registers at that moment. At either end of the stretch there may be one more, for a round
/// whose items have long ended here, or have not started yet.
fn calls(case: &Case<'_>, job: usize, process: ProcessId, rounds: usize, stretch: (Ms, Ms)) -> usize {
    if case.history.scenario.jobs[job].hooks.once.is_none() {
        return 0;
    }
    let refused = |it: &&(Ms, Fact)| match it.1 {
        Fact::Settled(i, j, Slot::Before | Slot::After, Verdict::Refused) => {
            i.process == process && j == job && stretch.0 <= it.0 && it.0 <= stretch.1
        }
        _ => false,
    };
    let refused = case.history.facts.iter().filter(refused).count();
    CALLS * (rounds + 2) + refused.min(rounds * case.able(job, stretch.0).len())
}

/// The first round without monitoring finds marks on its items, which were left before the stretch: of requests to the
/// dead, or of fires that were missed. It takes them away, once.
fn clears_old_marks(case: &Case<'_>, job: usize, process: ProcessId, stretch: (Ms, Ms)) -> bool {
    let job = &case.jobs[job];
    let mut marked: BTreeSet<u32> = BTreeSet::new();
    for (at, _, event) in job.events.iter().take_while(|it| it.0 < stretch.0) {
        let (Event::TriggerHandedOn { items, .. } | Event::Missed { items, .. }) = event else { continue };
        // What was asked for, or taken over, leaves the marks of missed fires.
        let makes_up = |it: &UserRun| matches!(it.source, Source::Schedule | Source::Misfire);
        let ran_since = |item: &u32| {
            let mut since = job.runs.iter().filter(|it| *at < it.started && it.started < stretch.0);
            since.any(|it| it.item == *item && makes_up(it))
        };
        marked.extend(items.iter().filter(|item| !ran_since(item)));
    }
    let monitored = job.config_at(stretch.0).is_none_or(|it| it.monitor_execution);
    let of_stretch = |it: &&&UserRun| stretch.0 <= it.started && it.started <= stretch.1 + 2_000;
    let mut here = job.runs.iter().filter(of_stretch).filter(|it| it.instance.process == process);
    !monitored && here.any(|it| marked.contains(&it.item))
}

fn cost(spec: &JobSpec, source: Source) -> usize {
    if spec.monitor_execution {
        return 2;
    }
    let asks_the_time = spec.max_time_diff_seconds >= 0;
    let clears_mark = source != Source::Schedule;
    usize::from(asks_the_time || clears_mark) + usize::from(takes_turns(spec))
}

fn within(times: &[Ms], stretch: (Ms, Ms)) -> usize {
    times.iter().filter(|at| stretch.0 <= **at && **at <= stretch.1).count()
}
