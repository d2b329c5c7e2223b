//! The commands against a real ZooKeeper, where a real worker is at work.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod common;

use std::process::{Command, Stdio};
use std::sync::{Arc, LazyLock, mpsc};
use std::time::{Duration, Instant};

use elasticjob::registry::{self, Kind, Op};
use elasticjob::{Event, Job, Recorded, RunningWorker, Shard, Worker};
use elasticjob_testkit::{Proxy, ZooKeeper};
use tokio::runtime::Runtime;

static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

const QUICK: &str = "session-timeout=4s&base-sleep=50ms&max-sleep=500ms&max-retries=20";
const LONG: Duration = Duration::from_secs(60);

/// A worker with one job that fires at the turn of the year only.
struct Fleet {
    runtime: Runtime,
    worker: RunningWorker,
    url: String,
    /// What came along with the triggers that shards ran for.
    parameters: mpsc::Receiver<Option<Arc<str>>>,
}

impl Fleet {
    fn new(namespace: &str) -> Fleet {
        let url = SERVER.url(namespace, QUICK);
        let runtime = Runtime::new().unwrap();
        let (tell, parameters) = mpsc::channel();
        let job = Job::blocking("yearly", move |shard: Shard| Ok(tell.send(shard.trigger_parameter)?));
        let job = job.cron("0 0 0 1 1 ?").shards(2);
        let worker = runtime.block_on(Worker::new(url.as_str()).job(job).status_port(0).start()).unwrap();
        let fleet = Fleet { runtime, worker, url, parameters };
        fleet.until(&["jobs"], "OK");
        fleet
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_elasticjob"));
        command.args(arguments).env("ELASTICJOB_REGISTRY", &self.url).env("TZ", "UTC").env("USER", "alice");
        command.stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        common::ended(self.command(arguments))
    }

    fn does(&self, arguments: &[&str]) -> String {
        let (code, out, words) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {out}{words}");
        out
    }

    /// Asks again until the answer has this.
    fn until(&self, arguments: &[&str], wanted: &str) {
        let begun = Instant::now();
        while !self.run(arguments).1.contains(wanted) {
            assert!(begun.elapsed() < LONG, "{arguments:?} never says {wanted}: {:?}", self.run(arguments));
        }
    }
}

#[test]
fn a_working_fleet_is_seen_and_steered() {
    let fleet = Fleet::new("ops/steered");
    let mut records = fleet.worker.records();
    fleet.does(&["job", "disable", "yearly", "--shard", "1"]);
    fleet.does(&["job", "trigger", "yearly", "--param", "day=2026-11-14"]);
    let items = fleet.runtime.block_on(async {
        loop {
            if let Some(Recorded::Record(record)) = records.next().await
                && let Event::RoundStarted { items, .. } = record.event
            {
                return items;
            }
        }
    });
    assert_eq!(items, [0].into());
    assert_eq!(fleet.parameters.recv_timeout(LONG).unwrap().as_deref(), Some("day=2026-11-14"));
    let port = format!("http://{}", fleet.worker.status_address().unwrap());
    let (told, asked) = (["explain", "yearly", "--events", port.as_str()], "shard 0: began at ");
    fleet.until(&told, asked);
    assert!(fleet.does(&told).contains("because somebody asked; "), "{}", fleet.does(&told));
    assert!(!fleet.does(&["explain", "yearly"]).contains(asked), "the registry does not know");
    fleet.until(&["shards", "yearly", "--json"], r#""status": "DISABLED""#);
    assert!(fleet.does(&["job", "dump", "yearly"]).contains("/yearly/servers/ip1 | ENABLED\n"));
    fleet.does(&["job", "pause", "yearly"]);
    fleet.until(&["jobs"], "DISABLED");
    fleet.does(&["job", "resume", "yearly"]);
    fleet.until(&["jobs"], "OK");
    assert!(fleet.does(&["servers"]).contains("OK"));
    assert!(fleet.does(&["explain", "yearly"]).contains("leader"));
    let Fleet { runtime, worker, .. } = fleet;
    runtime.block_on(worker.shutdown());
}

#[test]
fn two_people_edit_at_once_and_the_second_is_shown_what_the_first_did() {
    let fleet = Fleet::new("ops/edited");
    let stored = fleet.does(&["job", "show", "yearly", "--yaml"]);
    let dir = tempfile::tempdir().unwrap();
    let theirs = dir.path().join("theirs.yaml");
    std::fs::write(&theirs, stored.replace("shardingTotalCount: 2", "shardingTotalCount: 3")).unwrap();
    // While one has the editor open, the other one writes.
    let editor = format!(
        "{} job edit yearly --file {} >&2; sed -i s/failover:.*/failover:\\ true/",
        env!("CARGO_BIN_EXE_elasticjob"),
        theirs.display()
    );
    let mut command = fleet.command(&["job", "edit", "yearly"]);
    command.env("EDITOR", editor).env("TMPDIR", dir.path());
    let (code, out, words) = common::ended(command);
    assert_eq!((code, out.as_str()), (3, ""), "{words}");
    let shown = "changed by somebody else meanwhile; what changed since you read it:\n- shardingTotalCount: 2\n+ shardingTotalCount: 3\n";
    assert!(words.contains(shown) && words.contains("your draft is in"), "{words}");
    assert!(fleet.does(&["job", "show", "yearly", "--yaml"]).contains("failover: false"));
    fleet.until(&["job", "show", "yearly", "--json"], r#""item": 2"#);
    let Fleet { runtime, worker, .. } = fleet;
    runtime.block_on(worker.shutdown());
}

#[test]
fn a_removed_job_ends_and_leaves_nothing() {
    let mut fleet = Fleet::new("ops/removed");
    let out = fleet.does(&["job", "remove", "yearly", "--yes"]);
    assert!(out.contains("job yearly is removed"), "{out}");
    let ended = async { tokio::time::timeout(LONG, fleet.worker.ended()).await };
    fleet.runtime.block_on(ended).expect("the job ends");
    assert_eq!(fleet.run(&["job", "show", "yearly"]).0, 3);
    let Fleet { runtime, worker, .. } = fleet;
    runtime.block_on(worker.shutdown());
}

#[test]
fn a_registry_out_of_reach_or_locked_is_said_to_be_so() {
    let run = |url: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_elasticjob"));
        command.args(["jobs", "--registry", url]).stdin(Stdio::null());
        common::ended(command)
    };
    let port = elasticjob_testkit::free_ports(1)[0];
    let (code, _, words) = run(&format!("zookeeper://127.0.0.1:{port}/jobs?{QUICK}"));
    assert!(code == 4 && words.lines().count() == 1 && words.contains("cannot be reached"), "{code} {words}");
    let locked = |digest: &str| SERVER.url("ops/locked", &format!("{QUICK}&digest={digest}"));
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let session = elasticjob::registry::open(&locked("me:open")).unwrap().connect().await.unwrap();
        let node = elasticjob::registry::Op::Create {
            path: "/config".into(),
            data: String::new(),
            kind: elasticjob::registry::Kind::Persistent,
        };
        session.commit("/job", vec![node]).await.unwrap();
        session.close().await;
    });
    let (code, _, words) = run(&locked("me:shut"));
    assert!(code == 3 && words.contains("not permitted"), "{code} {words}");
}

#[test]
fn what_may_be_read_but_not_written_is_said_to_be_so() {
    let fleet = Fleet::new("ops/rights");
    // Everybody may read the job's document, and only one may change it.
    let acl = "digest:me:8L0Iyxi8oJjnhWYuzMJ0bLcEFt4=:cdrwa,world:anyone:r";
    SERVER.cli(&[&format!("setAcl /ops/rights/yearly/config {acl}")]);
    assert!(fleet.does(&["job", "show", "yearly", "--yaml"]).contains("failover: false"));
    let stored = fleet.does(&["job", "show", "yearly", "--yaml"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("job.yaml");
    std::fs::write(&file, stored.replace("failover: false", "failover: true")).unwrap();
    let (code, out, words) = fleet.run(&["job", "edit", "yearly", "--file", &file.to_string_lossy()]);
    let denied = "error: not permitted: job `yearly`: the registry denies access to `/ops/rights/yearly/config`: connect as";
    assert_eq!((code, out.as_str(), words.lines().count()), (3, "", 1), "{words}");
    assert!(words.starts_with(denied), "{words}");
    let Fleet { runtime, worker, .. } = fleet;
    runtime.block_on(worker.shutdown());
}

/// So many jobs, each with so many shards, owned in turn by so many instances.
fn fill(namespace: &str, jobs: usize, shards: u32, instances: usize) {
    let create =
        |path: String, data: &str| Op::Create { path, data: data.to_owned(), kind: Kind::Persistent };
    let ids: Vec<String> = (0..instances).map(|it| format!("10.0.0.{it}@-@{it}.0badcafe.1")).collect();
    Runtime::new().unwrap().block_on(async {
        let session = registry::open(&SERVER.url(namespace, QUICK)).unwrap().connect().await.unwrap();
        for number in 0..jobs {
            let name = format!("job-{number:04}");
            let mut nodes =
                vec![create("/config".into(), &common::spec(&name, "0 0 2 * * ?", shards).to_yaml())];
            for (at, id) in ids.iter().enumerate() {
                nodes.push(create(format!("/servers/10.0.0.{at}"), "ENABLED"));
                nodes.push(create(format!("/instances/{id}"), &common::instance(id)));
            }
            let owner = |item: u32| &ids[item as usize % instances];
            nodes.extend((0..shards).map(|it| create(format!("/sharding/{it}/instance"), owner(it))));
            session.commit(&format!("/{name}"), nodes).await.unwrap();
        }
        session.close().await;
    });
}

/// How many requests a command makes, and how many lines it prints.
fn cost(namespace: &str, arguments: &[&str]) -> (u64, usize) {
    let runtime = Runtime::new().unwrap();
    let proxy = runtime.block_on(Proxy::start(SERVER.port()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_elasticjob"));
    command.args(arguments).args(["--registry", &proxy.url(namespace, QUICK)]).stdin(Stdio::null());
    let (code, out, words) = common::ended(command);
    assert_eq!(code, 0, "{words}");
    (proxy.take_requests().values().sum(), out.lines().count())
}

#[test]
fn a_worker_that_may_not_write_says_so_and_ends() {
    SERVER.cli(&["create /readable x", "setAcl /readable world:anyone:r"]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("jobs.yaml");
    let jobs = "jobs:\n  yearly: { script: 'true', cron: 0 0 0 1 1 ?, shardingTotalCount: 1 }\n";
    std::fs::write(&file, format!("registry: {}\n{jobs}", SERVER.url("readable", QUICK))).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_elasticjob"));
    command.args(["run", &file.to_string_lossy()]).stdin(Stdio::null());
    let (code, _, words) = common::ended(command);
    let denied =
        "job `yearly` cannot start: the registry denies access to `/readable`: connect as who made it";
    assert!(code == 3 && words.lines().count() == 1 && words.contains(denied), "{code} {words}");
}

/// What a list costs depends on how many jobs there are, and not on how large they are.
#[test]
fn a_thousand_jobs_are_listed_with_a_few_requests_each() {
    fill("ops/many", 1000, 2, 1);
    let (thousand, lines) = cost("ops/many", &["jobs"]);
    assert_eq!(lines, 1001);
    fill("ops/some", 10, 2, 1);
    fill("ops/large", 10, 40, 20);
    let (some, _) = cost("ops/some", &["jobs"]);
    let (large, _) = cost("ops/large", &["jobs"]);
    assert_eq!(some, large, "of ten small jobs, and of ten large ones");
    let for_each = (thousand - some) / 990;
    assert!(for_each <= 6, "{for_each} requests for each job");
    assert_eq!(thousand, some + 990 * for_each, "each job costs the same");
    let fixed = some - 10 * for_each;
    assert!(fixed <= 8, "{fixed} requests besides");
    println!("a job costs {for_each} requests, a list {fixed} more");
}
