//! One member of an embedded registry, and everything that can go wrong between the two.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::Shared;
use super::state::Answered;
use crate::registry::feed::{Feed, Next};
use crate::registry::{
    CommitError, Entry, Op, RegistryError, Session, SessionId, Watch, WatchEvent, is_path,
};

/// A session of an [`Embedded`](super::Embedded) registry. Besides what every session can do, it can be cut
/// off and brought back, so that whatever builds on sessions can be tested with bad links.
///
/// If the last handle is dropped without [`close`](Session::close), the session ends when its timeout has
/// passed on the runtime that it was begun on, or at once if that runtime is gone or there was none.
///
/// ```
/// use elasticjob::registry::{CommitError, Embedded, Session, WatchEvent, embedded::Outage};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
/// let session = Embedded::new().session()?;
/// let mut watch = session.watch("/my-job");
/// assert!(matches!(watch.next().await, WatchEvent::Snapshot(_)));
///
/// session.suspend(Outage::RequestsLost);
/// assert_eq!(watch.next().await, WatchEvent::Suspended);
/// assert!(matches!(session.commit("/my-job", vec![]).await, Err(CommitError::Unknown(_))));
///
/// session.resume();
/// assert!(matches!(watch.next().await, WatchEvent::Snapshot(_)));
/// # Ok(())
/// # }
/// ```
pub struct EmbeddedSession {
    shared: Arc<Shared>,
    id: SessionId,
}

/// How a connection fails. Either way no answer arrives, so a commit's is [`CommitError::Unknown`].
///
/// ```
/// use elasticjob::registry::{Embedded, Kind, Op, Session, embedded::Outage};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
/// let session = Embedded::new().session()?;
/// let create = |path: &str| vec![Op::Create { path: path.into(), data: String::new(), kind: Kind::Persistent }];
/// for (path, outage) in [("/a", Outage::RequestsLost), ("/b", Outage::RepliesLost)] {
///     session.suspend(outage);
///     session.commit("/my-job", create(path)).await.unwrap_err();
///     session.resume();
/// }
/// assert_eq!(session.children("/my-job").await?, ["b"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// Requests do not arrive: nothing is done.
    RequestsLost,
    /// Requests arrive and are done; only the answers are lost.
    RepliesLost,
}

impl EmbeddedSession {
    pub(super) fn begin(shared: &Arc<Shared>, timeout: Duration) -> Result<EmbeddedSession, RegistryError> {
        let runtime = Handle::try_current().ok();
        let id = shared.core.with(|state, _| state.begin(timeout, runtime))?;
        Ok(EmbeddedSession { shared: shared.clone(), id })
    }

    /// What the registry calls this session.
    ///
    /// ```
    /// use elasticjob::registry::Embedded;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let registry = Embedded::new();
    /// assert!(registry.session()?.id() < registry.session()?.id());
    /// # Ok(())
    /// # }
    /// ```
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// The registry gives the session up: its ephemeral nodes go at once. If the connection stands the
    /// session's watches learn it now, otherwise when it is [resumed](EmbeddedSession::resume).
    ///
    /// ```
    /// use elasticjob::registry::{CommitError, Embedded, Session};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let session = Embedded::new().session()?;
    /// session.expire();
    /// assert_eq!(session.commit("/my-job", vec![]).await, Err(CommitError::SessionEnded));
    /// # Ok(())
    /// # }
    /// ```
    pub fn expire(&self) {
        self.shared.core.with(|state, after| drop(state.end(self.id, after)));
    }

    /// Cuts the connection. Watches say [`WatchEvent::Suspended`], commits answer
    /// [`CommitError::Unknown`], and when the timeout has passed the registry gives the session up.
    ///
    /// ```
    /// use std::time::Duration;
    /// use elasticjob::registry::{Embedded, Session, embedded::Outage};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// # tokio::time::pause();
    /// let session = Embedded::new().session()?;
    /// session.suspend(Outage::RequestsLost);
    /// tokio::time::advance(Duration::from_secs(3)).await;
    /// assert_eq!(session.trusted_for(), Duration::from_secs(5));
    /// # Ok(())
    /// # }
    /// ```
    pub fn suspend(&self, outage: Outage) {
        suspend(&self.shared, self.id, outage);
    }

    /// Cuts the connection while the next commit is under way.
    ///
    /// ```
    /// use elasticjob::registry::{Embedded, Kind, Op, Session, embedded::Outage};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let session = Embedded::new().session()?;
    /// session.suspend_at_next_commit(Outage::RepliesLost);
    /// assert!(session.read("").await?.is_empty());
    /// let create = Op::Create { path: "/a".into(), data: String::new(), kind: Kind::Persistent };
    /// session.commit("/my-job", vec![create]).await.unwrap_err();
    /// session.resume();
    /// assert_eq!(session.children("/my-job").await?, ["a"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn suspend_at_next_commit(&self, outage: Outage) {
        self.shared.core.with(|state, _| state.cut_at_next_commit(self.id, outage));
    }

    /// Restores the connection. Watches say [`WatchEvent::Snapshot`], or [`WatchEvent::Ended`] if the
    /// session is over by now.
    ///
    /// ```
    /// use elasticjob::registry::{Embedded, Session, WatchEvent, embedded::Outage};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), elasticjob::registry::RegistryError> {
    /// let session = Embedded::new().session()?;
    /// let mut watch = session.watch("/my-job");
    /// session.suspend(Outage::RequestsLost);
    /// assert_eq!(watch.next().await, WatchEvent::Suspended);
    /// session.expire();
    /// session.resume();
    /// assert_eq!(watch.next().await, WatchEvent::Ended);
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume(&self) {
        self.shared.core.with(|state, after| state.resume(self.id, after));
    }
}

#[async_trait]
impl Session for EmbeddedSession {
    fn watch(&self, root: &str) -> Watch {
        assert!(is_path(root), "`{root}` is not a root: it is empty, or begins with `/` and does not end so");
        let root: Arc<str> = root.into();
        let (number, feed) = self.shared.core.with(|state, _| state.watch(self.id, root.clone()));
        let mut watcher = Watcher { shared: self.shared.clone(), session: self.id, number, root, feed };
        Watch::from_fn(move |cx| watcher.poll(cx))
    }

    async fn commit(&self, root: &str, ops: Vec<Op>) -> Result<(), CommitError> {
        let core = &self.shared.core;
        for path in std::iter::once(root).chain(ops.iter().map(Op::path)) {
            if !is_path(path) {
                return Err(CommitError::Invalid(RegistryError::BadPath { path: path.into() }.to_string()));
            }
        }
        // In memory nothing below waits, and a caller that commits in a loop would starve its neighbours.
        tokio::task::consume_budget().await;
        let room = core.room().await;
        let (answered, cut) = core.with(|state, after| state.commit(self.id, root, &ops, room, after));
        if let Some(cut) = cut {
            cut.count_down(&self.shared, self.id);
        }
        match answered {
            Answered::Now(answer) => answer,
            Answered::Later(reply) => {
                let lost = || CommitError::Unknown("the registry was closed".into());
                let answer = reply.await.unwrap_or_else(|_| Err(lost()));
                core.with(|state, _| state.receive(self.id, answer))
            }
        }
    }

    async fn read(&self, root: &str) -> Result<Vec<Entry>, RegistryError> {
        check_root(root)?;
        self.shared.core.with(|state, _| state.reader(self.id).map(|it| it.snapshot(root)))
    }

    async fn children(&self, root: &str) -> Result<Vec<String>, RegistryError> {
        check_root(root)?;
        self.shared.core.with(|state, _| state.reader(self.id).map(|it| it.children(root)))
    }

    fn trusted_for(&self) -> Duration {
        self.shared.core.with(|state, _| state.trusted_for(self.id))
    }

    async fn close(&self) {
        let over = self.shared.core.with(|state, after| state.close(self.id, after));
        if let Some(Answered::Later(over)) = over {
            // An error means that the registry is gone, and the session with it.
            let _ = over.await;
        }
    }
}

impl Drop for EmbeddedSession {
    fn drop(&mut self) {
        let crash = self.shared.core.with(|state, after| state.abandon(self.id, after));
        if let Some(crash) = crash {
            crash.count_down(&self.shared, self.id);
        }
    }
}

fn check_root(root: &str) -> Result<(), RegistryError> {
    if is_path(root) { Ok(()) } else { Err(RegistryError::BadPath { path: root.to_owned() }) }
}

pub(super) fn suspend(shared: &Arc<Shared>, session: SessionId, outage: Outage) {
    let cut = shared.core.with(|state, after| state.cut(session, outage, after));
    if let Some(cut) = cut {
        cut.count_down(shared, session);
    }
}

/// A session has stopped answering. What the registry needs in order to give it up in time.
pub(super) struct Silence {
    pub(super) timeout: Duration,
    pub(super) runtime: Option<Handle>,
    /// Which silence of the session this is; another one has a clock of its own.
    pub(super) number: u64,
}

impl Silence {
    /// Must not be called with the lock held: the session may end right here.
    fn count_down(self, shared: &Arc<Shared>, session: SessionId) {
        let end = EndOnDrop { shared: Arc::downgrade(shared), session, silence: self.number };
        // Without a runtime there is no clock, and the guard ends the session here.
        let Some(runtime) = self.runtime else { return };
        let _entered = runtime.enter();
        let deadline = Instant::now() + self.timeout;
        runtime.spawn(async move {
            tokio::time::sleep_until(deadline).await;
            drop(end);
        });
    }
}

/// Ends a session when the countdown is over, and also when the runtime goes away before and takes the
/// countdown along. It does not keep the registry alive.
struct EndOnDrop {
    shared: Weak<Shared>,
    session: SessionId,
    silence: u64,
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.core.with(|state, after| state.end_if_silent(self.session, self.silence, after));
        }
    }
}

/// The registry's side of a [`Watch`].
struct Watcher {
    shared: Arc<Shared>,
    session: SessionId,
    number: u64,
    root: Arc<str>,
    feed: Arc<Feed>,
}

impl Watcher {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<WatchEvent> {
        loop {
            match self.feed.poll(cx) {
                Next::Event(event) => return Poll::Ready(event),
                Next::Nothing => return Poll::Pending,
                Next::Snapshot => {
                    // Under the lock no change comes between the snapshot and the changes that follow it.
                    let snapshot =
                        self.shared.core.with(|state, _| self.feed.follow().then(|| state.shown(&self.root)));
                    if let Some(entries) = snapshot {
                        return Poll::Ready(WatchEvent::Snapshot(entries));
                    }
                }
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.core.with(|state, _| state.unwatch(self.session, self.number, &self.root, &self.feed));
    }
}
