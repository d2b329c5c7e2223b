//! Public start and stop: a worker takes jobs, joins the registry with all of them, and leaves it clean.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use elasticjob_core::coord::{Coordinator, Local};
use elasticjob_core::event::StopReason;
use elasticjob_core::plan::Plan;
use elasticjob_core::strategy::Strategy;
use elasticjob_cron::Zone;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use crate::clock::Clock;
use crate::driver::{Driver, Parts, Phase, Status};
use crate::error::Error;
use crate::events::{EventFile, EventLog};
use crate::executor::Executor;
use crate::extensions::Extensions;
use crate::handler::desk::Desk;
use crate::handler::{self, ErrorHandler, HandlerCounts, Reporter, Thrown};
use crate::host::{self, Preference};
use crate::job::{Job, JobType, Listener, OnceListener, Work};
use crate::lead::Starts;
use crate::link::{self, Link};
use crate::listen::ListenAt;
use crate::metrics::Metrics;
use crate::operator::{self, Opened};
use crate::ops::Ops;
use crate::recorder::Records;
use crate::registry::{self, Registry};

/// How long running shards may go on when a worker leaves.
const GRACE: Duration = Duration::from_secs(30);
/// How long a cancelled shard may take to notice.
const CANCEL_GRACE: Duration = Duration::from_secs(2);
/// How long leaving the registry may take after everything has ended.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);
/// Steps of the time of day smaller than this are not worth waking everybody.
const CLOCK_STEP: Duration = Duration::from_millis(200);

/// Where the registry is: a URL, or one that is open already.
///
/// ```
/// use elasticjob::{Worker, registry};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let by_url = Worker::new("embedded://");
/// let shared = registry::open("embedded://")?;
/// let two_of_one_cluster = [Worker::new(shared.clone()), Worker::new(shared)];
/// # drop((by_url, two_of_one_cluster)); Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub enum RegistryAt {
    /// To be opened.
    Url(String),
    /// Open.
    Open(Arc<dyn Registry>),
}

impl From<&str> for RegistryAt {
    fn from(url: &str) -> RegistryAt {
        RegistryAt::Url(url.to_owned())
    }
}

impl From<String> for RegistryAt {
    fn from(url: String) -> RegistryAt {
        RegistryAt::Url(url)
    }
}

impl From<Arc<dyn Registry>> for RegistryAt {
    fn from(registry: Arc<dyn Registry>) -> RegistryAt {
        RegistryAt::Open(registry)
    }
}

impl<R: Registry + 'static> From<Arc<R>> for RegistryAt {
    fn from(registry: Arc<R>) -> RegistryAt {
        RegistryAt::Open(registry)
    }
}

/// Jobs, and the registry whose fleet they join.
///
/// ```no_run
/// use elasticjob::{Job, Shard, Worker};
///
/// #[tokio::main]
/// async fn main() -> Result<(), elasticjob::Error> {
///     let greet = Job::simple("greet", async |shard: Shard| {
///         println!("shard {} of {}: hello, {:?}", shard.item, shard.total, shard.parameter);
///         Ok(())
///     })
///     .cron("0/5 * * * * ?")
///     .shards(3)
///     .shard_parameters(["Beijing", "Shanghai", "Guangzhou"]);
///
///     Worker::new("embedded://").job(greet).run().await
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a worker works once it is started"]
pub struct Worker {
    pub(crate) registry: RegistryAt,
    pub(crate) jobs: Vec<Job>,
    pub(crate) extensions: Extensions,
    pub(crate) host: Preference,
    pub(crate) grace: Duration,
    pub(crate) cancel_grace: Duration,
    pub(crate) clock: Option<jiff::Timestamp>,
    pub(crate) unbound: Option<crate::unbound::Unbound>,
    pub(crate) operator: operator::Wanted,
}

impl Worker {
    /// A worker without jobs.
    pub fn new(registry: impl Into<RegistryAt>) -> Worker {
        Worker {
            registry: registry.into(),
            jobs: Vec::new(),
            extensions: Extensions::new(),
            host: Preference::default(),
            grace: GRACE,
            cancel_grace: CANCEL_GRACE,
            clock: None,
            unbound: None,
            operator: operator::Wanted::default(),
        }
    }

    /// A worker with the registry and the jobs of a YAML file. Jobs that are neither scripts nor bound to code
    /// with [`Worker::bind`] are an error at the start. See `docs/jobs-file.md` for the file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Worker, Error> {
        crate::unbound::read(path.as_ref())
    }

    /// Binds code to a job of the file: the work is this job's, everything else the file's.
    ///
    /// ```no_run
    /// use elasticjob::{Job, Shard, Worker};
    ///
    /// # async fn f() -> Result<(), elasticjob::Error> {
    /// let clean_up = Job::simple("clean-up", async |_: Shard| Ok(()));
    /// Worker::from_file("jobs.yaml")?.bind(clean_up)?.run().await
    /// # }
    /// ```
    pub fn bind(self, job: Job) -> Result<Worker, Error> {
        crate::unbound::bind(self, job)
    }

    /// This worker, with one more job.
    pub fn job(mut self, job: Job) -> Worker {
        self.jobs.push(job);
        self
    }

    /// A strategy of your own, by the name that [`Job::strategy`] uses.
    pub fn strategy(mut self, name: &str, strategy: impl Strategy + 'static) -> Worker {
        self.extensions = self.extensions.strategy(name, strategy);
        self
    }

    /// An error handler of your own, by the name that [`Job::error_handlers`] uses.
    pub fn error_handler(mut self, name: &str, handler: impl ErrorHandler) -> Worker {
        self.extensions = self.extensions.error_handler(name, handler);
        self
    }

    /// A type of job of your own, by the name that [`Job::typed`] uses.
    pub fn job_type(mut self, name: &str, job_type: impl JobType) -> Worker {
        self.extensions = self.extensions.job_type(name, job_type);
        self
    }

    /// A listener of your own around the rounds on every worker, by the name that `jobListenerTypes` uses. A job of the
    /// program needs no name for it: see [`Job::listener`].
    pub fn listener(mut self, name: &str, listener: impl Listener) -> Worker {
        self.extensions = self.extensions.listener(name, listener);
        self
    }

    /// A listener of your own that is called once for a round, by the name that `jobListenerTypes` uses. A job of the
    /// program needs no name for it: see [`Job::once_listener`].
    pub fn once_listener(mut self, name: &str, listener: impl OnceListener) -> Worker {
        self.extensions = self.extensions.once_listener(name, listener);
        self
    }

    /// All that you add, at once, in place of what was added before.
    pub fn extensions(mut self, extensions: Extensions) -> Worker {
        self.extensions = extensions;
        self
    }

    /// Which of the host's addresses this worker goes by.
    pub fn host(mut self, preference: Preference) -> Worker {
        self.host = preference;
        self
    }

    /// How long running shards may go on when this worker leaves, before they are cancelled. 30 seconds by
    /// default.
    pub fn shutdown_grace(mut self, grace: Duration) -> Worker {
        self.grace = grace;
        self
    }

    /// How long a cancelled shard may take to notice, before it is dropped where it waits. 2 seconds by
    /// default.
    pub fn cancel_grace(mut self, grace: Duration) -> Worker {
        self.cancel_grace = grace;
        self
    }

    /// Opens a port that answers `GET` requests for `/healthz` (the process is well), `/readyz` (its session stands and
    /// its jobs are registered), `/metrics` (see [`metrics`](crate::metrics)) and `/events` (see
    /// [`events`](crate::events)). None is open by default. A number is a port of this machine only; 0 is any that is
    /// free.
    ///
    /// ```
    /// use elasticjob::{Job, Shard, Worker};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
    /// let job = Job::simple("nightly", async |_: Shard| Ok(())).cron("0 0 2 * * ?");
    /// let worker = Worker::new("embedded://").job(job).status_port(0).start().await?;
    /// println!("see http://{}/readyz", worker.status_address().unwrap());
    /// # worker.shutdown().await; Ok(()) }
    /// ```
    pub fn status_port(mut self, at: impl Into<ListenAt>) -> Worker {
        self.operator.status = Some(at.into());
        self
    }

    /// Opens a port that answers `dump@job` as Java's does: see [`DumpPort`](crate::ops::DumpPort). None is open by
    /// default. Whoever reaches it reads the settings of all jobs.
    pub fn dump_port(mut self, at: impl Into<ListenAt>) -> Worker {
        self.operator.dump = Some(at.into());
        self
    }

    /// Keeps what happens in a file, for `elasticjob explain --events`: see [`EventFile`].
    ///
    /// ```
    /// use elasticjob::events::EventFile;
    /// use elasticjob::Worker;
    ///
    /// let worker = Worker::new("embedded://").event_file(EventFile::new("/var/log/jobs/events.jsonl"));
    /// # drop(worker);
    /// ```
    pub fn event_file(mut self, file: EventFile) -> Worker {
        self.operator.events = Some(file);
        self
    }

    /// Counts what this worker does into these numbers. With a [status port](Worker::status_port) it counts anyhow.
    pub fn metrics(mut self, metrics: &Metrics) -> Worker {
        self.operator.metrics = Some(metrics.clone());
        self
    }

    /// Works until the process is asked to end (Ctrl-C, or SIGTERM), then leaves cleanly.
    pub async fn run(self) -> Result<(), Error> {
        let running = self.start().await?;
        let asked = until_asked_to_end().await;
        running.shutdown().await;
        asked
    }

    /// Joins the registry with all jobs. Returns when each of them is registered, or tells which cannot be.
    pub async fn start(mut self) -> Result<RunningWorker, Error> {
        find_named(&mut self.jobs, &self.extensions)?;
        crate::unbound::check(&self)?;
        let zone = Zone::system();
        check_jobs(&self.jobs, &self.extensions, &zone)?;
        let registry = match &self.registry {
            RegistryAt::Url(url) => registry::open(url)?,
            RegistryAt::Open(registry) => registry.clone(),
        };
        let host = host::discover(&self.host.clone().or_env(|name| std::env::var(name).ok()))?;
        tracing::info!("this instance goes by {host}");
        let mut opened = self.operator.open().await?;
        let (link, supervisor) = link::connect(opened.counted(registry), host.ip()).await?;
        opened.follow(&link)?;
        let jobs = std::mem::take(&mut self.jobs);
        let mut running = RunningWorker::new(&self, link, supervisor, opened);
        for job in jobs {
            running.add(job, &self, &zone);
        }
        running.opened.standing().of(running.shared.link.clone(), running.jobs.clone());
        match running.await_registration().await {
            Ok(()) => Ok(running),
            Err(error) => {
                running.shutdown().await; // The jobs that could start must not seem to have crashed.
                Err(error)
            }
        }
    }
}

/// Finds the types and listeners that the jobs name.
fn find_named(jobs: &mut [Job], extensions: &Extensions) -> Result<(), Error> {
    extensions.check()?;
    for job in jobs {
        find_type(job, extensions)?;
        find_listeners(job, extensions)?;
    }
    Ok(())
}

fn check_jobs(jobs: &[Job], extensions: &Extensions, zone: &Zone) -> Result<(), Error> {
    let mut names = std::collections::BTreeSet::new();
    for job in jobs {
        let name = || job.name().to_owned();
        let wrong = |error| Error::Spec { job: name(), error };
        Plan::compile(job.spec.clone(), &extensions.strategies, zone).map_err(wrong)?;
        job.spec.check_secrets(None).map_err(wrong)?;
        handler::check(&job.spec, &extensions.handlers)?;
        if !names.insert(name()) {
            return Err(Error::DuplicateJob { job: name() });
        }
    }
    Ok(())
}

fn find_type(job: &mut Job, extensions: &Extensions) -> Result<(), Error> {
    let Work::Named(name) = &job.work else { return Ok(()) };
    let job_name = || job.spec.job_name.clone();
    let found = extensions.types.find(name).cloned().ok_or_else(|| Error::Unknown {
        job: job_name(),
        what: "job type",
        name: name.clone(),
        known: extensions.type_names(),
    })?;
    found.check(&job.spec.props).map_err(|error| Error::Custom { job: job_name(), error })?;
    job.work = Work::Typed(found);
    Ok(())
}

fn find_listeners(job: &mut Job, extensions: &Extensions) -> Result<(), Error> {
    for name in &job.spec.job_listener_types {
        let found = extensions.listeners.find(name).ok_or_else(|| Error::Unknown {
            job: job.spec.job_name.clone(),
            what: "listener",
            name: name.clone(),
            known: extensions.listeners.list(),
        })?;
        job.listeners.add(found.clone());
    }
    Ok(())
}

/// A job of a running worker.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// use elasticjob::{Job, Shard, Worker};
///
/// let job = Job::simple("nightly", async |_: Shard| Ok(())).cron("0 0 2 * * ?");
/// let worker = Worker::new("embedded://").job(job).start().await?;
/// let state = worker.jobs().next().unwrap();
/// assert_eq!(&*state.name, "nightly");
/// assert!(state.next_fire.is_some());
/// # worker.shutdown().await; Ok(()) }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobState {
    /// Its name.
    pub name: Arc<str>,
    /// Its schedule in words; `None` if it only runs when asked.
    pub schedule: Option<String>,
    /// When its clock fires next.
    pub next_fire: Option<jiff::Timestamp>,
}

/// A worker at work. Dropping it is a crash: nothing is cleaned up, and its peers wait for its session to end.
///
/// ```
/// use elasticjob::{Job, Shard, Worker};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let job = Job::simple("ping", async |_: Shard| Ok(())).one_off();
/// let worker = Worker::new("embedded://").job(job).start().await?;
/// worker.trigger("ping").await?;
/// worker.shutdown().await;
/// # Ok(()) }
/// ```
#[must_use = "dropping a running worker is a crash; call `shutdown` instead"]
pub struct RunningWorker {
    jobs: BTreeMap<Arc<str>, watch::Receiver<Status>>,
    leave: watch::Sender<Option<Duration>>,
    drivers: JoinSet<StopReason>,
    shared: Shared,
    opened: Opened,
    desk: Desk,
    grace: Duration,
    cancel_grace: Duration,
    background: Vec<AbortOnDropHandle<()>>,
}

/// What all drivers share.
#[derive(Clone)]
struct Shared {
    link: Link,
    clock: Clock,
    clock_steps: watch::Receiver<u64>,
    starts: Starts,
}

impl std::fmt::Debug for RunningWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let jobs: Vec<&str> = self.job_names().collect();
        f.debug_struct("RunningWorker").field("jobs", &jobs).finish_non_exhaustive()
    }
}

impl RunningWorker {
    fn new(
        worker: &Worker,
        link: Link,
        supervisor: impl Future<Output = ()> + Send + 'static,
        opened: Opened,
    ) -> RunningWorker {
        let clock = worker.clock.map_or_else(Clock::system, Clock::following_tokio);
        let (steps, clock_steps) = watch::channel(0);
        let spawn = |task| AbortOnDropHandle::new(task);
        RunningWorker {
            jobs: BTreeMap::new(),
            leave: watch::Sender::new(None),
            drivers: JoinSet::new(),
            shared: Shared { link, clock, clock_steps, starts: Starts::default() },
            desk: Desk::open(opened.metrics()),
            opened,
            grace: worker.grace,
            cancel_grace: worker.cancel_grace,
            background: vec![spawn(tokio::spawn(supervisor)), spawn(tokio::spawn(watch_clock(clock, steps)))],
        }
    }

    fn add(&mut self, job: Job, worker: &Worker, zone: &Zone) {
        let name: Arc<str> = job.name().into();
        self.opened.know(&name);
        let (status, status_reader) = watch::channel(Status::default());
        let Shared { link, clock, clock_steps, starts } = self.shared.clone();
        let hooks = job.listeners.hooks();
        let reporter = Reporter::new(job.spec.clone(), worker.extensions.handlers.clone(), self.desk.inbox());
        let local = Local { spec: job.spec, class: job.class, zone: zone.clone(), hooks };
        let driver = Driver::new(Parts {
            job: name.clone(),
            coordinator: Coordinator::new(local, worker.extensions.strategies.clone(), clock.now()),
            starts,
            hookless: !hooks.each && hooks.once.is_none(),
            executor: Executor::new(name.clone(), job.work, job.listeners, self.cancel_grace),
            clock,
            link,
            clock_steps,
            leave: self.leave.subscribe(),
            recorder: self.opened.recorder.clone(),
            reporter,
            status,
        });
        self.drivers.spawn(Box::new(driver).run());
        self.jobs.insert(name, status_reader);
    }

    async fn await_registration(&mut self) -> Result<(), Error> {
        for (name, status) in &mut self.jobs {
            let settled = status.wait_for(|status| status.phase != Phase::Starting).await;
            if let Ok(status) = settled
                && let Phase::Stopped(reason) = &status.phase
            {
                return Err(Error::Start { job: name.to_string(), reason: reason.clone() });
            }
        }
        Ok(())
    }

    /// Our instance id in the current session; `None` while there is none.
    pub fn instance_id(&self) -> Option<String> {
        self.shared.link.current().map(|it| it.id.to_string())
    }

    /// The names of the jobs, in order.
    pub fn job_names(&self) -> impl Iterator<Item = &str> {
        self.jobs.keys().map(|name| &**name)
    }

    /// The jobs, in the order of their names, as they are now.
    pub fn jobs(&self) -> impl Iterator<Item = JobState> {
        let now = self.shared.clock.now().wall;
        self.jobs.iter().map(move |(name, status)| {
            let status = status.borrow();
            JobState {
                name: name.clone(),
                schedule: status.words.clone(),
                next_fire: status.schedule.as_ref().and_then(|it| it.next_after(now)),
            }
        })
    }

    /// What happens from now on.
    pub fn records(&self) -> Records {
        self.opened.recorder.reader()
    }

    /// What happened lately: the last few thousand records, kept in memory.
    pub fn events(&self) -> EventLog {
        self.opened.recorder.kept().clone()
    }

    /// Where the [status port](Worker::status_port) listens, if there is one.
    pub fn status_address(&self) -> Option<SocketAddr> {
        self.opened.status_address()
    }

    /// Where the [dump port](Worker::dump_port) listens, if there is one.
    pub fn dump_address(&self) -> Option<SocketAddr> {
        self.opened.dump_address()
    }

    /// What stands in the way of giving this worker work; nothing, if it is ready. What `/readyz` says.
    pub fn problems(&self) -> Vec<String> {
        self.opened.standing().problems()
    }

    /// The failures of jobs whose error handler is `THROW`, from now on.
    pub fn thrown(&self) -> Thrown {
        self.desk.thrown()
    }

    /// How error handling went so far.
    pub fn handler_counts(&self) -> HandlerCounts {
        self.desk.counts()
    }

    /// Asks every instance of the job to run its shards now. One that is at work does so when it is done.
    pub async fn trigger(&self, job: &str) -> Result<(), Error> {
        self.trigger_with(job, "").await
    }

    /// The same, with a parameter that the runs find in [`Shard::trigger_parameter`](crate::Shard).
    pub async fn trigger_with(&self, job: &str, parameter: &str) -> Result<(), Error> {
        if !self.jobs.contains_key(job) {
            let known: Vec<&str> = self.job_names().collect();
            return Err(Error::UnknownJob { job: job.to_owned(), known: known.join(", ") });
        }
        let connection = self.shared.link.current().ok_or(Error::Disconnected)?;
        Ops::over(connection.session).trigger_with(job, None, parameter).await?;
        Ok(())
    }

    /// Stops firing, lets running shards end, cancels those that do not in time, tells what error handlers have not
    /// told yet, and leaves the registry clean.
    pub async fn shutdown(mut self) {
        self.opened.standing().leave();
        self.leave.send_replace(Some(self.grace));
        let limit = self.grace + self.cancel_grace + LEAVE_LIMIT;
        let drained =
            tokio::time::timeout(limit, async { while self.drivers.join_next().await.is_some() {} });
        if drained.await.is_err() {
            tracing::warn!("some jobs did not end within {limit:?}; leaving all the same");
        }
        let connection = self.shared.link.current();
        self.drivers.shutdown().await;
        self.background.clear();
        if let Some(connection) = connection {
            connection.session.close().await;
        }
        self.desk.close().await;
        self.opened.close().await;
    }

    /// Waits until every job has ended, because operators shut them down or removed them. Cancel safe.
    pub async fn ended(&mut self) {
        while self.drivers.join_next().await.is_some() {}
    }
}

/// Schedules follow the time of day, timers do not: when it is set, everybody must look again.
async fn watch_clock(clock: Clock, steps: watch::Sender<u64>) {
    let offset = |clock: &Clock| {
        let now = clock.now();
        i128::from(now.wall.as_millisecond()) - i128::try_from(now.mono.as_millis()).unwrap_or(0)
    };
    let mut known = offset(&clock);
    let mut every = tokio::time::interval(Duration::from_secs(1));
    loop {
        every.tick().await;
        let current = offset(&clock);
        if (current - known).unsigned_abs() > CLOCK_STEP.as_millis() {
            known = current;
            steps.send_modify(|count| *count += 1);
        }
    }
}

/// Waits until the process is asked to end: Ctrl-C, or SIGTERM.
///
/// ```no_run
/// # async fn f(worker: elasticjob::RunningWorker) -> Result<(), elasticjob::Error> {
/// elasticjob::until_asked_to_end().await?;
/// worker.shutdown().await;
/// # Ok(()) }
/// ```
pub async fn until_asked_to_end() -> Result<(), Error> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signal)?;
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Error::Signal),
            _ = terminate.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await.map_err(Error::Signal)
}
