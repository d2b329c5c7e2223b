//! The status port: is the process well, may it be given work, what do its numbers say, what happened last. HTTP, as
//! much of it as that takes: `GET` and `HEAD`, one answer for a connection.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::driver::{Phase, Status};
use crate::events::{EventLog, write_line};
use crate::link::Link;
use crate::listen::{self, PATIENCE};
use crate::metrics::Metrics;

/// No head of a request is longer, or takes longer: who connects and says nothing must not keep others waiting.
const HEAD_MAX: usize = 8 << 10;
const HEAD_PATIENCE: Duration = Duration::from_secs(2);
/// No answer that we read is longer.
const ANSWER_MAX: u64 = 64 << 20;

/// A port that is open until it is dropped.
pub(crate) struct StatusPort {
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl StatusPort {
    pub(crate) fn open(listener: TcpListener, pages: Pages) -> io::Result<StatusPort> {
        let address = listener.local_addr()?;
        let serve = listen::serve("status port", listener, move |stream| converse(stream, pages.clone()));
        Ok(StatusPort { address, _task: AbortOnDropHandle::new(tokio::spawn(serve)) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

/// What the port tells.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) metrics: Metrics,
    pub(crate) events: EventLog,
    pub(crate) standing: Standing,
}

/// Whether a worker may be given work.
#[derive(Clone, Default)]
pub(crate) struct Standing(Arc<Mutex<Option<Worker>>>);

struct Worker {
    link: Link,
    jobs: BTreeMap<Arc<str>, watch::Receiver<Status>>,
}

impl Standing {
    fn lock(&self) -> MutexGuard<'_, Option<Worker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner) // Nothing panics while it is held.
    }

    pub(crate) fn of(&self, link: Link, jobs: BTreeMap<Arc<str>, watch::Receiver<Status>>) {
        *self.lock() = Some(Worker { link, jobs });
    }

    /// It leaves: whoever asks should look elsewhere.
    pub(crate) fn leave(&self) {
        *self.lock() = None;
    }

    /// What stands in the way; nothing, if it is ready.
    pub(crate) fn problems(&self) -> Vec<String> {
        let worker = self.lock();
        let Some(worker) = worker.as_ref() else { return vec!["it starts, or leaves".to_owned()] };
        if worker.link.current().is_none() {
            return vec!["there is no session with the registry".to_owned()];
        }
        let mut problems = Vec::new();
        let mut at_work = 0;
        for (job, status) in &worker.jobs {
            let status = status.borrow();
            // What operators ended is not missing.
            let ended = matches!(status.phase, Phase::Stopped(_));
            if !ended && !status.stands {
                problems
                    .push(format!("job {job} is not registered, or the connection to the registry is down"));
            }
            at_work += usize::from(!ended);
        }
        if at_work == 0 && !worker.jobs.is_empty() {
            problems.push("all jobs have ended here".to_owned());
        }
        problems
    }
}

struct Page {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Page {
    fn plain(status: &'static str, body: impl Into<String>) -> Page {
        Page { status, kind: "text/plain; charset=utf-8", body: body.into() }
    }
}

impl Pages {
    fn page(&self, path: &str) -> Page {
        match path {
            "/healthz" => Page::plain("200 OK", "ok\n"),
            "/readyz" => match self.standing.problems() {
                problems if problems.is_empty() => Page::plain("200 OK", "ready\n"),
                problems => Page::plain("503 Service Unavailable", problems.join("\n") + "\n"),
            },
            "/metrics" => Page {
                kind: "text/plain; version=0.0.4; charset=utf-8",
                ..Page::plain("200 OK", self.metrics.text())
            },
            "/events" => {
                let lines: String = self.events.all().iter().map(|it| write_line(it) + "\n").collect();
                Page { kind: "application/x-ndjson", ..Page::plain("200 OK", lines) }
            }
            _ => Page::plain("404 Not Found", "there is /healthz, /readyz, /metrics and /events\n"),
        }
    }
}

async fn converse(mut stream: TcpStream, pages: Pages) -> io::Result<()> {
    let head =
        timeout(HEAD_PATIENCE, head(&mut stream)).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))?;
    let mut words = head.lines().next().unwrap_or_default().split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let page = match method {
        "GET" | "HEAD" => pages.page(target.split('?').next().unwrap_or_default()),
        _ => Page::plain("405 Method Not Allowed", "write GET or HEAD\n"),
    };
    let Page { status, kind, body } = page;
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes()).await?;
    }
    stream.shutdown().await
}

/// The head of a request, read to its end: who closes with something unread resets the connection.
async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    while !bytes.windows(4).any(|it| it == b"\r\n\r\n") {
        let count = stream.read(&mut buffer).await?;
        if count == 0 || bytes.len() + count > HEAD_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        bytes.extend_from_slice(&buffer[..count]);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A page of somebody's status port.
pub(crate) async fn get(address: &str, path: &str) -> io::Result<String> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let conversation = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.take(ANSWER_MAX).read_to_end(&mut bytes).await?;
        io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let answer = timeout(PATIENCE, conversation).await;
    let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    let refused = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| refused("it is no HTTP".to_owned()))?;
    match head.lines().next().unwrap_or_default() {
        line if line.split(' ').nth(1) == Some("200") => Ok(body.to_owned()),
        line => Err(refused(format!("it answers {path} with `{line}`"))),
    }
}
