//! Script jobs: a program for each shard, with the shard as JSON for its last argument, as Java passes it, and
//! in its environment.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWrite;
use tokio::process::{Child, Command};

use super::context;
use super::output::{Output, for_the_record, quoted};
use super::props::{Props, TypeError};
use crate::job::{JobError, Shard};

/// The property that holds the command line.
pub(crate) const COMMAND_LINE: &str = "script.command.line";
/// Where the program runs.
pub(crate) const DIRECTORY: &str = "elasticjob.script.directory";
/// Before the name of a variable for its environment.
pub(crate) const ENV: &str = "elasticjob.script.env.";
/// How long it may take.
pub(crate) const TIMEOUT: &str = "elasticjob.script.timeout";

/// What the properties say.
struct Settings {
    program: String,
    arguments: Vec<String>,
    directory: Option<PathBuf>,
    env: Vec<(String, String)>,
    limit: Option<Duration>,
}

impl Settings {
    fn read(props: Props<'_>) -> Result<Settings, TypeError> {
        let missing = || TypeError::missing(COMMAND_LINE, "write the program and its arguments");
        let line = props.text(COMMAND_LINE).ok_or_else(missing)?;
        let words = shell_words::split(line)
            .map_err(|_| TypeError::wrong(COMMAND_LINE, line, "has a quote that is not closed: close it"))?;
        let mut words = words.into_iter();
        let program = words.next().ok_or_else(missing)?;
        let mut env = Vec::new();
        for (key, value) in props.0 {
            let Some(name) = key.strip_prefix(ENV) else { continue };
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(TypeError::wrong(
                    key,
                    value,
                    "has no name for its variable: name it behind the last dot",
                ));
            }
            env.push((name.to_owned(), value.clone()));
        }
        Ok(Settings {
            program,
            arguments: words.collect(),
            directory: props.text(DIRECTORY).map(PathBuf::from),
            env,
            limit: props.duration(TIMEOUT)?,
        })
    }

    fn command(&self, shard: &Shard) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .arg(context::json(shard))
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0) // So that what it starts can be stopped with it.
            .kill_on_drop(true);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        for (name, value) in variables(shard) {
            // One that was inherited would be another shard's.
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }
}

pub(super) fn check(props: Props<'_>) -> Result<(), TypeError> {
    Settings::read(props).map(drop)
}

fn variables(shard: &Shard) -> [(&'static str, Option<String>); 10] {
    [
        ("ELASTICJOB_JOB_NAME", Some(shard.job.to_string())),
        ("ELASTICJOB_TASK_ID", Some(shard.task_id.to_string())),
        ("ELASTICJOB_SHARDING_TOTAL_COUNT", Some(shard.total.to_string())),
        ("ELASTICJOB_SHARDING_ITEM", Some(shard.item.to_string())),
        ("ELASTICJOB_SHARDING_PARAMETER", shard.parameter.clone()),
        ("ELASTICJOB_JOB_PARAMETER", Some(shard.job_parameter.to_string())),
        ("ELASTICJOB_FENCING_TOKEN", Some(shard.token.to_string())),
        ("ELASTICJOB_ATTEMPT", Some(shard.attempt.to_string())),
        ("ELASTICJOB_TRIGGER_PARAMETER", shard.trigger_parameter.as_deref().map(str::to_owned)),
        ("ELASTICJOB_NOMINAL_TIME", shard.nominal.map(|at| at.to_string())),
    ]
}

/// What goes wrong with a script.
#[derive(Debug, thiserror::Error)]
enum ScriptError {
    #[error("cannot start `{program}`{}: {error}", in_directory(directory.as_ref()))]
    Start { program: String, directory: Option<PathBuf>, error: std::io::Error },
    #[error("cannot wait for `{program}`: {error}")]
    Wait { program: String, error: std::io::Error },
    #[error("`{program}` ended with {status}{}", quoted(last))]
    Status { program: String, status: ExitStatus, last: Vec<String> },
    #[error("`{program}` did not end within {limit:?} and was stopped{}", quoted(last))]
    TooLong { program: String, limit: Duration, last: Vec<String> },
    #[error("`{program}` was stopped{}", quoted(last))]
    Stopped { program: String, last: Vec<String> },
}

fn in_directory(directory: Option<&PathBuf>) -> String {
    directory.map(|it| format!(" in `{}`", it.display())).unwrap_or_default()
}

/// How a script ended.
enum End {
    Exited(ExitStatus),
    TooLong(Duration),
    Cancelled,
}

/// Returns the last lines that it printed.
pub(super) async fn run(
    shard: &Shard,
    props: Props<'_>,
    grace: Duration,
) -> Result<Option<String>, JobError> {
    run_into(shard, props, grace, tokio::io::stdout(), tokio::io::stderr()).await
}

async fn run_into(
    shard: &Shard,
    props: Props<'_>,
    grace: Duration,
    stdout: impl AsyncWrite + Send + Unpin + 'static,
    stderr: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<Option<String>, JobError> {
    let settings = Settings::read(props)?;
    let program = settings.program.clone();
    let mut child = settings.command(shard).spawn().map_err(|error| ScriptError::Start {
        program: program.clone(),
        directory: settings.directory.clone(),
        error,
    })?;
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let output = Output::follow(&mut child, stdout, stderr);
    let end = wait(&mut child, shard, settings.limit, &group, grace).await;
    if matches!(&end, Ok(End::Exited(status)) if status.success()) {
        group.0 = None; // What it left behind on purpose may stay.
    }
    drop(group);
    let last = output.end().await;
    match end {
        Ok(End::Exited(status)) if status.success() => Ok(for_the_record(&last)),
        Ok(End::Exited(status)) => Err(ScriptError::Status { program, status, last }.into()),
        Ok(End::TooLong(limit)) => Err(ScriptError::TooLong { program, limit, last }.into()),
        Ok(End::Cancelled) => Err(ScriptError::Stopped { program, last }.into()),
        Err(error) => Err(ScriptError::Wait { program, error }.into()),
    }
}

async fn wait(
    child: &mut Child,
    shard: &Shard,
    limit: Option<Duration>,
    group: &Group,
    grace: Duration,
) -> std::io::Result<End> {
    let over = async {
        match limit {
            Some(limit) => {
                tokio::time::sleep(limit).await;
                End::TooLong(limit)
            }
            None => std::future::pending().await,
        }
    };
    let end = tokio::select! {
        status = child.wait() => return status.map(End::Exited),
        () = shard.cancelled() => End::Cancelled,
        end = over => end,
    };
    group.signal(Signal::TERM);
    if tokio::time::timeout(grace, child.wait()).await.is_err() {
        group.signal(Signal::KILL);
        child.wait().await?;
    }
    Ok(end)
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing;

    fn props(line: &str, more: &[(&str, &str)]) -> BTreeMap<String, String> {
        let line = [(COMMAND_LINE, line)];
        line.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    async fn outcome(line: &str, more: &[(&str, &str)]) -> String {
        let props = props(line, more);
        match run(&testing::shard("j", 0, 1), Props(&props), Duration::from_secs(1)).await {
            Ok(_) => "ok".into(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn the_exit_code_and_the_quotes_count() {
        assert_eq!(outcome("true", &[]).await, "ok");
        assert_eq!(outcome("sh -c 'exit 3'", &[]).await, "`sh` ended with exit status: 3");
        assert_eq!(outcome(r#"sh -c 'test "$0" = "a b"' "a b""#, &[]).await, "ok");
        assert_eq!(
            outcome(r#"sh -c 'case "$1" in *shardingItem*) exit 0;; esac; exit 9' x"#, &[]).await,
            "ok"
        );
        assert_eq!(
            outcome("  ", &[]).await,
            "property script.command.line is missing: write the program and its arguments"
        );
        assert_eq!(
            outcome("'", &[]).await,
            "property script.command.line `'` has a quote that is not closed: close it"
        );
        assert!(outcome("/no/such/program", &[]).await.starts_with("cannot start `/no/such/program`: "));
        assert!(
            outcome("true", &[(DIRECTORY, "/no/such")])
                .await
                .starts_with("cannot start `true` in `/no/such`: ")
        );
    }

    #[tokio::test]
    async fn one_that_prints_a_lot_is_not_held_up_and_little_is_kept() {
        let run = |line: &'static str| async move {
            let (shard, props, sink) = (testing::shard("j", 0, 1), props(line, &[]), tokio::io::sink);
            let grace = Duration::from_secs(1);
            run_into(&shard, Props(&props), grace, sink(), sink()).await.unwrap_err().to_string()
        };
        // More than any pipe holds, on both.
        let text =
            run("sh -c 'seq 1 100000 & seq 100000 200000 >&2; wait; echo last; echo last >&2; exit 1'").await;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 21, "{text}");
        assert!(lines.contains(&"  last"), "{text}");
        let text = run("sh -c 'head -c 3000000 /dev/zero; exit 1'").await;
        assert!(text.len() < 10_000, "{}", text.len());
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
        let script = tokio::spawn(async move {
            let props = props(&line, &[]);
            run(&shard, Props(&props), Duration::from_millis(50)).await
        });
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
