//! Real workers on the embedded registry, several of them in one process. Time is tokio's, paused: it moves
//! only when everybody waits, so nothing here depends on how fast the machine is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elasticjob::registry::{self, Embedded, Registry};
use elasticjob::{
    Error, Event, Job, JobError, Outcome, Pool, Recorded, Records, RunningWorker, Shard, Source, StopReason,
    Worker, testing,
};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const MIDNIGHT: &str = "2030-01-01T00:00:00Z";

fn registry() -> Arc<dyn Registry> {
    registry::open("embedded://?session-timeout=6s").unwrap()
}

async fn start(registry: &Arc<dyn Registry>, job: Job) -> RunningWorker {
    let worker = Worker::new(registry.clone()).job(job).shutdown_grace(Duration::from_secs(5));
    // All workers of a test live by one clock: what has passed of it since the first one started.
    testing::clock_from(worker, now()).start().await.unwrap()
}

/// The time of day of a test: midnight, and what tokio's clock says has passed since.
fn now() -> jiff::Timestamp {
    thread_local!(static START: tokio::time::Instant = tokio::time::Instant::now());
    let passed = START.with(tokio::time::Instant::elapsed);
    MIDNIGHT.parse::<jiff::Timestamp>().unwrap() + jiff::SignedDuration::try_from(passed).unwrap()
}

async fn find<T>(records: &mut Records, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
    let search = async {
        loop {
            match records.next().await.expect("the worker lives") {
                Recorded::Record(record) => {
                    if let Some(found) = wanted(&record.event) {
                        return found;
                    }
                }
                Recorded::Missed(count) => panic!("missed {count} records"),
            }
        }
    };
    timeout(Duration::from_secs(3600), search).await.expect("it happens within an hour")
}

/// A job that says which shards it starts, and then waits to be told to go on.
#[derive(Clone)]
struct Gate {
    started: mpsc::UnboundedSender<Shard>,
    open: tokio::sync::watch::Receiver<bool>,
}

impl elasticjob::SimpleJob for Gate {
    async fn run(&self, shard: Shard) -> Result<(), JobError> {
        self.started.send(shard.clone())?;
        let mut gate = self.open.clone();
        tokio::select! {
            open = gate.wait_for(|open| *open) => drop(open?),
            () = shard.cancelled() => return Err("cancelled".into()),
        }
        Ok(())
    }
}

struct Opener {
    started: mpsc::UnboundedReceiver<Shard>,
    open: tokio::sync::watch::Sender<bool>,
}

impl Opener {
    async fn next(&mut self) -> Shard {
        timeout(Duration::from_secs(3600), self.started.recv())
            .await
            .expect("a shard starts")
            .expect("a worker lives")
    }
}

fn gate(open: bool) -> (Gate, Opener) {
    let (started, reader) = mpsc::unbounded_channel();
    let (opener, gate) = tokio::sync::watch::channel(open);
    (Gate { started, open: gate }, Opener { started: reader, open: opener })
}

fn every_ten_seconds(name: &str, gate: Gate) -> Job {
    Job::simple(name, gate).cron("0/10 * * * * ?").time_zone("GMT+0:00")
}

#[tokio::test(start_paused = true)]
async fn three_workers_share_ten_items_and_finish_those_of_one_that_is_killed() {
    let registry = registry();
    let (gate, mut opener) = gate(false);
    let mut workers = Vec::new();
    for _ in 0..3 {
        let job = every_ten_seconds("settle", gate.clone()).shards(10).failover(true).pool(Pool::Size(10));
        workers.push(start(&registry, job).await);
    }
    let mut running: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for _ in 0..10 {
        let shard = opener.next().await;
        assert_eq!(shard.source, Source::Schedule);
        assert!(running.entry(instance(&shard)).or_default().insert(shard.item));
    }
    let items: Vec<u32> = running.values().flatten().copied().collect();
    assert_eq!((running.len(), items.len()), (3, 10), "three workers share ten items: {running:?}");

    let killed = workers.remove(0);
    let lost = running.remove(&killed.instance_id().unwrap()).unwrap();
    let killed_at = tokio::time::Instant::now();
    drop(killed);
    opener.open.send_replace(true);
    let mut finished = BTreeSet::new();
    while finished != lost {
        let shard = opener.next().await;
        if shard.source == Source::Failover {
            assert!(running.contains_key(&instance(&shard)), "a survivor takes it over");
            assert!(finished.insert(shard.item), "once");
        }
    }
    let session_timeout = Duration::from_secs(6);
    assert!(killed_at.elapsed() <= session_timeout + Duration::from_millis(200), "{:?}", killed_at.elapsed());
    for worker in workers {
        worker.shutdown().await;
    }
}

/// The instance that a shard runs on: the last two parts of its task id, less the number of the round.
fn instance(shard: &Shard) -> String {
    let parts: Vec<&str> = shard.task_id.split("@-@").collect();
    let suffix = parts[4].rsplit_once('-').unwrap().0;
    format!("{}@-@{suffix}", parts[3])
}

#[tokio::test(start_paused = true)]
async fn a_token_grows_with_every_run_and_names_the_shard() {
    let (gate, mut opener) = gate(true);
    let job =
        every_ten_seconds("tokens", gate).shards(2).shard_parameters(["north", "south"]).parameter("full");
    let worker = start(&registry(), job).await;
    let mut last: BTreeMap<u32, u64> = BTreeMap::new();
    for _ in 0..10 {
        let shard = opener.next().await;
        assert!(last.insert(shard.item, shard.token).is_none_or(|before| before < shard.token));
        assert_eq!(shard.parameter.as_deref(), Some(["north", "south"][shard.item as usize]));
        assert_eq!((&*shard.job_parameter, &*shard.job, shard.total), ("full", "tokens", 2));
        assert_eq!(
            shard.task_id.split("@-@").count(),
            5,
            "Java splits it into five parts: {}",
            shard.task_id
        );
        assert!(shard.nominal.is_some_and(|at| at.as_second() % 10 == 0));
    }
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_an_error_are_outcomes_and_the_next_round_comes() {
    let job = Job::simple("rough", async |shard: Shard| match shard.item {
        0 => panic!("out of luck"),
        1 => Err("no rows".into()),
        _ => Ok(()),
    });
    let worker = start(&registry(), job.cron("0/10 * * * * ?").shards(3)).await;
    let mut records = worker.records();
    for _ in 0..2 {
        let mut outcomes = BTreeMap::new();
        while outcomes.len() < 3 {
            let (item, outcome) = find(&mut records, |event| match event {
                Event::ItemFinished { item, outcome, .. } => Some((*item, outcome.clone())),
                _ => None,
            })
            .await;
            outcomes.insert(item, outcome);
        }
        assert_eq!(outcomes[&0], Outcome::Failed("panicked: out of luck".into()));
        assert_eq!(outcomes[&1], Outcome::Failed("no rows".into()));
        assert_eq!(outcomes[&2], Outcome::Succeeded);
    }
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn the_pool_bounds_how_many_shards_run_at_a_time() {
    let (at_once, most) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let most_seen = most.clone();
    let job = Job::simple("pool", move |_: Shard| {
        let (at_once, most) = (at_once.clone(), most.clone());
        async move {
            let now = {
                let mut count = at_once.lock().unwrap();
                *count += 1;
                *count
            };
            {
                let mut most = most.lock().unwrap();
                *most = now.max(*most);
            }
            sleep(Duration::from_millis(100)).await;
            *at_once.lock().unwrap() -= 1;
            Ok(())
        }
    });
    let outcomes = testing::run_once(&job.shards(12).pool(Pool::Size(3))).await.unwrap();
    assert_eq!(outcomes.len(), 12);
    assert_eq!(*most_seen.lock().unwrap(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_trigger_reaches_every_worker_and_one_during_a_run_runs_after_it() {
    let registry = registry();
    let (gate_a, mut a) = gate(false);
    let (gate_b, mut b) = gate(false);
    let worker_a = start(&registry, Job::simple("ask", gate_a).shards(2).one_off()).await;
    let worker_b = start(&registry, Job::simple("ask", gate_b).shards(2).one_off()).await;
    worker_a.trigger("ask").await.unwrap();
    let items = BTreeSet::from([a.next().await.item, b.next().await.item]);
    assert_eq!(items, BTreeSet::from([0, 1]));
    worker_b.trigger("ask").await.unwrap();
    a.open.send_replace(true);
    b.open.send_replace(true);
    assert_eq!(a.next().await.source, Source::Trigger);
    assert_eq!(b.next().await.source, Source::Trigger);
    let error = worker_a.trigger("asc").await.unwrap_err();
    assert_eq!(error.to_string(), "job `asc` does not exist here; known: ask");
    worker_a.shutdown().await;
    worker_b.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn one_that_leaves_finishes_what_it_runs_and_leaves_nothing_behind() {
    let registry = registry();
    let (gate, mut opener) = gate(false);
    let worker = start(&registry, every_ten_seconds("leave", gate).failover(true)).await;
    opener.next().await;
    let open = opener.open.clone();
    tokio::spawn(async move {
        sleep(Duration::from_secs(3)).await;
        open.send_replace(true);
    });
    worker.shutdown().await;
    let session = registry.connect().await.unwrap();
    let left: Vec<String> = session.read("/leave").await.unwrap().into_iter().map(|it| it.path).collect();
    let marks = ["/instances/", "/leader/election/instance", "running", "failover/"];
    assert!(!left.iter().any(|path| marks.iter().any(|mark| path.contains(mark))), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_in_time_is_cancelled_and_then_dropped() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let job = Job::simple("stubborn", move |shard: Shard| {
        let sender = sender.clone();
        async move {
            sender.send("started").ok();
            shard.cancelled().await;
            sender.send("told").ok();
            std::future::pending().await
        }
    });
    let worker = start(&registry(), job.cron("0/10 * * * * ?")).await;
    assert_eq!(seen.recv().await, Some("started"));
    let mut records = worker.records();
    let leaving = tokio::spawn(worker.shutdown());
    assert_eq!(seen.recv().await, Some("told"));
    let outcome = find(&mut records, |event| match event {
        Event::ItemFinished { outcome, .. } => Some(outcome.clone()),
        _ => None,
    });
    assert_eq!(outcome.await, Outcome::Cancelled);
    leaving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_lost_session_cancels_what_runs_and_a_new_one_carries_on() {
    let embedded = Embedded::new();
    let shared: Arc<dyn Registry> = Arc::new(embedded.clone());
    let (gate, mut opener) = gate(false);
    let worker = start(&shared, every_ten_seconds("lost", gate)).await;
    let first = opener.next().await;
    let id = worker.instance_id().unwrap();
    embedded.sessions().into_iter().for_each(|session| embedded.expire(session));
    timeout(Duration::from_secs(5), first.cancelled()).await.expect("it is told to stop");
    opener.open.send_replace(true);
    let again = opener.next().await;
    assert!(again.token > first.token);
    assert_ne!(worker.instance_id().unwrap(), id, "an id names a session");
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_start_says_why() {
    let registry = registry();
    let simple = |name: &str| Job::simple(name, async |_: Shard| Ok(()));
    let error = |worker: Worker| async { worker.start().await.err().map(|error| error.to_string()) };
    let worker = || Worker::new(registry.clone());
    let said = error(worker().job(simple("a").cron("0 0 25 * * ?"))).await.unwrap();
    assert_eq!(
        said,
        "job `a`: cron `0 0 25 * * ?` is no schedule: hour `25` at column 5: the hour is 0 to 23"
    );
    let said = error(worker().job(simple("a").strategy("MINE"))).await.unwrap();
    assert!(
        said.starts_with("job `a`: jobShardingStrategyType `MINE` is unknown: write AVG_ALLOCATION, "),
        "{said}"
    );
    let said = error(worker().job(simple("a")).job(simple("a"))).await.unwrap();
    assert_eq!(said, "job `a` is added twice: give one of them another name");
    let said = error(Worker::new("nowhere://").job(simple("a"))).await.unwrap();
    assert!(said.contains("nowhere"), "{said}");
    let first = start(&registry, simple("taken").class_name("com.acme.A")).await;
    let second = worker().job(simple("taken").class_name("com.acme.B")).start().await;
    match second {
        Err(Error::Start { reason: StopReason::Conflict { theirs, .. }, .. }) => {
            assert_eq!(theirs, "com.acme.A");
        }
        other => panic!("{other:?}"),
    }
    first.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_ends_its_job_and_no_other() {
    struct Alone;
    impl elasticjob::Strategy for Alone {
        fn assign(&self, instances: &[&str], _job: &str, total: u32) -> Vec<Vec<u32>> {
            assert!(instances.len() < 2, "cannot share");
            vec![(0..total).collect(); instances.len()]
        }
    }
    let registry = registry();
    let (gate, mut opener) = gate(true);
    let job = |name: &str| every_ten_seconds(name, gate.clone()).strategy("ALONE");
    let worker = || Worker::new(registry.clone()).strategy("ALONE", Alone);
    let first = testing::clock_from(worker().job(job("good")).job(job("bad")), now()).start().await.unwrap();
    let id = first.instance_id().unwrap();
    // The first leads, and breaks when it should share. The second is then alone, and carries on.
    let second = testing::clock_from(worker().job(job("bad")), now()).start().await.unwrap();
    let mut ran = BTreeMap::new();
    for _ in 0..4 {
        let shard = opener.next().await;
        ran.entry(shard.job.to_string()).or_insert_with(BTreeSet::new).insert(instance(&shard));
    }
    assert_eq!(ran["good"], BTreeSet::from([id]));
    assert_eq!(ran["bad"], BTreeSet::from([second.instance_id().unwrap()]));
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_jobs_start_and_fire_together() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let mut worker = Worker::new(registry());
    for n in 0..1000 {
        let sender = sender.clone();
        let job = Job::simple(format!("job-{n}"), move |shard: Shard| {
            sender.send(shard.job).ok();
            async { Ok(()) }
        });
        worker = worker.job(job.cron("0/10 * * * * ?"));
    }
    let worker = testing::clock_from(worker, now()).start().await.unwrap();
    let mut fired = BTreeSet::new();
    while fired.len() < 1000 {
        fired.insert(seen.recv().await.unwrap());
    }
    worker.shutdown().await;
}
