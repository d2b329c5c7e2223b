//! HTTP jobs: a request for each shard, with the shard as JSON in a header, as Java sends it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, StatusCode, Url};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Mutex;

use super::context;
use super::output::{first_lines, quoted};
use super::props::{Props, Shown, TypeError};
use crate::job::http::{
    CA, CONNECT_TIMEOUT, CONTENT_TYPE as CONTENT_TYPE_PROP, DATA, METHOD, READ_TIMEOUT, REDIRECTS, RETRIES,
    TIMEOUT, URI,
};
use crate::job::{JobError, Shard};

/// The header that holds the shard. Names of headers have no case.
const HEADER: &str = "shardingcontext";

const CONNECT_TIMEOUT_DEFAULT: u32 = 3000;
const READ_TIMEOUT_DEFAULT: u32 = 5000;
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60 * 60);
const REDIRECTS_MAX: u32 = 20;
const RETRIES_MAX: u32 = 10;

/// No more of an answer is read.
const BODY_MAX: usize = 1024 * 1024;
/// Of one that says what went wrong, the first lines will do.
const ERROR_BODY_MAX: usize = 8 * 1024;

/// Between two attempts: the first pause, which doubles each time, and the longest.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What the properties say.
struct Settings {
    uri: Url,
    method: Method,
    body: Option<String>,
    content_type: Option<HeaderValue>,
    limit: Duration,
    retries: u32,
    client: ClientSettings,
}

/// The part of it that a client is made for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    pub(crate) connect: Option<Duration>,
    pub(crate) read: Option<Duration>,
    pub(crate) redirects: u32,
    pub(crate) ca: Option<PathBuf>,
}

impl Settings {
    fn read(props: Props<'_>) -> Result<Settings, TypeError> {
        let method = method(props)?;
        let has_body = matches!(method, Method::POST | Method::PUT | Method::DELETE | Method::PATCH);
        let body = props.0.get(DATA).filter(|data| has_body && !data.is_empty()).cloned();
        let content_type = match props.text(CONTENT_TYPE_PROP) {
            Some(text) => Some(HeaderValue::from_str(text.trim()).map_err(|_| {
                TypeError::wrong(
                    CONTENT_TYPE_PROP,
                    text,
                    "is no content type: write one such as application/json",
                )
            })?),
            // What Java says of a body when nobody else does.
            None if body.is_some() && method != Method::PUT => {
                Some(HeaderValue::from_static("application/x-www-form-urlencoded"))
            }
            None => None,
        };
        Ok(Settings {
            uri: uri(props)?,
            method,
            body,
            content_type,
            limit: props.duration(TIMEOUT)?.unwrap_or(TIMEOUT_DEFAULT),
            retries: props.count(RETRIES, 0..=RETRIES_MAX)?.unwrap_or(0),
            client: ClientSettings {
                connect: millis(props, CONNECT_TIMEOUT, CONNECT_TIMEOUT_DEFAULT)?,
                read: millis(props, READ_TIMEOUT, READ_TIMEOUT_DEFAULT)?,
                redirects: redirects(props)?,
                ca: props.text(CA).map(PathBuf::from),
            },
        })
    }

    /// The request as messages name it: without what may be secret.
    fn name(&self) -> String {
        let host = self.uri.host_str().unwrap_or_default();
        let port = self.uri.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("{} {}://{host}{port}{}", self.method, self.uri.scheme(), Shown(self.uri.path()))
    }
}

fn uri(props: Props<'_>) -> Result<Url, TypeError> {
    const EXPECTED: &str = "is no address: write one that begins with http:// or https://";
    let text = props.text(URI).ok_or_else(|| TypeError::missing(URI, "write where the request goes"))?;
    let uri = Url::parse(text.trim()).map_err(|_| TypeError::wrong(URI, text, EXPECTED))?;
    match uri.scheme() {
        "http" | "https" => Ok(uri),
        _ => Err(TypeError::wrong(URI, text, EXPECTED)),
    }
}

fn method(props: Props<'_>) -> Result<Method, TypeError> {
    let Some(text) = props.text(METHOD) else { return Ok(Method::GET) };
    match text.trim().to_ascii_uppercase().as_str() {
        "GET" => Ok(Method::GET),
        "HEAD" => Ok(Method::HEAD),
        "POST" => Ok(Method::POST),
        "PUT" => Ok(Method::PUT),
        "DELETE" => Ok(Method::DELETE),
        "PATCH" => Ok(Method::PATCH),
        "OPTIONS" => Ok(Method::OPTIONS),
        "TRACE" => Ok(Method::TRACE),
        _ => Err(TypeError::wrong(
            METHOD,
            text,
            "is no method: write GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS or TRACE",
        )),
    }
}

/// Milliseconds; 0 is no limit, as it is to Java.
fn millis(props: Props<'_>, key: &str, default: u32) -> Result<Option<Duration>, TypeError> {
    let millis = props.count(key, 0..=i32::MAX.cast_unsigned())?.unwrap_or(default);
    Ok(Some(Duration::from_millis(u64::from(millis))).filter(|limit| !limit.is_zero()))
}

fn redirects(props: Props<'_>) -> Result<u32, TypeError> {
    match props.text(REDIRECTS).map(|text| text.trim().to_ascii_lowercase()).as_deref() {
        Some("false") => Ok(0),
        Some("true") => Ok(REDIRECTS_MAX),
        _ => Ok(props.count(REDIRECTS, 0..=REDIRECTS_MAX)?.unwrap_or(0)),
    }
}

pub(super) fn check(props: Props<'_>) -> Result<(), TypeError> {
    Settings::read(props).map(drop)
}

/// What goes wrong with a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("cannot read the certificates of {}: {error}", path.display())]
    Ca { path: PathBuf, error: String },
    #[error("this host has no certificates to trust: install its ca-certificates, or name a file in {CA}")]
    NoRoots,
    #[error("cannot make a client")]
    Client(#[source] JobError),
    #[error("{request}: cannot connect")]
    Connect {
        request: String,
        #[source]
        error: reqwest::Error,
    },
    #[error("{request}: no connection within {limit:?}")]
    ConnectTimeout { request: String, limit: Duration },
    #[error("{request}: no answer within {limit:?}")]
    ReadTimeout { request: String, limit: Duration },
    #[error("{request}: not done within {limit:?}")]
    TooLong { request: String, limit: Duration },
    #[error("{request}: the answer broke off")]
    Broken {
        request: String,
        #[source]
        error: reqwest::Error,
    },
    #[error("{request} answered {status}{}", quoted(body))]
    Status { request: String, status: StatusCode, body: Vec<String> },
    #[error(
        "{request} answered {status}, a redirect to `{to}`, which is not followed: correct {URI}, or allow it with {REDIRECTS}"
    )]
    Redirected { request: String, status: StatusCode, to: String },
    #[error("gave up after {attempts} attempts")]
    GaveUp {
        attempts: u32,
        #[source]
        error: Box<HttpError>,
    },
    #[error("{request} was stopped")]
    Stopped { request: String },
}

impl HttpError {
    /// Whether the same request may have better luck later.
    fn passes(&self) -> bool {
        match self {
            HttpError::Connect { .. }
            | HttpError::ConnectTimeout { .. }
            | HttpError::ReadTimeout { .. }
            | HttpError::TooLong { .. }
            | HttpError::Broken { .. } => true,
            HttpError::Status { status, .. } => {
                status.is_server_error()
                    || matches!(*status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
            }
            HttpError::Ca { .. }
            | HttpError::NoRoots
            | HttpError::Client(_)
            | HttpError::Redirected { .. }
            | HttpError::GaveUp { .. }
            | HttpError::Stopped { .. } => false,
        }
    }
}

/// The requests of one job.
#[derive(Default)]
pub(crate) struct Http {
    /// Reading the host's certificates takes a while: the client stays until its settings change.
    client: Mutex<Option<(ClientSettings, Client)>>,
}

impl Http {
    pub(super) async fn run(&self, shard: &Shard, props: Props<'_>) -> Result<(), JobError> {
        let settings = Settings::read(props)?;
        tokio::select! {
            result = self.request(shard, &settings) => result.map_err(JobError::from),
            () = shard.cancelled() => Err(HttpError::Stopped { request: settings.name() }.into()),
        }
    }

    async fn request(&self, shard: &Shard, settings: &Settings) -> Result<(), HttpError> {
        // Plain requests go without certificates; if they are redirected to TLS, they need them, too.
        let client = self.client(&settings.client, settings.uri.scheme() == "https").await?;
        let mut pause = PAUSE;
        for attempts in 1.. {
            let attempt = tokio::time::timeout(settings.limit, send(&client, shard, settings));
            let result = attempt.await.unwrap_or_else(|_| {
                Err(HttpError::TooLong { request: settings.name(), limit: settings.limit })
            });
            match result {
                Err(error) if error.passes() && attempts <= settings.retries => {
                    let (job, item) = (&*shard.job, shard.item);
                    tracing::warn!(job, item, "{}; trying again in {pause:?}", super::with_causes(&error));
                    tokio::time::sleep(pause).await;
                    pause = PAUSE_MAX.min(pause * 2);
                }
                Err(error) if attempts > 1 => {
                    return Err(HttpError::GaveUp { attempts, error: Box::new(error) });
                }
                result => return result,
            }
        }
        Ok(())
    }

    pub(crate) async fn client(
        &self,
        settings: &ClientSettings,
        needs_roots: bool,
    ) -> Result<Client, HttpError> {
        let mut kept = self.client.lock().await;
        if let Some((made_for, client)) = &*kept
            && made_for == settings
        {
            return Ok(client.clone());
        }
        let wanted = settings.clone();
        let built = tokio::task::spawn_blocking(move || build(&wanted, needs_roots)).await;
        let client = built.map_err(|error| HttpError::Client(error.into()))??;
        *kept = Some((settings.clone(), client.clone()));
        Ok(client)
    }
}

fn build(settings: &ClientSettings, needs_roots: bool) -> Result<Client, HttpError> {
    let roots = roots(settings.ca.as_deref())?;
    if roots.is_empty() && needs_roots {
        return Err(HttpError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::Client(error.into()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("elasticjob/", env!("CARGO_PKG_VERSION")))
        .redirect(policy(settings.redirects))
        .referer(false)
        .no_proxy()
        // A connection that waited for the next round may be dead by then, and the request lost with it.
        .pool_max_idle_per_host(0)
        .retry(reqwest::retry::never());
    if let Some(limit) = settings.connect {
        client = client.connect_timeout(limit);
    }
    if let Some(limit) = settings.read {
        client = client.read_timeout(limit);
    }
    client.build().map_err(|error| HttpError::Client(error.into()))
}

/// Whom to trust: those whom the host trusts, and those of the file.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, HttpError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::debug!("certificates of the host: {error}");
    }
    // The host may have some that no longer are what TLS accepts: they are of no use, and do no harm.
    roots.add_parsable_certificates(found.certs);
    let Some(path) = ca else { return Ok(roots) };
    let unreadable = |error: String| HttpError::Ca { path: path.to_owned(), error };
    let mut count = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
        count += 1;
    }
    match count {
        0 => Err(unreadable("there are none in PEM format".to_owned())),
        _ => Ok(roots),
    }
}

/// So many redirects are followed, and none from TLS to plain text.
fn policy(max: u32) -> Policy {
    if max == 0 {
        return Policy::none();
    }
    Policy::custom(move |attempt| {
        let was_secret = attempt.previous().last().is_some_and(|url| url.scheme() == "https");
        let told = was_secret && attempt.url().scheme() != "https";
        if told || attempt.previous().len() > max as usize { attempt.stop() } else { attempt.follow() }
    })
}

async fn send(client: &Client, shard: &Shard, settings: &Settings) -> Result<(), HttpError> {
    let mut request =
        client.request(settings.method.clone(), settings.uri.clone()).header(HEADER, context::header(shard));
    if let Some(content_type) = &settings.content_type {
        request = request.header(CONTENT_TYPE, content_type);
    }
    if let Some(body) = &settings.body {
        request = request.body(body.clone());
    }
    let response = request.send().await.map_err(|error| explain(error, settings))?;
    settle(response, settings, shard).await
}

async fn settle(response: Response, settings: &Settings, shard: &Shard) -> Result<(), HttpError> {
    let (status, request) = (response.status(), settings.name());
    if let Some(to) = response.headers().get(LOCATION).filter(|_| status.is_redirection()) {
        let to = Shown(&String::from_utf8_lossy(to.as_bytes())).to_string();
        return Err(HttpError::Redirected { request, status, to });
    }
    if status.is_client_error() || status.is_server_error() || status.as_u16() >= 600 {
        // It has failed; what can be read of the reasons is read.
        let mut body = Vec::new();
        read(response, ERROR_BODY_MAX, &mut body).await.ok();
        return Err(HttpError::Status { request, status, body: first_lines(&body) });
    }
    let mut body = Vec::new();
    let whole = read(response, BODY_MAX, &mut body).await.map_err(|error| explain(error, settings))?;
    let (job, item, lines) = (&*shard.job, shard.item, first_lines(&body));
    tracing::debug!(job, item, %status, bytes = body.len(), whole, "{request} answered{}", quoted(&lines));
    Ok(())
}

/// Says whether this was all of it.
pub(crate) async fn read(
    mut response: Response,
    max: usize,
    body: &mut Vec<u8>,
) -> Result<bool, reqwest::Error> {
    while let Some(chunk) = response.chunk().await? {
        let room = max - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok(false);
        }
    }
    Ok(true)
}

fn explain(error: reqwest::Error, settings: &Settings) -> HttpError {
    let (request, error) = (settings.name(), error.without_url());
    let limits = &settings.client;
    match (error.is_timeout(), error.is_connect(), limits.connect, limits.read) {
        (true, true, Some(limit), _) => HttpError::ConnectTimeout { request, limit },
        (true, false, _, Some(limit)) => HttpError::ReadTimeout { request, limit },
        (_, true, ..) => HttpError::Connect { request, error },
        _ => HttpError::Broken { request, error },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(props: &[(&str, &str)]) -> Result<Settings, String> {
        let props: BTreeMap<String, String> =
            props.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Settings::read(Props(&props)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_java_s() {
        let it = read(&[(URI, "https://example.com/a?token=secret")]).unwrap();
        assert_eq!((it.method.as_str(), it.body.clone(), it.content_type.clone()), ("GET", None, None));
        assert_eq!(it.client.connect, Some(Duration::from_secs(3)));
        assert_eq!(it.client.read, Some(Duration::from_secs(5)));
        assert_eq!((it.client.redirects, it.retries), (0, 0));
        assert_eq!(it.name(), "GET https://example.com/a", "no secrets in messages");
        let it = read(&[(URI, "http://ann:pw@[::1]:8080/")]).unwrap();
        assert_eq!(it.name(), "GET http://[::1]:8080/");
        let it = read(&[(URI, "http://a"), (CONNECT_TIMEOUT, "0"), (READ_TIMEOUT, "60000")]).unwrap();
        assert_eq!((it.client.connect, it.client.read), (None, Some(Duration::from_secs(60))));
    }

    #[test]
    fn a_body_goes_with_the_methods_that_have_one_and_is_a_form_unless_said() {
        let sent = |method, content_type| {
            let it = read(&[
                (URI, "http://a"),
                (METHOD, method),
                (DATA, "a=1"),
                (CONTENT_TYPE_PROP, content_type),
            ]);
            let it = it.unwrap();
            (it.body, it.content_type.map(|it| it.to_str().unwrap().to_owned()))
        };
        let form = || Some("application/x-www-form-urlencoded".to_owned());
        let json = || Some("application/json".to_owned());
        let body = || Some("a=1".to_owned());
        assert_eq!(sent("POST", ""), (body(), form()));
        assert_eq!(sent("delete", ""), (body(), form()));
        assert_eq!(sent("PUT", ""), (body(), None));
        assert_eq!(sent("PUT", "application/json"), (body(), json()));
        assert_eq!(sent("GET", ""), (None, None));
        assert_eq!(sent("GET", "application/json"), (None, json()));
    }

    #[test]
    fn what_is_wrong_names_the_property_and_the_remedy() {
        let wrong = |key, value| {
            let message = read(&[(URI, "http://a"), (key, value)]).err().unwrap();
            assert!(message.starts_with(&format!("property {key} `{value}` is no ")), "{message}");
        };
        wrong(URI, "ftp://example.com");
        wrong(URI, "/relative");
        wrong(METHOD, "CONNECT");
        wrong(METHOD, "GET /");
        wrong(CONNECT_TIMEOUT, "-1");
        wrong(READ_TIMEOUT, "5s");
        wrong(RETRIES, "11");
        wrong(REDIRECTS, "maybe");
        wrong(TIMEOUT, "5");
        let message = read(&[(URI, "http://a"), (CONTENT_TYPE_PROP, "text/\u{1}")]).err().unwrap();
        assert!(message.contains("is no content type"), "{message}");
        let message = read(&[]).err().unwrap();
        assert_eq!(message, "property http.uri is missing: write where the request goes");
    }
}
