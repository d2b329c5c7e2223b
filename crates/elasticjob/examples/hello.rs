//! The smallest program: one job, three shards, a registry in memory.
//!
//! ```text
//! cargo run -p elasticjob --example hello
//! ```

use elasticjob::{Job, Shard, Worker};

#[tokio::main]
async fn main() -> Result<(), elasticjob::Error> {
    let greet = Job::simple("greet", async |shard: Shard| {
        println!("shard {} of {}: hello, {:?}", shard.item, shard.total, shard.parameter);
        Ok(())
    })
    .cron("0/5 * * * * ?")
    .shards(3)
    .shard_parameters(["Beijing", "Shanghai", "Guangzhou"]);

    Worker::new("embedded://").job(greet).run().await
}
