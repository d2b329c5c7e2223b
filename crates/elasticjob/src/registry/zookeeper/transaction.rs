//! A transaction on its way: the steps it is made of, with the parents that ZooKeeper does not make by
//! itself, and what its answer says.

use std::collections::{BTreeSet, HashMap};

use super::mirror::absolute;
use super::wire::{Ask, Done, Mode, Node, Step, code, name};
use crate::registry::{CommitError, Kind, Op, Stat};

/// How often a transaction is tried with other parents: they may come and go meanwhile, but not for ever.
const ATTEMPTS_MAX: u32 = 16;

/// A transaction, until it is answered for good.
pub(super) struct Transaction {
    /// The absolute path of the empty root; itself a path with parents, or empty.
    namespace: String,
    /// The absolute path of the root that the operations are relative to.
    root: String,
    ops: Vec<Op>,
    /// Parents that were found to exist, or not to.
    parents: HashMap<String, bool>,
    attempts: u32,
}

/// A transaction as it is sent.
pub(super) struct Attempt {
    pub(super) steps: Vec<Step>,
    /// The operation that each step is, or `None` for one that makes a parent.
    origins: Vec<Option<usize>>,
}

impl Attempt {
    /// Whether it is about nothing but what the transaction is about: it makes no parents of all jobs.
    pub(super) fn stays_within(&self, transaction: &Transaction) -> bool {
        self.steps.iter().all(|it| transaction.contains(it))
    }

    /// Whether the server completes a name in it.
    pub(super) fn stands_in_line(&self) -> bool {
        self.steps.iter().any(|it| matches!(it, Step::Create { mode: Mode::EphemeralSequential, .. }))
    }
}

/// What an answer means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Done: this is what became of the nodes, the last word on each.
    Done(Vec<(String, Left)>),
    /// Not done, and it never will be as it is.
    Refused(CommitError),
    /// Not done: a parent was missing or there already. It is to be tried again.
    Again,
    /// Not done: parents are missing, and it is not known which.
    Look(Vec<Ask>),
    /// The session is over.
    Expired,
}

/// What a transaction left of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Left {
    Gone,
    Node(Node),
    /// It is there, but not all is known about it.
    Unread,
}

/// What is known of a transaction as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) zxid: i64,
    pub(super) session: i64,
    /// The error of the answer as a whole.
    pub(super) error: i32,
}

impl Transaction {
    pub(super) fn new(namespace: &str, root: &str, ops: Vec<Op>) -> Transaction {
        let (namespace, root) = (namespace.to_owned(), format!("{namespace}{root}"));
        Transaction { namespace, root, ops, parents: HashMap::new(), attempts: 0 }
    }

    /// The first part of the root's path, which is the job's name; `None` for the root of all.
    pub(super) fn job(&self) -> Option<&str> {
        let below = self.root.get(self.namespace.len()..)?.strip_prefix('/')?;
        below.split('/').next()
    }

    /// Whether a step is about the root or something below it.
    fn contains(&self, step: &Step) -> bool {
        let below = step_path(step).strip_prefix(&self.root);
        below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
    }

    /// The steps to send. `knows` says whether a node exists, as far as a mirror knows.
    pub(super) fn attempt(&mut self, knows: impl Fn(&str) -> Option<bool>) -> Attempt {
        self.attempts += 1;
        let mut draft =
            Draft { steps: Vec::new(), origins: Vec::new(), made: BTreeSet::new(), gone: BTreeSet::new() };
        let exists = |path: &str| self.parents.get(path).copied().or_else(|| knows(path)).unwrap_or(true);
        for (index, op) in self.ops.iter().enumerate() {
            let path = absolute(&self.root, op.path());
            let number = |version: Option<u32>| version.map_or(-1, u32::cast_signed);
            let step = match op {
                Op::Check { version, .. } => Step::Check { path, version: number(*version) },
                Op::Set { data, version, .. } => {
                    Step::Set { path, data: data.clone(), version: number(*version) }
                }
                Op::Delete { .. } => {
                    draft.made.remove(&path);
                    draft.gone.insert(path.clone());
                    Step::Delete { path }
                }
                Op::Create { data, kind, .. } => {
                    self.make_parents(&mut draft, &path, Mode::Persistent, &exists);
                    draft.gone.remove(&path);
                    draft.made.insert(path.clone());
                    let mode = match kind {
                        Kind::Persistent => Mode::Persistent,
                        Kind::Ephemeral => Mode::Ephemeral,
                    };
                    Step::Create { path, data: data.clone(), mode }
                }
                Op::Enqueue { .. } => {
                    // An empty line goes by itself, as Curator's do.
                    self.make_parents(&mut draft, &path, Mode::Container, &exists);
                    Step::Create { path, data: String::new(), mode: Mode::EphemeralSequential }
                }
            };
            draft.steps.push(step);
            draft.origins.push(Some(index));
        }
        Attempt { steps: draft.steps, origins: draft.origins }
    }

    fn make_parents(&self, draft: &mut Draft, path: &str, nearest: Mode, exists: &impl Fn(&str) -> bool) {
        let parents: Vec<&str> = parents(path).collect();
        for (index, parent) in parents.iter().enumerate() {
            let is_there = draft.made.contains(*parent) || (exists(parent) && !draft.gone.contains(*parent));
            if is_there {
                continue;
            }
            let in_namespace = self.namespace.starts_with(*parent);
            let mode = match index + 1 == parents.len() {
                // Curator makes the namespace of containers.
                _ if in_namespace => Mode::Container,
                true if *parent != self.root => nearest,
                _ => Mode::Persistent,
            };
            draft.made.insert((*parent).to_owned());
            draft.steps.push(Step::Create { path: (*parent).to_owned(), data: String::new(), mode });
            draft.origins.push(None);
        }
    }

    /// What the server's results mean.
    pub(super) fn read(&mut self, attempt: &Attempt, context: Context, results: &[Done]) -> Meaning {
        let error = context.error;
        if error == code::SESSION_EXPIRED {
            return Meaning::Expired;
        }
        let failure = results.iter().enumerate().find_map(|(index, it)| match it {
            Done::Failed(code::OK | code::RUNTIME_INCONSISTENCY) => None,
            Done::Failed(error) => Some((index, *error)),
            Done::Created { .. } | Done::Set { .. } | Done::Nothing => None,
        });
        match failure {
            Some((index, error)) => self.read_failure(attempt, index, error),
            None if error != code::OK => {
                Meaning::Refused(CommitError::Invalid(format!("ZooKeeper says: {}", name(error))))
            }
            None if results.len() != attempt.steps.len() => {
                Meaning::Refused(CommitError::Unknown("ZooKeeper's answer does not fit".into()))
            }
            None => Meaning::Done(outcome(&attempt.steps, results, context)),
        }
    }

    fn read_failure(&mut self, attempt: &Attempt, index: usize, error: i32) -> Meaning {
        let (Some(step), Some(origin)) = (attempt.steps.get(index), attempt.origins.get(index)) else {
            return Meaning::Refused(CommitError::Unknown("ZooKeeper's answer does not fit".into()));
        };
        let op = origin.and_then(|it| self.ops.get(it));
        let own_path =
            |op: Option<&Op>| op.map_or_else(|| step_path(step).to_owned(), |it| it.path().to_owned());
        let conflict = |path: String| Meaning::Refused(CommitError::Conflict { path });
        let may_retry = self.attempts < ATTEMPTS_MAX;
        match (error, step, op) {
            (code::SESSION_EXPIRED, ..) => Meaning::Expired,
            (code::NODE_EXISTS, Step::Create { path, .. }, None) if may_retry => {
                self.parents.insert(path.clone(), true);
                Meaning::Again
            }
            (code::NO_NODE, Step::Create { .. }, _) if may_retry => Meaning::Look(self.all_parents()),
            (code::NO_CHILDREN_FOR_EPHEMERALS, ..) => {
                let path = own_path(op);
                conflict(path.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.to_owned()))
            }
            (code::NO_NODE | code::NODE_EXISTS | code::BAD_VERSION | code::NOT_EMPTY, ..) => {
                conflict(own_path(op))
            }
            (code::NO_AUTH, ..) => Meaning::Refused(CommitError::Denied { path: denying(step).to_owned() }),
            (code::INVALID_ACL, ..) => Meaning::Refused(CommitError::Invalid(
                "ZooKeeper has no identity of ours to protect nodes with: check the digest".into(),
            )),
            (error, ..) => Meaning::Refused(CommitError::Invalid(format!(
                "ZooKeeper says at `{}`: {}",
                step_path(step),
                name(error)
            ))),
        }
    }

    fn all_parents(&self) -> Vec<Ask> {
        let makes = |op: &&Op| matches!(op, Op::Create { .. } | Op::Enqueue { .. });
        let paths: Vec<String> =
            self.ops.iter().filter(makes).map(|it| absolute(&self.root, it.path())).collect();
        let all: BTreeSet<&str> = paths.iter().flat_map(|it| parents(it)).collect();
        all.into_iter().map(|path| Ask::Data(path.to_owned())).collect()
    }

    /// A parent was looked at.
    pub(super) fn found(&mut self, path: &str, exists: bool) {
        self.parents.insert(path.to_owned(), exists);
    }
}

struct Draft {
    steps: Vec<Step>,
    origins: Vec<Option<usize>>,
    made: BTreeSet<String>,
    gone: BTreeSet<String>,
}

/// What the steps left of each node, the last word on each.
fn outcome(steps: &[Step], results: &[Done], context: Context) -> Vec<(String, Left)> {
    // All steps of a transaction have one time, and some results say which.
    let time = results.iter().find_map(|it| match it {
        Done::Created { stat, .. } => stat.map(|it| it.modified),
        Done::Set { stat, .. } => Some(stat.modified),
        Done::Nothing | Done::Failed(_) => None,
    });
    let made = |data: &str, mode: Mode| {
        let ephemeral = matches!(mode, Mode::Ephemeral | Mode::EphemeralSequential);
        let created = u64::try_from(context.zxid).ok();
        let Some((modified, created)) = time.zip(created) else { return Left::Unread };
        let stat = Stat { created, written: created, version: 0, modified, ephemeral };
        Left::Node(Node { data: data.to_owned(), stat, owner: if ephemeral { context.session } else { 0 } })
    };
    let mut last: HashMap<&str, usize> = HashMap::new();
    let mut nodes: Vec<(String, Left)> = Vec::new();
    for (step, result) in steps.iter().zip(results) {
        let (path, left) = match (step, result) {
            (Step::Create { data, mode, .. }, Done::Created { path, .. }) => {
                (path.as_str(), made(data, *mode))
            }
            (Step::Set { path, data, .. }, Done::Set { stat, owner }) => {
                (path.as_str(), Left::Node(Node { data: data.clone(), stat: *stat, owner: *owner }))
            }
            (Step::Delete { path }, _) => (path.as_str(), Left::Gone),
            _ => continue,
        };
        match last.get(path) {
            Some(&index) => nodes[index].1 = left,
            None => {
                last.insert(path, nodes.len());
                nodes.push((path.to_owned(), left));
            }
        }
    }
    nodes
}

pub(super) fn step_path(step: &Step) -> &str {
    match step {
        Step::Check { path, .. }
        | Step::Create { path, .. }
        | Step::Set { path, .. }
        | Step::Delete { path } => path,
    }
}

/// The node whose rights decide about a step: making and deleting are rights of the node above.
fn denying(step: &Step) -> &str {
    match step {
        Step::Create { path, .. } | Step::Delete { path } => {
            path.rsplit_once('/').map_or(path, |(parent, _)| parent)
        }
        Step::Check { path, .. } | Step::Set { path, .. } => path,
    }
}

/// All nodes above a path, the topmost first.
fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').skip(1).map(|(at, _)| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(path: &str) -> Op {
        Op::Create { path: path.into(), data: "x".into(), kind: Kind::Persistent }
    }

    /// The steps, as short text.
    fn sent(transaction: &mut Transaction, known: &[&str]) -> (Attempt, Vec<String>) {
        let attempt = transaction.attempt(|path| Some(known.contains(&path)));
        let text = |step: &Step| match step {
            Step::Create { path, mode, .. } => format!("+{path} {}", *mode as i32),
            Step::Delete { path } => format!("-{path}"),
            Step::Check { path, .. } | Step::Set { path, .. } => format!("={path}"),
        };
        let steps = attempt.steps.iter().map(text).collect();
        (attempt, steps)
    }

    #[test]
    fn parents_are_made_once_and_only_where_they_miss() {
        let ops = vec![create("/a/b"), create("/a/c"), Op::Enqueue { prefix: "/l/n-".into() }];
        let mut transaction = Transaction::new("/n/s", "/job", ops);
        let (_, steps) = sent(&mut transaction, &["/n", "/n/s", "/n/s/job"]);
        let line = ["+/n/s/job/l 4", "+/n/s/job/l/n- 3"];
        assert_eq!(steps, [&["+/n/s/job/a 0", "+/n/s/job/a/b 0", "+/n/s/job/a/c 0"][..], &line].concat());
        let (_, steps) = sent(&mut transaction, &[]);
        assert_eq!(steps[..3], ["+/n 4", "+/n/s 4", "+/n/s/job 0"]);
    }

    #[test]
    fn a_parent_that_the_transaction_deletes_is_made_again() {
        let ops = vec![Op::Delete { path: "/a".into() }, create("/a/b")];
        let (_, steps) = sent(&mut Transaction::new("/n", "/j", ops), &["/n", "/n/j", "/n/j/a"]);
        assert_eq!(steps, ["-/n/j/a", "+/n/j/a 0", "+/n/j/a/b 0"]);
    }

    #[test]
    fn a_parent_that_is_there_or_missing_is_no_conflict_but_another_attempt() {
        let mut transaction = Transaction::new("/n", "/j", vec![create("/a/b")]);
        let (attempt, _) = sent(&mut transaction, &["/n", "/n/j"]);
        let context = Context { zxid: 1, session: 1, error: 0 };
        let exists = [Done::Failed(code::NODE_EXISTS), Done::Failed(-2)];
        assert_eq!(transaction.read(&attempt, context, &exists), Meaning::Again);
        let (attempt, steps) = sent(&mut transaction, &["/n", "/n/j"]);
        assert_eq!(steps, ["+/n/j/a/b 0"]);
        let missing = transaction.read(&attempt, context, &[Done::Failed(code::NO_NODE)]);
        let asks = ["/n", "/n/j", "/n/j/a"].map(|it| Ask::Data(it.into()));
        assert_eq!(missing, Meaning::Look(asks.to_vec()));
        let conflict = transaction.read(&attempt, context, &[Done::Failed(code::NODE_EXISTS)]);
        assert_eq!(conflict, Meaning::Refused(CommitError::Conflict { path: "/a/b".into() }));
        for _ in 0..ATTEMPTS_MAX {
            sent(&mut transaction, &[]);
        }
        let end = transaction.read(&attempt, context, &[Done::Failed(code::NO_NODE)]);
        assert_eq!(end, Meaning::Refused(CommitError::Conflict { path: "/a/b".into() }));
    }

    #[test]
    fn what_is_made_together_with_something_that_is_set_needs_no_reading() {
        let time = jiff::Timestamp::from_millisecond(5).expect("a time");
        let set = Op::Set { path: "/c".into(), data: "1".into(), version: Some(2) };
        let mut transaction =
            Transaction::new("/n", "/j", vec![create("/a"), set, Op::Delete { path: "/b".into() }]);
        let (attempt, _) = sent(&mut transaction, &["/n", "/n/j"]);
        let context = Context { zxid: 9, session: 1, error: 0 };
        let stat = Stat { created: 3, written: 6, version: 3, modified: time, ephemeral: false };
        let made = Done::Created { path: "/n/j/a".into(), stat: None };
        let results = [made.clone(), Done::Set { stat, owner: 0 }, Done::Nothing];
        let node = |data: &str, stat| Left::Node(Node { data: data.into(), stat, owner: 0 });
        let created = Stat { created: 9, written: 9, version: 0, modified: time, ephemeral: false };
        let nodes = [("/n/j/a", node("x", created)), ("/n/j/c", node("1", stat)), ("/n/j/b", Left::Gone)];
        let nodes = nodes.map(|(path, left)| (path.to_owned(), left));
        assert_eq!(transaction.read(&attempt, context, &results), Meaning::Done(nodes.to_vec()));
        let mut alone = Transaction::new("/n", "/j", vec![create("/a")]);
        let (attempt, _) = sent(&mut alone, &["/n", "/n/j"]);
        let unread = vec![("/n/j/a".to_owned(), Left::Unread)];
        assert_eq!(alone.read(&attempt, context, &[made]), Meaning::Done(unread));
    }
}
