//! Many equal jobs in one process. What it writes is what the Java program `interop.Bench` writes:
//! `ready MICROS`, `run JOB ITEM NOMINAL-MICROS START-MICROS` and `rows COUNT MICROS`.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use elasticjob::{DataflowJob, Job, JobError, Shard, Worker};
use jiff::Timestamp;

const BATCH: usize = 100;
/// How often a dataflow job says how far it is.
const TELL_EVERY_MICROS: i64 = 200_000;
const WRITE_EVERY: Duration = Duration::from_millis(50);

#[derive(Parser)]
struct Options {
    /// ZooKeeper's servers: `host:port,…`.
    #[arg(long)]
    registry: String,
    #[arg(long)]
    namespace: String,
    #[arg(long, default_value_t = 10_000)]
    session_ms: u64,
    #[arg(long, default_value_t = 1)]
    jobs: u32,
    #[arg(long, default_value_t = 1)]
    items: u32,
    #[arg(long)]
    cron: String,
    /// How long a run takes.
    #[arg(long, default_value_t = 0)]
    work_ms: u64,
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set)]
    failover: bool,
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set)]
    monitor: bool,
    #[arg(long, default_value_t = false, action = clap::ArgAction::Set)]
    dataflow: bool,
    /// How many instances of all jobs there are in this process, each with a session of its own.
    #[arg(long, default_value_t = 1)]
    instances: usize,
    /// Jobs that differ, instead of equal ones: `ITEMS:CRON:MONITOR:FAILOVER`, each behind a `;`.
    #[arg(long, value_delimiter = ';')]
    specs: Vec<Spec>,
    /// The file for what it has to say.
    #[arg(long)]
    out: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let options = Options::parse();
    let out = Output::create(&options.out)?;
    tokio::spawn(out.clone().write_now_and_then());
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..options.instances {
        starting.spawn(instance(&options, &out).start());
    }
    let mut running = Vec::new();
    while let Some(started) = starting.join_next().await {
        running.push(started??);
    }
    out.print(&format!("ready {}", micros()))?;
    let asked = elasticjob::until_asked_to_end().await;
    for instance in running {
        instance.shutdown().await;
    }
    out.file().flush()?;
    Ok(asked?)
}

fn instance(options: &Options, out: &Output) -> Worker {
    let Options { registry, namespace, session_ms, .. } = options;
    let mut worker =
        Worker::new(format!("zookeeper://{registry}/{namespace}?session-timeout={session_ms}ms"));
    for (number, spec) in (0..).zip(options.specs()) {
        let job = if options.dataflow { rows(number, out) } else { simple(number, options, out) };
        let job = job.cron(spec.cron).shards(spec.items).misfire(false);
        worker = worker.job(job.monitor_execution(spec.monitor).failover(spec.failover));
    }
    worker
}

/// What one job is like.
#[derive(Clone, Debug)]
struct Spec {
    items: u32,
    cron: String,
    monitor: bool,
    failover: bool,
}

impl FromStr for Spec {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Spec> {
        let [items, cron, monitor, failover] = text.split(':').collect::<Vec<_>>()[..] else {
            anyhow::bail!("`{text}` is not like `10:0/5 * * * * ?:true:false`");
        };
        Ok(Spec {
            items: items.parse()?,
            cron: cron.to_owned(),
            monitor: monitor.parse()?,
            failover: failover.parse()?,
        })
    }
}

impl Options {
    fn specs(&self) -> Vec<Spec> {
        if !self.specs.is_empty() {
            return self.specs.clone();
        }
        let Options { items, cron, monitor, failover, jobs, .. } = self;
        let spec = Spec { items: *items, cron: cron.clone(), monitor: *monitor, failover: *failover };
        vec![spec; usize::try_from(*jobs).unwrap_or(usize::MAX)]
    }
}

fn simple(number: u32, options: &Options, out: &Output) -> Job {
    let (out, work) = (out.clone(), Duration::from_millis(options.work_ms));
    Job::simple(format!("job-{number}"), move |shard: Shard| {
        let start = micros();
        let out = out.clone();
        async move {
            let nominal = shard.nominal.map_or(0, Timestamp::as_microsecond);
            out.print(&format!("run {number} {} {nominal} {start}", shard.item))?;
            if !work.is_zero() {
                tokio::time::sleep(work).await;
            }
            Ok(())
        }
    })
}

fn rows(number: u32, out: &Output) -> Job {
    let rows = Rows { out: out.clone(), rows: AtomicI64::new(0), told: AtomicI64::new(0) };
    Job::dataflow(format!("job-{number}"), rows).streaming(true)
}

/// Has always a batch of rows, at once, and does nothing with them but count.
struct Rows {
    out: Output,
    rows: AtomicI64,
    told: AtomicI64,
}

impl DataflowJob for Rows {
    type Item = u32;

    async fn fetch(&self, _: &Shard) -> Result<Vec<u32>, JobError> {
        Ok(vec![1; BATCH])
    }

    async fn process(&self, _: &Shard, rows: Vec<u32>) -> Result<(), JobError> {
        let new = i64::try_from(rows.len())?;
        let count = self.rows.fetch_add(new, Ordering::Relaxed) + new;
        let (now, last) = (micros(), self.told.load(Ordering::Relaxed));
        let is_due = now - last > TELL_EVERY_MICROS;
        if is_due && self.told.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.out.print(&format!("rows {count} {now}"))?;
        }
        Ok(())
    }
}

fn micros() -> i64 {
    Timestamp::now().as_microsecond()
}

/// The file. It is written now and then, so that those who begin together do not wait for each other's writes.
#[derive(Clone)]
struct Output(Arc<Mutex<BufWriter<File>>>);

impl Output {
    fn create(path: &Path) -> anyhow::Result<Output> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Output(Arc::new(Mutex::new(BufWriter::with_capacity(1 << 20, file)))))
    }

    fn file(&self) -> MutexGuard<'_, BufWriter<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn print(&self, line: &str) -> std::io::Result<()> {
        writeln!(self.file(), "{line}")
    }

    async fn write_now_and_then(self) {
        let mut every = tokio::time::interval(WRITE_EVERY);
        loop {
            every.tick().await;
            if let Err(error) = self.file().flush() {
                eprintln!("what happened cannot be written: {error}");
            }
        }
    }
}
