//! Jobs without boilerplate: an attribute on an async function.
//!
//!     cargo run -p elasticjob --features macros --example attribute

use elasticjob::{Error, Event, JobError, Recorded, Shard, Worker};

const CITIES: [&str; 3] = ["Beijing", "Shanghai", "Guangzhou"];

/// Greets a city for each shard, again if that failed.
#[elasticjob::job(cron = "0 0 2 * * ?", shards = 3, shard_parameters = CITIES, retries = 2)]
async fn greet_cities(shard: Shard) -> Result<(), JobError> {
    println!("shard {} of {}: hello, {}", shard.item, shard.total, shard.parameter.unwrap_or_default());
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let items = run().await?;
    println!("{items} shards ran");
    Ok(())
}

/// Runs it once, now. Says how many shards that were.
pub(crate) async fn run() -> Result<usize, Error> {
    // What the attribute makes is a `Job` like any other: a setting can still be called on it.
    let worker = Worker::new("embedded://").job(greet_cities().failover(true)).start().await?;
    let mut records = worker.records();
    worker.trigger("greet-cities").await?;
    let mut items = 0;
    while let Some(recorded) = records.next().await {
        let Recorded::Record(record) = recorded else { continue };
        match record.event {
            Event::ItemFinished { .. } => items += 1,
            Event::RoundFinished { .. } => break,
            _ => {}
        }
    }
    worker.shutdown().await;
    Ok(items)
}
