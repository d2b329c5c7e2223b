//! What the workers wrote, and what it amounts to.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};

/// One run of one item. All times are microseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) job: u32,
    pub(crate) item: u32,
    /// The time for which it was scheduled; 0 if for none.
    pub(crate) nominal: i64,
    /// When the user's code began.
    pub(crate) start: i64,
}

/// All that a worker has written so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Samples {
    /// When all jobs were registered.
    pub(crate) ready: Option<i64>,
    pub(crate) runs: Vec<Run>,
    /// When each item of each job began its first run.
    first: BTreeMap<(u32, u32), i64>,
    /// Rows so far, and when.
    pub(crate) rows: Vec<(i64, i64)>,
}

impl Samples {
    /// Takes a whole line.
    pub(crate) fn add(&mut self, line: &str) -> Result<()> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let numbers: Result<Vec<i64>, _> = rest.split(' ').map(str::parse).collect();
        let numbers = numbers.with_context(|| format!("a worker wrote `{line}`: numbers were expected"))?;
        match (kind, numbers.as_slice()) {
            ("ready", &[at]) => self.ready = Some(at),
            ("rows", &[count, at]) => self.rows.push((count, at)),
            ("run", &[job, item, nominal, start]) => {
                let run = Run { job: u32::try_from(job)?, item: u32::try_from(item)?, nominal, start };
                let first = self.first.entry((run.job, run.item)).or_insert(start);
                *first = start.min(*first);
                self.runs.push(run);
            }
            _ => bail!("a worker wrote `{line}`: `ready`, `rows` or `run` was expected"),
        }
        Ok(())
    }

    /// When the last of so many items in all began its first run; `None` if some have had none.
    pub(crate) fn all_began(&self, items: usize) -> Option<i64> {
        if self.first.len() < items { None } else { self.first.values().max().copied() }
    }

    /// Rows a second between the first and the last count in this stretch of time.
    pub(crate) fn rows_per_second(&self, from: i64, to: i64) -> Option<f64> {
        let mut within = self.rows.iter().filter(|(_, at)| (from..to).contains(at));
        let first = within.next()?;
        let last = within.next_back()?;
        Some((last.0 - first.0) as f64 / seconds(last.1 - first.1))
    }
}

/// Microseconds as seconds.
pub(crate) fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

/// How late the runs of a stretch of time began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lateness {
    pub(crate) p50: i64,
    pub(crate) p99: i64,
    pub(crate) max: i64,
    /// Fires for which an item should have run and did not.
    pub(crate) missed: usize,
    pub(crate) expected: usize,
}

/// The lateness of what was scheduled in this stretch of whole seconds, with so many items in all firing each second.
pub(crate) fn lateness(runs: &[Run], items: usize, from: i64, to: i64) -> Result<Lateness> {
    let within: Vec<&Run> = runs.iter().filter(|it| (from..to).contains(&it.nominal)).collect();
    let distinct: BTreeSet<(u32, u32, i64)> = within.iter().map(|it| (it.job, it.item, it.nominal)).collect();
    if distinct.len() < within.len() {
        bail!("{} of {} runs were second runs for a fire", within.len() - distinct.len(), within.len());
    }
    let mut late: Vec<i64> = within.iter().map(|it| it.start - it.nominal).collect();
    late.sort_unstable();
    let Some(max) = late.last().copied() else { bail!("nothing ran within the measured time") };
    let expected = items * usize::try_from((to - from) / 1_000_000)?;
    let missed = expected.saturating_sub(distinct.len());
    Ok(Lateness { p50: percentile(&late, 50), p99: percentile(&late, 99), max, missed, expected })
}

/// The smallest sample that is not less than so many percent of all.
fn percentile(sorted: &[i64], percent: usize) -> i64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// The middle of the rounds, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Spread { median, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(job: u32, second: i64, late: i64) -> Run {
        Run { job, item: 0, nominal: second * 1_000_000, start: second * 1_000_000 + late }
    }

    #[test]
    fn lines_are_read_and_others_are_refused() {
        let mut samples = Samples::default();
        for line in ["ready 5", "run 3 1 1000000 1000200", "rows 100 7"] {
            samples.add(line).unwrap();
        }
        assert_eq!(samples.ready, Some(5));
        assert_eq!(samples.runs, [Run { job: 3, item: 1, nominal: 1_000_000, start: 1_000_200 }]);
        assert_eq!(samples.rows, [(100, 7)]);
        for wrong in ["", "run 1 2", "ready soon", "run -1 0 0 0", "began 1"] {
            assert!(samples.add(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn percentiles_are_samples_and_misses_are_counted() {
        // Jobs 0 and 1, seconds 1 to 50: the 100 fires are late by 0, 1, … 99 µs, and the last one is missing.
        let mut runs: Vec<Run> = (0..99).map(|n| run(n % 2, 1 + i64::from(n / 2), i64::from(n))).collect();
        runs.push(run(0, 51, 9_999)); // After the measured time.
        let found = lateness(&runs, 2, 1_000_000, 51_000_000).unwrap();
        assert_eq!(found, Lateness { p50: 49, p99: 98, max: 98, missed: 1, expected: 100 });
    }

    #[test]
    fn a_second_run_for_a_fire_is_an_error() {
        let runs = [run(0, 1, 5), run(0, 1, 900)];
        assert!(lateness(&runs, 1, 0, 2_000_000).is_err());
        assert!(lateness(&[], 1, 0, 2_000_000).is_err());
    }

    #[test]
    fn all_began_when_the_last_item_had_its_first_run() {
        let mut samples = Samples::default();
        for line in ["run 0 0 1000000 1000000", "run 0 0 2000000 2000000"] {
            samples.add(line).unwrap();
        }
        assert_eq!(samples.all_began(2), None);
        for line in ["run 1 0 3000000 3000007", "run 1 0 2000000 2000009"] {
            samples.add(line).unwrap();
        }
        assert_eq!(samples.all_began(2), Some(2_000_009));
    }

    #[test]
    fn rows_are_counted_between_the_first_and_the_last_count() {
        let rows = vec![(0, 0), (100, 1_000_000), (500, 3_000_000), (900, 9_000_000)];
        let samples = Samples { rows, ..Samples::default() };
        assert_eq!(samples.rows_per_second(1, 4_000_000), Some(200.0));
        assert_eq!(samples.rows_per_second(1, 2_000_000), None);
    }

    #[test]
    fn a_spread_has_the_median_in_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0]), Some(Spread { median: 2.5, least: 1.0, most: 4.0 }));
        assert_eq!(Spread::of([]), None);
    }
}
