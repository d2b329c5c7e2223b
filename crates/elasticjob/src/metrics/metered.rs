//! A registry whose requests are counted and timed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::{Metric, Metrics};
use crate::registry::{CommitError, Entry, Op, Registry, RegistryError, Session, Watch};

#[derive(Debug)]
pub(crate) struct MeteredRegistry {
    inner: Arc<dyn Registry>,
    metrics: Metrics,
}

impl MeteredRegistry {
    pub(crate) fn new(inner: Arc<dyn Registry>, metrics: Metrics) -> MeteredRegistry {
        MeteredRegistry { inner, metrics }
    }
}

#[async_trait]
impl Registry for MeteredRegistry {
    async fn connect(&self) -> Result<Arc<dyn Session>, RegistryError> {
        let inner = self.inner.connect().await?;
        self.metrics.add(Metric::Sessions, None, &[], 1.0);
        self.metrics.set(Metric::SessionUp, None, 1.0);
        Ok(Arc::new(MeteredSession { inner, metrics: self.metrics.clone() }))
    }
}

struct MeteredSession {
    inner: Arc<dyn Session>,
    metrics: Metrics,
}

impl MeteredSession {
    fn count(&self, root: &str, operation: &'static str, result: &'static str, began: Instant) {
        let name = root.trim_start_matches('/').split('/').next().unwrap_or_default();
        let job = self.metrics.known(name);
        self.metrics.add(Metric::Requests, job.as_ref(), &[operation, result], 1.0);
        self.metrics.observe(Metric::Latency, job.as_ref(), &[operation], began.elapsed().as_secs_f64());
    }
}

#[async_trait]
impl Session for MeteredSession {
    fn watch(&self, root: &str) -> Watch {
        self.inner.watch(root)
    }

    async fn commit(&self, root: &str, ops: Vec<Op>) -> Result<(), CommitError> {
        let began = Instant::now();
        let answer = self.inner.commit(root, ops).await;
        let result = match &answer {
            Ok(()) => "ok",
            Err(CommitError::Conflict { .. }) => "conflict",
            Err(CommitError::Unknown(_)) => "unknown",
            Err(CommitError::SessionEnded) => "session-ended",
            Err(_) => "error",
        };
        self.count(root, "commit", result, began);
        answer
    }

    async fn read(&self, root: &str) -> Result<Vec<Entry>, RegistryError> {
        let began = Instant::now();
        let answer = self.inner.read(root).await;
        self.count(root, "read", result_of(&answer), began);
        answer
    }

    async fn children(&self, root: &str) -> Result<Vec<String>, RegistryError> {
        let began = Instant::now();
        let answer = self.inner.children(root).await;
        self.count(root, "children", result_of(&answer), began);
        answer
    }

    fn trusted_for(&self) -> Duration {
        self.inner.trusted_for()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

fn result_of<T>(answer: &Result<T, RegistryError>) -> &'static str {
    match answer {
        Ok(_) => "ok",
        Err(RegistryError::SessionEnded) => "session-ended",
        Err(_) => "error",
    }
}
