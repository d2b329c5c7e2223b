//! What a worker prints: one line of JSON for each thing that happens, written and flushed when it happens.
//!
//! ```text
//! {"at":1763211600004,"process":"w1","kind":"start","instance":"10.0.0.1@-@42","job":"orders","item":0,"total":3,"run":"w1-7","task":"orders@-@0,1@-@READY@-@10.0.0.1@-@42","source":"schedule","fire":1763211600000,"merged":0,"token":17,"parameter":""}
//! {"at":1763211600310,"process":"w1","kind":"end","run":"w1-7","outcome":"succeeded"}
//! ```
//!
//! `at` is the time of day in milliseconds since 1970, `process` a name that is used for one process only,
//! and `run` one that is used for one run of one item only. What a program does not know it leaves out: Java
//! has neither `fire`, `source`, `merged` nor `token`. The two lines above are all that a foreign program has
//! to print; the rest tells more.
//!
//! A line that does not begin with `{` is no event and is left alone.

use std::time::{SystemTime, UNIX_EPOCH};

use elasticjob::{Event, Shard, Source};
use serde::{Deserialize, Serialize};

/// Something that happened in a process.
///
/// ```
/// use elasticjob_fleet::{Line, What};
///
/// let text = r#"{"at":5,"process":"w1","kind":"end","run":"w1-7","outcome":"succeeded"}"#;
/// let line: Line = text.parse().unwrap();
/// assert!(matches!(&line.what, What::End { run, .. } if run == "w1-7"));
/// assert_eq!(line.to_string(), text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// The process, by a name that no other process has or had.
    pub process: String,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum What {
    /// The program runs.
    Born {
        /// Its process id.
        pid: u32,
    },
    /// All of its jobs are registered.
    Ready {
        /// Under this id.
        instance: String,
    },
    /// User code begins to run an item.
    Start(Start),
    /// User code that runs sees that it is to stop.
    Told {
        /// The run.
        run: String,
    },
    /// User code wrote to the fenced store.
    Wrote {
        /// The run.
        run: String,
        /// The store took it.
        accepted: bool,
    },
    /// User code has ended.
    End {
        /// The run.
        run: String,
        /// How: `succeeded`, `failed` or `cancelled`.
        outcome: Ended,
    },
    /// The library recorded something about a job.
    Record {
        /// The job.
        job: String,
        /// What it was, in the words of the event log.
        #[serde(flatten, with = "in_words")]
        event: Event,
    },
    /// The process has left the registry in order, and ends.
    Left,
    /// Something was done to the fleet.
    Done(Deed),
    /// The registry's own log says that this was done.
    Registry(Fact),
}

/// What was done to a fleet by whoever hurts it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "kebab-case")]
pub enum Deed {
    /// It begins.
    Began {
        /// The seed of everything that goes wrong.
        seed: u64,
        /// How many workers.
        workers: usize,
        /// How long it lasts, in seconds.
        seconds: u64,
    },
    /// Everything was put right.
    Healed,
    /// It is over: what comes later does not count.
    Over,
    /// A fault begins, or is over.
    Fault {
        /// Its name.
        fault: Fault,
        /// Whether it begins.
        on: bool,
    },
    /// A process was killed, and is dead.
    Killed {
        /// The process.
        who: String,
    },
    /// A process was asked to leave.
    Leaving {
        /// The process.
        who: String,
    },
    /// A process was stopped.
    Paused {
        /// The process.
        who: String,
    },
    /// It goes on.
    Resumed {
        /// The process.
        who: String,
    },
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A process is killed.
    Crash,
    /// A process stands still.
    Pause,
    /// The connections of a process are broken and refused.
    Cut,
    /// The connections of a process stay, and carry nothing.
    HalfOpen,
    /// What a process asks is carried, the answers are not.
    Deaf,
    /// The connections of a process break again and again.
    Flap,
    /// The connections of a process are slow.
    Slow,
    /// A follower of the ensemble is killed and started again.
    Member,
    /// The leader of the ensemble is killed and started again.
    Leader,
    /// The whole ensemble is killed and started again.
    Ensemble,
}

impl Fault {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Crash => "crash",
            Fault::Pause => "pause",
            Fault::Cut => "partition",
            Fault::HalfOpen => "half-open partition",
            Fault::Deaf => "partition, one way",
            Fault::Flap => "flapping connection",
            Fault::Slow => "slow connection",
            Fault::Member => "member restart",
            Fault::Leader => "leader restart",
            Fault::Ensemble => "ensemble restart",
        }
    }
}

/// What the registry did, by its own account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "they are those of the simulator's `Fact`")]
pub enum Fact {
    Exists { job: String },
    Config { job: String, document: Option<String> },
    Opened { instance: String },
    Closed { instance: String, expired: bool },
    Server { job: String, ip: String, enabled: bool },
    Item { job: String, item: u32, enabled: bool },
    Triggered { job: String, instance: String },
}

/// The beginning of a run of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The instance: the id of the process in the registry, at this moment.
    pub instance: String,
    /// The job.
    pub job: String,
    /// The item.
    pub item: u32,
    /// How many items the job has.
    pub total: u32,
    /// This run.
    pub run: String,
    /// The task id, which is the same for all items of a round.
    pub task: String,
    /// Why it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Why>,
    /// The fire that it stands for, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fire: Option<i64>,
    /// How many earlier fires it makes up for.
    #[serde(default)]
    pub merged: u64,
    /// Its fencing token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<u64>,
    /// The job's parameter.
    #[serde(default)]
    pub parameter: String,
}

/// Why an item runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The schedule.
    Schedule,
    /// A request.
    Trigger,
    /// A missed fire.
    Misfire,
    /// A dead instance.
    Failover,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// It returned.
    Succeeded,
    /// It returned an error.
    Failed,
    /// It was told to stop, and did.
    Cancelled,
}

/// A line that is none.
#[derive(Debug, thiserror::Error)]
#[error("`{text}` is not an event: {cause}")]
pub struct BadLine {
    text: String,
    cause: serde_json::Error,
}

impl Line {
    /// It happens now.
    pub fn now(process: &str, what: What) -> Line {
        Line { at: now(), process: process.to_owned(), what }
    }
}

/// The time of day, in milliseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| std::fmt::Error)?)
    }
}

impl std::str::FromStr for Line {
    type Err = BadLine;

    fn from_str(text: &str) -> Result<Line, BadLine> {
        serde_json::from_str(text).map_err(|cause| BadLine { text: text.to_owned(), cause })
    }
}

impl Start {
    /// The shard that begins, in the instance that its task names.
    pub fn of(shard: &Shard, run: String) -> Start {
        Start {
            instance: instance_of(&shard.task_id),
            job: shard.job.to_string(),
            item: shard.item,
            total: shard.total,
            run,
            task: shard.task_id.to_string(),
            source: Some(shard.source.into()),
            fire: shard.nominal.map(jiff::Timestamp::as_millisecond),
            merged: shard.merged,
            token: Some(shard.token),
            parameter: shard.job_parameter.to_string(),
        }
    }
}

/// The instance that a task of this library runs on: the last two parts of its id, less the number of the
/// round.
fn instance_of(task: &str) -> String {
    let parts: Vec<&str> = task.split("@-@").collect();
    let [.., ip, tail] = parts.as_slice() else { return task.to_owned() };
    let tail = tail.rsplit_once('-').map_or(*tail, |it| it.0);
    format!("{ip}@-@{tail}")
}

impl From<Source> for Why {
    fn from(source: Source) -> Why {
        match source {
            Source::Schedule => Why::Schedule,
            Source::Trigger => Why::Trigger,
            Source::Misfire => Why::Misfire,
            Source::Failover => Why::Failover,
        }
    }
}

impl From<Why> for Source {
    fn from(why: Why) -> Source {
        match why {
            Why::Schedule => Source::Schedule,
            Why::Trigger => Source::Trigger,
            Why::Misfire => Source::Misfire,
            Why::Failover => Source::Failover,
        }
    }
}

/// Events as the library's own files have them, without the fields that every line has here in its own way.
mod in_words {
    use std::sync::Arc;

    use elasticjob::events::{read_line, write_line};
    use elasticjob::{Event, Record};
    use serde::de::{Deserialize, Deserializer, Error as _};
    use serde::ser::{Error as _, Serialize, Serializer};
    use serde_json::{Map, Value};

    const AT: jiff::Timestamp = jiff::Timestamp::UNIX_EPOCH;

    pub(super) fn serialize<S: Serializer>(event: &Event, serializer: S) -> Result<S::Ok, S::Error> {
        let nobody: Arc<str> = "".into();
        let event = event.clone();
        let record = Record { at: AT, job: nobody.clone(), instance: nobody, event, next_fire: None };
        let mut words: Map<String, Value> =
            serde_json::from_str(&write_line(&record)).map_err(S::Error::custom)?;
        words.retain(|name, _| !["at", "job", "instance"].contains(&name.as_str()));
        words.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Event, D::Error> {
        let mut words = Map::<String, Value>::deserialize(deserializer)?;
        let outer = [("at", AT.to_string()), ("job", String::new()), ("instance", String::new())];
        words.extend(outer.map(|(name, value)| (name.to_owned(), value.into())));
        let record = read_line(&Value::Object(words).to_string());
        record.map(|it| it.event).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use elasticjob::{Outcome, Skip};

    use super::*;

    #[test]
    fn what_the_library_records_comes_back_as_it_was_printed() {
        let at = Some("2026-11-15T02:00:00Z".parse().unwrap());
        let failed = Outcome::Failed("no\nrows".into());
        let events = [
            Event::Registered { id: "10.0.0.1@-@1.a.1".into() },
            Event::ItemFinished { task_id: "t".into(), item: 2, outcome: failed, output: None },
            Event::Skipped { nominal: at, items: [0, 2].into(), why: Skip::Overrun },
        ];
        for event in events {
            let line = Line { at: 5, process: "w1".into(), what: What::Record { job: "j".into(), event } };
            let text = line.to_string();
            assert!(!text.contains('\n'), "{text}");
            assert_eq!(text.parse::<Line>().unwrap(), line, "{text}");
        }
        let of_java = r#"{"at":5,"process":"j1","kind":"record","job":"j","event":"stopped","reason":"broken","error":"no"}"#;
        let line: Line = of_java.parse().unwrap();
        let reason = elasticjob::StopReason::Broken("no".into());
        assert_eq!(line.what, What::Record { job: "j".into(), event: Event::Stopped { reason } });
    }
}
