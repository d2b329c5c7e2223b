//! The command `elasticjob`, and Java processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use elasticjob::ops::{JobDetail, ShardStatus};
use elasticjob_fleet::What;
use tokio::process::Command;

use crate::java;
use crate::world::{LONG, World, java_host, job};

/// Runs the command: its exit code, and what it says to people and programs.
async fn elasticjob(world: &World, words: &[&str]) -> (i32, String, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_fleet-worker")).with_file_name("elasticjob");
    assert!(program.exists(), "{} is missing: `cargo xtask interop` builds it", program.display());
    let mut command = Command::new(program);
    command.args(words).env("ELASTICJOB_REGISTRY", world.url()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(LONG, command.output()).await.expect("it ends").unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The same, for what must go well.
async fn does(world: &World, words: &[&str]) -> String {
    let (code, out, said) = elasticjob(world, words).await;
    assert_eq!(code, 0, "{words:?}: {out}{said}");
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn our_command_line_sees_and_steers_java() {
    let world = World::new("our-command-line").await;
    let mut orders = job("orders", 4);
    let _j1 = world.java_ready("j1", 1, &[&orders]).await;
    world.settles(&orders, &["j1"]).await;
    let (id, host) = (world.instance("j1"), java_host(1));

    let jobs = does(&world, &["jobs"]).await;
    assert!(jobs.lines().nth(1).unwrap().starts_with("orders  OK "), "{jobs}");
    let shown = does(&world, &["job", "show", "orders"]).await;
    for part in [&id, &host, "leads, java", java::SIMPLE_CLASS] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // Once as the owner of each shard, and once more for each that runs just now.
    let shards = does(&world, &["shards", "orders"]).await;
    assert!((4..=8).contains(&shards.matches(&id).count()), "{shards}");
    assert!(does(&world, &["servers"]).await.contains(&format!("{host}  OK ")));
    assert!(does(&world, &["explain", "orders"]).await.contains(&format!("leader {id}")));
    assert!(does(&world, &["job", "dump", "orders"]).await.contains("/orders/servers/ip1 | ENABLED\n"));

    // Java drops a request while it runs, and does not say why it runs: from one fire to the next, everything runs
    // once more than it should.
    let fire = world.settles(&orders, &["j1"]).await;
    world.rests(&orders, fire).await;
    let at_rest = |it: &JobDetail| it.shards.iter().all(|it| it.status == ShardStatus::Pending);
    world.tree("orders", "it is at rest", at_rest).await;
    does(&world, &["job", "trigger", "orders", "--instance", &id]).await;
    world
        .until("all items run on request", |lines| {
            let mut starts: BTreeMap<u64, usize> = BTreeMap::new();
            let started = lines.iter().filter(|it| it.at >= fire && matches!(it.what, What::Start(_)));
            started.for_each(|it| *starts.entry(it.at / 4000).or_default() += 1);
            starts.values().any(|count| *count == 8)
        })
        .await;

    does(&world, &["job", "disable", "orders", "--shard", "2"]).await;
    world.settles_on(&orders, &[0, 1, 3]).await;
    does(&world, &["job", "enable", "orders", "--shard", "2"]).await;
    world.settles(&orders, &["j1"]).await;

    does(&world, &["job", "pause", "orders"]).await;
    assert!(does(&world, &["jobs"]).await.contains("orders  DISABLED "));
    let (code, _, said) = elasticjob(&world, &["job", "trigger", "orders"]).await;
    assert_eq!((code, said.lines().count()), (3, 1), "{said}");
    does(&world, &["job", "resume", "orders"]).await;
    world.settles(&orders, &["j1"]).await;

    let draft = world.home.path().join("draft.yaml");
    let stored = does(&world, &["job", "show", "orders", "--yaml"]).await;
    std::fs::write(&draft, stored.replace("shardingTotalCount: 4", "shardingTotalCount: 6")).unwrap();
    does(&world, &["job", "edit", "orders", "--file", &draft.to_string_lossy()]).await;
    orders.count = 6;
    world.settles(&orders, &["j1"]).await;
    world.sound().await;

    does(&world, &["job", "shutdown", "orders", "--server", &host, "--yes"]).await;
    world.tree("orders", "j1 has stopped", |it| it.instances.is_empty() && it.leader.is_none()).await;
    let (code, found, _) = elasticjob(&world, &["check"]).await;
    assert!(code == 1 && found.contains("orders: no instance is there"), "{code} {found}");
    does(&world, &["job", "remove", "orders", "--yes"]).await;
    assert!(!does(&world, &["jobs"]).await.contains("orders"));
}
