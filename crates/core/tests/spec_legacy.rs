//! Jobs of 1.x and 2.x: what they become, and what is lost with a word about it.

use std::collections::BTreeMap;

use elasticjob_core::spec::SpecError;
use elasticjob_core::spec::legacy::{Generation, Imported, JobType, detect, from_v1, from_v2};
use expect_test::{Expect, expect};

fn v1(nodes: &[(&str, &str)]) -> Result<Imported, SpecError> {
    let nodes: BTreeMap<_, _> =
        nodes.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    from_v1("stockSync", &nodes)
}

fn check(imported: Result<Imported, SpecError>, expected: &Expect) {
    let text = match imported {
        Ok(imported) => {
            let head = format!("{:?} {}\n", imported.job_type, imported.job_class.as_deref().unwrap_or("-"));
            let warnings: String = imported.warnings.iter().map(|warning| format!("! {warning}\n")).collect();
            head + &imported.spec.to_yaml() + &warnings
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&text);
}

#[test]
fn a_dataflow_job_of_1x() {
    let nodes = [
        ("jobType", "DATA_FLOW"),
        ("jobClass", "com.acme.StockSync"),
        ("shardingTotalCount", "6"),
        ("shardingItemParameters", "0=linz,1=graz"),
        ("jobParameter", "full"),
        ("cron", "0 0/20 6-22 * * ?"),
        ("description", "copies stock levels"),
        ("monitorExecution", "true"),
        ("failover", "TRUE"),
        ("misfire", "no"),
        ("maxTimeDiffSeconds", "-1"),
        ("monitorPort", "9888"),
        (
            "jobShardingStrategyClass",
            "com.dangdang.ddframe.job.plugin.sharding.strategy.OdevitySortByNameJobShardingStrategy",
        ),
        ("processCountIntervalSeconds", "300"),
        ("concurrentDataProcessThreadCount", "8"),
        ("fetchDataCount", "100"),
        ("streamingProcess", "true"),
        ("colour", "red"),
    ];
    check(
        v1(&nodes),
        &expect![[r#"
        Some(Dataflow) com.acme.StockSync
        cron: 0 0/20 6-22 * * ?
        description: copies stock levels
        disabled: false
        failover: true
        jobName: stockSync
        jobParameter: full
        jobShardingStrategyType: ODEVITY
        maxTimeDiffSeconds: -1
        misfire: false
        monitorExecution: true
        overwrite: false
        props:
          streaming.process: 'true'
        reconcileIntervalMinutes: 10
        shardingItemParameters: 0=linz,1=graz
        shardingTotalCount: 6
        staticSharding: false
        ! monitorPort 9888 belongs to the process now: set the dump port of the worker
        ! processCountIntervalSeconds `300` has no counterpart: counts are metrics now
        ! concurrentDataProcessThreadCount `8` has no counterpart: a dataflow job processes one batch for each item
        ! fetchDataCount `100` has no counterpart: the job's own code decides how much to fetch
        ! colour `red` is unknown
    "#]],
    );
}

#[test]
fn a_job_of_1x_with_little_said_has_the_defaults_of_its_builder() {
    check(
        v1(&[("shardingTotalCount", "1"), ("jobShardingStrategyClass", ""), ("monitorPort", "-1")]),
        &expect![[r#"
        None -
        description: ''
        disabled: false
        failover: false
        jobName: stockSync
        jobParameter: ''
        maxTimeDiffSeconds: -1
        misfire: true
        monitorExecution: true
        overwrite: false
        reconcileIntervalMinutes: 10
        shardingItemParameters: ''
        shardingTotalCount: 1
        staticSharding: false
    "#]],
    );
}

#[test]
fn a_job_of_2x_as_its_process_wrote_it() {
    let json = r#"{"jobName":"stockSync","jobClass":"com.acme.batch.StockSync","jobType":"DATAFLOW","cron":"0 0/20 6-22 * * ?",
        "shardingTotalCount":6,"shardingItemParameters":"0\u003dlinz,1\u003dgraz","jobParameter":"full","failover":true,"misfire":true,
        "description":"copies stock levels",
        "jobProperties":{"job_exception_handler":"com.acme.batch.MailOnError","executor_service_handler":"com.dangdang.ddframe.job.executor.handler.impl.DefaultExecutorServiceHandler"},
        "streamingProcess":false,
        "monitorExecution":true,"maxTimeDiffSeconds":-1,"monitorPort":9888,"jobShardingStrategyClass":"","reconcileIntervalMinutes":10,
        "disabled":false,"overwrite":false}"#;
    check(
        from_v2(json),
        &expect![[r#"
        Some(Dataflow) com.acme.batch.StockSync
        cron: 0 0/20 6-22 * * ?
        description: copies stock levels
        disabled: false
        failover: true
        jobExecutorThreadPoolSizeProviderType: CPU
        jobName: stockSync
        jobParameter: full
        maxTimeDiffSeconds: -1
        misfire: true
        monitorExecution: true
        overwrite: false
        props:
          streaming.process: 'false'
        reconcileIntervalMinutes: 10
        shardingItemParameters: 0=linz,1=graz
        shardingTotalCount: 6
        staticSharding: false
        ! monitorPort 9888 belongs to the process now: set the dump port of the worker
        ! job_exception_handler `com.acme.batch.MailOnError` is custom code: register a handler and set jobErrorHandlerType
    "#]],
    );
}

#[test]
fn a_job_of_2x_as_the_console_wrote_it() {
    let json = r#"{"jobName":"report","jobType":"SCRIPT","jobClass":"com.dangdang.ddframe.job.api.script.ScriptJob","cron":"0 0 2 * * ?","shardingTotalCount":1,
        "shardingItemParameters":"","jobParameter":"","monitorExecution":false,"streamingProcess":false,"maxTimeDiffSeconds":-1,"monitorPort":-1,
        "failover":false,"misfire":true,"jobShardingStrategyClass":"com.acme.Own","description":"",
        "jobProperties":{"job_exception_handler":"com.dangdang.ddframe.job.executor.handler.impl.DefaultJobExceptionHandler"},
        "scriptCommandLine":"/opt/report.sh","reconcileIntervalMinutes":5}"#;
    check(
        from_v2(json),
        &expect![[r#"
        Some(Script) com.dangdang.ddframe.job.api.script.ScriptJob
        cron: 0 0 2 * * ?
        description: ''
        disabled: false
        failover: false
        jobErrorHandlerType: LOG
        jobName: report
        jobParameter: ''
        maxTimeDiffSeconds: -1
        misfire: true
        monitorExecution: false
        overwrite: false
        props:
          script.command.line: /opt/report.sh
        reconcileIntervalMinutes: 5
        shardingItemParameters: ''
        shardingTotalCount: 1
        staticSharding: false
        ! jobShardingStrategyClass `com.acme.Own` is custom code: register a strategy and set jobShardingStrategyType
    "#]],
    );
}

#[test]
fn missing_keys_of_2x_have_the_defaults_of_its_reader() {
    let json = r#"{"jobName":"j","jobType":"SIMPLE","jobClass":"a.B","cron":"* * * * * ?","shardingTotalCount":2,"jobProperties":null,"new":[1]}"#;
    check(
        from_v2(json),
        &expect![[r#"
        Some(Simple) a.B
        cron: '* * * * * ?'
        description: ''
        disabled: false
        failover: false
        jobName: j
        jobParameter: ''
        maxTimeDiffSeconds: -1
        misfire: false
        monitorExecution: true
        overwrite: false
        reconcileIntervalMinutes: 10
        shardingItemParameters: ''
        shardingTotalCount: 2
        staticSharding: false
        ! new `[1]` is unknown
    "#]],
    );
}

#[test]
fn bad_values_are_named() {
    check(v1(&[]), &expect!["shardingTotalCount is missing: write the number of items, at least 1"]);
    check(
        v1(&[("shardingTotalCount", "many")]),
        &expect!["shardingTotalCount `many` is no number of items: write a number of at least 1"],
    );
    check(
        v1(&[("shardingTotalCount", "-2")]),
        &expect!["shardingTotalCount `-2` is no number of items: write a number of at least 1"],
    );
    check(
        v1(&[("shardingTotalCount", "1"), ("jobType", "CLOUD")]),
        &expect!["jobType `CLOUD` is unknown: write SIMPLE, DATAFLOW or SCRIPT"],
    );
    check(
        v1(&[("shardingTotalCount", "1"), ("maxTimeDiffSeconds", "1.5")]),
        &expect!["maxTimeDiffSeconds `1.5` is no number of 32 bits: write a decimal number"],
    );
    check(from_v2("jobName: j"), &expect!["line 1, column 1: not a JSON document of 2.x: expected value"]);
    check(from_v2(r#"{"jobName":"j"}"#), &expect!["jobType is missing: write SIMPLE, DATAFLOW or SCRIPT"]);
    check(from_v2(r#"{"jobType":"SIMPLE"}"#), &expect!["jobName is missing: name the job"]);
    check(
        from_v2(r#"{"jobName":"j","jobType":"SIMPLE","jobClass":"a.B"}"#),
        &expect!["cron is missing: write when the job fires"],
    );
    check(
        from_v2(r#"{"jobName":"j","jobType":"SCRIPT","cron":"* * * * * ?"}"#),
        &expect!["shardingTotalCount is missing: write the number of items, at least 1"],
    );
    check(from_v2(r#"{"jobName":["j"]}"#), &expect![[r#"jobName `["j"]` is no text: write a single value"#]]);
    check(
        from_v2(r#"{"jobName":"j","jobProperties":3}"#),
        &expect![[r#"jobProperties `3` is no object: write {"job_exception_handler": class}"#]],
    );
}

#[test]
fn the_generation_shows() {
    assert_eq!(detect(true, "anything"), Generation::V1);
    assert_eq!(detect(false, r#" {"jobName":"j","jobType":"SIMPLE"}"#), Generation::V2);
    assert_eq!(detect(false, "{jobName: j, shardingTotalCount: 1}"), Generation::V3);
    assert_eq!(detect(false, "jobName: j\n"), Generation::V3);
    assert_eq!(JobType::parse("dataflow"), Some(JobType::Dataflow));
}
