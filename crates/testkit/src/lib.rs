//! Real servers and bad networks for the tests of this workspace. Not published.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test that cannot go on should stop")]

pub mod proxy;
pub mod zookeeper;

pub use proxy::Proxy;
pub use zookeeper::{Ensemble, ZooKeeper};

use std::net::TcpListener;
use std::sync::Mutex;

/// Ports that nobody listens on now, each given once in this process.
pub fn free_ports(count: usize) -> Vec<u16> {
    static GIVEN: Mutex<Vec<u16>> = Mutex::new(Vec::new());
    let mut given = GIVEN.lock().unwrap();
    // Held until all are found, so that none is found twice.
    let mut held = Vec::new();
    let mut ports = Vec::new();
    while ports.len() < count {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        held.push(listener);
        if !given.contains(&port) {
            given.push(port);
            ports.push(port);
        }
    }
    ports
}
