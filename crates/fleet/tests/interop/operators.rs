//! Java's operators and Rust processes, our operators and Java processes.

use std::collections::BTreeMap;

use elasticjob::ops::{DumpPort, JobDetail, JobStatus, Ops, Part, ShardStatus, dump_from};
use elasticjob::{Event, Skip, StopReason};
use elasticjob_fleet::job::FleetJob;
use elasticjob_fleet::line::{Why, now};
use elasticjob_fleet::{Line, What};
use elasticjob_testkit::free_ports;

use crate::java;
use crate::world::{RUST_HOST, World, java_host, job};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn java_operators_see_and_steer_rust() {
    let world = World::new("java-operators").await;
    let mut orders = job("orders", 4);
    let _r1 = world.rust("r1", &[&orders]);
    world.settles(&orders, &["r1"]).await;
    let id = world.instance("r1");
    let mut java = world.java_ops();

    assert_eq!(java.ok("jobs").await, ["orders OK instances=1 shards=4 cron=0/4 * * * * ?"]);
    assert_eq!(java.ok("servers").await, [format!("{RUST_HOST} instances=[{id}] jobs=[orders] disabled=0")]);
    let shards = java.ok("shards orders").await;
    let shard = |item: u32, status: &str| format!("{item} {status} {RUST_HOST} {id} failover=false");
    let is_seen =
        |(item, said): (u32, &String)| ["PENDING", "RUNNING"].iter().any(|it| *said == shard(item, it));
    assert!(shards.len() == 4 && (0..).zip(&shards).all(is_seen), "{shards:?}");

    let from = now();
    java.ok("trigger orders").await;
    world.until("all items run on request", |lines| requested(lines, from) == [0, 1, 2, 3]).await;

    java.ok("disable-shard orders 2").await;
    world.settles_on(&orders, &[0, 1, 3]).await;
    assert!(java.ok("shards orders").await[2].starts_with("2 DISABLED "));
    java.ok("enable-shard orders 2").await;
    world.settles(&orders, &["r1"]).await;

    for whom in [format!("orders {RUST_HOST}"), "orders -".to_owned(), format!("- {RUST_HOST}")] {
        let from = now();
        java.ok(&format!("disable {whom}")).await;
        let held_back =
            |it: &Event| matches!(it, Event::Skipped { why: Skip::ServerDisabled | Skip::NoItems, .. });
        world.records("r1", "orders", from, held_back).await;
        assert!(java.ok("job orders").await[0].starts_with("orders DISABLED "), "{whom}");
        java.ok(&format!("enable {whom}")).await;
        world.settles(&orders, &["r1"]).await;
    }

    java.ok("set orders jobParameter fresh").await;
    world
        .until("the new parameter arrives", |lines| lines.iter().any(|it| parameter(it) == Some("fresh")))
        .await;
    java.ok("set orders shardingTotalCount 6").await;
    orders.count = 6;
    world.settles(&orders, &["r1"]).await;
    java.ok("set orders shardingTotalCount 3").await;
    orders.count = 3;
    world.settles(&orders, &["r1"]).await;

    world.sound().await;
    java_reads_our_dump(&world, &orders).await;

    let from = now();
    java.ok(&format!("shutdown orders {RUST_HOST}")).await;
    let shut_down = |it: &Event| matches!(it, Event::Stopped { reason: StopReason::ShutDown });
    world.records("r1", "orders", from, shut_down).await;
    assert!(java.ok("job orders").await[0].starts_with("orders CRASHED instances=0 "));

    let _r2 = world.rust("r2", &[&orders]);
    world.settles(&orders, &["r2"]).await;
    let from = now();
    java.ok(&format!("remove orders {RUST_HOST}")).await;
    world.records("r2", "orders", from, shut_down).await;
    assert_eq!(java.ok("servers").await, Vec::<String>::new());

    let _r3 = world.rust("r3", &[&orders]);
    let fire = world.settles(&orders, &["r3"]).await;
    world.rests(&orders, fire).await;
    let from = now();
    java.ok("remove-config orders").await;
    let stopped = |it: &Event| matches!(it, Event::Stopped { .. });
    world.records("r3", "orders", from, stopped).await;
    assert_eq!(java.ok("jobs").await, Vec::<String>::new(), "it stays removed");
    world.sound().await;
}

/// What Java's client reads from our port is what our own library says.
async fn java_reads_our_dump(world: &World, orders: &FleetJob) {
    let ops = world.ops().await;
    let port = DumpPort::open(0, world.ops().await).await.unwrap();
    let mut java = world.java_ops();
    for _ in 0..10 {
        world.settles(orders, &["r1"]).await;
        world.tree("orders", "it is at rest", at_rest).await;
        let before = ops.dump("orders").await.unwrap();
        let read = java.ok(&format!("dump orders {RUST_HOST} {}", port.address().port())).await;
        // Nothing changed while it was read.
        if before == ops.dump("orders").await.unwrap() {
            assert_eq!(read, before.lines().collect::<Vec<_>>());
            assert!(read.contains(&"/orders/servers/ip1 | ENABLED".to_owned()), "{read:#?}");
            return;
        }
    }
    panic!("the job is never at rest:\n{}", world.story().await);
}

fn at_rest(job: &JobDetail) -> bool {
    job.shards.iter().all(|it| it.status == ShardStatus::Pending)
}

fn requested(lines: &[Line], from: u64) -> Vec<u32> {
    let starts = lines.iter().filter(|it| it.at >= from).filter_map(|it| match &it.what {
        What::Start(start) if start.source == Some(Why::Trigger) => Some(start.item),
        _ => None,
    });
    let mut items: Vec<u32> = starts.collect();
    items.sort_unstable();
    items
}

fn parameter(line: &Line) -> Option<&str> {
    match &line.what {
        What::Start(start) => Some(&start.parameter),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn our_operators_see_and_steer_java() {
    let world = World::new("our-operators").await;
    let mut orders = job("orders", 4);
    let port = free_ports(1)[0];
    let words = java::job(&orders);
    let j1 = world.java_with("j1", 1, &["--dump-port", &port.to_string()], &words);
    world.ready(&j1).await;
    world.settles(&orders, &["j1"]).await;
    let ops = world.ops().await;
    let host = Part::Server(java_host(1));

    let detail = world.tree("orders", "it is at rest", at_rest).await;
    assert_eq!((detail.summary.status, detail.summary.instances), (JobStatus::Ok, 1));
    assert_eq!(detail.class, java::SIMPLE_CLASS);
    assert!(!detail.instances[0].rust && detail.instances[0].leads);

    on_request(&world, &ops).await;

    ops.disable("orders", &Part::Item(2)).await.unwrap();
    world.settles_on(&orders, &[0, 1, 3]).await;
    ops.enable("orders", &Part::Item(2)).await.unwrap();
    world.settles(&orders, &["j1"]).await;

    // While it is disabled Java runs nothing and says nothing; another one does its work.
    ops.disable("orders", &host).await.unwrap();
    let r1 = world.rust("r1", &[&orders]);
    world.settles(&orders, &["r1"]).await;
    ops.enable("orders", &host).await.unwrap();
    let fire = world.settles(&orders, &["j1", "r1"]).await;
    world.rests(&orders, fire).await;
    r1.leave().await;
    world.settles(&orders, &["j1"]).await;

    let read = ops.config("orders").await.unwrap();
    let text = read.text.replace("jobParameter: ''", "jobParameter: fresh").replace("Count: 4", "Count: 6");
    ops.update_config("orders", &read, &text).await.unwrap();
    orders.count = 6;
    world.settles(&orders, &["j1"]).await;
    world
        .until("the new parameter arrives", |lines| lines.iter().any(|it| parameter(it) == Some("fresh")))
        .await;
    world.sound().await;
    we_read_javas_dump(&world, &orders, &ops, port).await;

    ops.shutdown("orders", &host).await.unwrap();
    world.tree("orders", "j1 has stopped", |it| it.instances.is_empty() && it.leader.is_none()).await;
    let from = now();
    let r2 = world.rust("r2", &[&orders]);
    world.settles(&orders, &["r2"]).await;
    let of_java = |it: &&Line| it.at > from && it.process == "j1";
    assert_eq!(world.log.lines().iter().filter(of_java).count(), 0, "the job ended in j1");
    r2.leave().await;
    ops.remove_server("orders", &java_host(1)).await.unwrap();
    ops.remove_job("orders").await.unwrap();
    assert!(ops.jobs().await.unwrap().is_empty());
    world.sound().await;
}

/// Java says neither why it runs nor for which fire: if more runs begin between two fires than one of them explains,
/// somebody asked for them.
async fn on_request(world: &World, ops: &Ops) {
    let fire = now() / 4000;
    // What comes along is not for Java, and does not disturb it.
    ops.trigger_with("orders", None, "day=2026-11-14").await.unwrap();
    world
        .until("all items run on request", |lines| {
            let starts = lines.iter().filter(|it| matches!(it.what, What::Start(_)));
            let mut of_fire: BTreeMap<u64, usize> = BTreeMap::new();
            starts.for_each(|it| *of_fire.entry(it.at / 4000).or_default() += 1);
            of_fire.range(fire..).any(|it| *it.1 >= 8)
        })
        .await;
}

async fn we_read_javas_dump(world: &World, orders: &FleetJob, ops: &Ops, port: u16) {
    for _ in 0..10 {
        world.settles(orders, &["j1"]).await;
        world.tree("orders", "it is at rest", at_rest).await;
        let before = ops.dump("orders").await.unwrap();
        let read = dump_from(("127.0.0.1", port), "orders").await.unwrap();
        if before == ops.dump("orders").await.unwrap() {
            assert_eq!(read, before);
            return;
        }
    }
    panic!("the job is never at rest:\n{}", world.story().await);
}
