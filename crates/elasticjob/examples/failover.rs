//! Three workers of one process share ten shards; one of them is killed while it works, and the others finish
//! what it had begun.
//!
//! ```text
//! cargo run -p elasticjob --example failover
//! ```

use std::time::Duration;

use elasticjob::{Error, Job, Pool, Shard, Source, Worker};

const SESSION_TIMEOUT: &str = "2s";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let registry = format!("embedded://failover-example?session-timeout={SESSION_TIMEOUT}");
    let (runs, mut seen) = tokio::sync::mpsc::channel(100);
    let mut workers = Vec::new();
    for name in ["anna", "bert", "cleo"] {
        let runs = runs.clone();
        let settle = Job::simple("settle-orders", move |shard: Shard| {
            let runs = runs.clone();
            async move {
                runs.send((name, shard.item, shard.source)).await?;
                tokio::time::sleep(Duration::from_millis(500)).await;
                println!(
                    "  {name} has finished shard {} ({}, token {})",
                    shard.item, shard.source, shard.token
                );
                Ok(())
            }
        });
        let settle = settle.cron("0/10 * * * * ?").shards(10).failover(true).pool(Pool::Size(10));
        workers.push((name, Worker::new(registry.as_str()).job(settle).start().await?));
    }
    println!("anna, bert and cleo are ready; the first fire comes within ten seconds");

    let mut lost = Vec::new();
    for _ in 0..10 {
        let Some((name, item, _)) = seen.recv().await else { return Ok(()) };
        println!("  {name} runs shard {item}");
        if name == "anna" {
            lost.push(item);
        }
    }
    println!("anna is killed while she runs {lost:?}; her session ends in {SESSION_TIMEOUT}");
    drop(workers.remove(0));

    while !lost.is_empty() {
        let Some((name, item, source)) = seen.recv().await else { return Ok(()) };
        if source == Source::Failover {
            println!("  {name} takes over shard {item}");
            lost.retain(|it| *it != item);
        }
    }
    println!("nothing is lost; the others leave");
    for (_, worker) in workers {
        worker.shutdown().await;
    }
    Ok(())
}
