//! The jobs file: what it may say, and what it answers to what it may not say.

use std::fmt::Write;
use std::time::Duration;

use elasticjob::file::{FileWork, JobsFile};
use elasticjob_core::spec::JobSpec;
use expect_test::{Expect, expect, expect_file};
use proptest::prelude::*;

fn env(name: &str) -> Option<String> {
    let value = match name {
        "CITY" => "Wien",
        "COUNT" => "4",
        "MAYBE" => "maybe",
        "CRON" => "0 60 * * * ?",
        "INJECTION" => "1, failover: true",
        "EMPTY" => "",
        _ => return None,
    };
    Some(value.to_owned())
}

fn parse(text: &str) -> JobsFile {
    JobsFile::parse(text, env).unwrap_or_else(|error| panic!("{error:#}"))
}

fn job(settings: &str) -> JobSpec {
    parse(&format!("jobs:\n  a: {settings}\n")).jobs.remove(0).spec
}

/// Shows every text with its error.
fn check(texts: &[&str], expected: &Expect) {
    let mut found = String::new();
    for text in texts {
        let error =
            JobsFile::parse(text, env).map(|file| format!("{file:?}")).map_err(|error| error.report());
        found.push_str(&error.unwrap_or_else(|report| report));
        found.push_str("\n\n");
    }
    expected.assert_eq(&found);
}

#[test]
fn what_a_file_must_be() {
    check(
        &[
            "",
            "# only a comment\n",
            "---\n",
            "~",
            "[]",
            "just text",
            "registry: embedded://\n",
            "jobs:\n",
            "jobs: [a]",
            "jobs: nightly",
            "jobs: {}\n---\njobs: {}\n",
            "jobs:\n\ta: {}\n",
            "jobs:\n  a:\n\t  cron: 0 0 2 * * ?\n",
            "jobs:\n  a: {\n",
            "jobs: {a: &x {label: *x}}",
            "{a: b}: c",
            "jobs: {a: !!binary aGk=}",
            "jobs: {a: !custom {cron: x}}",
            "jobs: {'${NAME}': {}}",
        ],
        &expect![[r#"
            line 1, column 1: the file is empty: write `jobs:` and below it the jobs, each under its name

            line 1, column 1: the file is empty: write `jobs:` and below it the jobs, each under its name
              |
            1 | # only a comment
              | ^

            line 1, column 1: the file is empty: write `jobs:` and below it the jobs, each under its name
              |
            1 | ---
              | ^

            line 1, column 1: the file is empty: write `jobs:` and below it the jobs, each under its name
              |
            1 | ~
              | ^

            line 1, column 1: the file must be a mapping: write `jobs:` and below it the jobs, each under its name
              |
            1 | []
              | ^

            line 1, column 1: the file must be a mapping: write `jobs:` and below it the jobs, each under its name
              |
            1 | just text
              | ^^^^^^^^^

            line 1, column 1: jobs is missing: write `jobs:` and below it the jobs, each under its name
              |
            1 | registry: embedded://
              | ^

            line 1, column 1: jobs is empty: write the jobs below it, each under its name
              |
            1 | jobs:
              | ^^^^

            line 1, column 7: jobs `[…]` is no mapping: write each job under its name
              |
            1 | jobs: [a]
              |       ^

            line 1, column 7: jobs `nightly` is no mapping: write each job under its name
              |
            1 | jobs: nightly
              |       ^^^^^^^

            line 2, column 1: a second document begins here: keep one, and put the other into a file of its own
              |
            2 | ---
              | ^^^

            line 2, column 1: a tab indents this line, which YAML does not allow: use spaces
              |
            2 |  a: {}
              | ^

            line 3, column 1: a tab indents this line, which YAML does not allow: use spaces
              |
            3 |    cron: 0 0 2 * * ?
              | ^

            line 2, column 6: this is not YAML: unclosed bracket '{'
              |
            2 |   a: {
              |      ^

            line 1, column 22: jobs.a.label has an alias of what contains it: write the value out
              |
            1 | jobs: {a: &x {label: *x}}
              |                      ^^

            line 1, column 1: the file has a key that is no text: quote it
              |
            1 | {a: b}: c
              | ^

            line 1, column 20: jobs.a has the tag `!!binary`: remove it
              |
            1 | jobs: {a: !!binary aGk=}
              |                    ^^^^

            line 1, column 19: jobs.a has the tag `!custom`: remove it
              |
            1 | jobs: {a: !custom {cron: x}}
              |                   ^

            line 1, column 8: jobs.${NAME} is a key: variables expand in values only, so write the key out
              |
            1 | jobs: {'${NAME}': {}}
              |        ^^^^^^^^^

        "#]],
    );
}

#[test]
fn keys_that_nobody_knows() {
    check(
        &[
            "job: {}",
            "elasticjob:\n  jobs: {}\n",
            "regCenter: {serverLists: 'localhost:2181'}\njobs: {}",
            "jobs: {a: {shardingCount: 3}}",
            "jobs: {a: {fail_over: true}}",
            "jobs: {a: {colour: red}}",
            "jobs: {}\nworker: {shutdown: 3s}",
            "jobs: {}\nworker: {shardingTotalCount: 3}",
            "jobs: {}\nworker: 3",
            "jobs: {a: {cron: 0 0,30 * * * ?}}",
            "jobs: {a: {cron: 0 0,15,30 * * * ?}}",
            "jobs: {a: {jobParameter: Wien,Graz}}",
            "jobs: {a: {props: {cities: Wien,Graz}}}",
            "jobs: {a: {shardingTotalCount: 2, shardingItemParameters: 0=A,1=B}}",
        ],
        &expect![[r#"
            line 1, column 1: job is no setting of the file: did you mean jobs? known are registry, worker, jobs
              |
            1 | job: {}
              | ^^^

            line 1, column 1: elasticjob is not needed: write what stands below it at the top of the file
              |
            1 | elasticjob:
              | ^^^^^^^^^^

            line 1, column 1: regCenter is written as an address: `registry: zookeeper://host:2181/namespace` at the top of the file
              |
            1 | regCenter: {serverLists: 'localhost:2181'}
              | ^^^^^^^^^

            line 1, column 12: jobs.a.shardingCount is no setting of a job: did you mean shardingTotalCount? known are cron, timeZone, shardingTotalCount, shardingItemParameters, jobParameter, script, http, elasticJobType, props, monitorExecution, failover, misfire, maxTimeDiffSeconds, reconcileIntervalMinutes, jobShardingStrategyType, jobExecutorThreadPoolSizeProviderType, jobErrorHandlerType, jobListenerTypes, description, disabled, overwrite, label, staticSharding, every, delay, validFrom, validUntil, catchUp, startJitter, timeLimit, retries, retryBackoff, retryBackoffMax
              |
            1 | jobs: {a: {shardingCount: 3}}
              |            ^^^^^^^^^^^^^

            line 1, column 12: jobs.a.fail_over is no setting of a job: did you mean failover? known are cron, timeZone, shardingTotalCount, shardingItemParameters, jobParameter, script, http, elasticJobType, props, monitorExecution, failover, misfire, maxTimeDiffSeconds, reconcileIntervalMinutes, jobShardingStrategyType, jobExecutorThreadPoolSizeProviderType, jobErrorHandlerType, jobListenerTypes, description, disabled, overwrite, label, staticSharding, every, delay, validFrom, validUntil, catchUp, startJitter, timeLimit, retries, retryBackoff, retryBackoffMax
              |
            1 | jobs: {a: {fail_over: true}}
              |            ^^^^^^^^^

            line 1, column 12: jobs.a.colour is no setting of a job: known are cron, timeZone, shardingTotalCount, shardingItemParameters, jobParameter, script, http, elasticJobType, props, monitorExecution, failover, misfire, maxTimeDiffSeconds, reconcileIntervalMinutes, jobShardingStrategyType, jobExecutorThreadPoolSizeProviderType, jobErrorHandlerType, jobListenerTypes, description, disabled, overwrite, label, staticSharding, every, delay, validFrom, validUntil, catchUp, startJitter, timeLimit, retries, retryBackoff, retryBackoffMax
              |
            1 | jobs: {a: {colour: red}}
              |            ^^^^^^

            line 2, column 10: worker.shutdown is no setting of worker: known are preferredNetworkInterface, preferredNetworkIp, shutdownGrace, statusPort, dumpPort, eventFile
              |
            2 | worker: {shutdown: 3s}
              |          ^^^^^^^^

            line 2, column 10: worker.shardingTotalCount is no setting of worker: known are preferredNetworkInterface, preferredNetworkIp, shutdownGrace, statusPort, dumpPort, eventFile
              |
            2 | worker: {shardingTotalCount: 3}
              |          ^^^^^^^^^^^^^^^^^^

            line 2, column 9: worker `3` is no mapping: write settings below the key
              |
            2 | worker: 3
              |         ^

            line 1, column 22: jobs.a.30 * * * ? is no setting: a comma ends a value between braces, so put a value that has commas between quotes
              |
            1 | jobs: {a: {cron: 0 0,30 * * * ?}}
              |                      ^^^^^^^^^^

            line 1, column 22: jobs.a.15 is no setting: a comma ends a value between braces, so put a value that has commas between quotes
              |
            1 | jobs: {a: {cron: 0 0,15,30 * * * ?}}
              |                      ^^

            line 1, column 31: jobs.a.Graz is no setting: a comma ends a value between braces, so put a value that has commas between quotes
              |
            1 | jobs: {a: {jobParameter: Wien,Graz}}
              |                               ^^^^

            line 1, column 33: jobs.a.props.Graz has no value: write one, '' if it is empty; between braces a value that has commas needs quotes
              |
            1 | jobs: {a: {props: {cities: Wien,Graz}}}
              |                                 ^^^^

            line 1, column 63: jobs.a.1=B is no setting: a comma ends a value between braces, so put a value that has commas between quotes
              |
            1 | jobs: {a: {shardingTotalCount: 2, shardingItemParameters: 0=A,1=B}}
              |                                                               ^^^

        "#]],
    );
}

#[test]
fn keys_of_other_files() {
    check(
        &[
            "jobs: {a: {elasticJobClass: org.example.CleanUp}}",
            "jobs: {a: {elastic-job-class: org.example.CleanUp}}",
            "jobs: {a: {jobName: b}}",
            "jobs: {a: {jobBootstrapBeanName: b}}",
            "jobs: {a: {url: 'https://example.com'}}",
            "jobs: {a: {dataflow: {}}}",
            "jobs: {a: {streaming-process: true}}",
            "jobs: {a: {scriptCommandLine: date}}",
            "jobs: {a: {tracing: {}}}",
        ],
        &expect![[r#"
            line 1, column 12: jobs.a.elasticJobClass names a Java class, but code is bound to a job by the job's name: remove the key, and bind the code in the program
              |
            1 | jobs: {a: {elasticJobClass: org.example.CleanUp}}
              |            ^^^^^^^^^^^^^^^

            line 1, column 12: jobs.a.elastic-job-class names a Java class, but code is bound to a job by the job's name: remove the key, and bind the code in the program
              |
            1 | jobs: {a: {elastic-job-class: org.example.CleanUp}}
              |            ^^^^^^^^^^^^^^^^^

            line 1, column 12: jobs.a.jobName is not needed, the job's name is the key above: remove it
              |
            1 | jobs: {a: {jobName: b}}
              |            ^^^^^^^

            line 1, column 12: jobs.a.jobBootstrapBeanName is not needed, a job is triggered by its name: remove it
              |
            1 | jobs: {a: {jobBootstrapBeanName: b}}
              |            ^^^^^^^^^^^^^^^^^^^^

            line 1, column 12: jobs.a.url is called http here: rename the key
              |
            1 | jobs: {a: {url: 'https://example.com'}}
              |            ^^^

            line 1, column 12: jobs.a.dataflow is not written in the file: remove the key, and bind code to the job's name
              |
            1 | jobs: {a: {dataflow: {}}}
              |            ^^^^^^^^

            line 1, column 12: jobs.a.streaming-process is a property: write `streaming.process: true` below props
              |
            1 | jobs: {a: {streaming-process: true}}
              |            ^^^^^^^^^^^^^^^^^

            line 1, column 12: jobs.a.scriptCommandLine is called script here: rename the key
              |
            1 | jobs: {a: {scriptCommandLine: date}}
              |            ^^^^^^^^^^^^^^^^^

            line 1, column 12: jobs.a.tracing is not available in this version: remove the key
              |
            1 | jobs: {a: {tracing: {}}}
              |            ^^^^^^^

        "#]],
    );
}

#[test]
fn one_setting_twice() {
    check(
        &[
            "jobs:\n  a: {}\n  b: {}\n  a: {}\n",
            "jobs: {}\njobs: {}\n",
            "jobs: {a: {cron: 0 0 2 * * ?, cron: 0 0 3 * * ?}}",
            "jobs:\n  a:\n    shardingTotalCount: 3\n    sharding-total-count: 3\n",
            "jobs: {a: {type: script, elasticJobType: SCRIPT, script: date}}",
            "jobs: {a: {jobExecutorServiceHandlerType: CPU, jobExecutorThreadPoolSizeProviderType: CPU}}",
            "jobs: {a: {props: {k: 1, k: 2}}}",
            "jobs: {a: {shardingItemParameters: {0: A, '00': B}}}",
        ],
        &expect![[r#"
            line 4, column 3: jobs.a stands twice, first in line 2: keep one of them
              |
            4 |   a: {}
              |   ^

            line 2, column 1: jobs stands twice, first in line 1: keep one of them
              |
            2 | jobs: {}
              | ^^^^

            line 1, column 31: jobs.a.cron stands twice, first in line 1: keep one of them
              |
            1 | jobs: {a: {cron: 0 0 2 * * ?, cron: 0 0 3 * * ?}}
              |                               ^^^^

            line 4, column 5: jobs.a.sharding-total-count is another spelling of shardingTotalCount: keep one of them
              |
            4 |     sharding-total-count: 3
              |     ^^^^^^^^^^^^^^^^^^^^

            line 1, column 26: jobs.a.elasticJobType is another name of type: keep one of them
              |
            1 | jobs: {a: {type: script, elasticJobType: SCRIPT, script: date}}
              |                          ^^^^^^^^^^^^^^

            line 1, column 48: jobs.a.jobExecutorThreadPoolSizeProviderType is another name of jobExecutorServiceHandlerType: keep one of them
              |
            1 | jobs: {a: {jobExecutorServiceHandlerType: CPU, jobExecutorThreadPoolSizeProviderType: CPU}}
              |                                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

            line 1, column 26: jobs.a.props.k stands twice, first in line 1: keep one of them
              |
            1 | jobs: {a: {props: {k: 1, k: 2}}}
              |                          ^

            line 1, column 43: jobs.a.shardingItemParameters.00 is the second parameter of item 0: keep one
              |
            1 | jobs: {a: {shardingItemParameters: {0: A, '00': B}}}
              |                                           ^^^^

        "#]],
    );
}

#[test]
fn values_of_the_wrong_type() {
    check(
        &[
            "jobs:\n  clean-up:\n    failover: maybe\n",
            "jobs: {a: {misfire: 1}}",
            "jobs: {a: {failover: }}",
            "jobs: {a: {failover: [true]}}",
            "jobs: {a: {failover: ''}}",
            "jobs: {a: {shardingTotalCount: three}}",
            "jobs: {a: {shardingTotalCount: 010}}",
            "jobs: {a: {shardingTotalCount: 3.0}}",
            "jobs: {a: {shardingTotalCount: -1}}",
            "jobs: {a: {maxTimeDiffSeconds: 99999999999}}",
            "jobs: {a: {jobParameter: {x: y}}}",
            "jobs: {a: {props: [x]}}",
            "jobs: {a: {props: {script: {command: x}}}}",
            "jobs: {a: {jobListenerTypes: {x: y}}}",
            "jobs: {a: {jobListenerTypes: [x, [y]]}}",
            "jobs: {a: nightly}",
            "jobs: {a: [x]}",
            "jobs: {}\nworker: {shutdownGrace: 30}",
            "jobs: {}\nworker: {shutdownGrace: -3s}",
            "jobs: {}\nworker: {shutdownGrace: 3 days}",
            "jobs: {}\nworker: {statusPort: 99999}",
            "jobs: {}\nworker: {dumpPort: localhost}",
            "jobs: {}\nworker: {preferredNetworkIp: '*.0'}",
            "jobs: {}\nworker: {preferredNetworkInterface: ' '}",
            "jobs: {}\nregistry:\n",
            "jobs: {}\nregistry: []\n",
        ],
        &expect![[r#"
            line 3, column 15: jobs.clean-up.failover `maybe` is no boolean: write true or false
              |
            3 |     failover: maybe
              |               ^^^^^

            line 1, column 21: jobs.a.misfire `1` is no boolean: write true or false
              |
            1 | jobs: {a: {misfire: 1}}
              |                     ^

            line 1, column 12: jobs.a.failover has no value: write one, or remove the key
              |
            1 | jobs: {a: {failover: }}
              |            ^^^^^^^^

            line 1, column 22: jobs.a.failover `[…]` is no boolean: write true or false
              |
            1 | jobs: {a: {failover: [true]}}
              |                      ^

            line 1, column 22: jobs.a.failover `` is no boolean: write true or false
              |
            1 | jobs: {a: {failover: ''}}
              |                      ^^

            line 1, column 32: jobs.a.shardingTotalCount `three` is no integer: write a decimal number
              |
            1 | jobs: {a: {shardingTotalCount: three}}
              |                                ^^^^^

            line 1, column 32: jobs.a.shardingTotalCount `010` is no integer: write a decimal number
              |
            1 | jobs: {a: {shardingTotalCount: 010}}
              |                                ^^^

            line 1, column 32: jobs.a.shardingTotalCount `3.0` is no integer: write a decimal number
              |
            1 | jobs: {a: {shardingTotalCount: 3.0}}
              |                                ^^^

            line 1, column 32: jobs.a.shardingTotalCount `-1` is out of range: write at least 1
              |
            1 | jobs: {a: {shardingTotalCount: -1}}
              |                                ^^

            line 1, column 32: jobs.a.maxTimeDiffSeconds `99999999999` is out of range: write a number of 32 bits
              |
            1 | jobs: {a: {maxTimeDiffSeconds: 99999999999}}
              |                                ^^^^^^^^^^^

            line 1, column 26: jobs.a.jobParameter `{…}` is no text: write a single value
              |
            1 | jobs: {a: {jobParameter: {x: y}}}
              |                          ^

            line 1, column 19: jobs.a.props `[…]` is no mapping: write `key: value` lines below the key
              |
            1 | jobs: {a: {props: [x]}}
              |                   ^

            line 1, column 28: jobs.a.props.script `{…}` is no text: write a single value, and nested keys with dots
              |
            1 | jobs: {a: {props: {script: {command: x}}}}
              |                            ^

            line 1, column 30: jobs.a.jobListenerTypes `{…}` is no list: write `- name` lines below the key
              |
            1 | jobs: {a: {jobListenerTypes: {x: y}}}
              |                              ^

            line 1, column 34: jobs.a.jobListenerTypes[1] `[…]` is no text: write a single value
              |
            1 | jobs: {a: {jobListenerTypes: [x, [y]]}}
              |                                  ^

            line 1, column 11: jobs.a `nightly` is no job: write its settings below its name
              |
            1 | jobs: {a: nightly}
              |           ^^^^^^^

            line 1, column 11: jobs.a `[…]` is no job: write its settings below its name
              |
            1 | jobs: {a: [x]}
              |           ^

            line 2, column 25: worker.shutdownGrace `30` is no duration: write a number and its unit, as in 30s or 2m
              |
            2 | worker: {shutdownGrace: 30}
              |                         ^^

            line 2, column 25: worker.shutdownGrace `-3s` is no duration: write a number and its unit, as in 30s or 2m
              |
            2 | worker: {shutdownGrace: -3s}
              |                         ^^^

            line 2, column 25: worker.shutdownGrace `3 days` is no duration: write a number and its unit, as in 30s or 2m
              |
            2 | worker: {shutdownGrace: 3 days}
              |                         ^^^^^^

            line 2, column 22: worker.statusPort `99999` is neither a port nor an address with a port: write 9400 to listen on this machine only, or 0.0.0.0:9400 for others too
              |
            2 | worker: {statusPort: 99999}
              |                      ^^^^^

            line 2, column 20: worker.dumpPort `localhost` is neither a port nor an address with a port: write 9400 to listen on this machine only, or 0.0.0.0:9400 for others too
              |
            2 | worker: {dumpPort: localhost}
              |                    ^^^^^^^^^

            line 2, column 30: worker.preferredNetworkIp `*.0` is neither the beginning of an address nor a regular expression: uncounted repetition operator must be applied to a sub-expression
              |
            2 | worker: {preferredNetworkIp: '*.0'}
              |                              ^^^^^

            line 2, column 37: worker.preferredNetworkInterface ` ` is blank: write a value, or remove the key
              |
            2 | worker: {preferredNetworkInterface: ' '}
              |                                     ^^^

            line 2, column 1: registry has no value: write one, or remove the key
              |
            2 | registry:
              | ^^^^^^^^

            line 2, column 11: registry `[…]` is no text: write a single value
              |
            2 | registry: []
              |           ^

        "#]],
    );
}

#[test]
fn values_that_no_job_can_have() {
    check(
        &[
            "jobs:\n  a/b: {}\n",
            "jobs:\n  '': {}\n",
            "jobs:\n  zookeeper: {}\n",
            "jobs: {a: {shardingTotalCount: 0}}",
            "jobs: {a: {shardingTotalCount: 2000000}}",
            "jobs: {a: {shardingItemParameters: 0}}",
            "jobs: {a: {shardingItemParameters: '0=A,0=B'}}",
            "jobs: {a: {shardingItemParameters: '0=A,1=B'}}",
            "jobs:\n  a:\n    shardingItemParameters:\n      0: A\n      1: B\n",
            "jobs:\n  a:\n    shardingItemParameters: [A, B]\n",
            "jobs: {a: {shardingItemParameters: {x: A}}}",
            "jobs: {a: {shardingItemParameters: ['A=B']}}",
            "jobs: {a: {shardingItemParameters: {0: [A]}}}",
            "jobs: {a: {jobExecutorThreadPoolSizeProviderType: GPU}}",
            "jobs: {a: {job-executor-service-handler-type: GPU}}",
            "jobs: {a: {props: {'': x}}}",
        ],
        &expect![[r#"
            line 2, column 3: jobs has the name `a/b`, which contains `/`: use a name without it
              |
            2 |   a/b: {}
              |   ^^^

            line 2, column 3: jobs has the name ``, which is blank: give the job a name
              |
            2 |   '': {}
              |   ^^

            line 2, column 3: jobs has the name `zookeeper`, which is reserved by the registry: use another name
              |
            2 |   zookeeper: {}
              |   ^^^^^^^^^

            line 1, column 32: jobs.a.shardingTotalCount `0` is out of range: write a number from 1 to 1000000
              |
            1 | jobs: {a: {shardingTotalCount: 0}}
              |                                ^

            line 1, column 32: jobs.a.shardingTotalCount `2000000` is out of range: write a number from 1 to 1000000
              |
            1 | jobs: {a: {shardingTotalCount: 2000000}}
              |                                ^^^^^^^

            line 1, column 36: jobs.a.shardingItemParameters has `0`: write each element as item=text, with neither `,` nor `=` in the text
              |
            1 | jobs: {a: {shardingItemParameters: 0}}
              |                                    ^

            line 1, column 36: jobs.a.shardingItemParameters names item 0 twice: keep one of the two
              |
            1 | jobs: {a: {shardingItemParameters: '0=A,0=B'}}
              |                                    ^^^^^^^^^

            line 1, column 36: jobs.a.shardingItemParameters names item 1, but shardingTotalCount is 1: raise the count or drop the parameter
              |
            1 | jobs: {a: {shardingItemParameters: '0=A,1=B'}}
              |                                    ^^^^^^^^^

            line 5, column 7: jobs.a.shardingItemParameters names item 1, but shardingTotalCount is 1: raise the count or drop the parameter
              |
            5 |       1: B
              |       ^

            line 3, column 33: jobs.a.shardingItemParameters names item 1, but shardingTotalCount is 1: raise the count or drop the parameter
              |
            3 |     shardingItemParameters: [A, B]
              |                                 ^

            line 1, column 37: jobs.a.shardingItemParameters.x is no item: write its number before the colon
              |
            1 | jobs: {a: {shardingItemParameters: {x: A}}}
              |                                     ^

            line 1, column 37: jobs.a.shardingItemParameters[0] `A=B` has `,` or `=`, which no item parameter can have: remove it
              |
            1 | jobs: {a: {shardingItemParameters: ['A=B']}}
              |                                     ^^^^^

            line 1, column 40: jobs.a.shardingItemParameters.0 `[…]` is no text: write a single value
              |
            1 | jobs: {a: {shardingItemParameters: {0: [A]}}}
              |                                        ^

            line 1, column 51: jobs.a.jobExecutorThreadPoolSizeProviderType `GPU` is unknown: write CPU, SINGLE_THREAD or a number of at least 1
              |
            1 | jobs: {a: {jobExecutorThreadPoolSizeProviderType: GPU}}
              |                                                   ^^^

            line 1, column 47: jobs.a.job-executor-service-handler-type `GPU` is unknown: write CPU, SINGLE_THREAD or a number of at least 1
              |
            1 | jobs: {a: {job-executor-service-handler-type: GPU}}
              |                                               ^^^

            line 1, column 20: jobs.a.props. has an empty key: name the property
              |
            1 | jobs: {a: {props: {'': x}}}
              |                    ^^

        "#]],
    );
}

#[test]
fn crons_and_zones() {
    check(
        &[
            "jobs:\n  a:\n    cron: 0 60 * * * ?\n",
            "jobs:\n  a:\n    cron: \"0 0 12 ? * MON-FRI/2\"\n",
            "jobs:\n  a:\n    cron: '*/5 8-18 * * 1-5'\n",
            "jobs:\n  a:\n    cron: '@daily'\n",
            "jobs:\n  a:\n    cron: every day\n",
            "jobs:\n  a:\n    cron: ''\n",
            "jobs:\n  a:\n    cron:\n",
            "jobs:\n  a:\n    cron: */5 * * * * ?\n",
            "jobs:\n  a:\n    cron: ${CRON}\n",
            "jobs:\n  a:\n    timeZone: Europe/Wien\n",
            "jobs:\n  a:\n    time-zone: GMT+25\n",
        ],
        &expect![[r#"
            line 3, column 13: jobs.a.cron `0 60 * * * ?` is no cron expression: minute `60`: the minute is 0 to 59
              |
            3 |     cron: 0 60 * * * ?
              |             ^^

            line 3, column 30: jobs.a.cron `0 0 12 ? * MON-FRI/2` is no cron expression: day of week `/2`: a step after a name has no effect in Quartz; write the days as numbers (1 is Sunday) to step through them, as in 2-6/2
              |
            3 |     cron: "0 0 12 ? * MON-FRI/2"
              |                              ^^

            line 3, column 11: jobs.a.cron `*/5 8-18 * * 1-5` is no cron expression: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 */5 8-18 ? * MON-FRI`?
              |
            3 |     cron: '*/5 8-18 * * 1-5'
              |           ^^^^^^^^^^^^^^^^^^

            line 3, column 11: jobs.a.cron `@daily` is no cron expression: names of schedules are not part of the Quartz dialect; did you mean `0 0 0 * * ?`?
              |
            3 |     cron: '@daily'
              |           ^^^^^^^^

            line 3, column 11: jobs.a.cron `every day` is no cron expression: 2 fields are too few; an expression is: second minute hour day-of-month month day-of-week [year]
              |
            3 |     cron: every day
              |           ^^^^^^^^^

            JobsFile { registry: None, worker: Settings { preferred_interface: None, preferred_ip: None, shutdown_grace: None, status_port: None, dump_port: None, event_file: None }, jobs: [FileJob { spec: JobSpec { job_name: "a", cron: Some(""), time_zone: None, sharding_total_count: 1, sharding_item_parameters: "", job_parameter: "", monitor_execution: true, failover: false, misfire: true, max_time_diff_seconds: -1, reconcile_interval_minutes: 10, job_sharding_strategy_type: None, job_executor_thread_pool_size_provider_type: None, job_error_handler_type: None, job_listener_types: [], job_extra_configurations: None, description: "", props: {}, disabled: false, overwrite: false, label: None, static_sharding: false, unknown: {}, pool_key: ThreadPoolSizeProvider }, work: Code, job_type: None, line: 2 }] }

            line 3, column 5: jobs.a.cron has no value: write one, or remove the key
              |
            3 |     cron:
              |     ^^^^

            line 3, column 11: a value that starts with `*` is an alias to YAML: put it between quotes
              |
            3 |     cron: */5 * * * * ?
              |           ^

            line 3, column 11: jobs.a.cron `0 60 * * * ?` is no cron expression: minute `60`: the minute is 0 to 59
              |
            3 |     cron: ${CRON}
              |           ^^^^^^^

            line 3, column 15: jobs.a.timeZone `Europe/Wien` is no time zone: write an IANA name such as Europe/Vienna, or an offset such as GMT+8:00
              |
            3 |     timeZone: Europe/Wien
              |               ^^^^^^^^^^^

            line 3, column 16: jobs.a.time-zone `GMT+25` is no time zone: write an IANA name such as Europe/Vienna, or an offset such as GMT+8:00
              |
            3 |     time-zone: GMT+25
              |                ^^^^^^

        "#]],
    );
}

#[test]
fn kinds_of_jobs() {
    check(
        &[
            "jobs: {a: {elasticJobType: HTTP, props: {http.uri: ''}}}",
            "jobs: {a: {elasticJobType: HTTP}}",
            "jobs: {a: {props: {http.uri: 'http://x'}}}",
            "jobs: {a: {http: 'http://x', props: {http.uri: 'http://x'}}}",
            "jobs: {a: {http: 'http://x', script: date}}",
            "jobs: {a: {type: HTTP, script: date}}",
            "jobs: {a: {type: script, http: 'http://x'}}",
            "jobs: {a: {http: example.com}}",
            "jobs: {a: {http: [a]}}",
            "jobs: {a: {script: []}}",
            "jobs: {a: {script: ['', x]}}",
            "jobs: {a: {script: [date, ~]}}",
            "jobs: {a: {script: [date, [u]]}}",
            "jobs: {a: {script: {a: b}}}",
            "jobs: {a: {elastic-job-type: dataflow}}",
            "jobs: {a: {type: simple}}",
            "jobs: {a: {type: script}}",
            "jobs: {a: {type: script, props: {script.command.line: ''}}}",
            "jobs: {a: {script: }}",
            "jobs: {a: {script: ' '}}",
            "jobs: {a: {script: date, props: {script.command.line: date}}}",
            "jobs: {a: {props: {script.command.line: date}}}",
        ],
        &expect![[r#"
            line 1, column 34: jobs.a.props has an empty http.uri: write the address
              |
            1 | jobs: {a: {elasticJobType: HTTP, props: {http.uri: ''}}}
              |                                  ^^^^^

            line 1, column 12: jobs.a.elasticJobType is HTTP, but there is no address: add `http: https://example.com/`
              |
            1 | jobs: {a: {elasticJobType: HTTP}}
              |            ^^^^^^^^^^^^^^

            line 1, column 12: jobs.a.props has http.uri, but the job is no HTTP job: add `elasticJobType: HTTP`
              |
            1 | jobs: {a: {props: {http.uri: 'http://x'}}}
              |            ^^^^^

            line 1, column 30: jobs.a.props has http.uri, but http says it already: keep one of them
              |
            1 | jobs: {a: {http: 'http://x', props: {http.uri: 'http://x'}}}
              |                              ^^^^^

            line 1, column 12: jobs.a.http makes the job of two types: keep one of them
              |
            1 | jobs: {a: {http: 'http://x', script: date}}
              |            ^^^^

            line 1, column 12: jobs.a.type is HTTP, but the job has script: keep one of them
              |
            1 | jobs: {a: {type: HTTP, script: date}}
              |            ^^^^

            line 1, column 12: jobs.a.type is SCRIPT, but the job has http: keep one of them
              |
            1 | jobs: {a: {type: script, http: 'http://x'}}
              |            ^^^^

            line 1, column 18: jobs.a.http `example.com` is no address: write one that begins with http:// or https://
              |
            1 | jobs: {a: {http: example.com}}
              |                  ^^^^^^^^^^^

            line 1, column 18: jobs.a.http `[…]` is no text: write a single value
              |
            1 | jobs: {a: {http: [a]}}
              |                  ^

            line 1, column 12: jobs.a.script has no program: write it first in the list
              |
            1 | jobs: {a: {script: []}}
              |            ^^^^^^

            line 1, column 12: jobs.a.script has no program: write it first in the list
              |
            1 | jobs: {a: {script: ['', x]}}
              |            ^^^^^^

            line 1, column 27: jobs.a.script[1] has no value: write one, or remove the key
              |
            1 | jobs: {a: {script: [date, ~]}}
              |                           ^

            line 1, column 27: jobs.a.script[1] `[…]` is no text: write a single value
              |
            1 | jobs: {a: {script: [date, [u]]}}
              |                           ^

            line 1, column 20: jobs.a.script `{…}` is no text: write a single value
              |
            1 | jobs: {a: {script: {a: b}}}
              |                    ^

            line 1, column 30: jobs.a.elastic-job-type `dataflow` is not written in the file: remove the key, and bind code to the job's name
              |
            1 | jobs: {a: {elastic-job-type: dataflow}}
              |                              ^^^^^^^^

            line 1, column 18: jobs.a.type `simple` is not written in the file: remove the key, and bind code to the job's name
              |
            1 | jobs: {a: {type: simple}}
              |                  ^^^^^^

            line 1, column 12: jobs.a.type is SCRIPT, but there is no command line: add `script: /path/to/script`
              |
            1 | jobs: {a: {type: script}}
              |            ^^^^

            line 1, column 26: jobs.a.props has an empty script.command.line: write the command line
              |
            1 | jobs: {a: {type: script, props: {script.command.line: ''}}}
              |                          ^^^^^

            line 1, column 12: jobs.a.script has no value: write one, or remove the key
              |
            1 | jobs: {a: {script: }}
              |            ^^^^^^

            line 1, column 20: jobs.a.script ` ` is blank: write the command line
              |
            1 | jobs: {a: {script: ' '}}
              |                    ^^^

            line 1, column 26: jobs.a.props has script.command.line, but script says it already: keep one of them
              |
            1 | jobs: {a: {script: date, props: {script.command.line: date}}}
              |                          ^^^^^

            line 1, column 12: jobs.a.props has script.command.line, but the job is no script: add `elasticJobType: SCRIPT`
              |
            1 | jobs: {a: {props: {script.command.line: date}}}
              |            ^^^^^

        "#]],
    );
}

#[test]
fn variables() {
    check(
        &[
            "jobs:\n  a:\n    jobParameter: in ${NOWHERE} at last\n",
            "jobs:\n  a:\n    jobParameter: \"${NOWHERE}\"\n",
            "jobs:\n  a:\n    jobParameter: ${OPEN\n",
            "jobs:\n  a:\n    failover: ${MAYBE}\n",
            "registry: zookeeper://${zk.host}\njobs: {}\n",
            "jobs: {a: {shardingTotalCount: '${INJECTION}'}}",
            "jobs: {a: {failover: ${FAILOVER:true}}}",
            "jobs: {a: {jobListenerTypes: [${FAILOVER:true}]}}",
        ],
        &expect![[r#"
            line 3, column 22: jobs.a.jobParameter needs the environment variable NOWHERE, which is not set: set it, or write a default as in ${NOWHERE:default}
              |
            3 |     jobParameter: in ${NOWHERE} at last
              |                      ^^^^^^^^^^

            line 3, column 20: jobs.a.jobParameter needs the environment variable NOWHERE, which is not set: set it, or write a default as in ${NOWHERE:default}
              |
            3 |     jobParameter: "${NOWHERE}"
              |                    ^^^^^^^^^^

            line 3, column 19: jobs.a.jobParameter has `${` without `}`: close it, or write `$${` for the characters themselves
              |
            3 |     jobParameter: ${OPEN
              |                   ^^^^^^

            line 3, column 15: jobs.a.failover `maybe` is no boolean: write true or false
              |
            3 |     failover: ${MAYBE}
              |               ^^^^^^^^

            line 1, column 23: registry has `${zk.host}`, which names no variable: names have letters, digits and `_`; write `$${` for the characters themselves
              |
            1 | registry: zookeeper://${zk.host}
              |                       ^^^^^^^^^^

            line 1, column 32: jobs.a.shardingTotalCount `1, failover: true` is no integer: write a decimal number
              |
            1 | jobs: {a: {shardingTotalCount: '${INJECTION}'}}
              |                                ^^^^^^^^^^^^^^

            line 1, column 23: this is not YAML: while parsing a flow mapping, did not find expected ',' or '}'; a value with `${…}` needs quotes if it stands between braces or brackets
              |
            1 | jobs: {a: {failover: ${FAILOVER:true}}}
              |                       ^

            line 1, column 32: this is not YAML: while parsing a flow sequence, expected ',' or ']'; a value with `${…}` needs quotes if it stands between braces or brackets
              |
            1 | jobs: {a: {jobListenerTypes: [${FAILOVER:true}]}}
              |                                ^

        "#]],
    );
}

/// A job shown as what it has beyond the defaults.
fn shown(text: &str) -> String {
    let file = parse(text);
    let mut out = format!("registry {:?}\n{:?}\n", file.registry, file.worker);
    for job in file.jobs {
        writeln!(out, "\nline {}: {:?}\n{}", job.line, job.work, job.spec.to_yaml())
            .expect("a string takes all");
    }
    out
}

#[test]
fn a_file_with_everything() {
    expect_file!["data/everything.txt"].assert_eq(&shown(include_str!("data/everything.yaml")));
}

#[test]
fn the_jobs_of_a_spring_boot_configuration_can_be_pasted() {
    expect_file!["data/pasted.txt"].assert_eq(&shown(include_str!("data/pasted.yaml")));
}

#[test]
fn a_job_without_settings_has_the_builders_defaults() {
    let file = parse("jobs:\n  a:\n  b: {}\n");
    let specs: Vec<_> = file.jobs.into_iter().map(|job| (job.spec, job.work)).collect();
    assert_eq!(specs, ["a", "b"].map(|name| (JobSpec::new(name, 1), FileWork::Code)));
}

#[test]
fn a_file_may_have_no_jobs_if_it_says_so() {
    let file = parse("registry: embedded://\nworker:\njobs: {}\n");
    assert!(file.jobs.is_empty() && file.worker == Default::default());
}

#[test]
fn both_spellings_of_a_setting_mean_the_same() {
    let camel = job(
        "{cron: 0 0 2 * * ?, shardingTotalCount: 2, jobExecutorServiceHandlerType: '4', maxTimeDiffSeconds: -1}",
    );
    let kebab = job(
        "{cron: 0 0 2 * * ?, sharding-total-count: 2, job-executor-thread-pool-size-provider-type: 4, max-time-diff-seconds: -1}",
    );
    assert_eq!(camel, kebab);
    assert!(camel.java_readable().is_err_and(|error| !error.to_string().contains("3.0.4")));
}

#[test]
fn item_parameters_are_a_text_a_mapping_or_a_list() {
    for parameters in [
        "'0=Beijing,1=Shanghai'",
        "{0: Beijing, 1: Shanghai}",
        "{1: Shanghai, 0: Beijing, 2: }",
        "[Beijing, Shanghai]",
        "[Beijing, Shanghai, ~]",
        "['${BEIJING:Beijing}', Shanghai, '${EMPTY}']",
    ] {
        let spec = job(&format!("{{shardingTotalCount: 3, shardingItemParameters: {parameters}}}"));
        let found: Vec<_> = spec.item_parameters().unwrap().into_iter().collect();
        assert_eq!(found, [(0, "Beijing".to_owned()), (1, "Shanghai".to_owned())], "{parameters}");
    }
}

#[test]
fn flags_take_the_words_of_javas_yaml() {
    for (word, expected) in
        [("true", true), ("'true'", true), ("Yes", true), ("on", true), ("FALSE", false), ("no", false)]
    {
        assert_eq!(job(&format!("{{failover: {word}}}")).failover, expected, "{word}");
    }
}

#[test]
fn listeners_are_a_list_or_a_text_with_commas() {
    for listeners in ["[LOG, AUDIT]", "'LOG, AUDIT'", "\n      - LOG\n      - AUDIT"] {
        let settings = format!("\n    jobListenerTypes: {listeners}");
        assert_eq!(job(&settings).job_listener_types, ["LOG", "AUDIT"]);
    }
    assert!(job("{jobListenerTypes: }").job_listener_types.is_empty());
}

#[test]
fn variables_expand_in_every_value_and_are_typed_afterwards() {
    let file = parse(
        "registry: zookeeper://${ZK:localhost}:2181/${CITY}
worker:
  shutdownGrace: ${GRACE:2m}
jobs:
  a:
    cron: ${NIGHTLY:0 0 2 * * ?}
    failover: ${FAILOVER:true}
    shardingTotalCount: ${COUNT}
    maxTimeDiffSeconds: ${DIFF:-1}
    jobParameter: $${CITY} is ${CITY}
    props: { place: '${CITY}', price: 5$ }
    jobListenerTypes: ['${CITY}']
    description: ${EMPTY}
",
    );
    assert_eq!(file.registry.as_deref(), Some("zookeeper://localhost:2181/Wien"));
    assert_eq!(file.worker.shutdown_grace, Some(Duration::from_secs(120)));
    let spec = &file.jobs[0].spec;
    assert_eq!(spec.cron.as_deref(), Some("0 0 2 * * ?"));
    assert!(spec.failover);
    assert_eq!((spec.sharding_total_count, spec.max_time_diff_seconds), (4, -1));
    assert_eq!(spec.job_parameter, "${CITY} is Wien");
    assert_eq!((spec.props["place"].as_str(), spec.props["price"].as_str()), ("Wien", "5$"));
    assert_eq!(spec.job_listener_types, ["Wien"]);
}

#[test]
fn what_a_variable_holds_is_one_value_and_never_yaml() {
    let env = |_: &str| Some("x\n  b: {}\n# ${CITY} *a ~".to_owned());
    let file = JobsFile::parse("jobs:\n  a:\n    jobParameter: ${ANY}\n    label: ${ANY}\n", env).unwrap();
    assert_eq!(file.jobs.len(), 1);
    assert_eq!(file.jobs[0].spec.job_parameter, "x\n  b: {}\n# ${CITY} *a ~");
    let null = JobsFile::parse("jobs: {a: {jobParameter: '${ANY}'}}", |_| Some("null".to_owned())).unwrap();
    assert_eq!(null.jobs[0].spec.job_parameter, "null");
}

#[test]
fn anchors_aliases_and_merges_share_settings() {
    let file = parse(
        "x-nightly: &nightly { cron: 0 0 2 * * ?, failover: true, shardingTotalCount: 2 }
x-loud: &loud { failover: false, label: loud }
jobs:
  a: { <<: *nightly, shardingTotalCount: 3 }
  b: { <<: [*loud, *nightly] }
  c: &c { label: &text hello }
  d: *c
  e: { label: *text }
",
    );
    let specs: Vec<&JobSpec> = file.jobs.iter().map(|job| &job.spec).collect();
    let [a, b, c, d, e] = specs[..] else { panic!("five jobs") };
    assert_eq!((a.cron.as_deref(), a.failover, a.sharding_total_count), (Some("0 0 2 * * ?"), true, 3));
    assert_eq!((b.failover, b.sharding_total_count, b.label.as_deref()), (false, 2, Some("loud")));
    assert_eq!([&c.label, &d.label, &e.label], [&Some("hello".to_owned()); 3]);
}

#[test]
fn a_fault_behind_an_alias_is_shown_where_it_is_written() {
    check(
        &["x-base: &base\n  failover: maybe\njobs:\n  a: *base\n", "jobs: {a: {<<: 3}}"],
        &expect![[r#"
            line 2, column 13: jobs.a.failover `maybe` is no boolean: write true or false
              |
            2 |   failover: maybe
              |             ^^^^^

            line 1, column 16: jobs.a.<< merges mappings only: write an alias of one
              |
            1 | jobs: {a: {<<: 3}}
              |                ^

        "#]],
    );
}

#[test]
fn alias_bombs_and_towers_are_refused() {
    let mut bomb = "x-0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let alias = format!("*a{}, ", level - 1).repeat(10);
        writeln!(bomb, "x-{level}: &a{level} [{alias}]").expect("a string takes all");
    }
    let tower = format!("jobs: {}{}", "[".repeat(200), "]".repeat(200));
    let block: String =
        (0..200).fold(String::new(), |text, depth| format!("{text}{}a:\n", " ".repeat(depth)));
    let found =
        [bomb, tower, block].map(|text| JobsFile::parse(&text, env).unwrap_err().to_string()).join("\n");
    expect![[r#"
        line 5, column 41: x-4 has aliases of more than 100000 values: write them out
        line 1, column 39: jobs nests too deeply: no setting lies so deep
        line 33, column 33: a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a nests too deeply: no setting lies so deep"#]].assert_eq(&found);
}

#[test]
fn ten_thousand_jobs_are_no_trouble() {
    let text = (0..10_000).fold("jobs:\n".to_owned(), |mut text, at| {
        writeln!(text, "  job-{at}: {{ cron: 0/5 * * * * ?, shardingTotalCount: 3, failover: true }}")
            .expect("a string takes all");
        text
    });
    let file = parse(&text);
    assert_eq!((file.jobs.len(), file.jobs[9_999].line), (10_000, 10_001));
}

#[test]
fn a_fault_in_a_file_begins_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.yaml");
    std::fs::write(&path, "jobs:\n  clean-up: { failover: maybe }\n").unwrap();
    let error = JobsFile::read(&path).unwrap_err();
    let shown = error.to_string().replace(&directory.path().display().to_string(), "");
    assert_eq!(shown, "/jobs.yaml:2:25: jobs.clean-up.failover `maybe` is no boolean: write true or false");
    std::fs::write(&path, b"jobs:\n  a: { label: W\xfcrfel }\n").unwrap();
    let error = JobsFile::read(&path).unwrap_err().to_string();
    assert!(
        error.ends_with("jobs.yaml: cannot be read: line 2 is not UTF-8: save the file in that encoding"),
        "{error}"
    );
    std::fs::write(&path, "\u{feff}jobs:\r\n  a: { failover: yes }\r\n").unwrap();
    assert!(JobsFile::read(&path).unwrap().jobs[0].spec.failover);
}

#[test]
fn columns_count_characters_and_marks_follow_what_is_seen() {
    check(
        &[
            "jobs: {清理: {failover: maybe}}",
            "\u{feff}jobs: {a: {failover: maybe}}",
            "jobs:\r\n  a:\r\n    failover: maybe\r\n",
            "jobs:\n  a: { description: 'a very long line that goes on and on and on and on and on and on and on and on', label: nothing, failover: maybe }\n",
            "jobs: {a: {failover: \"may\\nbe\"}}",
            "jobs:\n  a:\n    cron: |\n      0 60 * * * ?\n",
        ],
        &expect![[r#"
            line 1, column 23: jobs.清理.failover `maybe` is no boolean: write true or false
              |
            1 | jobs: {清理: {failover: maybe}}
              |                         ^^^^^

            line 1, column 22: jobs.a.failover `maybe` is no boolean: write true or false
              |
            1 | jobs: {a: {failover: maybe}}
              |                      ^^^^^

            line 3, column 15: jobs.a.failover `maybe` is no boolean: write true or false
              |
            3 |     failover: maybe
              |               ^^^^^

            line 2, column 129: jobs.a.failover `maybe` is no boolean: write true or false
              |
            2 | d on and on and on and on', label: nothing, failover: maybe }
              |                                                       ^^^^^

            line 1, column 22: jobs.a.failover `may\nbe` is no boolean: write true or false
              |
            1 | jobs: {a: {failover: "may\nbe"}}
              |                      ^^^^^^^^^

            line 4, column 9: jobs.a.cron `0 60 * * * ?` is no cron expression: minute `60`: the minute is 0 to 59
              |
            4 |       0 60 * * * ?
              |         ^^

        "#]],
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = JobsFile::parse(&text, env).map_err(|error| error.report());
    }

    #[test]
    fn no_text_of_yamls_own_characters_makes_the_reader_panic(
        text in r"(jobs:|  a:|    cron: |worker: |\$\{CITY|\$\{|\}|:|,|\{|\[|\]|\*a|&a |<<: |\n|\t|\r|'|\x22|\||>|- |\? |# |~|0=A|清|\u{feff}| |---\n|!!str |%YAML){0,40}",
    ) {
        let _ = JobsFile::parse(&text, env).map_err(|error| error.report());
    }

    #[test]
    fn no_value_makes_the_reader_panic(value in any::<String>(), key in 0..KEYS.len()) {
        let (key, env) = (KEYS[key], |_: &str| Some(value.clone()));
        let _ = JobsFile::parse(&format!("jobs: {{a: {{{key}: '${{X}}'}}}}"), env).map_err(|error| error.report());
    }

    #[test]
    fn a_parameter_comes_through_whatever_it_is(value in any::<String>()) {
        let file = JobsFile::parse("jobs: {a: {jobParameter: '${X}'}}", |_| Some(value.clone())).unwrap();
        prop_assert_eq!(&file.jobs[0].spec.job_parameter, &value);
    }
}

const KEYS: [&str; 8] = [
    "cron",
    "timeZone",
    "shardingTotalCount",
    "shardingItemParameters",
    "failover",
    "script",
    "type",
    "jobListenerTypes",
];

#[test]
fn policies_have_names_of_their_own_and_are_kept_in_props() {
    let spec = job(
        "{every: 90s, retries: 3, retry-backoff: 2s, timeLimit: 5m, validFrom: 2030-01-01T00:00:00Z, catchUp: 'all:3', props: {x: y}}",
    );
    let props: Vec<String> = spec.props.iter().map(|(key, value)| format!("{key}={value}")).collect();
    expect![[r#"
        elasticjob.catchup=all:3
        elasticjob.every=90s
        elasticjob.retries=3
        elasticjob.retry.backoff=2s
        elasticjob.time.limit=5m
        elasticjob.valid.from=2030-01-01T00:00:00Z
        x=y"#]]
    .assert_eq(&props.join("\n"));
    check(
        &[
            "jobs: {a: {retries: many}}",
            "jobs: {a: {every: 90s, cron: 0 0 2 * * ?}}",
            "jobs: {a: {delay: 1y, props: {x: y}}}",
            "jobs: {a: {validUntil: tomorrow}}",
            "jobs: {a: {timeLimit: 5m, props: {elasticjob.time.limit: 4m}}}",
            "jobs: {a: {props: {elasticjob.time.limit: 4 parsecs}}}",
            "jobs: {a: {timelimit: 5m}}",
        ],
        &expect![[r#"
            line 1, column 21: jobs.a.retries `many` is no such number: write one from 0 to 100
              |
            1 | jobs: {a: {retries: many}}
              |                     ^^^^

            line 1, column 19: jobs.a.every `90s` stands beside a cron: keep one of them
              |
            1 | jobs: {a: {every: 90s, cron: 0 0 2 * * ?}}
              |                   ^^^

            line 1, column 19: jobs.a.delay `1y` is no duration: write a number and its unit, as in 30s or 2m
              |
            1 | jobs: {a: {delay: 1y, props: {x: y}}}
              |                   ^^

            line 1, column 24: jobs.a.validUntil `tomorrow` is no instant: write one with its offset, as in 2030-01-01T06:00:00+01:00
              |
            1 | jobs: {a: {validUntil: tomorrow}}
              |                        ^^^^^^^^

            line 1, column 27: jobs.a.props has elasticjob.time.limit, but timeLimit says it already: keep one of them
              |
            1 | jobs: {a: {timeLimit: 5m, props: {elasticjob.time.limit: 4m}}}
              |                           ^^^^^

            line 1, column 19: jobs.a.props elasticjob.time.limit `4 parsecs` is no duration: write a number and its unit, as in 30s or 2m
              |
            1 | jobs: {a: {props: {elasticjob.time.limit: 4 parsecs}}}
              |                   ^

            line 1, column 12: jobs.a.timelimit is no setting of a job: did you mean timeLimit? known are cron, timeZone, shardingTotalCount, shardingItemParameters, jobParameter, script, http, elasticJobType, props, monitorExecution, failover, misfire, maxTimeDiffSeconds, reconcileIntervalMinutes, jobShardingStrategyType, jobExecutorThreadPoolSizeProviderType, jobErrorHandlerType, jobListenerTypes, description, disabled, overwrite, label, staticSharding, every, delay, validFrom, validUntil, catchUp, startJitter, timeLimit, retries, retryBackoff, retryBackoffMax
              |
            1 | jobs: {a: {timelimit: 5m}}
              |            ^^^^^^^^^

        "#]],
    );
}
