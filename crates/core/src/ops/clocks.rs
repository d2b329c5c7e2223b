//! Whose clock is wrong? Whoever begins a fire of a shard that is his notes in its cursor what his clock shows; the
//! registry notes beside it what its own does. The difference is how far apart the two are, and how long the
//! transaction was on its way.

use std::collections::BTreeMap;

use elasticjob_cron::Zone;
use jiff::{SignedDuration, Timestamp};

use super::JobTree;
use super::check::{Finding, Level};
use super::words::time;
use crate::node::Node;
use crate::view::{ip_of, read_clock};

/// A smaller difference may be a slow transaction.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

/// What is known of a clock.
#[derive(Clone, Debug)]
struct Reading<'a> {
    job: &'a str,
    instance: &'a str,
    /// By the registry's clock.
    at: Timestamp,
    /// How far it is ahead of the registry's; negative if it is behind.
    ahead: SignedDuration,
}

/// Clocks of living instances that differ from the registry's, by the last thing that each of them wrote; and that
/// of whoever asks, if it can be told.
///
/// ```
/// use elasticjob_core::ops::clocks;
/// use elasticjob_cron::Zone;
///
/// assert!(clocks::compare(&[], jiff::Timestamp::UNIX_EPOCH, &Zone::UTC).is_empty());
/// ```
pub fn compare(trees: &[JobTree], now: Timestamp, zone: &Zone) -> Vec<Finding> {
    let mut last: BTreeMap<&str, Reading<'_>> = BTreeMap::new();
    for reading in trees.iter().flat_map(readings) {
        let known = last.entry(reading.instance).or_insert_with(|| reading.clone());
        if known.at < reading.at {
            *known = reading;
        }
    }
    let readings: Vec<Reading<'_>> = last.into_values().collect();
    let off = |it: &&Reading<'_>| it.ahead.abs() > TOLERANCE;
    let mut found = match all_alike(&readings) {
        Some(reading) => vec![the_registrys(reading, readings.len())],
        None => readings.iter().filter(off).map(|it| an_instances(it, zone)).collect(),
    };
    found.extend(ours(trees, now));
    found
}

/// What the cursors of a job say. One that somebody else wrote since has no clock in it.
fn readings(tree: &JobTree) -> impl Iterator<Item = Reading<'_>> {
    tree.view.items.iter().filter_map(|(&item, state)| {
        let owner = state.owner.as_ref().filter(|it| tree.view.is_alive(&it.by))?;
        let cursor = tree.entries.get(&Node::Cursor(item).path())?;
        let at = cursor.stat.modified;
        let ahead = read_clock(&cursor.data)?.duration_since(at);
        Some(Reading { job: &tree.name, instance: &owner.by, at, ahead })
    })
}

/// If several clocks differ from the registry's by the same, it is the registry's that is wrong.
fn all_alike<'a, 'b>(readings: &'b [Reading<'a>]) -> Option<&'b Reading<'a>> {
    let first = readings.first().filter(|it| readings.len() > 1 && it.ahead.abs() > TOLERANCE)?;
    let hosts = readings.iter().any(|it| ip_of(it.instance) != ip_of(first.instance));
    let alike = readings.iter().all(|it| (it.ahead - first.ahead).abs() <= TOLERANCE);
    (hosts && alike).then_some(first)
}

fn an_instances(it: &Reading<'_>, zone: &Zone) -> Finding {
    let what = format!(
        "the clock of {} is {} the registry's, as of {}",
        it.instance,
        difference(it.ahead),
        time(it.at, zone)
    );
    let host = ip_of(it.instance);
    let remedy = format!("set the clock of {host} (see to its NTP): every instance fires by its own clock");
    Finding { level: Level::Problem, job: it.job.to_owned(), what, remedy }
}

fn the_registrys(it: &Reading<'_>, count: usize) -> Finding {
    let what = format!(
        "the clocks of all {count} instances are {} the registry's: it is wrong",
        difference(it.ahead)
    );
    let remedy = "set the clocks of the registry's servers (see to their NTP): ages and `maxTimeDiffSeconds` go by them".to_owned();
    Finding { level: Level::Problem, job: it.job.to_owned(), what, remedy }
}

/// Nothing was written later than now.
fn ours(trees: &[JobTree], now: Timestamp) -> Option<Finding> {
    let newest = |tree: &JobTree| tree.entries().map(|it| it.stat.modified).max();
    let (at, tree) = trees.iter().filter_map(|it| Some((newest(it)?, it))).max_by_key(|it| it.0)?;
    let behind = at.duration_since(now);
    (behind > TOLERANCE).then(|| Finding {
        level: Level::Note,
        job: tree.name.clone(),
        what: format!("the clock of this machine is at least {} the registry's", difference(-behind)),
        remedy: "set it; until then, the ages that commands tell here are too small".to_owned(),
    })
}

/// `12 s ahead of`, `3 min behind`.
fn difference(ahead: SignedDuration) -> String {
    let seconds = ahead.as_secs().abs();
    let amount = if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds / 60) };
    let way = if ahead.is_negative() { "behind" } else { "ahead of" };
    format!("{amount} {way}")
}
