//! What jobs do, live and readable: which shard ran where, when it was due, and when the next fire is.

use std::collections::BTreeMap;

use elasticjob::{Event, Outcome, Record, RunningWorker, Source};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Remembers what is needed to say how long a shard took.
pub(crate) struct Live {
    zone: TimeZone,
    width: usize,
    jobs: Vec<(String, Option<Timestamp>, String)>,
    instance: String,
    rounds: BTreeMap<String, Round>,
}

struct Round {
    started: Timestamp,
    nominal: Option<Timestamp>,
    source: Source,
    left: usize,
}

impl Live {
    pub(crate) fn new(worker: &RunningWorker) -> Live {
        let jobs: Vec<_> = worker
            .jobs()
            .map(|job| {
                (job.name.to_string(), job.next_fire, job.schedule.unwrap_or_else(|| "when asked".into()))
            })
            .collect();
        Live {
            zone: TimeZone::system(),
            width: jobs.iter().map(|(name, ..)| name.chars().count()).max().unwrap_or(0),
            jobs,
            instance: worker.instance_id().unwrap_or_default(),
            rounds: BTreeMap::new(),
        }
    }

    /// The jobs, and when each fires first.
    pub(crate) fn greet(&self) {
        eprintln!("instance {} runs {} job(s); Ctrl-C to leave", self.instance, self.jobs.len());
        for (name, next, schedule) in &self.jobs {
            let next = next.map(|at| format!(", first at {}", self.time(at))).unwrap_or_default();
            eprintln!("  {name:<width$}  {schedule}{next}", width = self.width);
        }
    }

    pub(crate) fn show(&mut self, record: &Record) {
        let job = &*record.job;
        match &record.event {
            Event::RoundStarted { task_id, source, nominal, items, merged } => {
                let (started, nominal, source, left) = (record.at, *nominal, *source, items.len());
                self.rounds.insert(task_id.clone(), Round { started, nominal, source, left });
                if *merged > 0 {
                    self.say(record.at, job, &format!("this round makes up for {merged} earlier fire(s)"));
                }
            }
            // What a script prints, it prints here, too.
            Event::ItemFinished { task_id, item, outcome, .. } => {
                let line = self.finished(record, task_id, *item, outcome);
                self.say(record.at, job, &line);
            }
            Event::Elected => self.say(record.at, job, "this instance leads"),
            Event::Abdicated => self.say(record.at, job, "this instance leads no longer"),
            Event::Resharded { moved } => self.say(record.at, job, &format!("{moved} shard(s) handed out")),
            Event::Missed { nominal, items } => {
                let missed =
                    format!("shards {items:?} missed {}; they will run again at once", self.time(*nominal));
                self.say(record.at, job, &missed);
            }
            Event::Skipped { nominal, items, why } => {
                let what = nominal.map_or_else(|| "a trigger".into(), |at| self.time(at));
                self.say(record.at, job, &format!("skipped {what} for shards {items:?}: {why}"));
            }
            Event::Crashed { items } => {
                self.say(record.at, job, &format!("shards {items:?} lost their runner"))
            }
            Event::HookFailed { hook, error, .. } => {
                self.say(record.at, job, &format!("{hook} failed: {error}"))
            }
            Event::TookOver { item } => self.say(record.at, job, &format!("takes over shard {item}")),
            Event::TriggerHandedOn { from, .. } => {
                self.say(record.at, job, &format!("takes over a trigger of {from}"));
            }
            Event::Suspended => self.say(record.at, job, "the registry is out of reach"),
            Event::Distrusted => {
                self.say(record.at, job, "the session may be over: running shards are cancelled")
            }
            Event::Reconnected => self.say(record.at, job, "the registry is back"),
            Event::ConfigChanged => self.say(record.at, job, "the configuration changed"),
            Event::ConfigRefused { error } => {
                self.say(record.at, job, &format!("configuration refused: {error}"))
            }
            Event::Stopped { reason } => self.say(record.at, job, &format!("stopped: {reason}")),
            Event::Registered { .. } | Event::RoundFinished { .. } => {}
        }
    }

    fn finished(&mut self, record: &Record, task_id: &str, item: u32, outcome: &Outcome) -> String {
        let (outcome, error) = match outcome {
            Outcome::Succeeded => ("ok", String::new()),
            Outcome::Failed(error) => ("FAILED", format!(": {error}")),
            Outcome::Cancelled => ("cancelled", String::new()),
        };
        // The last two of its five parts are the instance and the number of the round.
        let instance = task_id.splitn(4, "@-@").nth(3).unwrap_or(task_id);
        let instance = instance.rsplit_once('-').map_or(instance, |(instance, _)| instance);
        let Some(round) = self.rounds.get_mut(task_id) else {
            return format!("shard {item} {outcome}{error}");
        };
        round.left = round.left.saturating_sub(1);
        let took = record.at.duration_since(round.started).as_millis();
        let (nominal, source, done) = (round.nominal, round.source, round.left == 0);
        if done {
            self.rounds.remove(task_id);
        }
        let due = nominal.map_or_else(|| format!("by {source}"), |at| format!("due {}", self.time(at)));
        let next = record.next_fire.map(|at| format!(", next {}", self.time(at))).unwrap_or_default();
        format!("shard {item} {outcome} in {took} ms on {instance} ({due}{next}){error}")
    }

    fn say(&self, at: Timestamp, job: &str, what: &str) {
        println!("{}  {job:<width$}  {what}", self.millis(at), width = self.width);
    }

    fn time(&self, at: Timestamp) -> String {
        let at = at.to_zoned(self.zone.clone());
        let today = Timestamp::now().to_zoned(self.zone.clone()).date() == at.date();
        at.strftime(if today { "%H:%M:%S" } else { "%F %H:%M:%S" }).to_string()
    }

    fn millis(&self, at: Timestamp) -> String {
        at.to_zoned(self.zone.clone()).strftime("%H:%M:%S%.3f").to_string()
    }
}
