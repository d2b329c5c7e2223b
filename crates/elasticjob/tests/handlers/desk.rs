//! What becomes of failures between a job and its handlers. Time is tokio's, and paused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use elasticjob::metrics::Metrics;
use elasticjob::{Event, Job, Ops, Report, RunningWorker, Shard, Strategy, Worker, registry, testing};
use tokio::time::{Instant, timeout};

use super::{failing, items_finished, next, post, shown, until};

const MIDNIGHT: &str = "2030-01-01T00:00:00Z";

async fn start(worker: Worker) -> RunningWorker {
    testing::clock_from(worker, MIDNIGHT.parse().unwrap()).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_failures_of_a_round_are_one_report() {
    let (pager, mut reports) = post();
    let job = failing("settle").shards(3).error_handlers(["pager"]);
    let worker = start(Worker::new("embedded://").job(job).error_handler("Pager", pager)).await;
    worker.trigger("settle").await.unwrap();
    let report = next(&mut reports).await;
    assert_eq!(
        shown(&report),
        ["settle {0} no rows for 0 ×1", "settle {1} no rows for 1 ×1", "settle {2} no rows for 2 ×1"]
    );
    assert_eq!((report.count(), report.others), (3, 0));
    let run = report.first().run.clone().unwrap();
    assert!(run.starts_with("settle@-@0,1,2@-@READY@-@"), "{run}");
    assert_eq!(worker.handler_counts().failed, 0);
    worker.shutdown().await;
    assert!(reports.recv().await.is_none(), "nothing is told twice");
}

#[tokio::test(start_paused = true)]
async fn a_message_without_end_is_cut() {
    let (pager, mut reports) = post();
    let job = Job::simple("long", async |_: Shard| Err("作".repeat(1_000_000).into())).one_off();
    let worker = Worker::new("embedded://").job(job.error_handlers(["pager"])).error_handler("pager", pager);
    let worker = start(worker).await;
    worker.trigger("long").await.unwrap();
    let message = next(&mut reports).await.first().message.clone();
    assert!(message.len() <= 16 * 1024 && message.ends_with("作…"), "{}", message.len());
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_storm_is_a_report_a_minute_and_none_is_missing_from_it() {
    const SHARDS: u64 = 40;
    let (pager, mut reports) = post();
    let job = Job::simple("storm", async |_: Shard| Err("the database is away".into()));
    let job = job.cron("* * * * * ?").shards(40).misfire(false).error_handlers(["pager"]);
    let worker = start(Worker::new("embedded://").job(job).error_handler("pager", pager)).await;
    let mut records = worker.records();
    let (mut failed, mut rounds) = (0, 0);
    while rounds < 300 {
        match until(&mut records, |event| Some(event.clone())).await {
            Event::ItemFinished { .. } => failed += 1,
            Event::RoundFinished { .. } => rounds += 1,
            _ => {}
        }
    }
    assert_eq!(failed, 300 * SHARDS);
    worker.shutdown().await;
    let mut told = Vec::new();
    while let Some(report) = reports.recv().await {
        assert_eq!(report.kinds.len(), 1);
        told.push(report.count());
    }
    assert_eq!(told.iter().sum::<u64>(), failed);
    // Five minutes: one at once, one each minute, one when the worker leaves.
    assert!((5..=7).contains(&told.len()), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn jobs_that_tell_the_same_place_share_a_report() {
    let (pager, mut reports) = post();
    let job = |name: &str, team: &str| failing(name).error_handlers(["pager"]).prop("team", team);
    let worker = Worker::new("embedded://").job(job("a", "x")).job(job("b", "x")).job(job("c", "y"));
    let worker = start(worker.error_handler("pager", pager)).await;
    for name in ["a", "b", "c"] {
        worker.trigger(name).await.unwrap();
    }
    let mut found = [shown(&next(&mut reports).await), shown(&next(&mut reports).await)];
    found.sort();
    assert_eq!(
        found,
        [
            vec!["a {0} no rows for 0 ×1".to_owned(), "b {0} no rows for 0 ×1".to_owned()],
            vec!["c {0} no rows for 0 ×1".to_owned()]
        ]
    );
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn every_handler_is_told() {
    let ((one, mut ones), (two, mut twos)) = (post(), post());
    let job = failing("settle").error_handlers(["LOG", "one", "two", "THROW", "IGNORE"]);
    let worker = Worker::new("embedded://").job(job).error_handler("one", one).error_handler("two", two);
    let worker = start(worker).await;
    let mut thrown = worker.thrown();
    worker.trigger("settle").await.unwrap();
    assert_eq!(&*thrown.next().await.unwrap().message, "no rows for 0");
    assert_eq!(next(&mut ones).await.count(), 1);
    assert_eq!(next(&mut twos).await.count(), 1);
    worker.shutdown().await;
    assert!(thrown.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn what_was_not_told_yet_is_told_before_a_worker_has_left() {
    let (pager, mut reports) = post();
    let job = failing("settle").error_handlers(["pager"]);
    let worker = start(Worker::new("embedded://").job(job).error_handler("pager", pager)).await;
    let mut records = worker.records();
    worker.trigger("settle").await.unwrap();
    items_finished(&mut records, 1).await;
    assert!(reports.try_recv().is_err(), "it lies on the desk");
    worker.shutdown().await;
    assert_eq!(reports.try_recv().unwrap().count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_hangs_holds_up_neither_rounds_nor_the_end() {
    let (calls, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, dropped) = (calls.clone(), ended.clone());
    struct CountDrop(Arc<AtomicUsize>);
    impl Drop for CountDrop {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let hang = move |_: Report| {
        counted.fetch_add(1, Ordering::SeqCst);
        let guard = CountDrop(dropped.clone());
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    };
    let job = failing("settle").cron("0/10 * * * * ?").error_handlers(["hang"]);
    let metrics = Metrics::new();
    let worker = Worker::new("embedded://").metrics(&metrics).job(job);
    let worker = start(worker.error_handler("hang", hang)).await;
    let mut records = worker.records();
    // Ten minutes.
    for _ in 0..60 {
        until(&mut records, |event| matches!(event, Event::RoundFinished { .. }).then_some(())).await;
    }
    let counts = worker.handler_counts();
    assert!((6..=7).contains(&counts.failed), "every minute and a half one is given up: {counts:?}");
    assert_eq!(counts.told, 0);
    assert!(counts.lost > 0, "after three attempts what was to be told is given up: {counts:?}");
    let untold = format!("elasticjob_failures_untold_total {}\n", counts.lost);
    assert!(metrics.text().contains(&untold), "{}", metrics.text());
    let begin = Instant::now();
    timeout(Duration::from_secs(60), worker.shutdown()).await.expect("it ends");
    assert!(begin.elapsed() <= Duration::from_secs(11), "{:?}", begin.elapsed());
    assert_eq!(calls.load(Ordering::SeqCst), ended.load(Ordering::SeqCst), "none of them is left");
}

#[tokio::test(start_paused = true)]
async fn not_all_handlers_are_called_at_once_but_all_are_called() {
    let (now, most, all) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (running, peak, called) = (now.clone(), most.clone(), all.clone());
    let slow = move |_: Report| {
        called.fetch_add(1, Ordering::SeqCst);
        peak.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let running = running.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
    };
    let job = |n: u32| failing(&format!("job-{n}")).error_handlers(["slow"]).prop("team", n.to_string());
    let worker = (0..30).map(job).fold(Worker::new("embedded://"), Worker::job);
    let worker = start(worker.error_handler("slow", slow)).await;
    for n in 0..30 {
        worker.trigger(&format!("job-{n}")).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((all.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (30, 8));
    assert_eq!(worker.handler_counts().told, 30);
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_told_goes_with_the_next() {
    let (post, mut reports) = post();
    let calls = AtomicUsize::new(0);
    let shaky = move |report: Report| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        let sent = if call == 2 { Some(post.0.send(report)) } else { None };
        async move {
            match call {
                0 => Err("the mail server is away".into()),
                1 => panic!("boom"),
                _ => sent.unwrap().map_err(Into::into),
            }
        }
    };
    let job = failing("settle").error_handlers(["shaky"]);
    let metrics = Metrics::new();
    let worker = Worker::new("embedded://").metrics(&metrics).job(job);
    let worker = start(worker.error_handler("shaky", shaky)).await;
    let mut records = worker.records();
    for _ in 0..3 {
        worker.trigger("settle").await.unwrap();
        items_finished(&mut records, 1).await;
        tokio::time::sleep(Duration::from_secs(40)).await;
    }
    assert_eq!(shown(&next(&mut reports).await), ["settle {0} no rows for 0 ×3"]);
    worker.trigger("settle").await.unwrap();
    items_finished(&mut records, 1).await;
    let counts = worker.handler_counts();
    assert_eq!((counts.told, counts.failed, counts.lost), (1, 2, 0));
    let text = metrics.text();
    for line in ["reports_total{result=\"told\"} 1", "reports_total{result=\"failed\"} 2"] {
        assert!(text.contains(&format!("elasticjob_error_{line}\n")), "{text}");
    }
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn panics_are_failures() {
    struct Breaks(Arc<AtomicBool>);
    impl Strategy for Breaks {
        fn assign(&self, _: &[&str], _: &str, total: u32) -> Vec<Vec<u32>> {
            assert!(!self.0.load(Ordering::SeqCst), "no rack");
            vec![(0..total).collect()]
        }
    }
    let broken = Arc::new(AtomicBool::new(false));
    let (pager, mut reports) = post();
    let panics = Job::simple("panics", async |_: Shard| panic!("boom")).one_off().error_handlers(["pager"]);
    let breaks = failing("breaks").strategy("breaks").error_handlers(["pager"]);
    let worker =
        Worker::new("embedded://").strategy("breaks", Breaks(broken.clone())).error_handler("pager", pager);
    let worker = start(worker.job(panics).job(breaks)).await;
    worker.trigger("panics").await.unwrap();
    broken.store(true, Ordering::SeqCst);
    worker.trigger("breaks").await.unwrap();
    let report = next(&mut reports).await;
    assert_eq!(
        shown(&report),
        ["breaks {} broken: panicked: no rack ×1", "panics {0} panicked: boom ×1"],
        "{}",
        report.text()
    );
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_operator_can_change_who_is_told() {
    let registry = registry::open("embedded://").unwrap();
    let ((one, mut ones), (two, mut twos)) = (post(), post());
    let worker = Worker::new(registry.clone()).job(failing("settle").error_handlers(["one"]));
    let worker = start(worker.error_handler("one", one).error_handler("two", two)).await;
    let mut records = worker.records();
    worker.trigger("settle").await.unwrap();
    assert_eq!(next(&mut ones).await.count(), 1);
    let ops = Ops::connect(registry).await.unwrap();
    let read = ops.config("settle").await.unwrap();
    let change =
        |to: &str| read.text.replace("jobErrorHandlerType: one", &format!("jobErrorHandlerType: {to}"));
    ops.update_config("settle", &read, &change("two")).await.unwrap();
    until(&mut records, |event| matches!(event, Event::ConfigChanged).then_some(())).await;
    worker.trigger("settle").await.unwrap();
    assert_eq!(next(&mut twos).await.count(), 1);
    // One that is unknown here is for peers who know it: the job goes on, and what fails is in the log.
    let read = ops.config("settle").await.unwrap();
    let text = read.text.replace("jobErrorHandlerType: two", "jobErrorHandlerType: three");
    ops.update_config("settle", &read, &text).await.unwrap();
    until(&mut records, |event| matches!(event, Event::ConfigChanged).then_some(())).await;
    worker.trigger("settle").await.unwrap();
    items_finished(&mut records, 1).await;
    worker.shutdown().await;
    assert!(ones.recv().await.is_none() && twos.recv().await.is_none());
}
