//! Hooks that are called once for all processes, of which some are Java's.

use std::path::PathBuf;
use std::time::Duration;

use elasticjob::{Job, JobError, OnceListener, Round, Shard, Worker};
use elasticjob_testkit::Proxy;
use elasticjob_testkit::proxy::Weather;

use crate::notes::{Notes, note};
use crate::world::World;

/// With time for a slow Java.
const CRON: &str = "0/10 * * * * ?";

struct Once(PathBuf);

impl OnceListener for Once {
    async fn before_first(&self, _: &Round) -> Result<(), JobError> {
        note(&self.0, "before, by rust")
    }

    async fn after_last(&self, _: &Round) -> Result<(), JobError> {
        note(&self.0, "after, by rust")
    }
}

/// Java notes `0 fetch []`, and so on.
fn is_java_run(line: &str) -> bool {
    line.contains(" fetch ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a JDK and Maven: cargo xtask interop"]
async fn hooks_are_called_once_by_either_around_what_both_run() {
    let world = World::new("hooks").await;
    let mut notes = Notes::new(&world, "notes");
    let words = ["--job", "bills", "--kind", "dataflow", "--count", "4", "--once", "true"];
    let words: Vec<String> =
        words.iter().chain(&["--cron", CRON, "--misfire", "false"]).map(|it| (*it).to_owned()).collect();
    let way = Proxy::start(world.port()).await;
    let registry = format!("127.0.0.1:{}", way.port());
    let of_process = ["--notes", notes.path.to_str().unwrap(), "--registry", &registry];
    let java = world.java_with("j1", 1, &of_process, &words);
    world.ready(&java).await;
    // What Java registers, it looks for so late that whoever removes it at once is sooner.
    way.set(Weather::Slow(Duration::from_millis(40)));

    let path = notes.path.clone();
    let job = Job::simple("bills", move |shard: Shard| {
        let noted = note(&path, &format!("{} run", shard.item));
        async { noted }
    });
    let job = job.shards(4).cron(CRON).once_listener(Once(notes.path.clone()));
    let rust = Worker::new(world.url()).job(job).start().await.unwrap();

    let mut mixed = Vec::new();
    while mixed.len() < 3 {
        let mut round = notes.take(1, &world).await;
        while !round.last().unwrap().starts_with("after") {
            round.extend(notes.take(1, &world).await);
        }
        if round.iter().any(|it| is_java_run(it)) && round.iter().any(|it| it.ends_with(" run")) {
            mixed.push(round);
        } else {
            assert_eq!(mixed, Vec::<Vec<String>>::new(), "from then on they share every round");
        }
    }
    for round in &mixed {
        let hooks = round.iter().filter(|it| it.contains(", by "));
        assert_eq!(hooks.count(), 2, "{round:#?}");
        assert!(round[0].starts_with("before"), "{round:#?}");
        let runs = round.iter().filter(|it| is_java_run(it) || it.ends_with(" run"));
        let mut items: Vec<&str> = runs.map(|it| &it[..1]).collect();
        items.sort_unstable();
        assert_eq!(items, ["0", "1", "2", "3"], "{round:#?}");
    }
    rust.shutdown().await;
    java.kill();
}
