//! Counts on the wire what a round costs a fleet of Java instances, for the table of docs/zookeeper.md. It takes
//! seven minutes, 26 Java processes and 4 GB; `cargo xtask interop` must have built them.

#![expect(clippy::expect_used, reason = "a measurement that cannot go on should stop")]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use elasticjob_fleet::{Log, Process, Program, What, line};
use elasticjob_testkit::{Proxy, ZooKeeper};
use tokio::task::JoinSet;

/// They fire one after the other, so that what passes between two fires belongs to one of them.
const JOBS: [(u32, &str); 3] = [(1, "0 * * * * ?"), (10, "20 * * * * ?"), (100, "40 * * * * ?")];
const EVERY_MS: u64 = 20_000;
/// The first rounds make the nodes.
const WARM_UP: usize = 6;
const WINDOWS: usize = 18;

/// By items: the most that one instance, and that all of them, sent in a round.
type Costs = BTreeMap<u32, (u64, u64)>;

#[tokio::main]
async fn main() {
    let server = tokio::task::spawn_blocking(ZooKeeper::start).await.expect("it starts");
    let port = server.port();
    let mut fleets = JoinSet::new();
    for instances in [1, 5, 20] {
        fleets.spawn(async move { (instances, count(port, instances).await) });
    }
    let mut all: BTreeMap<usize, Costs> = BTreeMap::new();
    while let Some(counted) = fleets.join_next().await {
        let (instances, costs) = counted.expect("it counts");
        all.insert(instances, costs);
    }
    for (items, _) in JOBS {
        for (instances, costs) in &all {
            let (busiest, together) = costs.get(&items).copied().unwrap_or_default();
            println!("| {items} | {instances} | {busiest} | {together} |");
        }
    }
}

async fn count(server: u16, instances: usize) -> Costs {
    let log = Log::new();
    let mut members = Vec::new();
    for number in 0..instances {
        let proxy = Proxy::start(server).await;
        let program = java(&format!("j{instances}.{number}"), proxy.port(), &format!("cost{instances}"));
        members.push((proxy, Process::start(&program, &log).expect("java runs")));
    }
    let ready = |line: &elasticjob_fleet::Line| matches!(line.what, What::Ready { .. });
    let limit = Duration::from_secs(300);
    assert!(log.until(limit, |lines| lines.iter().filter(|it| ready(it)).count() == instances).await);
    let mut costs = Costs::new();
    for window in 0..WINDOWS {
        // Five seconds before the next fire.
        let wait = EVERY_MS - (line::now() + 5_000) % EVERY_MS;
        tokio::time::sleep(Duration::from_millis(wait)).await;
        let sent: Vec<u64> = members.iter().map(|it| it.0.take_requests().values().sum()).collect();
        let items = JOBS[usize::try_from(line::now() / EVERY_MS % 3).unwrap_or_default()].0;
        if window >= WARM_UP {
            let cost = costs.entry(items).or_default();
            cost.0 = cost.0.max(sent.iter().copied().max().unwrap_or_default());
            cost.1 = cost.1.max(sent.iter().sum());
        }
    }
    costs
}

fn java(process: &str, port: u16, namespace: &str) -> Program {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/target");
    let class_path = format!("{0}/interop.jar:{0}/lib/*", target.display());
    let mut program = Program::new("java")
        .args(["-Xmx160m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
        .args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", &class_path, "interop.Worker"])
        .args(["--process", process, "--registry", &format!("127.0.0.1:{port}"), "--namespace", namespace])
        .args(["--session-ms", "40000"]);
    for (items, cron) in JOBS {
        let (name, count) = (format!("of{items}"), items.to_string());
        program = program.args(["--job", &name, "--count", &count, "--cron", cron, "--work-ms", "0"]);
    }
    program
}
