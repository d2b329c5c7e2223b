//! The tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::failover::{Death, SESSION};
use crate::load::{Load, Measured};
use crate::samples::Spread;
use crate::side::{Side, Usage};

/// All that was measured.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) loads: Vec<(Load, Side, Measured)>,
    pub(crate) baselines: BTreeMap<Side, Usage>,
    pub(crate) deaths: BTreeMap<Side, Vec<Death>>,
    pub(crate) rows: BTreeMap<Side, Vec<f64>>,
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
        self.table(&mut text, "Lateness, and fires missed", &lateness_columns());
        self.table(&mut text, "Start-up, in seconds from the start of the process", &start_columns());
        self.table(&mut text, "Memory, threads and processor time, firing", &self.usage_columns());
        self.failover_table(&mut text);
        self.rows_table(&mut text);
        for failed in &self.failed {
            let _ = write!(text, "\nNot measured: {failed}.\n");
        }
        text
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
                let runs = it.lateness.expected - it.lateness.missed;
                Some(it.usage.cpu_seconds * 1e6 / runs as f64)
            }),
        ]
    }

    fn failover_table(&self, text: &mut String) {
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
        heading(text, "Dataflow, one item, instant fetch of 100 rows", ["rows/s, millions"].into_iter());
        let mut row = |side: Side| {
            let spread_of = Spread::of(self.rows.get(&side)?.iter().map(|it| it / 1e6))?;
            let _ = writeln!(text, "| streaming | {} | {} |", side.name(), spread(spread_of, 2));
            Some(spread_of.median)
        };
        // More is better here, so the ratio is the other way round.
        if let Some(times) = row(Side::Java).zip(row(Side::Rust)).and_then(|it| ratio(it.1, it.0)) {
            let _ = writeln!(text, "| streaming | **Rust : Java** | {times} |");
        }
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
