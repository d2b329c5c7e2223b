//! The checker sees in a log of real processes what it sees in virtual ones.

use elasticjob_core::spec::JobSpec;
use elasticjob_fleet::history::{Setup, judge};
use elasticjob_fleet::line::{Deed, Ended, Fact, Start, Why};
use elasticjob_fleet::{Line, What};
use elasticjob_sim::scenario::JobSetup;

const BEGAN: u64 = 1_794_744_000_000;
const PERIOD: u64 = 6_000;
const ENDED: u64 = BEGAN + 120_000;

fn spec() -> JobSpec {
    let mut spec = JobSpec::new("plain", 2);
    spec.cron = Some("0/6 * * * * ?".to_owned());
    spec
}

fn setup() -> Setup {
    let job = JobSetup {
        spec: spec(),
        period: PERIOD,
        long_percent: 0,
        endless_percent: 0,
        deaf_percent: 0,
        hooks: Default::default(),
    };
    Setup {
        seed: 0,
        jobs: vec![job],
        session_timeout: 5_000,
        began: BEGAN,
        healed: BEGAN + 10_000,
        ended: ENDED,
    }
}

fn line(at: u64, process: &str, what: What) -> Line {
    Line { at, process: process.to_owned(), what }
}

fn fact(at: u64, fact: Fact) -> Line {
    line(at, "registry", What::Registry(fact))
}

fn start(process: &str, item: u32, fire: u64, token: u64) -> Start {
    Start {
        instance: format!("1.2.3.4@-@{process}.1"),
        job: "plain".to_owned(),
        item,
        total: 2,
        run: format!("{process}-{item}-{token}"),
        task: format!("plain@-@{item}@-@READY@-@1.2.3.4@-@{process}.1-{token}"),
        source: Some(Why::Schedule),
        fire: i64::try_from(fire).ok(),
        merged: 0,
        token: Some(token),
        parameter: String::new(),
    }
}

fn run(process: &str, item: u32, at: u64, lasts: u64, token: u64) -> Vec<Line> {
    let start = start(process, item, at / PERIOD * PERIOD, token);
    let run = start.run.clone();
    vec![
        line(at, process, What::Start(start)),
        line(at, process, What::Wrote { run: run.clone(), accepted: true }),
        line(at + lasts, process, What::End { run, outcome: Ended::Succeeded }),
    ]
}

/// Two processes, an item each, at every fire.
fn good() -> Vec<Line> {
    let mut lines = vec![
        fact(BEGAN, Fact::Exists { job: "plain".to_owned() }),
        fact(BEGAN, Fact::Config { job: "plain".to_owned(), document: Some(spec().to_yaml()) }),
    ];
    for process in ["a", "b"] {
        let instance = format!("1.2.3.4@-@{process}.1");
        lines.push(line(BEGAN, process, What::Born { pid: 1 }));
        lines.push(line(BEGAN + 5, process, What::Ready { instance: instance.clone() }));
        lines.push(fact(BEGAN + 3, Fact::Opened { instance }));
    }
    for fire in (BEGAN + PERIOD..ENDED).step_by(usize::try_from(PERIOD).unwrap_or(1)) {
        lines.extend(run("a", 0, fire + 10, 200, fire));
        lines.extend(run("b", 1, fire + 12, 200, fire));
    }
    lines
}

fn found(change: impl FnOnce(&mut Vec<Line>)) -> Vec<&'static str> {
    let mut lines = good();
    change(&mut lines);
    let mut names: Vec<&str> = judge(&setup(), &lines).iter().map(|it| it.invariant).collect();
    names.dedup();
    names
}

fn closed(at: u64, process: &str) -> Line {
    fact(at, Fact::Closed { instance: format!("1.2.3.4@-@{process}.1"), expired: true })
}

#[test]
fn nothing_is_wrong_with_a_good_log() {
    assert_eq!(found(|_| {}), Vec::<&str>::new());
}

#[test]
fn a_fire_that_nobody_ran_is_missed() {
    let late = BEGAN + 60_000;
    let of = |it: &Line, item| matches!(&it.what, What::Start(start) if start.item == item && start.fire == Some(late as i64));
    // Its later fires stand for it: they would have to say so.
    let merged = found(|lines| lines.retain(|it| !of(it, 0)));
    assert_eq!(merged, ["merge-lawful"]);
    let last = |it: &Line| matches!(&it.what, What::Start(start) if start.item == 0 && it.at > late);
    assert!(found(|lines| lines.retain(|it| !last(it))).contains(&"recovers"));
}

#[test]
fn a_fire_that_ran_twice_is_seen() {
    let again = BEGAN + 30_000;
    let twice = found(|lines| lines.extend(run("a", 1, again + 600, 100, again + 1)));
    assert_eq!(twice, ["unique"]);
}

#[test]
fn two_runs_at_a_time_are_seen_unless_one_has_lost_its_right() {
    let at = BEGAN + 30_100;
    let other = |lines: &mut Vec<Line>| {
        lines.extend(run("b", 0, at, 50, at));
    };
    assert_eq!(found(other), ["no overlap", "unique"]);
    let fenced = found(|lines| {
        other(lines);
        lines.push(closed(at - 10, "a"));
        lines.retain(|it| it.process != "a" || it.at < at);
        // It is told to stop, and goes on for a while.
        lines.push(line(at - 50, "a", What::Told { run: format!("a-0-{}", BEGAN + 30_000) }));
    });
    assert!(!fenced.contains(&"no overlap"), "{fenced:?}");
}

#[test]
fn tokens_that_do_not_grow_are_seen() {
    let at = BEGAN + 31_000;
    assert!(found(|lines| lines.extend(run("a", 0, at, 50, 7))).contains(&"fenced"));
    let refused = found(|lines| {
        let run = format!("a-0-{}", BEGAN + 30_000);
        lines.push(line(at - 900, "a", What::Wrote { run, accepted: false }));
    });
    assert_eq!(refused, ["fenced"]);
}

#[test]
fn a_zombie_that_starts_something_is_seen() {
    let zombie = found(|lines| lines.push(closed(BEGAN + 60_000, "b")));
    assert!(zombie.contains(&"stops"), "{zombie:?}");
}

#[test]
fn what_runs_on_without_being_told_to_stop_is_seen() {
    let at = BEGAN + 60_010;
    let run = format!("b-1-{}", BEGAN + 60_000);
    let lost = |lines: &mut Vec<Line>| {
        lines.retain(|it| it.process != "b" || it.at <= at + 10);
        lines.push(closed(at + 100, "b"));
        lines.push(line(at + 4_000, "b", What::End { run: run.clone(), outcome: Ended::Succeeded }));
    };
    assert!(found(lost).contains(&"stops"));
    let told = found(|lines| {
        lost(lines);
        lines.push(line(at + 50, "b", What::Told { run: run.clone() }));
    });
    assert!(!told.contains(&"stops"), "{told:?}");
}

#[test]
fn what_an_operator_forbade_must_not_run() {
    let disabled = found(|lines| {
        let off = Fact::Item { job: "plain".to_owned(), item: 0, enabled: false };
        lines.push(fact(BEGAN + 60_000, off));
    });
    assert!(disabled.contains(&"obeys"), "{disabled:?}");
}

#[test]
fn what_comes_after_the_end_does_not_count() {
    let late = found(|lines| {
        lines.extend(run("a", 0, ENDED + 100, 50, 7));
        lines.push(line(ENDED + 1, "chaos", What::Done(Deed::Killed { who: "a".to_owned() })));
    });
    assert_eq!(late, Vec::<&str>::new());
}
