//! What operators do to workers that are alive, and to each other.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use elasticjob::ops::{JobStatus, News, Ops, OpsError, Part, Refusal, ServerDeed};
use elasticjob::registry::{self, CommitError, Entry, Op, Registry, RegistryError, Session, Watch};
use elasticjob::{Event, Job, Record, Recorded, Records, RunningWorker, Shard, Skip, Source, Worker};

const WAIT: Duration = Duration::from_secs(20);

struct Fleet {
    registry: Arc<dyn Registry>,
    ops: Ops,
    worker: RunningWorker,
    records: Records,
}

/// One worker with one job, which fires at the turn of the year only.
async fn fleet() -> Fleet {
    let registry = registry::open("embedded://").unwrap();
    let worker = Worker::new(registry.clone()).job(job()).start().await.unwrap();
    let ops = Ops::connect(registry.clone()).await.unwrap();
    let records = worker.records();
    let fleet = Fleet { registry, ops, worker, records };
    fleet.until(|it| it.summary.status == JobStatus::Ok).await;
    fleet
}

fn job() -> Job {
    Job::simple("yearly", async |_: Shard| Ok(())).cron("0 0 0 1 1 ?").shards(2)
}

impl Fleet {
    /// Waits until the registry says so.
    async fn until(&self, fits: impl Fn(&elasticjob::ops::JobDetail) -> bool) {
        let mut watch = self.ops.watch("yearly").await.unwrap();
        let wait = async {
            loop {
                let News::Now(detail) = watch.next().await else { panic!("the watch ended") };
                if fits(&detail) {
                    return;
                }
            }
        };
        tokio::time::timeout(WAIT, wait).await.expect("it comes to that");
    }

    async fn next(&mut self, mut fits: impl FnMut(&Record) -> bool) -> Record {
        let wait = async {
            loop {
                match self.records.next().await {
                    Some(Recorded::Record(record)) if fits(&record) => return record,
                    Some(_) => {}
                    None => panic!("the worker ended"),
                }
            }
        };
        tokio::time::timeout(WAIT, wait).await.expect("it happens")
    }
}

#[tokio::test]
async fn the_parameter_of_a_trigger_reaches_code_and_scripts_and_no_later_run() {
    let (said, mut heard) = tokio::sync::mpsc::channel(8);
    let code = Job::simple("code", move |shard: Shard| {
        let said = said.clone();
        async move { Ok(said.send(shard.trigger_parameter).await?) }
    });
    let dir = tempfile::tempdir().unwrap();
    let write = "echo \"$ELASTICJOB_TRIGGER_PARAMETER|$0\" >it";
    let script = Job::script_args("script", ["sh", "-c", write]).script_directory(dir.path());
    let registry = registry::open("embedded://").unwrap();
    let worker = Worker::new(registry.clone()).job(code).job(script).start().await.unwrap();
    let mut records = worker.records();
    let ops = Ops::connect(registry).await.unwrap();
    for parameter in ["it's day=1", ""] {
        ops.trigger_with("code", None, parameter).await.unwrap();
        let heard = tokio::time::timeout(WAIT, heard.recv()).await.unwrap().unwrap();
        assert_eq!(heard.as_deref().unwrap_or_default(), parameter);
    }
    worker.trigger_with("script", "it's day=1").await.unwrap();
    let ended = async {
        loop {
            if let Some(Recorded::Record(Record { job, event: Event::ItemFinished { .. }, .. })) =
                records.next().await
                && &*job == "script"
            {
                return;
            }
        }
    };
    tokio::time::timeout(WAIT, ended).await.unwrap();
    let text = std::fs::read_to_string(dir.path().join("it")).unwrap();
    let (environment, context) = text.trim_end().split_once('|').unwrap();
    let context: serde_json::Value = serde_json::from_str(context).unwrap();
    assert_eq!((environment, &context["triggerParameter"]), ("it's day=1", &"it's day=1".into()));
    worker.shutdown().await;
}

#[tokio::test]
async fn a_trigger_runs_the_shards() {
    let mut fleet = fleet().await;
    let id = fleet.worker.instance_id().unwrap();
    let done = fleet.ops.trigger("yearly", Some(&id)).await.unwrap();
    assert_eq!(done.consequences, [format!("{id} runs shards 0, 1 now")]);
    let begun = fleet.next(|it| matches!(it.event, Event::RoundStarted { .. })).await;
    assert!(
        matches!(begun.event, Event::RoundStarted { source: Source::Trigger, items, .. } if items.len() == 2)
    );
    fleet.worker.shutdown().await;
}

#[tokio::test]
async fn a_disabled_shard_does_not_run() {
    let mut fleet = fleet().await;
    fleet.ops.disable("yearly", &Part::Item(1)).await.unwrap();
    fleet.ops.trigger("yearly", None).await.unwrap();
    let begun = fleet.next(|it| matches!(it.event, Event::RoundStarted { .. })).await;
    assert!(matches!(begun.event, Event::RoundStarted { items, .. } if items == [0].into()));
    fleet.worker.shutdown().await;
}

#[tokio::test]
async fn a_disabled_job_is_triggered_in_vain_and_an_enabled_one_is_not() {
    let mut fleet = fleet().await;
    let ip = fleet.ops.servers().await.unwrap()[0].ip.clone();
    let outcomes = fleet.ops.on_server(&ip, ServerDeed::Disable).await.unwrap();
    assert!(outcomes["yearly"].is_ok());
    let refused = fleet.worker.trigger("yearly").await.unwrap_err();
    assert!(refused.to_string().contains("all servers of it are disabled"), "{refused}");
    fleet.ops.enable("yearly", &Part::Job).await.unwrap();
    fleet.until(|it| it.summary.status == JobStatus::Ok && !it.resharding).await;
    fleet.worker.trigger("yearly").await.unwrap();
    fleet.next(|it| matches!(it.event, Event::RoundFinished { .. })).await;
    fleet.worker.shutdown().await;
}

#[tokio::test]
async fn a_pause_survives_the_restart_of_all_workers_also_on_new_servers() {
    let Fleet { registry, ops, worker, .. } = fleet().await;
    ops.pause("yearly", "alice").await.unwrap();
    worker.shutdown().await;
    let ip = ops.servers().await.unwrap()[0].ip.clone();
    ops.remove_server("yearly", &ip).await.unwrap(); // So that the next worker is on a server that is new.
    let worker = Worker::new(registry.clone()).job(job()).start().await.unwrap();
    let detail = ops.job("yearly").await.unwrap();
    assert_eq!((detail.summary.status, detail.servers[&ip].as_str()), (JobStatus::Disabled, "DISABLED"));
    ops.resume("yearly").await.unwrap();
    let fleet = Fleet { records: worker.records(), registry, ops, worker };
    fleet.until(|it| it.summary.status == JobStatus::Ok && it.summary.paused.is_none()).await;
    fleet.worker.shutdown().await;
}

#[tokio::test]
async fn a_fire_during_a_pause_is_skipped() {
    let registry = registry::open("embedded://").unwrap();
    let job = Job::simple("yearly", async |_: Shard| Ok(())).cron("* * * * * ?").shards(1);
    let worker = Worker::new(registry.clone()).job(job).start().await.unwrap();
    let ops = Ops::connect(registry.clone()).await.unwrap();
    let mut fleet = Fleet { records: worker.records(), registry, ops, worker };
    fleet.next(|it| matches!(it.event, Event::RoundFinished { .. })).await;
    fleet.ops.pause("yearly", "alice").await.unwrap();
    let skipped =
        |it: &Record| matches!(it.event, Event::Skipped { why: Skip::ServerDisabled | Skip::NoItems, .. });
    fleet.next(skipped).await;
    fleet.worker.shutdown().await;
}

#[tokio::test]
async fn an_instance_that_is_shut_down_ends_the_job_and_so_does_a_removed_job() {
    for remove in [false, true] {
        let Fleet { ops, mut worker, .. } = fleet().await;
        match remove {
            true => ops.remove_job("yearly").await.unwrap(),
            false => ops.shutdown("yearly", &Part::Job).await.unwrap(),
        };
        tokio::time::timeout(WAIT, worker.ended()).await.expect("the job ends");
        let left = ops.jobs().await.unwrap();
        assert_eq!(
            left.iter().map(|it| it.status).collect::<Vec<_>>(),
            if remove { vec![] } else { vec![JobStatus::Crashed] }
        );
        worker.shutdown().await;
    }
}

#[tokio::test]
async fn of_two_edits_the_second_is_refused_and_shown_the_first() {
    let fleet = fleet().await;
    let other = Ops::connect(fleet.registry.clone()).await.unwrap();
    let (mine, theirs) = (fleet.ops.config("yearly").await.unwrap(), other.config("yearly").await.unwrap());
    let text = theirs.text.replace("shardingTotalCount: 2", "shardingTotalCount: 4");
    other.update_config("yearly", &theirs, &text).await.unwrap();
    let text = mine.text.replace("failover: false", "failover: true");
    let error = fleet.ops.update_config("yearly", &mine, &text).await.unwrap_err();
    let OpsError::Refused { refusal: Refusal::Edited { diff }, .. } = &error else { panic!("{error}") };
    assert_eq!(diff, &["- shardingTotalCount: 2", "+ shardingTotalCount: 4"]);
    assert_eq!(
        error.to_string(),
        "job `yearly`: its configuration was changed by somebody else meanwhile; what changed since you read it:\n- shardingTotalCount: 2\n+ shardingTotalCount: 4"
    );
    fleet.until(|it| it.shards.len() == 4 && it.shards.iter().all(|it| it.owner_alive)).await;
    fleet.worker.shutdown().await;
}

#[tokio::test]
async fn a_large_job_is_removed_in_several_steps() {
    let registry = registry::open("embedded://").unwrap();
    let worker = Worker::new(registry.clone()).job(job().shards(3000)).start().await.unwrap();
    let ops = Ops::connect(registry.clone()).await.unwrap();
    let fleet = Fleet { records: worker.records(), registry, ops, worker };
    fleet.until(|it| it.summary.status == JobStatus::Ok && !it.resharding).await;
    let done = fleet.ops.remove_job("yearly").await.unwrap();
    assert!(done.changes[0].starts_with("job yearly is removed, with "), "{done:?}");
    let session = fleet.registry.connect().await.unwrap();
    assert!(session.read("/yearly").await.unwrap().is_empty());
    fleet.worker.shutdown().await;
}

/// A registry in which somebody else is always quicker, so many times.
#[derive(Debug)]
struct Crowded {
    registry: Arc<dyn Registry>,
    times: usize,
}

struct CrowdedSession {
    session: Arc<dyn Session>,
    left: AtomicUsize,
}

#[async_trait]
impl Registry for Crowded {
    async fn connect(&self) -> Result<Arc<dyn Session>, RegistryError> {
        let session = self.registry.connect().await?;
        Ok(Arc::new(CrowdedSession { session, left: AtomicUsize::new(self.times) }))
    }
}

#[async_trait]
impl Session for CrowdedSession {
    fn watch(&self, root: &str) -> Watch {
        self.session.watch(root)
    }

    async fn commit(&self, root: &str, ops: Vec<Op>) -> Result<(), CommitError> {
        let quicker = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        match quicker {
            Ok(_) => Err(CommitError::Conflict { path: "/config".into() }),
            Err(_) => self.session.commit(root, ops).await,
        }
    }

    async fn read(&self, root: &str) -> Result<Vec<Entry>, RegistryError> {
        self.session.read(root).await
    }

    async fn children(&self, root: &str) -> Result<Vec<String>, RegistryError> {
        self.session.children(root).await
    }

    fn trusted_for(&self) -> Duration {
        self.session.trusted_for()
    }

    async fn close(&self) {
        self.session.close().await;
    }
}

#[tokio::test]
async fn a_conflict_is_planned_again_but_not_for_ever() {
    let fleet = fleet().await;
    let ops = |times| {
        let crowded: Arc<dyn Registry> = Arc::new(Crowded { registry: fleet.registry.clone(), times });
        Ops::connect(crowded)
    };
    let done = ops(3).await.unwrap().disable("yearly", &Part::Item(0)).await.unwrap();
    assert_eq!(done.changes, ["shard 0 is disabled"]);
    let error = ops(1000).await.unwrap().enable("yearly", &Part::Item(0)).await.unwrap_err();
    assert!(matches!(error, OpsError::Busy { .. }), "{error}");
    fleet.worker.shutdown().await;
}

#[tokio::test]
async fn a_store_that_may_not_be_opened_is_said_to_be_so() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o000)).unwrap();
    let url = format!("embedded://{}/store", dir.path().display());
    let outcome = Ops::connect(url).await;
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    // The superuser may do anything.
    if let Err(error) = outcome {
        assert!(matches!(error, OpsError::NotPermitted { .. }), "{error}");
    }
}

#[tokio::test]
async fn the_dump_port_answers_what_it_understands_and_closes_on_the_rest() {
    use elasticjob::ops::{DumpPort, dump_from};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let fleet = fleet().await;
    let port = DumpPort::open(0, fleet.ops.clone()).await.unwrap();
    assert!(port.address().ip().is_loopback());
    let text = dump_from(port.address(), "yearly").await.unwrap();
    assert!(text.contains("/yearly/servers/ip1 | ENABLED\n") && text.contains("serverIp: ip1\n\n"), "{text}");
    assert_eq!(dump_from(port.address(), "monthly").await.unwrap(), "\n");
    for (request, expected) in [("dump@monthly\r\n", "\n"), ("hello\n", ""), ("", ""), ("\u{0}\n", "")] {
        let mut stream = tokio::net::TcpStream::connect(port.address()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, expected, "{request:?}");
    }
    let address = port.address();
    drop(port);
    tokio::task::yield_now().await;
    let gone = async { while dump_from(address, "yearly").await.is_ok() {} };
    tokio::time::timeout(WAIT, gone).await.expect("it is closed");
    fleet.worker.shutdown().await;
}
