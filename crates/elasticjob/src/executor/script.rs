//! Script jobs: a program for each shard, with the shard as JSON for its last argument, as Java passes it.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::job::{JobError, Shard};

/// What goes wrong with a script.
#[derive(Debug, thiserror::Error)]
enum ScriptError {
    #[error("property script.command.line is empty: write the program and its arguments")]
    Empty,
    #[error("script.command.line `{line}` cannot be split into words: {error}")]
    Words { line: String, error: shell_words::ParseError },
    #[error("cannot start `{program}`: {error}")]
    Start { program: String, error: std::io::Error },
    #[error("cannot wait for `{program}`: {error}")]
    Wait { program: String, error: std::io::Error },
    #[error("`{program}` ended with {status}")]
    Status { program: String, status: std::process::ExitStatus },
    #[error("`{program}` was stopped")]
    Stopped { program: String },
}

pub(super) async fn run(shard: &Shard, line: &str, grace: Duration) -> Result<(), JobError> {
    let words =
        shell_words::split(line).map_err(|error| ScriptError::Words { line: line.to_owned(), error })?;
    let [program, arguments @ ..] = words.as_slice() else { return Err(ScriptError::Empty.into()) };
    let child = Command::new(program)
        .args(arguments)
        .arg(context_json(shard))
        .stdin(Stdio::null())
        .process_group(0) // So that what it starts can be stopped with it.
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| ScriptError::Start { program: program.clone(), error })?;
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let result = wait(child, program, shard, &group, grace).await;
    if result.is_ok() {
        group.0 = None; // What it left behind on purpose may stay.
    }
    result.map_err(JobError::from)
}

async fn wait(
    mut child: Child,
    program: &str,
    shard: &Shard,
    group: &Group,
    grace: Duration,
) -> Result<(), ScriptError> {
    let failed = |error| ScriptError::Wait { program: program.to_owned(), error };
    let status = tokio::select! {
        status = child.wait() => status.map_err(failed)?,
        () = shard.cancelled() => {
            group.signal(Signal::TERM);
            if tokio::time::timeout(grace, child.wait()).await.is_err() {
                group.signal(Signal::KILL);
                child.wait().await.map_err(failed)?;
            }
            return Err(ScriptError::Stopped { program: program.to_owned() });
        }
    };
    match status.success() {
        true => Ok(()),
        false => Err(ScriptError::Status { program: program.to_owned(), status }),
    }
}

/// The processes of a script. Whatever is left of them when it is dropped is killed.
struct Group(Option<Pid>);

impl Group {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // The only failure is that nobody is left to be told.
            kill_process_group(group, signal).ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// The shard as Java's script jobs get it, to the byte: these keys in this order, no parameter if there is
/// none, and the characters escaped that are not safe in HTML.
fn context_json(shard: &Shard) -> String {
    let mut fields = vec![
        format!("\"jobName\":{}", json_text(&shard.job)),
        format!("\"taskId\":{}", json_text(&shard.task_id)),
        format!("\"shardingTotalCount\":{}", shard.total),
        format!("\"jobParameter\":{}", json_text(&shard.job_parameter)),
        format!("\"shardingItem\":{}", shard.item),
    ];
    fields.extend(shard.parameter.as_deref().map(|it| format!("\"shardingParameter\":{}", json_text(it))));
    format!("{{{}}}", fields.join(","))
}

fn json_text(text: &str) -> String {
    let mut json = String::from('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            '<' | '>' | '&' | '=' | '\'' | '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                json.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn the_context_is_what_java_passes() {
        let mut shard = testing::shard("myJob", 0, 3);
        shard.task_id = "t".into();
        shard.parameter = Some("Beijing".into());
        assert_eq!(
            context_json(&shard),
            r#"{"jobName":"myJob","taskId":"t","shardingTotalCount":3,"jobParameter":"","shardingItem":0,"shardingParameter":"Beijing"}"#
        );
        shard.task_id = "myJob@-@0,1@-@READY@-@192.168.1.5@-@12345".into();
        shard.job_parameter = "it's <b>&=\"q\"中".into();
        shard.parameter = None;
        assert_eq!(
            context_json(&shard),
            r#"{"jobName":"myJob","taskId":"myJob@-@0,1@-@READY@-@192.168.1.5@-@12345","shardingTotalCount":3,"jobParameter":"it\u0027s \u003cb\u003e\u0026\u003d\"q\"中","shardingItem":0}"#
        );
    }

    async fn outcome(line: &str) -> String {
        match run(&testing::shard("j", 0, 1), line, Duration::from_secs(1)).await {
            Ok(()) => "ok".into(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn the_exit_code_and_the_quotes_count() {
        assert_eq!(outcome("true").await, "ok");
        assert_eq!(outcome("sh -c 'exit 3'").await, "`sh` ended with exit status: 3");
        assert_eq!(outcome(r#"sh -c 'test "$0" = "a b"' "a b""#).await, "ok");
        assert_eq!(outcome(r#"sh -c 'case "$1" in *shardingItem*) exit 0;; esac; exit 9' x"#).await, "ok");
        assert_eq!(
            outcome("  ").await,
            "property script.command.line is empty: write the program and its arguments"
        );
        assert!(outcome("'").await.starts_with("script.command.line `'` cannot be split into words"));
        assert!(outcome("/no/such/program").await.starts_with("cannot start `/no/such/program`"));
    }

    #[tokio::test]
    async fn a_script_that_ignores_the_request_is_killed_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let pid_file = dir.path().join("pid");
        let line = format!(
            "sh -c 'trap \"\" TERM; (trap \"\" TERM; sleep 1000) & echo $! > {0}.new; mv {0}.new {0}; wait'",
            pid_file.display()
        );
        let shard = testing::shard("j", 0, 1);
        let cancel = shard.cancel.clone();
        let script = tokio::spawn(async move { run(&shard, &line, Duration::from_millis(50)).await });
        let child = loop {
            match std::fs::read_to_string(&pid_file) {
                Ok(text) if !text.trim().is_empty() => break text.trim().to_owned(),
                _ => tokio::task::yield_now().await,
            }
        };
        cancel.cancel();
        assert_eq!(script.await.unwrap().unwrap_err().to_string(), "`sh` was stopped");
        let gone = || {
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z")
        };
        while !gone() {
            tokio::task::yield_now().await;
        }
    }
}
