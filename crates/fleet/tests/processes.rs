//! Real processes on a real ZooKeeper: killed, stopped and woken.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::LazyLock;
use std::time::Duration;

use elasticjob::Event;
use elasticjob_fleet::line::{Start, Why};
use elasticjob_fleet::store::Store;
use elasticjob_fleet::{Line, Log, Process, Program, What, check};
use elasticjob_testkit::ZooKeeper;
use tempfile::TempDir;

static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);
const LONG: Duration = Duration::from_secs(90);

/// A namespace with its processes, and a store that they write to.
struct Fleet {
    url: String,
    home: TempDir,
    log: Log,
    _store: Store,
}

impl Fleet {
    async fn new(namespace: &str) -> Fleet {
        let namespace = namespace.to_owned();
        let settings = "session-timeout=4s&base-sleep=50ms&max-sleep=500ms&max-retries=20";
        let url = tokio::task::spawn_blocking(move || SERVER.url(&namespace, settings)).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        let store = Store::start(&home.path().join("store")).unwrap();
        Fleet { url, home, log: Log::new(), _store: store }
    }

    fn start(&self, name: &str, job: &str) -> Process {
        let program = Program::new(env!("CARGO_BIN_EXE_fleet-worker"))
            .args(["--registry", &self.url, "--process", name, "--job", job, "--store"])
            .args([self.home.path().join("store")]);
        Process::start(&program, &self.log).unwrap()
    }

    async fn until(&self, what: &str, is_true: impl Fn(&[Line]) -> bool) {
        let seen = self.log.until(LONG, is_true).await;
        assert!(seen, "{what} does not come:\n{}", self.text());
        assert_eq!(self.log.bad_lines(), Vec::<String>::new());
    }

    fn text(&self) -> String {
        self.log.lines().iter().map(|it| format!("{it}\n")).collect()
    }
}

fn starts<'a>(lines: &'a [Line], process: &'a str) -> impl Iterator<Item = &'a Start> {
    lines.iter().filter(move |it| it.process == process).filter_map(|it| match &it.what {
        What::Start(start) => Some(start),
        _ => None,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_wakes_up_after_its_session_has_died_starts_nothing_and_its_writes_are_refused() {
    let fleet = Fleet::new("zombie").await;
    // It is at work when it is stopped and when it wakes, however late that is, and does not stop at once.
    let job = "name=zombie;cron=0/10 * * * * ?;count=1;failover=true;deaf=1000;work=300000";
    let first = fleet.start("first", job);
    fleet.until("a run", |lines| starts(lines, "first").next().is_some()).await;
    first.pause().unwrap();
    let lost = starts(&fleet.log.lines(), "first").next().unwrap().clone();
    let second = fleet.start("second", job);
    let takes_over = |it: &Start| it.source == Some(Why::Failover) && it.item == lost.item;
    fleet.until("a takeover", |lines| starts(lines, "second").any(takes_over)).await;
    let taken = starts(&fleet.log.lines(), "second").find(|it| takes_over(it)).cloned().unwrap();
    assert!(taken.token > lost.token, "{taken:?} {lost:?}");
    let written = |run: &str, accepted| What::Wrote { run: run.to_owned(), accepted };
    fleet.until("its write", |lines| lines.iter().any(|it| it.what == written(&taken.run, true))).await;

    let before = fleet.log.lines().len();
    first.resume().unwrap();
    fleet.until("a refusal", |lines| lines.iter().any(|it| it.what == written(&lost.run, false))).await;
    let told = |it: &Line| matches!(&it.what, What::Told { run } if *run == lost.run);
    fleet.until("an order to stop", |lines| lines.iter().any(told)).await;
    let registered = |it: &Line| {
        it.process == "first"
            && matches!(&it.what, What::Record { event: Event::Registered { id }, .. } if *id != lost.instance)
    };
    fleet.until("a new session", |lines| lines.iter().any(registered)).await;
    let lines = fleet.log.lines();
    let zombies: Vec<&Start> =
        starts(&lines[before..], "first").filter(|it| it.instance == lost.instance).collect();
    assert!(zombies.is_empty(), "{zombies:?}");

    // Both leave when they are asked to.
    for process in [&first, &second] {
        process.terminate().unwrap();
        assert!(process.ended(LONG).await);
    }
    let left = fleet.log.lines().iter().filter(|it| it.what == What::Left).count();
    assert_eq!(left, 2, "{}", fleet.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waited_for_its_turn_does_not_begin_in_a_process_that_was_away() {
    let fleet = Fleet::new("turns").await;
    // When it wakes, the time of what runs is over, and the next item's turn comes at once.
    let job = "name=turns;cron=0/10 * * * * ?;count=5;pool=1;failover=true;work=1000";
    let process = fleet.start("sleeper", job);
    fleet.until("a run", |lines| starts(lines, "sleeper").next().is_some()).await;
    process.pause().unwrap();
    let lost = starts(&fleet.log.lines(), "sleeper").next().unwrap().clone();
    let heir = fleet.start("heir", job);
    fleet.until("a takeover", |lines| starts(lines, "heir").next().is_some()).await;
    let before = fleet.log.lines().len();
    process.resume().unwrap();
    let again = |it: &Start| it.instance != lost.instance;
    fleet.until("work in a new session", |lines| starts(lines, "sleeper").any(again)).await;
    let lines = fleet.log.lines();
    let zombies: Vec<&Start> =
        starts(&lines[before..], "sleeper").filter(|it| it.instance == lost.instance).collect();
    assert!(zombies.is_empty(), "{zombies:?}");
    drop(heir);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_killed_is_taken_over_once() {
    let fleet = Fleet::new("killed").await;
    let job = "name=killed;cron=0/3 * * * * ?;count=4;failover=true;work=1000";
    let mut processes = vec![fleet.start("a", job), fleet.start("b", job)];
    fleet
        .until("work of both", |it| starts(it, "a").next().is_some() && starts(it, "b").next().is_some())
        .await;
    let killed = processes.remove(0);
    killed.kill().unwrap();
    assert!(killed.ended(LONG).await);
    let at = elasticjob_fleet::line::now();
    fleet
        .until("all items at the survivor", |lines| {
            let of_a = lines.iter().filter(|it| it.process == "a").count();
            let mine = starts(lines, "b").filter(|it| it.source == Some(Why::Schedule));
            let late = mine.filter(|it| it.fire.is_some_and(|fire| fire > at as i64)).map(|it| it.item);
            of_a > 0 && late.collect::<std::collections::BTreeSet<_>>().len() == 4
        })
        .await;
    drop(processes);
    let lines = fleet.log.lines();
    assert_eq!(check::overlaps(&lines, |process| (process == "a").then_some(at)), Vec::<String>::new());
    assert_eq!(check::repeated(&lines), Vec::<String>::new());
}

#[tokio::test]
async fn what_stands_still_dies_with_the_process_that_started_it() {
    let log = Log::new();
    let process = Process::start(&Program::new("sleep").args(["1000"]), &log).unwrap();
    process.pause().unwrap();
    let pid = process.pid();
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(!process.has_ended());
    drop(process);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}
