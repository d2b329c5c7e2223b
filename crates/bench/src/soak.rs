//! Many fires each second, for long: does the memory grow, or the lateness?

use anyhow::Result;

use crate::samples::{lateness, seconds};
use crate::side::{Setup, Side, Stage, now, sleep_until};

const SECOND: i64 = 1_000_000;
const JOBS: usize = 1000;
/// One line for so much time.
const STRETCH: i64 = 60 * SECOND;
/// After the last fire that counts.
const DRAIN: i64 = 3 * SECOND;
/// What the memory may grow by in all, as a part of its mean, before it counts as growing.
const MEMORY_GROWTH: f64 = 0.05;
/// The same for the lateness, which varies more.
const LATENESS_GROWTH: f64 = 0.5;

/// One stretch of the time.
#[derive(Clone, Copy, Debug)]
struct Point {
    minute: f64,
    resident_mib: f64,
    p99_ms: f64,
}

/// Prints a line for each minute, and whether anything grew.
pub(crate) async fn run(stage: &Stage, lasting: i64) -> Result<()> {
    let setup = Setup::each_second(stage.namespace(), JOBS, 1);
    let mut member = stage.start(Side::Rust, &setup)?;
    member.until(std::time::Duration::from_secs(120), "the first fire", |it| it.all_began(JOBS)).await?;
    println!("minute | RSS, MiB | threads | processor, % | p50, ms | p99, ms | max, ms | missed");
    let begin = now() / SECOND * SECOND + 5 * SECOND;
    let (mut from, end, mut points) = (begin, begin + lasting * SECOND, Vec::new());
    sleep_until(from).await;
    let (mut missed, mut cpu) = (0, member.usage()?.cpu_seconds);
    while from < end {
        let to = end.min(from + STRETCH);
        sleep_until(to + DRAIN).await;
        member.look()?;
        let (late, usage) = (lateness(&member.samples.runs, JOBS, from, to)?, member.usage()?);
        // What has been counted is not kept: an hour of it would be larger than what is measured.
        member.samples.runs.retain(|it| it.nominal >= to);
        let minute = seconds(to - begin) / 60.0;
        let resident_mib = usage.resident_kib / 1024.0;
        let busy = (usage.cpu_seconds - cpu) * 100.0 / seconds(to - from);
        let [p50, p99, max] = [late.p50, late.p99, late.max].map(|it| it as f64 / 1e3);
        println!(
            "{minute:.1} | {resident_mib:.1} | {} | {busy:.0} | {p50:.2} | {p99:.2} | {max:.2} | {}",
            usage.threads, late.missed
        );
        points.push(Point { minute, resident_mib, p99_ms: p99 });
        (from, cpu, missed) = (to, usage.cpu_seconds, missed + late.missed);
    }
    member.end().await?;
    println!("{}", verdict(&points, missed));
    Ok(())
}

fn verdict(points: &[Point], missed: usize) -> String {
    // The first minute warms up.
    let points = points.get(1..).filter(|it| it.len() >= 3).unwrap_or(points);
    let memory = growth(points, |it| it.resident_mib);
    let late = growth(points, |it| it.p99_ms);
    let word = |growth: f64, limit: f64| if growth > limit { "GROWS" } else { "flat" };
    format!(
        "memory: {}, {:+.1} % over the whole time; p99 of the lateness: {}, {:+.1} %; missed: {missed}",
        word(memory, MEMORY_GROWTH),
        memory * 100.0,
        word(late, LATENESS_GROWTH),
        late * 100.0,
    )
}

/// How much a value grew from the first point to the last, by the line of least squares, as a part of its
/// mean.
fn growth(points: &[Point], value: impl Fn(&Point) -> f64) -> f64 {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return 0.0 };
    let count = points.len() as f64;
    let mean_x = points.iter().map(|it| it.minute).sum::<f64>() / count;
    let mean_y = points.iter().map(&value).sum::<f64>() / count;
    let spread: f64 = points.iter().map(|it| (it.minute - mean_x).powi(2)).sum();
    let common: f64 = points.iter().map(|it| (it.minute - mean_x) * (value(it) - mean_y)).sum();
    if spread == 0.0 || mean_y == 0.0 {
        return 0.0;
    }
    common / spread * (last.minute - first.minute) / mean_y
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(minute: f64, resident_mib: f64, p99_ms: f64) -> Point {
        Point { minute, resident_mib, p99_ms }
    }

    #[test]
    fn what_grows_is_told_from_what_varies() {
        let flat: Vec<Point> =
            (0..60).map(|n| point(f64::from(n), 60.0 + f64::from(n % 3), 9.0 + f64::from(n % 2))).collect();
        assert!(verdict(&flat, 0).starts_with("memory: flat"), "{}", verdict(&flat, 0));
        let leak: Vec<Point> = (0..60).map(|n| point(f64::from(n), 60.0 + f64::from(n) / 4.0, 9.0)).collect();
        assert!(verdict(&leak, 0).starts_with("memory: GROWS"), "{}", verdict(&leak, 0));
        let later: Vec<Point> = (0..60).map(|n| point(f64::from(n), 60.0, 9.0 + f64::from(n))).collect();
        assert!(verdict(&later, 3).contains("lateness: GROWS"), "{}", verdict(&later, 3));
        assert!(verdict(&later, 3).ends_with("missed: 3"));
    }
}
