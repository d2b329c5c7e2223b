//! Documents recorded from Java: written byte for byte, and read with the same result. See `data/yaml/README.md`.

use std::fmt::Write;

use elasticjob_core::spec::JobSpec;
use expect_test::expect_file;
use serde_json::Value;

fn recorded(text: &str) -> impl Iterator<Item = Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a recording is JSON lines"))
}

/// A job from Java's names; what is not named has the builder's default.
fn spec_of(set: &Value) -> JobSpec {
    let text = |key: &str| set[key].as_str().map(str::to_owned);
    let flag = |key: &str, default| set[key].as_bool().unwrap_or(default);
    let number = |key: &str, default| set[key].as_i64().map_or(default, |number| number as i32);
    let total = number("shardingTotalCount", 3).unsigned_abs();
    let mut spec = JobSpec::new(text("jobName").unwrap_or("j".into()), total);
    spec.cron = text("cron");
    spec.time_zone = text("timeZone");
    spec.sharding_item_parameters = text("shardingItemParameters").unwrap_or_default();
    spec.job_parameter = text("jobParameter").unwrap_or_default();
    spec.monitor_execution = flag("monitorExecution", true);
    spec.failover = flag("failover", false);
    spec.misfire = flag("misfire", true);
    spec.max_time_diff_seconds = number("maxTimeDiffSeconds", -1);
    spec.reconcile_interval_minutes = number("reconcileIntervalMinutes", 10);
    spec.job_sharding_strategy_type = text("jobShardingStrategyType");
    spec.job_executor_thread_pool_size_provider_type = text("jobExecutorThreadPoolSizeProviderType");
    spec.job_error_handler_type = text("jobErrorHandlerType");
    spec.description = text("description").unwrap_or_default();
    spec.label = text("label");
    spec.disabled = flag("disabled", false);
    spec.overwrite = flag("overwrite", false);
    spec.static_sharding = flag("staticSharding", false);
    let items = set["jobListenerTypes"].as_array().into_iter().flatten();
    spec.job_listener_types = items.filter_map(|item| item.as_str().map(str::to_owned)).collect();
    let props = set["props"].as_object().into_iter().flatten();
    spec.props = props.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    spec
}

/// What Java reads from its own document; nothing where it fails or gets bytes for text.
fn read_by_java(case: &Value, spec: &JobSpec) -> Option<JobSpec> {
    match &case["java_reads"] {
        Value::String(same) if same == "same" => Some(spec.clone()),
        Value::Object(_) if !case["java_reads"].to_string().contains("[B@") => {
            Some(spec_of(&case["java_reads"]))
        }
        _ => None,
    }
}

fn check_written(cases: &str) -> usize {
    let mut checked = 0;
    for case in recorded(cases) {
        let spec = spec_of(&case["set"]);
        let yaml = case["yaml"].as_str().expect("a recording has a document");
        assert_eq!(spec.to_yaml(), yaml, "{}", case["set"]);
        let read = JobSpec::from_yaml(yaml).unwrap_or_else(|error| panic!("{error}\n{yaml}"));
        match read_by_java(&case, &spec) {
            Some(expected) => assert_eq!(read, expected, "{yaml:?}"),
            // Where Java stumbles over `!!binary`, we read what was meant.
            None if !yaml.contains('\u{85}') => assert_eq!(read, spec, "{yaml:?}"),
            None => {}
        }
        checked += 1;
    }
    checked
}

#[test]
fn text_is_quoted_and_folded_as_java_does_it() {
    assert!(check_written(include_str!("data/yaml/text.jsonl")) > 400);
}

#[test]
fn text_that_looks_like_a_number_is_quoted_as_java_does_it() {
    assert!(check_written(include_str!("data/yaml/numbers.jsonl")) >= 400);
}

#[test]
fn whole_documents_are_written_and_read_as_java_does_it() {
    assert!(check_written(include_str!("data/yaml/documents.jsonl")) >= 200);
}

/// For a comparison with more cases than are worth keeping.
#[test]
fn more_recordings_if_there_are_any() {
    for path in std::env::var("ELASTICJOB_RECORDED_YAML").unwrap_or_default().split_whitespace() {
        println!("{path}: {} cases", check_written(&std::fs::read_to_string(path).unwrap()));
    }
}

/// What Java reads from a document; what is not named has the value that Java gives to a missing key.
fn spec_read_by_java(set: &Value) -> JobSpec {
    let mut spec = spec_of(set);
    spec.monitor_execution = set["monitorExecution"] == true;
    spec.misfire = set["misfire"] == true;
    spec.reconcile_interval_minutes = set["reconcileIntervalMinutes"].as_i64().unwrap_or(0) as i32;
    spec
}

#[test]
fn documents_are_read_as_java_reads_them_but_for_a_known_list() {
    let (mut we_refuse, mut we_accept) = (String::new(), String::new());
    for case in recorded(include_str!("data/yaml/reading.jsonl")) {
        let yaml = case["yaml"].as_str().unwrap();
        let ours = JobSpec::from_yaml(yaml);
        let usable = |spec: &JobSpec| {
            !spec.job_name.is_empty() && (1..=i32::MAX as u32).contains(&spec.sharding_total_count)
        };
        match (ours, case.get("java")) {
            (Ok(spec), Some(java)) => assert_eq!(spec, spec_read_by_java(java), "{yaml}"),
            (Err(error), Some(_)) => writeln!(we_refuse, "{yaml:?}: {error}").unwrap(),
            (Ok(spec), None) if usable(&spec) => {
                writeln!(we_accept, "{yaml:?}: Java has {}", case["java_error"]).unwrap();
            }
            (Ok(_) | Err(_), None) => {}
        }
    }
    expect_file!["data/yaml/refused_by_us_only.txt"].assert_eq(&we_refuse);
    expect_file!["data/yaml/refused_by_java_only.txt"].assert_eq(&we_accept);
}
