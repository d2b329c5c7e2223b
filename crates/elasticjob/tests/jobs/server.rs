//! An HTTP server that misbehaves as asked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What a request said.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

/// What the server noticed.
#[derive(Debug)]
pub(crate) enum Seen {
    Request(Request),
    /// The client has gone while it was to wait.
    Gone,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    secret: bool,
    seen: mpsc::UnboundedReceiver<Seen>,
    _tasks: JoinSet<()>,
}

impl Server {
    pub(crate) async fn start() -> Server {
        Server::start_with(None).await
    }

    pub(crate) async fn start_with(tls: Option<TlsAcceptor>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, seen) = mpsc::unbounded_channel();
        let secret = tls.is_some();
        let requests = Arc::new(AtomicUsize::new(0));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (sender, requests, tls) = (sender.clone(), requests.clone(), tls.clone());
                connections.spawn(async move {
                    // Whatever goes wrong here is what the client has to bear.
                    match tls {
                        None => serve(stream, &sender, &requests).await.ok(),
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, &sender, &requests).await.ok(),
                            Err(_) => None,
                        },
                    };
                });
            }
        });
        Server { address, secret, seen, _tasks: tasks }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let (scheme, host) = if self.secret { ("https", "localhost") } else { ("http", "127.0.0.1") };
        format!("{scheme}://{host}:{}{path}", self.address.port())
    }

    pub(crate) async fn seen(&mut self) -> Seen {
        tokio::time::timeout(super::LONG, self.seen.recv())
            .await
            .expect("it happens")
            .expect("the server runs")
    }

    pub(crate) async fn request(&mut self) -> Request {
        match self.seen().await {
            Seen::Request(request) => request,
            Seen::Gone => panic!("a request was expected"),
        }
    }

    /// How many requests have come and not been looked at.
    pub(crate) fn unseen(&mut self) -> usize {
        std::iter::from_fn(|| self.seen.try_recv().ok()).count()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &mpsc::UnboundedSender<Seen>,
    requests: &AtomicUsize,
) -> std::io::Result<()> {
    let request = read(&mut stream).await?;
    let path = request.path.clone();
    seen.send(Seen::Request(request)).ok();
    let number = requests.fetch_add(1, Ordering::SeqCst);
    let answer = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    };
    let redirect = |to: &str| {
        format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    };
    let text = match path.split('?').next().unwrap_or_default() {
        "/ok" => answer("200 OK", "fine"),
        "/robot" => answer("200 OK", r#"{"errcode":0,"errmsg":"ok"}"#),
        "/unkind-robot" => answer("200 OK", r#"{"errcode":310000,"errmsg":"sign not match"}"#),
        "/empty" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        "/missing" => answer("404 Not Found", "<html>\n\n  no such thing\r\n\x1b[31m</html>\n"),
        "/bare" => answer("500 Internal Server Error", ""),
        "/odd" => answer("999 Odd", "what?"),
        "/not-modified" => "HTTP/1.1 304 Not Modified\r\n\r\n".to_owned(),
        "/flaky" if number < 2 => answer("503 Service Unavailable", "not yet"),
        "/flaky" => answer("200 OK", "at last"),
        "/away" => redirect("/ok"),
        "/round" => redirect("/round"),
        "/down" => redirect("http://127.0.0.1:1/ok"),
        "/garbage" => "this is not HTTP\r\n\r\n".to_owned(),
        "/reset" => return Ok(()),
        "/cut" => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_owned(),
        "/hang" => {
            // Until the client goes.
            stream.read_to_end(&mut Vec::new()).await.ok();
            seen.send(Seen::Gone).ok();
            return Ok(());
        }
        "/stall" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").await?;
            stream.flush().await?;
            stream.read_to_end(&mut Vec::new()).await.ok();
            return Ok(());
        }
        "/drip" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            loop {
                stream.write_all(b"x").await?;
                stream.flush().await?;
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
        "/endless" | "/endless-error" => {
            let status = if path.contains("error") { "500 Oops" } else { "200 OK" };
            stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).await?;
            let line = "x".repeat(99) + "\n";
            while stream.write_all(line.as_bytes()).await.is_ok() {}
            seen.send(Seen::Gone).ok();
            return Ok(());
        }
        path => answer("404 Not Found", path),
    };
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Request> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is ASCII");
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length").map_or(0, |it| it.parse().expect("a length"));
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(Request {
        method: first.next().unwrap_or_default(),
        path: first.next().unwrap_or_default(),
        headers,
        body: String::from_utf8(body).expect("text"),
    })
}
