//! What a job's subtree says, typed. A view is a mirror: it is told every change, in order, and holds no
//! opinion.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::mutants::{Mutant, on};
use crate::node::{Latch, Node, Phase};
use crate::tree::{Change, Entry, Stat, Zxid};

/// A node's text, with the age and version that the registry gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The node's data.
    pub text: String,
    /// Its age and version.
    pub stat: Stat,
}

/// The instance that runs an item, and since which transaction: its fencing token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The instance.
    pub by: String,
    /// Strictly greater than any token given for this item before.
    pub token: Zxid,
    /// It goes by itself when the instance's session ends.
    pub ephemeral: bool,
}

/// The last fire that is settled for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// `None`: somebody who keeps no cursor, a Java peer, may have run the item since.
    pub at: Option<Timestamp>,
    /// Whoever settles a fire replaces the cursor at this version, so that nobody settles it twice.
    pub version: u32,
    /// The transaction that wrote it.
    pub written: Zxid,
}

/// What the registry says about one item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Item {
    /// The instance that it belongs to, and since which transaction.
    pub owner: Option<Mark>,
    /// The instance that runs it.
    pub running: Option<Mark>,
    /// The instance that took it over from a dead one.
    pub failover: Option<String>,
    /// The same, from a node that outlives that instance.
    pub failovering: Option<String>,
    /// A fire was missed.
    pub misfire: bool,
    /// Which, if whoever noted it said so: Java does not.
    pub missed: Option<Timestamp>,
    /// What came along with a trigger that nobody has acted on, if that is what is to be made up for.
    pub asked_with: Option<String>,
    /// It must not run.
    pub disabled: bool,
    /// The last settled fire.
    pub cursor: Option<Cursor>,
    /// What came along with the trigger that it runs for, for whoever takes over.
    pub parameter: Option<String>,
    /// Its parent node exists.
    pub exists: bool,
}

impl Item {
    /// The cursor, if it tells of every fire since: it was written when the item came to its owner, or later. Our
    /// leaders write it in the transaction that hands the item out. A Java leader does not, and if it lent the
    /// item to a Java peer in between, the fires since were run by somebody who keeps no cursor.
    pub fn seamless_cursor(&self) -> Option<Cursor> {
        let owner = self.owner.as_ref()?;
        self.cursor.filter(|it| it.written >= owner.token && keeps_cursors(&owner.by))
    }

    /// Every node of this item that exists, children first.
    pub fn nodes(&self, item: u32) -> Vec<Node> {
        let known = [
            (self.owner.is_some(), Node::Owner(item)),
            (self.running.is_some(), Node::Running(item)),
            (self.failover.is_some(), Node::Failover(item)),
            (self.failovering.is_some(), Node::Failovering(item)),
            (self.misfire, Node::Misfire(item)),
            (self.disabled, Node::Disabled(item)),
            (self.cursor.is_some(), Node::Cursor(item)),
            (self.parameter.is_some(), Node::Parameter(item)),
            (self.exists, Node::Item(item)),
        ];
        known.into_iter().filter_map(|(there, node)| there.then_some(node)).collect()
    }
}

/// A job's subtree, typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The name of the job's class; `None` if the job does not exist.
    pub class: Option<String>,
    /// The configuration document.
    pub config: Option<Value>,
    /// What each host may do.
    pub servers: BTreeMap<String, String>,
    /// Live instances. Java skips those without a document, so it is kept whether they have one.
    pub instances: BTreeMap<String, bool>,
    /// The leading instance.
    pub leader: Option<String>,
    /// The assignment must be made anew.
    pub necessary: bool,
    /// The assignment is being made.
    pub processing: bool,
    /// All items that the registry has nodes for, also beyond the job's number of items. Boxed, because most
    /// jobs have few, and a map makes room for many.
    pub items: BTreeMap<u32, Box<Item>>,
    /// Items whose runner died, waiting to be taken over.
    pub crashed: BTreeSet<u32>,
    /// Instances that are asked to run now, each with what came along.
    pub triggers: BTreeMap<String, String>,
    /// Everybody who stands in a line, first in line first.
    pub lines: BTreeMap<(Latch, String), String>,
    /// Items that have started in this round, each with who says so; Java does not.
    pub started: BTreeMap<u32, Value>,
    /// Items that have completed in this round, each with who says so; Java does not.
    pub completed: BTreeMap<u32, Value>,
    /// The last fires whose hooks were called.
    pub hooked: BTreeMap<Phase, Cursor>,
    /// The node that is written to learn the registry's time.
    pub system_time: Option<Stat>,
    /// The host that runs next, where instances take turns.
    pub baton: Option<String>,
}

/// The host that an instance runs on: what stands before the first `@-@`.
///
/// ```
/// assert_eq!(elasticjob_core::view::ip_of("10.0.0.1@-@4711"), "10.0.0.1");
/// ```
pub fn ip_of(instance: &str) -> &str {
    // An address holds no `@`, so the first one begins the separator.
    match instance.bytes().position(|byte| byte == b'@') {
        Some(at) if instance[at..].starts_with("@-@") => &instance[..at],
        Some(_) | None => instance,
    }
}

/// Whether this is the id of a peer that keeps cursors: ours have a dot after `@-@`, Java's are a process
/// id.
///
/// ```
/// use elasticjob_core::view::keeps_cursors;
///
/// assert!(keeps_cursors("10.0.0.1@-@4711.1f0c.1"));
/// assert!(!keeps_cursors("10.0.0.1@-@4711"));
/// ```
pub fn keeps_cursors(instance: &str) -> bool {
    let suffix = &instance[ip_of(instance).len()..];
    !suffix.is_empty() && suffix.bytes().any(|byte| byte == b'.')
}

impl View {
    /// The view of a whole subtree.
    pub fn new(entries: &[Entry]) -> View {
        let mut view = View::default();
        for entry in entries {
            view.put(entry);
        }
        view
    }

    /// Follows one change.
    pub fn apply(&mut self, change: &Change) {
        match change {
            Change::Put(entry) => self.put(entry),
            Change::Gone { path } => self.gone(path),
        }
    }

    fn put(&mut self, entry: &Entry) {
        let text = || entry.data.clone();
        let value = || Value { text: entry.data.clone(), stat: entry.stat };
        let mark =
            || Mark { by: entry.data.clone(), token: entry.stat.created, ephemeral: entry.stat.ephemeral };
        match Node::parse(&entry.path) {
            Node::Root => self.class = Some(text()),
            Node::Config => self.config = Some(value()),
            Node::Server(ip) => drop(self.servers.insert(ip, text())),
            Node::Instance(id) => drop(self.instances.insert(id, !entry.data.trim().is_empty())),
            Node::Item(item) => self.item(item).exists = true,
            // A set owner is another owner, whose right is as old as the setting.
            Node::Owner(item) => self.item(item).owner = Some(mark()),
            Node::Running(item) => self.item(item).running = Some(mark()),
            Node::Failover(item) => self.item(item).failover = Some(text()),
            Node::Failovering(item) => self.item(item).failovering = Some(text()),
            Node::Misfire(item) => {
                let state = self.item(item);
                (state.missed, state.asked_with) = read_mark(&entry.data);
                state.misfire = true;
            }
            Node::Disabled(item) => self.item(item).disabled = true,
            Node::Cursor(item) => self.item(item).cursor = Some(read_cursor(entry)),
            Node::Parameter(item) => self.item(item).parameter = Some(text()),
            Node::Leader => self.leader = Some(text()),
            Node::Necessary => self.necessary = true,
            Node::Processing => self.processing = true,
            Node::InLine(latch, name) => drop(self.lines.insert(place(latch, &name), name)),
            Node::Crashed(item) => drop(self.crashed.insert(item)),
            Node::Started(item) => drop(self.started.insert(item, value())),
            Node::Completed(item) => drop(self.completed.insert(item, value())),
            Node::Hooked(phase) => drop(self.hooked.insert(phase, read_cursor(entry))),
            Node::Trigger(id) => drop(self.triggers.insert(id, text())),
            Node::SystemTime => self.system_time = Some(entry.stat),
            Node::Baton => self.baton = Some(text()),
            Node::AllStarted | Node::AllCompleted | Node::Offset(_) | Node::Other => {}
        }
    }

    fn gone(&mut self, path: &str) {
        match Node::parse(path) {
            Node::Root => self.class = None,
            Node::Config => self.config = None,
            Node::Server(ip) => drop(self.servers.remove(&ip)),
            Node::Instance(id) => drop(self.instances.remove(&id)),
            Node::Item(item) => self.clear(item, |it| it.exists = false),
            Node::Owner(item) => self.clear(item, |it| it.owner = None),
            Node::Running(item) => self.clear(item, |it| it.running = None),
            Node::Failover(item) => self.clear(item, |it| it.failover = None),
            Node::Failovering(item) => self.clear(item, |it| it.failovering = None),
            Node::Misfire(item) => self.clear(item, |it| {
                (it.misfire, it.missed, it.asked_with) = (false, None, None);
            }),
            Node::Disabled(item) => self.clear(item, |it| it.disabled = false),
            Node::Cursor(item) => self.clear(item, |it| it.cursor = None),
            Node::Parameter(item) => self.clear(item, |it| it.parameter = None),
            Node::Leader => self.leader = None,
            Node::Necessary => self.necessary = false,
            Node::Processing => self.processing = false,
            Node::InLine(latch, name) => drop(self.lines.remove(&place(latch, &name))),
            Node::Crashed(item) => drop(self.crashed.remove(&item)),
            Node::Started(item) => drop(self.started.remove(&item)),
            Node::Completed(item) => drop(self.completed.remove(&item)),
            Node::Hooked(phase) => drop(self.hooked.remove(&phase)),
            Node::Trigger(id) => drop(self.triggers.remove(&id)),
            Node::SystemTime => self.system_time = None,
            Node::Baton => self.baton = None,
            Node::AllStarted | Node::AllCompleted | Node::Offset(_) | Node::Other => {}
        }
    }

    fn item(&mut self, item: u32) -> &mut Item {
        self.items.entry(item).or_default()
    }

    fn clear(&mut self, item: u32, forget: impl Fn(&mut Item)) {
        let Some(state) = self.items.get_mut(&item) else { return };
        forget(state);
        if **state == Item::default() {
            self.items.remove(&item);
        }
    }

    /// Whether the host may work. Exactly this host: `10.0.0.1` is not `10.0.0.12`.
    pub fn is_enabled(&self, ip: &str) -> bool {
        if on(Mutant::MatchServersByPrefix) {
            return self.servers.iter().any(|it| it.0.starts_with(ip) && it.1 == ENABLED);
        }
        self.servers.get(ip).is_some_and(|status| status == ENABLED)
    }

    /// Whether the instance lives.
    pub fn is_alive(&self, instance: &str) -> bool {
        self.instances.contains_key(instance)
    }

    /// Instances that may be given work, in the order in which Java hands them to a strategy: greatest id
    /// first.
    pub fn available(&self) -> Vec<&str> {
        self.able().collect()
    }

    /// Whether anybody may be given work.
    pub fn is_any_available(&self) -> bool {
        self.able().next().is_some()
    }

    fn able(&self) -> impl Iterator<Item = &str> {
        let able = move |(id, has_document): &(&String, &bool)| {
            **has_document && (self.is_enabled(ip_of(id)) || on(Mutant::AssignToDisabled))
        };
        self.instances.iter().rev().filter(able).map(|(id, _)| id.as_str())
    }

    /// All nodes that an instance has to remove to be gone, if its session goes on without it. Marks that outlive
    /// it are left for others to find.
    pub fn nodes_of(&self, instance: &str) -> Vec<Node> {
        let held = |mark: Option<&Mark>| mark.is_some_and(|it| it.ephemeral && it.by == instance);
        let running = self.items.iter().filter(|(_, state)| held(state.running.as_ref()));
        let mut nodes: Vec<Node> = running.map(|(item, _)| Node::Running(*item)).collect();
        let taken = self.items.iter().filter(|(_, state)| state.failover.as_deref() == Some(instance));
        nodes.extend(taken.map(|(item, _)| Node::Failover(*item)));
        let places = self.lines.iter().filter(|(_, name)| is_place_of(name, instance));
        nodes.extend(places.map(|((latch, _), name)| Node::InLine(*latch, name.clone())));
        nodes.extend((self.leader.as_deref() == Some(instance)).then_some(Node::Leader));
        nodes.extend(self.is_alive(instance).then(|| Node::Instance(instance.to_owned())));
        nodes
    }

    /// Who is first in line.
    pub fn head_of_line(&self, latch: Latch) -> Option<&String> {
        self.line(latch).next()
    }

    /// The first place of an instance in a line: the one whose name begins with its ticket.
    pub fn place_in_line(&self, latch: Latch, instance: &str) -> Option<&String> {
        self.line(latch).find(|name| is_place_of(name, instance))
    }

    fn line(&self, latch: Latch) -> impl Iterator<Item = &String> {
        let line = self.lines.range((latch, String::new())..);
        line.take_while(move |((it, _), _)| *it == latch).map(|(_, name)| name)
    }
}

/// How the places of an instance in lines begin: Curator's spelling, with our id for its random one.
pub(crate) fn ticket(instance: &str) -> String {
    format!("_c_{instance}-")
}

/// The same question, asked at every step: without making the ticket first.
fn is_place_of(name: &str, instance: &str) -> bool {
    let rest = name.strip_prefix("_c_").and_then(|it| it.strip_prefix(instance));
    rest.is_some_and(|it| it.starts_with('-'))
}

/// The status of a host that may work.
pub const ENABLED: &str = "ENABLED";
/// The status of a host that must not.
pub const DISABLED: &str = "DISABLED";

/// Curator orders the places of a line by what follows the last `latch-`.
fn place(latch: Latch, name: &str) -> (Latch, String) {
    (latch, name.rsplit("latch-").next().unwrap_or_default().to_owned())
}

/// A fire is written as its milliseconds since 1970; none is empty.
pub(crate) fn write_fire(at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |it| it.as_millisecond().to_string())
}

fn read_fire(text: &str) -> Option<Timestamp> {
    text.parse().ok().and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

/// A cursor is written as its fire, and behind a space the time of day that its writer's clock showed, if the
/// writer owns the item.
pub(crate) fn write_cursor(at: Option<Timestamp>, clock: Option<Timestamp>) -> String {
    let clock = clock.map(|it| format!(" {}", it.as_millisecond())).unwrap_or_default();
    write_fire(at) + &clock
}

fn read_cursor(entry: &Entry) -> Cursor {
    let fire = entry.data.split(' ').next().unwrap_or_default();
    Cursor { at: read_fire(fire), version: entry.stat.version, written: entry.stat.written }
}

/// What its writer's clock showed when a cursor was written, if that was noted.
pub(crate) fn read_clock(cursor: &str) -> Option<Timestamp> {
    cursor.split_once(' ').and_then(|(_, clock)| read_fire(clock))
}

/// A mark is written as the fire that it stands for, and behind a space what came along with a trigger.
pub(crate) fn write_mark(at: Option<Timestamp>, asked_with: &str) -> String {
    let space = if asked_with.is_empty() { "" } else { " " };
    format!("{}{space}{asked_with}", write_fire(at))
}

fn read_mark(text: &str) -> (Option<Timestamp>, Option<String>) {
    match text.split_once(' ') {
        Some((fire, asked_with)) => (read_fire(fire), Some(asked_with.to_owned())),
        None => (read_fire(text), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Op, Tree};

    #[test]
    fn a_view_that_follows_is_the_view_of_the_whole() {
        let mut tree = Tree::default();
        let session = tree.open_session();
        let mut follower = View::default();
        let id = "10.0.0.1@-@1.a.1";
        let rounds: [Vec<Op>; 4] = [
            vec![Node::Config.create("x"), Node::Server("10.0.0.1".into()).create(ENABLED)],
            vec![Node::Instance(id.into()).create_ephemeral(id), Latch::Election.join("_c_a-")],
            vec![Node::Owner(0).create(id), Node::Cursor(0).create("12"), Node::Disabled(1).create("")],
            vec![Node::Cursor(0).set("13"), Node::Owner(0).delete(), Node::Disabled(1).delete()],
        ];
        for ops in rounds {
            for change in tree.commit(session, "/j", &ops, Timestamp::UNIX_EPOCH).unwrap() {
                follower.apply(&change.relative_to("/j").unwrap());
            }
            assert_eq!(follower, View::new(&tree.snapshot("/j")));
        }
        let at = Some(Timestamp::from_millisecond(13).unwrap());
        assert_eq!(follower.items[&0].cursor, Some(Cursor { at, version: 1, written: tree.last_zxid() }));
        for change in tree.end_session(session) {
            follower.apply(&change.relative_to("/j").unwrap());
        }
        assert_eq!(follower, View::new(&tree.snapshot("/j")));
        assert!(follower.lines.is_empty() && follower.instances.is_empty());
    }

    #[test]
    fn a_host_is_itself_and_not_one_whose_name_it_begins() {
        let mut view = View::default();
        view.servers.insert("10.0.0.1".into(), ENABLED.into());
        view.instances.insert("10.0.0.12@-@1".into(), true);
        assert!(view.available().is_empty());
    }

    #[test]
    fn java_hands_out_work_from_the_greatest_id_down_and_skips_the_undocumented() {
        let mut view = View::default();
        view.servers.insert("10.0.0.1".into(), ENABLED.into());
        view.servers.insert("10.0.0.2".into(), DISABLED.into());
        for id in ["10.0.0.1@-@1", "10.0.0.1@-@9", "10.0.0.2@-@5"] {
            view.instances.insert(id.into(), true);
        }
        view.instances.insert("10.0.0.1@-@7".into(), false);
        assert_eq!(view.available(), ["10.0.0.1@-@9", "10.0.0.1@-@1"]);
    }
}
