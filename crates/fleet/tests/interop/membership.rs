//! Who comes and who goes, in order.

use std::time::Duration;

use elasticjob_fleet::job::FleetJob;
use elasticjob_fleet::line::{Why, now};
use elasticjob_fleet::{Line, What};

use crate::world::{Member, World, job};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn rust_joins_a_java_cluster_and_leaves() {
    let world = World::new("rust-joins-java").await;
    let job = job("orders", 6);
    let _java = world.java_cluster(&job).await;
    let from = world.settles(&job, &["j1", "j2"]).await;
    // Twice, as another instance of the same host: what it left behind must not be taken for its own.
    for name in ["r1", "r2"] {
        let rust = world.rust(name, &[&job]);
        let shared = world.settles(&job, &["j1", "j2", name]).await;
        world.rests(&job, shared).await;
        rust.leave().await;
        world.settles(&job, &["j1", "j2"]).await;
    }
    let until = world.settles(&job, &["j1", "j2"]).await;
    world.sound().await;
    world.exactly_once(&job, from, until).await;
}

/// Java registers before it starts its schedule. A fire in between is not judged: nobody runs what was handed to it
/// by then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn java_joins_a_rust_cluster_and_leaves() {
    let world = World::new("java-joins-rust").await;
    let job = job("orders", 6);
    let (_r1, _r2) = (world.rust("r1", &[&job]), world.rust("r2", &[&job]));
    world.settles(&job, &["r1", "r2"]).await;
    for name in ["j1", "j2"] {
        let java = world.java(name, 1, &[&job]);
        let shared = world.settles(&job, &["r1", "r2", name]).await;
        world.rests(&job, shared).await;
        java.leave().await;
        let without = world.settles(&job, &["r1", "r2"]).await;
        world.exactly_once(&job, shared, without).await;
    }
    world.sound().await;
}

/// Without marks nobody knows who runs what; while nobody comes or goes, each fire runs once all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn an_unmonitored_job_is_shared_too() {
    let world = World::new("unmonitored").await;
    let job = FleetJob { monitor: false, ..job("orders", 4) };
    let _j1 = world.java_ready("j1", 1, &[&job]).await;
    let r1 = world.rust("r1", &[&job]);
    let from = world.settles(&job, &["j1", "r1"]).await;
    world.settles(&job, &["j1", "r1"]).await;
    let until = world.settles(&job, &["j1", "r1"]).await;
    world.exactly_once(&job, from, until).await;
    world.rests(&job, until).await;
    r1.leave().await;
    world.settles(&job, &["j1"]).await;
    world.sound().await;
}

/// The procedure of `docs/java-fleets.md`, step by step, and back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_fleet_rolls_over_from_java_to_rust_and_back() {
    let world = World::new("rollover").await;
    let job = job("orders", 4);
    let [j1, j2] = world.java_cluster(&job).await;
    let from = world.settles(&job, &["j1", "j2"]).await;

    let r1 = world.rust("r1", &[&job]);
    world.settles(&job, &["j1", "j2", "r1"]).await;
    leave_between_fires(&world, &job, &j1, &["j2", "r1"]).await;
    let r2 = world.rust("r2", &[&job]);
    world.settles(&job, &["j2", "r1", "r2"]).await;
    leave_between_fires(&world, &job, &j2, &["r1", "r2"]).await;
    let until = world.settles(&job, &["r1", "r2"]).await;
    world.exactly_once(&job, from, until).await;

    let j3 = world.java_ready("j3", 3, &[&job]).await;
    let from = world.settles(&job, &["j3", "r1", "r2"]).await;
    leave_between_fires(&world, &job, &r1, &["j3", "r2"]).await;
    leave_between_fires(&world, &job, &r2, &["j3"]).await;
    let until = world.settles(&job, &["j3"]).await;
    world.sound().await;
    world.exactly_once(&job, from, until).await;
    drop(j3);
}

async fn leave_between_fires(world: &World, job: &FleetJob, member: &Member, stay: &[&str]) {
    let with = [stay, &[member.name.as_str()]].concat();
    let fire = world.settles(job, &with).await;
    world.rests(job, fire).await;
    member.leave().await;
    world.settles(job, stay).await;
}

/// A request makes a Java leader hand out items between two fires. An item that comes to us then has a cursor
/// from before Java had it: the fires since were Java's, and none is made up for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn what_java_ran_in_between_is_not_made_up_for() {
    let world = World::new("loan").await;
    let job = job("orders", 4);
    let _j1 = world.java_ready("j1", 1, &[&job]).await;
    let r1 = world.rust("r1", &[&job]);
    let shared = world.settles(&job, &["j1", "r1"]).await;
    world.rests(&job, shared).await;
    r1.leave().await;
    let alone = world.settles(&job, &["j1"]).await;
    world.rests(&job, alone).await;
    let r2 = world.rust("r2", &[&job]);
    world.ready(&r2).await;
    let id = world.instance("r2");
    world.tree("orders", "the leader knows of r2", |it| it.resharding).await;
    let ops = world.ops().await;
    ops.trigger("orders", None).await.unwrap();
    world
        .tree("orders", "r2 has items", |it| it.shards.iter().any(|it| it.owner.as_ref() == Some(&id)))
        .await;
    world.settles(&job, &["j1", "r2"]).await;
    let lines = world.log.lines();
    let made_up: Vec<_> = lines.iter().filter(|it| source(it) == Some(Why::Misfire)).collect();
    assert!(made_up.is_empty(), "{made_up:#?}\n{}", world.story().await);
    world.sound().await;
}

fn source(line: &Line) -> Option<Why> {
    match &line.what {
        What::Start(start) => start.source,
        _ => None,
    }
}

/// A Java leader waits for what runs, and then shares among those that it saw before the wait (D6). Who came later
/// would stay idle for good, if it did not speak up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn who_joins_while_a_java_leader_waits_gets_its_share() {
    let world = World::new("overlooked").await;
    let quick = job("orders", 6);
    // It runs on for two fires, which is what the leader waits for.
    let slow = FleetJob { work: 7000, ..quick.clone() };
    let _j1 = world.java_ready("j1", 1, &[&quick]).await;
    world.settles(&quick, &["j1"]).await;
    let _r1 = world.rust("r1", &[&slow]);
    world
        .until("r1 is at work", |lines| lines.iter().any(|it| it.process == "r1" && source(it).is_some()))
        .await;
    let started = now();
    let _r2 = world.rust("r2", &[&quick]);
    world.tree("orders", "the leader knows of r2", |it| it.resharding).await;
    // From its next fire on the leader waits; the third one comes in the middle of that.
    let middle = started - started % 4000 + 4000 + 1500;
    tokio::time::sleep(Duration::from_millis(middle.saturating_sub(now()))).await;
    let r3 = world.rust("r3", &[&quick]);
    world.ready(&r3).await;
    let id = world.instance("r3");
    world
        .tree("orders", "r3 has items", |it| it.shards.iter().any(|it| it.owner.as_ref() == Some(&id)))
        .await;
    world
        .until("r3 is at work", |lines| lines.iter().any(|it| it.process == "r3" && source(it).is_some()))
        .await;
    world.sound().await;
}
