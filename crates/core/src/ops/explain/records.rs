//! What instances recorded about a fire: who ran it, where and when, who skipped it, and what kept them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::Past;
use crate::event::{Event, Outcome, Source};
use crate::view::keeps_cursors;

/// A fire that began later than this was late.
const PROMPT: SignedDuration = SignedDuration::from_secs(1);

/// When and how a run ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct End<'a> {
    pub(super) at: Timestamp,
    pub(super) outcome: &'a Outcome,
    /// What it printed, if that was kept.
    pub(super) output: Option<&'a str>,
}

/// A run of one item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran<'a> {
    pub(super) began: &'a Past,
    pub(super) source: Source,
    pub(super) ended: Option<End<'a>>,
}

/// The records, by what they say about one fire.
#[derive(Debug, Default)]
pub(super) struct Records<'a> {
    all: Vec<&'a Past>,
    /// How items ended, by their round and number.
    ends: BTreeMap<(&'a str, u32), End<'a>>,
    /// Runs for the fire.
    pub(super) ran: BTreeMap<u32, Ran<'a>>,
    /// Runs that made up for it later, with the fire that they stand for.
    pub(super) made_up: BTreeMap<u32, (Ran<'a>, Timestamp)>,
    /// Runs that finished what an instance began that died.
    pub(super) taken_over: BTreeMap<u32, Ran<'a>>,
    /// Skips; an empty set of items stands for all that the instance had.
    pub(super) skipped: Vec<&'a Past>,
    /// Notes that it was missed, to be made up for.
    pub(super) missed: Vec<&'a Past>,
    /// Runs since the fire that somebody asked for.
    pub(super) asked: Vec<(u32, Ran<'a>)>,
}

impl<'a> Records<'a> {
    pub(super) fn of(past: &'a [Past], fire: Timestamp) -> Records<'a> {
        let mut records = Records { all: past.iter().collect(), ..Records::default() };
        records.all.sort_by_key(|it| it.at);
        records.ends = records.all.iter().filter_map(|it| end(it)).collect();
        for it in records.all.clone() {
            records.take(it, fire);
        }
        records
    }

    fn take(&mut self, past: &'a Past, fire: Timestamp) {
        match &past.event {
            Event::RoundStarted { nominal, items, source, merged, task_id } => {
                for &item in items {
                    let ended = self.ends.get(&(task_id.as_str(), item)).copied();
                    let run = Ran { began: past, source: *source, ended };
                    self.sort_in(item, run, *nominal, *merged, fire);
                }
            }
            Event::Skipped { nominal, .. } if *nominal == Some(fire) => self.skipped.push(past),
            Event::Missed { nominal, .. } if *nominal == fire => self.missed.push(past),
            _ => {}
        }
    }

    fn sort_in(&mut self, item: u32, run: Ran<'a>, nominal: Option<Timestamp>, merged: u64, fire: Timestamp) {
        match nominal {
            Some(at) if at == fire => drop(self.ran.entry(item).or_insert(run)),
            Some(at) if at > fire && merged > 0 && !self.ran.contains_key(&item) => {
                self.made_up.entry(item).or_insert((run, at));
            }
            None if run.source == Source::Failover && self.died(item) => {
                self.taken_over.entry(item).or_insert(run);
            }
            None if run.source == Source::Trigger && run.began.at >= fire => self.asked.push((item, run)),
            Some(_) | None => {}
        }
    }

    /// Whether it began here, and nobody recorded its end.
    fn died(&self, item: u32) -> bool {
        self.ran.get(&item).is_some_and(|it| it.ended.is_none())
    }

    /// The items that are known to have been dealt with.
    pub(super) fn settled(&self) -> BTreeSet<u32> {
        let skipped = self.skipped.iter().flat_map(|it| match &it.event {
            Event::Skipped { items, .. } => items.clone(),
            _ => BTreeSet::new(),
        });
        self.ran.keys().chain(self.made_up.keys()).copied().chain(skipped).collect()
    }

    /// Rounds for the fire that began late, each once, with its items and how late it was.
    pub(super) fn late(&self, fire: Timestamp) -> Vec<(&'a Past, BTreeSet<u32>, SignedDuration)> {
        let mut late: Vec<(&Past, BTreeSet<u32>, SignedDuration)> = Vec::new();
        for (item, run) in &self.ran {
            let by = run.began.at.duration_since(fire);
            match late.iter_mut().find(|it| std::ptr::eq(it.0, run.began)) {
                Some((_, items, _)) => drop(items.insert(*item)),
                None if by > PROMPT => late.push((run.began, BTreeSet::from([*item]), by)),
                None => {}
            }
        }
        late
    }

    /// The times that an instance was without the registry: from when to when, if it came back.
    fn cut_off(&self, instance: &str) -> Vec<(Timestamp, Option<Timestamp>)> {
        let mut times: Vec<(Timestamp, Option<Timestamp>)> = Vec::new();
        for it in self.all.iter().filter(|it| same_process(&it.instance, instance)) {
            match (&it.event, times.last_mut()) {
                (Event::Suspended | Event::Distrusted, Some((_, None))) => {}
                (Event::Suspended | Event::Distrusted, _) => times.push((it.at, None)),
                (Event::Reconnected | Event::Registered { .. }, Some((_, back @ None))) => {
                    *back = Some(it.at)
                }
                _ => {}
            }
        }
        times
    }

    /// When an instance was without the registry between two instants.
    pub(super) fn cut_off_within(
        &self,
        instance: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Option<(Timestamp, Option<Timestamp>)> {
        let overlaps = |(lost, back): &(Timestamp, Option<Timestamp>)| {
            *lost <= to && back.is_none_or(|back| back >= from)
        };
        self.cut_off(instance).into_iter().find(overlaps)
    }

    /// The round of an instance that was on at an instant: when it began, and when it ended, if it did.
    pub(super) fn round_at(&self, instance: &str, at: Timestamp) -> Option<(Timestamp, Option<Timestamp>)> {
        let own = || self.all.iter().filter(|it| it.instance == instance);
        let began = own().rev().find_map(|it| match &it.event {
            Event::RoundStarted { task_id, .. } if it.at < at => Some((it.at, task_id)),
            _ => None,
        });
        let (since, round) = began?;
        let ended = own().find_map(|it| match &it.event {
            Event::RoundFinished { task_id } if task_id == round => Some(it.at),
            _ => None,
        });
        ended.is_none_or(|end| end >= at).then_some((since, ended))
    }

    /// The last time that a leader handed out shards before an instant.
    pub(super) fn handed_out_before(&self, at: Timestamp) -> Option<&'a Past> {
        self.all.iter().rev().find(|it| it.at <= at && matches!(it.event, Event::Resharded { .. })).copied()
    }

    /// The last time that an instance was registered before an instant.
    pub(super) fn joined_before(&self, instance: &str, at: Timestamp) -> Option<Timestamp> {
        let joined = |it: &&&Past| {
            same_process(&it.instance, instance)
                && it.at <= at
                && matches!(it.event, Event::Registered { .. })
        };
        self.all.iter().rev().find(joined).map(|it| it.at)
    }

    /// Everybody who recorded anything, by the id that each had last.
    pub(super) fn instances(&self) -> BTreeSet<&'a str> {
        let known = self.all.iter().map(|it| it.instance.as_str()).filter(|it| !it.is_empty());
        known.map(|it| (process(it), it)).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Why an instance had ended its part in the job by an instant, if it had.
    pub(super) fn stopped_before(&self, instance: &str, at: Timestamp) -> Option<&'a Past> {
        let own = self.all.iter().rev().filter(|it| same_process(&it.instance, instance) && it.at <= at);
        let mut of_its_life =
            own.filter(|it| matches!(it.event, Event::Stopped { .. } | Event::Registered { .. }));
        of_its_life.next().filter(|it| matches!(it.event, Event::Stopped { .. })).copied()
    }

    /// When an instance first joined, if that was after an instant.
    pub(super) fn joined_only_after(&self, instance: &str, at: Timestamp) -> Option<Timestamp> {
        let mut own = self.all.iter().filter(|it| same_process(&it.instance, instance));
        own.next().filter(|it| it.at > at && matches!(it.event, Event::Registered { .. })).map(|it| it.at)
    }
}

/// A round's name is unique, and so is an item in it.
fn end(past: &Past) -> Option<((&str, u32), End<'_>)> {
    match &past.event {
        Event::ItemFinished { task_id, item, outcome, output } => {
            Some(((task_id, *item), End { at: past.at, outcome, output: output.as_deref() }))
        }
        _ => None,
    }
}

/// An id names a session. What stands before its last dot names the process, which may have had several.
fn process(instance: &str) -> &str {
    if keeps_cursors(instance) { instance.rsplit_once('.').map_or(instance, |it| it.0) } else { instance }
}

fn same_process(a: &str, b: &str) -> bool {
    process(a) == process(b)
}
