//! Defects of the original that a worker as a whole could have. Most are shown by the core's stories; see
//! `docs/known-defects.md`. Time is tokio's, paused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use elasticjob::registry::{Embedded, Registry, embedded::Outage};
use elasticjob::{Job, RunningWorker, Shard, Worker, testing};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

async fn start(registry: &Embedded, job: Job) -> RunningWorker {
    let registry: Arc<dyn Registry> = Arc::new(registry.clone());
    let worker = Worker::new(registry).job(job).shutdown_grace(Duration::from_secs(5));
    testing::clock_from(worker, "2030-01-01T00:00:00Z".parse().unwrap()).start().await.unwrap()
}

/// A job whose shards say that they run, and then never end, whatever they are told.
fn endless() -> (Job, mpsc::UnboundedReceiver<Shard>) {
    let (started, shards) = mpsc::unbounded_channel();
    let job = Job::simple("endless", move |shard: Shard| {
        started.send(shard).ok();
        std::future::pending()
    });
    (job.cron("0/10 * * * * ?").time_zone("GMT+0:00"), shards)
}

#[tokio::test(start_paused = true)]
async fn a_worker_leaves_in_time_though_the_registry_is_gone() {
    for outage in [Outage::RequestsLost, Outage::RepliesLost] {
        let registry = Embedded::new().with_session_timeout(Duration::from_secs(3600));
        let (job, mut shards) = endless();
        let worker = start(&registry, job).await;
        shards.recv().await.unwrap();
        registry.sessions().into_iter().for_each(|session| registry.suspend(session, outage));
        sleep(Duration::from_secs(20)).await;
        timeout(Duration::from_secs(60), worker.shutdown()).await.expect("it waits for nobody");
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_is_never_used_twice() {
    let registry = Embedded::new();
    let mut ids = BTreeSet::new();
    // Two workers of one process with one job, as if it were started twice; and a third after they have gone.
    for _ in 0..2 {
        let workers = [start(&registry, endless().0).await, start(&registry, endless().0).await];
        for worker in &workers {
            assert!(ids.insert(worker.instance_id().unwrap()));
        }
        let old = workers[0].instance_id();
        registry.sessions().into_iter().for_each(|session| registry.expire(session));
        while workers[0].instance_id().is_none() || workers[0].instance_id() == old {
            sleep(Duration::from_millis(10)).await;
        }
        assert!(ids.insert(workers[0].instance_id().unwrap()), "an id names a session");
    }
    assert_eq!(ids.len(), 6);
}
