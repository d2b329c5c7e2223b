//! Servers, for all jobs.

use expect_test::expect;

use super::common::Place;
use super::{check, fleet, on_both};

on_both!(servers_are_listed_and_steered_for_all_jobs);

fn servers_are_listed_and_steered_for_all_jobs(place: Place) {
    let store = fleet(place);
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
