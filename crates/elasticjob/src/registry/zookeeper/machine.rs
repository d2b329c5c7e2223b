//! A session as a state machine without I/O: packets and commands in, packets out.
//!
//! Everything the server says comes down one connection, in the order in which it happened; the machine keeps
//! that order all the way to watchers and to those who wait for an answer.

mod transactions;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::batch::{Batch, Committing};
use super::mirror::{Mark, Mirror, Shared, Tag, absolute, relative};
use super::transaction::{Attempt, Transaction};
use super::wire::{self, Acl, Ask, Malformed, Notification, Opcode, Packet, Told, code, xid};
use crate::registry::{CommitError, Entry, Focus, Op, RegistryError};

/// What a server takes in one packet unless it is told otherwise (`jute.maxbuffer`).
pub(super) const PACKET_MAX: usize = 0xf_ffff;
/// How many questions go into one packet, and how many bytes of paths.
const ASKS_MAX: usize = 1000;
const ASK_BYTES_MAX: usize = 512 * 1024;

pub(super) type WatchId = u64;
pub(super) type Reply<T> = oneshot::Sender<T>;

/// What is asked of a session.
pub(super) enum Command {
    Commit { root: String, ops: Vec<Op>, reply: Reply<Result<(), CommitError>> },
    Read { root: String, reply: Reply<Result<Vec<Entry>, RegistryError>> },
    Children { root: String, reply: Reply<Result<Vec<String>, RegistryError>> },
}

/// A request that has not been answered.
struct Pending {
    xid: i32,
    sent: Instant,
    what: Waiting,
}

enum Waiting {
    /// Nothing depends on the answer but what comes after it.
    Nothing,
    Probe,
    Goodbye,
    Mirrors(Vec<(WatchId, Tag, Ask)>),
    Commit(Box<Committing>, Attempt),
    /// Transactions of several jobs that went as one.
    Commits(Vec<(Box<Committing>, Attempt)>),
    /// Finding out which parents exist.
    Parents(Box<Committing>, Vec<Ask>),
    Read(Box<Reading>, Vec<Ask>),
    Children(Reply<Result<Vec<String>, RegistryError>>),
}

/// A subtree that somebody reads, level by level.
struct Reading {
    root: String,
    entries: BTreeMap<String, Entry>,
    /// Nodes that have been found and not been read.
    left: VecDeque<Ask>,
    reply: Reply<Result<Vec<Entry>, RegistryError>>,
}

/// An answer that waits until all mirrors have shown what came before it.
struct Settling {
    result: Result<(), CommitError>,
    reply: Reply<Result<(), CommitError>>,
    marks: Vec<(WatchId, Mark)>,
}

/// Why a connection cannot go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Another connection may do better.
    Lost(String),
    /// The session is over.
    Expired,
    /// The session was closed as we asked.
    Closed,
    /// The server does not know what we need.
    TooOld,
    /// The server does not let us in.
    Denied(String),
}

impl From<Malformed> for Trouble {
    fn from(_: Malformed) -> Trouble {
        Trouble::Lost("the server sent something that is not ZooKeeper's protocol".into())
    }
}

pub(super) struct Machine {
    namespace: String,
    acl: Acl,
    session: i64,
    connected: bool,
    next_xid: i32,
    pending: VecDeque<Pending>,
    /// Packets to be sent.
    pub(super) out: Vec<u8>,
    pub(super) last_zxid: i64,
    /// When the last request was sent that has been answered: the server knew of us then.
    pub(super) confirmed: Instant,
    pings: VecDeque<Instant>,
    mirrors: BTreeMap<WatchId, Mirror>,
    /// The mirrors of each root.
    roots: HashMap<String, Vec<WatchId>>,
    /// The nodes that the server notifies us of, with all below them or not.
    watched: BTreeMap<String, bool>,
    /// What mirrors want of a node: how many want it alone, and how many with all below it.
    wanted: BTreeMap<String, (u32, u32)>,
    /// What each mirror wants.
    wanted_by: HashMap<WatchId, BTreeMap<String, bool>>,
    unwatch: Vec<String>,
    /// Nodes whose wants have changed since the server was told.
    rewatch: BTreeSet<String>,
    /// Nodes that transactions under way are about; and how the names begin that they let the server complete.
    own: HashMap<String, u32>,
    own_lines: HashMap<String, u32>,
    /// Transactions that go with the next flush.
    batch: Batch,
    /// Jobs of which a transaction is under way together with others. Should those be refused it goes again, alone: what
    /// else the job wants waits until then, so that everything of a job is done in the order in which it was asked for.
    together: HashSet<String>,
    held_back: VecDeque<Box<Committing>>,
    settling: VecDeque<Settling>,
    /// Mirrors that something happened to since the last flush.
    touched: BTreeSet<WatchId>,
    /// Mirrors that had not shown everything at the last flush. No other one has, unless it is touched.
    behind: BTreeSet<WatchId>,
    /// The namespace could be read.
    probed: bool,
}

impl Machine {
    pub(super) fn new(namespace: String, acl: Acl, now: Instant) -> Machine {
        Machine {
            namespace,
            acl,
            session: 0,
            connected: false,
            next_xid: 1,
            pending: VecDeque::new(),
            out: Vec::new(),
            last_zxid: 0,
            confirmed: now,
            pings: VecDeque::new(),
            mirrors: BTreeMap::new(),
            roots: HashMap::new(),
            watched: BTreeMap::new(),
            wanted: BTreeMap::new(),
            wanted_by: HashMap::new(),
            unwatch: Vec::new(),
            rewatch: BTreeSet::new(),
            own: HashMap::new(),
            own_lines: HashMap::new(),
            batch: Batch::default(),
            together: HashSet::new(),
            held_back: VecDeque::new(),
            settling: VecDeque::new(),
            touched: BTreeSet::new(),
            behind: BTreeSet::new(),
            probed: false,
        }
    }

    // ---- Connections ----

    /// A connection stands, for this session.
    pub(super) fn connect(&mut self, session: i64, auth: Option<Packet>, sent: Instant, now: Instant) {
        self.session = session;
        self.connected = true;
        self.confirmed = sent;
        if let Some(packet) = auth {
            self.out.extend(packet.number(xid::AUTH));
        }
        if !self.probed {
            // Says at once whether the server is too old, and whether we may read.
            let none: [String; 0] = [];
            self.send(wire::set_watches(self.last_zxid, none.iter(), none.iter()), Waiting::Probe, now);
            self.send(wire::look(Opcode::GetChildren, &self.namespace), Waiting::Probe, now);
        }
        for mirror in self.mirrors.values_mut() {
            mirror.connect();
        }
        self.touched.extend(self.mirrors.keys());
    }

    /// Whether the server has answered the first questions.
    pub(super) fn is_welcome(&self) -> bool {
        self.probed
    }

    /// The connection is gone: nobody knows what became of what was under way.
    pub(super) fn disconnect(&mut self, why: &str) {
        self.connected = false;
        self.out = Vec::new();
        self.pings.clear();
        self.watched.clear();
        self.wanted.clear();
        self.wanted_by.clear();
        self.unwatch.clear();
        self.rewatch.clear();
        self.behind.clear();
        self.own.clear();
        self.own_lines.clear();
        for mirror in self.mirrors.values_mut() {
            mirror.disconnect().into_iter().for_each(std::task::Waker::wake);
        }
        // Their watchers know that they must look again.
        for settled in self.settling.drain(..) {
            let _ = settled.reply.send(settled.result);
        }
        self.fail_all(|| CommitError::Unknown(why.to_owned()), || RegistryError::Unreachable(why.to_owned()));
    }

    /// The session is over.
    pub(super) fn end(&mut self) {
        for mirror in self.mirrors.values() {
            mirror.shared.feed.end().into_iter().for_each(std::task::Waker::wake);
        }
        self.mirrors.clear();
        self.roots.clear();
        for settled in self.settling.drain(..) {
            let _ = settled.reply.send(settled.result);
        }
        self.fail_all(
            || CommitError::Unknown("the session has ended".into()),
            || RegistryError::SessionEnded,
        );
    }

    fn fail_all(&mut self, commit: impl Fn() -> CommitError, read: impl Fn() -> RegistryError) {
        for pending in self.pending.drain(..) {
            fail(pending.what, &commit, &read);
        }
        self.together.clear();
        let parts = self.batch.take().into_iter().map(|it| it.committing);
        for committing in parts.chain(self.held_back.drain(..)) {
            let _ = committing.reply.send(Err(commit()));
        }
    }

    /// How many requests are not answered.
    pub(super) fn load(&self) -> usize {
        self.pending.len() + self.batch.len() + self.held_back.len()
    }

    /// What was to be sent before goes before.
    fn send(&mut self, packet: Packet, what: Waiting, now: Instant) {
        self.send_batch(now);
        self.send_at_once(packet, what, now);
    }

    fn send_at_once(&mut self, packet: Packet, what: Waiting, now: Instant) {
        let xid = self.next_xid;
        self.next_xid = self.next_xid.checked_add(1).unwrap_or(1);
        self.out.extend(packet.number(xid));
        self.pending.push_back(Pending { xid, sent: now, what });
    }

    pub(super) fn ping(&mut self, now: Instant, long: Duration) {
        self.out.extend(wire::bare(Opcode::Ping).number(xid::PING));
        self.pings.push_back(now);
        if let Some(before) = now.checked_sub(long) {
            for mirror in self.mirrors.values_mut() {
                mirror.look_at_old_marks(before);
            }
            self.touched.extend(self.mirrors.keys());
        }
    }

    pub(super) fn say_goodbye(&mut self, now: Instant) {
        // That our own nodes go is not for our watchers to hear.
        for mirror in std::mem::take(&mut self.mirrors).into_values() {
            mirror.shared.feed.end().into_iter().for_each(std::task::Waker::wake);
        }
        self.roots.clear();
        self.send(wire::bare(Opcode::CloseSession), Waiting::Goodbye, now);
    }

    // ---- Watchers ----

    pub(super) fn watch(&mut self, id: WatchId, root: &str, shared: Arc<Shared>, focus: Option<Focus>) {
        let root = format!("{}{root}", self.namespace);
        self.roots.entry(root.clone()).or_default().push(id);
        let mut mirror = Mirror::new(shared, root, self.session, focus);
        if self.connected {
            mirror.connect();
        }
        self.mirrors.insert(id, mirror);
        self.touched.insert(id);
    }

    pub(super) fn unwatch(&mut self, id: WatchId) {
        if let Some(mirror) = self.mirrors.remove(&id)
            && let Some(ids) = self.roots.get_mut(mirror.root())
        {
            ids.retain(|it| *it != id);
            if ids.is_empty() {
                self.roots.remove(mirror.root());
            }
        }
        self.behind.remove(&id);
        self.want(id, BTreeMap::new());
    }

    pub(super) fn set_focus(&mut self, id: WatchId, focus: Focus) {
        if let Some(mirror) = self.mirrors.get_mut(&id) {
            mirror.set_focus(focus).into_iter().for_each(std::task::Waker::wake);
            self.touched.insert(id);
        }
    }

    /// The mirrors of a node: those whose root it is, or is below.
    fn mirrors_of(roots: &HashMap<String, Vec<WatchId>>, path: &str) -> Vec<WatchId> {
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        ends.filter_map(|end| roots.get(&path[..end])).flatten().copied().collect()
    }

    /// Notes what a mirror wants to be notified of.
    fn want(&mut self, id: WatchId, paths: BTreeMap<String, bool>) {
        let before = self.wanted_by.get(&id);
        if before.is_some_and(|it| *it == paths) || (before.is_none() && paths.is_empty()) {
            return;
        }
        let before = self.wanted_by.remove(&id).unwrap_or_default();
        for (path, whole) in &paths {
            self.rewatch.insert(path.clone());
            let (single, recursive) = self.wanted.entry(path.clone()).or_default();
            *(if *whole { recursive } else { single }) += 1;
        }
        for (path, whole) in before {
            let Some((single, recursive)) = self.wanted.get_mut(&path) else { continue };
            *(if whole { &mut *recursive } else { &mut *single }) -= 1;
            if (*single, *recursive) == (0, 0) {
                self.wanted.remove(&path);
                self.unwatch.push(path);
            } else {
                self.rewatch.insert(path);
            }
        }
        if !paths.is_empty() {
            self.wanted_by.insert(id, paths);
        }
    }

    // ---- Commands ----

    pub(super) fn command(&mut self, command: Command, now: Instant) {
        if !self.connected {
            let why = "there is no connection to ZooKeeper";
            return refuse(
                command,
                || CommitError::Unknown(why.into()),
                || RegistryError::Unreachable(why.into()),
            );
        }
        match command {
            Command::Commit { root, ops, reply } => {
                let transaction = Transaction::new(&self.namespace, &root, ops);
                self.commit(Box::new(Committing { transaction, reply, looking: Vec::new() }), now);
            }
            Command::Read { root, reply } => {
                let root = format!("{}{root}", self.namespace);
                // A server that lags behind the others catches up first.
                self.send(wire::sync(&self.namespace), Waiting::Nothing, now);
                let top = absolute(&root, "");
                let left = VecDeque::from([Ask::Data(top.clone()), Ask::Children(top)]);
                self.read_on(Box::new(Reading { root, entries: BTreeMap::new(), left, reply }), now);
            }
            Command::Children { root, reply } => {
                let path = absolute(&format!("{}{root}", self.namespace), "");
                self.send(wire::sync(&self.namespace), Waiting::Nothing, now);
                let ask = [Ask::Children(path)];
                self.send(wire::multi_read(&ask), Waiting::Children(reply), now);
            }
        }
    }

    fn read_on(&mut self, mut reading: Box<Reading>, now: Instant) {
        let asks = take_asks(&mut reading.left);
        if asks.is_empty() || reading.reply.is_closed() {
            let _ = reading.reply.send(Ok(reading.entries.into_values().collect()));
            return;
        }
        self.send(wire::multi_read(&asks), Waiting::Read(reading, asks), now);
    }

    // ---- Packets ----

    /// Takes in one packet.
    pub(super) fn packet(&mut self, bytes: &[u8], now: Instant) -> Result<(), Trouble> {
        let (head, reader) = wire::read_head(bytes)?;
        match head.xid {
            xid::NOTIFICATION => {
                self.notified(&wire::read_notification(reader)?, now);
                return Ok(());
            }
            xid::PING => {
                if let Some(sent) = self.pings.pop_front() {
                    self.confirmed = self.confirmed.max(sent);
                }
                return Ok(());
            }
            xid::AUTH => {
                return match head.error {
                    code::OK => Ok(()),
                    _ => Err(Trouble::Denied(
                        "ZooKeeper does not accept the digest: write it as `user:password`".into(),
                    )),
                };
            }
            _ => {}
        }
        self.last_zxid = self.last_zxid.max(head.zxid);
        let Some(pending) = self.pending.pop_front() else {
            return Err(Trouble::Lost("the server answered what was not asked".into()));
        };
        self.confirmed = self.confirmed.max(pending.sent);
        if pending.xid != head.xid {
            fail(
                pending.what,
                || CommitError::Unknown("the answer got lost".into()),
                || RegistryError::Unreachable("the answer got lost".into()),
            );
            return Err(Trouble::Lost("the server answered out of order".into()));
        }
        if head.error == code::SESSION_EXPIRED {
            fail(pending.what, || CommitError::SessionEnded, || RegistryError::SessionEnded);
            return Err(Trouble::Expired);
        }
        match pending.what {
            Waiting::Nothing if head.error == code::UNIMPLEMENTED => {
                Err(Trouble::Lost("the server is older than ZooKeeper 3.6".into()))
            }
            Waiting::Nothing => Ok(()),
            Waiting::Goodbye => Err(Trouble::Closed),
            Waiting::Probe => self.probed(head.error),
            Waiting::Mirrors(asks) => {
                let answers = answers(head.error, asks.len(), reader)?;
                for ((id, tag, ask), told) in asks.into_iter().zip(answers) {
                    if told == Told::Failed(code::NO_AUTH) {
                        tracing::warn!("registry: ZooKeeper denies access to {}", ask.path());
                    }
                    if let Some(mirror) = self.mirrors.get_mut(&id) {
                        self.touched.insert(id);
                        mirror.answer(tag, &ask, told);
                    }
                }
                Ok(())
            }
            Waiting::Commit(committing, attempt) => {
                let results = if reader.is_empty() { Ok(Vec::new()) } else { wire::read_multi(reader) };
                let Ok(results) = results else {
                    let _ =
                        committing.reply.send(Err(CommitError::Unknown("the answer cannot be read".into())));
                    return Err(Malformed.into());
                };
                self.answered(committing, &attempt, head, &results, now)
            }
            Waiting::Commits(parts) => {
                let results = if reader.is_empty() { Ok(Vec::new()) } else { wire::read_multi(reader) };
                let Ok(results) = results else {
                    let unreadable = || CommitError::Unknown("the answer cannot be read".into());
                    for (committing, _) in parts {
                        let _ = committing.reply.send(Err(unreadable()));
                    }
                    return Err(Malformed.into());
                };
                self.answered_together(parts, head, &results, now)
            }
            Waiting::Parents(mut committing, asks) => {
                let answers = answers(head.error, asks.len(), reader)?;
                for (ask, told) in asks.iter().zip(answers) {
                    committing.transaction.found(ask.path(), told != Told::Failed(code::NO_NODE));
                }
                self.look_or_attempt(committing, now);
                Ok(())
            }
            Waiting::Read(mut reading, asks) => {
                let answers = answers(head.error, asks.len(), reader)?;
                for (ask, told) in asks.iter().zip(answers) {
                    if told == Told::Failed(code::NO_AUTH) {
                        let _ = reading.reply.send(Err(denied(ask.path())));
                        return Ok(());
                    }
                    reading.take(ask, told);
                }
                self.read_on(reading, now);
                Ok(())
            }
            Waiting::Children(reply) => {
                let told = match answers(head.error, 1, reader)?.pop() {
                    Some(Told::Children(mut names)) => {
                        names.sort();
                        Ok(names)
                    }
                    Some(Told::Failed(code::NO_AUTH)) => Err(denied(&self.namespace)),
                    _ => Ok(Vec::new()),
                };
                let _ = reply.send(told);
                Ok(())
            }
        }
    }

    fn probed(&mut self, error: i32) -> Result<(), Trouble> {
        match error {
            code::UNIMPLEMENTED => Err(Trouble::TooOld),
            code::NO_AUTH => Err(Trouble::Denied(format!(
                "ZooKeeper denies access to `{}`: the digest is missing, or not that of the namespace's creator",
                self.namespace
            ))),
            code::REQUIRES_AUTH => Err(Trouble::Denied(
                "ZooKeeper serves only those who say who they are: give a digest with `digest-env` or `digest-file`; \
                 an ensemble that takes nothing but SASL cannot be used"
                    .into(),
            )),
            code::OK | code::NO_NODE => {
                self.probed = !self.pending.iter().any(|it| matches!(it.what, Waiting::Probe));
                Ok(())
            }
            error => Err(Trouble::Lost(format!("ZooKeeper says: {}", wire::name(error)))),
        }
    }

    fn notified(&mut self, notification: &Notification, now: Instant) {
        let (Notification::Put(path) | Notification::Deleted(path)) = notification else { return };
        for id in Machine::mirrors_of(&self.roots, path) {
            let Some(mirror) = self.mirrors.get_mut(&id) else { continue };
            self.touched.insert(id);
            match notification {
                Notification::Put(path) => {
                    let own = is_own(&self.own, &self.own_lines, path);
                    mirror.put(path, own, now);
                }
                Notification::Deleted(path) => mirror.deleted(path),
                Notification::Other => {}
            }
        }
    }

    /// Where those mirrors are that have not shown everything.
    fn marks(&self) -> Vec<(WatchId, Mark)> {
        let unshown = self.touched.union(&self.behind);
        unshown.filter_map(|id| Some((*id, self.mirrors.get(id)?.mark()?))).collect()
    }

    // ---- After a batch of packets and commands ----

    /// Shows what can be shown, settles what can be settled, and asks what is to be asked.
    pub(super) fn flush(&mut self, now: Instant) {
        let touched = std::mem::take(&mut self.touched);
        for id in &touched {
            let Some(mirror) = self.mirrors.get_mut(id) else { continue };
            mirror.advance().into_iter().for_each(std::task::Waker::wake);
            match mirror.mark() {
                Some(_) => self.behind.insert(*id),
                None => self.behind.remove(id),
            };
        }
        self.settle();
        if self.connected {
            self.ask(&touched, now);
            self.send_batch(now);
        }
    }

    fn settle(&mut self) {
        let mirrors = &self.mirrors;
        while let Some(settling) = self.settling.front_mut() {
            settling.marks.retain(|(id, mark)| mirrors.get(id).is_some_and(|it| !it.has_passed(*mark)));
            if !settling.marks.is_empty() {
                return;
            }
            if let Some(settled) = self.settling.pop_front() {
                let _ = settled.reply.send(settled.result);
            }
        }
    }

    fn ask(&mut self, touched: &BTreeSet<WatchId>, now: Instant) {
        let mut wants: VecDeque<(WatchId, Tag, Ask)> = VecDeque::new();
        for id in touched {
            let Some(mirror) = self.mirrors.get_mut(id) else { continue };
            wants.extend(mirror.take_wants().into_iter().map(|(tag, ask)| (*id, tag, ask)));
            if let Some(paths) = mirror.take_watched() {
                self.want(*id, paths);
            }
        }
        // First, so that nothing is missed between what is read and what is notified.
        self.set_watches(now);
        while !wants.is_empty() {
            let count = batch(wants.iter().map(|it| &it.2));
            let part: Vec<_> = wants.drain(..count).collect();
            let asks: Vec<Ask> = part.iter().map(|it| it.2.clone()).collect();
            self.send(wire::multi_read(&asks), Waiting::Mirrors(part), now);
        }
    }

    /// Lets the server notify us of what is wanted, and of no more.
    fn set_watches(&mut self, now: Instant) {
        let changed: Vec<(String, bool)> = std::mem::take(&mut self.rewatch)
            .into_iter()
            .filter_map(|path| {
                let (_, recursive) = self.wanted.get(&path)?;
                let whole = *recursive > 0;
                (self.watched.get(&path) != Some(&whole)).then_some((path, whole))
            })
            .collect();
        let mut left = &changed[..];
        while !left.is_empty() {
            let mut bytes = 0;
            let fits = |(path, _): &&(String, bool)| {
                bytes += path.len() + 4;
                bytes <= ASK_BYTES_MAX
            };
            let count = left.iter().take_while(fits).count().max(1);
            let (part, rest) = left.split_at(count);
            let paths =
                |whole| part.iter().filter(move |it| it.1 == whole).map(|it| &it.0).collect::<Vec<_>>();
            let packet = wire::set_watches(self.last_zxid, paths(false).into_iter(), paths(true).into_iter());
            self.send(packet, Waiting::Nothing, now);
            left = rest;
        }
        self.watched.extend(changed);
        for path in std::mem::take(&mut self.unwatch) {
            if !self.wanted.contains_key(&path) && self.watched.remove(&path).is_some() {
                self.send(wire::remove_watches(&path), Waiting::Nothing, now);
            }
        }
    }
}

impl Reading {
    fn take(&mut self, ask: &Ask, told: Told) {
        let path = relative(&self.root, ask.path()).unwrap_or_default().to_owned();
        match told {
            Told::Data(node) => {
                let entry = Entry { path: path.clone(), data: node.data, stat: node.stat };
                self.entries.insert(path, entry);
            }
            Told::Children(names) => {
                for name in names {
                    let child = absolute(&self.root, &format!("{path}/{name}"));
                    self.left.extend([Ask::Data(child.clone()), Ask::Children(child)]);
                }
            }
            Told::Failed(_) => {}
        }
    }
}

fn is_own(own: &HashMap<String, u32>, lines: &HashMap<String, u32>, path: &str) -> bool {
    const DIGITS: usize = 10;
    own.contains_key(path)
        || (!lines.is_empty()
            && path
                .split_at_checked(path.len().saturating_sub(DIGITS))
                .is_some_and(|it| lines.contains_key(it.0)))
}

fn denied(path: &str) -> RegistryError {
    RegistryError::Denied(format!(
        "ZooKeeper lets us not read `{path}`: the digest is missing or not that of its creator"
    ))
}

/// The answers to a combined read.
fn answers(error: i32, count: usize, reader: wire::Reader<'_>) -> Result<Vec<Told>, Trouble> {
    if error != code::OK {
        return Err(Trouble::Lost(format!("ZooKeeper says: {}", wire::name(error))));
    }
    let answers = wire::read_multi_read(reader)?;
    if answers.len() == count { Ok(answers) } else { Err(Malformed.into()) }
}

/// As many questions as fit into a packet.
fn take_asks(left: &mut VecDeque<Ask>) -> Vec<Ask> {
    let count = batch(left.iter());
    left.drain(..count).collect()
}

fn batch<'a>(asks: impl ExactSizeIterator<Item = &'a Ask>) -> usize {
    let (mut bytes, all) = (0, asks.len());
    let fits = |ask: &&Ask| {
        bytes += ask.path().len() + 16;
        bytes <= ASK_BYTES_MAX
    };
    asks.take(ASKS_MAX).take_while(fits).count().max(1).min(all)
}

/// Tells whoever waits that there will be no answer.
fn fail(what: Waiting, commit: impl Fn() -> CommitError, read: impl Fn() -> RegistryError) {
    match what {
        Waiting::Nothing | Waiting::Probe | Waiting::Goodbye | Waiting::Mirrors(_) => {}
        Waiting::Commit(committing, _) => drop(committing.reply.send(Err(commit()))),
        Waiting::Commits(parts) => {
            for (committing, _) in parts {
                let _ = committing.reply.send(Err(commit()));
            }
        }
        // It was not done, and is not under way: but whoever waits must look again.
        Waiting::Parents(committing, _) => drop(committing.reply.send(Err(commit()))),
        Waiting::Read(reading, _) => drop(reading.reply.send(Err(read()))),
        Waiting::Children(reply) => drop(reply.send(Err(read()))),
    }
}

/// Answers a command that is not even begun.
fn refuse(command: Command, commit: impl FnOnce() -> CommitError, read: impl FnOnce() -> RegistryError) {
    match command {
        Command::Commit { reply, .. } => drop(reply.send(Err(commit()))),
        Command::Read { reply, .. } => drop(reply.send(Err(read()))),
        Command::Children { reply, .. } => drop(reply.send(Err(read()))),
    }
}
