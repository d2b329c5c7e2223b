//! Real servers and bad networks for the tests of this workspace. Not published.

#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test that cannot go on should stop")]

pub mod proxy;
pub mod smtp;
pub mod web;
pub mod zookeeper;

pub use proxy::Proxy;
pub use smtp::{Smtp, SmtpBehaviour, SmtpTls};
pub use web::Web;
pub use zookeeper::{Ensemble, ZooKeeper};

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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

/// Installs packages of Debian.
fn install_packages(packages: &[&str]) {
    for arguments in [&["update"][..], &[&["install", "-y"], packages].concat()] {
        let mut run = Command::new("apt-get");
        run.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        let done = run.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|it| it.success());
        assert!(done, "{packages:?} are missing and apt-get could not install them: install them");
    }
}

/// A server's key and certificate, for this name, and `ca.pem` with whoever signed it.
fn certificates(home: &Path, name: &str) -> (PathBuf, PathBuf) {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    let ca_key = KeyPair::generate().unwrap();
    let mut ca_params = CertificateParams::new(Vec::new()).unwrap();
    ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = ca_params.self_signed(&ca_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &Issuer::new(ca_params, ca_key)).unwrap();
    let write = |file: &str, text: String| {
        let path = home.join(file);
        fs::write(&path, text).unwrap();
        path
    };
    write("ca.pem", ca.pem());
    (write("key.pem", key.serialize_pem()), write("certificate.pem", certificate.pem()))
}
