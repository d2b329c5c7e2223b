//! What error handlers log. Alone in its process: others that log at the same time, to nobody, can make `tracing`
//! forget that somebody listens.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use elasticjob::{Event, Job, JobError, Recorded, Report, Shard, Worker};

#[path = "shared/log.rs"]
mod log;
use log::Log;

#[tokio::test(start_paused = true)]
async fn the_log_says_who_failed_and_who_was_not_told() {
    let (log, _guard) = Log::listen();
    let job = |name: &str, handlers: &[&str]| {
        let work = async |shard: Shard| Err::<(), JobError>(format!("{} has no rows", shard.job).into());
        Job::simple(name, work).one_off().error_handlers(handlers)
    };
    let broken = async |_: Report| Err::<(), JobError>("the mail server is away".into());
    let worker = Worker::new("embedded://").error_handler("broken", broken);
    let worker = worker.job(job("plain", &[])).job(job("log", &["LOG"])).job(job("throw", &["THROW"]));
    let worker = worker.job(job("ignore", &["IGNORE"])).job(job("untold", &["broken"]));
    let worker = worker.start().await.unwrap();
    let mut records = worker.records();
    for name in ["plain", "log", "throw", "ignore", "untold"] {
        worker.trigger(name).await.unwrap();
    }
    let mut finished = 0;
    while finished < 5 {
        if let Some(Recorded::Record(record)) = records.next().await
            && let Event::ItemFinished { .. } = record.event
        {
            finished += 1;
        }
    }
    worker.shutdown().await;
    let text = log.text();
    for name in ["plain", "log", "throw"] {
        let line = format!(
            "Job '{name}' exception occur in job processing: {name} has no rows job=\"{name}\" item=0"
        );
        assert_eq!(text.lines().filter(|it| it.contains("ERROR") && it.contains(&line)).count(), 1, "{text}");
    }
    assert!(!text.contains("ignore has no rows"), "{text}");
    assert!(text.contains("error handler failed: the mail server is away handler=\"broken\""), "{text}");
    let untold =
        "nobody was told: Job 'untold' exception occur in job processing, caused by untold has no rows";
    assert!(text.contains(untold), "{text}");
}
