//! A job that fetches open orders and settles them, batch by batch, until none is left: two shards, four calls
//! at a time for each batch. And one that sends the bills of all its shards, which it fetches at once.
//!
//! ```text
//! cargo run -p elasticjob --example dataflow
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use elasticjob::{DataflowJob, Error, Event, Job, JobError, Recorded, Shard, ThroughputJob, Worker};

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

/// Which shard a bill belongs to matters to nobody.
struct SendBills {
    open: Orders,
}

impl ThroughputJob for SendBills {
    type Item = u32;

    /// `SELECT id FROM bills WHERE state = 'open' AND id % total IN (items)`
    async fn fetch(&self, shards: &[Shard]) -> Result<Vec<u32>, JobError> {
        let is_ours = |id: &u32| shards.iter().any(|shard| id % shard.total == shard.item);
        Ok(self.open.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().filter(is_ours).collect())
    }

    async fn process(&self, shards: &[Shard], bills: Vec<u32>) -> Result<(), JobError> {
        println!("{} shards send {} bills", shards.len(), bills.len());
        self.open.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| !bills.contains(id));
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let left = run().await?;
    println!("{left} orders and bills are open");
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
    let bills: Orders = Arc::new(Mutex::new((1..=100).collect()));
    let send = Job::dataflow_throughput("send-bills", SendBills { open: bills.clone() });
    let worker = Worker::new("embedded://").job(job).job(send.shards(10).workers(4)).start().await?;
    let mut records = worker.records();
    worker.trigger("settle-orders").await?;
    worker.trigger("send-bills").await?;
    let mut rounds = 0;
    while let Some(recorded) = records.next().await {
        if let Recorded::Record(record) = recorded
            && let Event::RoundFinished { .. } = record.event
        {
            rounds += 1;
            if rounds == 2 {
                break;
            }
        }
    }
    worker.shutdown().await;
    let left = |of: &Orders| of.lock().unwrap_or_else(PoisonError::into_inner).len();
    Ok(left(&open) + left(&bills))
}
