//! A web server that says yes to everything and tells what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(100);

/// A request, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Method, path and version.
    pub line: String,
    /// Names in small letters, and values.
    pub headers: Vec<(String, String)>,
    /// What came after the headers.
    pub body: String,
}

impl Request {
    /// What a header says; its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|it| it.0 == name).map(|it| it.1.as_str())
    }
}

/// A running server, in this process.
pub struct Web {
    port: u16,
    requests: Mutex<Receiver<Request>>,
}

impl Web {
    /// Listens on a port of its own.
    pub fn start() -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                // A client that breaks off has asked nothing.
                let Ok(request) = serve(&stream) else { continue };
                if sender.send(request).is_err() {
                    return;
                }
            }
        });
        Web { port, requests: Mutex::new(requests) }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// The next request.
    pub fn request(&self) -> Request {
        self.requests.lock().unwrap().recv_timeout(LONG).expect("a request comes")
    }
}

fn serve(mut stream: &TcpStream) -> std::io::Result<Request> {
    stream.set_read_timeout(Some(LONG))?;
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let mut headers = Vec::new();
    let mut header = String::new();
    while lines.read_line(&mut header)? > 2 {
        let (name, value) = header.split_once(':').ok_or(std::io::ErrorKind::InvalidData)?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        header.clear();
    }
    let mut request = Request { line: line.trim_end().to_owned(), headers, body: String::new() };
    let length = request.header("content-length").map_or(Ok(0), str::parse);
    let length: u64 = length.map_err(|_| std::io::ErrorKind::InvalidData)?;
    lines.take(length).read_to_string(&mut request.body)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    Ok(request)
}
