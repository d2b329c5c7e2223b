//! `elasticjob explain`: why a job ran, did not run, or runs late.

use elasticjob::Ops;
use jiff::Timestamp;

use crate::failure::Failure;
use crate::screen::{Screen, print, print_json};
use crate::{json, time};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The job
    job: String,
    /// The last fire up to this time, such as `2026-11-15 02:00`, `02:00` or 2026-11-15T02:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    at: Option<Timestamp>,
}

pub(crate) async fn run(ops: &Ops, screen: &Screen, arguments: &Arguments) -> Result<(), Failure> {
    let it = ops.explain(&arguments.job, arguments.at, &[]).await?;
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
