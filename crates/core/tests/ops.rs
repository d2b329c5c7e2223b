//! What operators see and what comes of their commands, for fleets that are set up by hand, at times that are
//! set by hand.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![expect(clippy::needless_pass_by_value, reason = "an expectation is written where it is used")]

#[path = "ops/records.rs"]
mod records;

use elasticjob_core::node::Node;
use elasticjob_core::ops::act::{self, Part};
use elasticjob_core::ops::ask::{self, JobStatus, JobSummary, ShardStatus};
use elasticjob_core::ops::check::check;
use elasticjob_core::ops::clocks;
use elasticjob_core::ops::config::{self, Stored};
use elasticjob_core::ops::explain::{Explanation, Past, Question, explain};
use elasticjob_core::ops::{Act, JobTree, Refusal};
use elasticjob_core::spec::{InstanceDoc, JobSpec};
use elasticjob_core::tree::{Op, Tree};
use elasticjob_core::view::{DISABLED, ENABLED};
use elasticjob_cron::Zone;
use expect_test::{Expect, expect};
use jiff::Timestamp;

const A: &str = "10.0.0.1@-@1.a.1";
const B: &str = "10.0.0.12@-@2.b.1";
const JAVA: &str = "10.0.0.3@-@4711";

/// A job's subtree, and a clock.
struct Job {
    tree: Tree,
    session: u64,
    now: Timestamp,
}

fn at(text: &str) -> Timestamp {
    format!("2026-11-15T{text}Z").parse().unwrap()
}

fn ms(text: &str) -> String {
    at(text).as_millisecond().to_string()
}

impl Job {
    /// Every ten minutes, four shards; nobody is there. Written at 01:00.
    fn new() -> Job {
        let mut tree = Tree::default();
        let session = tree.open_session();
        let mut spec = JobSpec::new("tens", 4);
        spec.cron = Some("0 0/10 * * * ?".into());
        Job { tree, session, now: at("01:00:00") }
            .with([Node::Root.create(""), Node::Config.create(spec.to_yaml())])
    }

    /// The same, with two instances that own two shards each.
    fn at_work() -> Job {
        let owner = |item: u32| Node::Owner(item).create(if item.is_multiple_of(2) { A } else { B });
        Job::new().joined(A).joined(B).with([Node::Leader.create(A)]).with((0..4).map(owner))
    }

    fn with(mut self, ops: impl IntoIterator<Item = Op>) -> Job {
        self.commit(&ops.into_iter().collect::<Vec<_>>());
        self
    }

    fn joined(self, id: &str) -> Job {
        let ip = id.split('@').next().unwrap();
        let document = InstanceDoc::new(id, ip).to_yaml();
        self.with([Node::Server(ip.into()).create(ENABLED), Node::Instance(id.into()).create(document)])
    }

    /// The settled fires.
    fn settled(self, fires: [&str; 4]) -> Job {
        self.with(fires.iter().zip(0..).map(|(fire, item)| Node::Cursor(item).create(ms(fire))))
    }

    fn at(mut self, time: &str) -> Job {
        self.now = at(time);
        self
    }

    fn commit(&mut self, ops: &[Op]) {
        self.tree.commit(self.session, "/tens", ops, self.now).unwrap();
    }

    fn look(&self) -> JobTree {
        JobTree::new("tens", self.tree.snapshot("/tens"))
    }

    fn edit(&mut self, change: impl FnOnce(&mut JobSpec)) {
        let mut spec = self.look().spec().unwrap();
        change(&mut spec);
        self.commit(&[Node::Config.set(spec.to_yaml())]);
    }

    fn status(&self) -> JobStatus {
        JobSummary::of(&self.look()).status
    }

    fn explain(&self, time: &str, past: &[Past]) -> Explanation {
        let question = Question { at: at(time), now: self.now, zone: &Zone::UTC, past };
        explain(&self.look(), &question).unwrap()
    }
}

#[test]
fn the_status_of_a_job_is_found_by_the_rules_of_java() {
    assert_eq!(Job::new().status(), JobStatus::Crashed);
    assert_eq!(Job::new().joined(A).status(), JobStatus::ShardingFlag);
    assert_eq!(Job::at_work().status(), JobStatus::Ok);
    let orphaned = Job::at_work().with([Node::Owner(3).set("10.0.0.9@-@9.z.1")]);
    assert_eq!(orphaned.status(), JobStatus::ShardingFlag);
    let half = Job::at_work().with([Node::Server("10.0.0.1".into()).set(DISABLED)]);
    assert_eq!(half.status(), JobStatus::Ok);
    let off = half.with([Node::Server("10.0.0.12".into()).set(DISABLED), Node::Owner(0).delete()]);
    assert_eq!(off.status(), JobStatus::Disabled); // Before the shards are looked at.
    let serverless = Job::new().with([Node::Instance(A.into()).create("")]);
    assert_eq!(serverless.status(), JobStatus::Disabled); // None of none: as in Java.
}

#[test]
fn the_status_of_a_shard_is_found_also_when_its_owner_is_gone() {
    let job = Job::at_work().with([
        Node::Disabled(0).create(""),
        Node::Running(0).create(A),
        Node::Running(1).create(B),
        Node::Owner(2).set("10.0.0.9@-@9.z.1"),
        Node::Running(7).create("10.0.0.9@-@9.z.1"),
    ]);
    let shards = ask::shards(&job.look());
    let statuses: Vec<ShardStatus> = shards.iter().map(|it| it.status).collect();
    use ShardStatus::{Disabled, Pending, Running, ShardingFlag};
    assert_eq!(statuses, [Disabled, Running, ShardingFlag, Pending, Running]);
    assert_eq!(shards[2].server.as_deref(), Some("10.0.0.9"));
    assert!(!shards[2].owner_alive && !shards[4].runner_alive && shards[4].surplus);
    assert_eq!(shards[1].running_since, Some(at("01:00:00")));
}

#[test]
fn a_trigger_says_who_will_run_what() {
    let job = Job::at_work().joined(JAVA).with([Node::Running(1).create(B), Node::Running(9).create(JAVA)]);
    expect![[r#"
        Done {
            changes: [
                "10.0.0.12@-@2.b.1 is asked to run",
                "10.0.0.1@-@1.a.1 is asked to run",
                "10.0.0.3@-@4711 is asked to run",
            ],
            consequences: [
                "10.0.0.12@-@2.b.1 runs shards 1, 3 when the round it is in has ended",
                "10.0.0.1@-@1.a.1 runs shards 0, 2 now",
                "10.0.0.3@-@4711 runs nothing: no shard belongs to it",
            ],
        }
    "#]]
    .assert_debug_eq(&act::trigger(&job.look(), None, "").unwrap().done);
    let half = Job::at_work().with([Node::Server("10.0.0.1".into()).set(DISABLED)]);
    let refusal = act::trigger(&half.look(), Some(A), "").unwrap_err();
    assert_eq!(refusal.to_string(), "nothing would run, because its server is disabled: enable one first");
}

#[test]
fn the_parameter_of_a_trigger_is_checked_before_anybody_is_asked() {
    let job = Job::at_work();
    let act = act::trigger(&job.look(), Some(A), "day=1").unwrap();
    assert_eq!(act.ops[1], Node::Trigger(A.into()).create("day=1"));
    let long = "x".repeat(4097);
    assert!(act::trigger(&job.look(), None, &long[1..]).is_ok());
    let refusal = act::trigger(&job.look(), None, &long).unwrap_err();
    let said = "the parameter has 4097 bytes, and a trigger of a job with 4 shard(s) takes 4096 at most: put what is long where the job can read it, and give its name";
    assert_eq!(refusal.to_string(), said);
    let mut many = Job::at_work();
    for (total, most) in [(190, 4096), (500, 1143), (1000, 221), (10_000, 221)] {
        many.edit(|it| it.sharding_total_count = total);
        assert!(act::trigger(&many.look(), None, &long[..most]).is_ok(), "{total}");
        let refusal = act::trigger(&many.look(), None, &long[..=most]).unwrap_err();
        assert_eq!(refusal, Refusal::ParameterTooLong { size: most + 1, limit: most, total });
    }

    let asked = job.with([Node::Trigger(A.into()).create("day=1")]);
    assert!(act::trigger(&asked.look(), Some(A), "day=1").unwrap().ops.is_empty());
    let refusal = act::trigger(&asked.look(), None, "day=2").unwrap_err();
    assert_eq!(refusal, Refusal::AskedOtherwise { id: A.into() });
}

fn clocks_of(job: &Job) -> Vec<String> {
    let found = clocks::compare(&[job.look()], job.now, &Zone::UTC);
    found.into_iter().map(|it| format!("{:?}: {}", it.level, it.what)).collect()
}

/// What an instance writes when it begins a fire, by the registry's clock and by its own.
fn begun(job: Job, item: u32, registrys: &str, its_own: &str) -> Job {
    job.at(registrys).with([Node::Cursor(item).create(format!("{} {}", ms("01:10:00"), ms(its_own)))])
}

#[test]
fn clocks_are_compared_by_what_instances_wrote() {
    let fine = begun(begun(Job::at_work(), 0, "01:10:00", "01:10:00"), 1, "01:10:01", "01:10:00");
    assert!(clocks_of(&fine).is_empty());
    let one = begun(begun(Job::at_work(), 0, "01:10:00", "01:10:30"), 1, "01:10:00", "01:10:00");
    let said = "Problem: the clock of 10.0.0.1@-@1.a.1 is 30 s ahead of the registry's, as of 2026-11-15 01:10:00 UTC";
    assert_eq!(clocks_of(&one), [said]);
    // The last thing counts that it wrote.
    assert!(clocks_of(&begun(one, 2, "01:20:00", "01:20:01")).is_empty());
    let slow = begun(begun(Job::at_work(), 0, "01:15:00", "01:10:00"), 1, "01:10:00", "01:10:00");
    let said = "Problem: the clock of 10.0.0.1@-@1.a.1 is 5 min behind the registry's, as of 2026-11-15 01:15:00 UTC";
    assert_eq!(clocks_of(&slow.at("01:15:00")), [said]);
    let both = begun(begun(Job::at_work(), 0, "01:11:00", "01:10:00"), 1, "01:11:01", "01:10:00");
    let said = "Problem: the clocks of all 2 instances are 61 s behind the registry's: it is wrong";
    assert_eq!(clocks_of(&both), [said]);
    // Who moved an item, or is dead, has written nothing that counts.
    let moved = begun(Job::at_work(), 0, "01:10:00", "01:10:30").with([Node::Cursor(0).set(ms("01:10:00"))]);
    assert!(clocks_of(&moved).is_empty());
    let dead = begun(Job::at_work(), 0, "01:10:00", "01:10:30").with([Node::Instance(A.into()).delete()]);
    assert!(clocks_of(&dead).is_empty());
    let said = "Note: the clock of this machine is at least 10 min behind the registry's";
    assert_eq!(clocks_of(&fine.at("01:00:00")), [said]);
}

/// Whatever is done is done once: planned again, there is nothing left to do.
#[test]
fn commands_are_done_once() {
    type Plan = fn(&JobTree) -> Result<Act, Refusal>;
    let plans: [(&str, Plan); 6] = [
        ("trigger", |it| act::trigger(it, None, "")),
        ("disable", |it| act::disable(it, &Part::Job)),
        ("disable server", |it| act::disable(it, &Part::Server("10.0.0.1".into()))),
        ("disable item", |it| act::disable(it, &Part::Item(3))),
        ("enable item", |it| act::enable(it, &Part::Item(2))),
        ("enable", |it| act::enable(it, &Part::Job)),
    ];
    for (name, plan) in plans {
        let mut job = Job::at_work().with([Node::Disabled(2).create("")]);
        if name == "enable" {
            job.commit(&[Node::Server("10.0.0.1".into()).set(DISABLED)]);
        }
        let first = plan(&job.look()).unwrap();
        assert!(!first.ops.is_empty() && !first.done.changes.is_empty(), "{name}");
        job.commit(&first.ops);
        let again = plan(&job.look()).unwrap();
        assert!(again.ops.is_empty() && again.done.changes.is_empty(), "{name}: {again:?}");
    }
}

#[test]
fn a_removed_job_leaves_nothing_whatever_it_had() {
    let mut job = Job::at_work().settled(["00:00:00"; 4]).with([
        Node::Trigger(A.into()).create(""),
        Op::Create {
            path: "/somebody/elses".into(),
            data: "x".into(),
            kind: elasticjob_core::tree::Kind::Persistent,
        },
        Node::Started(1).create(""),
    ]);
    let act = act::remove_job(&job.look());
    assert_eq!(
        act.ops[..3].iter().map(Op::path).collect::<Vec<_>>(),
        [format!("/instances/{A}"), format!("/instances/{B}"), "/config".into()]
    );
    job.commit(&act.ops);
    assert!(!job.look().exists());
}

#[test]
fn a_server_is_removed_with_its_instances_and_not_one_whose_address_it_begins() {
    let mut job = Job::at_work();
    job.commit(&act::remove_server(&job.look(), "10.0.0.1").unwrap().ops);
    let view = job.look().view;
    assert_eq!(view.servers.keys().collect::<Vec<_>>(), ["10.0.0.12"]);
    assert_eq!(view.instances.keys().collect::<Vec<_>>(), [B]);
}

#[test]
fn an_edit_on_top_of_somebody_elses_is_refused_and_shows_it() {
    let mut job = Job::at_work();
    let read = config::stored(&job.look()).unwrap();
    let mine = read.text.replace("failover: false", "failover: true");
    job.edit(|spec| spec.job_parameter = "full".into());
    let refusal = config::update(&job.look(), &read, &mine, job.now, &Zone::UTC).unwrap_err();
    assert_eq!(
        refusal,
        Refusal::Edited { diff: vec!["- jobParameter: ''".into(), "+ jobParameter: full".into()] }
    );
    // Written over and back again, it is still what was read.
    job.edit(|spec| spec.job_parameter = String::new());
    let act = config::update(&job.look(), &read, &mine, job.now, &Zone::UTC).unwrap();
    job.commit(&act.ops);
    assert!(job.look().spec().unwrap().failover);
    // Between the plan and the commit, the version decides.
    let stale =
        config::update(&job.look(), &config::stored(&job.look()).unwrap(), &read.text, job.now, &Zone::UTC);
    job.edit(|spec| spec.misfire = false);
    assert!(job.tree.commit(job.session, "/tens", &stale.unwrap().ops, job.now).is_err());
}

#[test]
fn an_edit_keeps_what_others_wrote_and_says_what_it_will_cause() {
    let mut job = Job::at_work();
    let foreign = format!("{}fromTheFuture: 1\n", config::stored(&job.look()).unwrap().text);
    job.commit(&[Node::Config.set(foreign.clone())]);
    let read = config::stored(&job.look()).unwrap();
    let text = foreign
        .replace("0 0/10 * * * ?", "0 0 3 * * ?")
        .replace("monitorExecution: true", "monitorExecution: false");
    let text = format!("{text}timeZone: Europe/Vienna\noverwrite: true\n").replace("overwrite: false\n", "");
    let act = config::update(&job.look(), &read, &text, job.now, &Zone::UTC).unwrap();
    expect![[r#"
        Done {
            changes: [
                "- cron: 0 0/10 * * * ?",
                "+ cron: 0 0 3 * * ?",
                "+ fromTheFuture: 1",
                "- monitorExecution: true",
                "- overwrite: false",
                "+ monitorExecution: false",
                "+ overwrite: true",
                "- fromTheFuture: 1",
                "+ timeZone: Europe/Vienna",
            ],
            consequences: [
                "it fires next at 2026-11-15 02:00:00 UTC",
                "nothing prevents a shard from running twice at once any more, and failover is off",
                "`overwrite` is on: a worker that is started with other settings replaces these",
                "Java 3.0.5 could not read this job: timeZone `Europe/Vienna` does not start with GMT: write an offset such as GMT+8:00; key `fromTheFuture` is unknown to it: move the setting into props",
            ],
        }
    "#]].assert_debug_eq(&act.done);
    job.commit(&act.ops);
    assert!(config::stored(&job.look()).unwrap().text.contains("fromTheFuture: 1"));
    let broken = Stored { text: "jobName: [".into(), version: 0 };
    assert!(matches!(
        config::update(&job.look(), &broken, &text, job.now, &Zone::UTC),
        Err(Refusal::Edited { .. })
    ));
}

#[test]
fn a_strategy_that_only_some_may_know_is_pointed_out() {
    let job = Job::at_work();
    let read = config::stored(&job.look()).unwrap();
    let told = |name: &str| {
        let text = format!("{}jobShardingStrategyType: {name}\n", read.text);
        config::update(&job.look(), &read, &text, job.now, &Zone::UTC).unwrap().done.consequences
    };
    assert_eq!(told("odevity"), [""; 0]);
    assert_eq!(
        told("by-rack"),
        [
            "instances that do not know the strategy `by-rack` refuse the change, and go on with what they have"
        ]
    );
}

#[test]
fn a_handler_that_only_java_goes_by_is_pointed_out() {
    let mut job = Job::at_work();
    job.edit(|spec| drop(spec.props.insert("elasticjob.error.handlers".into(), "LOG,SLACK".into())));
    let read = config::stored(&job.look()).unwrap();
    let text = format!("{}jobErrorHandlerType: EMAIL\n", read.text);
    let told = config::update(&job.look(), &read, &text, job.now, &Zone::UTC).unwrap().done.consequences;
    assert_eq!(
        told,
        ["`jobErrorHandlerType` counts for Java peers only: `elasticjob.error.handlers` says who is told"]
    );
}

#[test]
fn settings_that_cannot_be_read_can_be_put_right() {
    let mut job = Job::at_work();
    let good = config::stored(&job.look()).unwrap().text;
    job.commit(&[Node::Config.set("shardingTotalCount: many\n")]);
    assert_eq!(JobSummary::of(&job.look()).shards, 4); // As many as there are nodes for.
    assert!(JobSummary::of(&job.look()).problem.is_some());
    job.commit(&[Node::Misfire(u32::MAX).create("")]);
    assert_eq!(ask::shards(&job.look()).len(), 5); // And not four thousand million.
    let read = config::stored(&job.look()).unwrap();
    job.commit(&config::update(&job.look(), &read, &good, job.now, &Zone::UTC).unwrap().ops);
    assert_eq!(JobSummary::of(&job.look()).problem, None);
}

#[test]
fn a_pause_disables_everybody_and_a_resume_only_enables_whom_it_disabled() {
    let mut job = Job::at_work().with([Node::Server("10.0.0.12".into()).set(DISABLED)]);
    let before = job.look();
    job.commit(&config::pause(&job.look(), "alice", job.now).unwrap().ops);
    assert!(job.look().spec().unwrap().disabled);
    assert!(job.look().spec().unwrap().java_readable().is_ok());
    // One that came while the job was paused.
    job.commit(&[Node::Server("10.0.0.3".into()).create(DISABLED)]);
    assert!(matches!(act::enable(&job.look(), &Part::Job), Err(Refusal::Paused { .. })));
    job.commit(&config::resume(&job.look()).unwrap().ops);
    let view = job.look().view;
    let enabled = |ip| view.is_enabled(ip);
    assert!(enabled("10.0.0.1") && enabled("10.0.0.3") && !enabled("10.0.0.12"));
    assert_eq!(job.look().spec(), before.spec());
}

fn explained(it: &Explanation) -> String {
    let mut text = format!("{}\n", it.answer);
    for chain in &it.because {
        for (depth, cause) in chain.iter().enumerate() {
            text += &format!("{}because {cause}\n", "  ".repeat(depth + 1));
        }
    }
    text
}

fn check_explain(job: &Job, time: &str, expected: Expect) {
    expected.assert_eq(&explained(&job.explain(time, &[])));
}

#[test]
fn a_fire_is_explained_by_what_stood_in_its_way() {
    let all_on_time = || Job::at_work().settled(["01:10:00"; 4]);
    check_explain(
        &all_on_time().at("01:12:00"),
        "01:12:00",
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0-3 ran it, or skipped it for a reason
    "#]],
    );
    check_explain(
        &all_on_time().at("01:22:00"),
        "01:12:00",
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: shards 0-3 ran it, or skipped it for a reason
    "#]],
    );
    // Within the time that a fire may be late.
    check_explain(
        &all_on_time().at("01:20:30"),
        "01:20:30",
        expect![[r#"
        the fire of 2026-11-15 01:20:00 UTC: shards 0-3 may still begin it, until 2026-11-15 01:21:00 UTC
    "#]],
    );
    check_explain(
        &all_on_time().at("01:25:00"),
        "01:25:00",
        expect![[r#"
            the fire of 2026-11-15 01:20:00 UTC: shards 0-3 did not run it
              because the registry knows no reason: what stood in the way then is gone since
        "#]],
    );
    check_explain(
        &Job::new().at("01:12:00"),
        "01:12:00",
        expect![[r#"
        the fire of 2026-11-15 01:10:00 UTC: whether shards 0-3 ran it is not known, because nobody noted it
          because no instance is there: every process that has the job is down, or cannot reach the registry
    "#]],
    );
    check_explain(
        &all_on_time().at("01:12:00"),
        "01:30:00",
        expect![[r#"
        the fire of 2026-11-15 01:40:00 UTC is yet to come, and nothing stands in its way
    "#]],
    );

    let off = all_on_time().at("01:15:00").with([Node::Disabled(2).create("")]).at("01:22:00");
    check_explain(
        &off,
        "01:22:00",
        expect![[r#"
        the fire of 2026-11-15 01:20:00 UTC: shards 0-3 did not run it
          because shard 2 is disabled since 2026-11-15 01:15:00 UTC (7 min)
    "#]],
    );
    // It was disabled after the fire, so that is not why.
    let late = all_on_time().at("01:21:00").with([Node::Disabled(2).create("")]).at("01:22:00");
    check_explain(
        &late,
        "01:22:00",
        expect![[r#"
            the fire of 2026-11-15 01:20:00 UTC: shards 0-3 did not run it
              because the registry knows no reason: what stood in the way then is gone since
        "#]],
    );

    let servers = ["10.0.0.1", "10.0.0.12"].map(|ip| Node::Server(ip.into()).set(DISABLED));
    check_explain(
        &all_on_time().at("01:15:00").with(servers).at("01:22:00"),
        "01:22:00",
        expect![[r#"
        the fire of 2026-11-15 01:20:00 UTC: shards 0-3 did not run it
          because all servers are disabled: 10.0.0.1 since 2026-11-15 01:15:00 UTC (7 min); 10.0.0.12 since 2026-11-15 01:15:00 UTC (7 min)
    "#]],
    );
    let mut paused = all_on_time().at("01:15:00");
    paused.commit(&config::pause(&paused.look(), "alice", paused.now).unwrap().ops);
    check_explain(
        &paused.at("01:22:00"),
        "01:22:00",
        expect![[r#"
        the fire of 2026-11-15 01:20:00 UTC: shards 0-3 did not run it
          because all servers are disabled: 10.0.0.1 since 2026-11-15 01:15:00 UTC (7 min); 10.0.0.12 since 2026-11-15 01:15:00 UTC (7 min)
            because the job is paused: 2026-11-15T01:15:00Z by alice
    "#]],
    );

    let overrun = Job::at_work()
        .settled(["01:20:00", "01:10:00", "01:20:00", "01:20:00"])
        .at("01:10:01")
        .with([Node::Running(1).create(B)])
        .at("01:20:00")
        .with([Node::Misfire(1).create(ms("01:20:00"))])
        .at("01:22:00");
    check_explain(
        &overrun,
        "01:22:00",
        expect![[r#"
        the fire of 2026-11-15 01:20:00 UTC: shards 0, 2, 3 ran it, or skipped it for a reason; shard 1 did not run it
          because shard 1 missed a fire of 2026-11-15 01:20:00 UTC, and runs once more to make up for it
            because shard 1 is still running on 10.0.0.12@-@2.b.1 since 2026-11-15 01:10:01 UTC (11 min)
    "#]],
    );

    let leaderless = all_on_time()
        .at("01:15:00")
        .with([Node::Leader.delete(), Node::Owner(1).delete(), Node::Owner(3).set("10.0.0.9@-@9.z.1")])
        .with([Node::Necessary.create(""), Node::Running(0).create("10.0.0.9@-@9.z.1")])
        .at("01:22:00");
    check_explain(
        &leaderless,
        "01:22:00",
        expect![[r#"
            the fire of 2026-11-15 01:20:00 UTC: shards 0-3 did not run it
              because shard 0 is marked as running on 10.0.0.9@-@9.z.1 since 2026-11-15 01:15:00 UTC (7 min), which is gone
                because nobody leads, and only a leader puts that right
              because no instance owns shard 1, and shard 3 belongs to 10.0.0.9@-@9.z.1, which is gone
                because the shards are to be handed out anew since 2026-11-15 01:15:00 UTC, and nothing starts before they are
                  because nobody leads, and only a leader puts that right
        "#]],
    );
}

#[test]
fn a_job_without_a_schedule_is_explained_as_such() {
    let mut job = Job::at_work().with([Node::Trigger(A.into()).create("")]);
    job.edit(|spec| spec.cron = None);
    expect![[r#"
        Explanation {
            fire: None,
            answer: "it has no cron: it runs only when it is triggered",
            because: [],
            known: [
                "10.0.0.1@-@1.a.1 is asked to run, and has not begun",
            ],
            remedies: [
                "elasticjob job trigger tens",
            ],
        }
    "#]]
    .assert_debug_eq(&job.explain("01:12:00", &[]));
}

fn check_health(job: &Job, expected: Expect) {
    let found = check(&job.look(), job.now, &Zone::UTC);
    let text: String = found.iter().map(|it| format!("{:?}: {}\n", it.level, it.what)).collect();
    expected.assert_eq(&text);
}

#[test]
fn a_check_finds_what_is_stuck_and_leaves_the_healthy_alone() {
    let fine = || Job::at_work().settled(["01:10:00"; 4]);
    check_health(&fine().at("01:12:00"), expect![[r#""#]]);
    check_health(
        &Job::new(),
        expect![[r#"
        Problem: no instance is there: nothing of it runs
    "#]],
    );
    check_health(
        &fine().at("01:52:00"),
        expect![[r#"
            Problem: shards 0-3 are 4 fires behind: the last settled one was 2026-11-15 01:10:00 UTC
        "#]],
    );

    let dead = "10.0.0.9@-@9.z.1";
    let wreck = fine()
        .with([
            Node::Server("10.0.0.9".into()).create(ENABLED),
            Node::Running(0).create(dead),
            Node::Owner(1).set(dead),
            Node::Owner(2).delete(),
            Node::Crashed(3).create(""),
            Node::Necessary.create(""),
            Node::Trigger(dead.into()).create(""),
            Node::Leader.set(dead),
            Node::Owner(8).create(A),
            Node::Disabled(3).create(""),
        ])
        .at("01:12:00");
    check_health(
        &wreck,
        expect![[r#"
            Problem: server 10.0.0.9 is offline: none of its instances is there
            Problem: the leader 10.0.0.9@-@9.z.1 is not among the instances
            Problem: the job waits to hand out its shards anew, for 12 min: nothing starts meanwhile
            Problem: 10.0.0.9@-@9.z.1 was asked to run, and is gone
            Problem: shard 3 lost the runner, and nobody takes over
            Problem: shard 2 is without an owner
            Problem: shard 1 belongs to an instance that is gone
            Problem: shard 0 is marked as running on 10.0.0.9@-@9.z.1, which is gone
            Problem: shard 8 is beyond the job's number of shards
            Note: disabled: shard 3
        "#]],
    );

    let slow = fine().at("01:10:01").with([Node::Running(1).create(B)]).at("01:45:00");
    check_health(
        &slow.with((0..4).filter(|it| *it != 1).map(|it| Node::Cursor(it).set(ms("01:40:00")))),
        expect![[r#"
            Problem: shard 1 runs on 10.0.0.12@-@2.b.1 for 34 min; 3 fires passed meanwhile
        "#]],
    );
    let ahead = fine().with([Node::Cursor(0).set(ms("01:20:00"))]).at("01:12:00");
    check_health(
        &ahead,
        expect![[r#"
        Problem: shard 0 ran a fire of 2026-11-15 01:20:00 UTC, which is yet to come: a clock is wrong
    "#]],
    );
}

#[test]
fn a_secret_in_clear_is_not_written_and_one_that_is_there_is_noted() {
    let mut job = Job::at_work().settled(["01:10:00"; 4]).at("01:12:00");
    let write = |job: &Job, from: &str, to: &str| {
        let read = config::stored(&job.look()).unwrap();
        config::update(&job.look(), &read, &read.text.replace(from, to), job.now, &Zone::UTC)
    };
    job.edit(|spec| drop(spec.props.insert("email.password".into(), "${SMTP}".into())));
    let refusal = write(&job, "${SMTP}", "hunter2").unwrap_err().to_string();
    assert!(refusal.contains("props email.password is a secret in clear"), "{refusal}");
    // Java peers know no other way: what they wrote can stay when something else is changed.
    job.edit(|spec| drop(spec.props.insert("email.password".into(), "hunter2".into())));
    assert!(write(&job, "failover: false", "failover: true").is_ok());
    check_health(
        &job,
        expect![[r#"
        Note: props email.password is a secret in clear, which everybody who reads the registry could read: write ${NAME} for an environment variable of each host, or ${file:/path} for a file there
    "#]],
    );
}
