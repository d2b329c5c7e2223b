//! A connection to one server: TCP or TLS, and the first words.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::settings::{Server, TlsFiles};
use super::wire::{self, Ticket, Welcome};
use crate::registry::RegistryError;

/// How much is read at a time: many small packets come together, and each read has its price.
const READ_ROOM: usize = 32 << 10;
/// What is longer is not a packet.
const INCOMING_MAX: usize = 128 << 20;

/// Either kind of stream.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection, with what has been read of it and not been taken.
pub(super) struct Connection {
    reader: tokio::io::ReadHalf<Box<dyn Stream>>,
    writer: tokio::io::WriteHalf<Box<dyn Stream>>,
    input: Vec<u8>,
    taken: usize,
    /// How much of what is to be sent has been.
    sent: usize,
    unflushed: bool,
}

/// What happened to a connection.
pub(super) enum Traffic {
    /// There is more to take.
    Read,
    Wrote,
}

impl Connection {
    /// Calls a server. The answer comes with the moment when we asked.
    pub(super) async fn open(
        server: &Server,
        tls: Option<&TlsConnector>,
        ticket: &Ticket,
        last_zxid: i64,
        timeout_ms: i32,
    ) -> io::Result<(Connection, Welcome, Instant)> {
        let tcp = TcpStream::connect((server.host.as_str(), server.port)).await?;
        tcp.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match tls {
            None => Box::new(tcp),
            Some(tls) => {
                let name = ServerName::try_from(server.host.clone()).map_err(io::Error::other)?;
                Box::new(tls.connect(name, tcp).await?)
            }
        };
        let (reader, writer) = tokio::io::split(stream);
        let input = Vec::new();
        let mut connection = Connection { reader, writer, input, taken: 0, sent: 0, unflushed: false };
        let asked = Instant::now();
        connection.writer.write_all(&wire::connect(ticket, last_zxid, timeout_ms).finish()).await?;
        connection.writer.flush().await?;
        loop {
            if let Some(packet) = connection.take()? {
                let welcome = wire::read_welcome(packet).map_err(|_| not_zookeeper())?;
                return Ok((connection, welcome, asked));
            }
            connection.read().await.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => not_welcome(),
                _ => error,
            })?;
        }
    }

    /// The next packet, if it is here.
    pub(super) fn take(&mut self) -> io::Result<Option<&[u8]>> {
        let here = &self.input[self.taken..];
        let Some((size, rest)) = here.split_first_chunk::<4>() else { return Ok(None) };
        let size = usize::try_from(i32::from_be_bytes(*size)).map_err(|_| not_zookeeper())?;
        if size > INCOMING_MAX {
            return Err(not_zookeeper());
        }
        if rest.len() < size {
            return Ok(None);
        }
        let begin = self.taken + 4;
        self.taken = begin + size;
        Ok(Some(&self.input[begin..begin + size]))
    }

    fn make_room(&mut self) {
        self.input.drain(..self.taken);
        self.taken = 0;
        self.input.reserve(READ_ROOM);
    }

    /// Waits for more. Dropping the future loses nothing.
    async fn read(&mut self) -> io::Result<Traffic> {
        self.make_room();
        match self.reader.read_buf(&mut self.input).await? {
            0 => Err(closed()),
            _ => Ok(Traffic::Read),
        }
    }

    /// Sends and reads, whichever comes first. Dropping the future loses nothing.
    pub(super) async fn exchange(&mut self, out: &mut Vec<u8>) -> io::Result<Traffic> {
        self.make_room();
        let send = async {
            if self.sent < out.len() {
                let wrote = self.writer.write(&out[self.sent..]).await?;
                (self.sent, self.unflushed) = (self.sent + wrote, true);
                if self.sent >= out.len() {
                    out.clear();
                    self.sent = 0;
                }
            } else if self.unflushed {
                self.writer.flush().await?;
                self.unflushed = false;
            } else {
                std::future::pending::<()>().await;
            }
            Ok(Traffic::Wrote)
        };
        tokio::select! {
            read = self.reader.read_buf(&mut self.input) => match read? {
                0 => Err(closed()),
                _ => Ok(Traffic::Read),
            },
            sent = send => sent,
        }
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection")
}

/// What a server does that has no majority, also if it lets others read.
fn not_welcome() -> io::Error {
    let why = "the server closed the connection instead of a welcome, as one without a majority does, or a read-only one";
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
}

fn not_zookeeper() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "what answers is not ZooKeeper")
}

/// Reads the certificates that TLS needs.
pub(super) fn tls(files: &TlsFiles) -> Result<TlsConnector, RegistryError> {
    let broken = |path: &std::path::Path, why: &dyn std::fmt::Display| RegistryError::Io {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, why.to_string()),
    };
    let certificates = |path: &std::path::Path| -> Result<Vec<CertificateDer<'static>>, RegistryError> {
        let found: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(path).map_err(|it| broken(path, &it))?.collect();
        found.map_err(|it| broken(path, &it)).and_then(|it| match it.is_empty() {
            true => Err(broken(path, &"there is no certificate in it")),
            false => Ok(it),
        })
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&files.ca)? {
        roots.add(certificate).map_err(|it| broken(&files.ca, &it))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|it| broken(&files.ca, &it))?
        .with_root_certificates(roots);
    let config = match &files.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let private = PrivateKeyDer::from_pem_file(key).map_err(|it| broken(key, &it))?;
            builder
                .with_client_auth_cert(certificates(certificate)?, private)
                .map_err(|it| broken(key, &it))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}
