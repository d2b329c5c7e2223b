//! What a worker tells operators: its status port, its dump port, its file of events, and the pages that describe
//! them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use elasticjob::events::{EventFile, EventPort, History, Span, read_line};
use elasticjob::metrics::{Kind, Metric, Metrics};
use elasticjob::ops::{Ops, Part, dump_from};
use elasticjob::registry;
use elasticjob::{Event, Job, Recorded, Records, RunningWorker, Shard, Worker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const WAIT: Duration = Duration::from_secs(20);

fn job() -> Job {
    Job::simple("hello", async |shard: Shard| match shard.item {
        0 => Ok(()),
        _ => Err("no".into()),
    })
    .shards(2)
}

/// The status, and what follows the head.
async fn request(address: SocketAddr, text: &str) -> (String, String) {
    let conversation = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = tokio::time::timeout(WAIT, conversation).await.expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).unwrap();
    assert!(body.is_empty() || body.len() == length.parse::<usize>().unwrap(), "{answer}");
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

async fn get(address: SocketAddr, path: &str) -> (String, String) {
    request(address, &format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n")).await
}

async fn until(records: &mut Records, mut fits: impl FnMut(&Event) -> bool) {
    let wait = async {
        loop {
            match records.next().await {
                Some(Recorded::Record(record)) if fits(&record.event) => return,
                Some(_) => {}
                None => panic!("the worker ended"),
            }
        }
    };
    tokio::time::timeout(WAIT, wait).await.expect("it happens");
}

async fn run(worker: &RunningWorker) {
    let mut records = worker.records();
    worker.trigger("hello").await.unwrap();
    until(&mut records, |it| matches!(it, Event::RoundFinished { .. })).await;
}

#[tokio::test]
async fn the_status_port_answers_what_it_is_for_and_nothing_else() {
    let worker = Worker::new("embedded://").job(job()).status_port(0).start().await.unwrap();
    let at = worker.status_address().unwrap();
    assert!(at.ip().is_loopback());
    assert_eq!(get(at, "/healthz").await, ("HTTP/1.1 200 OK".into(), "ok\n".into()));
    assert_eq!(get(at, "/readyz?verbose").await, ("HTTP/1.1 200 OK".into(), "ready\n".into()));
    assert_eq!(get(at, "/").await.0, "HTTP/1.1 404 Not Found");
    assert_eq!(
        request(at, "HEAD /healthz HTTP/1.1\r\n\r\n").await,
        ("HTTP/1.1 200 OK".into(), String::new())
    );
    assert_eq!(request(at, "POST /healthz HTTP/1.1\r\n\r\n").await.0, "HTTP/1.1 405 Method Not Allowed");
    // Who sends what is no request, or too much of it, is hung up on, and the others are answered.
    let mut endless = TcpStream::connect(at).await.unwrap();
    let _ = endless.write_all(&vec![b'x'; 20_000]).await;
    let mut nothing = Vec::new();
    let closed = tokio::time::timeout(WAIT, endless.read_to_end(&mut nothing)).await.expect("it hangs up");
    assert!(closed.is_err() || nothing.is_empty());
    assert_eq!(get(at, "/healthz").await.1, "ok\n");
    worker.shutdown().await;
}

#[tokio::test]
async fn nothing_is_open_unless_somebody_asks() {
    let worker = Worker::new("embedded://").job(job()).start().await.unwrap();
    assert_eq!((worker.status_address(), worker.dump_address()), (None, None));
    worker.shutdown().await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_said_before_anybody_joins() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = taken.local_addr().unwrap().port();
    let registry = registry::open("embedded://").unwrap();
    for (what, worker) in [
        ("status", Worker::new(registry.clone()).status_port(port)),
        ("dump", Worker::new(registry.clone()).dump_port(port)),
    ] {
        let error = worker.job(job()).start().await.unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot open the {what} port at 127.0.0.1:{port}: ")), "{error}");
    }
    let file = EventFile::new("/no/such/directory/events");
    let error = Worker::new(registry.clone()).job(job()).event_file(file).start().await.unwrap_err();
    assert!(error.to_string().starts_with("cannot write events to /no/such/directory/events: "), "{error}");
    assert!(registry.connect().await.unwrap().children("").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_job_that_operators_ended_is_not_missing_unless_it_was_the_only_one() {
    let registry = registry::open("embedded://").unwrap();
    let other = Job::simple("other", async |_: Shard| Ok(()));
    let worker = Worker::new(registry.clone()).job(job()).job(other).status_port(0).start().await.unwrap();
    let at = worker.status_address().unwrap();
    let ops = Ops::connect(registry).await.unwrap();
    let mut records = worker.records();
    ops.shutdown("hello", &Part::Job).await.unwrap();
    until(&mut records, |it| matches!(it, Event::Stopped { .. })).await;
    assert_eq!(get(at, "/readyz").await.1, "ready\n");
    ops.shutdown("other", &Part::Job).await.unwrap();
    until(&mut records, |it| matches!(it, Event::Stopped { .. })).await;
    let unready = ("HTTP/1.1 503 Service Unavailable".into(), "all jobs have ended here\n".into());
    assert_eq!(get(at, "/readyz").await, unready);
    worker.shutdown().await;
}

#[tokio::test]
async fn who_leaves_is_not_ready_while_shards_come_to_their_end() {
    let (begun, mut beginning) = tokio::sync::mpsc::channel(1);
    let (end, ending) = tokio::sync::watch::channel(());
    let job = Job::simple("slow", move |_: Shard| {
        let (begun, mut ending) = (begun.clone(), ending.clone());
        async move {
            begun.send(()).await?;
            Ok(ending.changed().await?)
        }
    });
    let worker = Worker::new("embedded://").job(job).status_port(0).start().await.unwrap();
    let at = worker.status_address().unwrap();
    worker.trigger("slow").await.unwrap();
    tokio::time::timeout(WAIT, beginning.recv()).await.unwrap().unwrap();
    let leave = tokio::spawn(worker.shutdown());
    tokio::task::yield_now().await;
    assert_eq!(get(at, "/readyz").await.0, "HTTP/1.1 503 Service Unavailable");
    assert_eq!(get(at, "/healthz").await.1, "ok\n");
    end.send(()).unwrap();
    tokio::time::timeout(WAIT, leave).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_dump_port_of_a_worker_answers_from_its_session() {
    let worker = Worker::new("embedded://").job(job()).dump_port(0).start().await.unwrap();
    let at = worker.dump_address().unwrap();
    assert!(at.ip().is_loopback());
    assert!(dump_from(at, "hello").await.unwrap().contains("/hello/servers/ip1 | ENABLED\n"));
    assert!(dump_from(at, "nobody").await.unwrap().trim().is_empty());
    worker.shutdown().await;
}

#[tokio::test]
async fn what_happened_is_told_by_memory_port_and_file_alike() {
    let dir = tempfile::tempdir().unwrap();
    let file = EventFile::new(dir.path().join("events.jsonl"));
    let worker = Worker::new("embedded://").job(job()).status_port(0).event_file(file.clone());
    let worker = worker.start().await.unwrap();
    run(&worker).await;
    let at = worker.status_address().unwrap();
    let span = Span { from: jiff::Timestamp::UNIX_EPOCH, to: jiff::Timestamp::MAX };
    let memory = worker.events().past("hello", span).await.unwrap();
    let port = EventPort::new(at.to_string()).past("hello", span).await.unwrap();
    assert_eq!(memory, port);
    assert!(memory.iter().all(|it| it.instance == worker.instance_id().unwrap()), "{memory:?}");
    assert!(get(at, "/events").await.1.lines().all(|line| read_line(line).is_ok()));
    worker.shutdown().await;
    let kept = file.past("hello", span).await.unwrap();
    assert_eq!(kept[..memory.len()], memory);
    assert!(matches!(kept.last().unwrap().event, Event::Stopped { .. }), "the last event is written, too");
    let nothing = Span { to: jiff::Timestamp::UNIX_EPOCH, ..span };
    assert!(file.past("hello", nothing).await.unwrap().is_empty());
    assert!(file.past("nobody", span).await.unwrap().is_empty());
}

#[tokio::test]
async fn numbers_say_what_happened_and_their_labels_are_those_of_the_list() {
    let metrics = Metrics::new();
    let registry = registry::open("embedded://").unwrap();
    let worker = Worker::new(registry.clone()).job(job()).metrics(&metrics).status_port(0).dump_port(0);
    let worker = worker.start().await.unwrap();
    let at = worker.status_address().unwrap();
    run(&worker).await;
    // A name that somebody else gives is no label.
    dump_from(worker.dump_address().unwrap(), "stranger").await.unwrap();
    assert!(!metrics.text().contains("stranger"));
    assert!(
        metrics.text().contains("elasticjob_registry_requests_total{operation=\"read\",result=\"ok\"} 1\n")
    );
    let text = get(at, "/metrics").await.1;
    assert_eq!(text, metrics.text());
    for line in [
        r#"elasticjob_rounds_total{job="hello",source="trigger"} 1"#,
        r#"elasticjob_rounds_total{job="hello",source="schedule"} 0"#,
        r#"elasticjob_shards_total{job="hello",outcome="succeeded"} 1"#,
        r#"elasticjob_shards_total{job="hello",outcome="failed"} 1"#,
        r#"elasticjob_shard_duration_seconds_count{job="hello",outcome="succeeded"} 1"#,
        r#"elasticjob_shards_running{job="hello"} 0"#,
        r#"elasticjob_reshards_total{job="hello"} 1"#,
        r#"elasticjob_shards_moved_total{job="hello"} 2"#,
        r#"elasticjob_leader{job="hello"} 1"#,
        r#"elasticjob_registered{job="hello"} 1"#,
        "elasticjob_session_up 1",
        "elasticjob_sessions_total 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
    let commits = r#"elasticjob_registry_requests_total{job="hello",operation="commit",result="ok"} "#;
    let commits: f64 = text.lines().find_map(|it| it.strip_prefix(commits)).unwrap().parse().unwrap();
    assert!(commits >= 4.0, "set up, elected, handed out, begun: {commits}");
    worker.shutdown().await;
    assert!(metrics.text().contains("elasticjob_registered{job=\"hello\"} 0\n"));
}

#[tokio::test(start_paused = true)]
async fn lateness_and_skipped_fires_are_counted() {
    let metrics = Metrics::new();
    let job = Job::simple("tens", async |_: Shard| Ok(())).cron("0/10 * * * * ?").time_zone("GMT+0:00");
    let registry = registry::open("embedded://").unwrap();
    let worker = Worker::new(registry.clone()).job(job).metrics(&metrics);
    let start = "2030-01-01T00:00:05Z".parse().unwrap();
    let worker = elasticjob::testing::clock_from(worker, start).start().await.unwrap();
    let mut records = worker.records();
    until(&mut records, |it| matches!(it, Event::RoundFinished { .. })).await;
    let ops = Ops::connect(registry).await.unwrap();
    ops.disable("tens", &Part::Item(0)).await.unwrap();
    until(&mut records, |it| matches!(it, Event::Skipped { .. })).await;
    let text = metrics.text();
    for line in [
        r#"elasticjob_fire_lateness_seconds_count{job="tens"} 1"#,
        r#"elasticjob_fires_skipped_total{job="tens",reason="item-disabled"} 1"#,
        r#"elasticjob_next_fire_timestamp_seconds{job="tens"} 1893456030"#,
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
    worker.shutdown().await;
}

/// A reader that does not read loses records, and that is counted.
#[tokio::test]
async fn what_a_slow_reader_loses_is_counted() {
    let metrics = Metrics::new();
    let worker = Worker::new("embedded://").job(job()).metrics(&metrics).start().await.unwrap();
    let mut slow = worker.records();
    // Each round has four records, and a reader may fall behind by 4096.
    for _ in 0..1100 {
        run(&worker).await;
    }
    let Some(Recorded::Missed(lost)) = slow.next().await else { panic!("nothing is lost") };
    let counted = format!("elasticjob_records_dropped_total {lost}");
    assert!(metrics.text().lines().any(|it| it == counted), "{lost}\n{}", metrics.text());
    let kept = worker.events().all().len();
    assert!((3900..=4096).contains(&kept), "and memory is bounded: {kept}");
    worker.shutdown().await;
}

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn table() -> String {
    let mut table = "| name | kind | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for metric in Metric::ALL {
        let family = metric.family();
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram(_) => "histogram",
        };
        let mut labels: Vec<String> = family.per_job.then(|| "`job`".to_owned()).into_iter().collect();
        labels.extend(family.labels.iter().map(|(name, values)| format!("`{name}` ({})", values.join(", "))));
        let labels = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
        table.push_str(&format!("| `{}` | {kind} | {labels} | {} |\n", family.name, family.help));
    }
    table
}

/// With `UPDATE_EXPECT=1`, the page is made to say what is exported.
#[test]
fn the_page_of_metrics_lists_what_is_exported() {
    let page = std::fs::read_to_string(project("docs/metrics.md")).unwrap();
    let (before, rest) = page.split_once("<!-- metrics -->\n").unwrap();
    let (listed, after) = rest.split_once("<!-- end of metrics -->").unwrap();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let page = format!("{before}<!-- metrics -->\n{}<!-- end of metrics -->{after}", table());
        return std::fs::write(project("docs/metrics.md"), page).unwrap();
    }
    assert_eq!(listed, table());
    let text = Metrics::new().text();
    let exported: Vec<&str> =
        text.lines().filter_map(|it| it.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let named = names(listed);
    assert_eq!(exported.into_iter().collect::<BTreeSet<_>>(), named.iter().map(String::as_str).collect());
    // And whatever else the page names is one of them.
    let known: BTreeSet<String> = Metric::ALL.iter().map(|it| it.family().name.to_owned()).collect();
    assert!(names(after).is_subset(&known), "{:?}", names(after));
}

/// Every word that begins as the names of metrics do.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|it| it.starts_with("elasticjob_")).map(str::to_owned).collect()
}

#[test]
fn the_dashboard_shows_what_is_exported() {
    let text = std::fs::read_to_string(project("deploy/grafana-dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    let mut shown = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "two panels have one id");
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            let found = names(expression);
            assert!(!found.is_empty(), "{expression}");
            shown.extend(found);
        }
    }
    let histogram = |it: &Metric| matches!(it.family().kind, Kind::Histogram(_));
    let series = |it: Metric| match histogram(&it) {
        true => format!("{}_bucket", it.family().name),
        false => it.family().name.to_owned(),
    };
    let exported: BTreeSet<String> = Metric::ALL.into_iter().map(series).collect();
    assert_eq!(shown, exported, "every metric is shown, and nothing that is none");
    for label in names_of_labels(&text) {
        let known = Metric::ALL.iter().flat_map(|it| it.family().labels).any(|(name, _)| *name == label);
        assert!(known || ["job", "le"].contains(&label.as_str()), "{label}");
    }
}

/// The labels in `by (…)`.
fn names_of_labels(text: &str) -> BTreeSet<String> {
    let groups = text.split("by (").skip(1).filter_map(|it| it.split_once(')'));
    groups.flat_map(|(group, _)| group.split(',').map(|it| it.trim().to_owned())).collect()
}
