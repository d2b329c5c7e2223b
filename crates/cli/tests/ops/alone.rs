//! What does not depend on the kind of registry, or is about one kind only.

use std::fs;

use expect_test::expect;

use super::common::{self, Place, Store};
use super::{check, fleet};

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
    let store = fleet(Place::Disk);
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
    let store = fleet(Place::Disk);
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
fn a_dump_comes_from_the_port_of_a_process_too() {
    use elasticjob::ops::{DumpPort, Ops};
    let store = fleet(Place::Disk);
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
