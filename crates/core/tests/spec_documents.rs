//! Somebody else's documents: what we do not understand survives, byte for byte.

use elasticjob_core::spec::{InstanceDoc, JobSpec, PoolKey};
use expect_test::{Expect, expect};

const TRACED: &str = "\
cron: '* * * * * ?'
description: |-
  multi
  line 中文
disabled: false
failover: true
jobErrorHandlerType: LOG
jobExecutorThreadPoolSizeProviderType: CPU
jobExtraConfigurations:
- !!org.apache.shardingsphere.elasticjob.kernel.tracing.yaml.YamlTracingConfiguration
  tracingStorageConfiguration: !!org.apache.shardingsphere.elasticjob.tracing.rdb.yaml.YamlDataSourceConfiguration
    dataSourceClassName: com.zaxxer.hikari.HikariDataSource
    props:
      jdbcUrl: jdbc:mysql://localhost:3306/x?useSSL=false
      username: root
      maximumPoolSize: 10
  type: RDB
jobListenerTypes:
- A
- B
jobName: myJob
jobParameter: 'p: 1 # x'
jobShardingStrategyType: AVG_ALLOCATION
label: l1
maxTimeDiffSeconds: 60
misfire: true
monitorExecution: true
overwrite: true
props:
  '1': 'yes'
  http.connect.timeout.milliseconds: '3000'
  script.command.line: echo 'hi' \"x\"
reconcileIntervalMinutes: 10
shardingItemParameters: 0=Beijing,1=Shanghai,2=Guangzhou
shardingTotalCount: 3
staticSharding: true
timeZone: GMT+8:00
";

/// What becomes of a document that is read and written again; only the lines that do not stand in every document.
fn check(text: &str, expected: &Expect) {
    let spec = JobSpec::from_yaml(text).expect("the document is readable");
    let written = spec.to_yaml();
    assert_eq!(JobSpec::from_yaml(&written).as_ref(), Ok(&spec), "{written}");
    let minimal = JobSpec::from_yaml("jobName: j\nshardingTotalCount: 1\n");
    let plain = minimal.expect("the minimal document is readable").to_yaml();
    let own = |line: &&str| !plain.split_inclusive('\n').any(|other| other == *line);
    expected.assert_eq(&written.split_inclusive('\n').filter(own).collect::<String>());
}

#[test]
fn a_document_of_java_with_everything_in_it_is_rewritten_unchanged() {
    let spec = JobSpec::from_yaml(TRACED).unwrap();
    assert_eq!(spec.to_yaml(), TRACED);
    assert_eq!(spec.props["script.command.line"], "echo 'hi' \"x\"");
    assert!(spec.job_extra_configurations.unwrap().starts_with("- !!org.apache"));
}

#[test]
fn unknown_keys_are_kept_at_their_alphabetical_place() {
    check(
        "jobName: j\nshardingTotalCount: 1\nzone:   'a'   # why\n# and more\nalpha:\n    - x\n    -   {b: c}\nkappa: |2\n    text\n\n   more\n",
        &expect![[r#"
            alpha:
                - x
                -   {b: c}
            kappa: |2
                text

               more
            zone:   'a'   # why
            # and more
        "#]],
    );
}

#[test]
fn unknown_keys_survive_indentation_markers_and_odd_keys() {
    check(
        "---\n  jobName: j\n  shardingTotalCount: 1\n  ? alpha\n  : |-\n    a\n    b\n  'be ta': x\n...\n",
        &expect![[r#"
            ? alpha
            : |-
              a
              b
            'be ta': x
        "#]],
    );
}

#[test]
fn unknown_keys_of_a_flow_document_become_lines() {
    check(
        "{\"jobName\": \"j\", \"shardingTotalCount\": 1, \"alpha\": {\"b\": [1,\n2]}, beta, gamma: !!x.Y {c: d}, jobExtraConfigurations: [!!x.Y {e: f}]}",
        &expect![[r#"
            "alpha": {"b": [1,
              2]}
            beta:
            gamma: !!x.Y {c: d}
            jobExtraConfigurations: [!!x.Y {e: f}]
        "#]],
    );
}

#[test]
fn further_configurations_keep_their_layout() {
    let document = |below: &str| format!("jobExtraConfigurations:{below}jobName: j\nshardingTotalCount: 1\n");
    check(
        &document("\n  # tracing\n  - !!x.Y\n    a:   1\n\n"),
        &expect![[r#"
            jobExtraConfigurations:
              # tracing
              - !!x.Y
                a:   1

        "#]],
    );
    check(
        &document("   [ !!x.Y {a: 1} ] # one\n"),
        &expect![[r#"
        jobExtraConfigurations: [ !!x.Y {a: 1} ] # one
    "#]],
    );
    check(&document(" []\n"), &expect![""]);
    check(&document("\n"), &expect![""]);
}

#[test]
fn an_alias_that_would_lose_its_anchor_is_refused() {
    let error = JobSpec::from_yaml("jobName: &n j\nshardingTotalCount: 1\nalpha: *n\n").unwrap_err();
    expect!["line 3, column 1: `alpha` uses an alias of another key's anchor: write the value out"]
        .assert_eq(&error.to_string());
    check(
        "jobName: j\nshardingTotalCount: 1\nalpha: {a: &n j, b: *n}\n",
        &expect![[r#"
        alpha: {a: &n j, b: *n}
    "#]],
    );
}

#[test]
fn both_names_of_the_pool_are_read_and_kept() {
    let old = "jobName: j\nshardingTotalCount: 1\njobExecutorServiceHandlerType: SINGLE_THREAD\n";
    check(
        old,
        &expect![[r#"
        jobExecutorServiceHandlerType: SINGLE_THREAD
    "#]],
    );
    let spec = JobSpec::from_yaml(old).unwrap();
    assert_eq!(spec.job_executor_thread_pool_size_provider_type.as_deref(), Some("SINGLE_THREAD"));
    assert_eq!(spec.pool_key, PoolKey::ServiceHandler);
    let error =
        JobSpec::from_yaml(&format!("{old}jobExecutorThreadPoolSizeProviderType: CPU\n")).unwrap_err();
    expect!["jobExecutorThreadPoolSizeProviderType and jobExecutorServiceHandlerType are names of the same setting: keep one of them"]
        .assert_eq(&error.to_string());
}

#[test]
fn errors_say_where_and_what() {
    let error = |text: &str| JobSpec::from_yaml(text).unwrap_err().to_string();
    expect!["line 1, column 1: the document is empty: write `key: value` lines"].assert_eq(&error(""));
    expect!["line 1, column 1: not a mapping: write `key: value` lines"].assert_eq(&error("- a\n"));
    expect!["line 3, column 1: a second document begins here: keep one"]
        .assert_eq(&error("jobName: j\n\n---\njobName: k\n"));
    expect!["shardingTotalCount `many` is no integer: write a decimal number"]
        .assert_eq(&error("shardingTotalCount: many\n"));
    expect!["maxTimeDiffSeconds `99999999999` is out of range: write a number of 32 bits"]
        .assert_eq(&error("maxTimeDiffSeconds: 99999999999\n"));
    expect!["shardingTotalCount `-1` is out of range: write a number of at least 1"]
        .assert_eq(&error("shardingTotalCount: -1\n"));
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut text = "jobName: j\nl0: &l0 [a, a, a, a, a, a, a, a, a, a]\n".to_owned();
    for level in 1..12 {
        let inner = vec![format!("*l{}", level - 1); 10].join(", ");
        text.push_str(&format!("l{level}: &l{level} [{inner}]\n"));
    }
    let error = JobSpec::from_yaml(&text).unwrap_err().to_string();
    assert!(error.contains("more than 100000 values"), "{error}");
    assert!(JobSpec::from_yaml(&"[".repeat(100_000)).is_err());
    assert!(JobSpec::from_yaml(&format!("a: {}", "[".repeat(100_000))).is_err());
}

#[test]
fn instances_are_written_and_read_as_java_does_it() {
    let plain = InstanceDoc::new("192.168.1.5@-@12345", "192.168.1.5");
    assert_eq!(plain.to_yaml(), "jobInstanceId: 192.168.1.5@-@12345\nserverIp: 192.168.1.5\n");
    assert_eq!(InstanceDoc::from_yaml(&plain.to_yaml()), Ok(plain.clone()));
    let flow =
        InstanceDoc::from_yaml(r#"{"jobInstanceId": "192.168.1.5@-@12345", "serverIp": "192.168.1.5"}"#);
    assert_eq!(flow, Ok(plain.clone()));
    let alone = InstanceDoc { server_ip: None, ..plain };
    assert_eq!(InstanceDoc::from_yaml("jobInstanceId: 192.168.1.5@-@12345\n"), Ok(alone));
    let error = InstanceDoc::from_yaml("serverIp: 192.168.1.5\n").unwrap_err();
    expect!["jobInstanceId is missing: write the name of the instance's node"].assert_eq(&error.to_string());
}
