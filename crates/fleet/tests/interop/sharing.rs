//! Who gets what is the same whoever leads.

use std::collections::BTreeMap;

use elasticjob::ops::{JobDetail, Part};
use elasticjob_fleet::job::FleetJob;
use elasticjob_fleet::line::now;

use crate::world::{World, java_host, job};

type Owners = BTreeMap<u32, String>;

/// Who owns what, if everything is handed out to five instances.
fn owners(job: &JobDetail) -> Option<Owners> {
    let owner = |it: &elasticjob::ops::ShardInfo| Some((it.item, it.owner.clone()?));
    let owners: Owners = job.shards.iter().map(owner).collect::<Option<_>>()?;
    let sharers: std::collections::BTreeSet<&String> = owners.values().collect();
    (owners.len() == 100 && sharers.len() == 5 && !job.resharding).then_some(owners)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn a_hundred_shards_are_shared_alike_whoever_leads() {
    let world = World::new("sharing").await;
    // Names with an even and an odd hash, for the strategy that asks for it.
    let strategies = [
        ("by-default", None),
        ("odevity-odd", Some("ODEVITY")),
        ("odevity-even", Some("ODEVITY")),
        ("rotated", Some("ROUND_ROBIN")),
    ];
    let jobs = strategies.map(|(name, strategy)| {
        let cron = Some("0/20 * * * * ?".to_owned());
        FleetJob { strategy: strategy.map(str::to_owned), cron, work: 20, ..job(name, 100) }
    });
    let jobs: Vec<&FleetJob> = jobs.iter().collect();
    let _j1 = world.java_ready("j1", 1, &jobs).await;
    let _j2 = world.java_ready("j2", 2, &jobs).await;
    let rust = ["r1", "r2", "r3"].map(|it| world.rust(it, &jobs));
    for member in &rust {
        world.ready(member).await;
    }
    let ops = world.ops().await;
    let mut by_java: BTreeMap<String, Owners> = BTreeMap::new();
    for job in &jobs {
        let detail = world.tree(&job.name, "Java shares it among all", |it| owners(it).is_some()).await;
        assert_eq!(detail.leader, Some(world.instance("j1")), "{}", job.name);
        by_java.insert(job.name.clone(), owners(&detail).unwrap());
    }
    assert_ne!(by_java["by-default"], by_java["rotated"], "the strategies differ");
    assert_ne!(by_java["odevity-odd"], by_java["odevity-even"], "the hashes differ");

    // Java cannot lead while its hosts are disabled. Enabled again, the same five are there, and Rust leads.
    for job in &jobs {
        for host in [1, 2] {
            ops.disable(&job.name, &Part::Server(java_host(host))).await.unwrap();
        }
    }
    for job in &jobs {
        let is_ours = |it: &JobDetail| it.instances.iter().any(|it| it.leads && it.rust);
        world.tree(&job.name, "Rust leads", is_ours).await;
        for host in [1, 2] {
            ops.enable(&job.name, &Part::Server(java_host(host))).await.unwrap();
        }
    }
    for job in &jobs {
        let detail = world.tree(&job.name, "Rust shares it among all", |it| owners(it).is_some()).await;
        assert!(detail.instances.iter().any(|it| it.leads && it.rust), "{}", job.name);
        assert_eq!(owners(&detail).unwrap(), by_java[&job.name], "{}", job.name);
    }
    // And each does its part.
    let from = now();
    for job in &jobs {
        world.settles_after(from, job, &["j1", "j2", "r1", "r2", "r3"]).await;
    }
    world.sound().await;
}
