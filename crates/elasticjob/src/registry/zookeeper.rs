//! A registry in a ZooKeeper ensemble, where Java's ElasticJob has its own: same nodes, same lines, same
//! fleet. ZooKeeper 3.6 or later.
//!
//! The url is `zookeeper://host:port,host:port/namespace`, with any of these settings after a `?`:
//!
//! | setting | default | |
//! |---|---|---|
//! | `session-timeout` | `60s` | after a crash a member's ephemeral nodes stay this long; the servers may grant another |
//! | `connection-timeout` | `15s` | for one attempt to reach one server |
//! | `base-sleep`, `max-sleep` | `1s`, `3s` | between attempts, growing from one to the other |
//! | `max-retries` | `3` | the first connection may take `max-sleep` times this |
//! | `digest-env`, `digest-file`, `digest` | | where `user:password` is: in that variable, in that file, or here; nodes are then made so that nobody else can read them |
//! | `tls-ca` | | a PEM file; the connection is encrypted and the servers must show a certificate signed by it |
//! | `tls-cert`, `tls-key` | | PEM files; the certificate that we show |
//!
//! The names and defaults are Java's. The namespace may have several parts, `/team/billing`; it is made when
//! it is needed. Values are taken as they are written, up to the next `&`. A connection that was lost is sought for as
//! long as it takes. The servers are those of the url: there is no `ensembleTracker`, which may replace them by
//! addresses that cannot be reached from here.
//!
//! # What it costs
//!
//! Two requests a round for an instance that runs items, whatever their number: one transaction to begin and
//! one to end. None for others: an instance is notified of its own items, and a leader, who is notified of
//! all, does not ask who runs what before something else happens that makes it matter.
//!
//! # Why a client of its own
//!
//! The contract of [`Session`] rests on the order in which notifications and answers come
//! down one connection, on the statistics that come with a transaction's results, on watches that survive a
//! reconnect, and on a session that is over when the server says so and not before. The client crates hand
//! notifications and answers out on separate ways, and lose or end what must be kept.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Registry, RegistryError, Session};

mod batch;
mod connection;
mod machine;
mod mirror;
mod session;
mod settings;
mod transaction;
mod wire;

use session::Dialer;
pub(super) use settings::Settings;

/// A registry in a ZooKeeper ensemble. It is opened by its url: see [`open`](super::open).
///
/// ```no_run
/// # async fn f() -> Result<(), elasticjob::registry::RegistryError> {
/// use elasticjob::registry;
///
/// let url = "zookeeper://10.0.0.1:2181,10.0.0.2:2181/billing?session-timeout=30s&digest-env=ZK_DIGEST";
/// let session = registry::open(url)?.connect().await?;
/// println!("{:?}", session.children("").await?);
/// # Ok(())
/// # }
/// ```
pub struct ZooKeeper {
    dialer: Arc<Dialer>,
}

impl ZooKeeper {
    /// Reads the digest and the certificates; connects to nothing yet.
    pub(super) fn new(settings: Settings) -> Result<ZooKeeper, RegistryError> {
        let secret = settings.secret()?;
        let tls = settings.tls.as_ref().map(connection::tls).transpose()?;
        Ok(ZooKeeper { dialer: Arc::new(Dialer { settings: Arc::new(settings), secret, tls }) })
    }
}

#[async_trait]
impl Registry for ZooKeeper {
    async fn connect(&self) -> Result<Arc<dyn Session>, RegistryError> {
        Ok(Arc::new(self.dialer.clone().connect().await?))
    }
}

impl fmt::Debug for ZooKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &self.dialer.settings;
        f.debug_struct("ZooKeeper")
            .field("servers", &settings.place())
            .field("namespace", &settings.namespace)
            .field("session_timeout", &settings.session_timeout)
            .finish_non_exhaustive()
    }
}
