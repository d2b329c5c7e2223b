//! A registry inside the process: the core's [`Tree`](elasticjob_core::tree::Tree) behind a lock, in memory
//! or written through to a file before anything is answered.
//!
//! It is a whole registry, sessions and bad links included, so that tests of everything above need no
//! stand-in: see [`EmbeddedSession::suspend`].

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, LazyLock, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;

use super::{Registry, RegistryError, Session, SessionId};

mod session;
mod state;
mod store;

pub use session::{EmbeddedSession, Outage};

use state::Core;

/// How long after a crash a member's ephemeral nodes stay, if nothing else is said.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The registry inside the process. A clone is another handle to the same registry.
///
/// ```
/// use elasticjob::registry::{Embedded, Kind, Op, Registry};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Embedded::new();
/// let (a, b) = (registry.connect().await?, registry.connect().await?);
/// let create = Op::Create { path: "/instances/a".into(), data: String::new(), kind: Kind::Ephemeral };
/// a.commit("/my-job", vec![create]).await?;
/// assert_eq!(b.children("/my-job/instances").await?, ["a"]);
///
/// registry.expire(registry.sessions()[0]); // As if `a` had not been heard of for too long.
/// assert!(b.children("/my-job/instances").await?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Shared>,
    session_timeout: Duration,
}

/// What all handles and sessions of one registry hold together. When the last of them goes, so does it.
struct Shared {
    core: Arc<Core>,
    writer: OnceLock<JoinHandle<()>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.core.close();
        // So that another process can have the file as soon as nobody here holds it. It may be the writer
        // itself that drops the last handle, with a task that it was the last to wake.
        if let Some(writer) = self.writer.take().filter(|it| it.thread().id() != std::thread::current().id())
        {
            // If it panicked, it has closed the file all the same.
            let _ = writer.join();
        }
    }
}

impl Embedded {
    /// A registry in memory that nobody else knows.
    ///
    /// ```
    /// use elasticjob::registry::Embedded;
    ///
    /// assert!(Embedded::new().sessions().is_empty());
    /// ```
    #[expect(clippy::new_without_default, reason = "two of them are not equal, as defaults ought to be")]
    pub fn new() -> Embedded {
        Embedded::of(Core::in_memory())
    }

    /// The registry in memory that everybody in this process who gives this name shares. It is empty when
    /// nobody has held it.
    ///
    /// ```
    /// use elasticjob::registry::Embedded;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let _session = Embedded::named("orders").session()?;
    /// assert_eq!(Embedded::named("orders").sessions().len(), 1);
    /// assert_eq!(Embedded::named("bills").sessions().len(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn named(name: &str) -> Embedded {
        static NAMED: LazyLock<Mutex<HashMap<String, Weak<Shared>>>> = LazyLock::new(Mutex::default);
        let mut named = NAMED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = named.get(name).and_then(Weak::upgrade) {
            return Embedded { shared, session_timeout: SESSION_TIMEOUT };
        }
        named.retain(|_, it| it.strong_count() > 0);
        let registry = Embedded::of(Core::in_memory());
        named.insert(name.to_owned(), Arc::downgrade(&registry.shared));
        registry
    }

    /// The registry in a directory, which is made if it does not exist. Persistent nodes survive the
    /// process, however it ends; what was answered is on disk.
    ///
    /// Within one process everybody who names the directory shares the registry. A second process is refused
    /// until the last handle, session and watch of the first is gone; dropping that one waits for the file
    /// to be closed.
    ///
    /// A thread of its own does the writing, and several transactions at a time if they come at once. A test
    /// that pauses tokio's clock should use a registry in memory: the clock runs on while this one writes.
    ///
    /// ```
    /// use elasticjob::registry::{Embedded, Kind, Op, Session};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path();
    /// let session = Embedded::durable(path)?.session()?;
    /// let create = Op::Create { path: "/config".into(), data: "x".into(), kind: Kind::Persistent };
    /// session.commit("/my-job", vec![create]).await?;
    /// drop(session);
    ///
    /// let session = Embedded::durable(path)?.session()?;
    /// assert_eq!(session.children("/my-job").await?, ["config"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn durable(path: impl AsRef<Path>) -> Result<Embedded, RegistryError> {
        let path = path.as_ref();
        let io = |source| RegistryError::Io { path: path.to_owned(), source };
        std::fs::create_dir_all(path).map_err(io)?;
        let home = path.canonicalize().map_err(io)?;
        let mut homes = HOMES.open.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match homes.get(&home).map(Weak::upgrade) {
                None => break,
                Some(Some(shared)) => return Ok(Embedded { shared, session_timeout: SESSION_TIMEOUT }),
                // Its last handle is being dropped, but its writer has not closed the file yet.
                Some(None) => homes = HOMES.closed.wait(homes).unwrap_or_else(PoisonError::into_inner),
            }
        }
        let (store, entries, ceiling) = store::Store::open(&home)?;
        let core = Core::durable(home.clone(), entries, ceiling);
        let registry = Embedded::of(core);
        homes.insert(home.clone(), Arc::downgrade(&registry.shared));
        drop(homes); // If there is no thread to be had, the writer is dropped here and wants the lock.
        let closed = Some(Closed { home: home.clone() });
        registry.write_to(store, closed).map_err(|source| RegistryError::Io { path: home, source })?;
        Ok(registry)
    }

    fn write_to(&self, store: store::Store, closed: Option<Closed>) -> std::io::Result<()> {
        let writer = Writer { core: self.shared.core.clone(), store, _closed: closed };
        let thread = std::thread::Builder::new().name("registry-writer".into());
        let _ = self.shared.writer.set(thread.spawn(move || writer.run())?);
        Ok(())
    }

    fn of(core: Core) -> Embedded {
        let shared = Shared { core: Arc::new(core), writer: OnceLock::new() };
        Embedded { shared: Arc::new(shared), session_timeout: SESSION_TIMEOUT }
    }

    /// How long after a crash the ephemeral nodes stay of members that connect through this handle.
    ///
    /// ```
    /// use std::time::Duration;
    /// use elasticjob::registry::{Embedded, Session};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let session = Embedded::new().with_session_timeout(Duration::from_secs(5)).session()?;
    /// assert_eq!(session.trusted_for(), Duration::from_secs(4));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_session_timeout(mut self, timeout: Duration) -> Embedded {
        self.session_timeout = timeout;
        self
    }

    /// Begins a session, like [`Registry::connect`], as the type that can be made to fail.
    ///
    /// ```
    /// use elasticjob::registry::{Embedded, Session, WatchEvent};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let session = Embedded::new().session()?;
    /// let mut watch = session.watch("/my-job");
    /// session.expire();
    /// assert_eq!(watch.next().await, WatchEvent::Ended);
    /// # Ok(())
    /// # }
    /// ```
    pub fn session(&self) -> Result<Arc<EmbeddedSession>, RegistryError> {
        EmbeddedSession::begin(&self.shared, self.session_timeout).map(Arc::new)
    }

    /// The sessions that have not ended, oldest first. Also those that were dropped without being closed,
    /// until their timeout has passed.
    ///
    /// ```
    /// use elasticjob::registry::Embedded;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let registry = Embedded::new();
    /// let session = registry.session()?;
    /// assert_eq!(registry.sessions(), [session.id()]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn sessions(&self) -> Vec<SessionId> {
        self.shared.core.with(|state, _| state.sessions())
    }

    /// [`EmbeddedSession::expire`], for a session that somebody else began.
    ///
    /// ```
    /// use elasticjob::registry::Embedded;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let registry = Embedded::new();
    /// let session = registry.session()?;
    /// registry.expire(session.id());
    /// assert!(registry.sessions().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn expire(&self, session: SessionId) {
        self.shared.core.with(|state, after| drop(state.end(session, after)));
    }

    /// [`EmbeddedSession::suspend`], for a session that somebody else began.
    ///
    /// ```
    /// use elasticjob::registry::{Embedded, Session, embedded::Outage};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let registry = Embedded::new();
    /// let session = registry.session()?;
    /// registry.suspend(session.id(), Outage::RequestsLost);
    /// assert!(session.read("/my-job").await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn suspend(&self, session: SessionId, outage: Outage) {
        session::suspend(&self.shared, session, outage);
    }

    /// [`EmbeddedSession::suspend_at_next_commit`], for a session that somebody else began.
    ///
    /// ```
    /// use elasticjob::registry::{CommitError, Embedded, Session, embedded::Outage};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let registry = Embedded::new();
    /// let session = registry.session()?;
    /// registry.suspend_at_next_commit(session.id(), Outage::RepliesLost);
    /// assert!(matches!(session.commit("/my-job", vec![]).await, Err(CommitError::Unknown(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn suspend_at_next_commit(&self, session: SessionId, outage: Outage) {
        self.shared.core.with(|state, _| state.cut_at_next_commit(session, outage));
    }

    /// [`EmbeddedSession::resume`], for a session that somebody else began.
    ///
    /// ```
    /// use elasticjob::registry::{Embedded, Session, embedded::Outage};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let registry = Embedded::new();
    /// let session = registry.session()?;
    /// registry.suspend(session.id(), Outage::RequestsLost);
    /// registry.resume(session.id());
    /// assert!(session.read("/my-job").await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume(&self, session: SessionId) {
        self.shared.core.with(|state, after| state.resume(session, after));
    }
}

#[async_trait]
impl Registry for Embedded {
    async fn connect(&self) -> Result<Arc<dyn Session>, RegistryError> {
        Ok(self.session()?)
    }
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("home", &self.shared.core.home())
            .field("session_timeout", &self.session_timeout)
            .finish_non_exhaustive()
    }
}

/// The directories that this process has open, so that it does not lock itself out.
struct Homes {
    open: Mutex<HashMap<PathBuf, Weak<Shared>>>,
    closed: Condvar,
}

static HOMES: LazyLock<Homes> = LazyLock::new(|| Homes { open: Mutex::default(), closed: Condvar::new() });

/// Writes until the registry is closed. Dropped in this order: the file is closed before anybody is told.
struct Writer {
    core: Arc<Core>,
    store: store::Store,
    _closed: Option<Closed>,
}

impl Writer {
    fn run(self) {
        while let Some(batch) = self.core.next_batch() {
            let written = catch_unwind(AssertUnwindSafe(|| self.store.write(batch.writes())));
            let written = written.unwrap_or_else(|_| Err("the store panicked".into()));
            self.core.settle(batch, written);
        }
    }
}

/// Says, when dropped, that a directory can be opened again.
struct Closed {
    home: PathBuf,
}

impl Drop for Closed {
    fn drop(&mut self) {
        HOMES.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.home);
        HOMES.closed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use redb::StorageBackend;
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::registry::{Change, CommitError, Kind, Op, WatchEvent};

    /// A disk that counts, can be held up and can break.
    #[derive(Clone, Debug)]
    struct Disk {
        content: Arc<InMemoryBackend>,
        syncs: Arc<AtomicUsize>,
        broken: Arc<AtomicBool>,
        held: Arc<(Mutex<bool>, Condvar)>,
    }

    impl Disk {
        /// Until the answer is dropped, also by a panic: whoever drops the registry waits for the disk.
        fn hold(&self) -> Held {
            *self.held.0.lock().unwrap() = true;
            Held(self.clone())
        }
    }

    struct Held(Disk);

    impl Drop for Held {
        fn drop(&mut self) {
            *self.0.held.0.lock().unwrap() = false;
            self.0.held.1.notify_all();
        }
    }

    impl StorageBackend for Disk {
        fn len(&self) -> std::io::Result<u64> {
            self.content.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
            self.content.read(offset, out)
        }
        fn set_len(&self, len: u64) -> std::io::Result<()> {
            self.content.set_len(len)
        }
        fn sync_data(&self) -> std::io::Result<()> {
            drop(self.held.1.wait_while(self.held.0.lock().unwrap(), |held| *held).unwrap());
            self.syncs.fetch_add(1, Ordering::SeqCst);
            match self.broken.load(Ordering::SeqCst) {
                true => Err(std::io::Error::other("no space left")),
                false => self.content.sync_data(),
            }
        }
        fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
            self.content.write(offset, data)
        }
    }

    fn registry_on_a_disk() -> (Embedded, Disk) {
        let disk = Disk {
            content: Arc::new(InMemoryBackend::new()),
            syncs: Arc::default(),
            broken: Arc::default(),
            held: Arc::default(),
        };
        let (store, entries, ceiling) = store::Store::on(disk.clone()).unwrap();
        let registry = Embedded::of(Core::durable("/here".into(), entries, ceiling));
        registry.write_to(store, None).unwrap();
        (registry, disk)
    }

    fn create(path: &str, kind: Kind) -> Vec<Op> {
        vec![Op::Create { path: path.into(), data: String::new(), kind }]
    }

    fn paths(event: Option<WatchEvent>) -> Vec<String> {
        match event {
            Some(WatchEvent::Changed(changes)) => changes.iter().map(|it| it.path().to_owned()).collect(),
            event => panic!("{event:?}"),
        }
    }

    /// Lets everything run that can.
    async fn settle() {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn what_stores_nothing_costs_no_write() {
        let (registry, disk) = registry_on_a_disk();
        let session = registry.session().unwrap();
        session.commit("/job", create("/e/0", Kind::Ephemeral)).await.unwrap();
        let before = disk.syncs.load(Ordering::SeqCst);
        for n in 1..1000 {
            session.commit("/job", create(&format!("/e/{n}"), Kind::Ephemeral)).await.unwrap();
            session.commit("/job", vec![Op::Delete { path: format!("/e/{n}") }]).await.unwrap();
            session.commit("/job", vec![Op::Check { path: "/e".into(), version: None }]).await.unwrap();
            session.commit("/job", create("/e", Kind::Persistent)).await.unwrap_err();
        }
        session.close().await;
        assert_eq!(disk.syncs.load(Ordering::SeqCst), before);
    }

    #[tokio::test]
    async fn nothing_is_shown_before_it_is_on_disk_and_all_of_it_in_order_then() {
        let (registry, disk) = registry_on_a_disk();
        let (a, b) = (registry.session().unwrap(), registry.session().unwrap());
        a.commit("/job", create("/p", Kind::Persistent)).await.unwrap();
        let mut watch = a.watch("/job");
        watch.next().await;

        let held = disk.hold();
        let spawn = |session: &Arc<EmbeddedSession>, ops| {
            let session = session.clone();
            tokio::spawn(async move { session.commit("/job", ops).await })
        };
        let first = spawn(&a, create("/first", Kind::Persistent));
        settle().await;
        // These write nothing, but they rest on what is not on disk yet.
        let ephemeral = spawn(&b, create("/ephemeral", Kind::Ephemeral));
        settle().await;
        let refused = spawn(&b, create("/first", Kind::Ephemeral));
        settle().await;
        let closed = tokio::spawn({
            let b = b.clone();
            async move { b.close().await }
        });
        settle().await;
        assert!(!first.is_finished() && !ephemeral.is_finished() && !refused.is_finished());
        assert!(!closed.is_finished());
        assert_eq!(watch.try_next(), None);
        assert_eq!(a.children("/job").await.unwrap(), ["p"]);
        let mut late = a.watch("/job");
        assert!(matches!(late.next().await, WatchEvent::Snapshot(entries) if entries.len() == 2));
        drop(held);

        first.await.unwrap().unwrap();
        ephemeral.await.unwrap().unwrap();
        assert_eq!(refused.await.unwrap(), Err(CommitError::Conflict { path: "/first".into() }));
        closed.await.unwrap();
        for watch in [&mut watch, &mut late] {
            assert_eq!(paths(watch.try_next()), ["/first"]);
            assert_eq!(paths(watch.try_next()), ["/ephemeral"]);
            let gone = Change::Gone { path: "/ephemeral".into() };
            assert_eq!(watch.try_next(), Some(WatchEvent::Changed(vec![gone])));
            assert_eq!(watch.try_next(), None);
        }
        assert_eq!(a.children("/job").await.unwrap(), ["first", "p"]);
    }

    #[tokio::test]
    async fn transactions_that_wait_together_are_written_together() {
        let (registry, disk) = registry_on_a_disk();
        let session = registry.session().unwrap();
        session.commit("/job", create("/0", Kind::Persistent)).await.unwrap();
        let before = disk.syncs.load(Ordering::SeqCst);
        let held = disk.hold();
        let mut commits = tokio::task::JoinSet::new();
        // More than the pipeline holds.
        for n in 1..=3000 {
            let session = session.clone();
            commits.spawn(
                async move { session.commit("/job", create(&format!("/{n}"), Kind::Persistent)).await },
            );
        }
        settle().await;
        drop(held);
        while let Some(commit) = commits.join_next().await {
            commit.unwrap().unwrap();
        }
        assert_eq!(session.children("/job").await.unwrap().len(), 3001);
        let syncs = disk.syncs.load(Ordering::SeqCst) - before;
        assert!(syncs < 1000, "{syncs} for 3000 transactions");
    }

    #[tokio::test]
    async fn a_registry_that_cannot_write_stops_and_says_so() {
        let (registry, disk) = registry_on_a_disk();
        let (a, b) = (registry.session().unwrap(), registry.session().unwrap());
        a.commit("/job", create("/p", Kind::Persistent)).await.unwrap();
        let mut watch = b.watch("/job");
        watch.next().await;
        disk.broken.store(true, Ordering::SeqCst);
        let answer = a.commit("/job", create("/q", Kind::Persistent)).await;
        assert!(
            matches!(&answer, Err(CommitError::Unknown(cause)) if cause.contains("no space left")),
            "{answer:?}"
        );
        assert_eq!(watch.try_next(), Some(WatchEvent::Ended), "nobody saw what may not be");
        disk.broken.store(false, Ordering::SeqCst);
        assert_eq!(a.commit("/job", vec![]).await, Err(CommitError::SessionEnded));
        assert_eq!(a.trusted_for(), Duration::ZERO);
        a.close().await;
        let expected = "the registry in /here has stopped because it could not write (I/O error: no space left): \
                        see to the disk, then restart";
        assert_eq!(registry.connect().await.err().unwrap().to_string(), expected);
        assert_eq!(b.read("/job").await.unwrap_err().to_string(), expected);
    }
}
