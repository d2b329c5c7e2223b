//! The examples do what they say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use elasticjob::ops::Ops;
use elasticjob::{Event, Outcome, Recorded, Worker};

use super::{dataflow_example, find};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// The outcomes of the first so many shards that end, by the name of the job.
async fn run(path: &Path, count: usize) -> BTreeMap<(String, u32), Outcome> {
    let worker = Worker::from_file(path).unwrap().start().await.unwrap();
    let mut records = worker.records();
    let mut outcomes = BTreeMap::new();
    let collect = async {
        while outcomes.len() < count {
            let Recorded::Record(record) = records.next().await.expect("the worker lives") else { continue };
            if let Event::ItemFinished { item, outcome, .. } = record.event {
                outcomes.insert((record.job.to_string(), item), outcome);
            }
        }
    };
    tokio::time::timeout(super::LONG, collect).await.expect("they end");
    worker.shutdown().await;
    outcomes
}

#[tokio::test]
async fn the_dataflow_example_leaves_nothing_open() {
    let left = tokio::time::timeout(super::LONG, dataflow_example::run()).await.expect("it ends");
    assert_eq!(left.unwrap(), 0);
}

#[tokio::test]
async fn the_script_example_runs() {
    let outcomes = run(&example("script.yaml"), 3).await;
    assert_eq!(outcomes[&("report".to_owned(), 0)], Outcome::Succeeded);
    assert_eq!(outcomes[&("report".to_owned(), 1)], Outcome::Succeeded);
    let Outcome::Failed(error) = &outcomes[&("fails".to_owned(), 0)] else { panic!("{outcomes:?}") };
    assert!(error.starts_with("`sh` ended with exit status: 3:\n"), "{error}");
    assert!(error.contains("\n  the database is away"), "{error}");
}

#[tokio::test]
async fn the_example_of_a_trigger_with_a_parameter_runs_for_what_was_asked() {
    let registry = "embedded://the-parameters-example";
    let text = std::fs::read_to_string(example("parameters.yaml")).unwrap();
    let ours = text.replace("zookeeper://127.0.0.1:2181/examples", registry);
    assert_ne!(text, ours);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("parameters.yaml");
    std::fs::write(&path, ours).unwrap();
    let worker = Worker::from_file(&path).unwrap().start().await.unwrap();
    let (mut records, ops) = (worker.records(), Ops::connect(registry).await.unwrap());
    let mut next = async || {
        let ended = |event: &Event| match event {
            Event::ItemFinished { item, outcome, output, .. } => {
                Some((*item, outcome.clone(), output.clone().unwrap_or_default()))
            }
            _ => None,
        };
        let mut both = [find(&mut records, ended).await, find(&mut records, ended).await];
        both.sort_by_key(|it| it.0);
        both
    };
    ops.trigger_with("settle", None, "2026-11-14").await.unwrap();
    let said = |item, text: &str| (item, Outcome::Succeeded, text.to_owned());
    assert_eq!(next().await, [said(0, "north settles 2026-11-14"), said(1, "south settles 2026-11-14")]);
    ops.trigger("settle", None).await.unwrap();
    let reason = "`sh` ended with exit status: 2: which day? --param 2026-11-14";
    let failed = |item| (item, Outcome::Failed(reason.to_owned()), String::new());
    assert_eq!(next().await, [failed(0), failed(1)]);
    worker.shutdown().await;
}

#[tokio::test]
async fn the_policies_example_runs() {
    let outcomes = run(&example("policies.yaml"), 4).await;
    for job in ["flaky", "drain", "bills"] {
        assert_eq!(outcomes[&(job.to_owned(), 0)], Outcome::Succeeded, "{job}");
    }
    let limit = Outcome::Failed("took longer than 1s, and was stopped".to_owned());
    assert_eq!(outcomes[&("endless".to_owned(), 0)], limit);
}

#[cfg(feature = "http")]
#[tokio::test]
async fn the_http_example_runs() {
    let mut server = super::server::Server::start().await;
    let text = std::fs::read_to_string(example("http.yaml")).unwrap();
    let ours = text.replace("${PING_URL:http://127.0.0.1:8080/}", &server.url("/ok"));
    assert_ne!(text, ours);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("http.yaml");
    std::fs::write(&path, ours).unwrap();
    let outcomes = run(&path, 3).await;
    assert!(outcomes.values().all(|it| *it == Outcome::Succeeded), "{outcomes:?}");
    let mut posted = 0;
    for _ in 0..3 {
        let request = server.request().await;
        if request.method == "POST" {
            posted += 1;
            assert_eq!(request.body, r#"{"full": true}"#);
            assert_eq!(request.headers["content-type"], "application/json");
        }
    }
    assert_eq!(posted, 2);
}
