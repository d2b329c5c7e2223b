//! What the records say, in sentences: the answer's parts, chains of causes, and what is known besides.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::records::{End, Ran, Records};
use super::{Case, Chain, Past};
use crate::event::{Event, Outcome, Source};
use crate::ops::words::shards as listed;

impl Case<'_> {
    /// Which shards ran it, were made up for, or skipped it.
    pub(super) fn told_parts(&self, records: &Records<'_>, running: &BTreeSet<u32>) -> Vec<String> {
        let mut parts = Vec::new();
        let ran: BTreeSet<u32> = records.ran.keys().filter(|it| !running.contains(it)).copied().collect();
        if !ran.is_empty() {
            parts.push(format!("{} ran it{}", listed(&ran), self.endings(records)));
        }
        let made_up: BTreeSet<u32> = records.made_up.keys().copied().collect();
        if !made_up.is_empty() {
            parts.push(format!("{} missed it, and made up for it later", listed(&made_up)));
        }
        let skipped: BTreeSet<u32> = records
            .settled()
            .into_iter()
            .filter(|it| !records.ran.contains_key(it) && !records.made_up.contains_key(it))
            .collect();
        if !skipped.is_empty() {
            parts.push(format!("{} skipped it", listed(&skipped)));
        }
        parts
    }

    fn endings(&self, records: &Records<'_>) -> String {
        let bad = records.ran.iter().filter_map(|(item, run)| {
            let end = run.ended?;
            let at = self.time(end.at);
            match end.outcome {
                Outcome::Failed(error) => Some(format!("shard {item} failed at {at}: {error}")),
                Outcome::Cancelled => Some(format!("shard {item} was cancelled at {at}")),
                Outcome::Succeeded => None,
            }
        });
        let bad: Vec<String> = bad.collect();
        if bad.is_empty() { String::new() } else { format!(" ({})", bad.join("; ")) }
    }

    /// Why it was late, missed, skipped or taken over, by the records.
    pub(super) fn told_chains(&self, records: &Records<'_>, fire: Timestamp) -> Vec<Chain> {
        let mut chains = Vec::new();
        for (began, items, by) in records.late(fire) {
            let what = format!(
                "{} began it {} s late, at {}, on {}",
                listed(&items),
                by.as_secs(),
                self.time(began.at),
                began.instance
            );
            let why = self.what_kept(records, &began.instance, fire, began.at);
            chains.push(Chain::of([what].into_iter().chain(why)));
        }
        for it in &records.skipped {
            let Event::Skipped { items, why, .. } = &it.event else { continue };
            let whose = if items.is_empty() { "its shards".to_owned() } else { listed(items) };
            chains.push(Chain::of([format!("{} skipped {whose}: {why}", it.instance)]));
        }
        for it in &records.missed {
            chains.push(self.told_missed(records, it, fire));
        }
        for (item, run) in &records.taken_over {
            let Some(first) = records.ran.get(item) else { continue };
            let what = format!(
                "shard {item} was taken over by {} at {}",
                run.began.instance,
                self.time(run.began.at)
            );
            let why = format!(
                "{} began it at {}, and did not come to its end: its session ended before",
                first.began.instance,
                self.time(first.began.at)
            );
            chains.push(Chain::of([what, why]));
        }
        chains
    }

    fn told_missed(&self, records: &Records<'_>, it: &Past, fire: Timestamp) -> Chain {
        let Event::Missed { items, .. } = &it.event else { return Chain::default() };
        let mut causes = Vec::new();
        let later = items.iter().find_map(|item| records.made_up.get(item));
        causes.extend(later.map(|(run, nominal)| {
            let (at, whose) = (self.time(run.began.at), &run.began.instance);
            format!("{whose} ran once at {at} for all that was missed up to {}", self.time(*nominal))
        }));
        causes.push(format!("{} could not begin {} in time", it.instance, listed(items)));
        causes.extend(self.what_kept(records, &it.instance, fire, it.at));
        Chain::of(causes)
    }

    /// What kept an instance from beginning between two instants.
    fn what_kept(&self, records: &Records<'_>, who: &str, from: Timestamp, to: Timestamp) -> Option<String> {
        if let Some((lost, back)) = records.cut_off_within(who, from, to) {
            let back = back
                .map_or_else(|| "and did not come back".to_owned(), |at| format!("until {}", self.time(at)));
            return Some(format!("{who} had no connection to the registry from {} {back}", self.time(lost)));
        }
        if let Some((since, ended)) = records.round_at(who, from) {
            let ended =
                ended.map_or_else(|| "has not ended".to_owned(), |at| format!("ended at {}", self.time(at)));
            return Some(format!("its round before, which began at {}, {ended}", self.time(since)));
        }
        if let Some(at) = records.joined_before(who, to).filter(|at| *at > from) {
            return Some(format!("{who} joined only at {}", self.time(at)));
        }
        let handed_out = records.handed_out_before(to).filter(|it| it.at >= from)?;
        Some(format!(
            "the shards were handed out anew at {}, by {}",
            self.time(handed_out.at),
            handed_out.instance
        ))
    }

    /// What the records say about those who did nothing.
    pub(super) fn told_absent(&self, records: &Records<'_>, fire: Timestamp) -> Vec<Chain> {
        let mut chains = Vec::new();
        for who in records.instances() {
            if let Some((lost, back)) = records.cut_off_within(who, fire, fire) {
                let back = back.map(|at| format!(" until {}", self.time(at))).unwrap_or_default();
                chains.push(Chain::of([format!(
                    "{who} had no connection to the registry from {}{back}",
                    self.time(lost)
                )]));
            } else if let Some(stopped) = records.stopped_before(who, fire)
                && let Event::Stopped { reason } = &stopped.event
            {
                chains.push(Chain::of([format!("{who} had ended at {}: {reason}", self.time(stopped.at))]));
            } else if let Some(at) = records.joined_only_after(who, fire) {
                chains.push(Chain::of([format!("{who} joined only at {}", self.time(at))]));
            }
        }
        chains
    }

    /// Who began it, where and why there, and how it ended.
    pub(super) fn told_known(&self, records: &Records<'_>) -> Vec<String> {
        let mut known = Vec::new();
        for (item, run) in records.ran.iter().chain(&records.taken_over) {
            known.push(self.told_run(*item, run));
        }
        for (item, (run, _)) in &records.made_up {
            known.push(self.told_run(*item, run));
        }
        known.extend(self.told_asked(records));
        let first = records.ran.values().map(|it| it.began).min_by_key(|it| it.at);
        if let Some(handed_out) = first.and_then(|it| records.handed_out_before(it.at)) {
            known.push(format!(
                "they ran where they did because {} had handed out the shards so at {}",
                handed_out.instance,
                self.time(handed_out.at)
            ));
        }
        known
    }

    /// Runs that no fire explains, up to the instant that was asked about.
    fn told_asked(&self, records: &Records<'_>) -> Vec<String> {
        let before = |it: &&(u32, Ran<'_>)| it.1.began.at <= self.question.at;
        records.asked.iter().filter(before).map(|(item, run)| self.told_run(*item, run)).collect()
    }

    fn told_run(&self, item: u32, run: &Ran<'_>) -> String {
        told_run(item, run, |at| self.time(at))
    }
}

/// What the records say of a job without a schedule: the runs of its last round up to an instant.
pub(super) fn told_unscheduled(
    past: &[Past],
    at: Timestamp,
    time: impl Fn(Timestamp) -> String,
) -> Vec<String> {
    let records = Records::of(past, Timestamp::MIN);
    let asked: Vec<&(u32, Ran<'_>)> = records.asked.iter().filter(|it| it.1.began.at <= at).collect();
    // Instances begin one after the other: what began in the last minute belongs together.
    let last = asked.iter().map(|it| it.1.began.at).max();
    let since =
        last.and_then(|it| it.checked_sub(SignedDuration::from_mins(1)).ok()).unwrap_or(Timestamp::MIN);
    let lately = asked.into_iter().filter(|it| it.1.began.at >= since);
    lately.map(|(item, run)| told_run(*item, run, &time)).collect()
}

fn told_run(item: u32, run: &Ran<'_>, time: impl Fn(Timestamp) -> String) -> String {
    let why = match run.source {
        Source::Schedule => "on schedule",
        Source::Trigger => "because somebody asked",
        Source::Misfire => "to make up for it",
        Source::Failover => "in place of a dead instance",
    };
    let end = match run.ended {
        None => "no end of it was recorded".to_owned(),
        Some(End { at, outcome, output }) => {
            let output = output.map(|it| format!(", and printed at last:{}", below(it))).unwrap_or_default();
            format!("{} at {}{output}", outcome.name(), time(at))
        }
    };
    format!("shard {item}: began at {} on {} {why}; {end}", time(run.began.at), run.began.instance)
}

/// What somebody printed: one line goes on in the same line, several stand below it.
fn below(text: &str) -> String {
    if text.contains('\n') { format!("\n  {}", text.replace('\n', "\n  ")) } else { format!(" {text}") }
}
