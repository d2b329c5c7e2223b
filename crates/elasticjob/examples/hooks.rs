//! Listeners: two workers settle orders in four shards; each says when it begins and ends, and one of them, once for
//! both, makes room before the first shard and sends the report after the last.
//!
//! ```text
//! cargo run -p elasticjob --example hooks
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use elasticjob::{Error, Job, JobError, Listener, OnceListener, Round, Shard, Worker, registry};
use tokio::sync::Notify;

/// What happened, in order.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, what: impl Into<String>) {
        let what = what.into();
        println!("{what}");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

/// Called on every worker.
struct Announce(Diary);

impl Listener for Announce {
    async fn before(&self, round: &Round) -> Result<(), JobError> {
        self.0.note(format!("begin {:?}", round.items));
        Ok(())
    }

    async fn after(&self, round: &Round) -> Result<(), JobError> {
        self.0.note(format!("end {:?}", round.items));
        Ok(())
    }
}

/// Called by one of them.
struct Report {
    diary: Diary,
    sent: Arc<Notify>,
}

impl OnceListener for Report {
    async fn before_first(&self, _: &Round) -> Result<(), JobError> {
        self.diary.note("make room");
        Ok(())
    }

    async fn after_last(&self, round: &Round) -> Result<(), JobError> {
        self.diary.note(format!("report on {} shards", round.total));
        self.sent.notify_one();
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    run().await.map(drop)
}

/// Says what happened in one round.
pub(crate) async fn run() -> Result<Vec<String>, Error> {
    let (diary, sent) = (Diary::default(), Arc::new(Notify::new()));
    let registry = registry::open("embedded://")?;
    let mut workers = Vec::new();
    for _ in 0..2 {
        let settle = diary.clone();
        let job = Job::simple("settle", move |shard: Shard| {
            let diary = settle.clone();
            async move {
                diary.note(format!("settle {}", shard.item));
                Ok(())
            }
        })
        .shards(4)
        .one_off()
        .listener(Announce(diary.clone()))
        .once_listener(Report { diary: diary.clone(), sent: sent.clone() });
        workers.push(Worker::new(registry.clone()).job(job).start().await?);
    }
    workers[0].trigger("settle").await?;
    sent.notified().await;
    for worker in workers {
        worker.shutdown().await;
    }
    let diary = diary.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok(diary)
}
