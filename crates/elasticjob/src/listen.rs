//! Ports for operators: where they listen, and how many they talk to.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a conversation may take, at most.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// So many conversations at once, at most.
const CONVERSATIONS: usize = 64;

/// Where to listen: a port of this machine only, or an address with a port.
///
/// ```
/// use elasticjob::ListenAt;
///
/// assert_eq!(ListenAt::from(9400).to_string(), "127.0.0.1:9400");
/// assert_eq!("9400".parse(), Ok(ListenAt::from(9400)));
/// assert_eq!("0.0.0.0:9400".parse::<ListenAt>().unwrap().to_string(), "0.0.0.0:9400");
/// assert!("localhost".parse::<ListenAt>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAt(pub(crate) SocketAddr);

impl From<u16> for ListenAt {
    fn from(port: u16) -> ListenAt {
        ListenAt((Ipv4Addr::LOCALHOST, port).into())
    }
}

impl From<SocketAddr> for ListenAt {
    fn from(address: SocketAddr) -> ListenAt {
        ListenAt(address)
    }
}

impl FromStr for ListenAt {
    type Err = String;

    fn from_str(text: &str) -> Result<ListenAt, String> {
        let port = text.trim().parse::<u16>().map(ListenAt::from).ok();
        port.or_else(|| text.trim().parse().map(ListenAt).ok()).ok_or_else(|| {
            "is neither a port nor an address with a port: write 9400 to listen on this machine only, or 0.0.0.0:9400 for others too".to_owned()
        })
    }
}

impl std::fmt::Display for ListenAt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Answers whoever connects, a few at a time and none for long; for ever.
pub(crate) async fn serve<A>(name: &'static str, listener: TcpListener, answer: impl Fn(TcpStream) -> A)
where
    A: Future<Output = io::Result<()>> + Send + 'static,
{
    let mut conversations = JoinSet::new();
    loop {
        if conversations.len() >= CONVERSATIONS {
            conversations.join_next().await;
        }
        match listener.accept().await {
            Ok((stream, _)) => drop(conversations.spawn(timeout(PATIENCE, answer(stream)))),
            Err(error) => {
                tracing::warn!("{name}: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await; // Out of file handles, most likely.
            }
        }
        while conversations.try_join_next().is_some() {}
    }
}
