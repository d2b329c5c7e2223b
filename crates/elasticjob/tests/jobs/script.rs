//! Script jobs, with real processes and real time.

use std::path::Path;
use std::time::{Duration, Instant};

use elasticjob::{Event, Job, Outcome, Worker, testing};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::{LONG, failure, find, finished, registry, run_once};

/// A job that runs a line of shell, with the context in `$0`.
fn shell(line: &str) -> Job {
    Job::script_args("shell", ["sh", "-c", line])
}

/// The process whose id a script has written into a file, which it may not have done yet.
async fn process(file: &Path) -> Pid {
    let read = async {
        loop {
            if let Ok(text) = std::fs::read_to_string(file)
                && let Some(pid) = text.strip_suffix('\n').and_then(|text| text.parse().ok())
            {
                return Pid::from_raw(pid).unwrap();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, read).await.expect("the script says its id")
}

fn runs(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    test_kill_process(pid).is_ok() && !stat.contains(") Z")
}

async fn ends(pid: Pid) {
    let gone = async {
        while runs(pid) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LONG, gone).await.expect("it ends");
}

#[tokio::test]
async fn arguments_arrive_as_they_are() {
    let words = ["a b", "it's", "\"q\"", "", "$HOME `x` \\ *", "two\nlines", "中", "-n"];
    let mut argv = vec!["sh", "-c", r#"for word in "$@"; do printf '%s|' "$word"; done >"$0""#];
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("words");
    argv.push(file.to_str().unwrap());
    argv.extend(words);
    assert_eq!(run_once(&Job::script_args("argv", argv)).await, Outcome::Succeeded);
    let written = std::fs::read_to_string(&file).unwrap();
    let (given, context) = written.trim_end_matches('|').rsplit_once('|').unwrap();
    assert_eq!(given, words.join("|"));
    assert!(context.starts_with(r#"{"jobName":"argv","taskId":""#), "{context}");
}

#[tokio::test]
async fn the_shard_is_in_the_environment_too() {
    let dir = tempfile::tempdir().unwrap();
    let job = shell("env | grep -e ^ELASTICJOB_ -e ^COLOUR= | sort >env-$ELASTICJOB_SHARDING_ITEM")
        .shards(2)
        .shard_parameters(["north"])
        .parameter("full = yes")
        .script_directory(dir.path())
        .script_env("COLOUR", "sea green")
        .script_env("ELASTICJOB_JOB_NAME", "a forged name");
    let outcomes = testing::run_once(&job).await.unwrap();
    assert!(outcomes.values().all(|it| *it == Outcome::Succeeded), "{outcomes:?}");
    let read = |item| std::fs::read_to_string(dir.path().join(format!("env-{item}"))).unwrap();
    assert_eq!(
        read(0),
        "COLOUR=sea green
ELASTICJOB_ATTEMPT=1
ELASTICJOB_FENCING_TOKEN=1
ELASTICJOB_JOB_NAME=shell
ELASTICJOB_JOB_PARAMETER=full = yes
ELASTICJOB_SHARDING_ITEM=0
ELASTICJOB_SHARDING_PARAMETER=north
ELASTICJOB_SHARDING_TOTAL_COUNT=2
ELASTICJOB_TASK_ID=shell@-@0@-@READY@-@127.0.0.1@-@1.test.1-1
"
    );
    assert!(!read(1).contains("SHARDING_PARAMETER"), "{}", read(1));
}

#[tokio::test]
async fn a_scheduled_run_says_for_when() {
    let dir = tempfile::tempdir().unwrap();
    let job = shell("echo $ELASTICJOB_NOMINAL_TIME >at; exit 1").script_directory(dir.path());
    let worker = Worker::new(registry()).job(job.cron("* * * * * ?")).start().await.unwrap();
    let mut records = worker.records();
    finished(&mut records).await;
    let at = std::fs::read_to_string(dir.path().join("at")).unwrap();
    assert!(at.trim().parse::<jiff::Timestamp>().is_ok(), "{at}");
    worker.shutdown().await;
}

#[tokio::test]
async fn a_failure_shows_the_last_lines() {
    assert_eq!(failure(&shell("echo oops >&2; exit 3")).await, "`sh` ended with exit status: 3: oops");
    assert_eq!(
        failure(&shell("echo one; echo two; echo three; exit 1")).await,
        "`sh` ended with exit status: 1:\n  one\n  two\n  three"
    );
    assert_eq!(failure(&shell("kill -9 $$")).await, "`sh` ended with signal: 9 (SIGKILL)");
}

#[tokio::test]
async fn a_success_keeps_the_last_lines_in_its_record() {
    let output = async |line: &str| {
        let worker = Worker::new(registry()).job(shell(line).cron("* * * * * ?")).start().await.unwrap();
        let mut records = worker.records();
        let ended = find(&mut records, |event| match event {
            Event::ItemFinished { outcome, output, .. } => Some((outcome.clone(), output.clone())),
            _ => None,
        });
        let ended = ended.await;
        worker.shutdown().await;
        ended
    };
    let kept = |text: &str| (Outcome::Succeeded, Some(text.to_owned()));
    assert_eq!(output("echo connected >&2; echo 3 rows").await.1.unwrap().lines().count(), 2);
    assert_eq!(output("seq 1 1000").await, kept("996\n997\n998\n999\n1000"));
    assert_eq!(output("true").await, (Outcome::Succeeded, None));
    // Of one that failed, they are in the error.
    let (outcome, kept) = output("echo oops; exit 1").await;
    assert_eq!((outcome.name(), kept), ("failed", None));
}

#[tokio::test]
async fn one_that_takes_too_long_may_clean_up() {
    let job = shell("trap 'echo cleaned up; exit 0' TERM; echo working; while :; do sleep 0.01; done");
    let text = failure(&job.script_timeout(Duration::from_secs(5))).await;
    assert!(text.starts_with("`sh` did not end within 5s and was stopped:\n  working\n"), "{text}");
    assert!(text.ends_with("\n  cleaned up"), "{text}");
}

#[tokio::test]
async fn one_that_takes_too_long_and_ignores_that_is_killed_with_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let job = shell("trap '' TERM; sleep 1000 & echo $! >pid; wait; sleep 1000").script_directory(dir.path());
    let text = failure(&job.prop("elasticjob.script.timeout", "5s")).await;
    assert_eq!(text, "`sh` did not end within 5s and was stopped");
    ends(process(&dir.path().join("pid")).await).await;
}

#[tokio::test]
async fn a_worker_that_leaves_stops_a_script_and_all_that_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let job = shell("trap '' TERM; (trap '' TERM; sleep 1000) & echo $! >pid; wait");
    let job = job.script_directory(dir.path()).one_off();
    let worker = Worker::new(registry())
        .job(job)
        .shutdown_grace(Duration::ZERO)
        .cancel_grace(Duration::from_millis(100));
    let worker = worker.start().await.unwrap();
    let mut records = worker.records();
    worker.trigger("shell").await.unwrap();
    let child = process(&dir.path().join("pid")).await;
    assert!(runs(child));
    tokio::time::timeout(LONG, worker.shutdown()).await.expect("it does not wait for the script");
    assert_eq!(finished(&mut records).await.1, Outcome::Cancelled);
    ends(child).await;
}

#[tokio::test]
async fn what_a_script_leaves_behind_does_not_hold_its_round() {
    let dir = tempfile::tempdir().unwrap();
    // It holds both pipes, and in the second case it has left the group, so that it cannot be killed either.
    for (line, outcome) in [
        ("sleep 1000 & echo $! >pid; exit 0", Outcome::Succeeded),
        (
            "setsid sleep 1000 & echo $! >pid; exit 7",
            Outcome::Failed("`sh` ended with exit status: 7".into()),
        ),
    ] {
        let began = Instant::now();
        assert_eq!(run_once(&shell(line).script_directory(dir.path())).await, outcome);
        assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
        let left = process(&dir.path().join("pid")).await;
        if outcome == Outcome::Succeeded {
            assert!(runs(left), "what was left on purpose may stay");
        }
        kill_process(left, Signal::KILL).ok();
    }
}

#[tokio::test]
async fn a_command_line_from_the_file_may_be_a_list() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.yaml");
    let text = "
registry: embedded://
jobs:
  list:
    script: [sh, -c, 'test \"$1\" = \"a  b\" && exit 42', name, a  b]
    props: { elasticjob.script.timeout: 1m }
";
    std::fs::write(&path, text).unwrap();
    let worker = Worker::from_file(&path).unwrap().start().await.unwrap();
    let mut records = worker.records();
    worker.trigger("list").await.unwrap();
    assert_eq!(finished(&mut records).await.1, Outcome::Failed("`sh` ended with exit status: 42".into()));
    worker.shutdown().await;
}

#[tokio::test]
async fn what_cannot_work_is_said_at_the_start() {
    let said =
        |job: Job| async { Worker::new("embedded://").job(job).start().await.unwrap_err().to_string() };
    assert_eq!(
        said(Job::script("j", " ")).await,
        "job `j`: property script.command.line is missing: write the program and its arguments"
    );
    assert_eq!(
        said(Job::script("j", "date '+%s")).await,
        "job `j`: property script.command.line `date '+%s` has a quote that is not closed: close it"
    );
    assert_eq!(
        said(Job::script("j", "date").script_timeout(Duration::ZERO)).await,
        "job `j`: property elasticjob.script.timeout `0ms` is no duration: write a number and its unit, as in 30s or 2m"
    );
    assert_eq!(
        said(Job::script("j", "date").script_env("A=B", "c")).await,
        "job `j`: property elasticjob.script.env.A=B `c` has no name for its variable: name it behind the last dot"
    );
}
