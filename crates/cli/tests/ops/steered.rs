//! One job, told what to do.

use expect_test::expect;

use super::common::{A, B, Place};
use super::{check, fleet, on_both, refuses};

on_both!(
    a_trigger_asks_every_instance_or_one_and_nobody_twice,
    a_job_a_server_and_a_shard_are_disabled_and_enabled,
    a_pause_is_noted_and_leaves_disabled_what_was,
    instances_are_shut_down,
    a_job_is_removed_whole_and_only_after_a_yes
);

fn a_trigger_asks_every_instance_or_one_and_nobody_twice(place: Place) {
    let store = fleet(place);
    check(
        &store,
        &["job", "trigger", "nightly", "--instance", A],
        expect![[r#"
        10.0.0.1@-@71.4f2a90c1.1 is asked to run
        !   then: 10.0.0.1@-@71.4f2a90c1.1 runs shards 0, 2 now
    "#]],
    );
    check(
        &store,
        &["job", "trigger", "nightly"],
        expect![[r#"
        10.0.0.12@-@93.b03d5512.1 is asked to run
        !   then: 10.0.0.12@-@93.b03d5512.1 runs shard 1 now
        !   then: 10.0.0.1@-@71.4f2a90c1.1 had been asked already, and has not begun yet
    "#]],
    );
    assert!(store.everything().contains(&format!("/nightly/trigger/{B} | ")));
    refuses(
        &store,
        &["job", "trigger", "nightly", "--param", "day=2"],
        expect![[r#"
        ! error: job `nightly`: 10.0.0.12@-@93.b03d5512.1 was asked to run with another parameter, and has not begun yet: trigger it again when it has
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "trigger", "nightly", "--param", &"x".repeat(5000)],
        expect![[r#"
            ! error: job `nightly`: the parameter has 5000 bytes, and a trigger of a job with 3 shard(s) takes 4096 at most: put what is long where the job can read it, and give its name
            exit 3
        "#]],
    );
    let asked = fleet(place);
    check(
        &asked,
        &["job", "trigger", "nightly", "--param", "day=2", "--instance", B],
        expect![[r#"
        10.0.0.12@-@93.b03d5512.1 is asked to run
        !   then: 10.0.0.12@-@93.b03d5512.1 runs shard 1 now
    "#]],
    );
    assert!(asked.everything().contains(&format!("/nightly/trigger/{B} | day=2")));
    refuses(
        &store,
        &["job", "trigger", "nightly", "--instance", "10.0.0.7@-@1"],
        expect![[r#"
        ! error: job `nightly`: it has no instance `10.0.0.7@-@1`; known: 10.0.0.12@-@93.b03d5512.1, 10.0.0.1@-@71.4f2a90c1.1
        exit 3
    "#]],
    );
}

fn a_job_a_server_and_a_shard_are_disabled_and_enabled(place: Place) {
    let store = fleet(place);
    check(
        &store,
        &["job", "disable", "nightly", "--shard", "1"],
        expect![[r#"
        shard 1 is disabled
        !   then: shard 1 does not run again until it is enabled; what runs of it may end
    "#]],
    );
    check(
        &store,
        &["job", "disable", "nightly", "--server", "10.0.0.12"],
        expect![[r#"
        server 10.0.0.12 is disabled
        !   then: its shards move to the 1 instance(s) that may still work
    "#]],
    );
    check(
        &store,
        &["job", "disable", "nightly"],
        expect![[r#"
        server 10.0.0.1 is disabled
        !   then: nothing of the job runs until a server is enabled; shards that run may end
    "#]],
    );
    refuses(
        &store,
        &["job", "trigger", "nightly"],
        expect![[r#"
        ! error: job `nightly`: nothing would run, because all servers of it are disabled: enable one first
        exit 3
    "#]],
    );
    check(
        &store,
        &["job", "enable", "nightly"],
        expect![[r#"
        server 10.0.0.1 is enabled
        server 10.0.0.12 is enabled
        !   then: the shards are handed out anew, and run from the next fire on
    "#]],
    );
    check(
        &store,
        &["job", "enable", "nightly", "--shard", "1", "--json"],
        expect![[r#"
        {
          "changes": [
            "shard 1 is enabled"
          ],
          "consequences": [
            "shard 1 runs again from its next fire on"
          ]
        }
    "#]],
    );
}

fn a_pause_is_noted_and_leaves_disabled_what_was(place: Place) {
    let store = fleet(place);
    let before = store.everything();
    check(
        &store,
        &["job", "disable", "nightly", "--server", "10.0.0.12"],
        expect![[r#"
        server 10.0.0.12 is disabled
        !   then: its shards move to the 1 instance(s) that may still work
    "#]],
    );
    check(
        &store,
        &["job", "pause", "nightly"],
        expect![[r#"
        the job is paused: 0000-00-00 00:00:00Z by alice
        server 10.0.0.1 is disabled
        !   then: nothing of the job runs until it is resumed, on no server, also not on those that start later
        !   then: fires that come meanwhile are skipped, and not made up for; shards that run may end
    "#]],
    );
    refuses(
        &store,
        &["job", "enable", "nightly"],
        expect![[r#"
        ! error: job `nightly`: it is paused (0000-00-00 00:00:00Z by alice): resume it with `elasticjob job resume`
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "pause", "nightly"],
        expect![[r#"
        ! error: job `nightly`: it is paused (0000-00-00 00:00:00Z by alice): resume it with `elasticjob job resume`
        exit 3
    "#]],
    );
    check(
        &store,
        &["jobs", "nightly"],
        expect![[r#"
        JOB      STATUS    CRON         SHARDS  INSTANCES  DESCRIPTION
        nightly  DISABLED  0 0 2 * * ?  3       2          paused 0000-00-00 00:00:00Z by alice
    "#]],
    );
    check(
        &store,
        &["job", "resume", "nightly"],
        expect![[r#"
        the job is resumed
        server 10.0.0.1 is enabled
        !   then: server 10.0.0.12 stays disabled, as it was before the pause
        !   then: the shards are handed out anew, and run from the next fire on
    "#]],
    );
    refuses(
        &store,
        &["job", "resume", "nightly"],
        expect![[r#"
        ! error: job `nightly`: it is not paused
        exit 3
    "#]],
    );
    check(
        &store,
        &["job", "enable", "nightly"],
        expect![[r#"
        server 10.0.0.12 is enabled
        !   then: the shards are handed out anew, and run from the next fire on
    "#]],
    );
    assert_eq!(store.everything(), before);
}

fn instances_are_shut_down(place: Place) {
    let store = fleet(place);
    refuses(
        &store,
        &["job", "shutdown", "nightly"],
        expect![[r#"
            ! error: this ends job `nightly` on all of its 2 instance(s): nobody is here to confirm it; give --yes to do it without being asked
            exit 3
        "#]],
    );
    check(
        &store,
        &["job", "shutdown", "nightly", "--instance", A, "--yes"],
        expect![[r#"
        instance 10.0.0.1@-@71.4f2a90c1.1 is shut down for this job
        !   then: its shards move to the 1 instance(s) that stay
        !   then: the processes themselves go on; the job comes back to them when they are restarted
    "#]],
    );
    check(
        &store,
        &["job", "shutdown", "nightly", "--server", "10.0.0.12", "--yes"],
        expect![[r#"
        instance 10.0.0.12@-@93.b03d5512.1 is shut down for this job
        !   then: nothing of the job runs until a process that has it is started
        !   then: the processes themselves go on; the job comes back to them when they are restarted
    "#]],
    );
    refuses(
        &store,
        &["job", "shutdown", "nightly", "--yes"],
        expect![[r#"
        ! error: job `nightly`: no instance of it is there: start a worker that has the job
        exit 3
    "#]],
    );
}

fn a_job_is_removed_whole_and_only_after_a_yes(place: Place) {
    let store = fleet(place);
    refuses(
        &store,
        &["job", "remove", "nightly"],
        expect![[r#"
        ! error: this removes job `nightly` (2 instance(s), 3 shard(s)), its settings and all that is known of it: nobody is here to confirm it; give --yes to do it without being asked
        exit 3
    "#]],
    );
    check(
        &store,
        &["job", "remove", "nightly", "--yes"],
        expect![[r#"
        job nightly is removed, with 18 node(s)
        !   then: 10.0.0.12@-@93.b03d5512.1 stops working at the job; what runs may end
        !   then: 10.0.0.1@-@71.4f2a90c1.1 stops working at the job; what runs may end
    "#]],
    );
    assert!(store.everything().iter().all(|it| !it.starts_with("/nightly")), "{:?}", store.everything());
    check(
        &store,
        &["job", "remove", "hourly", "--server", "10.0.0.99", "--yes"],
        expect![[r#"
        server 10.0.0.99 is removed
    "#]],
    );
}
