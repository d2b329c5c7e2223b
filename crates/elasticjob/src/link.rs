//! The worker's session with its registry: one for all its jobs, and a new one when it ends.

use std::hash::{BuildHasher, Hasher};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::registry::{Registry, RegistryError, Session};

const RETRY_AFTER: Duration = Duration::from_millis(100);
const RETRY_AFTER_MAX: Duration = Duration::from_secs(5);

/// A session, and the instance id that stands for it. An id names a session and not a process: with a reused
/// id, a slow peer that cleans up after the dead one would hit the living.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) session: Arc<dyn Session>,
    pub(crate) id: Arc<str>,
    pub(crate) number: u64,
}

/// What drivers hold of the link.
#[derive(Clone)]
pub(crate) struct Link {
    current: watch::Receiver<Option<Connection>>,
    ended: watch::Sender<u64>,
}

impl Link {
    pub(crate) fn subscribe(&self) -> watch::Receiver<Option<Connection>> {
        self.current.clone()
    }

    /// The session that stands now.
    pub(crate) fn current(&self) -> Option<Connection> {
        self.current.borrow().clone()
    }

    /// That session is over.
    pub(crate) fn report_ended(&self, number: u64) {
        self.ended.send_if_modified(|last| {
            let news = number > *last;
            *last = number.max(*last);
            news
        });
    }
}

/// Opens the first session, and returns the task that replaces it whenever it ends.
pub(crate) async fn connect(
    registry: Arc<dyn Registry>,
    ip: Ipv4Addr,
) -> Result<(Link, impl Future<Output = ()> + Send + 'static), RegistryError> {
    let first = registry.connect().await?;
    let prefix = format!("{ip}@-@{}.{:08x}", std::process::id(), boot_id());
    let connection =
        move |session, number| Connection { session, id: format!("{prefix}.{number}").into(), number };
    let (publish, current) = watch::channel(Some(connection(first, 1)));
    let ended = watch::Sender::new(0);
    let link = Link { current, ended: ended.clone() };
    let supervise = async move {
        let mut ends = ended.subscribe();
        for number in 1_u64.. {
            if ends.wait_for(|last| *last >= number).await.is_err() {
                return;
            }
            publish.send_replace(None);
            let session = reconnect(registry.as_ref()).await;
            publish.send_replace(Some(connection(session, number + 1)));
        }
    };
    Ok((link, supervise))
}

async fn reconnect(registry: &dyn Registry) -> Arc<dyn Session> {
    let mut wait = RETRY_AFTER;
    loop {
        match registry.connect().await {
            Ok(session) => return session,
            Err(error) => tracing::warn!("registry: {error}; trying again in {wait:?}"),
        }
        tokio::time::sleep(wait).await;
        wait = RETRY_AFTER_MAX.min(wait * 2);
    }
}

/// Tells this process from one that had its id before, as in containers, where every process is number 1.
fn boot_id() -> u32 {
    // The standard library seeds its hashers at random.
    (std::hash::RandomState::new().build_hasher().finish() >> 32) as u32
}
