//! What a program adds by name, and names that nobody added.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use elasticjob::{
    Event, Extensions, Job, JobError, JobType, Listener, OnceListener, Ops, Outcome, Report, Round, Shard,
    Strategy, Worker, registry, testing,
};

use super::{extend_example, failing, items_finished, next, post, until};

struct Sql;

impl JobType for Sql {
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
        match props.get("sql.statement") {
            Some(_) => Ok(()),
            None => Err("property sql.statement is missing: write it".into()),
        }
    }

    async fn run(&self, shard: Shard, props: Arc<BTreeMap<String, String>>) -> Result<(), JobError> {
        Err(format!("{} on {}", props["sql.statement"], shard.item).into())
    }
}

/// The last instance gets everything.
struct AllOnLast;

impl Strategy for AllOnLast {
    fn assign(&self, instances: &[&str], _: &str, total: u32) -> Vec<Vec<u32>> {
        let mut all = vec![Vec::new(); instances.len()];
        if let Some(last) = all.last_mut() {
            last.extend(0..total);
        }
        all
    }
}

fn jobs_file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.yaml");
    std::fs::write(&path, format!("registry: embedded://\njobs:\n{text}")).unwrap();
    (dir, path)
}

async fn refused(worker: Worker) -> String {
    worker.start().await.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_file_can_use_all_that_a_program_adds() {
    let (_dir, path) = jobs_file(
        "  vacuum:
    elasticJobType: sql
    jobShardingStrategyType: all-on-last
    jobErrorHandlerType: [pager, LOG]
    shardingTotalCount: 2
    props: { sql.statement: VACUUM, elasticjob.error.interval: 1s }
",
    );
    let (pager, mut reports) = post();
    let ours = Extensions::new();
    let ours = ours.job_type("SQL", Sql).strategy("all-on-last", AllOnLast).error_handler("pager", pager);
    let worker = Worker::from_file(&path).unwrap().extensions(ours).start().await.unwrap();
    let mut records = worker.records();
    worker.trigger("vacuum").await.unwrap();
    let outcomes = items_finished(&mut records, 2).await;
    assert_eq!(outcomes[&1], Outcome::Failed("VACUUM on 1".into()));
    assert_eq!(next(&mut reports).await.count(), 2);
    worker.shutdown().await;
}

#[tokio::test]
async fn the_example_runs() {
    let (pager, mut reports) = post();
    let run = extend_example::run(Extensions::new().error_handler("pager", pager));
    assert_eq!(run.await.unwrap(), [2]);
    let report = next(&mut reports).await;
    assert_eq!(report.props["pager.team"], "data");
    assert_eq!(&*report.first().message, "partition 2 is read-only");
    assert!(reports.recv().await.is_none());
}

#[cfg(feature = "macros")]
#[tokio::test]
async fn the_example_of_the_attribute_runs() {
    assert_eq!(super::attribute_example::run().await.unwrap(), 3);
}

/// Counts calls.
struct Counted(Arc<AtomicU32>);

impl Listener for Counted {
    async fn before(&self, _: &Round) -> Result<(), JobError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err("no room".into())
    }
}

impl OnceListener for Counted {
    async fn after_last(&self, _: &Round) -> Result<(), JobError> {
        self.0.fetch_add(100, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test]
async fn listeners_are_found_by_name_and_what_they_fail_at_is_told() {
    let (_dir, path) = jobs_file(
        "  report:
    script: 'true'
    jobListenerTypes: [room, summary]
    jobErrorHandlerType: pager
    props: { elasticjob.error.interval: 1s }
",
    );
    let calls = Arc::new(AtomicU32::new(0));
    let (pager, mut reports) = post();
    let worker = Worker::from_file(&path).unwrap().error_handler("pager", pager);
    let worker =
        worker.listener("room", Counted(calls.clone())).once_listener("Summary", Counted(calls.clone()));
    let worker = worker.start().await.unwrap();
    worker.trigger("report").await.unwrap();
    let report = next(&mut reports).await;
    assert_eq!((report.first().item, report.count()), (None, 1));
    assert!(report.first().message.ends_with("no room"), "{}", report.text());
    worker.shutdown().await;
    assert_eq!(calls.load(Ordering::SeqCst), 101);

    let unknown = Worker::from_file(&path).unwrap().error_handler("pager", post().0);
    assert_eq!(
        refused(unknown.listener("romm", Counted(calls.clone()))).await,
        "job `report`: listener `room` is unknown here; known: ROMM; register your own with the worker"
    );
    let job = Job::script("in-code", "true").listeners(["room"]);
    let named = Worker::new("embedded://").listener("room", Counted(calls.clone())).job(job.clone());
    named.start().await.unwrap().shutdown().await;
    let said = refused(Worker::new("embedded://").job(job)).await;
    assert!(said.starts_with("job `in-code`: listener `room` is unknown here"), "{said}");
    let (_dir, path) =
        jobs_file("  a: { script: 'true', jobListenerTypes: summary, monitorExecution: false }\n");
    let said = refused(Worker::from_file(&path).unwrap().once_listener("summary", Counted(calls))).await;
    assert!(said.contains("need monitorExecution"), "{said}");
}

#[tokio::test]
async fn a_name_that_nobody_added_is_said_at_the_start() {
    let worker = || Worker::new("embedded://");
    assert_eq!(
        refused(worker().job(failing("a").error_handlers(["LOG", "pagr"])).error_handler("pager", post().0))
            .await,
        "job `a`: error handler `pagr` is unknown here; known: DINGTALK, EMAIL, IGNORE, LOG, PAGER, SLACK, THROW, WEBHOOK, WECHAT; register your own with the worker"
    );
    assert_eq!(
        refused(worker().job(Job::typed("a", "SQLL")).job_type("SQL", Sql)).await,
        "job `a`: job type `SQLL` is unknown here; known: HTTP, SCRIPT, SQL; register your own with the worker"
    );
    assert_eq!(
        refused(worker().job(failing("a").strategy("by-rack")).strategy("by-host", AllOnLast)).await,
        "job `a`: jobShardingStrategyType `by-rack` is unknown: write AVG_ALLOCATION, BY-HOST, ODEVITY, ROUND_ROBIN, SINGLE_SHARDING_BALANCE"
    );
    let (_dir, path) = jobs_file("  a: { type: spark }\n");
    assert_eq!(
        refused(Worker::from_file(&path).unwrap()).await,
        "job `a`: job type `spark` is unknown here; known: HTTP, SCRIPT; register your own with the worker"
    );
    assert_eq!(
        refused(worker().job(Job::typed("a", "SQL")).job_type("SQL", Sql)).await,
        "job `a`: property sql.statement is missing: write it"
    );
}

#[cfg(not(any(feature = "email", feature = "http")))]
#[tokio::test]
async fn a_handler_that_the_program_is_built_without_is_said_at_the_start() {
    for (name, feature) in
        [("EMAIL", "email"), ("DINGTALK", "http"), ("WECHAT", "http"), ("SLACK", "http"), ("WEBHOOK", "http")]
    {
        let worker = Worker::new("embedded://").job(failing("a").error_handlers([name]));
        assert_eq!(
            refused(worker).await,
            format!(
                "job `a`: error handler {name}: {name} needs the feature `{feature}` of the crate elasticjob, which this program is built without"
            )
        );
    }
}

#[tokio::test]
async fn a_name_stands_for_one_thing() {
    let worker = || Worker::new("embedded://");
    let said = |what: &str, name: &str| {
        format!(
            "{what} `{name}` cannot be registered: the name is blank, has a comma, or is taken; choose another"
        )
    };
    let handler = async |_: Report| Ok(());
    assert_eq!(refused(worker().error_handler("log", handler)).await, said("error handler", "log"));
    assert_eq!(refused(worker().error_handler("a,b", handler)).await, said("error handler", "a,b"));
    let twice = worker().error_handler("pager", handler).error_handler("Pager", handler);
    assert_eq!(refused(twice).await, said("error handler", "Pager"));
    assert_eq!(refused(worker().job_type("http", Sql)).await, said("job type", "http"));
    assert_eq!(refused(worker().job_type(" ", Sql)).await, said("job type", " "));
    assert_eq!(refused(worker().strategy("odevity", AllOnLast)).await, said("strategy", "odevity"));
    let twice =
        Extensions::new().listener("a", Counted(Arc::default())).once_listener("A", Counted(Arc::default()));
    assert_eq!(refused(worker().extensions(twice)).await, said("listener", "A"));
}

#[tokio::test]
async fn an_instance_that_does_not_know_the_strategy_does_not_hand_out_shards_by_another() {
    let registry = registry::open("embedded://").unwrap();
    let job = || failing("racks").shards(4).strategy("by-rack");
    let knows =
        Worker::new(registry.clone()).job(job()).strategy("by-rack", AllOnLast).start().await.unwrap();
    let ignorant = failing("racks").shards(4);
    let said = refused(Worker::new(registry).job(ignorant)).await;
    assert_eq!(
        said,
        "job `racks` cannot start: the stored configuration cannot be used: jobShardingStrategyType `by-rack` is unknown: \
         write AVG_ALLOCATION, ODEVITY, ROUND_ROBIN, SINGLE_SHARDING_BALANCE"
    );
    let mut records = knows.records();
    knows.trigger("racks").await.unwrap();
    assert_eq!(items_finished(&mut records, 4).await.len(), 4);
    knows.shutdown().await;
}

#[tokio::test]
async fn a_change_to_a_strategy_that_is_unknown_here_changes_nothing_here() {
    let registry = registry::open("embedded://").unwrap();
    let worker = Worker::new(registry.clone()).job(failing("racks").shards(4)).start().await.unwrap();
    let mut records = worker.records();
    let ops = Ops::connect(registry).await.unwrap();
    let read = ops.config("racks").await.unwrap();
    let text = format!("{}jobShardingStrategyType: by-rack\n", read.text);
    ops.update_config("racks", &read, &text).await.unwrap();
    let refused = until(&mut records, |event| match event {
        Event::ConfigRefused { error } => Some(error.clone()),
        _ => None,
    });
    assert!(refused.await.starts_with("jobShardingStrategyType `by-rack` is unknown: write "));
    worker.trigger("racks").await.unwrap();
    assert_eq!(items_finished(&mut records, 4).await.len(), 4);
    worker.shutdown().await;
}

#[test]
fn strategies_can_be_checked() {
    struct Fickle(AtomicU32);
    impl Strategy for Fickle {
        fn assign(&self, instances: &[&str], _: &str, total: u32) -> Vec<Vec<u32>> {
            let mut all = vec![Vec::new(); instances.len()];
            let turn = self.0.fetch_add(1, Ordering::SeqCst) as usize % instances.len();
            all[turn].extend(0..total);
            all
        }
    }
    struct Generous;
    impl Strategy for Generous {
        fn assign(&self, instances: &[&str], _: &str, total: u32) -> Vec<Vec<u32>> {
            vec![(0..total).collect(); instances.len()]
        }
    }
    let said = |strategy: &dyn Strategy| testing::check_strategy(strategy).unwrap_err();
    assert_eq!(testing::check_strategy(&AllOnLast), Ok(()));
    assert_eq!(said(&Fickle(AtomicU32::new(0))), "2 instances, 1 item: two answers to one question");
    assert_eq!(said(&Generous), "2 instances, 1 item: item 0 goes to 2 instances");
}

#[tokio::test(start_paused = true)]
async fn a_file_decides_who_is_told_of_the_code_that_is_bound_to_it() {
    let (_dir, path) =
        jobs_file("  settle: { jobErrorHandlerType: file, props: { elasticjob.error.interval: 1s } }\n");
    let ((from_file, mut told), (from_code, mut untold)) = (post(), post());
    let worker =
        Worker::from_file(&path).unwrap().error_handler("file", from_file).error_handler("code", from_code);
    let worker =
        worker.bind(failing("settle").error_handlers(["code", "LOG"])).unwrap().start().await.unwrap();
    worker.trigger("settle").await.unwrap();
    assert_eq!(next(&mut told).await.count(), 1);
    worker.shutdown().await;
    assert!(untold.recv().await.is_none());
}

#[tokio::test]
async fn a_secret_in_clear_is_refused_and_not_shown() {
    let job = failing("a").error_handlers(["EMAIL"]).prop("email.password", "hunter2");
    let said = refused(Worker::new("embedded://").job(job)).await;
    assert!(said.starts_with("job `a`: props email.password is a secret in clear, "), "{said}");
    let (_dir, path) =
        jobs_file("  a:\n    script: date\n    props:\n      wechat.webhook: https://x/?key=hunter2\n");
    let said = Worker::from_file(&path).unwrap_err().to_string();
    assert!(said.contains("jobs.yaml:6:7: jobs.a.props wechat.webhook is a secret in clear, "), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn a_secret_of_a_file_stays_a_name_in_the_registry() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.yaml");
    std::fs::write(
        &path,
        "registry: embedded://
jobs:
  a:
    script: date
    jobErrorHandlerType: LOG
    props:
      email.password: ${HOME}
      dingtalk.secret: ${file:/run/secrets/ding}
      email.host: ${EMAIL_HOST:mail.example.com}
",
    )
    .unwrap();
    let file = elasticjob::file::JobsFile::read(&path).unwrap();
    let props = &file.jobs[0].spec.props;
    assert_eq!(props["email.password"], "${HOME}");
    assert_eq!(props["dingtalk.secret"], "${file:/run/secrets/ding}");
    assert_eq!(props["email.host"], "mail.example.com");
}
