//! What is stored: whose configuration counts, whose class, and who may read it.

use elasticjob::ops::Ops;
use elasticjob::{Event, StopReason};
use elasticjob_fleet::job::FleetJob;
use elasticjob_fleet::{Line, What};

use crate::java;
use crate::world::{World, job};

fn runs_with(lines: &[Line], process: &str, parameter: &str) -> bool {
    let mut of_it = lines.iter().filter(|it| it.process == process);
    of_it.any(|it| matches!(&it.what, What::Start(start) if start.parameter == parameter))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_document_is_taken_over_or_replaced_by_either_side() {
    let world = World::new("overwrite").await;
    let with = |parameter: &str, overwrite| {
        let parameter = parameter.to_owned();
        FleetJob { parameter, overwrite, ..job("orders", 4) }
    };
    let arrives = async |processes: &[&str], parameter: &str| {
        let everywhere = |lines: &[Line]| processes.iter().all(|it| runs_with(lines, it, parameter));
        world.until(&format!("`{parameter}` arrives"), everywhere).await;
    };
    let _j1 = world.java_ready("j1", 1, &[&with("of-j1", false)]).await;
    let _r1 = world.rust("r1", &[&with("of-r1", false)]);
    arrives(&["j1", "r1"], "of-j1").await;
    let _r2 = world.rust("r2", &[&with("of-r2", true)]);
    arrives(&["j1", "r1", "r2"], "of-r2").await;
    let _j2 = world.java_ready("j2", 2, &[&with("of-j2", true)]).await;
    arrives(&["j1", "r1", "r2", "j2"], "of-j2").await;
    // What was not to overwrite has been seen nowhere.
    assert!(!runs_with(&world.log.lines(), "r1", "of-r1"));
    world.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_job_of_another_class_is_refused_by_both() {
    let world = World::new("classes").await;
    let conflict = |it: &Event| matches!(it, Event::Stopped { reason: StopReason::Conflict { .. } });
    let of_class = |name: &str, class: &str| FleetJob { class: class.to_owned(), ..job(name, 2) };

    let _j1 = world.java_ready("j1", 1, &[&job("java-first", 2)]).await;
    let other = world.rust("other", &[&of_class("java-first", "orders::Sync")]);
    let said = other.fails(&world).await;
    assert!(said.contains("with class `interop.Jobs$Simple`, ours is `orders::Sync`"), "{said}");
    let _same = world.rust("same", &[&of_class("java-first", java::SIMPLE_CLASS)]);
    let _none = world.rust("none", &[&of_class("java-first", "")]);

    let first = world.rust("first", &[&of_class("rust-first", "orders::Sync"), &of_class("nameless", "")]);
    world.ready(&first).await;
    let _j2 = world.java_ready("j2", 2, &[&job("rust-first", 2), &job("nameless", 2)]).await;
    world.records("j2", "rust-first", 0, conflict).await;

    world.settles(&FleetJob { count: 2, ..job("nameless", 2) }, &["first", "j2"]).await;
    world.settles(&job("rust-first", 2), &["first"]).await;
    let detail = world.ops().await.job("java-first").await.unwrap();
    let members: Vec<&String> = detail.instances.iter().map(|it| &it.id).collect();
    assert_eq!(members.len(), 3, "j1, same and none: {members:?}");
    world.sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_namespace_that_belongs_to_somebody_is_shared_by_those_who_know_the_password() {
    let world = World::with_digest("digest", "fleet:secret").await;
    let job = job("orders", 4);
    let j1 = world.java_ready("j1", 1, &[&job]).await;
    let r1 = world.rust("r1", &[&job]);
    world.settles(&job, &["j1", "r1"]).await;
    // Whoever is left can do everything that is to be done with nodes that the other made.
    j1.kill();
    world.settles(&job, &["r1"]).await;
    let _j2 = world.java_ready("j2", 2, &[&job]).await;
    let shared = world.settles(&job, &["j2", "r1"]).await;
    world.rests(&job, shared).await;
    r1.leave().await;
    world.settles(&job, &["j2"]).await;
    assert!(world.java_ops().ok("job orders").await[0].starts_with("orders OK instances=1 "));

    let stranger = World::new("digest").await;
    let refused = Ops::connect(stranger.url()).await.unwrap_err().to_string();
    assert!(refused.contains("denies access"), "{refused}");
    let refused = stranger.java_ops().run("config orders").await.unwrap_err();
    assert!(refused.contains("NoAuth"), "{refused}");
    world.sound().await;
}

/// Releases of Java name the thread pool's key differently, and refuse the whole document if they do not know it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn the_name_that_java_has_for_the_pool_is_read_and_kept() {
    let world = World::new("pool").await;
    let orders = job("orders", 4);
    let words = [java::job(&orders), vec!["--pool".into(), "SINGLE_THREAD".into()]].concat();
    let j1 = world.java_with("j1", 1, &[], &words);
    world.ready(&j1).await;
    let _r1 = world.rust("r1", &[&orders]);
    world.settles(&orders, &["j1", "r1"]).await;
    let ops = world.ops().await;
    let read = ops.config("orders").await.unwrap();
    assert!(read.text.contains("\njobExecutorServiceHandlerType: SINGLE_THREAD\n"), "{}", read.text);
    let text = read.text.replace("jobParameter: ''", "jobParameter: fresh");
    ops.update_config("orders", &read, &text).await.unwrap();
    let both = |lines: &[Line]| runs_with(lines, "j1", "fresh") && runs_with(lines, "r1", "fresh");
    world.until("both read what we wrote", both).await;
    assert_eq!(ops.config("orders").await.unwrap().text, text);
    world.sound().await;

    // What we write under the name of 3.0.5 is what the documentation says: not readable for 3.0.4.
    let ours = FleetJob { pool: 3, ..job("ours", 2) };
    let r2 = world.rust("r2", &[&ours]);
    world.ready(&r2).await;
    let _j2 = world.java_ready("j2", 2, &[&job("ours", 2)]).await;
    let refused = |it: &Event| matches!(it, Event::Stopped { reason: StopReason::Broken(said) } if said.contains("jobExecutorThreadPoolSizeProviderType"));
    world.records("j2", "ours", 0, refused).await;
}
