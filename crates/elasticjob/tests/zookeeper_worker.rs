//! Real workers on a real ZooKeeper: what they leave in the tree, what they cost, and who takes over.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use elasticjob::registry::{self, Change, Entry, Kind, Op, Session, Watch, WatchEvent};
use elasticjob::{Job, JobError, Pool, RunningWorker, Shard, Source, Worker};
use elasticjob_testkit::{Proxy, ZooKeeper};
use tokio::sync::{Mutex, mpsc, watch};
use tokio::time::timeout;

/// It clears empty lines away often: that must not cost anybody a request.
static SERVER: LazyLock<ZooKeeper> =
    LazyLock::new(|| ZooKeeper::start_with_containers_cleared_every(Duration::from_secs(1)));

const QUICK: &str = "session-timeout=4s&base-sleep=50ms&max-sleep=500ms&max-retries=20";
/// For sessions that must not end on a machine that is held up.
const CALM: &str = "session-timeout=30s&base-sleep=50ms&max-sleep=1s&max-retries=20";
const LONG: Duration = Duration::from_secs(90);
/// Of what keeps the server busy for long, one at a time.
static LARGE: Mutex<()> = Mutex::const_new(());

/// The job as somebody sees it who takes no part.
struct Observer {
    watch: Watch,
    nodes: BTreeMap<String, Entry>,
    session: Arc<dyn Session>,
}

impl Observer {
    async fn of(namespace: &str, job: &str) -> Observer {
        let session = registry::open(&SERVER.url(namespace, CALM)).unwrap().connect().await.unwrap();
        let watch = session.watch(&format!("/{job}"));
        Observer { watch, nodes: BTreeMap::new(), session }
    }

    async fn until(&mut self, what: &str, is_true: impl Fn(&BTreeMap<String, Entry>) -> bool) {
        let search = async {
            while !is_true(&self.nodes) {
                match self.watch.next().await {
                    WatchEvent::Snapshot(entries) => {
                        self.nodes = entries.into_iter().map(|it| (it.path.clone(), it)).collect();
                    }
                    WatchEvent::Changed(changes) => {
                        for change in changes {
                            match change {
                                Change::Put(entry) => drop(self.nodes.insert(entry.path.clone(), entry)),
                                Change::Gone { path } => drop(self.nodes.remove(&path)),
                            }
                        }
                    }
                    WatchEvent::Suspended | WatchEvent::Sees(_) => {}
                    WatchEvent::Ended => panic!("the observer's session ended"),
                }
            }
        };
        if timeout(LONG, search).await.is_err() {
            panic!(
                "{what} does not come: {:#?}",
                self.nodes.values().map(|it| (&it.path, &it.data)).collect::<Vec<_>>()
            );
        }
    }
}

fn count_running(nodes: &BTreeMap<String, Entry>) -> usize {
    nodes.keys().filter(|it| it.ends_with("/running")).count()
}

fn is_settled(nodes: &BTreeMap<String, Entry>, items: usize, instances: usize) -> bool {
    let owners = nodes.keys().filter(|it| it.starts_with("/sharding/") && it.ends_with("/instance")).count();
    let alive = nodes.keys().filter(|it| it.starts_with("/instances/")).count();
    let owning: BTreeSet<&str> = nodes
        .values()
        .filter(|it| it.path.ends_with("/instance") && it.path.starts_with("/sharding"))
        .map(|it| &*it.data)
        .collect();
    let busy = ["/leader/sharding/necessary", "/leader/sharding/processing"];
    owners == items
        && alive == instances
        && owning.len() == items.min(instances)
        && !busy.iter().any(|it| nodes.contains_key(*it))
}

/// The fire that every item has run for, if none of them runs.
fn fire(nodes: &BTreeMap<String, Entry>, items: usize) -> Option<i64> {
    let cursors: Vec<&Entry> = nodes.values().filter(|it| it.path.ends_with("/cursor")).collect();
    // Behind the fire stands what the clock of whoever began it showed.
    let fires: BTreeSet<&str> = cursors.iter().map(|it| it.data.split(' ').next().unwrap()).collect();
    let all = cursors.len() == items && fires.len() == 1 && count_running(nodes) == 0;
    fires.first().filter(|_| all).and_then(|it| it.parse().ok())
}

struct Member {
    worker: RunningWorker,
    proxy: Proxy,
}

impl Member {
    async fn start(namespace: &str, job: Job) -> Member {
        let proxy = Proxy::start(SERVER.port()).await;
        let url = proxy.url(namespace, CALM);
        let worker = Worker::new(url).job(job).start().await.unwrap();
        Member { worker, proxy }
    }
}

const MULTI: i32 = 14;
/// What a connection begins with that follows another.
const SET_WATCHES: i32 = 105;
const EVERY_MS: i64 = 4000;

/// Requests per round of each instance, over several rounds.
async fn count(items: u32, instances: usize) -> String {
    let namespace = format!("cost/{items}-{instances}");
    let mut observer = Observer::of(&namespace, "cost").await;
    let mut members = Vec::new();
    for _ in 0..instances {
        let job = Job::simple("cost", async |_: Shard| Ok(())).cron("0/4 * * * * ?").shards(items);
        members.push(Member::start(&namespace, job.pool(Pool::Size(16))).await);
    }
    let all = items as usize;
    observer.until("an assignment", |it| is_settled(it, all, instances)).await;
    let (mut settled, mut samples, mut total) = (0, 0, 0);
    let mut was_cut_off = false;
    for round in 0.. {
        let before = settled;
        observer.until("a round", |it| fire(it, all).is_some_and(|at| at > before)).await;
        settled = fire(&observer.nodes, all).unwrap();
        let counted: Vec<_> = members.iter().map(|it| it.proxy.take_requests()).collect();
        // On a machine that was held up, connections are lost, and several rounds may have passed.
        let cut_off = counted.iter().any(|it| it.contains_key(&SET_WATCHES));
        let disturbed = std::mem::replace(&mut was_cut_off, cut_off) || cut_off;
        // The first rounds make the cursors.
        if round < 2 || disturbed || settled - before != EVERY_MS {
            continue;
        }
        let (busy, idle): (Vec<_>, Vec<_>) = counted.into_iter().partition(|it| !it.is_empty());
        assert_eq!(
            (busy.len(), idle.len()),
            (all.min(instances), instances - all.min(instances)),
            "{busy:?}"
        );
        for requests in busy {
            assert_eq!(requests, BTreeMap::from([(MULTI, 2)]), "{items} items, {instances} instances");
            total += requests.values().sum::<u64>();
        }
        samples += 1;
        if samples == 3 {
            break;
        }
    }
    for member in members {
        member.worker.shutdown().await;
    }
    format!("| {items} | {instances} | 2 | {} |", total / samples)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_costs_two_requests_for_each_instance_that_runs_and_none_for_others() {
    let mut counts = tokio::task::JoinSet::new();
    for items in [1, 10, 100] {
        for instances in [1, 5, 20] {
            counts.spawn(async move { ((items, instances), count(items, instances).await) });
        }
    }
    let mut rows = BTreeMap::new();
    while let Some(row) = counts.join_next().await {
        let (key, row) = row.unwrap();
        rows.insert(key, row);
    }
    // For docs/zookeeper.md, which has what the same round costs a fleet of Java instances beside it.
    println!("| items | instances | an instance that runs items | all instances |\n|---|---|---|---|");
    rows.values().for_each(|row| println!("{row}"));
}

/// A job that says which shards it starts, and then waits to be told to go on.
#[derive(Clone)]
struct Gate {
    started: mpsc::UnboundedSender<Shard>,
    open: watch::Receiver<bool>,
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

fn gate() -> (Gate, mpsc::UnboundedReceiver<Shard>, watch::Sender<bool>) {
    let (started, reader) = mpsc::unbounded_channel();
    let (opener, open) = watch::channel(false);
    (Gate { started, open }, reader, opener)
}

async fn next(started: &mut mpsc::UnboundedReceiver<Shard>) -> Shard {
    timeout(LONG, started.recv()).await.expect("a shard starts").expect("a worker lives")
}

/// The instance that a shard runs on: the last two parts of its task id, less the number of the round.
fn instance(shard: &Shard) -> String {
    let parts: Vec<&str> = shard.task_id.split("@-@").collect();
    let suffix = parts[4].rsplit_once('-').unwrap().0;
    format!("{}@-@{suffix}", parts[3])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_workers_share_ten_items_and_finish_those_of_one_that_is_killed() {
    let namespace = "fleet/killed";
    let (gate, mut started, open) = gate();
    let mut observer = Observer::of(namespace, "settle").await;
    let mut workers = Vec::new();
    for _ in 0..3 {
        let job =
            Job::simple("settle", gate.clone()).shards(10).failover(true).one_off().pool(Pool::Size(10));
        workers.push(Worker::new(SERVER.url(namespace, QUICK)).job(job).start().await.unwrap());
    }
    observer.until("an assignment", |it| is_settled(it, 10, 3)).await;
    workers[0].trigger("settle").await.unwrap();
    let mut running: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for _ in 0..10 {
        let shard = next(&mut started).await;
        assert_eq!(shard.source, Source::Trigger);
        assert!(running.entry(instance(&shard)).or_default().insert(shard.item));
    }
    assert_eq!((running.len(), running.values().flatten().count()), (3, 10), "{running:?}");
    // The one that leads, so that another must lead first.
    let leader = observer.nodes.get("/leader/election/instance").unwrap().data.clone();
    let at = workers.iter().position(|it| it.instance_id().unwrap() == leader).unwrap();
    let killed = workers.remove(at);
    let lost = running.remove(&leader).unwrap();
    drop(killed);
    open.send_replace(true);
    let mut finished = BTreeSet::new();
    while finished != lost {
        let shard = next(&mut started).await;
        assert_eq!(shard.source, Source::Failover);
        assert!(running.contains_key(&instance(&shard)), "a survivor takes it over");
        assert!(finished.insert(shard.item), "once");
    }
    observer.until("a new assignment", |it| is_settled(it, 10, 2) && count_running(it) == 0).await;
    for worker in workers {
        worker.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_cut_off_stops_and_carries_on_when_it_is_back() {
    use elasticjob_testkit::proxy::Weather;
    let namespace = "fleet/cut";
    let proxy = Proxy::start(SERVER.port()).await;
    let (gate, mut started, open) = gate();
    let mut observer = Observer::of(namespace, "cut").await;
    let job = Job::simple("cut", gate).one_off().shards(1);
    let worker = Worker::new(proxy.url(namespace, QUICK)).job(job).start().await.unwrap();
    observer.until("an assignment", |it| is_settled(it, 1, 1)).await;
    let first_id = worker.instance_id().unwrap();
    worker.trigger("cut").await.unwrap();
    let first = next(&mut started).await;
    proxy.set(Weather::Cut);
    timeout(LONG, first.cancelled()).await.expect("it is told to stop when its session cannot be trusted");
    observer.until("the end of its session", |it| !it.contains_key(&format!("/instances/{first_id}"))).await;
    proxy.set(Weather::Fair);
    open.send_replace(true);
    observer.until("a new one", |it| it.keys().any(|path| path.starts_with("/instances/"))).await;
    observer
        .until("an assignment to it", |it| {
            it.get("/sharding/0/instance").is_some_and(|it| it.data != first_id)
                && !it.contains_key("/leader/sharding/necessary")
        })
        .await;
    worker.trigger("cut").await.unwrap();
    let again = next(&mut started).await;
    assert!(again.token > first.token, "a later run has a greater token");
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tree_is_the_one_that_java_knows() {
    let namespace = "tree/of a job";
    let (gate, mut started, open) = gate();
    let mut observer = Observer::of(namespace, "tree").await;
    let job = Job::simple("tree", gate).shards(2).shard_parameters(["a", "b"]).one_off().failover(true);
    let url = SERVER.url(namespace, &format!("{QUICK}&digest=user:password"));
    let worker = Worker::new(url).job(job.class_name("com.acme.Tree")).start().await.unwrap();
    // The observer has no digest: what it sees is that there is nothing for it to see.
    drop(observer);
    let url = SERVER.url(namespace, &format!("{QUICK}&digest=user:password"));
    let session = registry::open(&url).unwrap().connect().await.unwrap();
    observer = Observer { watch: session.watch("/tree"), nodes: BTreeMap::new(), session };
    observer.until("an assignment", |it| is_settled(it, 2, 1)).await;
    worker.trigger("tree").await.unwrap();
    next(&mut started).await;
    let id = worker.instance_id().unwrap();
    let ip = id.split("@-@").next().unwrap().to_owned();
    observer.until("a run", |it| count_running(it) == 2).await;

    let text = |path: &str| observer.nodes.get(path).unwrap_or_else(|| panic!("{path}")).data.as_str();
    assert_eq!(text(""), "com.acme.Tree");
    let config = text("/config");
    assert!(config.starts_with("description: ''\n"), "{config}");
    assert!(config.contains("\njobName: tree\n") && config.contains("\nshardingTotalCount: 2\n"), "{config}");
    assert_eq!(text(&format!("/instances/{id}")), format!("jobInstanceId: {id}\nserverIp: {ip}\n"));
    assert_eq!(text(&format!("/servers/{ip}")), "ENABLED");
    assert_eq!(text("/leader/election/instance"), id);
    assert_eq!((text("/sharding/0/instance"), text("/sharding/1/running")), (&*id, &*id));
    let ephemeral: Vec<&str> =
        observer.nodes.values().filter(|it| it.stat.ephemeral).map(|it| it.path.as_str()).collect();
    assert_eq!(ephemeral, [&*format!("/instances/{id}"), "/leader/election/instance"]);

    // What ZooKeeper's own tool says of kinds and rights.
    let root = "/tree/of a job";
    let commands = [
        "addauth digest user:password".to_owned(),
        format!("stat '{root}'"),
        format!("stat '{root}/tree/leader/election/instance'"),
        format!("stat '{root}/tree/sharding/0/running'"),
        format!("getAcl '{root}/tree/sharding/0/running'"),
        format!("getAcl '{root}'"),
    ];
    let said = tokio::task::spawn_blocking(move || {
        SERVER.cli(&commands.iter().map(String::as_str).collect::<Vec<_>>())
    });
    let said = said.await.unwrap();
    let owners: Vec<&str> = said.lines().filter_map(|it| it.strip_prefix("ephemeralOwner = ")).collect();
    assert_eq!(owners.len(), 3, "{said}");
    assert!(owners[0] == "0x0" && owners[1] != "0x0" && owners[2] == "0x0", "{said}");
    let acl = "'digest,'user:tpUq/4Pn5A64fVZyQ0gOJ8ZWqkY=\n: cdrwa";
    assert_eq!(said.matches(acl).count(), 2, "{said}");
    open.send_replace(true);
    worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_items_are_more_than_a_transaction_takes_and_run_all_the_same() {
    const ITEMS: u32 = 10_000;
    let _alone = LARGE.lock().await;
    let namespace = "many";
    let (sender, mut ran) = mpsc::unbounded_channel();
    let mut observer = Observer::of(namespace, "many").await;
    let mut workers = Vec::new();
    for _ in 0..2 {
        let sender = sender.clone();
        let job = Job::simple("many", move |shard: Shard| {
            sender.send(shard.item).ok();
            async { Ok(()) }
        });
        let url = SERVER.url(namespace, CALM);
        let worker = Worker::new(url).job(job.shards(ITEMS).one_off().pool(Pool::Size(64)));
        workers.push(worker.start().await.unwrap());
    }
    observer.until("an assignment", |it| is_settled(it, ITEMS as usize, 2)).await;
    workers[0].trigger("many").await.unwrap();
    let mut items = BTreeSet::new();
    while items.len() < ITEMS as usize {
        items.insert(timeout(LONG, ran.recv()).await.expect("items run").unwrap());
    }
    for worker in workers {
        worker.shutdown().await;
    }
}

/// What an instance was asked to do when it had died goes to whoever gets its items, however many they are: all of them
/// in one transaction would be more than a server takes, and nothing would be handed out any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_to_the_dead_is_handed_on_with_ten_thousand_items() {
    use elasticjob_testkit::proxy::Weather;
    const ITEMS: u32 = 10_000;
    let _alone = LARGE.lock().await;
    let namespace = "handed/on";
    let name = "a-job-with-a-rather-long-name-as-people-like-to-give-them-to-their-jobs";
    let (sender, mut ran) = mpsc::unbounded_channel();
    let job = |sender: mpsc::UnboundedSender<(u32, Option<Arc<str>>)>| {
        let job = Job::simple(name, move |shard: Shard| {
            sender.send((shard.item, shard.trigger_parameter)).ok();
            async { Ok(()) }
        });
        job.shards(ITEMS).one_off().pool(Pool::Size(64))
    };
    let mut observer = Observer::of(namespace, name).await;
    let proxy = Proxy::start(SERVER.port()).await;
    let first = Worker::new(proxy.url(namespace, "session-timeout=12s"))
        .job(job(sender.clone()))
        .start()
        .await
        .unwrap();
    observer.until("an assignment", |it| is_settled(it, ITEMS as usize, 1)).await;
    let id = first.instance_id().unwrap();
    proxy.set(Weather::Cut);
    let ask = Op::Create { path: format!("/trigger/{id}"), data: "today".into(), kind: Kind::Persistent };
    observer.session.commit(&format!("/{name}"), vec![ask]).await.unwrap();
    drop(first);
    let second = Worker::new(SERVER.url(namespace, CALM)).job(job(sender)).start().await.unwrap();
    let mut items = BTreeSet::new();
    while items.len() < ITEMS as usize {
        let (item, parameter) = timeout(LONG, ran.recv()).await.expect("items run").unwrap();
        assert_eq!(parameter.as_deref(), Some("today"));
        assert!(items.insert(item), "{item} runs once");
    }
    second.shutdown().await;
}

struct Once(mpsc::UnboundedSender<String>);

impl elasticjob::OnceListener for Once {
    async fn before_first(&self, _: &elasticjob::Round) -> Result<(), JobError> {
        Ok(self.0.send("before".to_owned())?)
    }

    async fn after_last(&self, _: &elasticjob::Round) -> Result<(), JobError> {
        Ok(self.0.send("after".to_owned())?)
    }
}

#[tokio::test]
async fn of_two_workers_one_calls_what_is_called_once() {
    let (sender, mut calls) = mpsc::unbounded_channel();
    let mut workers = Vec::new();
    for _ in 0..2 {
        let shards = sender.clone();
        let work = move |shard: Shard| {
            let shards = shards.clone();
            async move { Ok(shards.send(shard.item.to_string())?) }
        };
        let job = Job::simple("once", work).shards(4).one_off().once_listener(Once(sender.clone()));
        workers.push(Worker::new(SERVER.url("once", QUICK)).job(job).start().await.unwrap());
    }
    let mut observer = Observer::of("once", "once").await;
    observer.until("the assignment", |nodes| is_settled(nodes, 4, 2)).await;
    for _ in 0..3 {
        workers[0].trigger("once").await.unwrap();
        let mut round = Vec::new();
        for _ in 0..6 {
            round.push(timeout(LONG, calls.recv()).await.expect("a call").unwrap());
        }
        let middle: BTreeSet<&str> = round[1..5].iter().map(String::as_str).collect();
        assert_eq!((&*round[0], middle, &*round[5]), ("before", ["0", "1", "2", "3"].into(), "after"));
    }
    observer
        .until("nothing left behind", |nodes| {
            !nodes
                .keys()
                .any(|it| it.starts_with("/guarantee/started/") || it.starts_with("/guarantee/completed/"))
        })
        .await;
    for worker in workers {
        worker.shutdown().await;
    }
}

/// A job that hands its shard out, and does not hear that it should stop.
struct Deaf(mpsc::UnboundedSender<Shard>);

impl elasticjob::SimpleJob for Deaf {
    async fn run(&self, shard: Shard) -> Result<(), JobError> {
        self.0.send(shard)?;
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zombie_cannot_move_an_offset_back() {
    use elasticjob::OffsetError;
    use elasticjob_testkit::proxy::Weather;
    let namespace = "offsets";
    let proxy = Proxy::start(SERVER.port()).await;
    let (sender, mut shards) = mpsc::unbounded_channel();
    let start = async |url: String| {
        let job = Job::simple("deaf", Deaf(sender.clone())).one_off().failover(true);
        Worker::new(url).job(job).cancel_grace(Duration::from_secs(3600)).start().await.unwrap()
    };
    let first = start(proxy.url(namespace, QUICK)).await;
    let mut observer = Observer::of(namespace, "deaf").await;
    observer.until("an assignment", |it| is_settled(it, 1, 1)).await;
    let first_id = first.instance_id().unwrap();
    first.trigger("deaf").await.unwrap();
    let zombie = next(&mut shards).await;
    zombie.set_offset("100").await.unwrap();
    let second = start(SERVER.url(namespace, QUICK)).await;
    proxy.set(Weather::Cut);
    observer.until("the end of its session", |it| !it.contains_key(&format!("/instances/{first_id}"))).await;
    let successor = next(&mut shards).await;
    assert_eq!(successor.offset().await.unwrap().as_deref(), Some("100"), "what was written stays");
    successor.set_offset("200").await.unwrap();
    // It wakes up when the way is free again, and does not know yet what happened.
    let late = tokio::spawn(async move { (zombie.set_offset("110").await, zombie) });
    proxy.set(Weather::Fair);
    let (written, zombie) = timeout(LONG, late).await.expect("an answer").unwrap();
    assert!(matches!(written, Err(OffsetError::Fenced | OffsetError::Registry(_))), "{written:?}");
    observer
        .until("the first worker's new session", |it| {
            it.keys().filter(|path| path.starts_with("/instances/")).count() == 2
        })
        .await;
    // With a new session of the same process it is a zombie all the same.
    assert_eq!(zombie.set_offset("120").await, Err(OffsetError::Fenced));
    assert_eq!(successor.offset().await.unwrap().as_deref(), Some("200"));
    drop((first, second));
}

/// A parameter is kept with every shard until it ends, all of them in one transaction: the largest that is accepted
/// must not be too large for that, however long the names are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_longest_parameter_reaches_a_thousand_shards() {
    let (tell, mut told) = mpsc::channel(2000);
    let name = "a-job-with-a-rather-long-name-as-people-like-to-give-them-to-their-jobs";
    let job = Job::simple(name, move |shard: Shard| {
        let tell = tell.clone();
        async move { Ok(tell.send((shard.item, shard.trigger_parameter)).await?) }
    });
    let url = SERVER.url("a-namespace-of-some-length/with-a-part-below", QUICK);
    let job = job.shards(1000).failover(true).pool(Pool::Size(100));
    let worker = Worker::new(url).job(job).start().await.unwrap();
    let longest = "x".repeat(221);
    worker.trigger_with(name, &longest).await.unwrap();
    let mut items = BTreeSet::new();
    while items.len() < 1000 {
        let (item, parameter) = timeout(LONG, told.recv()).await.expect("all of them run").unwrap();
        assert_eq!(parameter.as_deref(), Some(longest.as_str()));
        items.insert(item);
    }
    assert!(worker.trigger_with(name, &format!("{longest}x")).await.is_err());
    worker.shutdown().await;
}
