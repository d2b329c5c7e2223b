//! Listeners, with real workers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elasticjob::{Event, Hook, Job, JobError, Listener, OnceListener, Round, RunningWorker, Shard, Worker};
use tokio::sync::mpsc;

use super::{LONG, find, hooks_example, registry, start};

/// What was called, in order: shards, listeners and workers speak into one channel.
#[derive(Clone)]
struct Diary(mpsc::UnboundedSender<String>);

fn diary() -> (Diary, mpsc::UnboundedReceiver<String>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Diary(sender), receiver)
}

impl Diary {
    fn note(&self, what: String) -> Result<(), JobError> {
        Ok(self.0.send(what)?)
    }
}

/// The next so many notes.
async fn notes(receiver: &mut mpsc::UnboundedReceiver<String>, count: usize) -> Vec<String> {
    let mut notes = Vec::new();
    while notes.len() < count {
        let note = tokio::time::timeout(Duration::from_secs(3600), receiver.recv()).await;
        notes.push(note.unwrap_or_else(|_| panic!("no more after {notes:?}")).expect("somebody lives"));
    }
    notes
}

struct Named {
    name: &'static str,
    order: i32,
    diary: Diary,
}

impl Listener for Named {
    async fn before(&self, round: &Round) -> Result<(), JobError> {
        assert!(round.outcomes.is_empty());
        self.diary.note(format!("{} before {:?}", self.name, round.items))
    }

    async fn after(&self, round: &Round) -> Result<(), JobError> {
        self.diary.note(format!("{} after {:?}", self.name, round.outcomes.values().collect::<Vec<_>>()))
    }

    fn order(&self) -> i32 {
        self.order
    }
}

impl OnceListener for Named {
    async fn before_first(&self, _: &Round) -> Result<(), JobError> {
        self.diary.note(format!("{} before all", self.name))
    }

    async fn after_last(&self, _: &Round) -> Result<(), JobError> {
        self.diary.note(format!("{} after all", self.name))
    }
}

fn job(diary: &Diary, shards: u32) -> Job {
    let diary = diary.clone();
    let work = move |shard: Shard| {
        let diary = diary.clone();
        async move { diary.note(format!("shard {}", shard.item)) }
    };
    Job::simple("j", work).cron("0/10 * * * * ?").time_zone("GMT+0:00").shards(shards)
}

#[tokio::test(start_paused = true)]
async fn listeners_are_called_around_a_round_in_their_order() {
    let (diary, mut receiver) = diary();
    let named = |name, order| Named { name, order, diary: diary.clone() };
    let job = job(&diary, 1)
        .listener(named("last", i32::MAX))
        .listener(named("second", 2))
        .listener(named("first", -1))
        .once_listener(named("once", 0));
    let worker = start(&registry(), job).await;
    let round = [
        "once before all",
        "first before [0]",
        "second before [0]",
        "last before [0]",
        "shard 0",
        "first after [Succeeded]",
        "second after [Succeeded]",
        "last after [Succeeded]",
        "once after all",
    ];
    assert_eq!(notes(&mut receiver, 18).await, [round, round].concat());
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn of_three_workers_one_calls_what_is_called_once() {
    let (diary, mut receiver) = diary();
    let registry = registry();
    let mut workers: Vec<RunningWorker> = Vec::new();
    for _ in 0..3 {
        let once = Named { name: "once", order: 0, diary: diary.clone() };
        workers.push(start(&registry, job(&diary, 6).once_listener(once)).await);
    }
    for _ in 0..3 {
        let mut round = notes(&mut receiver, 8).await;
        assert_eq!(round.first().map(String::as_str), Some("once before all"), "{round:?}");
        assert_eq!(round.last().map(String::as_str), Some("once after all"), "{round:?}");
        round[1..7].sort();
        let shards: Vec<String> = (0..6).map(|item| format!("shard {item}")).collect();
        assert_eq!(round[1..7], shards);
    }
    // One of them dies without a word. Its shards move, and nothing waits for it.
    drop(workers.pop());
    let alone: Vec<String> = notes(&mut receiver, 24).await;
    let calls: Vec<&String> = alone.iter().filter(|it| it.starts_with("once")).collect();
    assert!(calls.len() >= 4 && calls.chunks(2).all(|it| it.len() < 2 || it[0] != it[1]), "{alone:?}");
    for worker in workers {
        worker.shutdown().await;
    }
}

/// Fails in every way there is.
struct Bad(AtomicUsize);

impl Listener for Bad {
    async fn before(&self, _: &Round) -> Result<(), JobError> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Err("no room".into()),
            1 => panic!("a bug"),
            _ => std::future::pending().await,
        }
    }

    fn time_limit(&self) -> Duration {
        Duration::from_secs(3)
    }
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_fails_holds_nothing_up() {
    let (diary, mut receiver) = diary();
    let second = Named { name: "second", order: i32::MAX, diary: diary.clone() };
    let worker = start(&registry(), job(&diary, 1).listener(Bad(AtomicUsize::new(0))).listener(second)).await;
    let mut records = worker.records();
    let expected = ["no room", "panicked: a bug", "it took longer than 3s, and was given up"];
    for expected in expected {
        let failed = find(&mut records, |event| match event {
            Event::HookFailed { hook, error, .. } => Some((*hook, error.clone())),
            _ => None,
        });
        assert_eq!(failed.await, (Hook::Before, expected.to_owned()));
        let round = notes(&mut receiver, 3).await;
        assert_eq!(round, ["second before [0]", "shard 0", "second after [Succeeded]"]);
    }
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_hangs_is_stopped_with_its_worker() {
    struct Hangs(Arc<Mutex<bool>>);
    impl OnceListener for Hangs {
        async fn before_first(&self, _: &Round) -> Result<(), JobError> {
            *self.0.lock().unwrap() = true;
            std::future::pending().await
        }
        fn time_limit(&self) -> Duration {
            Duration::from_secs(36_000)
        }
        fn start_deadline(&self) -> Duration {
            Duration::from_secs(36_000)
        }
    }
    let (diary, mut receiver) = diary();
    let hangs = Arc::new(Mutex::new(false));
    let worker = start(&registry(), job(&diary, 1).once_listener(Hangs(hangs.clone()))).await;
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert!(*hangs.lock().unwrap());
    let begun = tokio::time::Instant::now();
    worker.shutdown().await;
    // Five seconds of grace, two to notice; then the shard is told to stop in turn.
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    drop(diary);
    while let Some(note) = receiver.recv().await {
        assert_eq!(note, "shard 0", "it may have begun, to be cancelled at once");
    }
}

#[tokio::test]
async fn once_needs_to_know_who_runs_what() {
    struct Nothing;
    impl OnceListener for Nothing {}
    let job = Job::simple("j", async |_: Shard| Ok(())).monitor_execution(false).once_listener(Nothing);
    let error = Worker::new("embedded://").job(job).start().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "job `j`: listeners that are called once per cluster need monitorExecution: switch it on, or use a listener for every worker"
    );
    let job = Job::simple("j", async |_: Shard| Ok(())).delay(Duration::from_secs(5)).once_listener(Nothing);
    let error = Worker::new("embedded://").job(job).start().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "job `j`: property elasticjob.delay `5s` has no rounds that all shards share: remove the listeners that are called once per cluster"
    );
}

#[tokio::test]
async fn the_example_does_what_it_says() {
    let diary = tokio::time::timeout(LONG, hooks_example::run()).await.expect("it ends").unwrap();
    let count = |what: &str| diary.iter().filter(|it| it.starts_with(what)).count();
    assert_eq!((count("make room"), count("settle"), count("report on 4")), (1, 4, 1), "{diary:?}");
    assert_eq!(diary[0], "make room");
    assert_eq!((count("begin"), count("end")), (2, 2), "{diary:?}");
    let last_shard = diary.iter().rposition(|it| it.starts_with("settle"));
    assert!(last_shard < diary.iter().position(|it| it.starts_with("report")), "{diary:?}");
}

#[tokio::test]
async fn what_is_called_once_is_called_for_every_trigger() {
    let (diary, mut receiver) = diary();
    let registry = registry();
    let mut workers = Vec::new();
    for _ in 0..2 {
        let once = Named { name: "once", order: 0, diary: diary.clone() };
        let job = job(&diary, 4).one_off().once_listener(once);
        workers.push(Worker::new(registry.clone()).job(job).start().await.unwrap());
    }
    for _ in 0..3 {
        workers[0].trigger("j").await.unwrap();
        let round = notes(&mut receiver, 6).await;
        assert_eq!(round.first().map(String::as_str), Some("once before all"), "{round:?}");
        assert_eq!(round.last().map(String::as_str), Some("once after all"), "{round:?}");
    }
    for worker in workers {
        worker.shutdown().await;
    }
}
