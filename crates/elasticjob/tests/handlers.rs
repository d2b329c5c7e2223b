//! Error handlers and what else a program can add by name: with real workers, a real mail server, and an HTTP
//! server that misbehaves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[cfg(feature = "macros")]
#[expect(dead_code, reason = "its main is not called")]
#[path = "../examples/attribute.rs"]
mod attribute_example;
#[path = "handlers/desk.rs"]
mod desk;
#[path = "handlers/extend.rs"]
mod extend;
#[expect(dead_code, reason = "its main is not called")]
#[path = "../examples/extend.rs"]
mod extend_example;
#[cfg(feature = "http")]
#[path = "handlers/hook.rs"]
mod hook;
#[cfg(feature = "email")]
#[path = "handlers/mail.rs"]
mod mail;
#[cfg(feature = "http")]
#[path = "jobs/server.rs"]
mod server;

use std::collections::BTreeMap;
use std::time::Duration;

use elasticjob::{Event, Job, JobError, Outcome, Recorded, Records, Report, Shard};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// Nothing here takes so long, however slow the machine is.
#[cfg(feature = "http")]
const LONG: Duration = Duration::from_secs(60);

fn failing(name: &str) -> Job {
    Job::simple(name, async |shard: Shard| Err(format!("no rows for {}", shard.item).into())).one_off()
}

/// A handler that passes its reports on.
struct Post(UnboundedSender<Report>);

impl elasticjob::ErrorHandler for Post {
    async fn handle(&self, report: Report) -> Result<(), JobError> {
        self.0.send(report).map_err(|_| "nobody listens".into())
    }
}

fn post() -> (Post, UnboundedReceiver<Report>) {
    let (sender, reports) = unbounded_channel();
    (Post(sender), reports)
}

async fn next(reports: &mut UnboundedReceiver<Report>) -> Report {
    // By a paused clock an hour is nothing; by a real one, nobody waits so long.
    timeout(Duration::from_secs(3600), reports.recv()).await.expect("a report comes").unwrap()
}

/// `a 0-3 boom ×2` for each kind.
fn shown(report: &Report) -> Vec<String> {
    let mut shown: Vec<String> = report
        .kinds
        .iter()
        .map(|it| format!("{} {:?} {} ×{}", it.first.job, it.items, it.first.message, it.count))
        .collect();
    shown.sort();
    shown
}

async fn until<T>(records: &mut Records, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
    let search = async {
        loop {
            if let Recorded::Record(record) = records.next().await.expect("the worker lives")
                && let Some(found) = wanted(&record.event)
            {
                return found;
            }
        }
    };
    timeout(Duration::from_secs(36_000), search).await.expect("it happens")
}

async fn items_finished(records: &mut Records, count: usize) -> BTreeMap<u32, Outcome> {
    let mut outcomes = BTreeMap::new();
    while outcomes.len() < count {
        let (item, outcome) = until(records, |event| match event {
            Event::ItemFinished { item, outcome, .. } => Some((*item, outcome.clone())),
            _ => None,
        })
        .await;
        outcomes.insert(item, outcome);
    }
    outcomes
}
