//! What a bad setting is told: its name, its value and the remedy.

use elasticjob_core::spec::{JobSpec, SHARDS_MAX};
use expect_test::{Expect, expect};

fn check(change: impl FnOnce(&mut JobSpec), expected: &Expect) {
    let mut spec = JobSpec::new("job", 3);
    change(&mut spec);
    let verdict = spec.validate().map_or_else(|error| error.to_string(), |()| "fine".to_owned());
    expected.assert_eq(&verdict);
}

fn name(name: &str) -> impl FnOnce(&mut JobSpec) {
    move |spec| spec.job_name = name.to_owned()
}

fn items(text: &str) -> impl FnOnce(&mut JobSpec) {
    move |spec| spec.sharding_item_parameters = text.to_owned()
}

fn zone(zone: &str) -> impl FnOnce(&mut JobSpec) {
    move |spec| spec.time_zone = Some(zone.to_owned())
}

fn pool(pool: &str) -> impl FnOnce(&mut JobSpec) {
    move |spec| spec.job_executor_thread_pool_size_provider_type = Some(pool.to_owned())
}

#[test]
fn a_name_must_fit_into_a_path_and_a_task_id() {
    check(name("nightly-stock_sync.v2 中文"), &expect!["fine"]);
    check(name(""), &expect!["jobName `` is blank: give the job a name"]);
    check(name("  "), &expect!["jobName `  ` is blank: give the job a name"]);
    check(name("a/b"), &expect!["jobName `a/b` contains `/`: use a name without it"]);
    check(name(".."), &expect!["jobName `..` is reserved by the registry: use another name"]);
    check(name("zookeeper"), &expect!["jobName `zookeeper` is reserved by the registry: use another name"]);
    check(
        name("a@-@b"),
        &expect!["jobName `a@-@b` contains `@-@`, at which task ids are split: use a name without it"],
    );
    check(
        name("a\u{0}b"),
        &expect![
            "jobName `a\\0b` contains characters that a registry's path must not have: use printable ones"
        ],
    );
}

#[test]
fn a_job_has_at_least_one_item_and_not_millions() {
    check(|spec| spec.sharding_total_count = 1, &expect!["fine"]);
    check(|spec| spec.sharding_total_count = SHARDS_MAX, &expect!["fine"]);
    check(
        |spec| spec.sharding_total_count = 0,
        &expect!["shardingTotalCount `0` is out of range: write a number from 1 to 1000000"],
    );
    check(
        |spec| spec.sharding_total_count = SHARDS_MAX + 1,
        &expect!["shardingTotalCount `1000001` is out of range: write a number from 1 to 1000000"],
    );
}

#[test]
fn item_parameters_follow_java() {
    check(items("0=Beijing,1=Shanghai , 2 = Guangzhou"), &expect!["fine"]);
    check(items("0=a,"), &expect!["fine"]);
    check(items("0=a="), &expect!["fine"]);
    check(
        items("0=a,,1=b"),
        &expect![
            "shardingItemParameters has ``: write each element as item=text, with neither `,` nor `=` in the text"
        ],
    );
    check(
        items("0=a=b"),
        &expect![
            "shardingItemParameters has `0=a=b`: write each element as item=text, with neither `,` nor `=` in the text"
        ],
    );
    check(
        items("0="),
        &expect![
            "shardingItemParameters has `0=`: write each element as item=text, with neither `,` nor `=` in the text"
        ],
    );
    check(
        items("x=a"),
        &expect![
            "shardingItemParameters has `x=a`: write each element as item=text, with neither `,` nor `=` in the text"
        ],
    );
    check(items("0=a,0=b"), &expect!["shardingItemParameters names item 0 twice: keep one of the two"]);
    check(
        items("1=a,3=b"),
        &expect![
            "shardingItemParameters names item 3, but shardingTotalCount is 3: raise the count or drop the parameter"
        ],
    );
}

#[test]
fn item_parameters_beyond_the_count_are_still_read() {
    let mut spec = JobSpec::new("job", 1);
    spec.sharding_item_parameters = "0=a,7=b".to_owned();
    assert_eq!(
        spec.item_parameters().unwrap().into_iter().collect::<Vec<_>>(),
        [(0, "a".to_owned()), (7, "b".to_owned())]
    );
}

#[test]
fn a_zone_is_an_offset_or_in_the_database() {
    for good in ["GMT", "GMT+8", "GMT+08", "GMT+0800", "GMT+8:00", "GMT-03:30", "Europe/Vienna", "UTC"] {
        check(zone(good), &expect!["fine"]);
    }
    for bad in ["", "GMT+24:00", "GMT+8:60", "GMT+8:0", "GMT+", "Mars/Olympus", "GMT+é", "GMT+８:00"] {
        let mut spec = JobSpec::new("job", 1);
        spec.time_zone = Some(bad.to_owned());
        assert!(spec.validate().is_err(), "{bad}");
    }
    check(
        zone("Vienna"),
        &expect![
            "timeZone `Vienna` is unknown: write GMT+8:00 or the like, or an IANA name such as Europe/Vienna"
        ],
    );
}

#[test]
fn a_cron_is_one_that_can_be_read_or_blank() {
    check(|spec| spec.cron = Some("0/5 * * * * ?".to_owned()), &expect!["fine"]);
    check(|spec| spec.cron = Some(" ".to_owned()), &expect!["fine"]);
    check(
        |spec| spec.cron = Some("0 0 25 * * ?".to_owned()),
        &expect!["cron `0 0 25 * * ?` is no schedule: hour `25` at column 5: the hour is 0 to 23"],
    );
}

#[test]
fn a_pool_is_a_known_type_or_a_size() {
    for good in ["CPU", "cpu", "single_thread", "1", "64"] {
        check(pool(good), &expect!["fine"]);
    }
    for bad in ["", "0", "-1", "+1", "1.5", "99999999999"] {
        let mut spec = JobSpec::new("job", 1);
        spec.job_executor_thread_pool_size_provider_type = Some(bad.to_owned());
        assert!(spec.validate().is_err(), "{bad}");
    }
    check(
        pool("MANY"),
        &expect![
            "jobExecutorThreadPoolSizeProviderType `MANY` is unknown: write CPU, SINGLE_THREAD or a number of at least 1"
        ],
    );
}

#[test]
fn a_property_has_a_name() {
    check(
        |spec| drop(spec.props.insert(String::new(), "x".to_owned())),
        &expect!["props has the value `x` under an empty key: name the property"],
    );
}

#[test]
fn java_is_told_apart_from_what_only_we_can_read() {
    let mut spec = JobSpec::new("job", 1);
    assert_eq!(spec.java_readable(), Ok(()));
    spec.time_zone = Some("Europe/Vienna".to_owned());
    spec.job_executor_thread_pool_size_provider_type = Some("4".to_owned());
    spec.unknown.insert("colour".to_owned(), "colour: red\n".to_owned());
    spec.props.insert("bell".to_owned(), "\u{7}".to_owned());
    spec.job_extra_configurations =
        Some("- !!com.acme.Own {}\n- !!org.apache.shardingsphere.elasticjob.X {}\n".to_owned());
    spec.description = "a\u{85}b".to_owned();
    expect![[r#"
        Java 3.0.5 could not read this job: timeZone `Europe/Vienna` does not start with GMT: write an offset such as GMT+8:00
        key `colour` is unknown to it: move the setting into props
        jobExecutorThreadPoolSizeProviderType `4` is taken for CPU: write CPU or SINGLE_THREAD
        jobExtraConfigurations has `!!com.acme.Own`, a class it refuses: remove it
        props.bell has control characters, which come back as bytes: remove them
        description has U+0085, which comes back as a line feed: write a line feed"#]]
    .assert_eq(&spec.java_readable().unwrap_err().to_string().replace("; ", "\n"));
}
