//! What holds for every text and every job.

use elasticjob_core::spec::{InstanceDoc, JobSpec, PoolKey};
use proptest::prelude::*;

/// Any text but U+0085 between line ends, which Java itself reads back as a line feed.
fn text() -> impl Strategy<Value = String> {
    let lively =
        "[a-z0-9 :#\\-?,\\[\\]{}&*!|>'\"%@`\\\\=~<.\n\r\t_\u{a0}\u{2028}\u{2029}\u{feff}\u{7}é中😀]{0,120}";
    prop_oneof![any::<String>(), lively].prop_map(|text| text.replace('\u{85}', ""))
}

prop_compose! {
    fn spec()(
        texts in prop::array::uniform4(text()),
        optional in prop::array::uniform6(prop::option::of(text())),
        flags in any::<[bool; 7]>(),
        numbers in any::<(u32, i32, i32)>(),
        listeners in prop::collection::vec(text(), 0..3),
        props in prop::collection::btree_map(text(), text(), 0..4),
    ) -> JobSpec {
        let [job_name, job_parameter, description, sharding_item_parameters] = texts;
        let [cron, time_zone, strategy, pool, error_handler, label] = optional;
        let [monitor_execution, failover, misfire, disabled, overwrite, static_sharding, old] = flags;
        let mut spec = JobSpec::new(job_name, numbers.0);
        (spec.job_parameter, spec.description, spec.sharding_item_parameters) = (job_parameter, description, sharding_item_parameters);
        (spec.cron, spec.time_zone, spec.job_sharding_strategy_type) = (cron, time_zone, strategy);
        (spec.job_error_handler_type, spec.label) = (error_handler, label);
        (spec.monitor_execution, spec.failover, spec.misfire) = (monitor_execution, failover, misfire);
        (spec.disabled, spec.overwrite, spec.static_sharding) = (disabled, overwrite, static_sharding);
        (spec.max_time_diff_seconds, spec.reconcile_interval_minutes) = (numbers.1, numbers.2);
        spec.pool_key = if old && pool.is_some() { PoolKey::ServiceHandler } else { PoolKey::default() };
        spec.job_executor_thread_pool_size_provider_type = pool;
        (spec.job_listener_types, spec.props) = (listeners, props);
        spec
    }
}

/// Pieces from which documents are made, and broken.
fn document() -> impl Strategy<Value = String> {
    let pieces = [
        "jobName",
        "props",
        "jobListenerTypes",
        "jobExtraConfigurations",
        "unknown",
        ": ",
        ":",
        "\n",
        "\n  ",
        "\n- ",
        "- ",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "a",
        "'",
        "\"",
        "|",
        "|2+",
        ">-",
        "!!binary ",
        "!!x.Y ",
        "! ",
        "&a ",
        "*a",
        "<<",
        "#",
        " # c",
        "---\n",
        "...\n",
        "%YAML 1.1\n",
        "~",
        "1_0",
        "yes",
        "\t",
        "\r",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\u{0}",
        "中",
        "😀",
        "\\",
        "  ",
        "YQ==",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(spec in spec()) {
        let yaml = spec.to_yaml();
        prop_assert_eq!(JobSpec::from_yaml(&yaml), Ok(spec), "{}", yaml);
    }

    #[test]
    fn instances_are_read_back(id in text(), ip in text(), labels in prop::option::of(text())) {
        let doc = InstanceDoc { job_instance_id: format!("{id}@"), server_ip: Some(ip), labels };
        prop_assert_eq!(InstanceDoc::from_yaml(&doc.to_yaml()), Ok(doc));
    }

    #[test]
    fn no_text_makes_the_readers_panic(text in any::<String>()) {
        let _ = (JobSpec::from_yaml(&text), InstanceDoc::from_yaml(&text));
        let _ = (elasticjob_core::spec::legacy::from_v2(&text), elasticjob_core::spec::legacy::detect(false, &text));
    }

    #[test]
    fn no_document_makes_the_reader_panic(text in document()) {
        let _ = JobSpec::from_yaml(&text);
    }

    /// The second rewriting changes nothing, whatever the first had to do.
    #[test]
    fn a_rewritten_document_stays_as_it_is(text in document()) {
        if let Ok(spec) = JobSpec::from_yaml(&text) {
            let once = spec.to_yaml();
            let again = JobSpec::from_yaml(&once);
            prop_assert!(again.is_ok(), "{:?}\n{}\n{:?}", again, once, text);
            prop_assert_eq!(again.unwrap().to_yaml(), once, "{:?}", text);
        }
    }

    #[test]
    fn judging_never_panics(spec in spec()) {
        let _ = (spec.validate(), spec.item_parameters(), spec.java_readable());
    }
}
