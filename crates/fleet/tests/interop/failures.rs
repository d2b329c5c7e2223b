//! Processes that die or stand still, and what others do for them.

use elasticjob::ops::{JobDetail, Part};
use elasticjob_fleet::check;
use elasticjob_fleet::job::FleetJob;
use elasticjob_fleet::line::{Why, now};
use elasticjob_fleet::{Line, What};

use crate::world::{World, java_host, job};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_java_leader_is_killed_and_rust_leads() {
    let world = World::new("java-leader-killed").await;
    let job = job("orders", 6);
    let j1 = world.java_ready("j1", 1, &[&job]).await;
    let _r1 = world.rust("r1", &[&job]);
    world.settles(&job, &["j1", "r1"]).await;
    world.leads("orders", "j1").await;
    j1.kill();
    let alone = world.settles(&job, &["r1"]).await;
    world.leads("orders", "r1").await;
    let until = world.settles(&job, &["r1"]).await;
    world.exactly_once(&job, alone, until).await;
    let _j2 = world.java_ready("j2", 2, &[&job]).await;
    world.settles(&job, &["j2", "r1"]).await;
    world.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_rust_leader_is_killed_and_java_leads() {
    let world = World::new("rust-leader-killed").await;
    let job = job("orders", 6);
    let r1 = world.rust("r1", &[&job]);
    world.ready(&r1).await;
    let _j1 = world.java_ready("j1", 1, &[&job]).await;
    world.settles(&job, &["j1", "r1"]).await;
    world.leads("orders", "r1").await;
    r1.kill();
    let alone = world.settles(&job, &["j1"]).await;
    world.leads("orders", "j1").await;
    let _r2 = world.rust("r2", &[&job]);
    let until = world.settles(&job, &["j1", "r2"]).await;
    world.sound().await;
    world.exactly_once(&job, alone, until).await;
}

/// What a Java process does when it wakes is not judged: nothing keeps it from running what it had before it learns
/// that its session is over (D15), and the fire that it had prepared when it was stopped comes late, when others may
/// have run it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_java_leader_stands_still_beyond_its_session_and_comes_back() {
    let world = World::new("java-leader-stopped").await;
    let job = job("orders", 6);
    let j1 = world.java_ready("j1", 1, &[&job]).await;
    let _r1 = world.rust("r1", &[&job]);
    let shared = world.settles(&job, &["j1", "r1"]).await;
    world.rests(&job, shared).await;
    world.leads("orders", "j1").await;
    j1.pause();
    let alone = world.settles(&job, &["r1"]).await;
    world.leads("orders", "r1").await;
    let until = world.settles(&job, &["r1"]).await;
    world.settles(&job, &["r1"]).await;
    j1.resume();
    let first = world.settles(&job, &["j1", "r1"]).await;
    // With its first fires, one or two, Java makes up for one that passed while it stood still.
    let second = world.settles_after(first, &job, &["j1", "r1"]).await;
    let again = world.settles_after(second, &job, &["j1", "r1"]).await;
    let last = world.settles_after(again, &job, &["j1", "r1"]).await;
    world.sound().await;
    world.exactly_once(&job, alone, until).await;
    world.exactly_once(&job, again, last).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_rust_leader_stands_still_beyond_its_session_and_comes_back() {
    let world = World::new("rust-leader-stopped").await;
    let job = job("orders", 6);
    let r1 = world.rust("r1", &[&job]);
    world.ready(&r1).await;
    let _j1 = world.java_ready("j1", 1, &[&job]).await;
    let shared = world.settles(&job, &["j1", "r1"]).await;
    world.rests(&job, shared).await;
    world.leads("orders", "r1").await;
    let before = world.instance("r1");
    r1.pause();
    let alone = world.settles(&job, &["j1"]).await;
    world.leads("orders", "j1").await;
    world.settles(&job, &["j1"]).await;
    r1.resume();
    let last = world.settles(&job, &["j1", "r1"]).await;
    let zombies: Vec<Line> =
        world.log.lines().into_iter().filter(|it| it.at > alone && is_run_of(it, &before)).collect();
    assert!(zombies.is_empty(), "{zombies:#?}");
    world.sound().await;
    world.exactly_once(&job, alone, last).await;
}

fn is_run_of(line: &Line, id: &str) -> bool {
    matches!(&line.what, What::Start(start) if start.instance == id)
}

/// A job that nobody starts but us, so that every run has one reason, and long enough to be caught at it.
fn on_request(name: &str) -> FleetJob {
    FleetJob { cron: None, failover: true, work: 4000, ..job(name, 2) }
}

/// The process that runs the item that the other one does not.
fn runs_of(lines: &[Line], process: &str, from: u64) -> Vec<check::Run> {
    check::runs(lines).into_iter().filter(|it| it.process == process && it.started >= from).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn items_of_the_dead_are_taken_over_from_java_and_from_rust() {
    let world = World::new("failover").await;
    let job = on_request("orders");
    let j1 = world.java_ready("j1", 1, &[&job]).await;
    let r1 = world.rust("r1", &[&job]);
    world.ready(&r1).await;
    let ops = world.ops().await;

    // From Java to Rust.
    let asked = now();
    world.tree("orders", "both are there", |it| it.instances.len() == 2).await;
    ops.trigger("orders", None).await.unwrap();
    let both = |lines: &[Line], java: &str| {
        !runs_of(lines, java, asked).is_empty() && !runs_of(lines, "r1", asked).is_empty()
    };
    world.until("both are at work", |lines| both(lines, "j1")).await;
    let lost = runs_of(&world.log.lines(), "j1", asked)[0].start.item;
    j1.kill();
    let taken = |lines: &[Line]| {
        let runs = runs_of(lines, "r1", asked);
        runs.iter()
            .any(|it| it.start.item == lost && it.start.source == Some(Why::Failover) && it.ended.is_some())
    };
    world.until("r1 has run the item of j1", taken).await;

    // And back.
    let j2 = world.java_ready("j2", 2, &[&job]).await;
    world
        .tree("orders", "j2 has an item", |it| {
            let id = world.instance("j2");
            it.instances.len() == 2 && it.shards.iter().any(|it| it.owner.as_ref() == Some(&id))
        })
        .await;
    let asked = now();
    ops.trigger("orders", None).await.unwrap();
    let both =
        |lines: &[Line]| !runs_of(lines, "j2", asked).is_empty() && !runs_of(lines, "r1", asked).is_empty();
    world.until("both are at work again", both).await;
    let lost = runs_of(&world.log.lines(), "r1", asked)[0].start.item;
    r1.kill();
    let taken = |lines: &[Line]| {
        runs_of(lines, "j2", asked).iter().any(|it| it.start.item == lost && it.ended.is_some())
    };
    world.until("j2 has run the item of r1", taken).await;
    // Nothing is left that could stop the next round.
    world
        .tree("orders", "no marks are left", |it| {
            it.shards.iter().all(|it| it.running.is_none() && it.failover.is_none() && !it.crashed)
        })
        .await;
    let runs = check::runs(&world.log.lines());
    let of_second = runs.iter().filter(|it| it.started >= asked && it.start.item == lost).count();
    assert_eq!(of_second, 2, "once by each\n{}", world.story().await);
    world.sound().await;
    drop(j2);
}

/// Java forgets the marks of a process whose host was disabled when it died, and its leader waits for them for ever
/// (D2). The way out is to let Rust lead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_java_leader_that_waits_for_the_dead_is_relieved_by_rust() {
    let world = World::new("orphans").await;
    // Without misfire: Java would make up for what it missed in its wait, some time later.
    let job = FleetJob { failover: true, misfire: false, work: 1500, ..job("orders", 4) };
    let [j1, j2] = world.java_cluster(&job).await;
    world.leads("orders", "j1").await;
    let ops = world.ops().await;
    let (host, dead) = (Part::Server(java_host(2)), world.instance("j2"));
    let from = now();
    world.until("j2 is at work", |lines| !runs_of(lines, "j2", from).is_empty()).await;
    ops.disable("orders", &host).await.unwrap();
    j2.kill();
    let is_forgotten = |it: &JobDetail| {
        let marked = it.shards.iter().any(|it| it.running.as_ref() == Some(&dead));
        it.resharding && marked && it.instances.len() == 1
    };
    world.tree("orders", "the dead one's mark is waited for", is_forgotten).await;
    let r1 = world.rust("r1", &[&job]);
    world.ready(&r1).await;
    let found = ops.check(Some("orders")).await.unwrap();
    assert!(found.iter().any(|it| it.what.contains("which is gone")), "{found:#?}");

    ops.disable("orders", &Part::Server(java_host(1))).await.unwrap();
    world.settles(&job, &["r1"]).await;
    ops.enable("orders", &Part::Server(java_host(1))).await.unwrap();
    let first = world.settles(&job, &["j1", "r1"]).await;
    let last = world.settles(&job, &["j1", "r1"]).await;
    world.exactly_once(&job, first, last).await;
    world.sound().await;
    drop(j1);
}

/// All survivors see the crash, each in its own way. The item runs once more, not once for each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn among_several_survivors_one_takes_over() {
    let world = World::new("survivors").await;
    let job = FleetJob { count: 8, ..on_request("orders") };
    let ops = world.ops().await;
    let mut members = vec![world.java_ready("j1", 1, &[&job]).await];
    members.push(world.rust("r1", &[&job]));
    world.ready(&members[1]).await;
    members.push(world.java_ready("j2", 2, &[&job]).await);
    members.push(world.rust("r2", &[&job]));
    world.ready(&members[3]).await;
    // First a Java process dies and then a Rust process, each with a survivor of either kind.
    while members.len() > 2 {
        let count = members.len();
        world
            .tree("orders", "all are there, and at rest", |it| {
                let at_rest =
                    it.shards.iter().all(|it| it.running.is_none() && it.failover.is_none() && !it.crashed);
                it.instances.len() == count && at_rest
            })
            .await;
        let asked = now();
        ops.trigger("orders", None).await.unwrap();
        let all_begun = |lines: &[Line]| check::uncovered(lines, "orders", 8, asked, u64::MAX).is_empty();
        world.until("all items run", all_begun).await;
        let dead = members.remove(0);
        dead.kill();
        let killed = now();
        let runs = runs_of(&world.log.lines(), &dead.name, asked);
        let lost: Vec<u32> = runs.iter().filter(|it| it.ended.is_none()).map(|it| it.start.item).collect();
        assert!(!lost.is_empty(), "{} was at work\n{}", dead.name, world.story().await);
        let again = |lines: &[Line]| {
            let runs = check::runs(lines).into_iter().filter(|it| it.started > killed && it.ended.is_some());
            let mut items: Vec<u32> = runs.map(|it| it.start.item).collect();
            items.sort_unstable();
            items
        };
        let wanted = {
            let mut lost = lost.clone();
            lost.sort_unstable();
            lost
        };
        world.until(&format!("{lost:?} have run again"), |lines| again(lines).len() >= wanted.len()).await;
        world
            .tree("orders", "no marks are left", |it| {
                it.shards.iter().all(|it| it.running.is_none() && it.failover.is_none() && !it.crashed)
            })
            .await;
        assert_eq!(again(&world.log.lines()), wanted, "{}", world.story().await);
    }
    world.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_fire_that_java_missed_is_made_up_for_by_rust() {
    let world = World::new("misfire-of-java").await;
    // It takes longer than it is to the next fire.
    let slow = FleetJob { work: 6000, ..job("orders", 1) };
    let j1 = world.java_ready("j1", 1, &[&slow]).await;
    world.tree("orders", "Java marks a missed fire", |it| it.shards.iter().any(|it| it.misfire)).await;
    j1.kill();
    let from = now();
    let quick = FleetJob { work: 200, ..slow };
    let _r1 = world.rust("r1", &[&quick]);
    let made_up =
        |lines: &[Line]| runs_of(lines, "r1", from).iter().any(|it| it.start.source == Some(Why::Misfire));
    world.until("r1 makes up for it", made_up).await;
    world.tree("orders", "the mark is gone", |it| it.shards.iter().all(|it| !it.misfire)).await;
    let from = world.settles(&quick, &["r1"]).await;
    let until = world.settles(&quick, &["r1"]).await;
    world.exactly_once(&quick, from, until).await;
    world.sound().await;
}

/// Java makes up for it right after its next regular run (D21).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_fire_that_rust_missed_is_made_up_for_by_java() {
    let world = World::new("misfire-of-rust").await;
    let slow = FleetJob { work: 9000, ..job("orders", 1) };
    let r1 = world.rust("r1", &[&slow]);
    world.ready(&r1).await;
    world.tree("orders", "Rust marks a missed fire", |it| it.shards.iter().any(|it| it.misfire)).await;
    r1.kill();
    let from = now();
    let quick = FleetJob { work: 200, ..slow };
    let _j1 = world.java_ready("j1", 1, &[&quick]).await;
    world.until("j1 runs twice", |lines| runs_of(lines, "j1", from).len() >= 2).await;
    let runs = runs_of(&world.log.lines(), "j1", from);
    let pause = runs[1].started - runs[0].ended.unwrap();
    assert!(pause < 2000, "one right after the other: {runs:#?}");
    world.tree("orders", "the mark is gone", |it| it.shards.iter().all(|it| !it.misfire)).await;
    let from = world.settles(&quick, &["j1"]).await;
    let until = world.settles(&quick, &["j1"]).await;
    world.exactly_once(&quick, from, until).await;
    world.sound().await;
}
