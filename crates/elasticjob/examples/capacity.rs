//! How much many jobs cost: memory and threads when they are idle, and how late they start when they fire.
//!
//! ```text
//! cargo run --release -p elasticjob --example capacity -- 10000 idle
//! cargo run --release -p elasticjob --example capacity -- 1000 firing
//! ```

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use elasticjob::{Error, Job, Shard, Worker};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let jobs: usize = arguments.next().and_then(|it| it.parse().ok()).unwrap_or(10_000);
    let firing = arguments.next().is_some_and(|it| it == "firing");
    let late: Arc<Mutex<Vec<i64>>> = Arc::default();

    let (memory, threads) = usage();
    let started = Instant::now();
    let mut worker = Worker::new("embedded://");
    for n in 0..jobs {
        let late = late.clone();
        let job = Job::simple(format!("job-{n}"), move |shard: Shard| {
            let by = shard.nominal.map(|at| jiff::Timestamp::now().duration_since(at).as_micros());
            if let (Some(by), Ok(mut late)) = (by, late.lock()) {
                late.push(i64::try_from(by).unwrap_or(i64::MAX));
            }
            async { Ok(()) }
        });
        worker = worker.job(job.cron(if firing { "* * * * * ?" } else { "0 0 0 1 1 ?" }));
    }
    let worker = worker.start().await?;
    println!("{jobs} jobs started in {:?}", started.elapsed());
    let (memory_now, threads_now) = usage();
    let each = (memory_now - memory) * 1024 / jobs as u64;
    println!("{each} bytes each, {threads_now} threads ({threads} before)");
    if firing {
        tokio::time::sleep(Duration::from_secs(10)).await;
        let mut late = late.lock().map(|it| it.clone()).unwrap_or_default();
        late.sort_unstable();
        let at = |part: f64| late.get((late.len() as f64 * part) as usize).copied().unwrap_or_default();
        println!(
            "{} fires in 10 s; late by µs: p50 {}, p99 {}, max {}",
            late.len(),
            at(0.5),
            at(0.99),
            at(0.9999)
        );
        let (memory_now, _) = usage();
        println!("{} bytes each after firing", (memory_now - memory) * 1024 / jobs as u64);
    }
    worker.shutdown().await;
    Ok(())
}

/// Resident memory in KiB, and the number of threads.
fn usage() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or_default()
    };
    (field("VmRSS:"), field("Threads:"))
}
