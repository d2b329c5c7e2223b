//! Every command of an operator, against a registry on disk.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::needless_pass_by_value, reason = "an expectation is written where it is used")]

mod common;

use std::fs;
use std::time::Instant;

use common::{A, B, Store, spec};
use expect_test::{Expect, expect};

/// A fleet of two hosts with two jobs, one of them with troubles.
fn fleet() -> Store {
    let store = Store::new();
    let mut nightly = spec("nightly", "0 0 2 * * ?", 3);
    nightly.description = "settles the day".into();
    nightly.sharding_item_parameters = "0=Beijing,1=上海,2=Guangzhou".into();
    store.job(&nightly);
    store.job(&spec("hourly", "0 0 * * * ?", 2));
    store.write(
        "hourly",
        &[
            ("/sharding/0/cursor", "1767229200000"),
            ("/sharding/0/misfire", ""),
            ("/sharding/1/running", "10.0.0.99@-@5.dead.1"),
            ("/servers/10.0.0.99", "DISABLED"),
        ],
    );
    store
}

fn check(store: &Store, arguments: &[&str], expected: Expect) {
    expected.assert_eq(&store.shows(arguments));
}

/// It fails with this code, says this, and changes nothing.
fn refuses(store: &Store, arguments: &[&str], expected: Expect) {
    let before = store.everything();
    expected.assert_eq(&store.shows(arguments));
    assert_eq!(store.everything(), before, "{arguments:?} changed something");
}

#[test]
fn jobs_are_listed() {
    let store = fleet();
    check(
        &store,
        &["jobs"],
        expect![[r#"
        JOB      STATUS  CRON         SHARDS  INSTANCES  DESCRIPTION
        hourly   OK      0 0 * * * ?  2       2          -
        nightly  OK      0 0 2 * * ?  3       2          settles the day
    "#]],
    );
    check(
        &store,
        &["jobs", "night", "--json"],
        expect![[r#"
        [
          {
            "cron": "0 0 2 * * ?",
            "description": "settles the day",
            "instanceCount": 2,
            "jobName": "nightly",
            "paused": null,
            "problem": null,
            "shardingTotalCount": 3,
            "status": "OK"
          }
        ]
    "#]],
    );
    check(
        &store,
        &["jobs", "--status", "crashed"],
        expect![[r#"
        ! no jobs
    "#]],
    );
}

#[test]
fn a_job_and_its_shards_are_shown_also_when_a_runner_is_gone() {
    let store = fleet();
    check(
        &store,
        &["job", "show", "hourly"],
        expect![[r#"
        job          hourly
        status       OK
        cron         0 0 * * * ? (every hour)
        time zone    GMT+0:00
        next fire    0000-00-00 00:00:00
        leader       10.0.0.1@-@71.4f2a90c1.1

        SERVER     STATUS    INSTANCES
        10.0.0.1   ENABLED   1
        10.0.0.12  ENABLED   1
        10.0.0.99  DISABLED  0

        INSTANCE                   SINCE                SHARDS  RUNNING  MARKS
        10.0.0.12@-@93.b03d5512.1  0000-00-00 00:00:00  1       -        -
        10.0.0.1@-@71.4f2a90c1.1   0000-00-00 00:00:00  0       -        leads

        SHARD  STATUS   OWNER                      RUNNING ON                   SINCE                LAST SETTLED FIRE    MARKS          PARAMETER
        0      PENDING  10.0.0.1@-@71.4f2a90c1.1   -                            -                    0000-00-00 00:00:00  missed a fire  -
        1      RUNNING  10.0.0.12@-@93.b03d5512.1  10.0.0.99@-@5.dead.1 (gone)  0000-00-00 00:00:00  -                    -              -
    "#]],
    );
    check(
        &store,
        &["shards", "hourly"],
        expect![[r#"
        SHARD  STATUS   OWNER                      RUNNING ON                   SINCE                LAST SETTLED FIRE    MARKS          PARAMETER
        0      PENDING  10.0.0.1@-@71.4f2a90c1.1   -                            -                    0000-00-00 00:00:00  missed a fire  -
        1      RUNNING  10.0.0.12@-@93.b03d5512.1  10.0.0.99@-@5.dead.1 (gone)  0000-00-00 00:00:00  -                    -              -
    "#]],
    );
    check(
        &store,
        &["shards", "nightly", "--json"],
        expect![[r#"
        [
          {
            "crashed": false,
            "failover": null,
            "instanceAlive": true,
            "instanceId": "10.0.0.1@-@71.4f2a90c1.1",
            "item": 0,
            "lastSettledFire": null,
            "misfire": false,
            "missed": null,
            "parameter": "Beijing",
            "running": null,
            "runningSince": null,
            "serverIp": "10.0.0.1",
            "status": "PENDING",
            "surplus": false
          },
          {
            "crashed": false,
            "failover": null,
            "instanceAlive": true,
            "instanceId": "10.0.0.12@-@93.b03d5512.1",
            "item": 1,
            "lastSettledFire": null,
            "misfire": false,
            "missed": null,
            "parameter": "上海",
            "running": null,
            "runningSince": null,
            "serverIp": "10.0.0.12",
            "status": "PENDING",
            "surplus": false
          },
          {
            "crashed": false,
            "failover": null,
            "instanceAlive": true,
            "instanceId": "10.0.0.1@-@71.4f2a90c1.1",
            "item": 2,
            "lastSettledFire": null,
            "misfire": false,
            "missed": null,
            "parameter": "Guangzhou",
            "running": null,
            "runningSince": null,
            "serverIp": "10.0.0.1",
            "status": "PENDING",
            "surplus": false
          }
        ]
    "#]],
    );
    check(
        &store,
        &["job", "show", "nightly", "--yaml"],
        expect![[r#"
        cron: 0 0 2 * * ?
        description: settles the day
        disabled: false
        failover: false
        jobName: nightly
        jobParameter: ''
        maxTimeDiffSeconds: -1
        misfire: true
        monitorExecution: true
        overwrite: false
        reconcileIntervalMinutes: 10
        shardingItemParameters: 0=Beijing,1=上海,2=Guangzhou
        shardingTotalCount: 3
        staticSharding: false
        timeZone: GMT+0:00
    "#]],
    );
}

#[test]
fn servers_are_listed_and_steered_for_all_jobs() {
    let store = fleet();
    check(
        &store,
        &["servers"],
        expect![[r#"
        SERVER     STATUS   INSTANCES  JOBS  DISABLED JOBS
        10.0.0.1   OK       1          2     0
        10.0.0.12  OK       1          2     0
        10.0.0.99  OFFLINE  0          1     1
    "#]],
    );
    check(
        &store,
        &["server", "disable", "10.0.0.1"],
        expect![[r#"
            hourly: server 10.0.0.1 is disabled
            nightly: server 10.0.0.1 is disabled
            !   then: its shards move to the 1 instance(s) that may still work
            !   then: its shards move to the 1 instance(s) that may still work
        "#]],
    );
    check(
        &store,
        &["server", "disable", "10.0.0.1"],
        expect![[r#"
            ! hourly: nothing to do: it is so already
            ! nightly: nothing to do: it is so already
        "#]],
    );
    check(
        &store,
        &["servers", "--json"],
        expect![[r#"
        [
          {
            "disabledJobs": [
              "hourly",
              "nightly"
            ],
            "disabledJobsNum": 2,
            "instances": [
              "10.0.0.1@-@71.4f2a90c1.1"
            ],
            "instancesNum": 1,
            "jobNames": [
              "hourly",
              "nightly"
            ],
            "jobsNum": 2,
            "serverIp": "10.0.0.1"
          },
          {
            "disabledJobs": [],
            "disabledJobsNum": 0,
            "instances": [
              "10.0.0.12@-@93.b03d5512.1"
            ],
            "instancesNum": 1,
            "jobNames": [
              "hourly",
              "nightly"
            ],
            "jobsNum": 2,
            "serverIp": "10.0.0.12"
          },
          {
            "disabledJobs": [
              "hourly"
            ],
            "disabledJobsNum": 1,
            "instances": [],
            "instancesNum": 0,
            "jobNames": [
              "hourly"
            ],
            "jobsNum": 1,
            "serverIp": "10.0.0.99"
          }
        ]
    "#]],
    );
    check(
        &store,
        &["server", "enable", "10.0.0.1", "--json"],
        expect![[r#"
        {
          "hourly": {
            "changes": [
              "server 10.0.0.1 is enabled"
            ],
            "consequences": [
              "the shards are handed out anew, and run from the next fire on"
            ]
          },
          "nightly": {
            "changes": [
              "server 10.0.0.1 is enabled"
            ],
            "consequences": [
              "the shards are handed out anew, and run from the next fire on"
            ]
          }
        }
    "#]],
    );
    check(
        &store,
        &["server", "shutdown", "10.0.0.1", "--yes"],
        expect![[r#"
            hourly: instance 10.0.0.1@-@71.4f2a90c1.1 is shut down for this job
            nightly: instance 10.0.0.1@-@71.4f2a90c1.1 is shut down for this job
            !   then: its shards move to the 1 instance(s) that stay
            !   then: the processes themselves go on; the job comes back to them when they are restarted
            !   then: its shards move to the 1 instance(s) that stay
            !   then: the processes themselves go on; the job comes back to them when they are restarted
        "#]],
    );
    check(
        &store,
        &["server", "remove", "10.0.0.99", "--yes"],
        expect![[r#"
            hourly: server 10.0.0.99 is removed
        "#]],
    );
    check(
        &store,
        &["servers"],
        expect![[r#"
        SERVER     STATUS   INSTANCES  JOBS  DISABLED JOBS
        10.0.0.1   OFFLINE  0          2     0
        10.0.0.12  OK       1          2     0
    "#]],
    );
}

#[test]
fn a_trigger_asks_every_instance_or_one_and_nobody_twice() {
    let store = fleet();
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
    let asked = fleet();
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

#[test]
fn a_job_a_server_and_a_shard_are_disabled_and_enabled() {
    let store = fleet();
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

#[test]
fn a_pause_is_noted_and_leaves_disabled_what_was() {
    let store = fleet();
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

#[test]
fn instances_are_shut_down() {
    let store = fleet();
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

#[test]
fn a_job_is_removed_whole_and_only_after_a_yes() {
    let store = fleet();
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

#[test]
fn settings_are_edited_from_a_file_and_in_an_editor() {
    let store = fleet();
    let file = store.home().join("new.yaml");
    let (_, stored, _) = store.run(&["job", "show", "nightly", "--yaml"]);
    fs::write(&file, stored.replace("0 0 2 * * ?", "0 30 2 * * ?").replace("Count: 3", "Count: 4")).unwrap();
    let file = file.to_str().unwrap();
    refuses(
        &store,
        &["job", "edit", "nightly", "--dry-run", "--file", file],
        expect![[r#"
        - cron: 0 0 2 * * ?
        + cron: 0 30 2 * * ?
        - shardingTotalCount: 3
        + shardingTotalCount: 4
        ! this is what would change; nothing was changed
        !   then: it fires next at 0000-00-00 00:00:00 UTC
        !   then: the shards are handed out anew when those that move are at rest
    "#]],
    );
    check(
        &store,
        &["job", "edit", "nightly", "--file", file],
        expect![[r#"
        - cron: 0 0 2 * * ?
        + cron: 0 30 2 * * ?
        - shardingTotalCount: 3
        + shardingTotalCount: 4
        !   then: it fires next at 0000-00-00 00:00:00 UTC
        !   then: the shards are handed out anew when those that move are at rest
    "#]],
    );
    check(
        &store,
        &["job", "edit", "nightly", "--file", file],
        expect![[r#"
        ! nothing to do: it is so already
    "#]],
    );
    let edit = |editor: &str| {
        let mut command = store.command(&["job", "edit", "nightly"]);
        command.env("EDITOR", editor).env("TMPDIR", store.home());
        let (code, out, words) = common::ended(command);
        let draft = words.find("elasticjob-nightly-").map(|at| words[at..].trim().to_owned());
        let words = draft.iter().fold(words.clone(), |words, draft| words.replace(draft, "DRAFT"));
        (format!("exit {code}\n{}{}", store.normal(&out), store.normal(&words)), draft)
    };
    let (said, draft) = edit("sed -i 's/failover: false/failover: true/'");
    expect![[r#"
        exit 0
        - failover: false
        + failover: true
    "#]]
    .assert_eq(&said);
    assert_eq!(draft, None);
    expect![[r#"
        exit 0
        nothing was changed
    "#]]
    .assert_eq(&edit("true").0);
    expect![[r#"
        exit 1
        error: the editor `false` ended with exit status: 1; nothing was changed
    "#]]
    .assert_eq(&edit("false").0);
    let before = store.everything();
    let (said, draft) = edit("sed -i 's/^cron: .*/cron: 0 61 * * * ?/'");
    expect![[r#"
        exit 3
        error: job `nightly`: the new configuration is refused: cron `0 61 * * * ?` is no schedule: minute `61` at column 3: the minute is 0 to 59
          nothing was changed; your draft is in DIR/DRAFT
    "#]].assert_eq(&said);
    // What somebody wrote is not thrown away.
    assert!(fs::read_to_string(store.home().join(draft.unwrap())).unwrap().contains("0 61 * * * ?"));
    assert_eq!(store.everything(), before);
}

#[test]
fn an_edit_that_is_wrong_is_refused_and_changes_nothing() {
    let store = fleet();
    let (_, stored, _) = store.run(&["job", "show", "nightly", "--yaml"]);
    let path = store.home().join("new.yaml");
    let cases = [
        (
            stored.replace("0 0 2 * * ?", "0 0 25 * * ?"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: cron `0 0 25 * * ?` is no schedule: hour `25` at column 5: the hour is 0 to 23
            exit 3
        "#]],
        ),
        (
            stored.replace("shardingTotalCount: 3", "shardingTotalCount: 0"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: shardingTotalCount `0` is out of range: write a number from 1 to 1000000
            exit 3
        "#]],
        ),
        (
            stored.replace("shardingTotalCount: 3", "shardingTotalCount: 2"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: shardingItemParameters names item 2, but shardingTotalCount is 2: raise the count or drop the parameter
            exit 3
        "#]],
        ),
        (
            stored.replace("failover: false", "failover: [maybe"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: line 5, column 8: illegal placement of ':' indicator
            exit 3
        "#]],
        ),
        (
            stored.replace("failover: false", "failoverr: true"),
            expect![[r#"
            ! error: job `nightly`: the new configuration has an unknown setting `failoverr` (did you mean `failover`?): peers would refuse the whole of it
            exit 3
        "#]],
        ),
        (
            stored.replace("jobName: nightly", "jobName: daily"),
            expect![[r#"
            ! error: job `nightly`: the new configuration names job `daily`: a job keeps its name; write jobName: nightly
            exit 3
        "#]],
        ),
        (
            stored.replace("GMT+0:00", "Mars/Olympus"),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: timeZone `Mars/Olympus` is unknown: write GMT+8:00 or the like, or an IANA name such as Europe/Vienna
            exit 3
        "#]],
        ),
        (
            String::new(),
            expect![[r#"
            ! error: job `nightly`: the new configuration is refused: line 1, column 1: the document is empty: write `key: value` lines
            exit 3
        "#]],
        ),
    ];
    for (text, expected) in cases {
        fs::write(&path, text).unwrap();
        refuses(&store, &["job", "edit", "nightly", "--file", path.to_str().unwrap()], expected);
    }
}

#[test]
fn what_does_not_exist_is_named_with_what_does() {
    let store = fleet();
    refuses(
        &store,
        &["job", "show", "nigthly"],
        expect![[r#"
        ! error: there is no job `nigthly`: did you mean `nightly`?
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "trigger", "backup"],
        expect![[r#"
        ! error: there is no job `backup`: none of the 2 job(s) is spelled alike; see `elasticjob jobs`
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "show", "nightly/config"],
        expect![[r#"
        ! error: there is no job `nightly/config`: did you mean `nightly`?
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "disable", "nightly", "--shard", "3"],
        expect![[r#"
        ! error: job `nightly`: there is no shard 3: the job has shards 0 to 2
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "disable", "nightly", "--server", "10.0.0.2"],
        expect![[r#"
        ! error: job `nightly`: it has no server `10.0.0.2`; known: 10.0.0.1, 10.0.0.12
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["server", "disable", "10.0.0.2"],
        expect![[r#"
        ! error: no job knows a server `10.0.0.2`; known: 10.0.0.1, 10.0.0.12, 10.0.0.99
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["job", "edit", "nightly", "--file", "/no/such/file"],
        expect![[r#"
        ! error: /no/such/file: No such file or directory (os error 2)
        exit 2
    "#]],
    );
    refuses(
        &store,
        &["explain", "nightly", "--at", "yesterday"],
        expect![[r#"
        ! error: invalid value 'yesterday' for '--at <TIME>': `yesterday` is no time: write 0000-00-00 00:00:00Z, 2026-11-15 02:00 or 02:00
        ! 
        ! For more information, try '--help'.
        exit 2
    "#]],
    );
}

#[test]
fn a_registry_that_is_not_there_is_said_to_be_so_and_not_made() {
    let store = Store::new();
    check(
        &store,
        &["jobs"],
        expect![[r#"
        ! error: there is no registry in DIR/store: no worker has stored anything there yet
        exit 4
    "#]],
    );
    assert!(!store.path().exists());
    check(
        &store,
        &["jobs", "--registry", "embedded://"],
        expect![[r#"
        ! error: registry `embedded://` lives in the memory of one process, where no command can see it: give a worker a registry on disk, `embedded:///directory`, or a shared one
        exit 2
    "#]],
    );
    check(
        &store,
        &["jobs", "--registry", "nowhere"],
        expect![[r#"
        ! error: bad registry url `nowhere`: it has no scheme; write `embedded://`, `embedded://name` or `embedded:///directory`
        exit 2
    "#]],
    );
    let mut command = store.command(&["jobs"]);
    command.env_remove("ELASTICJOB_REGISTRY");
    let (code, _, words) = common::ended(command);
    expect![[r#"
        error: no registry: give --registry URL, set ELASTICJOB_REGISTRY, or write `registry: URL` into DIR/.config/elasticjob/config.yaml
    "#]].assert_eq(&store.normal(&words));
    assert_eq!(code, 2);
}

#[test]
fn a_registry_in_use_is_said_to_be_so() {
    let store = fleet();
    let held = elasticjob::registry::open(&store.url()).unwrap();
    check(
        &store,
        &["jobs"],
        expect![[r#"
        ! error: the registry in DIR/store is in use by another process: stop that process, give this one a directory of its own, or share a registry such as zookeeper://host:2181/namespace
        exit 4
    "#]],
    );
    drop(held);
}

#[test]
fn the_registry_is_found_in_files_too() {
    let store = fleet();
    let with = |name: &str, text: String, arguments: &[&str]| {
        let path = store.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let mut command = store.command(arguments);
        command.env_remove("ELASTICJOB_REGISTRY").env("ELASTICJOB_TEST_URL", store.url());
        let (code, out, words) = common::ended(command);
        assert_eq!(code, 0, "{words}");
        assert!(out.contains("nightly"), "{out}");
    };
    with(
        ".config/elasticjob/config.yaml",
        format!("# ours\nregistry: \"{}\" # on disk\n", store.url()),
        &["jobs"],
    );
    let jobs = "registry: ${ELASTICJOB_TEST_URL}\njobs:\n  x: { script: echo, cron: '* * * * * ?' }\n";
    let path = store.home().join("jobs.yaml");
    with("jobs.yaml", jobs.to_owned(), &["jobs", "--config", path.to_str().unwrap()]);
}

#[test]
fn a_dump_masks_addresses_as_a_whole() {
    check(
        &fleet(),
        &["job", "dump", "hourly"],
        expect![[r#"
        /hourly/sharding | 
        /hourly/sharding/1 | 
        /hourly/sharding/1/running | ip1@-@5.dead.1
        /hourly/sharding/1/instance | ip2@-@93.b03d5512.1
        /hourly/sharding/0 | 
        /hourly/sharding/0/misfire | 
        /hourly/sharding/0/instance | ip3@-@71.4f2a90c1.1
        /hourly/sharding/0/cursor | 1767229200000
        /hourly/servers | 
        /hourly/servers/ip1 | DISABLED
        /hourly/servers/ip2 | ENABLED
        /hourly/servers/ip3 | ENABLED
        /hourly/leader | 
        /hourly/leader/election | 
        /hourly/leader/election/instance | ip3@-@71.4f2a90c1.1
        /hourly/instances | 
        /hourly/instances/ip3@-@71.4f2a90c1.1 | jobInstanceId: ip3@-@71.4f2a90c1.1
        serverIp: ip3

        /hourly/instances/ip2@-@93.b03d5512.1 | jobInstanceId: ip2@-@93.b03d5512.1
        serverIp: ip2

        /hourly/config | cron: 0 0 * * * ?
        description: ''
        disabled: false
        failover: false
        jobName: hourly
        jobParameter: ''
        maxTimeDiffSeconds: -1
        misfire: true
        monitorExecution: true
        overwrite: false
        reconcileIntervalMinutes: 10
        shardingItemParameters: ''
        shardingTotalCount: 2
        staticSharding: false
        timeZone: GMT+0:00

    "#]],
    );
}

#[test]
fn a_dump_comes_from_the_port_of_a_process_too() {
    use elasticjob::ops::{DumpPort, Ops};
    let store = fleet();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let port = runtime.block_on(async {
        let ops = Ops::connect(store.url()).await.unwrap();
        DumpPort::open(0, ops).await.unwrap()
    });
    let from = port.address().to_string();
    // The registry is in use; only the port is asked.
    let (code, out, words) = store.run(&["job", "dump", "hourly", "--from", &from]);
    assert!(code == 0 && out.contains("/hourly/servers/ip1 | DISABLED\n"), "{out}{words}");
    let (code, _, words) = store.run(&["job", "dump", "daily", "--from", &from]);
    assert_eq!((code, words), (3, format!("error: the process at {from} knows no job `daily`\n")));
    drop((port, runtime));
    let (code, _, words) = store.run(&["job", "dump", "hourly", "--from", &from]);
    assert!(code == 4 && words.contains("does not answer"), "{words}");
}

#[test]
fn a_check_says_what_is_wrong_and_what_to_do() {
    let store = fleet();
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

#[test]
fn what_is_left_of_a_job_is_seen_and_what_never_was_one_is_not() {
    let store = Store::new();
    store.write("left", &[("/servers/10.0.0.1", "ENABLED"), ("/sharding/0/instance", A)]);
    store.write("lost+found", &[("/other", "x")]);
    check(
        &store,
        &["jobs"],
        expect![[r#"
        JOB   STATUS   CRON  SHARDS  INSTANCES  DESCRIPTION
        left  CRASHED  -     1       0          it has no configuration: start a worker that has the job, or remove what is left of it
    "#]],
    );
    check(
        &store,
        &["check"],
        expect![[r#"
        PROBLEM  left: it has no configuration: start a worker that has the job, or remove what is left of it
        PROBLEM  left: no instance is there: nothing of it runs
                 do: start a worker that has the job
        ! 2 problems
        exit 1
    "#]],
    );
    check(
        &store,
        &["job", "trigger", "left"],
        expect![[r#"
        ! error: job `left`: no instance of it is there: start a worker that has the job
        exit 3
    "#]],
    );
    check(
        &store,
        &["job", "edit", "left"],
        expect![[r#"
        ! error: job `left`: it has no configuration: start a worker that has the job, or remove what is left of it
        exit 3
    "#]],
    );
    check(
        &store,
        &["explain", "left"],
        expect![[r#"
        ! error: job `left`: it has no configuration: start a worker that has the job, or remove what is left of it
        exit 3
    "#]],
    );
    check(
        &store,
        &["job", "remove", "left", "--yes"],
        expect![[r#"
        job left is removed, with 6 node(s)
    "#]],
    );
}

#[test]
fn an_explanation_has_causes() {
    let store = fleet();
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

#[test]
fn cron_says_when_in_words_and_times_and_what_clock_changes_do() {
    let store = Store::new();
    let from = ["--from", "2026-01-01T00:00:00Z"];
    let cron = |arguments: &[&str]| {
        let (code, out, words) = store.run(&[&["cron"], arguments, &from].concat());
        format!("{out}{words}exit {code}\n")
    };
    expect![[r#"
        Thu 2026-01-01 02:30:00 CET
        Fri 2026-01-02 02:30:00 CET
        Sat 2026-01-03 02:30:00 CET
        at 02:30:00 every day (Europe/Vienna)
        note: on 2026-03-29 the clocks go from 02:00 to 03:00: fires in between are skipped, unless the property elasticjob.dst.gap says run-at-end
        note: on 2026-10-25 02:00 to 03:00 comes twice: fires in it run the second time only, unless the property elasticjob.dst.fold says first or both
        exit 0
    "#]].assert_eq(&cron(&["0 30 2 * * ?", "--zone", "Europe/Vienna", "-n", "3"]));
    expect![[r#"
        {
          "cron": "0 0/10 * * * ?",
          "description": "every 10 minutes",
          "fires": [
            "2026-01-01T00:10:00Z",
            "2026-01-01T00:20:00Z"
          ],
          "notes": [],
          "zone": "GMT+8:00"
        }
        exit 0
    "#]]
    .assert_eq(&cron(&["0 0/10 * * * ?", "--zone", "GMT+8:00", "-n", "2", "--json"]));
    expect![[r#"
        error: cron expression `0 0 2 * *`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 0 2 * ?`?
        exit 2
    "#]].assert_eq(&cron(&["0 0 2 * *"]));
    expect![[r#"
        error: no time zone is called `Mars/Olympus`; write an IANA name as in Europe/Vienna, or an offset as in GMT+8:00
        exit 2
    "#]].assert_eq(&cron(&["0 0 2 * * ?", "--zone", "Mars/Olympus"]));
}

const V2: &str = r#"{"jobName":"stock","jobClass":"com.acme.StockSync","jobType":"DATAFLOW","cron":"0 0/20 6-22 * * ?","shardingTotalCount":2,"shardingItemParameters":"0\u003dlinz,1\u003dgraz","failover":true,"misfire":true,"streamingProcess":false,"monitorPort":9888,"jobProperties":{"job_exception_handler":"com.acme.MailOnError"}}"#;

fn old_fleet() -> Store {
    let store = Store::new();
    store.write(
        "stock",
        &[
            ("/config", V2),
            ("/servers/10.0.0.1", ""),
            ("/servers/10.0.0.2", "DISABLED"),
            ("/sharding/0/instance", "10.0.0.1@-@4711"),
            ("/sharding/1/misfire", ""),
            ("/sharding/1/disabled", ""),
        ],
    );
    store.write(
        "bills",
        &[
            ("/config/jobClass", "com.acme.Bills"),
            ("/config/jobType", "SCRIPT"),
            ("/config/cron", "0 0 3 * * ?"),
            ("/config/shardingTotalCount", "2"),
            ("/config/scriptCommandLine", "/opt/bills.sh"),
            ("/servers/10.0.0.1/hostName", "linz"),
            ("/servers/10.0.0.1/sharding", "0,1"),
            ("/servers/10.0.0.2/paused", ""),
            ("/execution/1/misfire", ""),
            ("/execution/1/lastBeginTime", "1400000000000"),
            ("/offset/0", "4711"),
        ],
    );
    store
        .write("broken", &[("/config", r#"{"jobName":"broken","jobType":"SIMPLE","shardingTotalCount":1}"#)]);
    store
}

#[test]
fn jobs_of_older_generations_are_imported() {
    let store = old_fleet();
    check(
        &store,
        &["jobs"],
        expect![[r#"
        JOB     STATUS   CRON  SHARDS  INSTANCES  DESCRIPTION
        bills   CRASHED  -     0       0          its configuration is that of 1.x: convert it with `elasticjob import`
        broken  CRASHED  -     0       0          its configuration is that of 2.x: convert it with `elasticjob import`
        stock   CRASHED  -     2       0          its configuration is that of 2.x: convert it with `elasticjob import`
    "#]],
    );
    refuses(
        &store,
        &["import", "--dry-run"],
        expect![[r#"
        /bills | SCRIPT
        /bills/config | cron: 0 0 3 * * ?
            description: ''
            disabled: false
            failover: false
            jobName: bills
            jobParameter: ''
            maxTimeDiffSeconds: -1
            misfire: true
            monitorExecution: true
            overwrite: false
            props:
              script.command.line: /opt/bills.sh
            reconcileIntervalMinutes: 10
            shardingItemParameters: ''
            shardingTotalCount: 2
            staticSharding: false
        /bills/servers/10.0.0.1 | ENABLED
        /bills/servers/10.0.0.2 | DISABLED
        /bills/sharding/1/misfire |
        /stock | com.acme.StockSync
        /stock/config | cron: 0 0/20 6-22 * * ?
            description: ''
            disabled: false
            failover: true
            jobName: stock
            jobParameter: ''
            maxTimeDiffSeconds: -1
            misfire: true
            monitorExecution: true
            overwrite: false
            props:
              streaming.process: 'false'
            reconcileIntervalMinutes: 10
            shardingItemParameters: 0=linz,1=graz
            shardingTotalCount: 2
            staticSharding: false
        /stock/servers/10.0.0.1 | ENABLED
        /stock/servers/10.0.0.2 | DISABLED
        /stock/sharding/1/misfire |
        /stock/sharding/1/disabled |
        ! error: job `broken`: its configuration cannot be converted: jobClass is missing: name the class that runs the job; correct it there and try again
        ! job bills of 1.x:
        !   warning: offset of shard 0 is `4711`: nothing keeps offsets here; hand it to the job's own code
        !   warning: 1 node(s) with times and counts of past runs are left out
        !   warning: who owned which shard is left out: the first leader hands them out anew
        ! job stock of 2.x:
        !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
        !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
        !   warning: who owned which shard is left out: the first leader hands them out anew
        ! dry run: nothing was written
        ! error: 1 job(s) cannot be imported
        exit 3
    "#]],
    );
    refuses(
        &store,
        &["import", "stock"],
        expect![[r#"
        /stock | com.acme.StockSync
        /stock/config | cron: 0 0/20 6-22 * * ?
            description: ''
            disabled: false
            failover: true
            jobName: stock
            jobParameter: ''
            maxTimeDiffSeconds: -1
            misfire: true
            monitorExecution: true
            overwrite: false
            props:
              streaming.process: 'false'
            reconcileIntervalMinutes: 10
            shardingItemParameters: 0=linz,1=graz
            shardingTotalCount: 2
            staticSharding: false
        /stock/servers/10.0.0.1 | ENABLED
        /stock/servers/10.0.0.2 | DISABLED
        /stock/sharding/1/misfire |
        /stock/sharding/1/disabled |
        ! job stock of 2.x:
        !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
        !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
        !   warning: who owned which shard is left out: the first leader hands them out anew
        ! error: this replaces these jobs where they are: nobody is here to confirm it; give --yes to do it without being asked
        exit 3
    "#]],
    );
    check(
        &store,
        &["import", "stock", "bills", "--yes"],
        expect![[r#"
            /bills | SCRIPT
            /bills/config | cron: 0 0 3 * * ?
                description: ''
                disabled: false
                failover: false
                jobName: bills
                jobParameter: ''
                maxTimeDiffSeconds: -1
                misfire: true
                monitorExecution: true
                overwrite: false
                props:
                  script.command.line: /opt/bills.sh
                reconcileIntervalMinutes: 10
                shardingItemParameters: ''
                shardingTotalCount: 2
                staticSharding: false
            /bills/servers/10.0.0.1 | ENABLED
            /bills/servers/10.0.0.2 | DISABLED
            /bills/sharding/1/misfire |
            /stock | com.acme.StockSync
            /stock/config | cron: 0 0/20 6-22 * * ?
                description: ''
                disabled: false
                failover: true
                jobName: stock
                jobParameter: ''
                maxTimeDiffSeconds: -1
                misfire: true
                monitorExecution: true
                overwrite: false
                props:
                  streaming.process: 'false'
                reconcileIntervalMinutes: 10
                shardingItemParameters: 0=linz,1=graz
                shardingTotalCount: 2
                staticSharding: false
            /stock/servers/10.0.0.1 | ENABLED
            /stock/servers/10.0.0.2 | DISABLED
            /stock/sharding/1/misfire |
            /stock/sharding/1/disabled |
            ! job bills of 1.x:
            !   warning: offset of shard 0 is `4711`: nothing keeps offsets here; hand it to the job's own code
            !   warning: 1 node(s) with times and counts of past runs are left out
            !   warning: who owned which shard is left out: the first leader hands them out anew
            ! job stock of 2.x:
            !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
            !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
            !   warning: who owned which shard is left out: the first leader hands them out anew
            ! job bills is imported
            ! job stock is imported
        "#]],
    );
    check(
        &store,
        &["jobs"],
        expect![[r#"
        JOB     STATUS   CRON               SHARDS  INSTANCES  DESCRIPTION
        bills   CRASHED  0 0 3 * * ?        2       0          -
        broken  CRASHED  -                  0       0          its configuration is that of 2.x: convert it with `elasticjob import`
        stock   CRASHED  0 0/20 6-22 * * ?  2       0          -
    "#]],
    );
    expect![[r#"
        /bills | SCRIPT
        /bills/config | cron: 0 0 3 * * ?
        description: ''
        disabled: false
        failover: false
        jobName: bills
        jobParameter: ''
        maxTimeDiffSeconds: -1
        misfire: true
        monitorExecution: true
        overwrite: false
        props:
          script.command.line: /opt/bills.sh
        reconcileIntervalMinutes: 10
        shardingItemParameters: ''
        shardingTotalCount: 2
        staticSharding: false

        /bills/servers | 
        /bills/servers/10.0.0.1 | ENABLED
        /bills/servers/10.0.0.2 | DISABLED
        /bills/sharding | 
        /bills/sharding/1 | 
        /bills/sharding/1/misfire | 
        /broken | 
        /broken/config | {"jobName":"broken","jobType":"SIMPLE","shardingTotalCount":1}
        /stock | com.acme.StockSync
        /stock/config | cron: 0 0/20 6-22 * * ?
        description: ''
        disabled: false
        failover: true
        jobName: stock
        jobParameter: ''
        maxTimeDiffSeconds: -1
        misfire: true
        monitorExecution: true
        overwrite: false
        props:
          streaming.process: 'false'
        reconcileIntervalMinutes: 10
        shardingItemParameters: 0=linz,1=graz
        shardingTotalCount: 2
        staticSharding: false

        /stock/servers | 
        /stock/servers/10.0.0.1 | ENABLED
        /stock/servers/10.0.0.2 | DISABLED
        /stock/sharding | 
        /stock/sharding/1 | 
        /stock/sharding/1/disabled | 
        /stock/sharding/1/misfire | "#]]
    .assert_eq(&store.everything().join("\n"));
    refuses(
        &store,
        &["import", "stock"],
        expect![[r#"
        ! error: there is no job `stock` of 1.x or 2.x
        exit 3
    "#]],
    );
    let target = fleet();
    let url = old_fleet();
    check(
        &target,
        &["import", "stock", "--from", &url.url(), "--yes"],
        expect![[r#"
            /stock | com.acme.StockSync
            /stock/config | cron: 0 0/20 6-22 * * ?
                description: ''
                disabled: false
                failover: true
                jobName: stock
                jobParameter: ''
                maxTimeDiffSeconds: -1
                misfire: true
                monitorExecution: true
                overwrite: false
                props:
                  streaming.process: 'false'
                reconcileIntervalMinutes: 10
                shardingItemParameters: 0=linz,1=graz
                shardingTotalCount: 2
                staticSharding: false
            /stock/servers/10.0.0.1 | ENABLED
            /stock/servers/10.0.0.2 | DISABLED
            /stock/sharding/1/misfire |
            /stock/sharding/1/disabled |
            ! job stock of 2.x:
            !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
            !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
            !   warning: who owned which shard is left out: the first leader hands them out anew
            ! job stock is imported
        "#]],
    );
    refuses(
        &target,
        &["import", "stock", "--from", &url.url(), "--yes"],
        expect![[r#"
        /stock | com.acme.StockSync
        /stock/config | cron: 0 0/20 6-22 * * ?
            description: ''
            disabled: false
            failover: true
            jobName: stock
            jobParameter: ''
            maxTimeDiffSeconds: -1
            misfire: true
            monitorExecution: true
            overwrite: false
            props:
              streaming.process: 'false'
            reconcileIntervalMinutes: 10
            shardingItemParameters: 0=linz,1=graz
            shardingTotalCount: 2
            staticSharding: false
        /stock/servers/10.0.0.1 | ENABLED
        /stock/servers/10.0.0.2 | DISABLED
        /stock/sharding/1/misfire |
        /stock/sharding/1/disabled |
        ! job stock of 2.x:
        !   warning: monitorPort 9888 belongs to the process now: set the dump port of the worker
        !   warning: job_exception_handler `com.acme.MailOnError` is custom code: register a handler and set jobErrorHandlerType
        !   warning: who owned which shard is left out: the first leader hands them out anew
        ! error: job `stock`: a job of that name is there already: remove it first, or import into another namespace
        exit 3
    "#]],
    );
}

#[test]
fn an_old_job_that_is_still_at_work_is_not_imported() {
    let store = old_fleet();
    store.write("bills", &[("/servers/10.0.0.1/status", "READY")]);
    refuses(
        &store,
        &["import", "bills", "--yes"],
        expect![[r#"
        ! error: job `bills`: 10.0.0.1 is still at work: stop every process of the old generation first, because two generations must not share a namespace
        ! error: 1 job(s) cannot be imported
        exit 3
    "#]],
    );
}

#[test]
fn completions_and_manual_pages_are_made() {
    let store = Store::new();
    let (code, script, _) = store.run(&["completions", "bash"]);
    assert!(code == 0 && script.contains("_elasticjob"), "{script}");
    let (code, page, _) = store.run(&["man"]);
    assert!(code == 0 && page.contains(".TH elasticjob 1"), "{page}");
    let pages = store.home().join("man1");
    assert_eq!(store.run(&["man", pages.to_str().unwrap()]).0, 0);
    assert!(pages.join("elasticjob-job-trigger.1").exists());
}

#[test]
fn a_thousand_jobs_are_listed_at_once() {
    let store = Store::new();
    let ops = (0..1000).flat_map(|number| {
        let name = format!("job-{number:04}");
        let yaml = spec(&name, "0 0 2 * * ?", 2).to_yaml();
        let create = |path: String, data: &str| elasticjob::registry::Op::Create {
            path,
            data: data.to_owned(),
            kind: elasticjob::registry::Kind::Persistent,
        };
        [
            create(format!("/{name}/config"), &yaml),
            create(format!("/{name}/servers/10.0.0.1"), "ENABLED"),
            create(format!("/{name}/instances/{A}"), &common::instance(A)),
            create(format!("/{name}/sharding/0/instance"), A),
            create(format!("/{name}/sharding/1/instance"), A),
        ]
    });
    let ops: Vec<_> = ops.collect();
    common::runtime().block_on(async {
        let session = elasticjob::registry::open(&store.url()).unwrap().connect().await.unwrap();
        for chunk in ops.chunks(1000) {
            session.commit("", chunk.to_vec()).await.unwrap();
        }
        session.close().await;
    });
    let begun = Instant::now();
    let (code, out, _) = store.run(&["jobs"]);
    let took = begun.elapsed();
    assert_eq!((code, out.lines().count()), (0, 1001));
    assert!(took.as_secs() < 10, "{took:?}"); // Well under a second on an idle machine, also without optimisation.
}

#[test]
fn a_job_is_watched_until_somebody_ends_it() {
    use std::io::{BufRead, BufReader};
    let store = fleet();
    let mut child = store.command(&["job", "watch", "nightly"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let seen = lines.find(|line| line.as_ref().unwrap().contains("Guangzhou"));
    assert!(seen.is_some());
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Not a made-up fleet: a worker that was there, and has left.
#[test]
fn what_a_real_worker_left_is_seen_and_removed() {
    use elasticjob::{Event, Job, Recorded, Shard, Worker};
    let store = Store::new();
    common::runtime().block_on(async {
        let job = Job::simple("tick", async |_: Shard| Ok(())).cron("* * * * * ?").shards(2);
        let worker = Worker::new(store.url()).job(job).start().await.unwrap();
        let mut records = worker.records();
        while let Some(recorded) = records.next().await {
            if matches!(&recorded, Recorded::Record(it) if matches!(it.event, Event::RoundFinished { .. })) {
                break;
            }
        }
        worker.shutdown().await;
    });
    check(
        &store,
        &["jobs"],
        expect![[r#"
        JOB   STATUS   CRON         SHARDS  INSTANCES  DESCRIPTION
        tick  CRASHED  * * * * * ?  2       0          -
    "#]],
    );
    let (_, shards, _) = store.run(&["shards", "tick", "--json"]);
    assert!(shards.contains(r#""lastSettledFire": "20"#), "{shards}");
    assert!(shards.contains(r#""instanceAlive": false"#), "{shards}");
    let (code, out, _) = store.run(&["explain", "tick", "--at", "2126-01-01T00:00:00Z"]);
    assert!(code == 0 && out.contains("no instance is there"), "{out}");
    let (code, out, _) = store.run(&["job", "remove", "tick", "--yes"]);
    assert!(code == 0 && out.contains("job tick is removed"), "{out}");
    assert_eq!(store.everything(), Vec::<String>::new());
}
