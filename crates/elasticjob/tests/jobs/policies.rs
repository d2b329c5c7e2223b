//! Limits, retries, jitter, rates, delays and what was missed, with real workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use elasticjob::{CatchUp, Event, Job, JobError, Outcome, Pool, Shard, Worker, testing};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{failure, find, now, outcomes, registry, run_once, start};

const SECOND: Duration = Duration::from_secs(1);

/// A job that says when its shards start, by the test's clock.
fn noting(starts: &mpsc::UnboundedSender<(u32, Instant)>, takes: Duration) -> Job {
    let starts = starts.clone();
    Job::simple("j", move |shard: Shard| {
        let starts = starts.clone();
        async move {
            starts.send((shard.item, Instant::now()))?;
            sleep(takes).await;
            Ok(())
        }
    })
    .time_zone("GMT+0:00")
}

#[tokio::test(start_paused = true)]
async fn what_takes_too_long_is_told_to_stop_and_then_stopped() {
    let polite = Job::simple("j", async |shard: Shard| {
        shard.cancelled().await;
        Err("half-way".into())
    });
    let begun = Instant::now();
    assert_eq!(failure(&polite.time_limit(5 * SECOND)).await, "took longer than 5s, and was stopped");
    assert_eq!(begun.elapsed(), 5 * SECOND);

    let deaf = Job::simple("j", async |_: Shard| std::future::pending().await);
    let begun = Instant::now();
    assert_eq!(failure(&deaf.time_limit(5 * SECOND)).await, "took longer than 5s, and was stopped");
    assert_eq!(begun.elapsed(), 7 * SECOND, "two seconds of grace");

    let done_after_all = Job::simple("j", async |shard: Shard| {
        shard.cancelled().await;
        Ok(())
    });
    assert_eq!(run_once(&done_after_all.time_limit(SECOND)).await, Outcome::Succeeded);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_ones_turn_does_not_count() {
    let job = Job::simple("j", async |_: Shard| {
        sleep(4 * SECOND).await;
        Ok(())
    });
    let job = job.shards(3).pool(Pool::Single).time_limit(5 * SECOND);
    let outcomes = testing::run_once(&job).await.unwrap();
    assert!(outcomes.values().all(|it| *it == Outcome::Succeeded), "{outcomes:?}");
}

#[tokio::test]
async fn a_script_that_takes_too_long_is_killed() {
    let job = Job::script("j", "sh -c 'exec sleep 600'").time_limit(Duration::from_millis(300));
    assert_eq!(failure(&job).await, "took longer than 300ms, and was stopped");
}

#[tokio::test]
async fn blocking_code_that_takes_too_long_is_told_and_waited_for() {
    let job = Job::blocking("j", |shard: Shard| {
        while !shard.is_cancelled() {
            std::thread::sleep(Duration::from_millis(5));
        }
        Err("told".into())
    });
    assert_eq!(
        failure(&job.time_limit(Duration::from_millis(50))).await,
        "took longer than 50ms, and was stopped"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_tried_again_with_growing_pauses() {
    let (sender, mut attempts) = mpsc::unbounded_channel();
    let job = Job::simple("j", move |shard: Shard| {
        let sender = sender.clone();
        async move {
            sender.send((shard.attempt, Instant::now()))?;
            match shard.attempt {
                1 => Err("no".into()),
                2 => panic!("a bug"),
                3 => std::future::pending().await,
                _ => Err::<(), JobError>("never".into()),
            }
        }
    });
    let job = job.retries(3).retry_backoff(10 * SECOND, 30 * SECOND).time_limit(SECOND);
    assert_eq!(failure(&job).await, "failed 4 times, at last: never");
    let mut made = Vec::new();
    while let Ok(attempt) = attempts.try_recv() {
        made.push(attempt);
    }
    assert_eq!(made.iter().map(|it| it.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    let pauses: Vec<Duration> = made.windows(2).map(|it| it[1].1 - it[0].1).collect();
    let within =
        |at: usize, least: u32, most: u32| pauses[at] >= least * SECOND && pauses[at] <= most * SECOND;
    // The third attempt took a second, and two to be stopped.
    assert!(within(0, 5, 10) && within(1, 10, 20) && within(2, 15 + 3, 30 + 3), "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn who_leaves_does_not_try_again() {
    let attempts = Arc::new(AtomicU32::new(0));
    let count = attempts.clone();
    let job = Job::simple("j", move |_: Shard| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Err("away".into()) }
    });
    let job = job.retries(100).retry_backoff(600 * SECOND, 600 * SECOND).one_off();
    let worker = start(&registry(), job).await;
    let mut records = worker.records();
    worker.trigger("j").await.unwrap();
    find(&mut records, |event| matches!(event, Event::RoundStarted { .. }).then_some(())).await;
    sleep(SECOND).await;
    let begun = Instant::now();
    worker.shutdown().await;
    assert!(begun.elapsed() < SECOND, "{:?}", begun.elapsed());
    assert_eq!(attempts.load(Ordering::SeqCst), 1);
    assert_eq!(outcomes(&mut records, 1).await[&0], Outcome::Failed("away".into()));
}

#[tokio::test(start_paused = true)]
async fn starts_are_spread_but_never_by_more_than_was_asked_for() {
    let (sender, mut starts) = mpsc::unbounded_channel();
    let job = noting(&sender, Duration::ZERO).cron("0 * * * * ?").shards(20).start_jitter(30 * SECOND);
    let zero = Instant::now();
    let worker = start(&registry(), job).await;
    let mut delays = Vec::new();
    for _ in 0..20 {
        let (_, at) = starts.recv().await.unwrap();
        delays.push((at - zero).checked_sub(60 * SECOND).expect("not before the fire"));
    }
    assert!(delays.iter().all(|it| *it <= 30 * SECOND + SECOND), "{delays:?}");
    assert!(delays.last().unwrap().saturating_sub(delays[0]) > 10 * SECOND, "{delays:?}");
    // What somebody asks for by hand starts at once.
    sleep(5 * SECOND).await;
    let asked = Instant::now();
    worker.trigger("j").await.unwrap();
    for _ in 0..20 {
        assert!(starts.recv().await.unwrap().1 - asked < SECOND);
    }
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn a_rate_and_a_delay_are_what_they_say() {
    let (sender, mut starts) = mpsc::unbounded_channel();
    let worker = start(&registry(), noting(&sender, 3 * SECOND).every(10 * SECOND)).await;
    let mut at = Vec::new();
    for _ in 0..4 {
        at.push(starts.recv().await.unwrap().1);
    }
    assert!(at.windows(2).all(|it| (it[1] - it[0]).abs_diff(10 * SECOND) < SECOND / 10), "{at:?}");
    assert_eq!(worker.jobs().next().unwrap().schedule.as_deref(), Some("every 10s"));
    worker.shutdown().await;

    let (sender, mut starts) = mpsc::unbounded_channel();
    let worker = start(&registry(), noting(&sender, 3 * SECOND).delay(10 * SECOND)).await;
    let mut at = Vec::new();
    for _ in 0..4 {
        at.push(starts.recv().await.unwrap().1);
    }
    assert!(at.windows(2).all(|it| (it[1] - it[0]).abs_diff(13 * SECOND) < SECOND / 10), "{at:?}");
    assert_eq!(worker.jobs().next().unwrap().schedule.as_deref(), Some("10s after it ended"));
    worker.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_nobody_was_up_for_is_caught_up_on() {
    let registry = registry();
    let (sender, mut runs) = mpsc::unbounded_channel();
    let job = || {
        let sender = sender.clone();
        let work = move |shard: Shard| {
            let sender = sender.clone();
            async move { Ok(sender.send((shard.nominal.unwrap(), shard.merged))?) }
        };
        let job = Job::simple("j", work).cron("0 0/10 * * * ?").time_zone("GMT+0:00");
        job.catch_up(CatchUp::All { max: 3 })
    };
    let worker = start(&registry, job()).await;
    runs.recv().await.unwrap();
    worker.shutdown().await;
    sleep(65 * 60 * SECOND).await;
    let worker = start(&registry, job()).await;
    let mut made_up = Vec::new();
    for _ in 0..4 {
        made_up.push(runs.recv().await.unwrap());
    }
    let midnight: jiff::Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let at = |minute: i64| midnight + jiff::SignedDuration::from_mins(minute);
    assert!(now() >= at(80), "{}", now());
    assert_eq!(made_up, [(at(50), 3), (at(60), 0), (at(70), 0), (at(80), 0)]);
    worker.shutdown().await;
}

#[tokio::test]
async fn a_policy_that_cannot_be_is_said_at_the_start() {
    let job = || Job::simple("j", async |_: Shard| Ok(()));
    let cases = [
        (
            job().prop("elasticjob.time.limit", "soon"),
            "elasticjob.time.limit `soon` is no duration: write a number and its unit, as in 30s or 2m",
        ),
        (job().retries(101), "elasticjob.retries `101` is no such number: write one from 0 to 100"),
        (
            job().retry_backoff(10 * SECOND, SECOND),
            "elasticjob.retry.backoff.max `1s` is too short: write at least 10s",
        ),
        (job().every(SECOND / 2), "elasticjob.every `500ms` is too short: write at least 1s"),
        (
            job().every(SECOND).cron("0 0 2 * * ?"),
            "elasticjob.every `1s` stands beside a cron: keep one of them",
        ),
        (
            job().every(SECOND).delay(SECOND),
            "elasticjob.delay `1s` stands beside elasticjob.every: keep one of them",
        ),
        (
            job().delay(SECOND).monitor_execution(false),
            "elasticjob.delay `1s` needs to know when a run ended: set monitorExecution to true",
        ),
        (
            job().catch_up(CatchUp::Last).misfire(false),
            "elasticjob.catchup `last` needs to know what was missed: set misfire and monitorExecution to true",
        ),
        (
            job().start_jitter(48 * 3600 * SECOND),
            "elasticjob.start.jitter `48h` is too long: write at most 24h",
        ),
    ];
    for (job, expected) in cases {
        let error = Worker::new("embedded://").job(job).start().await.unwrap_err();
        assert_eq!(error.to_string(), format!("job `j`: property {expected}"));
    }
}
