//! What there is: jobs, shards, dumps, and what is left of them.

use std::time::Instant;

use expect_test::expect;

use super::common::{self, A, Place, Store, spec};
use super::{check, fleet, on_both};

on_both!(
    jobs_are_listed,
    a_job_and_its_shards_are_shown_also_when_a_runner_is_gone,
    a_dump_masks_addresses_as_a_whole,
    what_is_left_of_a_job_is_seen_and_what_never_was_one_is_not,
    a_job_is_watched_until_somebody_ends_it,
    what_a_real_worker_left_is_seen_and_removed,
    a_thousand_jobs_are_listed_at_once
);

fn jobs_are_listed(place: Place) {
    let store = fleet(place);
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

fn a_job_and_its_shards_are_shown_also_when_a_runner_is_gone(place: Place) {
    let store = fleet(place);
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

fn a_dump_masks_addresses_as_a_whole(place: Place) {
    check(
        &fleet(place),
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

fn what_is_left_of_a_job_is_seen_and_what_never_was_one_is_not(place: Place) {
    let store = Store::at(place);
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

fn a_job_is_watched_until_somebody_ends_it(place: Place) {
    use std::io::{BufRead, BufReader};
    let store = fleet(place);
    let mut child = store.command(&["job", "watch", "nightly"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let seen = lines.find(|line| line.as_ref().unwrap().contains("Guangzhou"));
    assert!(seen.is_some());
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Not a made-up fleet: a worker that was there, and has left.
fn what_a_real_worker_left_is_seen_and_removed(place: Place) {
    use elasticjob::{Event, Job, Recorded, Shard, Worker};
    let store = Store::at(place);
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

fn a_thousand_jobs_are_listed_at_once(place: Place) {
    let store = Store::at(place);
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
