//! Both sides of the comparison, as processes: how they are started, and what they use.

use std::fs;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use elasticjob_fleet::{Log, Process, Program};
use elasticjob_testkit::ZooKeeper;
use jiff::Timestamp;
use tempfile::TempDir;

use crate::samples::Samples;

/// How long a worker that is asked to end may take, before it is killed.
const END: Duration = Duration::from_secs(30);
/// How often it is looked whether a worker has written something. Nothing is timed by that: workers write the time.
const LOOK: Duration = Duration::from_millis(200);
/// Linux counts the processor time of a process in hundredths of a second, on whatever machine.
const TICKS_PER_SECOND: f64 = 100.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Java,
    Rust,
}

impl Side {
    pub(crate) const BOTH: [Side; 2] = [Side::Java, Side::Rust];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Side::Java => "Java",
            Side::Rust => "Rust",
        }
    }
}

/// What a worker is to do.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) namespace: String,
    pub(crate) jobs: usize,
    pub(crate) items: usize,
    pub(crate) cron: &'static str,
    pub(crate) session: Duration,
    /// How long a run takes.
    pub(crate) work: Duration,
    pub(crate) failover: bool,
    pub(crate) dataflow: bool,
    /// How many instances there are in one process. Java has one.
    pub(crate) instances: usize,
    /// Jobs that differ, as the workers spell them; empty for equal ones.
    pub(crate) specs: String,
    /// Of a proxy before the server.
    pub(crate) port: Option<u16>,
}

impl Setup {
    /// Jobs that fire each second and do nothing.
    pub(crate) fn each_second(namespace: String, jobs: usize, items: usize) -> Setup {
        Setup {
            namespace,
            jobs,
            items,
            cron: "0/1 * * * * ?",
            session: Duration::from_secs(10),
            work: Duration::ZERO,
            failover: false,
            dataflow: false,
            instances: 1,
            specs: String::new(),
            port: None,
        }
    }

    fn arguments(&self) -> Vec<String> {
        let mut pairs = vec![
            ("namespace", self.namespace.clone()),
            ("jobs", self.jobs.to_string()),
            ("items", self.items.to_string()),
            ("cron", self.cron.to_owned()),
            ("session-ms", self.session.as_millis().to_string()),
            ("work-ms", self.work.as_millis().to_string()),
            ("failover", self.failover.to_string()),
            ("dataflow", self.dataflow.to_string()),
        ];
        if self.instances > 1 {
            pairs.push(("instances", self.instances.to_string()));
        }
        if !self.specs.is_empty() {
            pairs.push(("specs", self.specs.clone()));
        }
        pairs.into_iter().flat_map(|(name, value)| [format!("--{name}"), value]).collect()
    }
}

/// One server for all measurements, each in a namespace of its own.
pub(crate) struct Stage {
    pub(crate) server: ZooKeeper,
    class_path: String,
    home: TempDir,
    started: std::cell::Cell<usize>,
}

impl Stage {
    pub(crate) fn open() -> Result<Stage> {
        let class_path = elasticjob_fleet::java::class_path()?;
        let server = ZooKeeper::start_for_measurements("maxSessionTimeout=60000");
        Ok(Stage { server, class_path, home: tempfile::tempdir()?, started: std::cell::Cell::new(0) })
    }

    /// A name that no measurement has used.
    pub(crate) fn namespace(&self) -> String {
        format!("bench-{}", self.count())
    }

    fn count(&self) -> usize {
        self.started.set(self.started.get() + 1);
        self.started.get()
    }

    pub(crate) fn start(&self, side: Side, setup: &Setup) -> Result<Member> {
        let out = self.home.path().join(format!("{}.out", self.count()));
        let program = match side {
            Side::Java => Program::new("java").args([
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-cp",
                &self.class_path,
                "interop.Bench",
            ]),
            Side::Rust => Program::new(std::env::current_exe()?.with_file_name("bench-worker")),
        };
        let registry = format!("127.0.0.1:{}", setup.port.unwrap_or(self.server.port()));
        let program = program.args(setup.arguments());
        let program = program.args(["--registry", &registry, "--out", &out.display().to_string()]);
        let program = program.errors_to(self.home.path().join("errors"));
        let began = now();
        let process = Process::start(&program, &Log::new())?;
        Ok(Member { process, out, began, read: 0, samples: Samples::default() })
    }

    pub(crate) fn server_usage(&self) -> Result<Usage> {
        Usage::of(self.server.pid().context("the server has no process")?)
    }

    /// The end of what workers said on stderr.
    pub(crate) fn errors(&self) -> String {
        let text = fs::read_to_string(self.home.path().join("errors")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

/// A running worker. It is killed when it is dropped.
pub(crate) struct Member {
    process: Process,
    out: PathBuf,
    pub(crate) began: i64,
    read: u64,
    pub(crate) samples: Samples,
}

/// What a process uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) resident_kib: f64,
    pub(crate) threads: f64,
    pub(crate) cpu_seconds: f64,
}

impl Usage {
    /// What the process of this number uses.
    pub(crate) fn of(pid: u32) -> Result<Usage> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let status = fs::read_to_string(folder.join("status"))?;
        let number = |name: &str| -> Result<f64> {
            let line = status.lines().find_map(|it| it.strip_prefix(name));
            let word = line.and_then(|it| it.split_whitespace().next());
            Ok(word.with_context(|| format!("/proc has no `{name}`"))?.parse()?)
        };
        let stat = fs::read_to_string(folder.join("stat"))?;
        // Behind the name, which may contain anything: user and system time are the 12th and the 13th.
        let (_, fields) = stat.rsplit_once(") ").context("/proc has no stat")?;
        let ticks: Result<Vec<f64>, _> = fields.split(' ').skip(11).take(2).map(str::parse::<f64>).collect();
        let cpu_seconds = ticks?.iter().sum::<f64>() / TICKS_PER_SECOND;
        Ok(Usage { resident_kib: number("VmRSS:")?, threads: number("Threads:")?, cpu_seconds })
    }
}

impl Member {
    /// Waits until this is true of what it has written, and gives what it says.
    pub(crate) async fn until<T>(
        &mut self,
        limit: Duration,
        what: &str,
        is_so: impl Fn(&Samples) -> Option<T>,
    ) -> Result<T> {
        let wait = async {
            loop {
                let had_ended = self.process.has_ended();
                self.look()?;
                if let Some(found) = is_so(&self.samples) {
                    return Ok(found);
                }
                if had_ended {
                    bail!("the worker ended before {what}");
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(limit, wait).await.with_context(|| format!("{what}: not within {limit:?}"))?
    }

    /// Takes the whole lines that it has written since the last look.
    pub(crate) fn look(&mut self) -> Result<()> {
        if !Path::exists(&self.out) {
            return Ok(());
        }
        let mut file = BufReader::new(fs::File::open(&self.out)?);
        file.seek(SeekFrom::Start(self.read))?;
        let mut line = String::new();
        loop {
            line.clear();
            let size = file.read_line(&mut line)?;
            let Some(whole) = line.strip_suffix('\n') else { return Ok(()) };
            self.samples.add(whole)?;
            self.read += size as u64;
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.process.has_ended()
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        Usage::of(self.process.pid())
    }
    /// Kills it at once, and says when.
    pub(crate) fn kill(&self) -> Result<i64> {
        self.process.kill()?;
        Ok(now())
    }

    /// Asks it to end, and takes all that it wrote.
    pub(crate) async fn end(mut self) -> Result<Samples> {
        self.process.terminate()?;
        if !self.process.ended(END).await {
            self.process.kill()?;
        }
        self.look()?;
        Ok(std::mem::take(&mut self.samples))
    }
}

/// Microseconds since 1970.
pub(crate) fn now() -> i64 {
    Timestamp::now().as_microsecond()
}

/// Waits until the time of day is this.
pub(crate) async fn sleep_until(micros: i64) {
    let wait = u64::try_from(micros - now()).unwrap_or_default();
    tokio::time::sleep(Duration::from_micros(wait)).await;
}
