//! Where instances meet: a tree of nodes that all of them see, with sessions, transactions and ordered
//! watches.
//!
//! The traits say what the rest of the crate may expect; [`elasticjob_core::tree::Tree`] defines what the
//! operations mean, and the suite in `conformance` (feature `conformance`) holds every backend to it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;

pub use elasticjob_core::coord::Focus;
pub use elasticjob_core::tree::{Change, Entry, Kind, Op, SessionId, Stat};

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod embedded;
mod feed;
mod url;
#[cfg(feature = "zookeeper")]
pub mod zookeeper;

pub use embedded::Embedded;
#[cfg(feature = "zookeeper")]
pub use zookeeper::ZooKeeper;

/// A place where instances meet. Cheap to share; every [`connect`](Registry::connect) is a new member.
///
/// ```
/// use elasticjob::registry::{self, Kind, Op};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = registry::open("embedded://")?;
/// let session = registry.connect().await?;
/// let hello = Op::Create { path: "/greeting".into(), data: "hello".into(), kind: Kind::Persistent };
/// session.commit("/my-job", vec![hello]).await?;
/// assert_eq!(session.children("").await?, ["my-job"]);
/// session.close().await;
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Registry: Send + Sync + fmt::Debug {
    /// Begins a session: a new member, which owns nothing yet.
    async fn connect(&self) -> Result<Arc<dyn Session>, RegistryError>;
}

/// One member's standing in a registry.
///
/// Ephemeral nodes live as long as the session that made them. Dropping the last handle without
/// [`close`](Session::close) is what a crash looks like to the others: the nodes go when the session's
/// timeout has passed.
///
/// Roots are absolute: empty for the registry's top, or `/my-job`. Paths of operations, entries and changes
/// are relative to the root: empty for the root itself, or `/config`.
///
/// ```
/// use elasticjob::registry::{self, CommitError, Kind, Op};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = registry::open("embedded://")?;
/// let session = registry.connect().await?;
/// let create = || Op::Create { path: "/leader".into(), data: "me".into(), kind: Kind::Ephemeral };
/// session.commit("/my-job", vec![create()]).await?;
/// let again = session.commit("/my-job", vec![create()]).await;
/// assert_eq!(again, Err(CommitError::Conflict { path: "/leader".into() }));
/// assert_eq!(session.read("/my-job").await?.len(), 2); // The job's own node and the leader's.
/// session.close().await;
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait Session: Send + Sync {
    /// Follows the subtree at `root`: first the whole of it, then every change in commit order.
    ///
    /// # Panics
    /// If `root` is neither empty nor a path that begins with `/`.
    fn watch(&self, root: &str) -> Watch;

    /// Does all of `ops`, or nothing.
    ///
    /// Resolves, also when refused, only after this session's own watches have been handed everything that
    /// was committed before the answer. Dropping the future leaves it open whether the transaction is done.
    async fn commit(&self, root: &str, ops: Vec<Op>) -> Result<(), CommitError>;

    /// `root` and everything below it, in the order of the paths; nothing if there is no such node.
    async fn read(&self, root: &str) -> Result<Vec<Entry>, RegistryError>;

    /// Names of the direct children of `root`, least first. Those of the empty root are the jobs.
    async fn children(&self, root: &str) -> Result<Vec<String>, RegistryError>;

    /// How much longer the session can be trusted without another answer from the registry: its timeout
    /// less a margin, less the time since the last answer by the monotonic clock. As long as the connection
    /// stands the clock does not run; of an ended session nothing is left.
    fn trusted_for(&self) -> Duration;

    /// Ends the session: its ephemeral nodes go at once. The second time does nothing.
    async fn close(&self);
}

/// What a session is told about a subtree. See [`Session::watch`]; dropping it ends the watch.
///
/// A watcher that does not keep up is not told everything late: what it has not read yet is replaced by one
/// fresh [`WatchEvent::Snapshot`].
///
/// ```
/// use elasticjob::registry::{self, Kind, Op, WatchEvent};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let session = registry::open("embedded://")?.connect().await?;
/// let mut watch = session.watch("/my-job");
/// assert_eq!(watch.next().await, WatchEvent::Snapshot(vec![]));
///
/// let create = Op::Create { path: "/config".into(), data: "x".into(), kind: Kind::Persistent };
/// session.commit("/my-job", vec![create]).await?;
/// let Some(WatchEvent::Changed(changes)) = watch.try_next() else { panic!("a commit is seen when it resolves") };
/// assert_eq!(changes.iter().map(|it| it.path()).collect::<Vec<_>>(), ["", "/config"]);
///
/// session.close().await;
/// assert_eq!(watch.next().await, WatchEvent::Ended);
/// # Ok(())
/// # }
/// ```
pub struct Watch {
    poll: Box<PollFn>,
    focus: Option<Box<FocusFn>>,
}

type PollFn = dyn FnMut(&mut Context<'_>) -> Poll<WatchEvent> + Send;
type FocusFn = dyn FnMut(Focus) + Send;

impl Watch {
    /// The next thing there is to know. Dropping the future loses nothing. After [`WatchEvent::Ended`] it
    /// says so again, at once and every time.
    pub async fn next(&mut self) -> WatchEvent {
        std::future::poll_fn(|cx| (self.poll)(cx)).await
    }

    /// The next thing there is to know, if it is here already.
    pub fn try_next(&mut self) -> Option<WatchEvent> {
        match (self.poll)(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    /// For those who write a registry of their own: a watch that asks `poll` for each event.
    ///
    /// ```
    /// use std::task::Poll;
    /// use elasticjob::registry::{Watch, WatchEvent};
    ///
    /// let mut over = Watch::from_fn(|_| Poll::Ready(WatchEvent::Ended));
    /// assert_eq!(over.try_next(), Some(WatchEvent::Ended));
    /// ```
    pub fn from_fn(poll: impl FnMut(&mut Context<'_>) -> Poll<WatchEvent> + Send + 'static) -> Watch {
        Watch { poll: Box::new(poll), focus: None }
    }

    /// For those who write a registry of their own: a watch that can follow less than everything, and is told
    /// so through `focus`. See [`Watch::set_focus`].
    ///
    /// ```
    /// use std::task::Poll;
    /// use elasticjob::registry::{Focus, Watch, WatchEvent};
    ///
    /// let (sender, wanted) = std::sync::mpsc::channel();
    /// let mut watch = Watch::from_fn(|_| Poll::Ready(WatchEvent::Ended))
    ///     .focusing(move |focus| sender.send(focus).unwrap());
    /// watch.set_focus(Focus::Items([3].into()));
    /// assert_eq!(wanted.recv(), Ok(Focus::Items([3].into())));
    /// ```
    #[must_use]
    pub fn focusing(mut self, focus: impl FnMut(Focus) + Send + 'static) -> Watch {
        self.focus = Some(Box::new(focus));
        self
    }

    /// Whether it can follow less than everything.
    pub fn is_focusable(&self) -> bool {
        self.focus.is_some()
    }

    /// Asks to follow only the nodes of these items, apart from what every instance must know. The answer is
    /// [`WatchEvent::Sees`], when it is so. Where all is followed at no cost nothing happens.
    pub fn set_focus(&mut self, focus: Focus) {
        if let Some(set) = &mut self.focus {
            set(focus);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// What a [`Watch`] says.
///
/// ```
/// use elasticjob::registry::WatchEvent;
///
/// fn can_still_act(event: &WatchEvent) -> bool {
///     match event {
///         WatchEvent::Snapshot(_) | WatchEvent::Changed(_) | WatchEvent::Sees(_) => true,
///         WatchEvent::Suspended | WatchEvent::Ended => false,
///     }
/// }
/// assert!(!can_still_act(&WatchEvent::Suspended));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// The whole subtree, in the order of the paths: forget what you knew. It comes first, after every
    /// reconnect, and when the watcher fell behind.
    Snapshot(Vec<Entry>),
    /// What a transaction, or the end of a session, did below the root: at least one change, in order. Where
    /// the backend can tell, all that one transaction did comes together.
    Changed(Vec<Change>),
    /// What is followed from now on, after [`Watch::set_focus`]: everything there is to tell about that has
    /// been told, and of other items nothing but who owns them will be. Without it, everything is followed.
    Sees(Focus),
    /// The connection is down. A snapshot, or the end, will follow.
    Suspended,
    /// The session is over. Nothing follows.
    Ended,
}

/// Why a transaction was not, or may not have been, done.
///
/// ```
/// use elasticjob::registry::CommitError;
///
/// fn is_settled(answer: Result<(), CommitError>) -> bool {
///     !matches!(answer, Err(CommitError::Unknown(_)))
/// }
/// assert!(is_settled(Err(CommitError::SessionEnded)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// A node was there that must not be, or was not as expected. Nothing was done: look again.
    #[error("the registry has changed at `{path}`")]
    Conflict {
        /// The first node that did not fit, relative to the root as in the operation.
        path: String,
    },
    /// The session is over, and with it everything it owned. Nothing was done.
    #[error("the session has ended")]
    SessionEnded,
    /// Nobody knows whether it was done. The next snapshot tells.
    #[error("it is not known whether the transaction was done: {0}")]
    Unknown(String),
    /// The registry does not take transactions of this size. Nothing was done, nor sent.
    #[error("the transaction has {size} bytes, and the registry takes {limit} at most: split it")]
    TooLarge {
        /// What it would have taken, in bytes.
        size: usize,
        /// The most that is taken, in bytes.
        limit: usize,
    },
    /// The registry does not let us write there. Nothing was done.
    #[error(
        "the registry denies access to `{path}`: connect as who made it (for ZooKeeper with `digest-env` or `digest-file`), or have its rights changed"
    )]
    Denied {
        /// The node, with the whole of its path.
        path: String,
    },
    /// It can never succeed as it is, on this registry. Nothing was done.
    #[error("the transaction is not possible: {0}")]
    Invalid(String),
}

/// Why a registry cannot be opened, reached or read.
///
/// ```
/// let error = elasticjob::registry::open("embedded://var/lib/jobs").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "bad registry url `embedded://var/lib/jobs`: `var/lib/jobs` is not a name; \
///      for a directory write `embedded:///var/lib/jobs`, with three slashes",
/// );
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The url does not name a registry.
    #[error("bad registry url `{url}`: {problem}; {remedy}")]
    BadUrl {
        /// The url, without passwords.
        url: String,
        /// What is wrong with it.
        problem: String,
        /// What would be right.
        remedy: String,
    },
    /// The url is right, but this program was built without what it needs.
    #[error(
        "registry url `{url}` needs the crate's feature `{feature}`: add it to the `elasticjob` dependency and build again"
    )]
    MissingFeature {
        /// The url, without passwords.
        url: String,
        /// The missing feature.
        feature: &'static str,
    },
    /// A root or path that is none.
    #[error("`{path}` is not a path: it is empty, or every name in it follows a `/`")]
    BadPath {
        /// What was given.
        path: String,
    },
    /// Another process has the store open.
    #[error(
        "the registry in {} is in use by another process: stop that process, give this one a directory of its own, or share a registry such as zookeeper://host:2181/namespace",
        path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The store's file is not readable as one.
    #[error("the registry file {} is damaged ({cause}): restore it from a backup, or move it away to begin with an empty registry", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// The store was written by a later version of this program.
    #[error("the registry file {} has format {found}, and this version reads up to {known}: use the version that wrote it", path.display())]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The latest format that this version knows.
        known: u64,
    },
    /// The operating system refused.
    #[error("cannot open the registry in {}: {source}", path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Writing failed once, and what is on disk is in doubt; nothing more is done until it is opened anew.
    #[error("the registry in {} has stopped because it could not write ({cause}): see to the disk, then restart", path.display())]
    Failed {
        /// The directory.
        path: PathBuf,
        /// What went wrong.
        cause: String,
    },
    /// The registry does not answer.
    #[error("the registry cannot be reached: {0}")]
    Unreachable(String),
    /// The registry does not let us in, or keeps from us what we need.
    #[error("the registry denies access: {0}")]
    Denied(String),
    /// The registry lacks something without which it cannot serve.
    #[error("the registry cannot be used: {0}")]
    Unsupported(String),
    /// The session is over; connect again.
    #[error("the session has ended")]
    SessionEnded,
}

/// The registry that a url names.
///
/// | url | registry |
/// |---|---|
/// | `embedded://` | in memory, a private one with every call |
/// | `embedded://name` | in memory, the same for everybody in this process who gives the name |
/// | `embedded:///var/lib/jobs` | durable, in that directory; for one process at a time |
/// | `zookeeper://host:2181,host:2181/namespace` | a ZooKeeper ensemble (feature `zookeeper`); its settings are in the module of that name |
///
/// The embedded ones take `?session-timeout=5s` (`ms`, `s`, `m` or `h`; ten seconds if not given): how long
/// after a crash a member's ephemeral nodes stay. The path is taken as it is written, up to the `?`.
///
/// Opening a durable registry reads it whole; it blocks for as long as that takes.
///
/// ```
/// use elasticjob::registry;
///
/// # fn main() -> Result<(), registry::RegistryError> {
/// let private = registry::open("embedded://?session-timeout=5s")?;
/// let shared = registry::open("embedded://orders")?;
/// let error = registry::open("consul://10.0.0.1").unwrap_err().to_string();
/// assert!(error.contains("embedded, zookeeper, etcd"), "{error}");
/// # Ok(())
/// # }
/// ```
pub fn open(url: &str) -> Result<Arc<dyn Registry>, RegistryError> {
    match url::parse(url)? {
        url::Place::Embedded(place) => Ok(Arc::new(place.open()?)),
        #[cfg(feature = "zookeeper")]
        url::Place::ZooKeeper(settings) => Ok(Arc::new(ZooKeeper::new(*settings)?)),
    }
}

/// Whether `path` is empty, or each name in it is not and follows a `/`.
fn is_path(path: &str) -> bool {
    let mut names = path.split('/');
    names.next() == Some("") && names.all(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_empty_or_has_a_slash_before_every_name() {
        for path in ["", "/a", "/a/b-c"] {
            assert!(is_path(path), "{path}");
        }
        for path in ["a", "/", "/a/", "//a", "/a//b", "-2/x"] {
            assert!(!is_path(path), "{path}");
        }
    }
}
