//! The tables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Debug, Write as _};

use anyhow::Result;

use crate::failover::{Death, SESSION};
use crate::leave::Leave;
use crate::load::{Idle, Load, Measured};
use crate::pause::{Pauses, Scene};
use crate::reshard::Resharded;
use crate::samples::Spread;
use crate::side::{Side, Usage};
use crate::wire::Costs;

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) loads: Vec<(Load, Side, Measured)>,
    pub(crate) baselines: BTreeMap<Side, Usage>,
    pub(crate) deaths: BTreeMap<Side, Vec<Death>>,
    pub(crate) leaves: BTreeMap<Side, Vec<Leave>>,
    /// Rows a second, by items and side.
    pub(crate) rows: BTreeMap<(usize, Side), Vec<f64>>,
    pub(crate) idle: Vec<(Side, Idle)>,
    pub(crate) resharded: Vec<Resharded>,
    pub(crate) pauses: Vec<(Scene, Pauses)>,
    pub(crate) wire: BTreeMap<Side, Costs>,
    /// What could not be measured, and why.
    pub(crate) failed: Vec<String>,
}

/// A column: its title, its decimals, and its value in one measurement.
struct Column<'a> {
    title: &'static str,
    decimals: usize,
    value: Box<Value<'a>>,
}

type Value<'a> = dyn Fn(&Load, Side, &Measured) -> Option<f64> + 'a;

/// Decimals, and what Java and Rust took.
type Cell = (usize, Option<Spread>, Option<Spread>);

impl<'a> Column<'a> {
    fn new(
        title: &'static str,
        decimals: usize,
        value: impl Fn(&Load, Side, &Measured) -> Option<f64> + 'a,
    ) -> Column<'a> {
        Column { title, decimals, value: Box::new(value) }
    }
}

impl Results {
    /// The tables, as Markdown.
    pub(crate) fn tables(&self) -> String {
        let mut text = String::new();
        if !self.loads.is_empty() {
            self.table(&mut text, "Lateness, and fires missed", &lateness_columns());
            self.table(&mut text, "Start-up, in seconds from the start of the process", &start_columns());
            self.table(&mut text, "Memory, threads and processor time, firing", &self.usage_columns());
        }
        self.idle_table(&mut text);
        self.wire_table(&mut text);
        self.failover_table(&mut text);
        self.leave_table(&mut text);
        self.reshard_table(&mut text);
        self.pause_table(&mut text);
        self.rows_table(&mut text);
        for failed in &self.failed {
            let _ = write!(text, "\nNot measured: {failed}.\n");
        }
        text
    }

    /// Takes a result, or why there is none.
    pub(crate) fn note<T: Debug>(
        &mut self,
        name: &str,
        measured: Result<T>,
        put: impl FnOnce(&mut Results, T),
    ) {
        match measured {
            Ok(it) => {
                println!("{name}: {it:?}");
                put(self, it);
            }
            Err(error) => {
                println!("{name}: {error:#}");
                self.failed.push(format!("{name}: {error:#}"));
            }
        }
    }

    /// What was done, in order, each once.
    fn workloads(&self) -> Vec<Load> {
        let mut seen: Vec<Load> = Vec::new();
        for (load, ..) in &self.loads {
            if !seen.iter().any(|it| (it.jobs, it.items) == (load.jobs, load.items)) {
                seen.push(*load);
            }
        }
        seen
    }

    fn table(&self, text: &mut String, title: &str, columns: &[Column<'_>]) {
        heading(text, title, columns.iter().map(|it| it.title));
        for load in self.workloads() {
            let of = |side: Side, column: &Column<'_>| {
                let same = self
                    .loads
                    .iter()
                    .filter(|it| (it.0.jobs, it.0.items, it.1) == (load.jobs, load.items, side));
                Spread::of(same.filter_map(|(load, side, it)| (column.value)(load, *side, it)))
            };
            let cells = columns.iter().map(|it| (it.decimals, of(Side::Java, it), of(Side::Rust, it)));
            rows_of(text, &name(load), &cells.collect::<Vec<_>>());
        }
    }

    fn usage_columns(&self) -> Vec<Column<'_>> {
        let beyond = |load: &Load, side: Side, it: &Measured| {
            let baseline = self.baselines.get(&side)?;
            let others = load.jobs.checked_sub(1).filter(|it| *it > 0)?;
            Some((it.usage.resident_kib - baseline.resident_kib) / others as f64)
        };
        vec![
            Column::new("RSS, MiB", 1, |_, _, it| Some(it.usage.resident_kib / 1024.0)),
            Column::new("RSS beyond a process with one job, KiB for each job", 1, beyond),
            Column::new("threads", 0, |_, _, it| Some(it.usage.threads)),
            Column::new("processor time for each run, µs", 0, |_, _, it| {
                Some(it.usage.cpu_seconds * 1e6 / it.runs())
            }),
            Column::new("ZooKeeper's for each run, µs", 0, |_, _, it| {
                Some(it.server_cpu_seconds * 1e6 / it.runs())
            }),
        ]
    }

    fn idle_table(&self, text: &mut String) {
        if self.idle.is_empty() {
            return;
        }
        let columns = ["registered after, s", "RSS, MiB", "RSS beyond one job, KiB for each job", "threads"];
        heading(text, "Idle: jobs that never fire", columns.into_iter());
        for (side, idle) in &self.idle {
            let baseline = self.baselines.get(side).map_or(0.0, |it| it.resident_kib);
            let each = (idle.usage.resident_kib - baseline) / idle.jobs as f64;
            let (mib, threads) = (idle.usage.resident_kib / 1024.0, idle.usage.threads);
            let (jobs, who, after) = (idle.jobs, side.name(), idle.registered);
            let _ = writeln!(text, "| {jobs} jobs | {who} | {after:.2} | {mib:.1} | {each:.1} | {threads} |");
        }
    }

    fn wire_table(&self, text: &mut String) {
        if self.wire.is_empty() {
            return;
        }
        let columns =
            ["requests of the busiest", "requests of all", "bytes to the server", "bytes from the server"];
        heading(text, "Requests and bytes of one round, without pings", columns.into_iter());
        for (side, costs) in &self.wire {
            for ((mode, items, instances), cost) in costs {
                let _ = writeln!(
                    text,
                    "| {items} items, {instances} instances, {} | {} | {} | {} | {} | {} |",
                    mode.name(),
                    side.name(),
                    cost.requests_of_one,
                    cost.requests,
                    cost.sent,
                    cost.received
                );
            }
        }
    }

    fn leave_table(&self, text: &mut String) {
        if self.leaves.is_empty() {
            return;
        }
        let title = "Clean leave of one of two workers, 10 items that fire each second";
        let titles = ["end of the process, s after SIGTERM", "greatest lateness, ms", "fires missed, of 60"];
        heading(text, title, titles.into_iter());
        let of = |value: fn(&Leave) -> f64| {
            let side = |side| Spread::of(self.leaves.get(&side).into_iter().flatten().map(value));
            (side(Side::Java), side(Side::Rust))
        };
        let took = of(|it| it.took);
        let latest = of(|it| it.latest);
        let missed = of(|it| it.missed as f64);
        let cells = [(2, took.0, took.1), (1, latest.0, latest.1), (0, missed.0, missed.1)];
        rows_of(text, "clean leave", &cells);
    }

    fn reshard_table(&self, text: &mut String) {
        if self.resharded.is_empty() {
            return;
        }
        let columns = [
            "one joins: all owned after, ms",
            "items moved",
            "least possible",
            "it leaves: all owned after, ms",
            "items moved",
        ];
        heading(text, "Resharding", columns.into_iter());
        for it in &self.resharded {
            let (items, instances, least) = (it.items, it.instances, it.least());
            let _ = writeln!(
                text,
                "| {items} items, {instances} instances | Rust | {:.0} | {} | {least} | {:.0} | {} |",
                it.joined, it.moved, it.left, it.moved_back
            );
        }
    }

    fn pause_table(&self, text: &mut String) {
        if self.pauses.is_empty() {
            return;
        }
        let title = "Resharding while items run: the greatest lateness of those whose owner stays, in ms";
        let columns = ["changes", "without a change", "one joins", "one leaves", "fires missed"];
        heading(text, title, columns.into_iter());
        for (scene, it) in &self.pauses {
            let of =
                |late: &[f64]| Spread::of(late.iter().copied()).map_or_else(String::new, |it| spread(it, 1));
            let _ = writeln!(
                text,
                "| {} items, {} instances | {} | {} | {:.1} | {} | {} | {} of {} |",
                scene.items,
                scene.instances,
                scene.side.name(),
                2 * scene.changes,
                it.usual,
                of(&it.joined),
                of(&it.left),
                it.missed,
                it.fires
            );
        }
    }

    fn failover_table(&self, text: &mut String) {
        if self.deaths.is_empty() {
            return;
        }
        let title = format!("Failover after `kill -9`, sessions of {} s, in ms", SESSION.as_secs());
        let titles = [
            "from the end of the session to the start of the code",
            "from the kill to the start of the code",
        ];
        heading(text, &title, titles.into_iter());
        let deaths = |side| self.deaths.get(&side).map(Vec::as_slice).unwrap_or_default();
        let after_expiry = |side| Spread::of(deaths(side).iter().map(|it| it.after_expiry));
        let after_kill = |side| Spread::of(deaths(side).iter().map(|it| it.after_kill));
        let cells = [
            (0, after_expiry(Side::Java), after_expiry(Side::Rust)),
            (0, after_kill(Side::Java), after_kill(Side::Rust)),
        ];
        rows_of(text, &format!("{} deaths", deaths(Side::Rust).len()), &cells);
    }

    fn rows_table(&self, text: &mut String) {
        if self.rows.is_empty() {
            return;
        }
        let title = "Dataflow, streaming, instant fetch of 100 rows";
        heading(text, title, ["rows/s, millions"].into_iter());
        let items: BTreeSet<usize> = self.rows.keys().map(|it| it.0).collect();
        for items in items {
            let mut row = |side: Side| {
                let spread_of = Spread::of(self.rows.get(&(items, side))?.iter().map(|it| it / 1e6))?;
                let _ = writeln!(text, "| items: {items} | {} | {} |", side.name(), spread(spread_of, 2));
                Some(spread_of.median)
            };
            // More is better here, so the ratio is the other way round.
            if let Some(times) = row(Side::Java).zip(row(Side::Rust)).and_then(|it| ratio(it.1, it.0)) {
                let _ = writeln!(text, "| items: {items} | **Rust : Java** | {times} |");
            }
        }
    }
}

impl Measured {
    /// How many runs there were in the measured time.
    fn runs(&self) -> f64 {
        (self.lateness.expected - self.lateness.missed) as f64
    }
}

fn lateness_columns() -> Vec<Column<'static>> {
    vec![
        Column::new("p50, ms", 2, |_, _, it| Some(it.lateness.p50 as f64 / 1e3)),
        Column::new("p99, ms", 2, |_, _, it| Some(it.lateness.p99 as f64 / 1e3)),
        Column::new("max, ms", 2, |_, _, it| Some(it.lateness.max as f64 / 1e3)),
        Column::new("missed, %", 1, |_, _, it| {
            Some(it.lateness.missed as f64 * 100.0 / it.lateness.expected as f64)
        }),
    ]
}

fn start_columns() -> Vec<Column<'static>> {
    vec![
        Column::new("all registered", 2, |_, _, it| Some(it.start.registered)),
        Column::new("all have fired", 2, |_, _, it| Some(it.start.fired)),
        Column::new("again in the same tree: all registered", 2, |_, _, it| Some(it.restart?.registered)),
        Column::new("again: all have fired", 2, |_, _, it| Some(it.restart?.fired)),
    ]
}

pub(crate) fn name(load: Load) -> String {
    match load.items {
        1 => format!("{} jobs", load.jobs),
        items => format!("{} jobs × {items} items", load.jobs),
    }
}

fn heading<'a>(text: &mut String, title: &str, columns: impl Iterator<Item = &'a str>) {
    let columns: Vec<&str> = columns.collect();
    let _ = writeln!(text, "\n#### {title}\n\n| workload | | {} |", columns.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "---|".repeat(columns.len()));
}

/// A row for each side that was measured, and one with how many times greater Java's medians are.
fn rows_of(text: &mut String, workload: &str, cells: &[Cell]) {
    let mut row = |who: &str, cell: &dyn Fn(&Cell) -> Option<String>| {
        let cells: Vec<Option<String>> = cells.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let cells: Vec<String> =
                cells.into_iter().map(|it| it.unwrap_or_else(|| "–".to_owned())).collect();
            let _ = writeln!(text, "| {workload} | {who} | {} |", cells.join(" | "));
        }
    };
    row(Side::Java.name(), &|it| Some(spread(it.1?, it.0)));
    row(Side::Rust.name(), &|it| Some(spread(it.2?, it.0)));
    row("**Java : Rust**", &|it| ratio(it.1?.median, it.2?.median));
}

fn spread(it: Spread, decimals: usize) -> String {
    if it.least == it.most {
        return format!("{:.decimals$}", it.median);
    }
    format!("{:.decimals$} ({:.decimals$} to {:.decimals$})", it.median, it.least, it.most)
}

fn ratio(java: f64, rust: f64) -> Option<String> {
    let ratio = java / rust;
    if !ratio.is_finite() || ratio <= 0.0 {
        return None;
    }
    let decimals = if ratio < 10.0 { 2 } else { 0 };
    Some(format!("**{ratio:.decimals$}**"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_spread_and_the_ratio_of_the_medians() {
        let mut text = String::new();
        let java = Spread { median: 30.0, least: 20.0, most: 50.0 };
        let rust = Spread { median: 1.5, least: 1.5, most: 1.5 };
        rows_of(&mut text, "w", &[(1, Some(java), Some(rust)), (0, None, Some(rust))]);
        let expected = "| w | Java | 30.0 (20.0 to 50.0) | – |\n| w | Rust | 1.5 | 2 |\n| w | **Java : Rust** | **20** | – |\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_is_nothing_has_no_ratio() {
        assert_eq!(ratio(1.0, 0.0), None);
        assert_eq!(ratio(0.0, 0.0), None);
        assert_eq!(ratio(1.0, 2.0).as_deref(), Some("**0.50**"));
    }
}
