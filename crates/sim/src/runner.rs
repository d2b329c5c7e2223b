//! Many seeds, on a few threads: what they did, and what was wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use elasticjob_core::coord::Slot;
use elasticjob_core::event::{Outcome, Source};

use crate::history::{Fact, History};
use crate::invariant::{self, INVARIANTS, Violation};
use crate::world::{self, Tally};

/// What became of one seed.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The seed.
    pub seed: u64,
    /// Everything that is wrong; empty if nothing is.
    pub violations: Vec<Violation>,
}

/// What many seeds did, for the report.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many.
    pub seeds: u64,
    /// Virtual time, in milliseconds.
    pub virtual_ms: u64,
    /// Processes that were started.
    pub processes: u64,
    /// Runs of user code.
    pub runs: u64,
    /// Runs by why they ran.
    pub sources: BTreeMap<Source, u64>,
    /// Runs by how they ended.
    pub ends: BTreeMap<&'static str, u64>,
    /// Writes of user code that the store refused, because a newer token had written.
    pub refused: u64,
    /// What happened to the clusters.
    pub tally: Tally,
    /// Seeds in which something is wrong.
    pub bad: Vec<Judgement>,
    /// How long it took.
    pub took: Duration,
}

/// Lives through a seed and judges it. A panic in the core is a violation too.
pub fn judge(seed: u64) -> (Judgement, Option<(History, Tally)>) {
    match catch_unwind(AssertUnwindSafe(|| world::live(seed, false))) {
        Ok((history, tally, _)) => {
            let violations = invariant::check(&history);
            (Judgement { seed, violations }, Some((history, tally)))
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
            let what = text.unwrap_or_else(|| "a panic".to_owned());
            (Judgement { seed, violations: vec![Violation { invariant: "no panic", at: 0, what }] }, None)
        }
    }
}

/// Runs these seeds. `progress` is told of every bad one at once.
pub fn run(first: u64, seeds: u64, threads: usize, progress: impl Fn(&Judgement) + Sync) -> Summary {
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let total = Mutex::new(Summary::default());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                let mut mine = Summary::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        break;
                    }
                    let (judgement, lived) = judge(seed);
                    mine.add(&judgement, lived);
                    if !judgement.violations.is_empty() {
                        progress(&judgement);
                    }
                }
                total.lock().expect("nobody panics with it").merge(mine);
            });
        }
    });
    let mut total = total.into_inner().expect("nobody panics with it");
    total.bad.sort_by_key(|it| it.seed);
    total.took = began.elapsed();
    total
}

impl Summary {
    fn add(&mut self, judgement: &Judgement, lived: Option<(History, Tally)>) {
        self.seeds += 1;
        if !judgement.violations.is_empty() {
            self.bad.push(judgement.clone());
        }
        let Some((history, tally)) = lived else { return };
        self.virtual_ms += history.scenario.ends_at;
        self.runs += history.runs.len() as u64;
        for run in &history.runs {
            *self.sources.entry(run.source).or_default() += 1;
            let end = match &run.ended {
                Some((_, Outcome::Succeeded)) => "succeeded",
                Some((_, Outcome::Failed(_))) => "failed",
                Some((_, Outcome::Cancelled)) => "cancelled",
                None if run.killed.is_some() => "died with its process",
                None => "still running at the end",
            };
            *self.ends.entry(end).or_default() += 1;
        }
        self.refused +=
            history.facts.iter().filter(|it| matches!(it.1, Fact::Wrote(_, false))).count() as u64;
        self.processes += history.facts.iter().filter(|it| matches!(it.1, Fact::Born(..))).count() as u64;
        self.tally.merge(tally);
    }

    fn merge(&mut self, other: Summary) {
        self.seeds += other.seeds;
        self.virtual_ms += other.virtual_ms;
        self.processes += other.processes;
        self.runs += other.runs;
        self.refused += other.refused;
        add_all(&mut self.sources, other.sources);
        add_all(&mut self.ends, other.ends);
        self.tally.merge(other.tally);
        self.bad.extend(other.bad);
    }

    /// The report, as Markdown.
    pub fn report(&self, command: &str) -> String {
        let mut text = String::new();
        let hours = self.virtual_ms / 3_600_000;
        let seconds = self.took.as_secs_f64();
        let bad = self.bad.len();
        let _ = writeln!(text, "`{command}`\n");
        let _ = writeln!(text, "| | |\n|---|---|\n| seeds | {} |\n| violations | {bad} |", self.seeds);
        let _ = writeln!(text, "| virtual time | {hours} hours |\n| processes | {} |", self.processes);
        let _ = writeln!(
            text,
            "| runs of user code | {} |\n| steps of coordinators | {} |",
            self.runs, self.tally.steps
        );
        let _ = writeln!(text, "| writes refused by their token | {} |", self.refused);
        let _ = writeln!(
            text,
            "| real time | {seconds:.0} s ({:.0} seeds a second) |",
            self.seeds as f64 / seconds
        );
        table(&mut text, "What went wrong, and what operators did", &self.tally.deeds);
        let slots = self.tally.slots.iter().map(|(slot, count)| (format!("{slot:?}"), *count)).collect();
        table(&mut text, "Transactions done, by concern", &slots);
        table(&mut text, "Steps that ended in each state of a round", &self.tally.states);
        let sources = self.sources.iter().map(|(source, count)| (source.to_string(), *count)).collect();
        table(&mut text, "Runs, by reason", &sources);
        table(&mut text, "Runs, by end", &self.ends);
        let _ = writeln!(text, "\nConcerns without a transaction: {}.", self.uncovered());
        let _ = writeln!(text, "\n### What was checked\n");
        for (name, sentence) in INVARIANTS {
            let _ = writeln!(text, "* **{name}**: {sentence}.");
        }
        text
    }

    /// The rules that never acted. [`Slot::Remind`] is about Java leaders, and there are none here.
    fn uncovered(&self) -> String {
        let all = [
            Slot::SetUp,
            Slot::Presence,
            Slot::Election,
            Slot::Reshard,
            Slot::Assign,
            Slot::Crashed,
            Slot::Forget,
            Slot::Orphans,
            Slot::Leftovers,
            Slot::Takeover,
            Slot::Misfire,
            Slot::Run,
        ];
        let idle: Vec<String> =
            all.iter().filter(|it| !self.tally.slots.contains_key(it)).map(|it| format!("{it:?}")).collect();
        if idle.is_empty() { "none".to_owned() } else { idle.join(", ") }
    }
}

impl Tally {
    fn merge(&mut self, other: Tally) {
        add_all(&mut self.deeds, other.deeds);
        add_all(&mut self.slots, other.slots);
        add_all(&mut self.states, other.states);
        self.steps += other.steps;
    }
}

fn add_all<K: Ord>(to: &mut BTreeMap<K, u64>, from: BTreeMap<K, u64>) {
    for (key, count) in from {
        *to.entry(key).or_default() += count;
    }
}

fn table<K: std::fmt::Display>(text: &mut String, title: &str, rows: &BTreeMap<K, u64>) {
    let _ = writeln!(text, "\n### {title}\n\n| | |\n|---|---|");
    for (name, count) in rows {
        let _ = writeln!(text, "| {name} | {count} |");
    }
}
