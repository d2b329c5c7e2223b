//! Real workers on a real ZooKeeper: what they leave in the tree, what they cost, and who takes over.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use elasticjob::registry::{self, Change, Entry, Session, Watch, WatchEvent};
use elasticjob::{Event, Job, JobError, Pool, Recorded, Records, RunningWorker, Shard, Source, Worker};
use elasticjob_testkit::{Proxy, ZooKeeper};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

const QUICK: &str = "session-timeout=4s&base-sleep=50ms&max-sleep=500ms&max-retries=20";
const LONG: Duration = Duration::from_secs(90);

/// The job as somebody sees it who takes no part.
struct Observer {
    watch: Watch,
    nodes: BTreeMap<String, Entry>,
    _session: Arc<dyn Session>,
}

impl Observer {
    async fn of(namespace: &str, job: &str) -> Observer {
        let session = registry::open(&SERVER.url(namespace, QUICK)).unwrap().connect().await.unwrap();
        let watch = session.watch(&format!("/{job}"));
        Observer { watch, nodes: BTreeMap::new(), _session: session }
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
            panic!("{what} does not come: {:#?}", self.nodes.keys());
        }
    }
}

fn running(nodes: &BTreeMap<String, Entry>) -> usize {
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
    let fires: BTreeSet<&str> = cursors.iter().map(|it| &*it.data).collect();
    let all = cursors.len() == items && fires.len() == 1 && running(nodes) == 0;
    fires.first().filter(|_| all).and_then(|it| it.parse().ok())
}

struct Member {
    worker: RunningWorker,
    records: Records,
    proxy: Proxy,
}

impl Member {
    async fn start(namespace: &str, job: Job) -> Member {
        let proxy = Proxy::start(SERVER.port()).await;
        let url = proxy.url(namespace, "session-timeout=30s&max-sleep=1s&max-retries=20");
        let worker = Worker::new(url).job(job).start().await.unwrap();
        Member { records: worker.records(), worker, proxy }
    }

    /// The rounds that have begun since it was asked last.
    fn rounds(&mut self) -> u64 {
        let mut rounds = 0;
        while let Some(record) = now_or_never(self.records.next()) {
            match record {
                Some(Recorded::Record(record)) => {
                    rounds += u64::from(matches!(record.event, Event::RoundStarted { .. }));
                }
                Some(Recorded::Missed(count)) => panic!("missed {count} records"),
                None => break,
            }
        }
        rounds
    }
}

fn now_or_never<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    match future.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

const MULTI: i32 = 14;

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
    let mut settled = 0;
    let mut worst = 0;
    let mut total = 0;
    for round in 0..5 {
        let before = settled;
        observer.until("a round", |it| fire(it, all).is_some_and(|at| at > before)).await;
        settled = fire(&observer.nodes, all).unwrap();
        let counted: Vec<_> = members.iter_mut().map(|it| (it.proxy.take_requests(), it.rounds())).collect();
        if round < 2 {
            continue; // The first rounds make the cursors.
        }
        let running = counted.iter().filter(|it| it.1 > 0).count();
        assert_eq!(running, all.min(instances), "{counted:?}");
        for (requests, rounds) in counted {
            let expected = if rounds == 0 { BTreeMap::new() } else { BTreeMap::from([(MULTI, 2 * rounds)]) };
            assert_eq!(requests, expected, "{items} items, {instances} instances, {rounds} rounds");
            let sum: u64 = requests.values().sum();
            worst = worst.max(sum / rounds.max(1));
            total += sum;
        }
    }
    for member in members {
        member.worker.shutdown().await;
    }
    let (i, n) = (instances as u64, u64::from(items));
    format!("| {n} | {i} | {worst} | {} | {} |", total / 3, 6 * i + 8 * n + 4 * n * i)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_costs_two_requests_for_each_instance_that_runs_and_none_for_others() {
    let mut counts = tokio::task::JoinSet::new();
    for (items, instances) in [(1, 1), (10, 1), (100, 1), (1, 5), (10, 5), (100, 5)] {
        counts.spawn(async move { ((items, instances), count(items, instances).await) });
    }
    let mut rows = BTreeMap::new();
    while let Some(row) = counts.join_next().await {
        let (key, row) = row.unwrap();
        rows.insert(key, row);
    }
    println!(
        "| items | instances | requests per round, busiest instance | of all | Java, of all |\n|---|---|---|---|---|"
    );
    rows.values().for_each(|row| println!("{row}"));
}
