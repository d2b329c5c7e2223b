//! `next_after` over the categories of the golden file, and, where a JDK and Maven are present, Quartz 2.3.2 on the
//! same rows in the same run. Prints one table at the end.

use criterion::Criterion;
use elasticjob_cron::{Cron, Schedule, Zone};
use flate2::read::GzDecoder;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const GOLDEN: &[u8] = include_bytes!("../tests/data/quartz-golden.tsv.gz");
const SCRATCH: &str = env!("CARGO_TARGET_TMPDIR");
const QUARTZ: &str = "org.quartz-scheduler:quartz:2.3.2";

struct Question {
    schedule: Schedule,
    instant: Timestamp,
    /// The row as Java reads it.
    line: String,
}

fn main() {
    let categories = categories();
    let scratch = Path::new(SCRATCH);
    let mut criterion = Criterion::default()
        .output_directory(&scratch.join("criterion"))
        .sample_size(30)
        .warm_up_time(Duration::from_millis(150))
        .measurement_time(Duration::from_millis(450))
        .configure_from_args();
    for (category, questions) in &categories {
        criterion.bench_function(&format!("next_after/{category}"), |bencher| {
            let mut turn = questions.iter().cycle();
            bencher.iter(|| turn.next().map(Question::ask));
        });
    }
    criterion.final_summary();
    // `cargo test` runs benchmarks too, once and without measuring.
    if std::env::args().any(|argument| argument == "--bench") {
        print!("{}", table(&categories, scratch));
    }
}

impl Question {
    fn ask(&self) -> Option<Timestamp> {
        black_box(&self.schedule).next_after(black_box(self.instant))
    }

    /// Nanoseconds for this question alone.
    fn cost(&self) -> f64 {
        let once = || {
            let start = Instant::now();
            for _ in 0..20 {
                black_box(self.ask());
            }
            start.elapsed().as_secs_f64() * 1e9 / 20.0
        };
        // The least of several: what a busy machine adds is not the engine's.
        (0..5).map(|_| once()).fold(f64::INFINITY, f64::min)
    }
}

/// The rows that Quartz answers and we accept, by category.
fn categories() -> BTreeMap<String, Vec<Question>> {
    let mut text = String::new();
    GzDecoder::new(GOLDEN).read_to_string(&mut text).expect("the golden file is compressed text");
    let mut categories: BTreeMap<String, Vec<Question>> = BTreeMap::new();
    for line in text.lines() {
        let [category, expression, zone, instant, quartz, _] = line.split('\t').collect::<Vec<_>>()[..]
        else {
            panic!("not six columns: {line}")
        };
        let answered = quartz == "-" || quartz.parse::<i64>().is_ok();
        let Ok(cron) = Cron::parse(&expression.replace("\\t", "\t")) else { continue };
        if !answered || category == "invalid" {
            continue;
        }
        let zone = Zone::parse(zone).expect("the golden file names real zones");
        let instant = instant.parse().ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let instant = instant.expect("the golden file has instants in milliseconds");
        let line = line.rsplitn(3, '\t').last().expect("a line has columns").to_owned();
        let question = Question { schedule: Schedule::new(cron, zone), instant, line };
        categories.entry(category.to_owned()).or_default().push(question);
    }
    categories
}

fn table(categories: &BTreeMap<String, Vec<Question>>, scratch: &Path) -> String {
    let quartz = quartz(categories, scratch).unwrap_or_else(|reason| {
        println!("Quartz is left out: {reason}");
        BTreeMap::new()
    });
    let mut table =
        String::from("| category | rows | ours, ns | slowest row, ns | Quartz 2.3.2, ns | ratio |\n");
    table.push_str("|---|---:|---:|---:|---:|---:|\n");
    for (category, questions) in categories {
        let ours = median(category, scratch);
        let slowest = questions.iter().map(Question::cost).fold(0.0, f64::max);
        let (theirs, ratio) = match quartz.get(category) {
            Some(theirs) => (format!("{theirs:.0}"), format!("{:.0}", theirs / ours)),
            None => ("-".into(), "-".into()),
        };
        let rows = questions.len();
        writeln!(table, "| {category} | {rows} | {ours:.0} | {slowest:.0} | {theirs} | {ratio} |")
            .expect("a string takes any text");
    }
    table
}

/// The median that criterion has just written down; not a number where the category was filtered out.
fn median(category: &str, scratch: &Path) -> f64 {
    let estimates = scratch.join(format!("criterion/next_after_{category}/new/estimates.json"));
    let json = std::fs::read_to_string(estimates).unwrap_or_default();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap_or_default();
    json["median"]["point_estimate"].as_f64().unwrap_or(f64::NAN)
}

/// Quartz's median per category, or the reason why there is none.
fn quartz(
    categories: &BTreeMap<String, Vec<Question>>,
    scratch: &Path,
) -> Result<BTreeMap<String, f64>, String> {
    let directory = scratch.join("quartz");
    let jar = directory.join("quartz-2.3.2.jar");
    if !jar.exists() {
        let copy = Command::new("mvn")
            .args(["-q", "-B", "dependency:copy", &format!("-Dartifact={QUARTZ}")])
            .arg(format!("-DoutputDirectory={}", directory.display()))
            .current_dir(scratch)
            .stdin(Stdio::null())
            .status();
        succeeded("mvn", copy)?;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/java/QuartzNextAfter.java");
    let compile = Command::new("javac").arg("-cp").arg(&jar).arg("-d").arg(&directory).arg(source).status();
    succeeded("javac", compile)?;
    let classes = std::env::join_paths([&jar, &directory]).map_err(|error| error.to_string())?;
    let mut java = Command::new("java")
        .arg("-cp")
        .arg(classes)
        .arg("QuartzNextAfter")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("java: {error}"))?;
    let lines: Vec<&str> = categories.values().flatten().map(|question| &*question.line).collect();
    let input = java.stdin.take().ok_or("java takes no input")?;
    let written = { input }.write_all(lines.join("\n").as_bytes());
    let output = java.wait_with_output().map_err(|error| format!("java: {error}"))?;
    succeeded("java", written.map(|()| output.status))?;
    let parse = |line: &str| {
        let (category, nanos) = line.split_once('\t')?;
        Some((category.to_owned(), nanos.parse().ok()?))
    };
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(parse).collect())
}

fn succeeded(what: &str, status: std::io::Result<std::process::ExitStatus>) -> Result<(), String> {
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{what} ended with {status}")),
        Err(error) => Err(format!("{what}: {error}")),
    }
}
