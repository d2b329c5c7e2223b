//! What is wrong, and why.

use expect_test::expect;

use super::common::{A, B, Place};
use super::{check, fleet, on_both, refuses};

on_both!(
    a_check_says_what_is_wrong_and_what_to_do,
    an_explanation_has_causes,
    an_explanation_draws_on_events_that_were_kept
);

fn a_check_says_what_is_wrong_and_what_to_do(place: Place) {
    let store = fleet(place);
    check(
        &store,
        &["check"],
        expect![[r#"
            PROBLEM  hourly: shard 1 is marked as running on 10.0.0.99@-@5.dead.1, which is gone
                     do: the leader clears the mark within seconds; if it stays so, no Rust instance leads: restart the leader
            PROBLEM  hourly: shard 0 is 0 fires behind: the last settled one was 0000-00-00 00:00:00 UTC
                     do: elasticjob explain hourly
            note     hourly: server 10.0.0.99 is disabled and offline: none of its instances is there
                     do: start its worker, or forget it: elasticjob job remove hourly --server 10.0.0.99
            ! 2 problems
            exit 1
        "#]],
    );
    check(
        &store,
        &["check", "nightly"],
        expect![[r#"
        ! healthy
    "#]],
    );
    check(
        &store,
        &["check", "nightly", "--json"],
        expect![[r#"
        []
    "#]],
    );
}

fn an_explanation_has_causes(place: Place) {
    let store = fleet(place);
    check(
        &store,
        &["explain", "hourly"],
        expect![[r#"
            the fire of 0000-00-00 00:00:00 UTC: shard 0 did not run it; whether shard 1 ran it is not known, because nobody noted it
              because shard 0 missed a fire, and runs once more to make up for it
              because nobody who is here now was here then: the first joined at 0000-00-00 00:00:00 UTC
              because the configuration was written at 0000-00-00 00:00:00 UTC, after that fire: the schedule may have been another one
            known:
              shard 0: last settled fire 0000-00-00 00:00:00 UTC, owner 10.0.0.1@-@71.4f2a90c1.1
              shard 1: running since 0000-00-00 00:00:00 UTC, owner 10.0.0.12@-@93.b03d5512.1
              server 10.0.0.99 is disabled since 0000-00-00 00:00:00 UTC (0 s)
              leader 10.0.0.1@-@71.4f2a90c1.1
              next fire 0000-00-00 00:00:00 UTC
        "#]],
    );
    store.run(&["job", "pause", "nightly"]);
    check(
        &store,
        &["explain", "nightly", "--at", "2126-01-01T00:00:00Z"],
        expect![[r#"
            the fire of 0000-00-00 00:00:00 UTC is yet to come, and would not run as things are
              because all servers are disabled: 10.0.0.1 since 0000-00-00 00:00:00 UTC (0 s); 10.0.0.12 since 0000-00-00 00:00:00 UTC (0 s)
                because the job is paused: 0000-00-00 00:00:00Z by alice
            known:
              shard 0: owner 10.0.0.1@-@71.4f2a90c1.1
              shard 1: owner 10.0.0.12@-@93.b03d5512.1
              shard 2: owner 10.0.0.1@-@71.4f2a90c1.1
              leader 10.0.0.1@-@71.4f2a90c1.1
              next fire 0000-00-00 00:00:00 UTC
            what to do:
              elasticjob job resume nightly
        "#]],
    );
    check(
        &store,
        &["explain", "nightly", "--json"],
        expect![[r#"
            {
              "answer": "the fire of 0000-00-00 00:00:00 UTC: whether shards 0-2 ran it is not known, because nobody noted it",
              "because": [
                [
                  "nobody who is here now was here then: the first joined at 0000-00-00 00:00:00 UTC"
                ],
                [
                  "the configuration was written at 0000-00-00 00:00:00 UTC, after that fire: the schedule may have been another one"
                ]
              ],
              "fire": "0000-00-00 00:00:00Z",
              "known": [
                "shard 0: owner 10.0.0.1@-@71.4f2a90c1.1",
                "shard 1: owner 10.0.0.12@-@93.b03d5512.1",
                "shard 2: owner 10.0.0.1@-@71.4f2a90c1.1",
                "server 10.0.0.1 is disabled since 0000-00-00 00:00:00 UTC (0 s)",
                "server 10.0.0.12 is disabled since 0000-00-00 00:00:00 UTC (0 s)",
                "leader 10.0.0.1@-@71.4f2a90c1.1",
                "next fire 0000-00-00 00:00:00 UTC"
              ],
              "remedies": []
            }
        "#]],
    );
}

/// Three shards at two o'clock: one ran late, one failed, one died and was taken over.
fn events() -> Vec<String> {
    let line = |time: &str, instance: &str, rest: &str| {
        format!(r#"{{"at":"2026-11-15T{time}Z","job":"nightly","instance":"{instance}",{rest}}}"#)
    };
    let began = |task: &str, items: &str| {
        format!(
            r#""event":"round-started","taskId":"{task}","source":"schedule","nominal":"2026-11-15T02:00:00Z","items":{items},"merged":0"#
        )
    };
    vec![
        line("01:59:50", B, r#""event":"suspended""#),
        line("02:00:00", A, &began("a-1", "[0,2]")),
        line(
            "02:00:04",
            A,
            r#""event":"item-finished","taskId":"a-1","item":0,"outcome":"failed","error":"no rows""#,
        ),
        line("02:00:11", B, r#""event":"reconnected""#),
        line("02:00:12", B, &began("b-1", "[1]")),
        line("02:00:20", B, r#""event":"item-finished","taskId":"b-1","item":1,"outcome":"succeeded""#),
        line(
            "02:00:40",
            B,
            r#""event":"round-started","taskId":"b-2","source":"failover","items":[2],"merged":0"#,
        ),
        line("02:00:41", B, r#""event":"item-finished","taskId":"b-2","item":2,"outcome":"succeeded""#),
        line("02:00:42", B, r#""event":"something-new","of":"a later version""#),
    ]
}

fn an_explanation_draws_on_events_that_were_kept(place: Place) {
    let store = fleet(place);
    let (a, b) = (store.home().join("a.jsonl"), store.home().join("b.jsonl"));
    let of = |id: &str| events().into_iter().filter(|it| it.contains(id)).collect::<Vec<_>>().join("\n");
    std::fs::write(&a, of(A) + "\n").unwrap();
    std::fs::write(&b, of(B) + "\n{\"at\":\"2026-11-1").unwrap();
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let at = ["explain", "nightly", "--at", "2026-11-15T02:10:00Z", "--events", a, "--events", b];
    check(
        &store,
        &at,
        expect![[r#"
        the fire of 0000-00-00 00:00:00 UTC: shards 0-2 ran it (shard 0 failed at 0000-00-00 00:00:00 UTC: no rows)
          because shard 1 began it 0 s late, at 0000-00-00 00:00:00 UTC, on 10.0.0.12@-@93.b03d5512.1
            because 10.0.0.12@-@93.b03d5512.1 had no connection to the registry from 0000-00-00 00:00:00 UTC until 0000-00-00 00:00:00 UTC
          because shard 2 was taken over by 10.0.0.12@-@93.b03d5512.1 at 0000-00-00 00:00:00 UTC
            because 10.0.0.1@-@71.4f2a90c1.1 began it at 0000-00-00 00:00:00 UTC, and did not come to its end: its session ended before
        known:
          shard 0: began at 0000-00-00 00:00:00 UTC on 10.0.0.1@-@71.4f2a90c1.1 on schedule; failed at 0000-00-00 00:00:00 UTC
          shard 1: began at 0000-00-00 00:00:00 UTC on 10.0.0.12@-@93.b03d5512.1 on schedule; succeeded at 0000-00-00 00:00:00 UTC
          shard 2: began at 0000-00-00 00:00:00 UTC on 10.0.0.1@-@71.4f2a90c1.1 on schedule; no end of it was recorded
          shard 2: began at 0000-00-00 00:00:00 UTC on 10.0.0.12@-@93.b03d5512.1 in place of a dead instance; succeeded at 0000-00-00 00:00:00 UTC
          shard 0: owner 10.0.0.1@-@71.4f2a90c1.1
          shard 1: owner 10.0.0.12@-@93.b03d5512.1
          shard 2: owner 10.0.0.1@-@71.4f2a90c1.1
          leader 10.0.0.1@-@71.4f2a90c1.1
          next fire 0000-00-00 00:00:00 UTC
    "#]],
    );
    refuses(
        &store,
        &["explain", "nightly", "--events", "/no/such/file"],
        expect![[r#"
        ! error: the events of `/no/such/file` cannot be read: No such file or directory (os error 2)
        exit 3
    "#]],
    );
    let (code, _, words) = store.run(&["explain", "nightly", "--events", "http://127.0.0.1:1"]);
    assert!(code == 3 && words.starts_with("error: the events of `127.0.0.1:1` cannot be read: "), "{words}");
}
