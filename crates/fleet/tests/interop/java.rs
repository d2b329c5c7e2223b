//! The Java side: built once, and its operators' interface, one process for all tests.

use std::process::Stdio;
use std::sync::LazyLock;
use std::time::Duration;

use elasticjob_fleet::Program;
use elasticjob_fleet::job::FleetJob;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// How long an operator's command may take, with the start of the process.
const PATIENCE: Duration = Duration::from_secs(120);

/// What `java` needs to find our classes and everything that they need.
static CLASS_PATH: LazyLock<String> =
    LazyLock::new(|| elasticjob_fleet::java::class_path().unwrap_or_else(|error| panic!("{error}")));

/// Small, and quick to start: there are many of them.
fn options(main: &str) -> [String; 9] {
    [
        "-Xmx160m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Dfile.encoding=UTF-8", // Java's headers are in it, whatever the locale of the host.
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-cp",
        &CLASS_PATH,
        main,
    ]
    .map(str::to_owned)
}

/// A worker.
pub(crate) fn worker() -> Program {
    Program::new("java").args(options("interop.Worker"))
}

/// A job as Java's worker is told of it. It is the same job that a Rust worker is told of.
pub(crate) fn job(job: &FleetJob) -> Vec<String> {
    let mut words = vec!["--job".to_owned(), job.name.clone()];
    let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
    add("count", job.count.to_string());
    add("failover", job.failover.to_string());
    add("misfire", job.misfire.to_string());
    add("monitor", job.monitor.to_string());
    add("overwrite", job.overwrite.to_string());
    add("work-ms", job.work.to_string());
    add("parameter", job.parameter.clone());
    job.cron.iter().for_each(|it| add("cron", it.clone()));
    job.strategy.iter().for_each(|it| add("strategy", it.clone()));
    words
}

/// The class that Java names in the root of a job of ours.
pub(crate) const SIMPLE_CLASS: &str = "interop.Jobs$Simple";

/// Java's operators' interface, in a process of its own.
pub(crate) struct JavaOps {
    namespace: String,
    digest: String,
    process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl JavaOps {
    /// Starts the process.
    pub(crate) fn start(servers: &str, namespace: &str, digest: Option<&str>) -> JavaOps {
        let mut command = Command::new("java");
        command.args(options("interop.Ops")).arg(servers);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("java runs");
        let input = process.stdin.take().expect("it is piped");
        let output = BufReader::new(process.stdout.take().expect("it is piped")).lines();
        let digest = digest.unwrap_or("-").to_owned();
        JavaOps { namespace: namespace.to_owned(), digest, process, input, output }
    }

    /// Runs a command. What it prints, or why it failed.
    pub(crate) async fn run(&mut self, command: &str) -> Result<Vec<String>, String> {
        let line = format!("{} {} {command}\n", self.namespace, self.digest);
        let answer = tokio::time::timeout(PATIENCE, async {
            self.input.write_all(line.as_bytes()).await.expect("it reads");
            let mut said = Vec::new();
            loop {
                let line = self.output.next_line().await.expect("it speaks").expect("it lives");
                match line.strip_prefix("| ") {
                    Some(text) => said.push(text.to_owned()),
                    None if line == "ok" => return Ok(said),
                    None if line == "|" => said.push(String::new()),
                    None => return Err(line),
                }
            }
        });
        answer
            .await
            .unwrap_or_else(|_| panic!("`{command}` is not answered; process {:?}", self.process.id()))
    }

    /// Runs a command that must succeed.
    pub(crate) async fn ok(&mut self, command: &str) -> Vec<String> {
        self.run(command).await.unwrap_or_else(|error| panic!("`{command}`: {error}"))
    }
}
