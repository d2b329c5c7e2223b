//! What an embedded registry knows, behind one lock.
//!
//! Every transaction is a [`Step`]. In memory a step is published as soon as the tree has taken it: watchers
//! are handed its changes and its caller is answered, all under the lock. A durable registry publishes a step
//! when it is on disk and everything before it is; until then it waits in the pipeline, refusals included,
//! because they may speak of what waits before them. So nobody is ever shown what a crash could take back.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use elasticjob_core::tree::{Refused, Stat, Tree, Zxid};
use jiff::Timestamp;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

use super::session::{Outage, Silence};
use super::store::Write;
use crate::registry::feed::Feed;
use crate::registry::{Change, CommitError, Entry, Op, RegistryError, SessionId};

/// How many transactions wait for the disk at a time; further callers wait before theirs is looked at.
const PIPELINE_MAX: usize = 1024;

/// How many transaction numbers are reserved at a time. Transactions that store nothing take numbers too,
/// and the next life of the registry must not give them again.
const RESERVED: Zxid = 10_000;

type Answer = Result<(), CommitError>;

/// One embedded registry, without the handles that keep it open.
pub(super) struct Core {
    state: Mutex<State>,
    /// The writer's bell.
    work: Condvar,
    disk: Option<(PathBuf, Arc<Semaphore>)>,
}

impl Core {
    pub(super) fn in_memory() -> Core {
        Core { state: Mutex::new(State::new(Tree::default(), None)), work: Condvar::new(), disk: None }
    }

    /// With what [`Store::open`](super::store::Store::open) found. Somebody has to write.
    pub(super) fn durable(home: PathBuf, entries: Vec<Entry>, ceiling: Zxid) -> Core {
        let tree = Tree::restore(entries.iter().cloned(), ceiling);
        let shown = Shown { nodes: entries.into_iter().map(|it| (it.path, (it.data, it.stat))).collect() };
        let disk = Disk {
            home: home.clone(),
            shown,
            pipeline: VecDeque::new(),
            writing: false,
            ceiling,
            failed: None,
            closing: false,
        };
        Core {
            state: Mutex::new(State::new(tree, Some(disk))),
            work: Condvar::new(),
            disk: Some((home, Arc::new(Semaphore::new(PIPELINE_MAX)))),
        }
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.disk.as_ref().map(|(home, _)| home.as_path())
    }

    /// A place in the pipeline, if there is one.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        match &self.disk {
            Some((_, room)) => room.clone().acquire_owned().await.ok(),
            None => None,
        }
    }

    /// Does something under the lock. Whoever is to be woken is woken after it.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut State, &mut After) -> R) -> R {
        let mut after = After::default();
        let result = act(&mut self.lock(), &mut after);
        if after.work {
            self.work.notify_one();
        }
        for (reply, answer) in after.replies {
            // Whoever does not wait for the answer any more does not need it.
            let _ = reply.send(answer);
        }
        after.wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// Waits for transactions to be written; `None` when the registry is closed and all are.
    pub(super) fn next_batch(&self) -> Option<Batch> {
        let mut state = self.lock();
        loop {
            let disk = state.disk.as_mut()?;
            if !disk.pipeline.is_empty() {
                disk.writing = true;
                return Some(Batch { steps: std::mem::take(&mut disk.pipeline) });
            }
            if disk.closing {
                return None;
            }
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What became of a batch.
    pub(super) fn settle(&self, batch: Batch, written: Result<(), String>) {
        if let Err(cause) = &written {
            tracing::error!(home = ?self.home(), cause, "the registry could not write and stops");
        }
        self.with(|state, after| match written {
            Ok(()) => {
                for step in batch.steps {
                    state.publish(step, after);
                }
                if let Some(disk) = &mut state.disk {
                    disk.writing = false;
                }
            }
            Err(cause) => state.fail(batch, &cause, after),
        });
    }

    pub(super) fn close(&self) {
        self.with(|state, after| {
            if let Some(disk) = &mut state.disk {
                disk.closing = true;
                after.work = true;
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nobody else's code runs while it is held, and ours does not panic halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom to wake when the lock is free again.
#[derive(Default)]
pub(super) struct After {
    wakers: Vec<Waker>,
    replies: Vec<(oneshot::Sender<Answer>, Answer)>,
    work: bool,
}

/// A caller's answer, or the promise of one.
pub(super) enum Answered {
    Now(Answer),
    Later(oneshot::Receiver<Answer>),
}

/// One transaction, or the end of one session, that the tree has taken or refused.
struct Step {
    changes: Vec<Change>,
    writes: Vec<Write>,
    ended: Option<SessionId>,
    answer: Answer,
    reply: Option<oneshot::Sender<Answer>>,
    _room: Option<OwnedSemaphorePermit>,
}

/// Steps that go to disk together.
pub(super) struct Batch {
    steps: VecDeque<Step>,
}

impl Batch {
    pub(super) fn writes(&self) -> impl Iterator<Item = &Write> {
        self.steps.iter().flat_map(|step| &step.writes)
    }
}

/// What an embedded registry knows.
pub(super) struct State {
    tree: Tree,
    links: BTreeMap<SessionId, Link>,
    /// By root, so that a change costs as much as the path is deep, however many roots are watched.
    watchers: HashMap<Arc<str>, Vec<Arc<Feed>>>,
    last_watch: u64,
    disk: Option<Disk>,
}

/// What a durable registry knows besides.
struct Disk {
    home: PathBuf,
    /// The tree as it is on disk, with the ephemeral nodes of that moment: what readers see. The tree itself
    /// is ahead by what is in the pipeline.
    shown: Shown,
    pipeline: VecDeque<Step>,
    /// The writer is busy with a batch.
    writing: bool,
    /// The greatest transaction number that may be given without reserving more.
    ceiling: Zxid,
    failed: Option<String>,
    closing: bool,
}

/// The connection of one session.
struct Link {
    condition: Condition,
    feeds: BTreeMap<u64, Arc<Feed>>,
    timeout: Duration,
    runtime: Option<Handle>,
    /// Counts the times that the session fell silent.
    silences: u64,
    /// Nobody holds the session any more.
    abandoned: bool,
}

#[derive(Clone, Copy)]
enum Condition {
    Up,
    CutAtNextCommit(Outage),
    Down {
        outage: Outage,
        since: Instant,
    },
    /// Its holder has closed it.
    Closed,
}

/// Who may read: see [`State::reader`].
pub(super) struct Reader<'a>(&'a State);

impl State {
    fn new(tree: Tree, disk: Option<Disk>) -> State {
        State { tree, links: BTreeMap::new(), watchers: HashMap::new(), last_watch: 0, disk }
    }

    // Sessions.

    pub(super) fn begin(
        &mut self,
        timeout: Duration,
        runtime: Option<Handle>,
    ) -> Result<SessionId, RegistryError> {
        self.check_disk()?;
        let id = self.tree.open_session();
        let feeds = BTreeMap::new();
        let condition = Condition::Up;
        self.links.insert(id, Link { condition, feeds, timeout, runtime, silences: 0, abandoned: false });
        Ok(id)
    }

    pub(super) fn sessions(&self) -> Vec<SessionId> {
        self.links.keys().copied().filter(|id| self.tree.is_live(*id)).collect()
    }

    /// Ends a session, whatever its connection.
    pub(super) fn end(&mut self, session: SessionId, after: &mut After) -> Option<Answered> {
        if !self.tree.is_live(session) {
            return None;
        }
        let changes = self.tree.end_session(session);
        Some(self.submit(changes, Vec::new(), Some(session), Ok(()), None, after))
    }

    /// Ends a session that has not been heard of since it fell silent for that time.
    pub(super) fn end_if_silent(&mut self, session: SessionId, silence: u64, after: &mut After) {
        let Some(link) = self.links.get(&session) else { return };
        let down = link.abandoned || matches!(link.condition, Condition::Down { .. } | Condition::Closed);
        if down && link.silences == silence {
            self.end(session, after);
        }
    }

    /// Its holder says goodbye. If the registry cannot hear it, the session ends when its time is over.
    pub(super) fn close(&mut self, session: SessionId, after: &mut After) -> Option<Answered> {
        let link = self.links.get_mut(&session)?;
        match std::mem::replace(&mut link.condition, Condition::Closed) {
            Condition::Up | Condition::CutAtNextCommit(_) => self.end(session, after),
            Condition::Down { .. } => {
                after.wakers.extend(link.feeds.values().filter_map(|feed| feed.end()));
                None
            }
            Condition::Closed => None,
        }
    }

    /// Nobody holds the session any more.
    pub(super) fn abandon(&mut self, session: SessionId, after: &mut After) -> Option<Silence> {
        let live = self.tree.is_live(session);
        let link = self.links.get_mut(&session)?;
        link.abandoned = true;
        if !live {
            self.unlink(session, after);
            return None;
        }
        match link.condition {
            // Its clock is running already.
            Condition::Down { .. } | Condition::Closed if link.runtime.is_some() => None,
            Condition::Up | Condition::CutAtNextCommit(_) | Condition::Down { .. } | Condition::Closed => {
                Some(link.fall_silent())
            }
        }
    }

    /// Tells everybody who watches in this session that it is over, if they can hear it.
    fn tell_ended(&mut self, session: SessionId, after: &mut After) {
        let Some(link) = self.links.get(&session) else { return };
        match link.condition {
            Condition::Down { .. } if !link.abandoned => {}
            Condition::Up | Condition::CutAtNextCommit(_) | Condition::Down { .. } | Condition::Closed => {
                after.wakers.extend(link.feeds.values().filter_map(|feed| feed.end()));
            }
        }
        if link.abandoned {
            self.unlink(session, after);
        }
    }

    fn unlink(&mut self, session: SessionId, after: &mut After) {
        let feeds = self.links.remove(&session).map(|link| link.feeds).unwrap_or_default();
        after.wakers.extend(feeds.values().filter_map(|feed| feed.end()));
    }

    // The connection.

    pub(super) fn cut(&mut self, session: SessionId, outage: Outage, after: &mut After) -> Option<Silence> {
        let link = self.links.get_mut(&session)?;
        match link.condition {
            Condition::Up | Condition::CutAtNextCommit(_) => {}
            Condition::Down { since, .. } => {
                link.condition = Condition::Down { outage, since };
                return None;
            }
            Condition::Closed => return None,
        }
        link.condition = Condition::Down { outage, since: Instant::now() };
        after.wakers.extend(link.feeds.values().filter_map(|feed| feed.cut()));
        let silence = link.fall_silent();
        // Without a clock it stays silent until it is resumed.
        silence.runtime.is_some().then_some(silence)
    }

    pub(super) fn cut_at_next_commit(&mut self, session: SessionId, outage: Outage) {
        let Some(link) = self.links.get_mut(&session) else { return };
        match link.condition {
            Condition::Up | Condition::CutAtNextCommit(_) => {
                link.condition = Condition::CutAtNextCommit(outage);
            }
            Condition::Down { .. } | Condition::Closed => {}
        }
    }

    pub(super) fn resume(&mut self, session: SessionId, after: &mut After) {
        let live = self.tree.is_live(session);
        let Some(link) = self.links.get_mut(&session) else { return };
        match link.condition {
            Condition::Down { .. } | Condition::CutAtNextCommit(_) => {}
            Condition::Up | Condition::Closed => return,
        }
        link.condition = Condition::Up;
        if !link.abandoned {
            link.silences += 1; // The clock that runs counts for nothing any more.
        }
        let tell = |feed: &Arc<Feed>| if live { feed.resume() } else { feed.end() };
        after.wakers.extend(link.feeds.values().filter_map(tell));
    }

    pub(super) fn trusted_for(&self, session: SessionId) -> Duration {
        let Some(link) = self.links.get(&session) else { return Duration::ZERO };
        // The margin is for whoever has to stop what is running.
        let trust = link.timeout - link.timeout / 5;
        match link.condition {
            Condition::Up | Condition::CutAtNextCommit(_) if self.tree.is_live(session) => trust,
            Condition::Down { since, .. } => trust.saturating_sub(since.elapsed()),
            Condition::Up | Condition::CutAtNextCommit(_) | Condition::Closed => Duration::ZERO,
        }
    }

    // Watching and reading.

    pub(super) fn watch(&mut self, session: SessionId, root: Arc<str>) -> (u64, Arc<Feed>) {
        let feed = Arc::new(Feed::new());
        self.last_watch += 1;
        let live = self.tree.is_live(session);
        match self.links.get_mut(&session) {
            Some(link) => {
                match link.condition {
                    Condition::Up | Condition::CutAtNextCommit(_) if live => None,
                    Condition::Down { .. } => feed.cut(),
                    Condition::Up | Condition::CutAtNextCommit(_) | Condition::Closed => feed.end(),
                };
                link.feeds.insert(self.last_watch, feed.clone());
                self.watchers.entry(root).or_default().push(feed.clone());
            }
            None => drop(feed.end()),
        }
        (self.last_watch, feed)
    }

    pub(super) fn unwatch(&mut self, session: SessionId, number: u64, root: &str, feed: &Arc<Feed>) {
        if let Some(link) = self.links.get_mut(&session) {
            link.feeds.remove(&number);
        }
        if let Some(feeds) = self.watchers.get_mut(root) {
            feeds.retain(|it| !Arc::ptr_eq(it, feed));
            if feeds.is_empty() {
                self.watchers.remove(root);
            }
        }
    }

    /// The right of a session to read.
    pub(super) fn reader(&self, session: SessionId) -> Result<Reader<'_>, RegistryError> {
        self.check_disk()?;
        let link = self.links.get(&session).ok_or(RegistryError::SessionEnded)?;
        match link.condition {
            Condition::Down { .. } => Err(RegistryError::Unreachable("the connection is down".into())),
            Condition::Up | Condition::CutAtNextCommit(_) if self.tree.is_live(session) => Ok(Reader(self)),
            Condition::Up | Condition::CutAtNextCommit(_) | Condition::Closed => {
                Err(RegistryError::SessionEnded)
            }
        }
    }

    /// What readers see of a subtree.
    pub(super) fn shown(&self, root: &str) -> Vec<Entry> {
        match &self.disk {
            Some(disk) => disk.shown.snapshot(root),
            None => self.tree.snapshot(root),
        }
    }

    fn check_disk(&self) -> Result<(), RegistryError> {
        match self.disk.as_ref().and_then(|disk| Some((disk, disk.failed.clone()?))) {
            Some((disk, cause)) => Err(RegistryError::Failed { path: disk.home.clone(), cause }),
            None => Ok(()),
        }
    }

    // Transactions.

    /// Does a transaction as far as the session's connection allows. If the connection is cut just now,
    /// that comes back too.
    pub(super) fn commit(
        &mut self,
        session: SessionId,
        root: &str,
        ops: &[Op],
        room: Option<OwnedSemaphorePermit>,
        after: &mut After,
    ) -> (Answered, Option<Silence>) {
        let condition = self.links.get(&session).map_or(Condition::Closed, |link| link.condition);
        let (outage, cut) = match condition {
            Condition::Up => (None, None),
            Condition::CutAtNextCommit(outage) => (Some(outage), self.cut(session, outage, after)),
            Condition::Down { outage, .. } => (Some(outage), None),
            Condition::Closed => return (Answered::Now(Err(CommitError::SessionEnded)), None),
        };
        let answered = match outage {
            Some(Outage::RequestsLost) => Answered::Now(Err(unanswered())),
            Some(Outage::RepliesLost) => {
                self.apply(session, root, ops, room, after);
                Answered::Now(Err(unanswered()))
            }
            None => self.apply(session, root, ops, room, after),
        };
        (answered, cut)
    }

    /// An answer arrives, unless the connection has been cut since the request.
    pub(super) fn receive(&self, session: SessionId, answer: Answer) -> Answer {
        match self.links.get(&session).map(|link| link.condition) {
            Some(Condition::Down { .. }) => Err(unanswered()),
            Some(Condition::Up | Condition::CutAtNextCommit(_) | Condition::Closed) | None => answer,
        }
    }

    fn apply(
        &mut self,
        session: SessionId,
        root: &str,
        ops: &[Op],
        room: Option<OwnedSemaphorePermit>,
        after: &mut After,
    ) -> Answered {
        let stored = self.stored_and_deleted(root, ops);
        let (changes, answer) = match self.tree.commit(session, root, ops, Timestamp::now()) {
            Ok(changes) => (changes, Ok(())),
            Err(Refused::SessionEnded) => (Vec::new(), Err(CommitError::SessionEnded)),
            Err(Refused::Conflict { path }) => {
                let path = path.strip_prefix(root).map(str::to_owned).unwrap_or(path);
                (Vec::new(), Err(CommitError::Conflict { path }))
            }
        };
        let writes = self.writes(&changes, &stored);
        self.submit(changes, writes, None, answer, room, after)
    }

    /// Those nodes that a transaction deletes, if done, and that are on disk before it.
    fn stored_and_deleted(&self, root: &str, ops: &[Op]) -> HashSet<String> {
        let deleted = |op: &Op| match op {
            Op::Delete { path } => Some(format!("{root}{path}")),
            Op::Check { .. } | Op::Create { .. } | Op::Enqueue { .. } | Op::Set { .. } => None,
        };
        let ops = if self.disk.is_some() { ops } else { &[] };
        ops.iter().filter_map(deleted).filter(|path| self.is_persistent(path)).collect()
    }

    fn is_persistent(&self, path: &str) -> bool {
        self.tree.get(path).is_some() && !self.tree.is_ephemeral(path)
    }

    /// What a transaction that was just done means for the disk, where only persistent nodes are.
    fn writes(&mut self, changes: &[Change], stored: &HashSet<String>) -> Vec<Write> {
        if self.disk.is_none() {
            return Vec::new();
        }
        let write = |change: &Change| match change {
            Change::Put(entry) => self.is_persistent(&entry.path).then(|| Write::Put(entry.clone())),
            Change::Gone { path } => stored.contains(path).then(|| Write::Remove(path.clone())),
        };
        let mut writes: Vec<Write> = changes.iter().filter_map(write).collect();
        let last = self.tree.last_zxid();
        if let Some(disk) = &mut self.disk {
            // Whoever writes anyway reserves early, so that whoever does not need not.
            let enough = if writes.is_empty() { last } else { last + RESERVED / 2 };
            if enough > disk.ceiling {
                disk.ceiling = last + RESERVED;
                writes.push(Write::Ceiling(disk.ceiling));
            }
        }
        writes
    }

    /// Publishes a step, now or when it is on disk.
    fn submit(
        &mut self,
        changes: Vec<Change>,
        writes: Vec<Write>,
        ended: Option<SessionId>,
        answer: Answer,
        room: Option<OwnedSemaphorePermit>,
        after: &mut After,
    ) -> Answered {
        let mut step = Step { changes, writes, ended, answer, reply: None, _room: room };
        let waits = |disk: &&mut Disk| disk.writing || !disk.pipeline.is_empty() || !step.writes.is_empty();
        if let Some(disk) = self.disk.as_mut().filter(waits) {
            let (reply, answer) = oneshot::channel();
            step.reply = Some(reply);
            disk.pipeline.push_back(step);
            after.work = true;
            return Answered::Later(answer);
        }
        let answer = step.answer.clone();
        self.publish(step, after);
        Answered::Now(answer)
    }

    /// Shows a step to everybody, then answers its caller.
    fn publish(&mut self, step: Step, after: &mut After) {
        if let Some(disk) = &mut self.disk {
            for change in &step.changes {
                disk.shown.apply(change);
            }
        }
        // A session that ends hears just that. That its nodes are gone would sound like an operator's order.
        if let Some(session) = step.ended {
            self.tell_ended(session, after);
        }
        self.hand_out(&step.changes, after);
        after.replies.extend(step.reply.map(|reply| (reply, step.answer)));
    }

    fn hand_out(&self, changes: &[Change], after: &mut After) {
        let mut told: BTreeMap<&str, Vec<Change>> = BTreeMap::new();
        for change in changes {
            for root in roots_of(change.path()).filter(|root| self.watchers.contains_key(*root)) {
                told.entry(root).or_default().extend(change.relative_to(root));
            }
        }
        for (root, changes) in told {
            let changes = Arc::new(changes);
            let feeds = self.watchers.get(root).into_iter().flatten();
            after.wakers.extend(feeds.filter_map(|feed| feed.push(&changes)));
        }
    }

    /// The disk is in doubt: all sessions end, and nothing is done any more. What waits may or may not be
    /// on disk, and whoever opens the file next will see.
    fn fail(&mut self, batch: Batch, cause: &str, after: &mut After) {
        let Some(disk) = &mut self.disk else { return };
        disk.failed = Some(cause.to_owned());
        disk.writing = false;
        let waiting = std::mem::take(&mut disk.pipeline);
        let unknown = || CommitError::Unknown(format!("the registry could not write: {cause}"));
        for step in batch.steps.into_iter().chain(waiting) {
            after.replies.extend(step.reply.map(|reply| (reply, Err(unknown()))));
        }
        for link in std::mem::take(&mut self.links).into_values() {
            after.wakers.extend(link.feeds.values().filter_map(|feed| feed.end()));
        }
    }
}

impl Link {
    fn fall_silent(&mut self) -> Silence {
        self.silences += 1;
        Silence { timeout: self.timeout, runtime: self.runtime.clone(), number: self.silences }
    }
}

impl Reader<'_> {
    pub(super) fn snapshot(&self, root: &str) -> Vec<Entry> {
        self.0.shown(root)
    }

    pub(super) fn children(&self, root: &str) -> Vec<String> {
        match &self.0.disk {
            Some(disk) => disk.shown.children(root),
            None => self.0.tree.children(root),
        }
    }
}

/// Nodes by absolute path.
struct Shown {
    nodes: BTreeMap<String, (String, Stat)>,
}

impl Shown {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Put(it) => drop(self.nodes.insert(it.path.clone(), (it.data.clone(), it.stat))),
            Change::Gone { path } => drop(self.nodes.remove(path)),
        }
    }

    fn snapshot(&self, root: &str) -> Vec<Entry> {
        let top = self.nodes.get_key_value(root).into_iter();
        let entry = |(path, (data, stat)): (&String, &(String, Stat))| Entry {
            path: path[root.len()..].to_owned(),
            data: data.clone(),
            stat: *stat,
        };
        top.chain(self.below(root)).map(entry).collect()
    }

    fn children(&self, root: &str) -> Vec<String> {
        let names = self.below(root).map(|(path, _)| &path[root.len() + 1..]);
        // Every node has a parent, so those without a `/` are all.
        names.filter(|name| !name.contains('/')).map(str::to_owned).collect()
    }

    fn below(&self, root: &str) -> impl Iterator<Item = (&String, &(String, Stat))> {
        let first = format!("{root}/");
        let inside = first.clone();
        let range = (Bound::Included(first.as_str()), Bound::Unbounded);
        self.nodes.range::<str, _>(range).take_while(move |(path, _)| path.starts_with(&inside))
    }
}

/// Every root that the node at `path` is below of: the top, its ancestors and itself.
fn roots_of(path: &str) -> impl Iterator<Item = &str> {
    let ancestors = path.match_indices('/').map(|(at, _)| &path[..at]);
    ancestors.chain(std::iter::once(path))
}

fn unanswered() -> CommitError {
    CommitError::Unknown("the connection is down".into())
}
