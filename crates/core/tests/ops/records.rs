//! Why a fire ran, did not run, ran late, or ran there, when instances kept records.

use elasticjob_core::event::{Event, Outcome, Skip, Source, StopReason};
use elasticjob_core::ops::explain::Past;
use expect_test::{Expect, expect};

use super::{A, B, Job, at};

/// What is asked about is the fire of 01:10, at 01:12.
const FIRE: &str = "01:10:00";

fn past(instance: &str, time: &str, event: Event) -> Past {
    Past { at: at(time), instance: instance.into(), event }
}

fn round(instance: &str, time: &str, source: Source, fire: Option<&str>, items: &[u32], merged: u64) -> Past {
    let task_id = format!("{instance} {time}");
    let items = items.iter().copied().collect();
    past(instance, time, Event::RoundStarted { task_id, source, nominal: fire.map(at), items, merged })
}

fn scheduled(instance: &str, time: &str, fire: &str, items: &[u32]) -> Past {
    round(instance, time, Source::Schedule, Some(fire), items, 0)
}

fn item_ended(instance: &str, begun: &str, time: &str, item: u32, outcome: Outcome) -> Past {
    past(
        instance,
        time,
        Event::ItemFinished { task_id: format!("{instance} {begun}"), item, outcome, output: None },
    )
}

fn round_ended(instance: &str, begun: &str, time: &str) -> Past {
    past(instance, time, Event::RoundFinished { task_id: format!("{instance} {begun}") })
}

/// The answer with its chains, and the first lines of what is known.
fn check(job: &Job, records: &[Past], expected: Expect) {
    let it = job.explain(FIRE, records);
    let mut text = format!("{}\n", it.answer);
    for chain in &it.because {
        for (depth, cause) in chain.iter().enumerate() {
            text.push_str(&format!("{}because {cause}\n", "  ".repeat(depth + 1)));
        }
    }
    for line in it.known.iter().filter(|it| it.contains(" began ") || it.starts_with("they")) {
        text.push_str(&format!("known: {line}\n"));
    }
    expected.assert_eq(&text);
}

fn settled() -> Job {
    Job::at_work().settled([FIRE; 4]).at("01:12:00")
}

#[test]
fn who_ran_it_where_and_how_it_ended_is_told() {
    let records = [
        past(A, "01:00:00", Event::Resharded { moved: 4 }),
        scheduled(A, "01:10:00", FIRE, &[0, 2]),
        scheduled(B, "01:10:00", FIRE, &[1, 3]),
        item_ended(A, "01:10:00", "01:10:09", 0, Outcome::Succeeded),
        item_ended(A, "01:10:00", "01:10:05", 2, Outcome::Failed("no rows".into())),
        item_ended(B, "01:10:00", "01:10:01", 1, Outcome::Succeeded),
    ];
    check(
        &settled(),
        &records,
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0-3 ran it (shard 2 failed at 2026-11-15 01:10:05 UTC: no rows)
        known: shard 0: began at 2026-11-15 01:10:00 UTC on 10.0.0.1@-@1.a.1 on schedule; succeeded at 2026-11-15 01:10:09 UTC
        known: shard 1: began at 2026-11-15 01:10:00 UTC on 10.0.0.12@-@2.b.1 on schedule; succeeded at 2026-11-15 01:10:01 UTC
        known: shard 2: began at 2026-11-15 01:10:00 UTC on 10.0.0.1@-@1.a.1 on schedule; failed at 2026-11-15 01:10:05 UTC
        known: shard 3: began at 2026-11-15 01:10:00 UTC on 10.0.0.12@-@2.b.1 on schedule; no end of it was recorded
        known: they ran where they did because 10.0.0.1@-@1.a.1 had handed out the shards so at 2026-11-15 01:00:00 UTC
    "#]],
    );
}

#[test]
fn what_scripts_printed_that_succeeded_is_told() {
    let printed = |item, output: &str| {
        let (task_id, outcome) = (format!("{A} 01:10:00"), Outcome::Succeeded);
        past(A, "01:10:09", Event::ItemFinished { task_id, item, outcome, output: Some(output.into()) })
    };
    let records = [scheduled(A, "01:10:00", FIRE, &[0, 2]), printed(0, "3 rows"), printed(2, "1 row\ndone")];
    check(
        &settled(),
        &records,
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0, 2 ran it; shards 1, 3 ran it, or skipped it for a reason
        known: shard 0: began at 2026-11-15 01:10:00 UTC on 10.0.0.1@-@1.a.1 on schedule; succeeded at 2026-11-15 01:10:09 UTC, and printed at last: 3 rows
        known: shard 2: began at 2026-11-15 01:10:00 UTC on 10.0.0.1@-@1.a.1 on schedule; succeeded at 2026-11-15 01:10:09 UTC, and printed at last:
          1 row
          done
    "#]],
    );
}

#[test]
fn a_skip_says_why() {
    let skip = Event::Skipped { nominal: Some(at(FIRE)), items: [1, 3].into(), why: Skip::ClockOff };
    let records = [scheduled(A, "01:10:00", FIRE, &[0, 2]), past(B, "01:10:00", skip)];
    check(
        &settled(),
        &records,
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0, 2 ran it; shards 1, 3 skipped it
          because 10.0.0.12@-@2.b.1 skipped shards 1, 3: the clock differs too much from the registry's
        known: shard 0: began at 2026-11-15 01:10:00 UTC on 10.0.0.1@-@1.a.1 on schedule; no end of it was recorded
        known: shard 2: began at 2026-11-15 01:10:00 UTC on 10.0.0.1@-@1.a.1 on schedule; no end of it was recorded
    "#]],
    );
}

#[test]
fn a_late_beginning_says_what_kept_it() {
    let lost = [
        past(A, "01:09:50", Event::Suspended),
        past(A, "01:10:20", Event::Reconnected),
        scheduled(A, "01:10:21", FIRE, &[0, 2]),
        past(B, "01:10:05", Event::Resharded { moved: 1 }),
        scheduled(B, "01:10:06", FIRE, &[1, 3]),
    ];
    check(
        &settled(),
        &lost,
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0-3 ran it
          because shards 0, 2 began it 21 s late, at 2026-11-15 01:10:21 UTC, on 10.0.0.1@-@1.a.1
            because 10.0.0.1@-@1.a.1 had no connection to the registry from 2026-11-15 01:09:50 UTC until 2026-11-15 01:10:20 UTC
          because shards 1, 3 began it 6 s late, at 2026-11-15 01:10:06 UTC, on 10.0.0.12@-@2.b.1
            because the shards were handed out anew at 2026-11-15 01:10:05 UTC, by 10.0.0.12@-@2.b.1
        known: shard 0: began at 2026-11-15 01:10:21 UTC on 10.0.0.1@-@1.a.1 on schedule; no end of it was recorded
        known: shard 1: began at 2026-11-15 01:10:06 UTC on 10.0.0.12@-@2.b.1 on schedule; no end of it was recorded
        known: shard 2: began at 2026-11-15 01:10:21 UTC on 10.0.0.1@-@1.a.1 on schedule; no end of it was recorded
        known: shard 3: began at 2026-11-15 01:10:06 UTC on 10.0.0.12@-@2.b.1 on schedule; no end of it was recorded
        known: they ran where they did because 10.0.0.12@-@2.b.1 had handed out the shards so at 2026-11-15 01:10:05 UTC
    "#]],
    );
    let busy = [
        scheduled(A, "01:00:00", "01:00:00", &[0, 2]),
        round_ended(A, "01:00:00", "01:10:30"),
        scheduled(A, "01:10:30", FIRE, &[0, 2]),
        past(B, "01:10:40", Event::Registered { id: B.into() }),
        scheduled(B, "01:10:41", FIRE, &[1, 3]),
    ];
    check(
        &settled(),
        &busy,
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0-3 ran it
          because shards 0, 2 began it 30 s late, at 2026-11-15 01:10:30 UTC, on 10.0.0.1@-@1.a.1
            because its round before, which began at 2026-11-15 01:00:00 UTC, ended at 2026-11-15 01:10:30 UTC
          because shards 1, 3 began it 41 s late, at 2026-11-15 01:10:41 UTC, on 10.0.0.12@-@2.b.1
            because 10.0.0.12@-@2.b.1 joined only at 2026-11-15 01:10:40 UTC
        known: shard 0: began at 2026-11-15 01:10:30 UTC on 10.0.0.1@-@1.a.1 on schedule; no end of it was recorded
        known: shard 1: began at 2026-11-15 01:10:41 UTC on 10.0.0.12@-@2.b.1 on schedule; no end of it was recorded
        known: shard 2: began at 2026-11-15 01:10:30 UTC on 10.0.0.1@-@1.a.1 on schedule; no end of it was recorded
        known: shard 3: began at 2026-11-15 01:10:41 UTC on 10.0.0.12@-@2.b.1 on schedule; no end of it was recorded
    "#]],
    );
}

#[test]
fn a_missed_fire_says_what_was_in_the_way_and_when_it_was_made_up_for() {
    let missed = Event::Missed { nominal: at(FIRE), items: [0, 2].into() };
    let records = [
        scheduled(A, "01:00:00", "01:00:00", &[0, 2]),
        past(A, "01:10:00", missed),
        round_ended(A, "01:00:00", "01:21:00"),
        round(A, "01:21:00", Source::Misfire, Some("01:20:00"), &[0, 2], 1),
        scheduled(B, "01:10:00", FIRE, &[1, 3]),
    ];
    check(
        &settled().at("01:30:00"),
        &records,
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 1, 3 ran it; shards 0, 2 missed it, and made up for it later
          because 10.0.0.1@-@1.a.1 ran once at 2026-11-15 01:21:00 UTC for all that was missed up to 2026-11-15 01:20:00 UTC
            because 10.0.0.1@-@1.a.1 could not begin shards 0, 2 in time
              because its round before, which began at 2026-11-15 01:00:00 UTC, ended at 2026-11-15 01:21:00 UTC
        known: shard 1: began at 2026-11-15 01:10:00 UTC on 10.0.0.12@-@2.b.1 on schedule; no end of it was recorded
        known: shard 3: began at 2026-11-15 01:10:00 UTC on 10.0.0.12@-@2.b.1 on schedule; no end of it was recorded
        known: shard 0: began at 2026-11-15 01:21:00 UTC on 10.0.0.1@-@1.a.1 to make up for it; no end of it was recorded
        known: shard 2: began at 2026-11-15 01:21:00 UTC on 10.0.0.1@-@1.a.1 to make up for it; no end of it was recorded
    "#]],
    );
}

#[test]
fn a_takeover_says_from_whom() {
    let records = [
        scheduled(A, "01:10:00", FIRE, &[0, 2]),
        scheduled(B, "01:10:00", FIRE, &[1]),
        item_ended(A, "01:10:00", "01:10:01", 2, Outcome::Succeeded),
        item_ended(B, "01:10:00", "01:10:01", 1, Outcome::Cancelled),
        past(B, "01:10:15", Event::TookOver { item: 0 }),
        round(B, "01:10:16", Source::Failover, None, &[0], 0),
    ];
    check(
        &settled(),
        &records,
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0-2 ran it (shard 1 was cancelled at 2026-11-15 01:10:01 UTC); shard 3 ran it, or skipped it for a reason
          because shard 0 was taken over by 10.0.0.12@-@2.b.1 at 2026-11-15 01:10:16 UTC
            because 10.0.0.1@-@1.a.1 began it at 2026-11-15 01:10:00 UTC, and did not come to its end: its session ended before
        known: shard 0: began at 2026-11-15 01:10:00 UTC on 10.0.0.1@-@1.a.1 on schedule; no end of it was recorded
        known: shard 1: began at 2026-11-15 01:10:00 UTC on 10.0.0.12@-@2.b.1 on schedule; cancelled at 2026-11-15 01:10:01 UTC
        known: shard 2: began at 2026-11-15 01:10:00 UTC on 10.0.0.1@-@1.a.1 on schedule; succeeded at 2026-11-15 01:10:01 UTC
        known: shard 0: began at 2026-11-15 01:10:16 UTC on 10.0.0.12@-@2.b.1 in place of a dead instance; no end of it was recorded
    "#]],
    );
}

#[test]
fn who_was_away_is_named_when_nobody_ran_it() {
    let behind = Job::at_work().settled(["01:00:00"; 4]).at("01:15:00");
    let records = [
        past(A, "01:00:00", Event::Registered { id: A.into() }),
        past(A, "01:09:00", Event::Distrusted),
        past(A, "01:11:30", Event::Reconnected),
        past(B, "01:12:00", Event::Registered { id: B.into() }),
        past("10.0.0.7@-@7.c.1", "01:05:00", Event::Stopped { reason: StopReason::ShutDown }),
    ];
    check(
        &behind,
        &records,
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0-3 did not run it
          because 10.0.0.12@-@2.b.1 joined only at 2026-11-15 01:12:00 UTC
          because 10.0.0.1@-@1.a.1 had no connection to the registry from 2026-11-15 01:09:00 UTC until 2026-11-15 01:11:30 UTC
          because 10.0.0.7@-@7.c.1 had ended at 2026-11-15 01:05:00 UTC: shut down by an operator
    "#]],
    );
}

#[test]
fn a_process_that_had_to_begin_a_new_session_is_the_same_process() {
    let again = "10.0.0.1@-@1.a.2";
    let records = [
        past(A, "01:09:00", Event::Suspended),
        past(again, "01:10:30", Event::Registered { id: again.into() }),
        scheduled(again, "01:10:31", FIRE, &[0, 1, 2, 3]),
    ];
    check(
        &settled(),
        &records[..],
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0-3 ran it
          because shards 0-3 began it 31 s late, at 2026-11-15 01:10:31 UTC, on 10.0.0.1@-@1.a.2
            because 10.0.0.1@-@1.a.2 had no connection to the registry from 2026-11-15 01:09:00 UTC until 2026-11-15 01:10:30 UTC
        known: shard 0: began at 2026-11-15 01:10:31 UTC on 10.0.0.1@-@1.a.2 on schedule; no end of it was recorded
        known: shard 1: began at 2026-11-15 01:10:31 UTC on 10.0.0.1@-@1.a.2 on schedule; no end of it was recorded
        known: shard 2: began at 2026-11-15 01:10:31 UTC on 10.0.0.1@-@1.a.2 on schedule; no end of it was recorded
        known: shard 3: began at 2026-11-15 01:10:31 UTC on 10.0.0.1@-@1.a.2 on schedule; no end of it was recorded
    "#]],
    );
    let behind = Job::at_work().settled(["01:00:00"; 4]).at("01:15:00");
    check(
        &behind,
        &records[..2],
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0-3 did not run it
          because 10.0.0.1@-@1.a.2 had no connection to the registry from 2026-11-15 01:09:00 UTC until 2026-11-15 01:10:30 UTC
    "#]],
    );
}

#[test]
fn a_run_that_no_fire_explains_was_asked_for() {
    let records = [
        round(A, "01:05:00", Source::Trigger, None, &[0], 0),
        scheduled(A, "01:10:00", FIRE, &[0, 1, 2, 3]),
        round(A, "01:11:00", Source::Trigger, None, &[2], 0),
        item_ended(A, "01:11:00", "01:11:05", 2, Outcome::Succeeded),
        round(A, "01:11:50", Source::Trigger, None, &[0], 0),
    ];
    let known = settled().explain("01:11:30", &records).known;
    let asked: Vec<&String> = known.iter().filter(|it| it.contains("somebody asked")).collect();
    let said = "shard 2: began at 2026-11-15 01:11:00 UTC on 10.0.0.1@-@1.a.1 because somebody asked; succeeded at 2026-11-15 01:11:05 UTC";
    assert_eq!(asked, [said]);
    let mut unscheduled = settled();
    unscheduled.edit(|it| it.cron = None);
    assert_eq!(unscheduled.explain("01:11:30", &records).known, [said]);
}

#[test]
fn records_of_other_fires_change_nothing() {
    let records = [scheduled(A, "01:00:00", "01:00:00", &[0]), past(A, "01:20:00", Event::Elected)];
    let (with, without) = (settled().explain(FIRE, &records), settled().explain(FIRE, &[]));
    assert_eq!(with, without);
}
