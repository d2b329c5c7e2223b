//! A record as a line of JSON, and back.
//!
//! The words are those of this file and do not follow the code: what was written by one version is read by another.
//! A line with an event that this version does not know is no mistake; it is passed over.

use std::collections::BTreeSet;

use elasticjob_core::event::{Event, Hook, Outcome, Skip, Source, StopReason};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::recorder::Record;

/// Why a line is no record.
///
/// ```
/// use elasticjob::events::{LineError, read_line};
///
/// assert!(matches!(read_line("{\"at\":"), Err(LineError::Torn)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is no JSON object: most likely, whoever wrote it did not come to its end.
    #[error("the line is torn")]
    Torn,
    /// A field is missing, or is not what it must be.
    #[error("`{0}` is missing, or is not what it must be")]
    Field(&'static str),
    /// An event that this version does not know.
    #[error("the event `{0}` is not known to this version")]
    UnknownEvent(String),
}

/// The record as one line, without the line's end.
///
/// ```
/// use elasticjob::events::{read_line, write_line};
///
/// let line = r#"{"at":"2026-11-15T02:00:00Z","job":"nightly","instance":"10.0.0.1@-@1.a.1","event":"elected"}"#;
/// let record = read_line(line).unwrap();
/// assert_eq!(write_line(&record), line);
/// ```
pub fn write_line(record: &Record) -> String {
    let (event, fields) = words(&record.event);
    let mut all = vec![
        ("at", json!(record.at.to_string())),
        ("job", json!(&*record.job)),
        ("instance", json!(&*record.instance)),
        ("event", json!(event)),
    ];
    all.extend(fields.into_iter().filter(|(_, value)| !value.is_null()));
    let all: Vec<String> = all.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", all.join(","))
}

type Words = (&'static str, Vec<(&'static str, Value)>);

fn words(event: &Event) -> Words {
    match event {
        Event::Registered { id } => ("registered", vec![("id", json!(id))]),
        Event::Suspended => ("suspended", vec![]),
        Event::Distrusted => ("distrusted", vec![]),
        Event::Reconnected => ("reconnected", vec![]),
        Event::Elected => ("elected", vec![]),
        Event::Abdicated => ("abdicated", vec![]),
        Event::Resharded { moved } => ("resharded", vec![("moved", json!(moved))]),
        Event::ConfigChanged => ("config-changed", vec![]),
        Event::ConfigRefused { error } => ("config-refused", vec![("error", json!(error))]),
        Event::RoundStarted { task_id, source, nominal, items, merged } => {
            let nominal = nominal.map_or(Value::Null, time);
            let fields = vec![("taskId", json!(task_id)), ("source", json!(source.name()))];
            let more = vec![("nominal", nominal), ("items", json!(items)), ("merged", json!(merged))];
            ("round-started", [fields, more].concat())
        }
        Event::ItemFinished { task_id, item, outcome, output } => {
            let fields = vec![("taskId", json!(task_id)), ("item", json!(item))];
            let more = vec![("outcome", json!(outcome.name())), ("error", error_of(outcome))];
            ("item-finished", [fields, more, vec![("output", json!(output))]].concat())
        }
        Event::HookFailed { task_id, hook, error } => {
            let fields = vec![("taskId", json!(task_id)), ("hook", json!(hook.name()))];
            ("hook-failed", [fields, vec![("error", json!(error))]].concat())
        }
        Event::RoundFinished { task_id } => ("round-finished", vec![("taskId", json!(task_id))]),
        Event::Missed { nominal, items } => {
            ("missed", vec![("nominal", time(*nominal)), ("items", json!(items))])
        }
        Event::Skipped { nominal, items, why } => {
            let nominal = nominal.map_or(Value::Null, time);
            ("skipped", vec![("nominal", nominal), ("items", json!(items)), ("why", json!(why.name()))])
        }
        Event::Crashed { items } => ("crashed", vec![("items", json!(items))]),
        Event::TookOver { item } => ("took-over", vec![("item", json!(item))]),
        Event::TriggerHandedOn { from, items } => {
            ("trigger-handed-on", vec![("from", json!(from)), ("items", json!(items))])
        }
        Event::Stopped { reason } => ("stopped", stop(reason)),
    }
}

fn time(at: Timestamp) -> Value {
    json!(at.to_string())
}

fn error_of(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Failed(error) => json!(error),
        Outcome::Succeeded | Outcome::Cancelled => Value::Null,
    }
}

fn stop(reason: &StopReason) -> Vec<(&'static str, Value)> {
    match reason {
        StopReason::Left => vec![("reason", json!("left"))],
        StopReason::ShutDown => vec![("reason", json!("shut-down"))],
        StopReason::Removed => vec![("reason", json!("removed"))],
        StopReason::Conflict { theirs, ours } => {
            vec![("reason", json!("conflict")), ("theirs", json!(theirs)), ("ours", json!(ours))]
        }
        StopReason::BadConfig(error) => vec![("reason", json!("bad-config")), ("error", json!(error))],
        StopReason::Denied(error) => vec![("reason", json!("denied")), ("error", json!(error))],
        StopReason::Broken(error) => vec![("reason", json!("broken")), ("error", json!(error))],
    }
}

/// The record of a line.
///
/// # Errors
///
/// What is wrong with the line.
pub fn read_line(line: &str) -> Result<Record, LineError> {
    let Ok(Value::Object(map)) = serde_json::from_str(line) else { return Err(LineError::Torn) };
    let fields = Fields(&map);
    Ok(Record {
        at: fields.time("at")?.ok_or(LineError::Field("at"))?,
        job: fields.text("job")?.into(),
        instance: fields.text("instance")?.into(),
        event: event(&fields)?,
        next_fire: None,
    })
}

fn event(fields: &Fields<'_>) -> Result<Event, LineError> {
    Ok(match fields.text("event")?.as_str() {
        "registered" => Event::Registered { id: fields.text("id")? },
        "suspended" => Event::Suspended,
        "distrusted" => Event::Distrusted,
        "reconnected" => Event::Reconnected,
        "elected" => Event::Elected,
        "abdicated" => Event::Abdicated,
        "resharded" => Event::Resharded { moved: fields.number("moved")? },
        "config-changed" => Event::ConfigChanged,
        "config-refused" => Event::ConfigRefused { error: fields.text("error")? },
        "round-started" => Event::RoundStarted {
            task_id: fields.text("taskId")?,
            source: fields.named("source", SOURCES, Source::name)?,
            nominal: fields.time("nominal")?,
            items: fields.items()?,
            merged: fields.number("merged")?,
        },
        "item-finished" => Event::ItemFinished {
            task_id: fields.text("taskId")?,
            item: fields.number("item")?,
            outcome: outcome(fields)?,
            output: fields.optional_text("output")?,
        },
        "hook-failed" => Event::HookFailed {
            task_id: fields.text("taskId")?,
            hook: fields.named("hook", Hook::ALL, Hook::name)?,
            error: fields.text("error")?,
        },
        "round-finished" => Event::RoundFinished { task_id: fields.text("taskId")? },
        "missed" => Event::Missed {
            nominal: fields.time("nominal")?.ok_or(LineError::Field("nominal"))?,
            items: fields.items()?,
        },
        "skipped" => Event::Skipped {
            nominal: fields.time("nominal")?,
            items: fields.items()?,
            why: fields.named("why", Skip::ALL, Skip::name)?,
        },
        "crashed" => Event::Crashed { items: fields.items()? },
        "took-over" => Event::TookOver { item: fields.number("item")? },
        "trigger-handed-on" => Event::TriggerHandedOn { from: fields.text("from")?, items: fields.items()? },
        "stopped" => Event::Stopped { reason: stopped(fields)? },
        other => return Err(LineError::UnknownEvent(other.to_owned())),
    })
}

const SOURCES: [Source; 4] = [Source::Schedule, Source::Trigger, Source::Misfire, Source::Failover];

fn outcome(fields: &Fields<'_>) -> Result<Outcome, LineError> {
    Ok(match fields.text("outcome")?.as_str() {
        "succeeded" => Outcome::Succeeded,
        "failed" => Outcome::Failed(fields.text("error")?),
        "cancelled" => Outcome::Cancelled,
        _ => return Err(LineError::Field("outcome")),
    })
}

fn stopped(fields: &Fields<'_>) -> Result<StopReason, LineError> {
    Ok(match fields.text("reason")?.as_str() {
        "left" => StopReason::Left,
        "shut-down" => StopReason::ShutDown,
        "removed" => StopReason::Removed,
        "conflict" => StopReason::Conflict { theirs: fields.text("theirs")?, ours: fields.text("ours")? },
        "bad-config" => StopReason::BadConfig(fields.text("error")?),
        "denied" => StopReason::Denied(fields.text("error")?),
        "broken" => StopReason::Broken(fields.text("error")?),
        _ => return Err(LineError::Field("reason")),
    })
}

/// The fields of a line, each as the type that is wanted.
struct Fields<'a>(&'a Map<String, Value>);

impl Fields<'_> {
    fn text(&self, name: &'static str) -> Result<String, LineError> {
        let text = self.0.get(name).and_then(Value::as_str);
        text.map(str::to_owned).ok_or(LineError::Field(name))
    }

    fn optional_text(&self, name: &'static str) -> Result<Option<String>, LineError> {
        self.0.contains_key(name).then(|| self.text(name)).transpose()
    }

    fn number<T: TryFrom<u64>>(&self, name: &'static str) -> Result<T, LineError> {
        let number = self.0.get(name).and_then(Value::as_u64);
        number.and_then(|it| T::try_from(it).ok()).ok_or(LineError::Field(name))
    }

    fn time(&self, name: &'static str) -> Result<Option<Timestamp>, LineError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let time = value.as_str().and_then(|it| it.parse().ok());
        time.map(Some).ok_or(LineError::Field(name))
    }

    fn items(&self) -> Result<BTreeSet<u32>, LineError> {
        let list = self.0.get("items").and_then(Value::as_array).ok_or(LineError::Field("items"))?;
        let number = |it: &Value| it.as_u64().and_then(|it| u32::try_from(it).ok());
        list.iter().map(number).collect::<Option<_>>().ok_or(LineError::Field("items"))
    }

    fn named<T: Copy, const N: usize>(
        &self,
        name: &'static str,
        all: [T; N],
        name_of: impl Fn(T) -> &'static str,
    ) -> Result<T, LineError> {
        let text = self.text(name)?;
        all.into_iter().find(|it| name_of(*it) == text).ok_or(LineError::Field(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn events() -> Vec<Event> {
        let items = BTreeSet::from([0, 2]);
        let at: Timestamp = "2026-11-15T02:00:00Z".parse().unwrap();
        let task_id = || "t".to_owned();
        let ended = |outcome| Event::ItemFinished { task_id: task_id(), item: 2, outcome, output: None };
        let printed = Event::ItemFinished {
            task_id: task_id(),
            item: 2,
            outcome: Outcome::Succeeded,
            output: Some("1 row\ndone".into()),
        };
        let skipped = |why| Event::Skipped { nominal: None, items: items.clone(), why };
        let mut all = vec![
            Event::Registered { id: "i".into() },
            Event::Suspended,
            Event::Distrusted,
            Event::Reconnected,
            Event::Elected,
            Event::Abdicated,
            Event::Resharded { moved: 3 },
            Event::ConfigChanged,
            Event::ConfigRefused { error: "no".into() },
            Event::RoundFinished { task_id: task_id() },
            Event::Missed { nominal: at, items: items.clone() },
            Event::Crashed { items: items.clone() },
            Event::TookOver { item: 2 },
            Event::TriggerHandedOn { from: "i".into(), items: items.clone() },
        ];
        all.extend(SOURCES.map(|source| Event::RoundStarted {
            task_id: task_id(),
            source,
            nominal: (source != Source::Trigger).then_some(at),
            items: items.clone(),
            merged: 1,
        }));
        all.extend([Outcome::Succeeded, Outcome::Failed("no\nrows".into()), Outcome::Cancelled].map(ended));
        all.push(printed);
        all.extend(Skip::ALL.map(skipped));
        let failed = |hook| Event::HookFailed { task_id: "t".into(), hook, error: "no".into() };
        all.extend(Hook::ALL.map(failed));
        let stops = [
            StopReason::Left,
            StopReason::ShutDown,
            StopReason::Removed,
            StopReason::Conflict { theirs: "a".into(), ours: "b".into() },
            StopReason::BadConfig("no".into()),
            StopReason::Denied("no".into()),
            StopReason::Broken("no".into()),
        ];
        all.extend(stops.map(|reason| Event::Stopped { reason }));
        all
    }

    fn record(event: Event) -> Record {
        let at = "2026-11-15T02:00:00.123Z".parse().unwrap();
        Record { at, job: "j".into(), instance: "i".into(), event, next_fire: None }
    }

    #[test]
    fn every_event_comes_back_as_it_was_written() {
        for event in events() {
            let line = write_line(&record(event.clone()));
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(read_line(&line).unwrap().event, event, "{line}");
        }
    }

    #[test]
    fn the_spelling_stays() {
        let lines: Vec<String> = events().into_iter().map(|it| write_line(&record(it))).collect();
        expect![[r#"
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"registered","id":"i"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"suspended"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"distrusted"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"reconnected"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"elected"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"abdicated"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"resharded","moved":3}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"config-changed"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"config-refused","error":"no"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"round-finished","taskId":"t"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"missed","nominal":"2026-11-15T02:00:00Z","items":[0,2]}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"crashed","items":[0,2]}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"took-over","item":2}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"trigger-handed-on","from":"i","items":[0,2]}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"round-started","taskId":"t","source":"schedule","nominal":"2026-11-15T02:00:00Z","items":[0,2],"merged":1}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"round-started","taskId":"t","source":"trigger","items":[0,2],"merged":1}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"round-started","taskId":"t","source":"misfire","nominal":"2026-11-15T02:00:00Z","items":[0,2],"merged":1}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"round-started","taskId":"t","source":"failover","nominal":"2026-11-15T02:00:00Z","items":[0,2],"merged":1}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"item-finished","taskId":"t","item":2,"outcome":"succeeded"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"item-finished","taskId":"t","item":2,"outcome":"failed","error":"no\nrows"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"item-finished","taskId":"t","item":2,"outcome":"cancelled"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"item-finished","taskId":"t","item":2,"outcome":"succeeded","output":"1 row\ndone"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"skipped","items":[0,2],"why":"item-disabled"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"skipped","items":[0,2],"why":"server-disabled"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"skipped","items":[0,2],"why":"overrun"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"skipped","items":[0,2],"why":"too-late"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"skipped","items":[0,2],"why":"clock-off"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"skipped","items":[0,2],"why":"no-items"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"skipped","items":[0,2],"why":"interrupted"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"skipped","items":[0,2],"why":"shut-down"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"hook-failed","taskId":"t","hook":"before","error":"no"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"hook-failed","taskId":"t","hook":"after","error":"no"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"hook-failed","taskId":"t","hook":"once-before","error":"no"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"hook-failed","taskId":"t","hook":"once-after","error":"no"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"stopped","reason":"left"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"stopped","reason":"shut-down"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"stopped","reason":"removed"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"stopped","reason":"conflict","theirs":"a","ours":"b"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"stopped","reason":"bad-config","error":"no"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"stopped","reason":"denied","error":"no"}
            {"at":"2026-11-15T02:00:00.123Z","job":"j","instance":"i","event":"stopped","reason":"broken","error":"no"}"#]].assert_eq(&lines.join("\n"));
    }

    #[test]
    fn what_is_no_record_is_said_to_be_none() {
        let line = write_line(&record(Event::TookOver { item: 2 }));
        for end in 1..line.len() {
            assert_eq!(read_line(&line[..end]).unwrap_err(), LineError::Torn, "{end}");
        }
        assert_eq!(read_line(&line.replace(":2}", ":-2}")).unwrap_err(), LineError::Field("item"));
        let later = line.replace("took-over", "took-under");
        assert_eq!(read_line(&later).unwrap_err(), LineError::UnknownEvent("took-under".into()));
        assert_eq!(read_line("{}").unwrap_err(), LineError::Field("at"));
    }
}
