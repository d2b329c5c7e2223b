//! The registry's semantics as a value: a tree of nodes, sessions that own ephemeral nodes, and
//! all-or-nothing transactions.
//!
//! The embedded registry wraps it in a lock, the simulator wraps it in delays and faults, and the
//! conformance suite holds every other backend to it. It does no I/O and never looks at a clock.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use jiff::Timestamp;

/// Names one session of a [`Tree`]. Never given twice.
pub type SessionId = u64;

/// The number of a committed transaction; strictly increasing. It is what fencing tokens are made of.
pub type Zxid = u64;

/// Whether a node outlives the session that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Stays until it is deleted.
    Persistent,
    /// Goes when its session ends.
    Ephemeral,
}

/// One step of a transaction. Paths are `/`-separated and relative to the root that the transaction is
/// committed under; the empty path is that root itself.
///
/// ```
/// use elasticjob_core::tree::{Kind, Op, Tree};
/// use jiff::Timestamp;
///
/// let mut tree = Tree::default();
/// let session = tree.open_session();
/// let create = Op::Create { path: "/a/b".into(), data: "1".into(), kind: Kind::Persistent };
/// tree.commit(session, "/job", &[create], Timestamp::UNIX_EPOCH).unwrap();
/// assert_eq!(tree.get("/job/a/b"), Some("1"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// The node exists and, if given, nobody has set its data since this version.
    Check {
        /// The node.
        path: String,
        /// The data version it must still have.
        version: Option<u32>,
    },
    /// Makes a node that must not exist. Missing parents are made too, persistent and empty.
    Create {
        /// The node.
        path: String,
        /// Its data.
        data: String,
        /// Its life time.
        kind: Kind,
    },
    /// Stands in line: makes an ephemeral node named `prefix` and the line's next number, in ten digits.
    Enqueue {
        /// The path that the number is appended to.
        prefix: String,
    },
    /// Replaces the data of a node that must exist.
    Set {
        /// The node.
        path: String,
        /// Its new data.
        data: String,
        /// The data version it must still have.
        version: Option<u32>,
    },
    /// Removes a node that must exist and have no children.
    Delete {
        /// The node.
        path: String,
    },
}

impl Op {
    /// The node that this step is about.
    pub fn path(&self) -> &str {
        match self {
            Op::Check { path, .. }
            | Op::Create { path, .. }
            | Op::Set { path, .. }
            | Op::Delete { path }
            | Op::Enqueue { prefix: path } => path,
        }
    }
}

/// What the registry knows about a node besides its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The transaction that made it.
    pub created: Zxid,
    /// The transaction that wrote its data last.
    pub written: Zxid,
    /// How often its data was set.
    pub version: u32,
    /// When its data was last written, by the registry's clock.
    pub modified: Timestamp,
    /// It goes when the session ends that made it.
    pub ephemeral: bool,
}

/// One node as a reader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the root that was asked for.
    pub path: String,
    /// The node's data.
    pub data: String,
    /// The node's age and version.
    pub stat: Stat,
}

/// What a transaction, or the end of a session, did to one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The node was made or its data was set.
    Put(Entry),
    /// The node is gone.
    Gone {
        /// Relative to the root that is watched.
        path: String,
    },
}

impl Change {
    /// The node that changed.
    pub fn path(&self) -> &str {
        match self {
            Change::Put(entry) => &entry.path,
            Change::Gone { path } => path,
        }
    }

    /// The same change, told to somebody who watches `root`: `None` if it is not below it.
    pub fn relative_to(&self, root: &str) -> Option<Change> {
        let rest = strip_root(self.path(), root)?.to_owned();
        Some(match self {
            Change::Put(entry) => Change::Put(Entry { path: rest, ..entry.clone() }),
            Change::Gone { .. } => Change::Gone { path: rest },
        })
    }
}

/// Why a transaction was refused. Nothing of it was done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A node was there that must not be, or was not as expected: look again.
    #[error("the registry has changed at `{path}`")]
    Conflict {
        /// The first node that did not fit.
        path: String,
    },
    /// The session is over, and with it everything it owned.
    #[error("the session has ended")]
    SessionEnded,
}

#[derive(Clone, Debug)]
struct Node {
    data: String,
    stat: Stat,
    owner: Option<SessionId>,
    /// The number that the next one in line gets, if this node is a line.
    next_in_line: u64,
}

/// A whole registry. See the module's description.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
    sessions: BTreeMap<SessionId, BTreeSet<String>>,
    last_session: SessionId,
    last_zxid: Zxid,
}

/// How to take one step back.
enum Undo {
    Remove(String),
    Restore(String, Node),
}

impl Tree {
    /// A registry that wakes up with what it had stored: persistent nodes only, as all sessions of its
    /// earlier life are over. `last_zxid` must not be less than any number it ever gave.
    pub fn restore(entries: impl IntoIterator<Item = Entry>, last_zxid: Zxid) -> Tree {
        let node = |it: Entry| (it.path, Node { data: it.data, stat: it.stat, owner: None, next_in_line: 0 });
        Tree { nodes: entries.into_iter().map(node).collect(), last_zxid, ..Tree::default() }
    }

    /// Begins a session.
    pub fn open_session(&mut self) -> SessionId {
        self.last_session += 1;
        self.sessions.insert(self.last_session, BTreeSet::new());
        self.last_session
    }

    /// Whether the session has not ended.
    pub fn is_live(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// The number of the last committed transaction.
    pub fn last_zxid(&self) -> Zxid {
        self.last_zxid
    }

    /// Whether the node goes when some session ends.
    pub fn is_ephemeral(&self, path: &str) -> bool {
        self.nodes.get(path).is_some_and(|node| node.owner.is_some())
    }

    /// Ends a session: its ephemeral nodes go.
    pub fn end_session(&mut self, session: SessionId) -> Vec<Change> {
        let owned = self.sessions.remove(&session).unwrap_or_default();
        if !owned.is_empty() {
            self.last_zxid += 1;
        }
        for path in &owned {
            self.nodes.remove(path);
        }
        owned.into_iter().map(|path| Change::Gone { path }).collect()
    }

    /// Does all of `ops` or nothing. The changes come back in order, with absolute paths.
    pub fn commit(
        &mut self,
        session: SessionId,
        root: &str,
        ops: &[Op],
        now: Timestamp,
    ) -> Result<Vec<Change>, Refused> {
        if !self.is_live(session) {
            return Err(Refused::SessionEnded);
        }
        let mut draft = Draft { tree: self, session, now, changes: Vec::new(), undo: Vec::new() };
        for op in ops {
            if let Err(refused) = draft.apply(root, op) {
                draft.take_back();
                return Err(refused);
            }
        }
        let changes = draft.changes;
        self.last_zxid += 1;
        Ok(changes)
    }

    /// The data of the node at an absolute path.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.nodes.get(path).map(|node| node.data.as_str())
    }

    /// The node at an absolute path, without what is below it.
    pub fn entry(&self, path: &str) -> Option<Entry> {
        let node = self.nodes.get(path)?;
        Some(Entry { path: path.to_owned(), data: node.data.clone(), stat: node.stat })
    }

    /// `root` and everything below it, in the order of the paths.
    pub fn snapshot(&self, root: &str) -> Vec<Entry> {
        let entry = |(path, node): (&String, &Node)| {
            let path = strip_root(path, root)?.to_owned();
            Some(Entry { path, data: node.data.clone(), stat: node.stat })
        };
        let top = self.nodes.get_key_value(root).into_iter();
        top.chain(self.below(root)).filter_map(entry).collect()
    }

    /// Names of the direct children, least first.
    pub fn children(&self, parent: &str) -> Vec<String> {
        let name = |path: &String| path[parent.len() + 1..].split('/').next().unwrap_or_default().to_owned();
        // `/a/b-2` stands between `/a/b` and `/a/b/c`.
        let names: BTreeSet<String> = self.below(parent).map(|(path, _)| name(path)).collect();
        names.into_iter().collect()
    }

    fn below(&self, root: &str) -> impl Iterator<Item = (&String, &Node)> {
        let inside = [root, "/"].concat();
        self.nodes
            .range::<str, _>((Bound::Included(inside.as_str()), Bound::Unbounded))
            .take_while(move |(path, _)| path.starts_with(&inside))
    }
}

/// A transaction under way, with the way back.
struct Draft<'a> {
    tree: &'a mut Tree,
    session: SessionId,
    now: Timestamp,
    changes: Vec<Change>,
    undo: Vec<Undo>,
}

impl Draft<'_> {
    fn apply(&mut self, root: &str, op: &Op) -> Result<(), Refused> {
        let path = [root, op.path()].concat();
        match op {
            Op::Check { version, .. } => self.existing(&path, *version).map(drop),
            Op::Create { data, kind, .. } => {
                let owner = (*kind == Kind::Ephemeral).then_some(self.session);
                self.create(path, data, owner)
            }
            Op::Enqueue { .. } => self.enqueue(&path),
            Op::Set { data, version, .. } => self.set(path, data, *version),
            Op::Delete { .. } => self.delete(path),
        }
    }

    fn existing(&self, path: &str, version: Option<u32>) -> Result<&Node, Refused> {
        let node = self.tree.nodes.get(path).filter(|it| version.is_none_or(|v| v == it.stat.version));
        node.ok_or_else(|| conflict(path))
    }

    fn create(&mut self, path: String, data: &str, owner: Option<SessionId>) -> Result<(), Refused> {
        if self.tree.nodes.contains_key(&path) {
            return Err(conflict(&path));
        }
        self.make_parents(&path)?;
        self.insert(path, data, owner);
        Ok(())
    }

    fn make_parents(&mut self, path: &str) -> Result<(), Refused> {
        let Some(parent) = parent_of(path) else { return Ok(()) };
        match self.tree.nodes.get(parent) {
            Some(node) if node.owner.is_some() => Err(conflict(parent)), // Ephemeral nodes have no children.
            Some(_) => Ok(()),
            None => {
                self.make_parents(parent)?;
                self.insert(parent.to_owned(), "", None);
                Ok(())
            }
        }
    }

    fn enqueue(&mut self, prefix: &str) -> Result<(), Refused> {
        self.make_parents(prefix)?;
        let line = parent_of(prefix).ok_or_else(|| conflict(prefix))?;
        let node = self.tree.nodes.get_mut(line).ok_or_else(|| conflict(line))?;
        self.undo.push(Undo::Restore(line.to_owned(), node.clone()));
        let number = node.next_in_line;
        node.next_in_line += 1;
        self.create(format!("{prefix}{number:010}"), "", Some(self.session))
    }

    fn set(&mut self, path: String, data: &str, version: Option<u32>) -> Result<(), Refused> {
        let Node { stat, owner, next_in_line, data: _ } = *self.existing(&path, version)?;
        let (version, written) = (stat.version + 1, self.tree.last_zxid + 1);
        let stat = Stat { version, written, modified: self.now, ..stat };
        self.put(path, Node { data: data.to_owned(), stat, owner, next_in_line });
        Ok(())
    }

    fn delete(&mut self, path: String) -> Result<(), Refused> {
        self.existing(&path, None)?;
        if self.tree.below(&path).next().is_some() {
            return Err(conflict(&path));
        }
        if let Some(node) = self.tree.nodes.remove(&path) {
            self.disown(&path, &node);
            self.undo.push(Undo::Restore(path.clone(), node));
        }
        self.changes.push(Change::Gone { path });
        Ok(())
    }

    fn insert(&mut self, path: String, data: &str, owner: Option<SessionId>) {
        let ephemeral = owner.is_some();
        let zxid = self.tree.last_zxid + 1;
        let stat = Stat { created: zxid, written: zxid, version: 0, modified: self.now, ephemeral };
        self.put(path, Node { data: data.to_owned(), stat, owner, next_in_line: 0 });
    }

    fn put(&mut self, path: String, node: Node) {
        if let Some(owned) = node.owner.and_then(|owner| self.tree.sessions.get_mut(&owner)) {
            owned.insert(path.clone());
        }
        let entry = Entry { path: path.clone(), data: node.data.clone(), stat: node.stat };
        self.changes.push(Change::Put(entry));
        self.undo.push(match self.tree.nodes.insert(path.clone(), node) {
            Some(before) => Undo::Restore(path, before),
            None => Undo::Remove(path),
        });
    }

    fn disown(&mut self, path: &str, node: &Node) {
        if let Some(owned) = node.owner.and_then(|owner| self.tree.sessions.get_mut(&owner)) {
            owned.remove(path);
        }
    }

    fn take_back(mut self) {
        while let Some(step) = self.undo.pop() {
            match step {
                Undo::Remove(path) => {
                    if let Some(node) = self.tree.nodes.remove(&path) {
                        self.disown(&path, &node);
                    }
                }
                Undo::Restore(path, node) => {
                    if let Some(owned) = node.owner.and_then(|owner| self.tree.sessions.get_mut(&owner)) {
                        owned.insert(path.clone());
                    }
                    self.tree.nodes.insert(path, node);
                }
            }
        }
    }
}

fn conflict(path: &str) -> Refused {
    Refused::Conflict { path: path.to_owned() }
}

fn parent_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())
}

/// What remains of an absolute path below `root`; `None` if it is elsewhere.
fn strip_root<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(path: &str, kind: Kind) -> Op {
        Op::Create { path: path.into(), data: String::new(), kind }
    }

    fn delete(path: &str) -> Op {
        Op::Delete { path: path.into() }
    }

    fn enqueue(prefix: &str) -> Op {
        Op::Enqueue { prefix: prefix.into() }
    }

    fn commit(tree: &mut Tree, session: SessionId, ops: &[Op]) -> Result<Vec<Change>, Refused> {
        tree.commit(session, "/j", ops, Timestamp::UNIX_EPOCH)
    }

    fn paths(tree: &Tree) -> Vec<String> {
        tree.snapshot("/j").into_iter().map(|it| it.path).collect()
    }

    #[test]
    fn parents_are_made_and_told() {
        let mut tree = Tree::default();
        let session = tree.open_session();
        let changes = commit(&mut tree, session, &[create("/a/b", Kind::Ephemeral)]).unwrap();
        let told: Vec<&str> = changes.iter().map(Change::path).collect();
        assert_eq!(told, ["/j", "/j/a", "/j/a/b"]);
        assert_eq!(paths(&tree), ["", "/a", "/a/b"]);
    }

    #[test]
    fn a_refused_transaction_leaves_no_trace() {
        let mut tree = Tree::default();
        let session = tree.open_session();
        commit(&mut tree, session, &[create("/a", Kind::Ephemeral), create("/b", Kind::Persistent)]).unwrap();
        let before = format!("{tree:?}");
        let set = Op::Set { path: "/b".into(), data: "x".into(), version: None };
        let ops =
            [delete("/a"), set, enqueue("/line/n-"), create("/c/d", Kind::Ephemeral), delete("/nowhere")];
        assert_eq!(commit(&mut tree, session, &ops), Err(Refused::Conflict { path: "/j/nowhere".into() }));
        assert_eq!(format!("{tree:?}"), before);
    }

    #[test]
    fn ephemeral_nodes_go_with_their_session_and_only_then() {
        let mut tree = Tree::default();
        let (a, b) = (tree.open_session(), tree.open_session());
        commit(&mut tree, a, &[create("/a", Kind::Ephemeral), create("/p", Kind::Persistent)]).unwrap();
        commit(&mut tree, b, &[create("/b", Kind::Ephemeral)]).unwrap();
        tree.end_session(a);
        assert_eq!(paths(&tree), ["", "/b", "/p"]);
        assert_eq!(commit(&mut tree, a, &[create("/x", Kind::Persistent)]), Err(Refused::SessionEnded));
    }

    #[test]
    fn a_version_names_the_data_and_a_zxid_the_life() {
        let mut tree = Tree::default();
        let session = tree.open_session();
        commit(&mut tree, session, &[create("/a", Kind::Persistent)]).unwrap();
        let set = |version| Op::Set { path: "/a".into(), data: "x".into(), version: Some(version) };
        commit(&mut tree, session, &[set(0)]).unwrap();
        assert!(commit(&mut tree, session, &[set(0)]).is_err());
        commit(&mut tree, session, &[delete("/a"), create("/a", Kind::Persistent)]).unwrap();
        let entry = tree.snapshot("/j/a").remove(0);
        assert_eq!((entry.stat.created, entry.stat.version), (3, 0));
    }

    #[test]
    fn a_line_numbers_its_waiters_and_forgets_when_it_is_removed() {
        let mut tree = Tree::default();
        let session = tree.open_session();
        commit(&mut tree, session, &[enqueue("/line/n-"), enqueue("/line/n-")]).unwrap();
        assert_eq!(tree.children("/j/line"), ["n-0000000000", "n-0000000001"]);
        let ops = [
            delete("/line/n-0000000000"),
            delete("/line/n-0000000001"),
            delete("/line"),
            enqueue("/line/n-"),
        ];
        commit(&mut tree, session, &ops).unwrap();
        assert_eq!(tree.children("/j/line"), ["n-0000000000"]);
    }

    #[test]
    fn a_node_with_children_stays_and_an_ephemeral_one_gets_none() {
        let mut tree = Tree::default();
        let session = tree.open_session();
        commit(&mut tree, session, &[create("/a/b", Kind::Ephemeral)]).unwrap();
        assert!(commit(&mut tree, session, &[delete("/a")]).is_err());
        assert!(commit(&mut tree, session, &[create("/a/b/c", Kind::Persistent)]).is_err());
    }

    #[test]
    fn a_job_does_not_see_one_whose_name_it_begins() {
        let mut tree = Tree::default();
        let session = tree.open_session();
        tree.commit(session, "/job", &[create("/a", Kind::Persistent)], Timestamp::UNIX_EPOCH).unwrap();
        let changes =
            tree.commit(session, "/job-2", &[create("/b", Kind::Persistent)], Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(tree.snapshot("/job").len(), 2);
        assert!(changes.iter().all(|it| it.relative_to("/job").is_none()));
        assert_eq!(tree.children("/job"), ["a"]);
        assert_eq!(tree.children(""), ["job", "job-2"]);
    }
}
