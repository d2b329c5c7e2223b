//! The commands of docs/operations.md do what the page says. With `UPDATE_EXPECT=1`, the page is made to say what
//! they do.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{A, B, Store, spec};
use elasticjob::registry::Op;
use jiff::Timestamp;

fn set(path: &str, data: &str) -> Op {
    Op::Set { path: path.to_owned(), data: data.to_owned(), version: None }
}

fn ms(seconds_ago: i64) -> String {
    ((Timestamp::now().as_second() - seconds_ago) * 1000).to_string()
}

/// Until a fire has come that everything written before precedes.
fn let_a_fire_pass(seconds: u64) {
    std::thread::sleep(Duration::from_millis(seconds * 1000 + 200));
}

fn fleet(name: &str) -> Store {
    let store = Store::new();
    if name == "old" {
        let json = r#"{"jobName":"stock","jobClass":"com.acme.StockSync","jobType":"SIMPLE","cron":"0 0/20 6-22 * * ?","shardingTotalCount":2,"failover":true,"monitorPort":9888}"#;
        store.write(
            "stock",
            &[("/config", json), ("/servers/10.0.0.1", ""), ("/servers/10.0.0.2", "DISABLED")],
        );
        return store;
    }
    let cron = if name == "disabled" { "* * * * * ?" } else { "0 0 2 * * ?" };
    let mut settle = spec("settle-orders", cron, 2);
    settle.description = "settles what was paid".into();
    store.job(&settle);
    match name {
        "healthy" => store.job(&spec("poll-queue", "0/10 * * * * ?", 3)),
        "disabled" => {
            store.commit(
                "settle-orders",
                vec![set("/servers/10.0.0.1", "DISABLED"), set("/servers/10.0.0.12", "DISABLED")],
            );
            let fire = ms(10);
            store.write("settle-orders", &[("/sharding/0/cursor", &fire), ("/sharding/1/cursor", &fire)]);
            let_a_fire_pass(1);
        }
        "hanging" => {
            let (late, soon) = (ms(1), ms(-1));
            store.job(&spec("poll-queue", "* * * * * ?", 3));
            store.write(
                "poll-queue",
                &[
                    ("/sharding/1/running", B),
                    ("/sharding/1/misfire", &soon),
                    ("/sharding/1/cursor", &late),
                    ("/sharding/0/cursor", &ms(-25)),
                    ("/sharding/2/cursor", &ms(-25)),
                ],
            );
            let_a_fire_pass(3);
        }
        "clocks" => {
            let now = Timestamp::now().as_millisecond();
            let cursor = |ahead: i64| format!("{} {}", now - 3_600_000, now + ahead);
            let (fast, right) = (cursor(40_000), cursor(0));
            store.write("settle-orders", &[("/sharding/0/cursor", &fast), ("/sharding/1/cursor", &right)]);
        }
        "recorded" => std::fs::write(store.home().join("events.jsonl"), events()).unwrap(),
        "dead" => {
            let dead = Op::Delete { path: format!("/instances/{B}") };
            store.commit("settle-orders", vec![dead, set("/leader/election/instance", B)]);
        }
        other => panic!("no fleet is called {other}"),
    }
    store
}

/// What the two workers kept of a night: one lost the registry for a while, the other one died.
fn events() -> String {
    let line = |time: &str, instance: &str, rest: &str| {
        format!(
            "{{\"at\":\"2026-11-15T{time}Z\",\"job\":\"settle-orders\",\"instance\":\"{instance}\",{rest}}}\n"
        )
    };
    let began = |task: &str, source: &str, items: &str| {
        format!(r#""event":"round-started","taskId":"{task}",{source},"items":{items},"merged":0"#)
    };
    let due = r#""source":"schedule","nominal":"2026-11-15T02:00:00Z""#;
    let ended = |task: &str, item: u32| {
        format!(r#""event":"item-finished","taskId":"{task}","item":{item},"outcome":"succeeded""#)
    };
    [
        line("01:30:00", A, r#""event":"resharded","moved":2"#),
        line("01:59:48", B, r#""event":"suspended""#),
        line("02:00:00", A, &began("a-1", due, "[0]")),
        line("02:00:19", B, r#""event":"reconnected""#),
        line("02:00:19", B, &began("b-1", due, "[1]")),
        line("02:04:00", B, &ended("b-1", 1)),
        line("02:04:01", B, r#""event":"took-over","item":0"#),
        line("02:04:01", B, &began("b-2", r#""source":"failover""#, "[0]")),
        line("02:08:30", B, &ended("b-2", 0)),
    ]
    .concat()
}

fn run(store: &Store, command: &str) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_elasticjob"));
    let path = format!("{}:{}", binary.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1; {command}")])
        .env_clear()
        .envs([
            ("PATH", path.as_str()),
            ("ELASTICJOB_REGISTRY", &store.url()),
            ("TZ", "UTC"),
            ("USER", "alice"),
        ])
        .current_dir(store.home())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.replace(store.path().to_str().unwrap(), "/var/lib/jobs")
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md")
}

/// The page with what its commands really say.
fn real(text: &str) -> String {
    let mut store = None;
    let mut out = String::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("<!-- fleet: ") {
            store = Some(fleet(name.trim_end_matches(" -->")));
        }
        if line.starts_with("```") {
            inside = line == "```console";
        }
        match (line.strip_prefix("$ "), &store) {
            (Some(command), Some(store)) if inside => {
                out.push_str(&format!("{line}\n{}", run(store, command)));
            }
            _ if inside && store.is_some() && !line.starts_with("```") => {} // What was said before.
            _ => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

#[test]
fn the_page_says_what_the_commands_say() {
    let written = std::fs::read_to_string(page()).unwrap();
    let real = real(&written);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(page(), &real).unwrap();
        return;
    }
    let (written, real) = (common::plain_times(&written), common::plain_times(&real));
    for (number, (a, b)) in written.lines().zip(real.lines()).enumerate() {
        assert_eq!(a, b, "docs/operations.md, line {}", number + 1);
    }
    assert_eq!(written.lines().count(), real.lines().count());
}
