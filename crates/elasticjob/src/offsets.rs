//! Offsets of shards in the registry, written with a fence.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use elasticjob_core::node::Node;
use elasticjob_core::offset::{self, LENGTH_MAX};

use crate::registry::{CommitError, RegistryError, Session};

/// How often a write looks again because somebody else made or removed the node meanwhile.
const ATTEMPTS: u32 = 5;

/// Why an offset could not be read or written.
///
/// ```
/// use elasticjob::{JobError, OffsetError, Shard};
///
/// async fn save(shard: &Shard, position: u64) -> Result<(), JobError> {
///     match shard.set_offset(position.to_string()).await {
///         Err(OffsetError::Fenced) => Err("somebody else has the shard by now: undo what can be undone".into()),
///         result => Ok(result?),
///     }
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OffsetError {
    /// This run is over, or its session is: the shard may be another worker's by now. Nothing was written.
    #[error("the shard is not this run's any more")]
    Fenced,
    /// The connection broke before an answer came. It may be written, or not: read it, or write it again.
    #[error("it is not known whether the offset was written: {0}")]
    Unknown(String),
    /// The registry could not do it. Nothing was written.
    #[error("the registry could not: {0}")]
    Registry(String),
    /// It is no position, but data.
    #[error(
        "the offset has {length} bytes, and {LENGTH_MAX} is the most: keep data elsewhere, and its place here"
    )]
    TooLong {
        /// What it has.
        length: usize,
    },
    /// Without marks nobody knows who has the shard.
    #[error("offsets need monitorExecution, which is off")]
    NotMonitored,
}

/// Where the offsets of a round are.
#[async_trait]
pub(crate) trait OffsetStore: Send + Sync {
    async fn read(&self, item: u32) -> Result<Option<String>, OffsetError>;
    async fn write(&self, item: u32, text: &str) -> Result<(), OffsetError>;
}

/// The way of one run of a shard to its offset. It ends with the run.
#[derive(Clone)]
pub(crate) struct Offset {
    store: Arc<dyn OffsetStore>,
    over: Arc<AtomicBool>,
}

impl Offset {
    pub(crate) fn new(store: Arc<dyn OffsetStore>) -> Offset {
        Offset { store, over: Arc::default() }
    }

    /// The run is over. What it left behind, a thread for one, cannot write any more.
    pub(crate) fn close(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    fn open(&self) -> Result<&dyn OffsetStore, OffsetError> {
        if self.over.load(Ordering::SeqCst) { Err(OffsetError::Fenced) } else { Ok(self.store.as_ref()) }
    }

    pub(crate) async fn read(&self, item: u32) -> Result<Option<String>, OffsetError> {
        self.open()?.read(item).await
    }

    pub(crate) async fn write(&self, item: u32, text: &str) -> Result<(), OffsetError> {
        if text.len() > LENGTH_MAX {
            return Err(OffsetError::TooLong { length: text.len() });
        }
        self.open()?.write(item, text).await
    }
}

impl std::fmt::Debug for Offset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offset").field("over", &self.over).finish_non_exhaustive()
    }
}

/// Offsets in the registry, for the session in which a round was claimed. A session that has ended is refused by the
/// registry itself, whatever this process believes; the rest of the fence is in the transaction.
pub(crate) struct RegistryOffsets {
    pub(crate) session: Arc<dyn Session>,
    /// The job's root.
    pub(crate) root: String,
    /// Our instance id in that session.
    pub(crate) me: Arc<str>,
}

#[async_trait]
impl OffsetStore for RegistryOffsets {
    async fn read(&self, item: u32) -> Result<Option<String>, OffsetError> {
        let path = format!("{}{}", self.root, Node::Offset(item).path());
        match self.session.read(&path).await {
            Ok(nodes) => Ok(nodes.into_iter().find(|it| it.path.is_empty()).map(|it| it.data)),
            Err(RegistryError::SessionEnded) => Err(OffsetError::Fenced),
            Err(error) => Err(OffsetError::Registry(error.to_string())),
        }
    }

    async fn write(&self, item: u32, text: &str) -> Result<(), OffsetError> {
        for _ in 0..ATTEMPTS {
            let exists = self.read(item).await?.is_some();
            let written = self.session.commit(&self.root, offset::write(&self.me, item, exists, text)).await;
            return match written {
                Ok(()) => Ok(()),
                Err(CommitError::Conflict { path }) if !offset::is_fence(item, &path) => continue,
                Err(CommitError::Conflict { .. } | CommitError::SessionEnded) => Err(OffsetError::Fenced),
                Err(CommitError::Unknown(why)) => Err(OffsetError::Unknown(why)),
                Err(error) => Err(OffsetError::Registry(error.to_string())),
            };
        }
        Err(OffsetError::Registry("somebody else writes it all the time".to_owned()))
    }
}

/// There are none, and why.
pub(crate) struct NoOffsets(pub(crate) OffsetError);

#[async_trait]
impl OffsetStore for NoOffsets {
    async fn read(&self, _: u32) -> Result<Option<String>, OffsetError> {
        Err(self.0.clone())
    }

    async fn write(&self, _: u32, _: &str) -> Result<(), OffsetError> {
        Err(self.0.clone())
    }
}
