//! Processes of both kinds are killed and started in an order that a seed decides. Whatever came before: when it is
//! over, each item runs once for each fire, and each of ours has its share.

use std::collections::BTreeSet;
use std::time::Duration;

use elasticjob_fleet::job::FleetJob;
use elasticjob_fleet::line::now;

use crate::world::{Member, World, job};

/// How many things happen, and how far apart, in milliseconds.
const DEEDS: u32 = 10;
const APART: (u64, u64) = (700, 3200);

/// Numbers that the seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

struct Storm<'a> {
    world: &'a World,
    job: FleetJob,
    dice: Dice,
    members: Vec<Member>,
    started: u8,
}

impl Storm<'_> {
    /// A name begins with `j` or `r`, and is used once.
    fn start(&mut self, is_java: bool) {
        self.started += 1;
        let name = format!("{}{}", if is_java { 'j' } else { 'r' }, self.started);
        let member = if is_java {
            self.world.java(&name, self.started, &[&self.job])
        } else {
            self.world.rust(&name, &[&self.job])
        };
        self.members.push(member);
    }

    fn of_kind(&self, kind: char) -> usize {
        self.members.iter().filter(|it| it.name.starts_with(kind)).count()
    }

    async fn rage(&mut self) {
        for _ in 0..DEEDS {
            let wait = APART.0 + self.dice.below(APART.1 - APART.0);
            tokio::time::sleep(Duration::from_millis(wait)).await;
            if self.members.len() < 2 || (self.members.len() < 5 && self.dice.below(2) == 0) {
                let is_java = self.dice.below(2) == 0;
                self.start(is_java);
            } else {
                let at = self.dice.below(self.members.len() as u64);
                let dead = self.members.swap_remove(usize::try_from(at).unwrap());
                dead.kill();
            }
        }
    }
}

async fn weathers(name: &str, seed: u64, failover: bool) {
    let world = World::new(name).await;
    let job = FleetJob { failover, work: 1000, ..job("orders", 6) };
    let mut storm = Storm { world: &world, job, dice: Dice(seed), members: Vec::new(), started: 0 };
    storm.start(true);
    storm.start(false);
    storm.rage().await;
    while storm.of_kind('j') < 1 {
        storm.start(true);
    }
    while storm.of_kind('r') < 2 {
        storm.start(false);
    }
    for member in &storm.members {
        world.ready(member).await;
    }
    let alive: BTreeSet<&str> = storm.members.iter().map(|it| it.name.as_str()).collect();
    let is_shared = |runners: &BTreeSet<&str>| {
        runners.is_subset(&alive) && alive.iter().all(|it| it.starts_with('j') || runners.contains(it))
    };
    let what = format!("seed {seed}: a fire that {alive:?} run");
    let first = world.fires_so(now(), &storm.job, &what, is_shared).await;
    let second = world.fires_so(first, &storm.job, &what, is_shared).await;
    let last = world.fires_so(second, &storm.job, &what, is_shared).await;
    world.exactly_once(&storm.job, second, last).await;
    world.sound().await;
}

/// Another seed can be tried with `INTEROP_SEED`.
fn seed() -> u64 {
    std::env::var("INTEROP_SEED").map_or(1, |it| it.parse().expect("INTEROP_SEED is a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn after_a_storm_everything_runs_again() {
    weathers("storm", seed(), false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn after_a_storm_with_failover_everything_runs_again() {
    weathers("storm-with-failover", seed() + 100, true).await;
}
