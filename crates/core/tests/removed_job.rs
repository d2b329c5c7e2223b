//! What a coordinator remembers of a job that was removed before it had a part in it.

use std::time::Duration;

use elasticjob_core::coord::{Coordinator, Effect, Hooks, Input, Local, Now};
use elasticjob_core::spec::JobSpec;
use elasticjob_core::strategy::Strategies;
use elasticjob_core::tree::{Entry, Kind, Op, Tree};
use elasticjob_cron::Zone;
use jiff::Timestamp;

const ME: &str = "10.0.0.1@-@1.1";

fn create(path: &str, data: &str) -> Op {
    Op::Create { path: path.to_owned(), data: data.to_owned(), kind: Kind::Persistent }
}

fn nodes(ops: &[Op]) -> Vec<Entry> {
    let mut tree = Tree::default();
    let session = tree.open_session();
    let changes = tree.commit(session, "/job", ops, Timestamp::UNIX_EPOCH);
    assert!(ops.is_empty() || changes.is_ok(), "{changes:?}");
    tree.snapshot("/job")
}

fn connect(coordinator: &mut Coordinator, ops: &[Op]) -> Vec<Op> {
    let now = Now { wall: Timestamp::UNIX_EPOCH, mono: Duration::ZERO };
    let mut effects = Vec::new();
    let input = Input::Connected { me: ME.to_owned(), nodes: nodes(ops), same_session: false };
    coordinator.step(now, Input::Suspended, &mut effects);
    coordinator.step(now, input, &mut effects);
    let commits = effects.into_iter().filter_map(|it| match it {
        Effect::Commit { ops, .. } => Some(ops),
        _ => None,
    });
    commits.flatten().collect()
}

#[test]
fn a_job_that_is_made_anew_knows_nothing_of_hosts_that_were_disabled() {
    let mut spec = JobSpec::new("job", 1);
    spec.cron = Some("0/10 * * * * ?".to_owned());
    let (document, now) = (spec.to_yaml(), Now { wall: Timestamp::UNIX_EPOCH, mono: Duration::ZERO });
    let local = Local { spec, class: "TEST".to_owned(), zone: Zone::UTC, hooks: Hooks::default() };
    let mut coordinator = Coordinator::new(local, Strategies::default(), now);

    let disabled = create("/servers/10.0.0.1", "DISABLED");
    let joins = connect(&mut coordinator, &[create("/config", &document), disabled]);
    assert!(joins.iter().any(|it| it.path() == format!("/instances/{ME}")), "{joins:?}");
    // Nothing of that arrives, and the job is removed.
    let makes = connect(&mut coordinator, &[]);
    assert!(makes.iter().any(|it| it.path() == "/config"), "{makes:?}");
    let joins = connect(&mut coordinator, &[create("/config", &document)]);
    let status = joins.iter().find(|it| it.path() == "/servers/10.0.0.1");
    assert!(matches!(status, Some(Op::Create { data, .. }) if data == "ENABLED"), "{joins:?}");
}
