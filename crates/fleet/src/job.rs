//! Jobs as the command line of `fleet-worker` gives them: `name=orders;cron=0/5 * * * * ?;count=4`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use elasticjob::{Job, JobError, Pool, Shard, SimpleJob};

use crate::line::{Ended, Line, Start, What};
use crate::store;

/// A job and how long its items take.
///
/// ```
/// use elasticjob_fleet::job::FleetJob;
///
/// let job: FleetJob = "name=orders;cron=0/5 * * * * ?;count=4;failover=true;work=300".parse().unwrap();
/// assert_eq!((job.name.as_str(), job.count, job.failover), ("orders", 4, true));
/// assert_eq!(job.to_string().parse::<FleetJob>().unwrap(), job);
/// let error = "name=orders;count=many".parse::<FleetJob>().unwrap_err();
/// assert_eq!(error.to_string(), "count: `many` is not a whole number");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetJob {
    /// Its name.
    pub name: String,
    /// Its schedule; without one it runs when it is triggered.
    pub cron: Option<String>,
    /// How many items.
    pub count: u32,
    /// Whether the items of the dead are taken over.
    pub failover: bool,
    /// Whether missed fires are made up for.
    pub misfire: bool,
    /// Whether the registry keeps who runs what.
    pub monitor: bool,
    /// This configuration replaces that of the registry.
    pub overwrite: bool,
    /// How many items run at a time in one process; 0 leaves it to the library, and the document without a word
    /// about it, as Java 3.0.4 needs it.
    pub pool: usize,
    /// How long an item takes, in milliseconds; half of that more for odd items.
    pub work: u64,
    /// Every so manieth run takes five times as long; 0 is never.
    pub long_every: u64,
    /// How long a run goes on after it was told to stop, in milliseconds.
    pub deaf: u64,
    /// The job's parameter.
    pub parameter: String,
    /// The class that the root node names, for fleets with Java.
    pub class: String,
    /// The name of its strategy.
    pub strategy: Option<String>,
}

impl Default for FleetJob {
    fn default() -> FleetJob {
        FleetJob {
            name: String::new(),
            cron: None,
            count: 1,
            failover: false,
            misfire: true,
            monitor: true,
            overwrite: false,
            pool: 64,
            work: 100,
            long_every: 0,
            deaf: 0,
            parameter: String::new(),
            class: String::new(),
            strategy: None,
        }
    }
}

/// What is wrong with a job on the command line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadJob {
    /// A value is none.
    #[error("{key}: `{value}` is not {wanted}")]
    Value {
        /// The key.
        key: String,
        /// What it was given.
        value: String,
        /// What it takes.
        wanted: &'static str,
    },
    /// A key is none.
    #[error(
        "`{0}` is unknown: name, cron, count, failover, misfire, monitor, overwrite, pool, work, long-every, deaf, parameter, class and strategy are not"
    )]
    Key(String),
    /// It has no name.
    #[error("a job needs a name: `name=orders;cron=0/5 * * * * ?;count=4`")]
    NoName,
}

impl std::str::FromStr for FleetJob {
    type Err = BadJob;

    fn from_str(text: &str) -> Result<FleetJob, BadJob> {
        let mut job = FleetJob::default();
        for pair in text.split(';').filter(|it| !it.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match key {
                "name" => job.name = value.to_owned(),
                "cron" => job.cron = Some(value.to_owned()),
                "count" => job.count = parse(key, value, "a whole number")?,
                "failover" => job.failover = parse(key, value, "true or false")?,
                "misfire" => job.misfire = parse(key, value, "true or false")?,
                "monitor" => job.monitor = parse(key, value, "true or false")?,
                "overwrite" => job.overwrite = parse(key, value, "true or false")?,
                "pool" => job.pool = parse(key, value, "a whole number")?,
                "work" => job.work = parse(key, value, "a number of milliseconds")?,
                "long-every" => job.long_every = parse(key, value, "a whole number")?,
                "deaf" => job.deaf = parse(key, value, "a number of milliseconds")?,
                "parameter" => job.parameter = value.to_owned(),
                "class" => job.class = value.to_owned(),
                "strategy" => job.strategy = Some(value.to_owned()),
                _ => return Err(BadJob::Key(key.to_owned())),
            }
        }
        if job.name.is_empty() { Err(BadJob::NoName) } else { Ok(job) }
    }
}

fn parse<T: std::str::FromStr>(key: &str, value: &str, wanted: &'static str) -> Result<T, BadJob> {
    value.parse().map_err(|_| BadJob::Value { key: key.to_owned(), value: value.to_owned(), wanted })
}

impl std::fmt::Display for FleetJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let FleetJob { name, count, failover, misfire, monitor, overwrite, .. } = self;
        write!(f, "name={name};count={count};failover={failover};misfire={misfire};monitor={monitor}")?;
        write!(f, ";overwrite={overwrite};pool={};work={}", self.pool, self.work)?;
        write!(f, ";long-every={};deaf={};parameter={}", self.long_every, self.deaf, self.parameter)?;
        write!(f, ";class={}", self.class)?;
        self.cron.as_ref().map_or(Ok(()), |it| write!(f, ";cron={it}"))?;
        self.strategy.as_ref().map_or(Ok(()), |it| write!(f, ";strategy={it}"))
    }
}

impl FleetJob {
    /// The job for a worker, with user code that says what it does.
    pub fn build(&self, reporter: &Reporter) -> Job {
        let work = Reported { job: self.clone(), reporter: reporter.clone() };
        let mut job = Job::simple(&self.name, work)
            .shards(self.count)
            .failover(self.failover)
            .misfire(self.misfire)
            .monitor_execution(self.monitor)
            .overwrite(self.overwrite)
            .pool(if self.pool == 0 { Pool::Cpu } else { Pool::Size(self.pool) })
            .parameter(&self.parameter);
        if let Some(cron) = &self.cron {
            job = job.cron(cron);
        }
        if let Some(strategy) = &self.strategy {
            job = job.strategy(strategy);
        }
        if self.class.is_empty() { job } else { job.class_name(&self.class) }
    }
}

/// Prints the lines of one process.
#[derive(Clone, Debug)]
pub struct Reporter {
    process: Arc<str>,
    store: Option<Arc<PathBuf>>,
    runs: Arc<AtomicU64>,
}

impl Reporter {
    /// For the process of this name; runs write to the store at this place, if there is one.
    pub fn new(process: &str, store: Option<PathBuf>) -> Reporter {
        Reporter { process: process.into(), store: store.map(Arc::new), runs: Arc::default() }
    }

    /// It happens now.
    pub fn say(&self, what: What) {
        print(&Line::now(&self.process, what));
    }

    /// It happened then.
    pub fn said_at(&self, at: u64, what: What) {
        print(&Line { at, process: self.process.to_string(), what });
    }

    fn next_run(&self) -> (u64, String) {
        let number = self.runs.fetch_add(1, Ordering::Relaxed) + 1;
        (number, format!("{}-{number}", self.process))
    }
}

fn print(line: &Line) {
    use std::io::Write;
    // In one piece: whoever is killed prints a line or does not.
    let text = format!("{line}\n");
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        // Nobody reads any more: what runs here is of no use.
        std::process::exit(1);
    }
}

/// User code that says when it begins, is told to stop and ends, and writes to the store in between.
struct Reported {
    job: FleetJob,
    reporter: Reporter,
}

impl SimpleJob for Reported {
    async fn run(&self, shard: Shard) -> Result<(), JobError> {
        let (number, run) = self.reporter.next_run();
        self.reporter.say(What::Start(Start::of(&shard, run.clone())));
        let mut end = End { reporter: &self.reporter, run: &run, outcome: Ended::Cancelled };
        self.write(&shard, &run).await;
        let done = self.work(&shard, &run, self.takes(&shard, number)).await;
        self.write(&shard, &run).await;
        if done {
            end.outcome = Ended::Succeeded;
            return Ok(());
        }
        Err("told to stop".into())
    }
}

/// Says that a run is over, also if it is dropped where it waits.
struct End<'a> {
    reporter: &'a Reporter,
    run: &'a str,
    outcome: Ended,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.reporter.say(What::End { run: self.run.to_owned(), outcome: self.outcome });
    }
}

impl Reported {
    fn takes(&self, shard: &Shard, number: u64) -> Duration {
        let usual = self.job.work + if shard.item % 2 == 1 { self.job.work / 2 } else { 0 };
        let long = self.job.long_every > 0 && number.is_multiple_of(self.job.long_every);
        Duration::from_millis(if long { usual * 5 } else { usual })
    }

    /// Whether it was left to work for its time.
    async fn work(&self, shard: &Shard, run: &str, takes: Duration) -> bool {
        tokio::select! {
            biased;
            () = shard.cancelled() => self.reporter.say(What::Told { run: run.to_owned() }),
            () = tokio::time::sleep(takes) => return true,
        }
        tokio::time::sleep(Duration::from_millis(self.job.deaf)).await;
        false
    }

    async fn write(&self, shard: &Shard, run: &str) {
        let Some(place) = &self.reporter.store else { return };
        match store::write(place, &shard.job, shard.item, shard.token).await {
            Ok(accepted) => self.reporter.say(What::Wrote { run: run.to_owned(), accepted }),
            Err(error) => eprintln!("the store does not answer: {error}"),
        }
    }
}
