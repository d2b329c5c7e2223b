//! A network between a client and a server that can be cut, held up and listened to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// What the network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weather {
    /// It carries everything.
    Fair,
    /// It carries everything, late.
    Slow(Duration),
    /// Connections stay, but nothing is carried to either side.
    HalfOpen,
    /// Requests are carried, answers are not.
    Deaf,
    /// Connections are refused.
    Cut,
}

/// A proxy for one server. Everything ends when it is dropped.
pub struct Proxy {
    port: u16,
    weather: watch::Sender<Weather>,
    heard: Arc<Mutex<Heard>>,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
    _task: JoinSet<()>,
}

#[derive(Default)]
struct Heard {
    requests: BTreeMap<i32, u64>,
    bytes: (u64, u64),
}

impl Proxy {
    /// A proxy before the server on this port, in fair weather.
    pub async fn start(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (weather, forecast) = watch::channel(Weather::Fair);
        let heard = Arc::new(Mutex::new(Heard::default()));
        let connections: Arc<Mutex<Vec<AbortHandle>>> = Arc::default();
        let mut task = JoinSet::new();
        let (ears, list) = (heard.clone(), connections.clone());
        task.spawn(async move {
            let mut running = JoinSet::new();
            loop {
                let Ok((client, _)) = listener.accept().await else { return };
                if *forecast.borrow() == Weather::Cut {
                    continue; // Dropping it closes it.
                }
                let (forecast, ears) = (forecast.clone(), ears.clone());
                let handle = running.spawn(async move {
                    let server = TcpStream::connect(SocketAddr::from(([127, 0, 0, 1], server))).await;
                    let Ok(server) = server else { return };
                    let _ = (client.set_nodelay(true), server.set_nodelay(true));
                    let (client_in, client_out) = client.into_split();
                    let (server_in, server_out) = server.into_split();
                    tokio::select! {
                        () = carry(client_in, server_out, forecast.clone(), Listener::new(&ears, false)) => {}
                        () = carry(server_in, client_out, forecast, Listener::new(&ears, true)) => {}
                    }
                });
                list.lock().unwrap().push(handle);
                while running.try_join_next().is_some() {}
            }
        });
        Proxy { port, weather, heard, connections, _task: task }
    }

    /// The port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A url for a registry, with these settings.
    pub fn url(&self, namespace: &str, settings: &str) -> String {
        format!("zookeeper://127.0.0.1:{}/{namespace}?{settings}", self.port)
    }

    /// Changes the weather. [`Weather::Cut`] also breaks the connections that stand.
    pub fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
        if weather == Weather::Cut {
            self.break_connections();
        }
    }

    /// Breaks the connections that stand; new ones are carried.
    pub fn break_connections(&self) {
        self.connections.lock().unwrap().drain(..).for_each(|it| it.abort());
    }

    /// How many requests of each kind were carried since it was asked last: ZooKeeper's number of the kind,
    /// and how many. Without pings.
    pub fn take_requests(&self) -> BTreeMap<i32, u64> {
        std::mem::take(&mut self.heard.lock().unwrap().requests)
    }

    /// How many bytes were carried to the server and from it since it was asked last. Without pings.
    pub fn take_bytes(&self) -> (u64, u64) {
        std::mem::take(&mut self.heard.lock().unwrap().bytes)
    }
}

async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
    mut listener: Listener,
) {
    let mut buffer = vec![0; 64 << 10];
    let is_answer = listener.is_answer;
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else { return };
        let now = *weather.borrow_and_update();
        if let Weather::Slow(delay) = now {
            tokio::time::sleep(delay).await;
        }
        let passes = |it: &Weather| match it {
            Weather::Fair | Weather::Slow(_) => true,
            Weather::Deaf => !is_answer,
            Weather::HalfOpen | Weather::Cut => false,
        };
        if weather.wait_for(passes).await.is_err() {
            return;
        }
        listener.listen(&buffer[..count]);
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

/// Tells requests apart, or answers.
struct Listener {
    heard: Arc<Mutex<Heard>>,
    bytes: Vec<u8>,
    greeted: bool,
    is_answer: bool,
}

impl Listener {
    fn new(heard: &Arc<Mutex<Heard>>, is_answer: bool) -> Listener {
        Listener { heard: heard.clone(), bytes: Vec::new(), greeted: false, is_answer }
    }

    fn listen(&mut self, bytes: &[u8]) {
        const PING: i32 = 11;
        const PING_ANSWER: i32 = -2;
        self.bytes.extend(bytes);
        while let Some((size, rest)) = self.bytes.split_first_chunk::<4>() {
            let size = u32::from_be_bytes(*size) as usize;
            if rest.len() < size {
                return;
            }
            // The first packet is the session's, and has no kind.
            if self.greeted {
                let at = if self.is_answer { 0 } else { 4 };
                let kind = i32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
                let mut heard = self.heard.lock().unwrap();
                if self.is_answer && kind != PING_ANSWER {
                    heard.bytes.1 += 4 + size as u64;
                } else if !self.is_answer && kind != PING {
                    *heard.requests.entry(kind).or_default() += 1;
                    heard.bytes.0 += 4 + size as u64;
                }
            }
            self.greeted = true;
            self.bytes.drain(..4 + size);
        }
    }
}
