//! A namespace with Java and Rust processes in it, and what is asked of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use elasticjob::Event;
use elasticjob::ops::{JobDetail, News, Ops};
use elasticjob_fleet::job::FleetJob;
use elasticjob_fleet::line::{Start, Why, now};
use elasticjob_fleet::{Line, Log, Process, Program, What, check};
use elasticjob_testkit::ZooKeeper;
use tempfile::TempDir;

use crate::java::{self, JavaOps};

/// One server for all tests, each in its own namespace.
static SERVER: LazyLock<ZooKeeper> = LazyLock::new(|| ZooKeeper::start_with("maxSessionTimeout=20000"));
/// How long anything may take on a busy machine before it counts as stuck.
pub(crate) const LONG: Duration = Duration::from_secs(100);
/// How long a session outlives its process.
pub(crate) const SESSION: Duration = Duration::from_secs(5);
/// The host of all Rust processes. Java processes pretend to be on hosts of their own.
pub(crate) const RUST_HOST: &str = "127.0.0.1";

/// A fleet.
pub(crate) struct World {
    port: u16,
    namespace: String,
    digest: Option<&'static str>,
    pub(crate) log: Log,
    pub(crate) home: TempDir,
    gone: Arc<Mutex<BTreeMap<String, u64>>>,
}

/// A process of a fleet. It is killed when it is dropped.
pub(crate) struct Member {
    pub(crate) name: String,
    process: Process,
    gone: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl World {
    pub(crate) async fn new(namespace: &str) -> World {
        World::with(namespace, None).await
    }

    /// Everything in it belongs to the holder of this `user:password`.
    pub(crate) async fn with_digest(namespace: &str, digest: &'static str) -> World {
        World::with(namespace, Some(digest)).await
    }

    async fn with(namespace: &str, digest: Option<&'static str>) -> World {
        let port = tokio::task::spawn_blocking(|| SERVER.port()).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        World { port, namespace: namespace.to_owned(), digest, log: Log::new(), home, gone: Arc::default() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn servers(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        let settings = "base-sleep=50ms&max-sleep=500ms&max-retries=29";
        let digest = self.digest.map(|it| format!("&digest={it}")).unwrap_or_default();
        let session = SESSION.as_secs();
        format!(
            "zookeeper://{}/{}?session-timeout={session}s&{settings}{digest}",
            self.servers(),
            self.namespace
        )
    }

    /// Starts a Rust process with these jobs.
    pub(crate) fn rust(&self, name: &str, jobs: &[&FleetJob]) -> Member {
        let mut program = Program::new(env!("CARGO_BIN_EXE_fleet-worker")).args([
            "--registry",
            &self.url(),
            "--process",
            name,
            "--grace",
            "30000",
        ]);
        for job in jobs {
            program = program.args(["--job", &job.to_string()]);
        }
        self.start(name, program)
    }

    /// Starts a Java process with these jobs, on the host `10.0.0.{host}`.
    pub(crate) fn java(&self, name: &str, host: u8, jobs: &[&FleetJob]) -> Member {
        let words: Vec<String> = jobs.iter().flat_map(|it| java::job(it)).collect();
        self.java_with(name, host, &[], &words)
    }

    /// The same, and waits until it has joined. Java processes that start together may take each other's hosts for
    /// dead and remove them (D7).
    pub(crate) async fn java_ready(&self, name: &str, host: u8, jobs: &[&FleetJob]) -> Member {
        let member = self.java(name, host, jobs);
        self.ready(&member).await;
        member
    }

    /// Two Java processes that share a job. The second comes when the first has made its assignment: one that comes
    /// during that would be overlooked for good (D6).
    pub(crate) async fn java_cluster(&self, job: &FleetJob) -> [Member; 2] {
        let first = self.java_ready("j1", 1, &[job]).await;
        self.settles(job, &["j1"]).await;
        let second = self.java_ready("j2", 2, &[job]).await;
        self.settles(job, &["j1", "j2"]).await;
        [first, second]
    }

    /// The same as [`World::java`], with more words for the process, and its jobs in Java's words.
    pub(crate) fn java_with(&self, name: &str, host: u8, more: &[&str], jobs: &[String]) -> Member {
        let session = SESSION.as_millis().to_string();
        let program = java::worker()
            .args(["--process", name, "--ip", &java_host(host)])
            .args(["--registry", &self.servers(), "--namespace", &self.namespace, "--session-ms", &session])
            .args(self.digest.into_iter().flat_map(|it| ["--digest", it]))
            .args(more.iter().copied())
            .args(jobs.iter().cloned());
        self.start(name, program)
    }

    /// Starts a program that prints lines.
    pub(crate) fn start(&self, name: &str, program: Program) -> Member {
        let program = program.errors_to(self.errors(name)).env("ELASTICJOB_PREFERRED_NETWORK_IP", RUST_HOST);
        let process = Process::start(&program, &self.log).unwrap();
        Member { name: name.to_owned(), process, gone: self.gone.clone() }
    }

    /// Where a process complains.
    fn errors(&self, name: &str) -> PathBuf {
        self.home.path().join(format!("{name}.err"))
    }

    /// Our operators' interface.
    pub(crate) async fn ops(&self) -> Ops {
        Ops::connect(self.url()).await.unwrap()
    }

    /// Java's.
    pub(crate) fn java_ops(&self) -> JavaOps {
        JavaOps::start(&self.servers(), &self.namespace, self.digest)
    }

    /// Waits until this is true of what the processes said.
    pub(crate) async fn until(&self, what: &str, is_true: impl Fn(&[Line]) -> bool) {
        if !self.log.until(LONG, is_true).await {
            panic!("{what}: does not come\n{}", self.story().await);
        }
        assert_eq!(self.log.bad_lines(), Vec::<String>::new());
    }

    /// Waits until a process has joined with all of its jobs.
    pub(crate) async fn ready(&self, member: &Member) {
        let is_ready = |it: &Line| it.process == member.name && matches!(it.what, What::Ready { .. });
        self.until(&format!("{} joins", member.name), |lines| lines.iter().any(is_ready)).await;
    }

    /// The id of a process that has joined.
    pub(crate) fn instance(&self, name: &str) -> String {
        let lines = self.log.lines();
        let ready = lines.iter().rev().filter(|it| it.process == name);
        let mut ids = ready.filter_map(|it| match &it.what {
            What::Ready { instance } => Some(instance.clone()),
            _ => None,
        });
        ids.next().unwrap()
    }

    /// Waits for a fire from now on that exactly these processes run, each item once. Which fire.
    pub(crate) async fn settles(&self, job: &FleetJob, processes: &[&str]) -> u64 {
        self.settles_after(now(), job, processes).await
    }

    /// The same, from then on.
    pub(crate) async fn settles_after(&self, from: u64, job: &FleetJob, processes: &[&str]) -> u64 {
        let wanted: BTreeSet<&str> = processes.iter().copied().collect();
        let what = format!("a fire that {processes:?} share");
        self.fires_so(from, job, &what, |runners| *runners == wanted).await
    }

    /// Waits for a fire after `from` that runs each item once, in processes of which this is true. Which fire.
    pub(crate) async fn fires_so(
        &self,
        from: u64,
        job: &FleetJob,
        what: &str,
        is_right: impl Fn(&BTreeSet<&str>) -> bool,
    ) -> u64 {
        let found = |lines: &[Line]| {
            fires(lines, job).into_iter().find(|(fire, items)| {
                let runners: BTreeSet<&str> = items.values().flatten().map(String::as_str).collect();
                *fire > from && once_each(items, job.count) && is_right(&runners)
            })
        };
        self.until(&format!("{}: {what}", job.name), |lines| found(lines).is_some()).await;
        found(&self.log.lines()).unwrap().0
    }

    /// Waits for a fire from now on for which these items start and no others.
    pub(crate) async fn settles_on(&self, job: &FleetJob, items: &[u32]) {
        let from = now();
        let found = |lines: &[Line]| {
            let fires = fires(lines, job);
            // All of a fire is known when the next one comes.
            let over = fires.keys().next_back().copied().unwrap_or_default();
            let mut fires = fires.into_iter().filter(|(fire, _)| (from..over).contains(fire));
            fires.any(|(_, it)| it.keys().eq(items) && it.values().all(|it| it.len() == 1))
        };
        self.until(&format!("{}: a fire of {items:?} alone", job.name), found).await;
    }

    /// Waits until a process records this of a job, at `from` or later.
    pub(crate) async fn records(&self, name: &str, job: &str, from: u64, is_it: impl Fn(&Event) -> bool) {
        let is_it = |line: &Line| {
            let Line { at, process, what: What::Record { job: of, event } } = line else { return false };
            process == name && of == job && *at >= from && is_it(event)
        };
        self.until(&format!("{job}: {name} records something"), |lines| lines.iter().any(is_it)).await;
    }

    /// Waits until everything that runs for this fire has ended.
    pub(crate) async fn rests(&self, job: &FleetJob, fire: u64) {
        let is_over = |lines: &[Line]| {
            let runs = check::runs(lines);
            let mut of_fire = runs.iter().filter(|it| it.start.job == job.name && it.started >= fire);
            of_fire.all(|it| it.ended.is_some())
        };
        self.until(&format!("{}: the end of {fire}", job.name), is_over).await;
    }

    /// Waits until this is true of a job's nodes.
    pub(crate) async fn tree(
        &self,
        job: &str,
        what: &str,
        is_true: impl Fn(&JobDetail) -> bool,
    ) -> JobDetail {
        let wait = async {
            let ops = self.ops().await;
            let mut watch = ops.watch(job).await.unwrap();
            loop {
                match watch.next().await {
                    News::Now(detail) if is_true(&detail) => return *detail,
                    News::Now(_) | News::Suspended => {}
                    News::Ended => panic!("the session of the watch ended"),
                }
            }
        };
        match tokio::time::timeout(LONG, wait).await {
            Ok(detail) => detail,
            Err(_) => panic!("{job}: {what}: does not come\n{}", self.story().await),
        }
    }

    /// Waits until this process leads the job.
    pub(crate) async fn leads(&self, job: &str, name: &str) {
        let id = self.instance(name);
        self.tree(job, &format!("{name} leads"), |it| it.leader.as_ref() == Some(&id)).await;
    }

    /// Nothing runs twice at a time; nothing has hung; whatever carries a fire started once for it.
    pub(crate) async fn sound(&self) {
        let gone = self.gone.lock().unwrap().clone();
        let gone = |process: &str| gone.get(process).copied();
        let lines = self.log.lines();
        let mut wrong = check::overlaps(&lines, gone);
        wrong.extend(check::repeated(&lines));
        wrong.extend(check::stuck(&lines, now(), 60_000, gone));
        assert!(wrong.is_empty(), "{wrong:#?}\n{}", self.story().await);
    }

    /// Between these two fires, and for both, each item of the job started once for each fire.
    pub(crate) async fn exactly_once(&self, job: &FleetJob, from: u64, until: u64) {
        let lines = self.log.lines();
        let fires = fires(&lines, job);
        let period = usize::try_from(period(job)).unwrap();
        let mut wrong = Vec::new();
        for fire in (from..=until).step_by(period) {
            let none = BTreeMap::new();
            let items = fires.get(&fire).unwrap_or(&none);
            if !once_each(items, job.count) {
                wrong.push(format!("{fire}: {items:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}: {wrong:#?}\n{}", job.name, self.story().await);
    }

    /// Everything that helps whoever must find out why.
    pub(crate) async fn story(&self) -> String {
        let mut text: String = self.log.lines().iter().map(|it| format!("{it}\n")).collect();
        let ops = self.ops().await;
        for job in ops.jobs().await.unwrap_or_default() {
            text.push_str(&ops.dump(&job.name).await.unwrap_or_default());
        }
        for file in std::fs::read_dir(self.home.path()).unwrap().flatten() {
            // A pipe would not end.
            if !file.file_type().unwrap().is_file() {
                continue;
            }
            let said = std::fs::read_to_string(file.path()).unwrap_or_default();
            let tail: Vec<&str> = said.lines().rev().take(30).collect();
            let tail: Vec<&str> = tail.into_iter().rev().collect();
            text.push_str(&format!("--- {}\n{}\n", file.path().display(), tail.join("\n")));
        }
        text
    }
}

impl Member {
    /// `kill -9`.
    pub(crate) fn kill(&self) {
        self.process.kill().unwrap();
        self.is_gone();
    }

    /// Stops it in its tracks. From now on others may do what it does.
    pub(crate) fn pause(&self) {
        self.process.pause().unwrap();
        self.is_gone();
    }

    /// Lets it go on.
    pub(crate) fn resume(&self) {
        self.process.resume().unwrap();
    }

    /// Asks it to leave, and waits until it has.
    pub(crate) async fn leave(&self) {
        self.process.terminate().unwrap();
        assert!(self.process.ended(LONG).await, "{} does not leave", self.name);
    }

    /// Waits until it has ended by itself. What it had to say.
    pub(crate) async fn fails(&self, world: &World) -> String {
        assert!(self.process.ended(LONG).await, "{} does not end", self.name);
        std::fs::read_to_string(world.errors(&self.name)).unwrap()
    }

    fn is_gone(&self) {
        self.gone.lock().unwrap().entry(self.name.clone()).or_insert_with(now);
    }
}

/// The address that a Java process pretends to have.
pub(crate) fn java_host(host: u8) -> String {
    format!("10.0.0.{host}")
}

/// A job that fires every four seconds: the time from one fire to the next is enough for everything that
/// follows a fire, also on a busy machine.
pub(crate) fn job(name: &str, count: u32) -> FleetJob {
    let cron = Some("0/4 * * * * ?".to_owned());
    FleetJob { name: name.to_owned(), cron, count, pool: 0, work: 200, ..FleetJob::default() }
}

/// How far apart the fires of a job are, in milliseconds. Its cron is `0/n * * * * ?`, where n divides 60.
fn period(job: &FleetJob) -> u64 {
    let cron = job.cron.as_deref().unwrap();
    let seconds = cron.strip_prefix("0/").and_then(|it| it.split(' ').next()).unwrap();
    seconds.parse::<u64>().unwrap() * 1000
}

type Runners = BTreeMap<u32, Vec<String>>;

/// Who ran what for which fire, in time or later. Java does not say for which; it is the last one before.
fn fires(lines: &[Line], job: &FleetJob) -> BTreeMap<u64, Runners> {
    let mut fires: BTreeMap<u64, Runners> = BTreeMap::new();
    let is_regular = |start: &Start| !matches!(start.source, Some(Why::Failover | Why::Trigger));
    for run in check::runs(lines).into_iter().filter(|it| it.start.job == job.name && is_regular(&it.start)) {
        let last = run.started - run.started % period(job);
        let fire = run.start.fire.and_then(|it| u64::try_from(it).ok()).unwrap_or(last);
        fires.entry(fire).or_default().entry(run.start.item).or_default().push(run.process);
    }
    fires
}

fn once_each(items: &Runners, count: u32) -> bool {
    items.keys().copied().eq(0..count) && items.values().all(|it| it.len() == 1)
}
