//! From what is recorded to numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use elasticjob_core::event::{Event, Outcome};
use tokio::time::Instant;

use super::{Metric, Metrics, as_number};
use crate::recorder::Record;

/// When the rounds of a job that are under way began, and how many of their items have not ended.
#[derive(Debug, Default)]
pub(super) struct Rounds(BTreeMap<String, (Instant, usize)>);

impl Metrics {
    /// Counts what was recorded.
    pub(crate) fn record(&self, record: &Record) {
        let job = Some(&record.job);
        let count = |metric| self.add(metric, job, &[], 1.0);
        let next_fire = record.next_fire.map_or(0.0, seconds);
        self.set(Metric::NextFire, job, next_fire);
        match &record.event {
            Event::RoundStarted { task_id, source, nominal, items, merged } => {
                self.add(Metric::Rounds, job, &[source.name()], 1.0);
                self.add(Metric::Merged, job, &[], as_number(*merged));
                if let Some(nominal) = nominal.filter(|_| source.name() == "schedule") {
                    let late = record.at.duration_since(nominal).as_secs_f64();
                    self.observe(Metric::Lateness, job, &[], late.max(0.0));
                }
                self.begin(&record.job, task_id, items.len());
            }
            Event::ItemFinished { task_id, outcome, .. } => self.end(record, task_id, outcome),
            Event::HookFailed { hook, .. } => self.add(Metric::HookFailures, job, &[hook.name()], 1.0),
            Event::Missed { items, .. } => self.add(Metric::Missed, job, &[], as_number(items.len() as u64)),
            Event::Skipped { why, .. } => self.add(Metric::Skipped, job, &[why.name()], 1.0),
            Event::Crashed { items } => self.add(Metric::Crashed, job, &[], as_number(items.len() as u64)),
            Event::TookOver { .. } => count(Metric::Failovers),
            Event::TriggerHandedOn { .. } => count(Metric::TriggersHandedOn),
            Event::Resharded { moved } => {
                count(Metric::Reshards);
                self.add(Metric::Moved, job, &[], as_number(*moved as u64));
            }
            Event::ConfigChanged => self.add(Metric::ConfigChanges, job, &["adopted"], 1.0),
            Event::ConfigRefused { .. } => self.add(Metric::ConfigChanges, job, &["refused"], 1.0),
            Event::Elected => self.set(Metric::Leads, job, 1.0),
            Event::Abdicated => self.set(Metric::Leads, job, 0.0),
            Event::Registered { .. } | Event::Reconnected => self.set(Metric::SessionUp, None, 1.0),
            Event::Suspended | Event::Distrusted => self.set(Metric::SessionUp, None, 0.0),
            Event::Stopped { .. } => {
                self.set(Metric::Leads, job, 0.0);
                self.set(Metric::NextFire, job, 0.0);
            }
            Event::RoundFinished { .. } => {} // Its items have been counted.
        }
    }

    /// Whether the job is registered in a session that stands.
    pub(crate) fn stands(&self, job: &Arc<str>, stands: bool) {
        self.set(Metric::Registered, Some(job), f64::from(u8::from(stands)));
    }

    fn begin(&self, job: &Arc<str>, task_id: &str, items: usize) {
        let running = {
            let mut store = self.lock();
            let rounds = store.jobs.entry(job.clone()).or_default();
            rounds.0.insert(task_id.to_owned(), (Instant::now(), items));
            rounds.running()
        };
        self.set_running(job, running);
    }

    fn end(&self, record: &Record, task_id: &str, outcome: &Outcome) {
        let job = &record.job;
        let (began, running) = {
            let mut store = self.lock();
            let rounds = store.jobs.entry(job.clone()).or_default();
            (rounds.end(task_id), rounds.running())
        };
        let details = [outcome.name()];
        self.add(Metric::Shards, Some(job), &details, 1.0);
        if let Some(began) = began {
            self.observe(Metric::Duration, Some(job), &details, began.elapsed().as_secs_f64());
        }
        if *outcome == Outcome::Succeeded {
            self.set(Metric::LastSuccess, Some(job), seconds(record.at));
        }
        self.set_running(job, running);
    }

    fn set_running(&self, job: &Arc<str>, running: usize) {
        self.set(Metric::Running, Some(job), as_number(running as u64));
    }
}

impl Rounds {
    /// When the round began that an item of ended.
    fn end(&mut self, task_id: &str) -> Option<Instant> {
        let (began, left) = self.0.get_mut(task_id)?;
        let began = *began;
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.0.remove(task_id);
        }
        Some(began)
    }

    fn running(&self) -> usize {
        self.0.values().map(|(_, left)| left).sum()
    }
}

fn seconds(at: jiff::Timestamp) -> f64 {
    at.duration_since(jiff::Timestamp::UNIX_EPOCH).as_secs_f64()
}
