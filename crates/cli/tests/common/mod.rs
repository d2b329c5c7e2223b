//! A registry on disk with a fleet in it, and the command that is run against it.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

use elasticjob::JobSpec;
use elasticjob::registry::{self, Kind, Op};
use elasticjob_testkit::ZooKeeper;

pub(crate) const A: &str = "10.0.0.1@-@71.4f2a90c1.1";
pub(crate) const B: &str = "10.0.0.12@-@93.b03d5512.1";

/// What kind of registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Disk,
    ZooKeeper,
}

static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

/// A registry, on disk or in a namespace of its own of a real server. Instances are ephemeral in a real fleet; here they are made to stay, because a registry on
/// disk belongs to one process, and that will be the command.
pub(crate) struct Store {
    dir: tempfile::TempDir,
    /// If it is not on disk.
    namespace: Option<String>,
}

impl Store {
    pub(crate) fn new() -> Store {
        Store::at(Place::Disk)
    }

    pub(crate) fn at(place: Place) -> Store {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let namespace = || format!("store-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let namespace = (place == Place::ZooKeeper).then(namespace);
        Store { dir: tempfile::tempdir().unwrap(), namespace }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    pub(crate) fn home(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn url(&self) -> String {
        match &self.namespace {
            None => format!("embedded://{}", self.path().display()),
            Some(namespace) => SERVER.url(namespace, "session-timeout=4s&base-sleep=50ms"),
        }
    }

    /// Writes nodes of a job: a path and its data each.
    pub(crate) fn write(&self, job: &str, nodes: &[(&str, &str)]) {
        let ops = nodes.iter().map(|(path, data)| Op::Create {
            path: (*path).to_owned(),
            data: (*data).to_owned(),
            kind: Kind::Persistent,
        });
        self.commit(job, ops.collect());
    }

    pub(crate) fn commit(&self, job: &str, ops: Vec<Op>) {
        runtime().block_on(async {
            let session = registry::open(&self.url()).unwrap().connect().await.unwrap();
            session.commit(&format!("/{job}"), ops).await.unwrap();
            session.close().await;
        });
    }

    /// Every node below the root, as `path | data`.
    pub(crate) fn everything(&self) -> Vec<String> {
        runtime().block_on(async {
            let session = registry::open(&self.url()).unwrap().connect().await.unwrap();
            let entries = session.read("").await.unwrap();
            session.close().await;
            let below = entries.into_iter().filter(|it| !it.path.is_empty());
            below.map(|it| format!("{} | {}", it.path, it.data)).collect()
        })
    }

    /// A job of two shards on two hosts, at rest.
    pub(crate) fn job(&self, spec: &JobSpec) {
        let (config, a, b) = (spec.to_yaml(), instance(A), instance(B));
        let mut nodes = vec![
            ("/config", config.as_str()),
            ("/servers/10.0.0.1", "ENABLED"),
            ("/servers/10.0.0.12", "ENABLED"),
            ("/leader/election/instance", A),
        ];
        let (path_a, path_b) = (format!("/instances/{A}"), format!("/instances/{B}"));
        nodes.extend([(path_a.as_str(), a.as_str()), (path_b.as_str(), b.as_str())]);
        let owners: Vec<String> =
            (0..spec.sharding_total_count).map(|item| format!("/sharding/{item}/instance")).collect();
        nodes.extend(
            owners.iter().enumerate().map(|(at, path)| (path.as_str(), if at % 2 == 0 { A } else { B })),
        );
        self.write(&spec.job_name, &nodes);
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_elasticjob"));
        command.args(arguments).env_clear().envs([
            ("ELASTICJOB_REGISTRY", self.url().as_str()),
            ("HOME", self.dir.path().to_str().unwrap()),
            ("PATH", &std::env::var("PATH").unwrap()),
            ("TZ", "UTC"),
            ("USER", "alice"),
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The exit code, what went to stdout, and to stderr.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        ended(self.command(arguments))
    }

    /// What a person sees: data, words after `! `, and the exit code unless it is 0; times made equal.
    pub(crate) fn shows(&self, arguments: &[&str]) -> String {
        let (code, out, words) = self.run(arguments);
        let mut text = out;
        for line in words.lines() {
            text.push_str(&format!("! {line}\n"));
        }
        if code != 0 {
            text.push_str(&format!("exit {code}\n"));
        }
        self.normal(&text)
    }

    pub(crate) fn normal(&self, text: &str) -> String {
        let text = text.replace(self.dir.path().to_str().unwrap(), "DIR");
        plain_times(&text)
    }
}

pub(crate) fn ended(mut command: Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

pub(crate) fn instance(id: &str) -> String {
    let ip = id.split('@').next().unwrap();
    format!("jobInstanceId: {id}\nserverIp: {ip}\n")
}

pub(crate) fn spec(name: &str, cron: &str, shards: u32) -> JobSpec {
    let mut spec = JobSpec::new(name, shards);
    spec.cron = Some(cron.to_owned());
    spec.time_zone = Some("GMT+0:00".to_owned());
    spec
}

/// Every digit of a time becomes a 0: `2026-11-15 02:00:00` and `2026-11-15T02:00:00.123Z` alike. So does the
/// number of a duration such as `(12 min)`, and a number of fires.
pub(crate) fn plain_times(text: &str) -> String {
    text.lines().map(|line| plain_line(line) + "\n").collect()
}

fn plain_line(line: &str) -> String {
    let mut out = String::new();
    let chars: Vec<char> = line.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        let rest: String = chars[at..].iter().collect();
        match time_length(&rest)
            .or_else(|| lasting_length(&rest).filter(|_| at > 0 && !chars[at - 1].is_ascii_digit()))
        {
            Some((length, word)) => {
                out.push_str(word);
                at += length;
            }
            None => {
                out.push(chars[at]);
                at += 1;
            }
        }
    }
    out
}

/// A date and a time of day.
fn time_length(text: &str) -> Option<(usize, &'static str)> {
    let shape = "dddd-dd-dd?dd:dd:dd";
    let mut it = text.chars();
    for wanted in shape.chars() {
        let found = it.next()?;
        let fits = match wanted {
            'd' => found.is_ascii_digit(),
            '?' => found == ' ' || found == 'T',
            other => found == other,
        };
        if !fits {
            return None;
        }
    }
    let fraction = it.as_str().chars().take_while(|c| c.is_ascii_digit() || *c == '.').count();
    let fraction = if it.as_str().starts_with('.') { fraction } else { 0 };
    Some((shape.len() + fraction, "0000-00-00 00:00:00"))
}

/// `12 min`, `3 s`.
fn lasting_length(text: &str) -> Option<(usize, &'static str)> {
    let digits = text.chars().take_while(char::is_ascii_digit).count();
    let unit = ["s", "min", "h", "d", "fires"].into_iter().find(|unit| {
        let rest = text[digits..].strip_prefix(&format!(" {unit}"));
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    })?;
    let word = if unit == "fires" { "0 fires" } else { "0 s" };
    (digits > 0).then_some((digits + 1 + unit.len(), word))
}
