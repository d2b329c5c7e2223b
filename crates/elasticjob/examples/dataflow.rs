//! A job that fetches open orders and settles them, batch by batch, until none is left: two shards, four calls
//! at a time for each batch.
//!
//! ```text
//! cargo run -p elasticjob --example dataflow
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use elasticjob::{DataflowJob, Error, Event, Job, JobError, Recorded, Shard, Worker};

/// The place of a table in a database.
type Orders = Arc<Mutex<Vec<u32>>>;

struct Settle {
    open: Orders,
}

impl DataflowJob for Settle {
    type Item = u32;

    /// `SELECT id FROM orders WHERE state = 'open' AND id % total = item LIMIT fetch_size`
    async fn fetch(&self, shard: &Shard) -> Result<Vec<u32>, JobError> {
        let limit = shard.fetch_size.map_or(100, |size| size as usize);
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = open.iter().copied().filter(|id| id % shard.total == shard.item);
        Ok(ours.take(limit).collect())
    }

    /// `UPDATE orders SET state = 'settled', fence = token WHERE id IN (…) AND fence <= token`
    async fn process(&self, shard: &Shard, orders: Vec<u32>) -> Result<(), JobError> {
        println!("shard {} settles {orders:?}", shard.item);
        self.open.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| !orders.contains(id));
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let left = run().await?;
    println!("{left} orders are open");
    Ok(())
}

/// Says how many are left.
pub(crate) async fn run() -> Result<usize, Error> {
    let open: Orders = Arc::new(Mutex::new((1..=100).collect()));
    let job = Job::dataflow("settle-orders", Settle { open: open.clone() })
        .shards(2)
        .streaming(true)
        .fetch_size(20)
        .workers(4)
        .one_off();
    let worker = Worker::new("embedded://").job(job).start().await?;
    let mut records = worker.records();
    worker.trigger("settle-orders").await?;
    while let Some(recorded) = records.next().await {
        if let Recorded::Record(record) = recorded
            && let Event::RoundFinished { .. } = record.event
        {
            break;
        }
    }
    worker.shutdown().await;
    let left = open.lock().unwrap_or_else(PoisonError::into_inner).len();
    Ok(left)
}
