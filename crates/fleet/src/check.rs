//! What must be true of every fleet, also of one with members in other languages: sentences about starts
//! and ends alone. Members of this library promise more, and the simulator's checker judges that.

use std::collections::{BTreeMap, BTreeSet};

use crate::line::{Line, Start, What};

/// One run of one item, put together from its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The process.
    pub process: String,
    /// How it began.
    pub start: Start,
    /// When.
    pub started: u64,
    /// When it ended, if it has.
    pub ended: Option<u64>,
    /// When it saw that it was to stop.
    pub told: Option<u64>,
}

/// All runs, in the order in which they began.
pub fn runs(lines: &[Line]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines {
        match &line.what {
            What::Start(start) => {
                by_name.insert(&start.run, runs.len());
                runs.push(Run {
                    process: line.process.clone(),
                    start: start.clone(),
                    started: line.at,
                    ended: None,
                    told: None,
                });
            }
            What::End { run, .. } => {
                if let Some(at) = by_name.get(run.as_str()) {
                    runs[*at].ended = Some(line.at);
                }
            }
            What::Told { run } => {
                if let Some(at) = by_name.get(run.as_str()) {
                    runs[*at].told.get_or_insert(line.at);
                }
            }
            _ => {}
        }
    }
    runs.sort_by_key(|it| it.started);
    runs
}

/// Where the same item of a job runs twice at a time. `gone` says from when on a process is not to be
/// counted: it was killed, stopped, or cut off for longer than its session lasts, and what it may still do is
/// what fencing is for.
///
/// ```
/// use elasticjob_fleet::{Line, check};
///
/// let line = |at: u64, process: &str| -> Line {
///     let run = format!("{process}-1");
///     format!(r#"{{"at":{at},"process":"{process}","kind":"start","instance":"i","job":"j","item":0,"total":1,"run":"{run}","task":"t"}}"#)
///         .parse().unwrap()
/// };
/// let lines = [line(1, "a"), line(5, "b")];
/// assert_eq!(check::overlaps(&lines, |_| None), ["j: item 0 runs twice at 5: as a-1 since 1 and as b-1"]);
/// assert!(check::overlaps(&lines, |process| (process == "a").then_some(3)).is_empty());
/// ```
pub fn overlaps(lines: &[Line], gone: impl Fn(&str) -> Option<u64>) -> Vec<String> {
    let mut open: BTreeMap<(String, u32), Vec<Run>> = BTreeMap::new();
    let mut found = Vec::new();
    for run in runs(lines) {
        let others = open.entry((run.start.job.clone(), run.start.item)).or_default();
        let over = |it: &Run| it.ended.into_iter().chain(gone(&it.process)).min();
        others.retain(|it| over(it).is_none_or(|over| over > run.started));
        found.extend(others.iter().map(|it| {
            format!(
                "{}: item {} runs twice at {}: as {} since {} and as {}",
                run.start.job, run.start.item, run.started, it.start.run, it.started, run.start.run
            )
        }));
        others.push(run);
    }
    found
}

/// Items of a job that did not start between the two times, of `count` items.
pub fn uncovered(lines: &[Line], job: &str, count: u32, from: u64, until: u64) -> BTreeSet<u32> {
    let started = runs(lines).into_iter().filter(|it| from <= it.started && it.started <= until);
    let mut missing: BTreeSet<u32> = (0..count).collect();
    for run in started.filter(|it| it.start.job == job) {
        missing.remove(&run.start.item);
    }
    missing
}

/// Items whose runs carry a fire, and for which one of those fires started twice.
pub fn repeated(lines: &[Line]) -> Vec<String> {
    let mut seen: BTreeMap<(String, u32, i64), String> = BTreeMap::new();
    let mut found = Vec::new();
    for Run { start, .. } in runs(lines) {
        let Some(fire) = start.fire else { continue };
        let key = (start.job.clone(), start.item, fire);
        if let Some(before) = seen.insert(key, start.run.clone()) {
            found.push(format!(
                "{}: item {} started twice for {fire}: as {before} and as {}",
                start.job, start.item, start.run
            ));
        }
    }
    found
}

/// Runs of processes that live which have gone on for longer than `limit` milliseconds by `now`.
pub fn stuck(lines: &[Line], now: u64, limit: u64, gone: impl Fn(&str) -> Option<u64>) -> Vec<String> {
    let is_stuck = |it: &Run| it.ended.is_none() && gone(&it.process).is_none() && it.started + limit < now;
    let say = |it: Run| {
        format!("{}: item {} runs since {} as {}", it.start.job, it.start.item, it.started, it.start.run)
    };
    runs(lines).into_iter().filter(is_stuck).map(say).collect()
}
