//! `elasticjob jobs` and `elasticjob shards`.

use elasticjob::Ops;
use serde_json::Value;

use crate::ask;
use crate::failure::Failure;
use crate::json;
use crate::screen::{Screen, print, print_json, say};
use crate::table::Table;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only jobs whose name contains this
    filter: Option<String>,
    /// Only jobs of this status: OK, DISABLED, SHARDING_FLAG or CRASHED
    #[arg(long, value_name = "STATUS", value_parser = ["OK", "DISABLED", "SHARDING_FLAG", "CRASHED"], ignore_case = true)]
    status: Option<String>,
}

pub(crate) async fn run(ops: &Ops, screen: &Screen, arguments: &Arguments) -> Result<(), Failure> {
    let mut jobs = ops.jobs().await?;
    let wanted = arguments.filter.as_deref().unwrap_or_default().to_lowercase();
    jobs.retain(|job| job.name.to_lowercase().contains(&wanted));
    if let Some(status) = &arguments.status {
        jobs.retain(|job| job.status.to_string().eq_ignore_ascii_case(status));
    }
    if screen.is_json() {
        return print_json(&Value::Array(jobs.iter().map(json::summary).collect()));
    }
    if jobs.is_empty() {
        say("no jobs");
        return Ok(());
    }
    let mut table = Table::new(["JOB", "STATUS", "CRON", "SHARDS", "INSTANCES", "DESCRIPTION"]);
    for job in &jobs {
        let paused = job.paused.as_ref().map(|it| format!("paused {it}"));
        let note = job.problem.clone().or(paused).unwrap_or_else(|| job.description.clone());
        table.row([
            job.name.clone().into(),
            ask::job_status(job.status),
            job.cron.clone().unwrap_or_default().into(),
            job.shards.to_string().into(),
            job.instances.to_string().into(),
            note.into(),
        ]);
    }
    print(&table.show(screen))
}

pub(crate) async fn shards(ops: &Ops, screen: &Screen, job: &str) -> Result<(), Failure> {
    let shards = ops.job(job).await?.shards;
    if screen.is_json() {
        return print_json(&Value::Array(shards.iter().map(json::shard).collect()));
    }
    print(&ask::shards(screen, &shards))
}
