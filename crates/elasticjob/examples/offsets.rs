//! Offsets: a worker copies rows and keeps its place with the shard; another one, started after the first has left, goes on
//! where that was.
//!
//! ```text
//! cargo run -p elasticjob --example offsets
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use elasticjob::{Error, Event, Job, JobError, Recorded, Shard, Worker, registry};

const ROWS_A_ROUND: u64 = 20;

type Table = Arc<Mutex<Vec<u64>>>;

/// Copies the next rows, and keeps its place.
async fn copy(shard: Shard, target: Table) -> Result<(), JobError> {
    let mut last: u64 = shard.offset().await?.map_or(Ok(0), |text| text.parse())?;
    println!("{} goes on after row {last}", shard.task_id);
    for row in last + 1..=last + ROWS_A_ROUND {
        target.lock().unwrap_or_else(PoisonError::into_inner).push(row);
        last = row;
    }
    // Refused, if the shard is another worker's by now.
    shard.set_offset(last.to_string()).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let rows = run().await?;
    println!("{} rows were copied", rows.len());
    Ok(())
}

/// Says which rows were copied, in order.
pub(crate) async fn run() -> Result<Vec<u64>, Error> {
    let target = Table::default();
    let registry = registry::open("embedded://")?;
    for _ in 0..3 {
        let table = target.clone();
        let job = Job::simple("copy", move |shard: Shard| copy(shard, table.clone())).one_off();
        let worker = Worker::new(registry.clone()).job(job).start().await?;
        let mut records = worker.records();
        worker.trigger("copy").await?;
        while let Some(recorded) = records.next().await {
            if let Recorded::Record(record) = recorded
                && let Event::RoundFinished { .. } = record.event
            {
                break;
            }
        }
        worker.shutdown().await;
    }
    let rows = target.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(rows)
}
