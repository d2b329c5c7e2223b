//! What the status port of a worker says while its network is cut and mended, with a real server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use elasticjob::registry::{self, Change, WatchEvent};
use elasticjob::{Event, Job, Recorded, Records, Shard, Worker};
use elasticjob_testkit::proxy::Weather;
use elasticjob_testkit::{Proxy, ZooKeeper};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

static SERVER: LazyLock<ZooKeeper> = LazyLock::new(ZooKeeper::start);

const QUICK: &str = "session-timeout=4s&base-sleep=50ms&max-sleep=500ms&max-retries=20";
const LONG: Duration = Duration::from_secs(90);

/// The whole answer.
async fn get(address: SocketAddr, path: &str) -> String {
    let conversation = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    timeout(LONG, conversation).await.expect("it answers")
}

async fn until(records: &mut Records, wanted: impl Fn(&Event) -> bool) {
    let wait = async {
        loop {
            match records.next().await.expect("the worker goes on") {
                Recorded::Record(record) if wanted(&record.event) => return,
                Recorded::Record(_) | Recorded::Missed(_) => {}
            }
        }
    };
    timeout(LONG, wait).await.expect("it happens");
}

/// Waits until the server has given up on an instance.
async fn until_gone(id: &str) {
    let session = registry::open(&SERVER.url("status", QUICK)).unwrap().connect().await.unwrap();
    let mut watch = session.watch("/yearly/instances");
    let path = format!("/{id}");
    let wait = async {
        loop {
            match watch.next().await {
                WatchEvent::Snapshot(nodes) if nodes.iter().all(|it| it.path != path) => return,
                WatchEvent::Changed(changes) if changes.contains(&Change::Gone { path: path.clone() }) => {
                    return;
                }
                WatchEvent::Ended => panic!("the observer's session ended"),
                _ => {}
            }
        }
    };
    timeout(LONG, wait).await.expect("its session ends");
    session.close().await;
}

/// Who asks whether the process is well wants an answer while it waits for the registry.
#[tokio::test]
async fn a_worker_that_waits_for_its_registry_is_well_and_not_ready() {
    let proxy = Proxy::start(SERVER.port()).await;
    proxy.set(Weather::Cut);
    let port = elasticjob_testkit::free_ports(1)[0];
    let at = SocketAddr::from(([127, 0, 0, 1], port));
    let job = Job::simple("yearly", async |_: Shard| Ok(())).cron("0 0 0 1 1 ?");
    let worker = Worker::new(proxy.url("waits", QUICK)).job(job).status_port(port);
    let start = tokio::spawn(worker.start());
    while TcpStream::connect(at).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert!(get(at, "/healthz").await.starts_with("HTTP/1.1 200 "));
    let answer = get(at, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("it starts, or leaves\n"), "{answer}");
    proxy.set(Weather::Fair);
    let worker = timeout(LONG, start).await.expect("it starts").unwrap().unwrap();
    assert!(get(at, "/readyz").await.ends_with("\r\n\r\nready\n"));
    worker.shutdown().await;
}

#[tokio::test]
async fn a_worker_is_ready_while_its_session_stands_and_never_else() {
    let proxy = Proxy::start(SERVER.port()).await;
    let job = Job::simple("yearly", async |_: Shard| Ok(())).cron("0 0 0 1 1 ?").shards(2);
    let worker = Worker::new(proxy.url("status", QUICK)).job(job).status_port(0).start().await.unwrap();
    let at = worker.status_address().unwrap();
    let mut records = worker.records();
    let ready = "\r\n\r\nready\n";
    assert!(get(at, "/readyz").await.ends_with(ready));
    let first = worker.instance_id().unwrap();

    // A blink: the session outlives it.
    proxy.set(Weather::Cut);
    until(&mut records, |it| matches!(it, Event::Suspended)).await;
    let answer = get(at, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(
        answer.contains("job yearly is not registered, or the connection to the registry is down"),
        "{answer}"
    );
    assert!(get(at, "/healthz").await.starts_with("HTTP/1.1 200 "));
    assert!(get(at, "/metrics").await.contains("\nelasticjob_session_up 0\n"));
    proxy.set(Weather::Fair);
    until(&mut records, |it| matches!(it, Event::Reconnected)).await;
    assert!(get(at, "/readyz").await.ends_with(ready));

    // Long enough for the session to end: another one, and another id.
    proxy.set(Weather::Cut);
    until(&mut records, |it| matches!(it, Event::Distrusted)).await;
    assert!(get(at, "/readyz").await.starts_with("HTTP/1.1 503 "));
    until_gone(&first).await;
    proxy.set(Weather::Fair);
    until(&mut records, |it| matches!(it, Event::Registered { .. })).await;
    assert!(get(at, "/readyz").await.ends_with(ready));
    assert_ne!(worker.instance_id().unwrap(), first);
    let numbers = get(at, "/metrics").await;
    for line in
        ["elasticjob_session_up 1", "elasticjob_sessions_total 2", "elasticjob_registered{job=\"yearly\"} 1"]
    {
        assert!(numbers.lines().any(|it| it == line), "{line}\n{numbers}");
    }
    worker.shutdown().await;
}
