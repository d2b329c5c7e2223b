//! The error handler EMAIL, with Java's properties.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lettre::message::{Mailbox, MultiPart, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};

use super::secret::{reveal, reveal_now};
use super::{ErrorHandler, Report, own};
use crate::executor::{Props, TypeError};
use crate::job::JobError;

const HOST: &str = "email.host";
const PORT: &str = "email.port";
const USERNAME: &str = "email.username";
const PASSWORD: &str = "email.password";
const USE_SSL: &str = "email.useSsl";
const SSL_TRUST: &str = "email.ssl.trust";
const SUBJECT: &str = "email.subject";
const FROM: &str = "email.from";
const TO: &str = "email.to";
const CC: &str = "email.cc";
const BCC: &str = "email.bcc";
/// How the connection is made secret, where `email.useSsl` says too little.
const TLS: &str = "elasticjob.email.tls";

const SUBJECT_DEFAULT: &str = "ElasticJob error message";

/// Mails reports.
pub(super) struct Mail;

/// How the connection is made secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secrecy {
    /// From the first byte.
    Implicit,
    /// After a greeting in clear, or not at all.
    StartTls,
    None,
}

/// What the properties say, secrets not looked up.
struct Settings {
    host: String,
    port: u16,
    /// A name, and where its password is found.
    user: Option<(String, String)>,
    secrecy: Secrecy,
    /// Whoever answers at the host is believed to be it.
    trusting: bool,
    ca: Option<PathBuf>,
    subject: String,
    from: Mailbox,
    to: Vec<Mailbox>,
    cc: Vec<Mailbox>,
    bcc: Vec<Mailbox>,
}

impl Settings {
    fn read(props: Props<'_>) -> Result<Settings, TypeError> {
        let must = |key: &str, remedy: &str| {
            props.text(key).map(str::trim).ok_or_else(|| TypeError::missing(key, remedy))
        };
        let host = must(HOST, "write the name of the mail server")?.to_owned();
        let port = props.count(PORT, 1..=u32::from(u16::MAX))?;
        let port = port.and_then(|port| u16::try_from(port).ok());
        let from = mailbox(FROM, must(FROM, "write who the mail is from")?)?;
        let to = mailboxes(props, TO)?;
        if to.is_empty() {
            return Err(TypeError::missing(TO, "write who gets the mail, with commas between"));
        }
        Ok(Settings {
            port: port
                .ok_or_else(|| TypeError::missing(PORT, "write the mail server's port, such as 465"))?,
            user: user(props)?,
            secrecy: secrecy(props)?,
            trusting: props.text(SSL_TRUST).is_some_and(|text| {
                text.split_whitespace().any(|it| it == "*" || it.eq_ignore_ascii_case(&host))
            }),
            ca: props.text(super::CA).map(PathBuf::from),
            subject: props.text(SUBJECT).unwrap_or(SUBJECT_DEFAULT).to_owned(),
            from,
            to,
            cc: mailboxes(props, CC)?,
            bcc: mailboxes(props, BCC)?,
            host,
        })
    }

    fn message(&self, report: &Report) -> Result<Message, JobError> {
        let mut message =
            Message::builder().message_id(None).from(self.from.clone()).subject(self.subject.clone());
        for to in &self.to {
            message = message.to(to.clone());
        }
        for cc in &self.cc {
            message = message.cc(cc.clone());
        }
        for bcc in &self.bcc {
            message = message.bcc(bcc.clone());
        }
        let html = format!("<pre>{}</pre>\n", escaped(&report.text()));
        Ok(message.multipart(MultiPart::mixed().singlepart(SinglePart::html(html)))?)
    }

    /// Reads the certificates of the host, which takes a while.
    fn tls(&self) -> Result<Tls, JobError> {
        if self.secrecy == Secrecy::None {
            return Ok(Tls::None);
        }
        let mut parameters =
            TlsParameters::builder(self.host.clone()).dangerous_accept_invalid_certs(self.trusting);
        if let Some(path) = &self.ca {
            let unreadable =
                |error: String| format!("cannot read the certificates of {}: {error}", path.display());
            let pem = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
            let certificate = Certificate::from_pem(&pem).map_err(|error| unreadable(error.to_string()))?;
            parameters = parameters.add_root_certificate(certificate);
        }
        let parameters = parameters.build_rustls()?;
        Ok(match self.secrecy {
            Secrecy::Implicit => Tls::Wrapper(parameters),
            Secrecy::StartTls | Secrecy::None => Tls::Required(parameters),
        })
    }
}

/// A relay may want neither name nor password.
fn user(props: Props<'_>) -> Result<Option<(String, String)>, TypeError> {
    match (props.text(USERNAME), props.text(PASSWORD)) {
        (None, None) => Ok(None),
        (Some(name), Some(password)) => Ok(Some((name.trim().to_owned(), password.to_owned()))),
        (Some(_), None) => {
            Err(TypeError::missing(PASSWORD, "write where it is found, as ${NAME} or ${file:/path}"))
        }
        (None, Some(_)) => Err(TypeError::missing(USERNAME, "write whose password it is")),
    }
}

fn secrecy(props: Props<'_>) -> Result<Secrecy, TypeError> {
    let Some(text) = props.text(TLS) else {
        let is_on = props.text(USE_SSL).is_none() || props.java_flag(USE_SSL);
        return Ok(if is_on { Secrecy::Implicit } else { Secrecy::None });
    };
    match text.trim().to_ascii_lowercase().as_str() {
        "implicit" => Ok(Secrecy::Implicit),
        "starttls" => Ok(Secrecy::StartTls),
        "none" => Ok(Secrecy::None),
        _ => Err(TypeError::wrong(TLS, text, "is no way to use TLS: write implicit, starttls or none")),
    }
}

fn mailboxes(props: Props<'_>, key: &str) -> Result<Vec<Mailbox>, TypeError> {
    let list = props.text(key).unwrap_or_default().split(',').map(str::trim);
    list.filter(|text| !text.is_empty()).map(|text| mailbox(key, text)).collect()
}

fn mailbox(key: &str, text: &str) -> Result<Mailbox, TypeError> {
    text.parse().map_err(|_| {
        TypeError::wrong(
            key,
            text,
            "is no mail address: write one such as ops@example.com or Ops <ops@example.com>",
        )
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl ErrorHandler for Mail {
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
        let settings = Settings::read(Props(props))?;
        if let Some((_, password)) = &settings.user {
            reveal_now(PASSWORD, password)?;
        }
        Ok(())
    }

    fn destination(&self, props: &BTreeMap<String, String>) -> String {
        own(props, "email.") + &own(props, "elasticjob.email.")
    }

    async fn handle(&self, report: Report) -> Result<(), JobError> {
        let settings = Settings::read(Props(&report.props))?;
        let message = settings.message(&report)?;
        let credentials = match &settings.user {
            Some((name, password)) => Some(Credentials::new(name.clone(), reveal(PASSWORD, password).await?)),
            None => None,
        };
        let (host, port) = (settings.host.clone(), settings.port);
        let tls = tokio::task::spawn_blocking(move || settings.tls()).await??;
        // The deadline is the caller's.
        let mut server =
            AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host).port(port).timeout(None).tls(tls);
        if let Some(credentials) = credentials {
            server = server.credentials(credentials);
        }
        server.build().send(message).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH: [(&str, &str); 4] = [
        (HOST, "mail.example.com"),
        (PORT, "465"),
        (FROM, "a@example.com"),
        (TO, "b@example.com, C <c@example.com>"),
    ];

    fn read(more: &[(&str, &str)]) -> Result<Settings, String> {
        let props: BTreeMap<String, String> =
            ENOUGH.iter().chain(more).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Settings::read(Props(&props)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_defaults_are_java_s() {
        let it = read(&[]).unwrap();
        assert_eq!(
            (it.subject.as_str(), it.secrecy, it.trusting),
            (SUBJECT_DEFAULT, Secrecy::Implicit, false)
        );
        assert_eq!((it.to.len(), it.cc.len(), it.bcc.len()), (2, 0, 0));
        assert_eq!(read(&[(USE_SSL, "false")]).unwrap().secrecy, Secrecy::None);
        assert_eq!(read(&[(USE_SSL, "TRUE")]).unwrap().secrecy, Secrecy::Implicit);
        assert_eq!(read(&[(TLS, "starttls"), (USE_SSL, "false")]).unwrap().secrecy, Secrecy::StartTls);
        assert!(read(&[(SSL_TRUST, "*")]).unwrap().trusting);
        assert!(read(&[(SSL_TRUST, "other Mail.example.com")]).unwrap().trusting);
        assert!(!read(&[(SSL_TRUST, "example.com")]).unwrap().trusting);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |more: &[(&str, &str)]| read(more).err().unwrap();
        for key in [HOST, PORT, FROM, TO] {
            assert!(said(&[(key, " ")]).starts_with(&format!("property {key} is missing: ")));
        }
        assert!(said(&[(PORT, "70000")]).contains("write one from 1 to 65535"));
        assert!(said(&[(FROM, "nobody")]).starts_with("property email.from `nobody` is no mail address"));
        assert!(said(&[(CC, "x@example.com,nobody")]).starts_with("property email.cc `nobody` is no mail"));
        assert!(said(&[(USERNAME, "ann")]).starts_with("property email.password is missing"));
        assert!(said(&[(PASSWORD, "${X}")]).starts_with("property email.username is missing"));
        assert!(said(&[(TLS, "ssl")]).contains("write implicit, starttls or none"));
    }
}
