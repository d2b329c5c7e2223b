//! The dump port of ElasticJob 3.x: one line `dump@job`, and every node of the job comes back. Java's lifecycle
//! client understands ours, and [`dump_from`] understands Java's.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::{Ops, OpsError};
use crate::link::Link;
use crate::listen::{self, PATIENCE};

/// No request is longer.
const REQUEST_MAX: u64 = 1024;
/// No answer is longer.
const ANSWER_MAX: u64 = 256 << 20;

/// A port that answers `dump@job` until it is dropped. Nothing opens one by itself: a worker does if it is
/// [asked to](crate::Worker::dump_port).
///
/// ```
/// use elasticjob::ops::{DumpPort, Ops, dump_from};
/// use elasticjob::{Job, Shard, Worker, registry};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = registry::open("embedded://")?;
/// let worker = Worker::new(registry.clone()).job(Job::simple("nightly", async |_: Shard| Ok(()))).start().await?;
/// let port = DumpPort::open(0, Ops::connect(registry).await?).await?;
/// let text = dump_from(port.address(), "nightly").await?;
/// assert!(text.contains("/nightly/servers/ip1 | ENABLED\n"));
/// # worker.shutdown().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "a dump port that is dropped is closed"]
pub struct DumpPort {
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl DumpPort {
    /// Listens on this machine only; port 0 is any that is free.
    pub async fn open(port: u16, ops: Ops) -> io::Result<DumpPort> {
        DumpPort::open_at((Ipv4Addr::LOCALHOST, port), ops).await
    }

    /// Listens on an address of your choice. Whoever reaches it reads the settings of all jobs.
    pub async fn open_at(address: impl ToSocketAddrs, ops: Ops) -> io::Result<DumpPort> {
        DumpPort::serve(TcpListener::bind(address).await?, move || Some(ops.clone()))
    }

    /// Answers by whatever session the worker has when it is asked.
    pub(crate) fn over(listener: TcpListener, link: Link) -> io::Result<DumpPort> {
        DumpPort::serve(listener, move || link.current().map(|it| Ops::over(it.session)))
    }

    fn serve(
        listener: TcpListener,
        ops: impl Fn() -> Option<Ops> + Send + Sync + 'static,
    ) -> io::Result<DumpPort> {
        let address = listener.local_addr()?;
        let serve = listen::serve("dump port", listener, move |stream| answer(stream, ops()));
        Ok(DumpPort { address, _task: AbortOnDropHandle::new(tokio::spawn(serve)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Java closes without a word if it does not understand; so do we.
async fn answer(mut stream: TcpStream, ops: Option<Ops>) -> io::Result<()> {
    let Some(ops) = ops else { return Ok(()) }; // There is no session, and so nothing to tell.
    let mut line = String::new();
    let (reader, mut writer) = stream.split();
    BufReader::new(reader.take(REQUEST_MAX)).read_line(&mut line).await?;
    let Some(job) = line.trim_end_matches(['\r', '\n']).strip_prefix("dump@") else { return Ok(()) };
    let text = match ops.dump(job).await {
        Ok(text) => text,
        Err(OpsError::UnknownJob { .. }) => "\n".to_owned(),
        Err(error) => {
            tracing::warn!("dump port: {error}");
            return Ok(());
        }
    };
    writer.write_all(text.as_bytes()).await?;
    writer.shutdown().await
}

/// What a process, Rust or Java, says of a job on its dump port; blank if it does not know the job.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert!(elasticjob::ops::dump_from("127.0.0.1:1", "nightly").await.is_err()); // Nobody listens there.
/// # }
/// ```
pub async fn dump_from(address: impl ToSocketAddrs, job: &str) -> io::Result<String> {
    if job.contains('\n') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "a job's name is one line"));
    }
    let conversation = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(format!("dump@{job}\n").as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.take(ANSWER_MAX).read_to_end(&mut bytes).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    timeout(PATIENCE, conversation).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
