//! What the parts cost by themselves, without I/O: `cargo bench -p elasticjob-bench`.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{BatchSize, Criterion};
use elasticjob_core::coord::{Coordinator, Effect, Hooks, Input, Local, Now, Verdict};
use elasticjob_core::event::Outcome;
use elasticjob_core::spec::JobSpec;
use elasticjob_core::strategy::Strategies;
use elasticjob_core::tree::{Change, SessionId, Tree};
use elasticjob_core::view::View;
use elasticjob_cron::{Cron, Schedule, Zone};
use jiff::{SignedDuration, Timestamp};

const ROOT: &str = "/job";
const ME: &str = "10.0.0.1@-@1@-@a";
/// A whole second, at which nothing special happens.
const START: i64 = 1_800_000_000;

fn main() {
    let mut criterion = Criterion::default()
        .output_directory(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("criterion"))
        .sample_size(30)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    rounds(&mut criterion);
    views(&mut criterion);
    documents(&mut criterion);
    criterion.final_summary();
}

/// One job, its only instance, and a registry in memory.
struct Cluster {
    tree: Tree,
    session: SessionId,
    coordinator: Coordinator,
    seconds: i64,
    /// Rounds that ended.
    rounds: u64,
}

impl Cluster {
    fn start(items: u32) -> Cluster {
        let mut spec = JobSpec::new("job", items);
        spec.cron = Some("0/1 * * * * ?".to_owned());
        let local = Local { spec, class: "BENCH".to_owned(), zone: Zone::UTC, hooks: Hooks::default() };
        let mut tree = Tree::default();
        let session = tree.open_session();
        let coordinator = Coordinator::new(local, Strategies::default(), now(0));
        let mut cluster = Cluster { tree, session, coordinator, seconds: 0, rounds: 0 };
        let connected = Input::Connected { me: ME.to_owned(), nodes: Vec::new(), same_session: false };
        cluster.feed(connected);
        cluster.feed(Input::Tick);
        while cluster.rounds == 0 {
            assert!(cluster.seconds < 10, "no round: {}", cluster.coordinator.describe());
            cluster.second();
        }
        cluster
    }

    /// A second passes, and its fire is run to its end.
    fn second(&mut self) {
        self.seconds += 1;
        self.feed(Input::Tick);
    }

    /// Hands an input to the coordinator, and does all that comes of it.
    fn feed(&mut self, input: Input) {
        let now = now(self.seconds);
        let (mut inputs, mut effects) = (std::collections::VecDeque::from([input]), Vec::new());
        while let Some(input) = inputs.pop_front() {
            self.coordinator.step(now, input, &mut effects);
            for effect in effects.drain(..) {
                match effect {
                    Effect::Commit { slot, ops } => {
                        let verdict = match self.tree.commit(self.session, ROOT, &ops, now.wall) {
                            Ok(changes) => {
                                let seen = changes.iter().filter_map(|it| it.relative_to(ROOT)).collect();
                                inputs.push_back(Input::Changed(seen));
                                Verdict::Done
                            }
                            Err(_) => Verdict::Refused,
                        };
                        inputs.push_back(Input::Settled(slot, verdict));
                    }
                    Effect::Run(order) => {
                        self.rounds += 1;
                        let (round, outcome) = (order.round, Outcome::Succeeded);
                        let ended = |item| {
                            let (outcome, output) = (outcome.clone(), None);
                            Input::ItemFinished { round, item, outcome, output }
                        };
                        inputs.extend(order.items.iter().map(|it| ended(it.item)));
                    }
                    Effect::Stop(reason) => panic!("it stopped: {reason:?}"),
                    _ => {}
                }
            }
        }
    }
}

fn now(seconds: i64) -> Now {
    let wall = Timestamp::from_second(START).expect("a time") + SignedDuration::from_secs(seconds);
    Now { wall, mono: Duration::from_secs(seconds.unsigned_abs()) }
}

fn rounds(criterion: &mut Criterion) {
    for items in [1, 10, 100, 1000] {
        let mut cluster = Cluster::start(items);
        criterion.bench_function(&format!("core/a whole round of {items} items"), |bencher| {
            bencher.iter(|| cluster.second());
        });
    }
    let mut cluster = Cluster::start(10);
    criterion.bench_function("core/a step in which nothing is to be done", |bencher| {
        bencher.iter(|| cluster.feed(Input::Tick));
    });
}

fn views(criterion: &mut Criterion) {
    for items in [10, 1000] {
        let entries = Cluster::start(items).tree.snapshot(ROOT);
        criterion.bench_function(&format!("view/read a tree of {} nodes", entries.len()), |bencher| {
            bencher.iter(|| View::new(black_box(&entries)));
        });
        let mut view = View::new(&entries);
        let cursor = entries.iter().find(|it| it.path.ends_with("/cursor")).expect("it ran").clone();
        let change = Change::Put(cursor);
        criterion.bench_function(&format!("view/apply a change to {items} items"), |bencher| {
            bencher.iter(|| view.apply(black_box(&change)));
        });
    }
}

fn documents(criterion: &mut Criterion) {
    let mut spec = JobSpec::new("job", 10);
    spec.cron = Some("0 0/5 9-17 ? * MON-FRI".to_owned());
    let text = spec.to_yaml();
    criterion.bench_function("yaml/write", |bencher| bencher.iter(|| black_box(&spec).to_yaml()));
    criterion.bench_function("yaml/read", |bencher| {
        bencher.iter(|| JobSpec::from_yaml(black_box(&text)).expect("what was written can be read"));
    });
    let expression = "0 0/5 9-17 ? * MON-FRI";
    criterion.bench_function("cron/parse", |bencher| {
        bencher.iter(|| Cron::parse(black_box(expression)).expect("it is right"));
    });
    let schedule = Schedule::new(Cron::parse(expression).expect("it is right"), Zone::UTC);
    let at = now(0).wall;
    criterion.bench_function("cron/next", |bencher| {
        bencher.iter_batched(|| at, |at| schedule.next_after(black_box(at)), BatchSize::SmallInput);
    });
}
