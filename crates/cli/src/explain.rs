//! `elasticjob explain`: why a job ran, did not run, ran late, or ran there.

use elasticjob::Ops;
use elasticjob::events::{EventFile, EventPort, History, Span, gather};
use elasticjob::ops::Past;
use jiff::{SignedDuration, Timestamp};

use crate::failure::Failure;
use crate::screen::{Screen, print, print_json};
use crate::{json, time};

/// Older records say nothing about a fire.
const MEMORY: SignedDuration = SignedDuration::from_hours(7 * 24);

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The job
    job: String,
    /// The last fire up to this time, such as `2026-11-15 02:00`, `02:00` or 2026-11-15T02:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    at: Option<Timestamp>,
    /// Draw on the events that a worker kept: its event file, or its status port as http://HOST:PORT. May be given
    /// several times
    #[arg(long, value_name = "FILE|URL")]
    events: Vec<String>,
}

pub(crate) async fn run(ops: &Ops, screen: &Screen, arguments: &Arguments) -> Result<(), Failure> {
    let past = past(arguments).await?;
    let it = ops.explain(&arguments.job, arguments.at, &past).await?;
    if screen.is_json() {
        return print_json(&json::explanation(&it));
    }
    let mut text = format!("{}\n", it.answer);
    for chain in &it.because {
        for (depth, cause) in chain.iter().enumerate() {
            text.push_str(&format!("{}because {cause}\n", "  ".repeat(depth + 1)));
        }
    }
    for (title, lines) in [("known", &it.known), ("what to do", &it.remedies)] {
        if !lines.is_empty() {
            text.push_str(&format!("{title}:\n"));
        }
        for line in lines {
            text.push_str(&format!("  {line}\n"));
        }
    }
    print(&text)
}

async fn past(arguments: &Arguments) -> Result<Vec<Past>, Failure> {
    let now = Timestamp::now();
    let asked = arguments.at.unwrap_or(now).min(now);
    let span = Span { from: asked.checked_sub(MEMORY).unwrap_or(Timestamp::MIN), to: now };
    let histories: Vec<Box<dyn History>> = arguments.events.iter().map(|it| source(it)).collect();
    let read = gather(&histories, &arguments.job, span).await;
    read.map_err(|error| Failure::refused(error.to_string()))
}

fn source(place: &str) -> Box<dyn History> {
    match place.strip_prefix("http://") {
        Some(address) => Box::new(EventPort::new(address.trim_end_matches("/events").trim_end_matches('/'))),
        None => Box::new(EventFile::new(place)),
    }
}
