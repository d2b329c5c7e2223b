//! What a program can add, and its jobs file use by name: a type of job, a sharding strategy, an error handler,
//! a listener.
//!
//!     cargo run -p elasticjob --example extend

use std::collections::BTreeMap;
use std::sync::Arc;

use elasticjob::{
    Error, ErrorHandler, Event, Extensions, JobError, JobType, Listener, Recorded, Report, Round, Shard,
    Strategy, Worker,
};

/// The file of a team that knows nothing of Rust.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/extend.yaml");

/// Statements for a database, one for each shard.
struct Sql;

impl JobType for Sql {
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
        match props.get("sql.statement") {
            Some(_) => Ok(()),
            None => Err("property sql.statement is missing: write what to execute".into()),
        }
    }

    async fn run(&self, shard: Shard, props: Arc<BTreeMap<String, String>>) -> Result<(), JobError> {
        println!("shard {}: {}", shard.item, props["sql.statement"]);
        if shard.item == 2 { Err("partition 2 is read-only".into()) } else { Ok(()) }
    }
}

/// All shards on the instance whose id is the least: the others are spares.
struct OnePlace;

impl Strategy for OnePlace {
    fn assign(&self, instances: &[&str], _job: &str, total: u32) -> Vec<Vec<u32>> {
        let mut all = vec![Vec::new(); instances.len()];
        if let Some(least) = all.last_mut() {
            least.extend(0..total);
        }
        all
    }
}

/// The team's pager.
struct Pager;

impl ErrorHandler for Pager {
    async fn handle(&self, report: Report) -> Result<(), JobError> {
        let team = report.props.get("pager.team").map_or("nobody", String::as_str);
        println!("to {team}: {}", report.text());
        Ok(())
    }
}

/// What auditors want to see.
struct Audit;

impl Listener for Audit {
    async fn after(&self, round: &Round) -> Result<(), JobError> {
        println!("{} has ended: {:?}", round.task_id, round.outcomes);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let failed = run(Extensions::new().error_handler("pager", Pager)).await?;
    println!("shards that failed: {failed:?}");
    Ok(())
}

/// One round of the file's job. Says which shards failed.
pub(crate) async fn run(ours: Extensions) -> Result<Vec<u32>, Error> {
    let ours = ours.job_type("SQL", Sql).strategy("one-place", OnePlace).listener("audit", Audit);
    let worker = Worker::from_file(FILE)?.extensions(ours).start().await?;
    let mut records = worker.records();
    worker.trigger("vacuum").await?;
    let mut failed = Vec::new();
    while let Some(recorded) = records.next().await {
        let Recorded::Record(record) = recorded else { continue };
        match record.event {
            Event::ItemFinished { item, outcome: elasticjob::Outcome::Failed(_), .. } => failed.push(item),
            Event::RoundFinished { .. } => break,
            _ => {}
        }
    }
    worker.shutdown().await; // The pager is told before it has left.
    Ok(failed)
}
