//! Offsets: they outlive runs, workers and owners, and only the run that has the shard can write.

use std::sync::Arc;
use std::time::Duration;

use elasticjob::registry::{Embedded, Kind, Op, Registry};
use elasticjob::{
    DataflowJob, Job, JobError, OffsetError, Outcome, RunningWorker, Shard, SimpleJob, Worker, testing,
};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::{LONG, now, offsets_example, registry, run_once, start};

/// Adds one to its offset, and says what it is then.
fn counting(seen: &mpsc::UnboundedSender<(u32, u64)>) -> Job {
    let seen = seen.clone();
    Job::simple("count", move |shard: Shard| {
        let seen = seen.clone();
        async move {
            let next = shard.offset().await?.map_or(Ok(0), |text| text.parse::<u64>())? + 1;
            shard.set_offset(next.to_string()).await?;
            Ok(seen.send((shard.item, next))?)
        }
    })
    .cron("0/10 * * * * ?")
    .time_zone("GMT+0:00")
    .shards(2)
}

#[tokio::test(start_paused = true)]
async fn an_offset_survives_restarts_and_moves() {
    let registry = registry();
    let (sender, mut seen) = mpsc::unbounded_channel();
    let mut sums = [0, 0];
    let mut follow = async |count: usize| {
        for _ in 0..count {
            let (item, offset) = timeout(LONG, seen.recv()).await.expect("a run").unwrap();
            sums[item as usize] += 1;
            assert_eq!(offset, sums[item as usize], "of shard {item}");
        }
    };
    let first = start(&registry, counting(&sender)).await;
    follow(4).await;
    let second = start(&registry, counting(&sender)).await;
    follow(4).await;
    first.shutdown().await;
    follow(4).await;
    drop(second); // A crash.
    let third = start(&registry, counting(&sender)).await;
    follow(4).await;
    third.shutdown().await;
}

#[tokio::test]
async fn an_offset_survives_the_process_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let (sender, mut seen) = mpsc::unbounded_channel();
    let mut expected = 1;
    for _ in 0..2 {
        let registry: Arc<dyn Registry> = Arc::new(Embedded::durable(dir.path()).unwrap());
        let job = counting(&sender).cron("* * * * * ?").shards(1);
        let worker = Worker::new(registry).job(job).start().await.unwrap();
        let (_, offset) = timeout(LONG, seen.recv()).await.expect("a run").unwrap();
        assert_eq!(offset, expected);
        worker.shutdown().await;
        while seen.try_recv().is_ok() {
            expected += 1; // It ran again before it left.
        }
        expected += 1;
    }
}

/// A job that hands its shard out, and does not hear that it should stop: what a zombie is.
#[derive(Clone)]
struct Deaf(mpsc::UnboundedSender<Shard>);

impl SimpleJob for Deaf {
    async fn run(&self, shard: Shard) -> Result<(), JobError> {
        self.0.send(shard)?;
        std::future::pending().await
    }
}

/// It is not dropped for an hour after it was told to stop.
async fn start_deaf(registry: &Arc<dyn Registry>, job: Job) -> RunningWorker {
    let worker = Worker::new(registry.clone()).job(job).cancel_grace(Duration::from_secs(3600));
    testing::clock_from(worker.shutdown_grace(Duration::from_secs(1)), now()).start().await.unwrap()
}

fn deaf(sender: &mpsc::UnboundedSender<Shard>) -> Job {
    Job::simple("deaf", Deaf(sender.clone())).failover(true).one_off()
}

async fn next(shards: &mut mpsc::UnboundedReceiver<Shard>) -> Shard {
    timeout(LONG, shards.recv()).await.expect("a run").unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_zombie_whose_session_has_ended_cannot_move_an_offset_back() {
    let embedded = Embedded::new();
    let registry: Arc<dyn Registry> = Arc::new(embedded.clone());
    let (sender, mut shards) = mpsc::unbounded_channel();
    let first = start_deaf(&registry, deaf(&sender)).await;
    first.trigger("deaf").await.unwrap();
    let zombie = next(&mut shards).await;
    zombie.set_offset("100").await.unwrap();
    let of_first = embedded.sessions();
    let second = start_deaf(&registry, deaf(&sender)).await;
    of_first.into_iter().for_each(|session| embedded.expire(session));

    let successor = next(&mut shards).await;
    assert!(successor.token > zombie.token);
    // Before its successor has written anything, and after.
    assert_eq!(zombie.set_offset("90").await, Err(OffsetError::Fenced));
    assert_eq!(successor.offset().await.unwrap().as_deref(), Some("100"));
    successor.set_offset("200").await.unwrap();
    assert_eq!(zombie.set_offset("110").await, Err(OffsetError::Fenced));
    assert_eq!(zombie.offset().await, Err(OffsetError::Fenced));
    assert_eq!(successor.offset().await.unwrap().as_deref(), Some("200"));
    drop((first, second));
}

#[tokio::test(start_paused = true)]
async fn a_zombie_whose_session_lives_cannot_either() {
    let registry = registry();
    let (sender, mut shards) = mpsc::unbounded_channel();
    // The first leads. Of three workers, one has nothing to do.
    let mut workers = Vec::new();
    for _ in 0..3 {
        workers.push(start_deaf(&registry, deaf(&sender).shards(2)).await);
    }
    workers[0].trigger("deaf").await.unwrap();
    let leader = workers[0].instance_id().unwrap();
    let zombie = loop {
        let shard = next(&mut shards).await;
        if !shard.task_id.contains(&*leader) {
            break shard;
        }
    };
    let id = workers.iter().filter_map(RunningWorker::instance_id).find(|it| zombie.task_id.contains(&**it));
    zombie.set_offset("100").await.unwrap();
    // An operator ends the job there. Its code does not hear, and its session goes on.
    let operator = registry.connect().await.unwrap();
    let gone = Op::Delete { path: format!("/instances/{}", id.unwrap()) };
    operator.commit("/deaf", vec![gone]).await.unwrap();
    let successor = loop {
        let shard = next(&mut shards).await;
        if shard.item == zombie.item {
            break shard;
        }
    };
    assert_eq!(zombie.set_offset("90").await, Err(OffsetError::Fenced));
    successor.set_offset("200").await.unwrap();
    assert_eq!(zombie.set_offset("110").await, Err(OffsetError::Fenced));
    assert_eq!(successor.offset().await.unwrap().as_deref(), Some("200"));
}

#[tokio::test(start_paused = true)]
async fn what_a_run_left_behind_cannot_either() {
    let registry = registry();
    let (sender, mut shards) = mpsc::unbounded_channel();
    let job = Job::simple("leaks", move |shard: Shard| {
        let sender = sender.clone();
        async move { Ok(sender.send(shard)?) }
    });
    let worker = start(&registry, job.one_off()).await;
    worker.trigger("leaks").await.unwrap();
    let left_behind = next(&mut shards).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(left_behind.set_offset("7").await, Err(OffsetError::Fenced));
    worker.shutdown().await;
}

#[tokio::test]
async fn what_is_no_offset_is_said() {
    let long = "x".repeat(70_000);
    let job = Job::simple("j", move |shard: Shard| {
        let long = long.clone();
        async move {
            assert_eq!(shard.offset().await?, None);
            shard.set_offset("").await?;
            assert_eq!(shard.offset().await?, None, "an empty one is none");
            shard.set_offset(&long).await?;
            Ok(())
        }
    });
    let expected =
        "the offset has 70000 bytes, and 65536 is the most: keep data elsewhere, and its place here"
            .to_owned();
    assert_eq!(run_once(&job).await, Outcome::Failed(expected));

    let (sender, mut seen) = mpsc::unbounded_channel();
    let job = Job::simple("j", move |shard: Shard| {
        let sender = sender.clone();
        async move { Ok(sender.send(shard.set_offset("1").await)?) }
    });
    let worker =
        Worker::new("embedded://").job(job.monitor_execution(false).one_off()).start().await.unwrap();
    worker.trigger("j").await.unwrap();
    assert_eq!(timeout(LONG, seen.recv()).await.expect("a run"), Some(Err(OffsetError::NotMonitored)));
    worker.shutdown().await;
}

/// An operator wrote one while a run had it: it is overwritten, not fought over.
#[tokio::test(start_paused = true)]
async fn an_offset_that_somebody_else_made_is_written_over() {
    let registry = registry();
    let (sender, mut shards) = mpsc::unbounded_channel();
    let worker = start_deaf(&registry, deaf(&sender)).await;
    worker.trigger("deaf").await.unwrap();
    let shard = next(&mut shards).await;
    let operator = registry.connect().await.unwrap();
    let create = Op::Create { path: "/offset/0".into(), data: "5".into(), kind: Kind::Persistent };
    operator.commit("/deaf", vec![create]).await.unwrap();
    assert_eq!(shard.offset().await.unwrap().as_deref(), Some("5"));
    shard.set_offset("6").await.unwrap();
    operator.commit("/deaf", vec![Op::Delete { path: "/offset/0".into() }]).await.unwrap();
    shard.set_offset("7").await.unwrap();
    assert_eq!(shard.offset().await.unwrap().as_deref(), Some("7"));
    drop(worker);
}

/// Reads a table from where it was, a batch at a time.
struct Rows;

impl DataflowJob for Rows {
    type Item = u64;

    async fn fetch(&self, shard: &Shard) -> Result<Vec<u64>, JobError> {
        let last: u64 = shard.offset().await?.map_or(Ok(0), |text| text.parse())?;
        Ok((last + 1..=25).take(10).collect())
    }

    async fn process(&self, shard: &Shard, rows: Vec<u64>) -> Result<(), JobError> {
        let last = rows.last().ok_or("nothing")?;
        Ok(shard.set_offset(last.to_string()).await?)
    }
}

#[tokio::test]
async fn a_dataflow_job_goes_on_where_it_was() {
    let registry = registry();
    let job = || Job::dataflow("rows", Rows).streaming(true).one_off();
    let worker = Worker::new(registry.clone()).job(job()).start().await.unwrap();
    let mut records = worker.records();
    worker.trigger("rows").await.unwrap();
    assert_eq!(super::finished(&mut records).await, (0, Outcome::Succeeded));
    let session = registry.connect().await.unwrap();
    assert_eq!(session.read("/rows/offset/0").await.unwrap()[0].data, "25");
    worker.shutdown().await;
}

#[tokio::test]
async fn the_example_copies_every_row_once() {
    let copied = timeout(LONG, offsets_example::run()).await.expect("it ends").unwrap();
    assert_eq!(copied, (1..=60).collect::<Vec<u64>>());
}
