//! The mirror of one subtree, as a state machine without I/O: notifications and answers in, changes and
//! further questions out.
//!
//! A notification names a node and says nothing of its data, so each is put in line and passed on when its
//! answer is here: in the order in which things happened, and never so that a state is shown that was none.
//! If a node changed again before it was read, its changes and all between them are told as one.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use elasticjob_core::node::Node as JobNode;
use tokio::time::Instant;

use super::transaction::Left;
use super::wire::{Ask, Node, Told};
use crate::registry::feed::Feed;
use crate::registry::{Change, Entry, Focus};

/// How many notifications wait for their answers before everything is read anew instead.
const LINE_MAX: usize = 1 << 18;

/// What a watcher and the session's task share.
pub(super) struct Shared {
    pub(super) feed: Feed,
    seen: Mutex<Seen>,
}

/// What the mirror shows.
struct Seen {
    nodes: BTreeMap<String, Node>,
    focus: Focus,
}

impl Shared {
    pub(super) fn new() -> Shared {
        let seen = Seen { nodes: BTreeMap::new(), focus: Focus::Everything };
        Shared { feed: Feed::waiting(), seen: Mutex::new(seen) }
    }

    /// All nodes and what they are a mirror of, if a snapshot is still wanted; changes follow it.
    pub(super) fn snapshot(&self) -> Option<(Focus, Vec<Entry>)> {
        // Under the lock no change comes between the snapshot and those that follow it.
        let seen = self.lock();
        self.feed.follow().then(|| (seen.focus.clone(), seen.nodes.iter().map(entry).collect()))
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner) // Nothing panics while it is held.
    }
}

fn entry((path, node): (&String, &Node)) -> Entry {
    Entry { path: path.clone(), data: node.data.clone(), stat: node.stat }
}

/// What a question was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// A place in line.
    Place(u64),
    /// The names of all items, to read their owners for this place in line.
    ItemsFor(u64),
    /// An owner, for this place in line.
    OwnerFor(u64),
    /// A node that is being loaded, in this load.
    Load(u64),
    /// The names of all items, to load their owners.
    LoadItems(u64),
}

/// One question.
pub(super) type Want = (Tag, Ask);

/// A place in line.
#[derive(Debug)]
enum Place {
    /// The node changed again behind this place, before it was known here: both are told as one.
    Overtaken(String),
    /// Asked for.
    Asked(String),
    /// A transaction of our own is about it: its answer will tell.
    Own(String),
    /// Known; `None` if it is gone.
    Known(String, Option<Box<Node>>),
    /// Who owns the items that are not in focus.
    Owners { left: usize, found: BTreeMap<String, Node> },
}

/// A part of the subtree that is being read.
struct Load {
    number: u64,
    region: Region,
    /// What will be followed when it is done.
    focus: Focus,
    nodes: BTreeMap<String, Node>,
    left: usize,
    /// When everything is read: the place in line that must be passed, so that nothing is older than it.
    through: Option<u64>,
}

/// Which nodes a [`Load`] reads.
#[derive(Debug)]
enum Region {
    /// All that the focus covers.
    Whole(Focus),
    /// The nodes of these items.
    Items(BTreeSet<u32>),
}

impl Region {
    fn contains(&self, path: &str) -> bool {
        match self {
            Region::Whole(focus) => covers(focus, path),
            Region::Items(items) => item_of(path).is_some_and(|(item, _)| items.contains(&item)),
        }
    }
}

/// Where the mirror was when something happened. See [`Mirror::has_passed`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    place: u64,
    load: Option<u64>,
}

/// The task's side of a watch.
pub(super) struct Mirror {
    pub(super) shared: Arc<Shared>,
    root: String,
    session: i64,
    /// What is followed; `None` until the first snapshot of a connection.
    focus: Option<Focus>,
    wanted: Focus,
    /// Somebody has said what they want to follow, and so knows which marks can wait.
    aware: bool,
    load: Option<Load>,
    loads: u64,
    line: VecDeque<Place>,
    /// The number of the first place in line.
    first: u64,
    /// The last place of each node in line.
    latest: HashMap<String, u64>,
    /// Marks of others' runs that nobody needs to know yet, and since when they are not known.
    unread: BTreeMap<String, Instant>,
    wants: Vec<Want>,
    /// An `Owners` place whose questions have not been sent.
    owners_unasked: bool,
    /// What is to be watched has changed.
    rewatch: bool,
}

impl Mirror {
    pub(super) fn new(shared: Arc<Shared>, root: String, session: i64, wanted: Option<Focus>) -> Mirror {
        Mirror {
            shared,
            root,
            session,
            focus: None,
            aware: wanted.is_some(),
            wanted: wanted.unwrap_or(Focus::Everything),
            load: None,
            loads: 0,
            line: VecDeque::new(),
            first: 0,
            latest: HashMap::new(),
            unread: BTreeMap::new(),
            wants: Vec::new(),
            owners_unasked: false,
            rewatch: false,
        }
    }

    pub(super) fn root(&self) -> &str {
        &self.root
    }

    // ---- What the connection does ----

    /// A connection stands: everything is read anew.
    pub(super) fn connect(&mut self) {
        let focus = self.wanted.clone();
        self.begin_load(Region::Whole(focus.clone()), focus);
    }

    /// The connection is gone.
    pub(super) fn disconnect(&mut self) -> Option<Waker> {
        (self.focus, self.load, self.owners_unasked) = (None, None, false);
        self.loads += 1; // Answers to older questions will not come.
        self.first += u64::try_from(self.line.len()).unwrap_or_default();
        self.line.clear();
        self.latest.clear();
        self.unread.clear();
        self.wants.clear();
        self.shared.feed.cut()
    }

    /// The questions to ask now.
    pub(super) fn take_wants(&mut self) -> Vec<Want> {
        self.owners_unasked = false;
        std::mem::take(&mut self.wants)
    }

    /// The nodes to be notified of, each with whether this includes all below it; `None` if they are the
    /// same as when it was asked last.
    pub(super) fn take_watched(&mut self) -> Option<BTreeMap<String, bool>> {
        if !std::mem::take(&mut self.rewatch) {
            return None;
        }
        let mut paths = BTreeMap::new();
        for focus in self.focus.iter().chain(self.load.as_ref().map(|it| &it.focus)) {
            watched(&self.root, focus, &mut paths);
        }
        Some(paths)
    }

    // ---- What is followed ----

    /// Follows other items from now on, if a load is not under way; otherwise when it is done.
    pub(super) fn set_focus(&mut self, wanted: Focus) -> Vec<Waker> {
        (self.wanted, self.aware) = (wanted, true);
        if self.focus.is_none() && self.load.as_ref().is_some_and(|it| it.focus != self.wanted) {
            // Nothing is shown yet: begin again, with less to read.
            self.wants.retain(|(tag, _)| !matches!(tag, Tag::Load(_) | Tag::LoadItems(_)));
            self.connect();
            return Vec::new();
        }
        self.refocus()
    }

    fn refocus(&mut self) -> Vec<Waker> {
        let (Some(focus), None) = (&self.focus, &self.load) else { return Vec::new() };
        if *focus == self.wanted {
            return Vec::new();
        }
        let kept = intersection(focus, &self.wanted);
        let wakers = if kept == *focus { Vec::new() } else { self.narrow(kept) };
        self.widen();
        wakers
    }

    /// Says that less is followed before it forgets: whoever acts on what it sees must not take the forgotten
    /// for the gone.
    fn narrow(&mut self, kept: Focus) -> Vec<Waker> {
        let mut seen = self.shared.lock();
        let mut gone = Vec::new();
        seen.nodes.retain(|path, _| {
            let stays = covers(&kept, path);
            gone.extend((!stays).then(|| Change::Gone { path: path.clone() }));
            stays
        });
        seen.focus = kept.clone();
        self.unread.retain(|path, _| covers(&kept, path));
        let told = self.shared.feed.sees(kept.clone());
        let forgot = (!gone.is_empty()).then(|| self.shared.feed.push(&Arc::new(gone)));
        drop(seen);
        self.focus = Some(kept);
        self.rewatch = true;
        told.into_iter().chain(forgot.flatten()).collect()
    }

    fn widen(&mut self) {
        match (&self.focus, &self.wanted) {
            (Some(Focus::Items(_)), Focus::Everything) => {
                self.begin_load(Region::Whole(Focus::Everything), Focus::Everything);
            }
            (Some(Focus::Items(old)), Focus::Items(new)) if !new.is_subset(old) => {
                let added = new.difference(old).copied().collect();
                self.begin_load(Region::Items(added), self.wanted.clone());
            }
            _ => {}
        }
    }

    // ---- Loading ----

    fn begin_load(&mut self, region: Region, focus: Focus) {
        self.loads += 1;
        self.rewatch = true;
        let number = self.loads;
        let parts: Vec<(String, bool)> = match &region {
            Region::Whole(Focus::Everything) => vec![(String::new(), true)],
            Region::Whole(Focus::Items(items)) => {
                self.wants.push((Tag::LoadItems(number), Ask::Children(format!("{}{SHARDING}", self.root))));
                let single = SINGLE.iter().map(|it| ((*it).to_owned(), false));
                let whole = RECURSIVE.iter().map(|it| ((*it).to_owned(), true));
                single.chain(whole).chain(items.iter().map(|it| (JobNode::Item(*it).path(), true))).collect()
            }
            Region::Items(items) => items.iter().map(|it| (JobNode::Item(*it).path(), true)).collect(),
        };
        self.load = Some(Load { number, region, focus, nodes: BTreeMap::new(), left: 0, through: None });
        for (path, whole) in parts {
            self.load_node(&path, whole);
        }
        let is_ours = |tag: Tag| tag == Tag::Load(number) || tag == Tag::LoadItems(number);
        let left = self.wants.iter().filter(|(tag, _)| is_ours(*tag)).count();
        if let Some(load) = &mut self.load {
            load.left = left;
        }
    }

    fn load_node(&mut self, path: &str, with_children: bool) {
        let absolute = absolute(&self.root, path);
        let tag = Tag::Load(self.loads);
        self.wants.push((tag, Ask::Data(absolute.clone())));
        if with_children {
            self.wants.push((tag, Ask::Children(absolute)));
        }
    }

    fn loaded(&mut self, number: u64, ask: &Ask, told: Told) {
        let Some(load) = self.load.as_mut().filter(|it| it.number == number) else { return };
        load.left -= 1;
        let path = relative(&self.root, ask.path()).unwrap_or_default().to_owned();
        match told {
            Told::Data(node) => drop(load.nodes.insert(path, node)),
            Told::Children(names) => {
                load.left += 2 * names.len();
                for name in names {
                    self.load_node(&format!("{path}/{name}"), true);
                }
            }
            Told::Failed(_) => drop(load.nodes.remove(&path)),
        }
        self.load_progress();
    }

    fn loaded_items(&mut self, number: u64, told: Told) {
        let Some(load) = self.load.as_mut().filter(|it| it.number == number) else { return };
        load.left -= 1;
        if let Told::Children(names) = told {
            let owners = unfocused_owners(&names, &load.focus);
            load.left += owners.len();
            let tag = Tag::Load(number);
            let root = &self.root;
            self.wants.extend(owners.into_iter().map(|path| (tag, Ask::Data(format!("{root}{path}")))));
        }
        self.load_progress();
    }

    fn load_progress(&mut self) {
        let end = self.end();
        if let Some(load) = self.load.as_mut().filter(|it| it.left == 0 && it.through.is_none()) {
            load.through = Some(end);
        }
    }

    /// If all is read and as new as what was shown: shows it.
    fn finish_load(&mut self) -> Vec<Waker> {
        let first = self.first;
        let Some(load) = self.load.take_if(|it| it.through.is_some_and(|through| through <= first)) else {
            return Vec::new();
        };
        let mut seen = self.shared.lock();
        seen.focus = load.focus.clone();
        let mut wakers = Vec::new();
        if self.focus.is_none() {
            seen.nodes = load.nodes;
            wakers.extend(self.shared.feed.resume());
        } else {
            let changes = difference(&mut seen.nodes, load.nodes, &load.region);
            if !changes.is_empty() {
                wakers.extend(self.shared.feed.push(&Arc::new(changes)));
            }
            wakers.extend(self.shared.feed.sees(load.focus.clone()));
        }
        drop(seen);
        self.focus = Some(load.focus);
        self.rewatch = true;
        wakers.extend(self.refocus());
        wakers
    }

    // ---- Notifications ----

    /// A node was made or set. `own`: a transaction of ours that is under way is about it.
    pub(super) fn put(&mut self, path: &str, own: bool, now: Instant) {
        let Some(path) = relative(&self.root, path).filter(|it| self.follows(it)).map(str::to_owned) else {
            return;
        };
        if is_mark(&path) {
            if !own && self.may_wait(&path) {
                self.unread.entry(path).or_insert(now);
                return;
            }
            self.unread.remove(&path);
        } else if has_meaning(&path) {
            self.read_unread(|_, _| true);
        }
        self.stand_in_line(path, own);
    }

    fn stand_in_line(&mut self, path: String, own: bool) {
        if self.line.len() >= LINE_MAX {
            // Reading everything is less than remembering all that.
            self.disconnect().into_iter().for_each(Waker::wake);
            return self.connect();
        }
        let place = self.enter(&path);
        if !own {
            self.wants.push((Tag::Place(place), Ask::Data(absolute(&self.root, &path))));
        }
        self.line.push_back(if own { Place::Own(path) } else { Place::Asked(path) });
    }

    /// A node is gone.
    pub(super) fn deleted(&mut self, path: &str) {
        let Some(path) = relative(&self.root, path).filter(|it| self.follows(it)).map(str::to_owned) else {
            return;
        };
        self.unread.remove(&path);
        if !is_mark(&path) && has_meaning(&path) {
            self.read_unread(|_, _| true);
        }
        let partial = [&self.focus, &self.load.as_ref().map(|it| it.focus.clone())]
            .iter()
            .any(|it| matches!(it, Some(Focus::Items(_))));
        // Owners change only while an assignment is being made, and it is made when these go.
        if partial && !self.owners_unasked && [NECESSARY, PROCESSING].contains(&&*path) {
            let place = self.end();
            self.line.push_back(Place::Owners { left: 1, found: BTreeMap::new() });
            let ask = Ask::Children(format!("{}{SHARDING}", self.root));
            self.wants.push((Tag::ItemsFor(place), ask));
            self.owners_unasked = true;
        }
        self.enter(&path);
        self.line.push_back(Place::Known(path, None));
    }

    /// The number of the next place in line, which is to be that of the node: an earlier one that is not
    /// known yet is overtaken.
    fn enter(&mut self, path: &str) -> u64 {
        let place = self.end();
        if let Some(before) = self.latest.insert(path.to_owned(), place)
            && let Some(before) = self.place(before)
            && matches!(before, Place::Asked(_) | Place::Own(_))
        {
            *before = Place::Overtaken(path.to_owned());
        }
        place
    }

    fn place(&mut self, number: u64) -> Option<&mut Place> {
        let index = number.checked_sub(self.first).and_then(|it| usize::try_from(it).ok())?;
        self.line.get_mut(index)
    }

    fn end(&self) -> u64 {
        self.first + self.line.len() as u64
    }

    fn follows(&self, path: &str) -> bool {
        self.focus.as_ref().is_some_and(|it| covers(it, path))
            || self.load.as_ref().is_some_and(|it| it.region.contains(path))
    }

    // ---- Marks that can wait ----

    /// Whether a leader need not know yet that an item of somebody else runs. In a quiet cluster it need not:
    /// it acts on such marks when an instance goes or the assignment is to change, and both come with a
    /// notification before which the marks are read.
    fn may_wait(&self, path: &str) -> bool {
        let Some((item, _)) = item_of(path) else { return false };
        if !self.aware || self.load.is_some() || !self.is_quiet() {
            return false;
        }
        let seen = self.shared.lock();
        let owner = seen.nodes.get(&JobNode::Owner(item).path());
        let instance = owner.and_then(|it| seen.nodes.get(&JobNode::Instance(it.data.clone()).path()));
        instance.is_some_and(|it| it.owner != self.session)
    }

    /// Nothing is going on but runs.
    fn is_quiet(&self) -> bool {
        if self.focus != Some(Focus::Everything) {
            return false;
        }
        let seen = self.shared.lock();
        let busy = [NECESSARY, PROCESSING, BATON].iter().any(|it| seen.nodes.contains_key(*it));
        let crashed = seen.nodes.range(CRASHED.to_owned()..).next();
        !busy && crashed.is_none_or(|(path, _)| !path.starts_with(CRASHED))
    }

    fn read_unread(&mut self, which: impl Fn(&str, Instant) -> bool) {
        if self.unread.is_empty() {
            return;
        }
        let (read, kept) =
            std::mem::take(&mut self.unread).into_iter().partition(|(path, since)| which(path, *since));
        self.unread = kept;
        let read: BTreeMap<String, Instant> = read;
        for (path, _) in read {
            self.stand_in_line(path, false);
        }
    }

    /// A transaction was refused: whoever looks again must see why.
    pub(super) fn look_again(&mut self) {
        self.read_unread(|_, _| true);
    }

    /// What runs for so long may be looked at for once: it could have been left by somebody who is gone.
    pub(super) fn look_at_old_marks(&mut self, before: Instant) {
        self.read_unread(|path, since| since <= before && path.ends_with("/running"));
    }

    // ---- Answers ----

    /// A question is answered.
    pub(super) fn answer(&mut self, tag: Tag, ask: &Ask, told: Told) {
        match tag {
            Tag::Load(number) => self.loaded(number, ask, told),
            Tag::LoadItems(number) => self.loaded_items(number, told),
            Tag::Place(number) => {
                if let Some(place @ Place::Asked(_)) = self.place(number)
                    && let Place::Asked(path) = place
                {
                    let node = match told {
                        Told::Data(node) => Some(Box::new(node)),
                        Told::Children(_) | Told::Failed(_) => None,
                    };
                    *place = Place::Known(std::mem::take(path), node);
                }
            }
            Tag::ItemsFor(number) => self.items_for(number, &told),
            Tag::OwnerFor(number) => {
                let path = relative(&self.root, ask.path()).unwrap_or_default().to_owned();
                if let Some(Place::Owners { left, found }) = self.place(number) {
                    *left -= 1;
                    if let Told::Data(node) = told {
                        found.insert(path, node);
                    }
                }
            }
        }
    }

    fn items_for(&mut self, number: u64, told: &Told) {
        let focus = self.focus.as_ref().or(self.load.as_ref().map(|it| &it.focus));
        let owners = match (told, focus) {
            (Told::Children(names), Some(focus)) => unfocused_owners(names, focus),
            _ => Vec::new(),
        };
        if let Some(Place::Owners { left, .. }) = self.place(number) {
            *left = owners.len();
            let root = &self.root;
            let ask = |path| (Tag::OwnerFor(number), Ask::Data(format!("{root}{path}")));
            self.wants.extend(owners.into_iter().map(ask));
        }
    }

    /// A transaction of ours left this node so.
    pub(super) fn own_done(&mut self, path: &str, left: &Left) {
        let Some(path) = relative(&self.root, path) else { return };
        let Some(number) = self.latest.get(path).copied() else { return };
        let absolute = absolute(&self.root, path);
        if let Some(place @ Place::Own(_)) = self.place(number) {
            let path = path.to_owned();
            match left {
                Left::Gone => *place = Place::Known(path, None),
                Left::Node(node) => *place = Place::Known(path, Some(Box::new(node.clone()))),
                Left::Unread => {
                    *place = Place::Asked(path);
                    self.wants.push((Tag::Place(number), Ask::Data(absolute)));
                }
            }
        }
    }

    /// A transaction of ours was not done: what we hoped to learn from it is asked for, unless another one
    /// is about it.
    pub(super) fn own_failed(&mut self, is_own: impl Fn(&str) -> bool) {
        for index in 0..self.line.len() {
            if let Place::Own(path) = &mut self.line[index]
                && !is_own(&absolute(&self.root, path))
            {
                let path = std::mem::take(path);
                let ask = Ask::Data(absolute(&self.root, &path));
                self.wants.push((Tag::Place(self.first + index as u64), ask));
                self.line[index] = Place::Asked(path);
            }
        }
    }

    // ---- Showing ----

    /// Shows all that can be shown by now.
    pub(super) fn advance(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let ready = self.ready();
        if ready > 0 {
            let places: Vec<Place> = self.line.drain(..ready).collect();
            let mut seen = self.shared.lock();
            let mut changes = Vec::new();
            for (place, number) in places.into_iter().zip(self.first..) {
                for (path, node) in news(place, self.focus.as_ref(), &seen.nodes) {
                    if self.latest.get(&path) == Some(&number) {
                        self.latest.remove(&path);
                    }
                    if let Some(load) = self.load.as_mut().filter(|it| it.region.contains(&path)) {
                        match node.clone() {
                            Some(node) => drop(load.nodes.insert(path.clone(), node)),
                            None => drop(load.nodes.remove(&path)),
                        }
                    }
                    show(path, node, self.focus.as_ref(), &mut seen.nodes, &mut changes);
                }
            }
            self.first += ready as u64;
            if !changes.is_empty() {
                wakers.extend(self.shared.feed.push(&Arc::new(changes)));
            }
            drop(seen);
            if !self.unread.is_empty() && !self.is_quiet() {
                self.read_unread(|_, _| true);
            }
        }
        wakers.extend(self.finish_load());
        wakers
    }

    /// How many places can be passed together: all of them known, and none overtaken by one behind them.
    fn ready(&self) -> usize {
        let (mut ready, mut reach) = (0, 0);
        for (index, place) in self.line.iter().enumerate() {
            match place {
                Place::Asked(_) | Place::Own(_) => break,
                Place::Owners { left, .. } if *left > 0 => break,
                Place::Overtaken(path) => {
                    reach = reach.max(self.latest.get(path).copied().unwrap_or_default());
                }
                Place::Known(..) | Place::Owners { .. } => {}
            }
            if self.first + index as u64 >= reach {
                ready = index + 1;
            }
        }
        ready
    }

    /// Where the mirror is now, if it has not shown everything it was told of.
    pub(super) fn mark(&self) -> Option<Mark> {
        let load = self.load.as_ref().filter(|_| self.focus.is_none()).map(|it| it.number);
        (load.is_some() || !self.line.is_empty()).then(|| Mark { place: self.end(), load })
    }

    /// Whether everything is shown that was to be shown when it was there.
    pub(super) fn has_passed(&self, mark: Mark) -> bool {
        let loaded = mark.load.is_none_or(|number| self.load.as_ref().is_none_or(|it| it.number != number));
        loaded && self.first >= mark.place
    }

    /// Whether the node exists, as far as it is known.
    pub(super) fn knows(&self, path: &str) -> Option<bool> {
        let path = relative(&self.root, path)?;
        let focus = self.focus.as_ref()?;
        covers(focus, path).then(|| self.shared.lock().nodes.contains_key(path))
    }
}

/// What a place in line says of which nodes.
fn news(place: Place, focus: Option<&Focus>, nodes: &BTreeMap<String, Node>) -> Vec<(String, Option<Node>)> {
    match place {
        Place::Known(path, node) => vec![(path, node.map(|it| *it))],
        Place::Owners { found, .. } => {
            let is_lost = |path: &&String| {
                let owner = item_of(path).filter(|(_, rest)| *rest == "instance");
                let unwatched = owner.filter(|(item, _)| focus.is_some_and(|it| !it.covers(*item)));
                unwatched.is_some() && !found.contains_key(*path)
            };
            let lost: Vec<String> = nodes.keys().filter(is_lost).cloned().collect();
            let found = found.into_iter().map(|(path, node)| (path, Some(node)));
            lost.into_iter().map(|path| (path, None)).chain(found).collect()
        }
        Place::Overtaken(_) => Vec::new(),
        Place::Asked(_) | Place::Own(_) => unreachable!("it is not passed before it is known"),
    }
}

/// Lets the shown nodes follow, and says what that changes.
fn show(
    path: String,
    node: Option<Node>,
    focus: Option<&Focus>,
    nodes: &mut BTreeMap<String, Node>,
    changes: &mut Vec<Change>,
) {
    match node {
        _ if !focus.is_some_and(|it| covers(it, &path)) => {}
        Some(node) if nodes.get(&path) == Some(&node) => {}
        Some(node) => {
            changes.push(Change::Put(entry((&path, &node))));
            nodes.insert(path, node);
        }
        None if path.is_empty() => {
            // Who owned what is not always watched: it went before the job did.
            changes.extend(nodes.keys().rev().map(|path| Change::Gone { path: path.clone() }));
            nodes.clear();
        }
        None => {
            if nodes.remove(&path).is_some() {
                changes.push(Change::Gone { path });
            }
        }
    }
}

/// Makes `nodes` the same as `loaded` within the region, and says what that changes.
fn difference(
    nodes: &mut BTreeMap<String, Node>,
    loaded: BTreeMap<String, Node>,
    region: &Region,
) -> Vec<Change> {
    let mut changes = Vec::new();
    nodes.retain(|path, _| {
        let stays = !region.contains(path) || loaded.contains_key(path);
        changes.extend((!stays).then(|| Change::Gone { path: path.clone() }));
        stays
    });
    for (path, node) in loaded {
        if nodes.get(&path) != Some(&node) {
            changes.push(Change::Put(entry((&path, &node))));
            nodes.insert(path, node);
        }
    }
    changes
}

// ---- The shape of a job ----

const SHARDING: &str = "/sharding";
const NECESSARY: &str = "/leader/sharding/necessary";
const PROCESSING: &str = "/leader/sharding/processing";
const BATON: &str = "/next-job-instance-ip";
const CRASHED: &str = "/leader/failover/items/";
/// What every instance follows: these nodes.
const SINGLE: [&str; 2] = ["", "/config"];
/// And these with all below them.
const RECURSIVE: [&str; 7] =
    ["/servers", "/instances", "/leader", "/trigger", "/guarantee", "/systemTime", BATON];

fn watched(root: &str, focus: &Focus, paths: &mut BTreeMap<String, bool>) {
    let mut add = |path: &str, whole: bool| *paths.entry(absolute(root, path)).or_default() |= whole;
    match focus {
        Focus::Everything => add("", true),
        Focus::Items(items) => {
            SINGLE.iter().for_each(|it| add(it, false));
            RECURSIVE.iter().for_each(|it| add(it, true));
            items.iter().for_each(|it| add(&JobNode::Item(*it).path(), true));
        }
    }
}

/// Whether a mirror with this focus follows that node.
fn covers(focus: &Focus, path: &str) -> bool {
    let Focus::Items(items) = focus else { return true };
    if SINGLE.contains(&path) {
        return true;
    }
    match item_of(path) {
        Some((item, rest)) => rest == "instance" || items.contains(&item),
        None => RECURSIVE.iter().any(|it| relative(it, path).is_some()),
    }
}

/// The item that a node belongs to, and the node's name below it; empty for the item's own.
fn item_of(path: &str) -> Option<(u32, &str)> {
    let below = path.strip_prefix(SHARDING)?.strip_prefix('/')?;
    let (item, rest) = below.split_once('/').unwrap_or((below, ""));
    Some((item.parse().ok()?, rest))
}

/// A node that every run of an item writes.
fn is_mark(path: &str) -> bool {
    item_of(path).is_some_and(|(_, rest)| rest == "running" || rest == "cursor")
}

/// Whether anybody acts on it. An empty line that the server clears away means nothing.
fn has_meaning(path: &str) -> bool {
    JobNode::parse(path) != JobNode::Other
}

fn unfocused_owners(names: &[String], focus: &Focus) -> Vec<String> {
    let items = names.iter().filter_map(|it| it.parse().ok());
    items.filter(|item| !focus.covers(*item)).map(|item| JobNode::Owner(item).path()).collect()
}

pub(super) fn intersection(a: &Focus, b: &Focus) -> Focus {
    match (a, b) {
        (Focus::Everything, other) | (other, Focus::Everything) => other.clone(),
        (Focus::Items(a), Focus::Items(b)) => Focus::Items(a.intersection(b).copied().collect()),
    }
}

/// An absolute path; that of the empty root and path is the top.
pub(super) fn absolute(root: &str, path: &str) -> String {
    if root.is_empty() && path.is_empty() { "/".to_owned() } else { format!("{root}{path}") }
}

/// What remains of a path below `root`; `None` if it is elsewhere.
pub(super) fn relative<'a>(root: &str, path: &'a str) -> Option<&'a str> {
    path.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use super::*;
    use crate::registry::feed::Next;
    use crate::registry::{Stat, WatchEvent};

    const ME: i64 = 7;
    const OTHER: i64 = 8;

    /// A server's nodes, and a mirror of `/j` that asks it.
    struct World {
        nodes: BTreeMap<String, Node>,
        zxid: u64,
        mirror: Mirror,
    }

    impl World {
        fn new(nodes: &[(&str, &str)], focus: Option<Focus>) -> World {
            let mut mirror = Mirror::new(Arc::new(Shared::new()), "/j".into(), ME, focus);
            mirror.connect();
            let mut world = World { nodes: BTreeMap::new(), zxid: 0, mirror };
            for (path, data) in nodes {
                world.write(path, data, 0);
            }
            world
        }

        fn write(&mut self, path: &str, data: &str, owner: i64) {
            self.zxid += 1;
            let (created, ephemeral) = (self.zxid, owner != 0);
            let modified = jiff::Timestamp::UNIX_EPOCH;
            let stat = Stat { created, written: created, version: 0, modified, ephemeral };
            self.nodes.insert(format!("/j{path}"), Node { data: data.into(), stat, owner });
        }

        /// Somebody writes, and the server notifies us.
        fn put(&mut self, path: &str, data: &str) {
            self.write(path, data, 0);
            self.mirror.put(&format!("/j{path}"), false, Instant::now());
        }

        fn delete(&mut self, path: &str) {
            self.nodes.remove(&format!("/j{path}"));
            self.mirror.deleted(&format!("/j{path}"));
        }

        /// The server's answers to what is asked now.
        fn ask(&mut self) -> Vec<(Want, Told)> {
            let wants = self.mirror.take_wants();
            let answer = |ask: &Ask| match ask {
                Ask::Data(path) => self.nodes.get(path).cloned().map(Told::Data),
                Ask::Children(path) => Some(Told::Children(self.children(path))),
            };
            wants
                .into_iter()
                .map(|want| (want.clone(), answer(&want.1).unwrap_or(Told::Failed(-101))))
                .collect()
        }

        fn children(&self, path: &str) -> Vec<String> {
            let below = self.nodes.keys().filter_map(|it| it.strip_prefix(path)?.strip_prefix('/'));
            let names: BTreeSet<&str> = below.filter_map(|it| it.split('/').next()).collect();
            names.into_iter().map(str::to_owned).collect()
        }

        fn answer(&mut self, answers: Vec<(Want, Told)>) {
            for ((tag, ask), told) in answers {
                self.mirror.answer(tag, &ask, told);
            }
            self.mirror.advance();
        }

        /// Asks and answers until there is nothing to ask; how many questions that were.
        fn settle(&mut self) -> usize {
            let mut count = 0;
            self.mirror.advance();
            loop {
                let answers = self.ask();
                if answers.is_empty() {
                    return count;
                }
                count += answers.len();
                self.answer(answers);
            }
        }

        /// What a watcher reads, in short.
        fn told(&mut self) -> Vec<String> {
            let shared = self.mirror.shared.clone();
            let mut told = Vec::new();
            loop {
                match shared.feed.poll(&mut Context::from_waker(Waker::noop())) {
                    Next::Event(WatchEvent::Changed(changes)) => {
                        let text = |it: &Change| match it {
                            Change::Put(it) => format!("{}={}", it.path, it.data),
                            Change::Gone { path } => format!("-{path}"),
                        };
                        told.push(changes.iter().map(text).collect::<Vec<_>>().join(" "));
                    }
                    Next::Event(event) => told.push(format!("{event:?}")),
                    Next::Snapshot => {
                        if let Some((_, entries)) = shared.snapshot() {
                            told.push(format!("snapshot of {}", entries.len()));
                        }
                    }
                    Next::Nothing => return told,
                }
            }
        }
    }

    #[test]
    fn a_change_is_told_when_it_is_read_and_not_before_those_ahead_of_it() {
        let mut world = World::new(&[("", "")], None);
        world.settle();
        assert_eq!(world.told(), ["snapshot of 1"]);
        world.put("/a", "1");
        let first = world.ask();
        world.put("/b", "2");
        let second = world.ask();
        world.delete("/c");
        world.answer(second);
        assert_eq!(world.told(), [""; 0], "`/a` is not known yet");
        world.answer(first);
        assert_eq!(world.told(), ["/a=1 /b=2"]);
    }

    #[test]
    fn what_changes_again_before_it_is_read_is_told_as_one_with_all_between() {
        let mut world = World::new(&[("", "")], None);
        world.settle();
        world.told();
        world.put("/a", "1");
        world.put("/b", "2");
        let early = world.ask();
        world.put("/a", "3");
        world.answer(early);
        // To show `/b` without `/a`, or with what `/a` was later, would be a state that never was.
        assert_eq!(world.told(), [""; 0]);
        world.settle();
        assert_eq!(world.told(), ["/b=2 /a=3"]);
        world.put("/c", "4");
        world.delete("/c");
        assert_eq!((world.settle(), world.told().len()), (1, 0), "what came and went is not told");
    }

    #[test]
    fn what_our_own_transaction_did_is_not_asked_for() {
        let mut world = World::new(&[("", "")], None);
        world.settle();
        world.told();
        world.write("/a", "mine", ME);
        world.mirror.put("/j/a", true, Instant::now());
        assert_eq!((world.settle(), world.told().len()), (0, 0));
        let mark = world.mirror.mark().expect("there is something to wait for");
        world.mirror.own_done("/j/a", &Left::Node(world.nodes["/j/a"].clone()));
        assert_eq!((world.settle(), world.told()), (0, vec!["/a=mine".to_owned()]));
        assert!(world.mirror.has_passed(mark));
        // Unless it was not done, or was somebody else's.
        world.write("/b", "theirs", OTHER);
        world.mirror.put("/j/b", true, Instant::now());
        world.mirror.own_failed(|_| false);
        assert_eq!((world.settle(), world.told()), (1, vec!["/b=theirs".to_owned()]));
    }

    #[test]
    fn what_changes_while_all_is_read_is_in_the_snapshot() {
        let mut world = World::new(&[("", ""), ("/a", "1")], None);
        let early = world.ask();
        world.put("/a", "2");
        world.put("/b", "3");
        world.answer(early);
        assert_eq!(world.told(), [""; 0]);
        world.settle();
        assert_eq!(world.told(), ["snapshot of 3"]);
        let seen = world.mirror.shared.lock();
        assert_eq!(seen.nodes["/a"].data, "2");
    }

    #[test]
    fn a_leader_reads_marks_of_others_only_when_something_else_happens() {
        let nodes = [
            ("", ""),
            ("/sharding", ""),
            ("/sharding/0", ""),
            ("/sharding/0/instance", "a"),
            ("/instances", ""),
        ];
        let mut world = World::new(&nodes, Some(Focus::Everything));
        world.write("/instances/a", "", OTHER);
        world.settle();
        world.told();
        for _ in 0..3 {
            world.put("/sharding/0/cursor", "1");
            world.put("/sharding/0/running", "a");
            world.delete("/sharding/0/running");
        }
        world.delete("/leader/election/latch");
        assert_eq!((world.settle(), world.told().len()), (0, 0), "rounds of others cost nothing");
        world.put("/sharding/0/running", "a");
        world.delete("/instances/a");
        assert_eq!(world.settle(), 2);
        assert_eq!(world.told(), ["/sharding/0/cursor=1 /sharding/0/running=a -/instances/a"]);
        world.put("/sharding/0/cursor", "2");
        assert_eq!(world.settle(), 1, "its owner is dead: that is worth a look");
        assert_eq!(world.told(), ["/sharding/0/cursor=2"]);
    }

    #[test]
    fn owners_are_read_when_an_assignment_is_done() {
        let nodes = [
            ("", ""),
            ("/sharding", ""),
            ("/sharding/0", ""),
            ("/sharding/0/instance", "a"),
            ("/sharding/1", ""),
        ];
        let mut world = World::new(&nodes, Some(Focus::Items([1].into())));
        world.settle();
        assert_eq!(world.told(), ["snapshot of 3"]);
        world.put("/leader/sharding/necessary", "");
        world.settle();
        assert_eq!(world.told(), ["/leader/sharding/necessary="]);
        world.write("/sharding/0/instance", "b", 0);
        world.delete("/leader/sharding/processing");
        world.delete("/leader/sharding/necessary");
        assert_eq!(world.settle(), 2, "the items, and the one owner that is not watched");
        assert_eq!(world.told(), ["/sharding/0/instance=b -/leader/sharding/necessary"]);
    }
}
