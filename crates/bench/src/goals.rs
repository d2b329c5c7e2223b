//! What was aimed at, and whether it was reached: by the numbers of the same run.

use std::fmt::Write as _;

use crate::load::Measured;
use crate::report::Results;
use crate::samples::Spread;
use crate::side::Side;

/// One goal: what it says, what was measured, and whether that is enough; `None` if it was not measured.
struct Goal {
    text: &'static str,
    measured: Option<(String, bool)>,
}

/// The goals, as Markdown.
pub(crate) fn table(results: &Results) -> String {
    let mut text = "\n#### Goals, by this run\n\n| goal | measured | |\n|---|---|---|\n".to_owned();
    for goal in goals(results) {
        let (measured, verdict) = match goal.measured {
            None => ("–".to_owned(), "not measured"),
            Some((measured, true)) => (measured, "reached"),
            Some((measured, false)) => (measured, "**missed**"),
        };
        let _ = writeln!(text, "| {} | {measured} | {verdict} |", goal.text);
    }
    text
}

fn goals(results: &Results) -> [Goal; 8] {
    let goal = |text, measured| Goal { text, measured };
    [
        goal("lateness p99 of 100 jobs: 20 times less than Java's", times(results, 100, 20.0, p99)),
        goal("lateness p99 of 1,000 jobs each second: 10 ms, nothing missed", thousand(results)),
        goal("start-up of 1,000 jobs, until registered: 50 times faster", start(results)),
        goal("memory for each job (100 jobs): 50 times less", memory(results)),
        goal("threads constant", threads(results)),
        goal("requests for each round: 2 of each instance that works", requests(results)),
        goal("failover: 200 ms after the end of the session", failover(results)),
        goal("10,000 items over 50 instances resharded: 2 s", resharding(results)),
    ]
}

fn p99(it: &Measured) -> f64 {
    it.lateness.p99 as f64
}

/// The median of what so many jobs of one item took.
fn of(results: &Results, side: Side, jobs: usize, value: impl Fn(&Measured) -> f64) -> Option<f64> {
    let same = results.loads.iter().filter(|it| (it.0.jobs, it.0.items, it.1) == (jobs, 1, side));
    Spread::of(same.map(|it| value(&it.2))).map(|it| it.median)
}

fn times(
    results: &Results,
    jobs: usize,
    least: f64,
    value: impl Fn(&Measured) -> f64,
) -> Option<(String, bool)> {
    let ratio = of(results, Side::Java, jobs, &value)? / of(results, Side::Rust, jobs, &value)?;
    Some((format!("{ratio:.1} times"), ratio >= least))
}

fn thousand(results: &Results) -> Option<(String, bool)> {
    let millis = of(results, Side::Rust, 1000, p99)? / 1e3;
    let missed = of(results, Side::Rust, 1000, |it| it.lateness.missed as f64)?;
    Some((format!("{millis:.1} ms, {missed} missed"), millis <= 10.0 && missed == 0.0))
}

fn start(results: &Results) -> Option<(String, bool)> {
    let registered = |it: &Measured| it.start.registered;
    if let Some(measured) = times(results, 1000, 50.0, registered) {
        return Some(measured);
    }
    // Java needs minutes for 1,000: what it needs for 100 is what a short run knows.
    let (words, reached) = times(results, 100, 50.0, registered)?;
    Some((format!("{words}, with 100 jobs"), reached))
}

fn memory(results: &Results) -> Option<(String, bool)> {
    let each = |side| {
        let resident = of(results, side, 100, |it| it.usage.resident_kib)?;
        Some((resident - results.baselines.get(&side)?.resident_kib) / 99.0)
    };
    let ratio = each(Side::Java)? / each(Side::Rust)?;
    Some((format!("{ratio:.1} times"), ratio >= 50.0))
}

fn threads(results: &Results) -> Option<(String, bool)> {
    let ours = results.loads.iter().filter(|it| it.1 == Side::Rust).map(|it| it.2.usage.threads);
    let spread = Spread::of(ours)?;
    Some((format!("{} to {}", spread.least, spread.most), spread.least == spread.most))
}

fn requests(results: &Results) -> Option<(String, bool)> {
    let ours = results.wire.get(&Side::Rust)?.iter();
    let most = ours.map(|(_, it)| it.requests_of_one).max()?;
    Some((format!("at most {most}"), most <= 2))
}

fn failover(results: &Results) -> Option<(String, bool)> {
    let ours = results.deaths.get(&Side::Rust)?;
    let spread = Spread::of(ours.iter().map(|it| it.after_expiry))?;
    let measured = format!("{:.0} ms, at most {:.0} ms, {} deaths", spread.median, spread.most, ours.len());
    Some((measured, spread.most <= 200.0))
}

fn resharding(results: &Results) -> Option<(String, bool)> {
    let found = results.resharded.iter().find(|it| (it.items, it.instances) == (10_000, 50))?;
    let slowest = found.joined.max(found.left) / 1e3;
    Some((format!("{slowest:.2} s, the slower of a join and a leave"), slowest <= 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reshard::Resharded;

    #[test]
    fn a_goal_is_reached_missed_or_not_measured() {
        let mut results = Results::default();
        assert_eq!(table(&results).matches("not measured").count(), 8);
        let resharded =
            Resharded { items: 10_000, instances: 50, joined: 900.0, moved: 1, left: 1500.0, moved_back: 1 };
        results.resharded.push(resharded);
        assert!(table(&results).contains("| 1.50 s, the slower of a join and a leave | reached |"));
        results.resharded[0].joined = 2500.0;
        assert!(table(&results).contains("| 2.50 s, the slower of a join and a leave | **missed** |"));
    }
}
