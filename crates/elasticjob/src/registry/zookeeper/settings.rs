//! What a url says about an ensemble and how to reach it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::registry::RegistryError;

const PORT: u16 = 2181;

/// Where the ensemble is and how to talk to it.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::registry) struct Settings {
    pub(super) servers: Vec<Server>,
    /// Begins with a `/` and does not end so.
    pub(super) namespace: String,
    pub(super) session_timeout: Duration,
    pub(super) connection_timeout: Duration,
    pub(super) base_sleep: Duration,
    pub(super) max_sleep: Duration,
    pub(super) max_retries: u32,
    pub(super) digest: Option<Digest>,
    pub(super) tls: Option<TlsFiles>,
}

/// One server of the ensemble.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Server {
    pub(super) host: String,
    pub(super) port: u16,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Where the user and password are.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Digest {
    Given(Secret),
    Env(String),
    File(PathBuf),
}

/// Text that is never shown.
#[derive(Clone, PartialEq)]
pub(super) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// PEM files.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TlsFiles {
    pub(super) ca: PathBuf,
    /// The client's certificates and key.
    pub(super) client: Option<(PathBuf, PathBuf)>,
}

/// The problem and the remedy.
type Bad = (String, String);

impl Settings {
    /// What stands behind `zookeeper://`.
    pub(in crate::registry) fn parse(
        rest: &str,
        duration: impl Fn(&str, &str) -> Result<Duration, Bad>,
    ) -> Result<Settings, Bad> {
        const EXAMPLE: &str = "write `zookeeper://host:2181,host:2181/namespace`";
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (servers, namespace) = place.split_once('/').unwrap_or((place, ""));
        if servers.contains('@') {
            let remedy = "give the user and password with `digest-env=VARIABLE` or `digest-file=path`";
            return Err(("it has a user before an `@`".into(), remedy.into()));
        }
        let namespace = namespace.trim_end_matches('/');
        if namespace.is_empty() || namespace.split('/').any(|it| it.is_empty() || it == "." || it == "..") {
            return Err((format!("`{namespace}` is not a namespace"), EXAMPLE.into()));
        }
        let mut settings = Settings {
            servers: servers
                .split(',')
                .map(server)
                .collect::<Result<_, _>>()
                .map_err(|it| (it, EXAMPLE.into()))?,
            namespace: format!("/{namespace}"),
            session_timeout: Duration::from_secs(60),
            connection_timeout: Duration::from_secs(15),
            base_sleep: Duration::from_secs(1),
            max_sleep: Duration::from_secs(3),
            max_retries: 3,
            digest: None,
            tls: None,
        };
        let (mut ca, mut certificate, mut key) = (None, None, None);
        for setting in query.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            let mut digest = |it| {
                let twice = settings.digest.replace(it).is_some();
                let remedy = "keep one of `digest-env`, `digest-file` and `digest`";
                if twice { Err(("it has two digests".to_owned(), remedy.to_owned())) } else { Ok(()) }
            };
            match name {
                "session-timeout" => settings.session_timeout = duration(name, value)?,
                "connection-timeout" => settings.connection_timeout = duration(name, value)?,
                "base-sleep" => settings.base_sleep = duration(name, value)?,
                "max-sleep" => settings.max_sleep = duration(name, value)?,
                "max-retries" => {
                    let bad = || {
                        (
                            format!("max-retries `{value}` is not a number from 1 to 29"),
                            "write `max-retries=3`".to_owned(),
                        )
                    };
                    settings.max_retries =
                        value.parse().ok().filter(|it| (1..=29).contains(it)).ok_or_else(bad)?;
                }
                "digest" => digest(Digest::Given(Secret(value.to_owned())))?,
                "digest-env" => digest(Digest::Env(value.to_owned()))?,
                "digest-file" => digest(Digest::File(value.into()))?,
                "tls-ca" => ca = Some(PathBuf::from(value)),
                "tls-cert" => certificate = Some(PathBuf::from(value)),
                "tls-key" => key = Some(PathBuf::from(value)),
                _ => {
                    let known = "the known ones are session-timeout, connection-timeout, base-sleep, max-sleep, \
                                 max-retries, digest-env, digest-file, digest, tls-ca, tls-cert, tls-key";
                    return Err((format!("unknown setting `{name}`"), known.into()));
                }
            }
        }
        settings.tls = match (ca, certificate, key) {
            (None, None, None) => None,
            (Some(ca), None, None) => Some(TlsFiles { ca, client: None }),
            (Some(ca), Some(certificate), Some(key)) => {
                Some(TlsFiles { ca, client: Some((certificate, key)) })
            }
            _ => {
                let remedy = "write `tls-ca=…`, or `tls-ca=…&tls-cert=…&tls-key=…`, with paths of PEM files";
                return Err(("the files for TLS are not complete".into(), remedy.into()));
            }
        };
        Ok(settings)
    }

    /// How long to wait for a first connection.
    pub(super) fn patience(&self) -> Duration {
        self.max_sleep * self.max_retries
    }

    /// The servers, as they were given.
    pub(super) fn place(&self) -> String {
        self.servers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }

    /// The user and password, if any.
    pub(super) fn secret(&self) -> Result<Option<Secret>, RegistryError> {
        let Some(digest) = &self.digest else { return Ok(None) };
        let (text, place) = match digest {
            Digest::Given(secret) => (secret.0.clone(), "`digest`".to_owned()),
            Digest::Env(name) => {
                let missing = |_| {
                    RegistryError::Denied(format!("the environment has no variable `{name}` with the digest"))
                };
                (std::env::var(name).map_err(missing)?, format!("the variable `{name}`"))
            }
            Digest::File(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| RegistryError::Io { path: path.clone(), source })?;
                (text.trim_end_matches(['\r', '\n']).to_owned(), format!("the file {}", path.display()))
            }
        };
        if text.contains(':') {
            return Ok(Some(Secret(text)));
        }
        Err(RegistryError::Denied(format!("{place} is not a digest: write it as `user:password`")))
    }
}

fn server(text: &str) -> Result<Server, String> {
    let bad = || format!("`{text}` is not a server");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(bad)?;
            (host, rest.strip_prefix(':').or(rest.is_empty().then_some("")).ok_or_else(bad)?)
        }
        None => text.split_once(':').unwrap_or((text, "")),
    };
    let port = if port.is_empty() { PORT } else { port.parse().map_err(|_| bad())? };
    let is_host = |it: &str| !it.is_empty() && !it.contains(['[', ']', ' ']);
    if !is_host(host) || (host.contains(':') && !text.starts_with('[')) {
        return Err(bad());
    }
    Ok(Server { host: host.to_owned(), port })
}
