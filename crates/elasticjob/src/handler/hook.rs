//! Error handlers that post to a web hook: Java's DINGTALK and WECHAT, and SLACK and WEBHOOK.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Response, StatusCode, Url};
use serde_json::{Value, json};

use super::secret::{reveal, reveal_now};
use super::{ErrorHandler, FailureKind, Report, own, text};
use crate::executor::http::{ClientSettings, Http, read};
use crate::executor::output::{first_lines, quoted};
use crate::executor::{Props, TypeError};
use crate::job::JobError;

const KEYWORD: &str = "dingtalk.keyword";
const SECRET: &str = "dingtalk.secret";
const AUTHORIZATION_PROP: &str = "elasticjob.webhook.authorization";

const CONNECT_TIMEOUT_DEFAULT: u32 = 3000;
const READ_TIMEOUT_DEFAULT: u32 = 5000;

/// More of an answer is not read.
const ANSWER_MAX: usize = 16 * 1024;

/// What tells one service from another.
struct Service {
    /// The beginning of its properties.
    prefix: &'static str,
    url: &'static str,
    connect_timeout: &'static str,
    read_timeout: &'static str,
    /// A longer text is refused there.
    text_max: usize,
    /// It answers with `errcode`, which is 0 if all is well.
    has_code: bool,
}

const DINGTALK: Service = Service {
    prefix: "dingtalk.",
    url: "dingtalk.webhook",
    connect_timeout: "dingtalk.connectTimeoutMilliseconds",
    read_timeout: "dingtalk.readTimeoutMilliseconds",
    text_max: 18_000,
    has_code: true,
};

const WECHAT: Service = Service {
    prefix: "wechat.",
    url: "wechat.webhook",
    connect_timeout: "wechat.connectTimeoutMilliseconds",
    read_timeout: "wechat.readTimeoutMilliseconds",
    text_max: 2048,
    has_code: true,
};

const SLACK: Service = Service {
    prefix: "elasticjob.slack.",
    url: "elasticjob.slack.webhook",
    connect_timeout: "elasticjob.slack.connectTimeoutMilliseconds",
    read_timeout: "elasticjob.slack.readTimeoutMilliseconds",
    text_max: 30_000,
    has_code: false,
};

const WEBHOOK: Service = Service {
    prefix: "elasticjob.webhook.",
    url: "elasticjob.webhook.url",
    connect_timeout: "elasticjob.webhook.connectTimeoutMilliseconds",
    read_timeout: "elasticjob.webhook.readTimeoutMilliseconds",
    text_max: 256 * 1024,
    has_code: false,
};

/// Posts reports to a service.
pub(super) struct Hook {
    service: &'static Service,
    body: fn(&Report, Props<'_>) -> Value,
    http: Http,
}

impl Hook {
    pub(super) fn dingtalk() -> Hook {
        Hook::new(&DINGTALK, |report, props| {
            let words = format!("{}{}", props.text(KEYWORD).unwrap_or_default(), report.text());
            chat_text(&text::cut(&words, DINGTALK.text_max))
        })
    }

    pub(super) fn wechat() -> Hook {
        Hook::new(&WECHAT, |report, _| chat_text(&text::cut(&report.text(), WECHAT.text_max)))
    }

    pub(super) fn slack() -> Hook {
        Hook::new(&SLACK, |report, _| json!({ "text": text::cut(&report.text(), SLACK.text_max) }))
    }

    pub(super) fn webhook() -> Hook {
        Hook::new(&WEBHOOK, |report, _| {
            json!({
                "text": text::cut(&report.text(), WEBHOOK.text_max),
                "count": report.count(),
                "others": report.others,
                "failures": report.kinds.iter().map(kind).collect::<Vec<_>>(),
            })
        })
    }

    fn new(service: &'static Service, body: fn(&Report, Props<'_>) -> Value) -> Hook {
        Hook { service, body, http: Http::default() }
    }
}

fn chat_text(text: &str) -> Value {
    json!({ "msgtype": "text", "text": { "content": text } })
}

fn kind(kind: &FailureKind) -> Value {
    let first = &kind.first;
    json!({
        "job": &*first.job,
        "item": first.item,
        "items": kind.items,
        "run": first.run.as_deref(),
        "message": &*first.message,
        "count": kind.count,
        "first": first.at.to_string(),
        "last": kind.last.to_string(),
    })
}

/// What the properties say, secrets not looked up.
struct Settings<'a> {
    url: &'a str,
    secret: Option<&'a str>,
    authorization: Option<&'a str>,
    client: ClientSettings,
}

impl<'a> Settings<'a> {
    fn read(service: &Service, props: Props<'a>) -> Result<Settings<'a>, TypeError> {
        let url = props.text(service.url);
        let only = |is: bool, key: &str| if is { props.text(key) } else { None };
        Ok(Settings {
            url: url.ok_or_else(|| TypeError::missing(service.url, "write where reports are posted to"))?,
            secret: only(service.prefix == DINGTALK.prefix, SECRET),
            authorization: only(service.prefix == WEBHOOK.prefix, AUTHORIZATION_PROP),
            client: ClientSettings {
                connect: millis(props, service.connect_timeout, CONNECT_TIMEOUT_DEFAULT)?,
                read: millis(props, service.read_timeout, READ_TIMEOUT_DEFAULT)?,
                redirects: 0,
                ca: props.text(super::CA).map(PathBuf::from),
            },
        })
    }
}

fn millis(props: Props<'_>, key: &str, default: u32) -> Result<Option<Duration>, TypeError> {
    let millis = props.count(key, 1..=i32::MAX.cast_unsigned())?.unwrap_or(default);
    Ok(Some(Duration::from_millis(u64::from(millis))))
}

/// An address may be a secret, so a wrong one is not shown.
fn address(key: &str, text: &str) -> Result<Url, TypeError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| {
        TypeError::secret(key, "is no address: write one that begins with http:// or https://".to_owned())
    })
}

/// What DingTalk wants to see of a robot that has a secret.
fn sign(url: &mut Url, secret: &str, now: Timestamp) {
    let millis = now.as_millisecond().to_string();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let tag = ring::hmac::sign(&key, format!("{millis}\n{secret}").as_bytes());
    let signature = BASE64_STANDARD.encode(tag.as_ref());
    url.query_pairs_mut().append_pair("timestamp", &millis).append_pair("sign", &signature);
}

impl ErrorHandler for Hook {
    fn check(&self, props: &BTreeMap<String, String>) -> Result<(), JobError> {
        let settings = Settings::read(self.service, Props(props))?;
        address(self.service.url, &reveal_now(self.service.url, settings.url)?)?;
        let others = [(SECRET, settings.secret), (AUTHORIZATION_PROP, settings.authorization)];
        for (key, text) in others {
            text.map(|text| reveal_now(key, text)).transpose()?;
        }
        Ok(())
    }

    fn destination(&self, props: &BTreeMap<String, String>) -> String {
        own(props, self.service.prefix)
    }

    async fn handle(&self, report: Report) -> Result<(), JobError> {
        let props = Props(&report.props);
        let settings = Settings::read(self.service, props)?;
        let mut url = address(self.service.url, &reveal(self.service.url, settings.url).await?)?;
        if let Some(secret) = settings.secret {
            sign(&mut url, &reveal(SECRET, secret).await?, Timestamp::now());
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        let client = self.http.client(&settings.client, url.scheme() == "https").await?;
        let body = (self.body)(&report, props).to_string();
        let mut request = client.post(url).header(CONTENT_TYPE, "application/json").body(body);
        if let Some(text) = settings.authorization {
            let value = reveal(AUTHORIZATION_PROP, text).await?;
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                TypeError::secret(AUTHORIZATION_PROP, "cannot be sent: it has line breaks".to_owned())
            })?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        // The address may be a secret.
        let lost = |error: reqwest::Error| HookError::Lost { host: host.clone(), error: error.without_url() };
        let response = request.send().await.map_err(lost)?;
        settle(self.service, &host, response).await
    }
}

/// What goes wrong at the other end.
#[derive(Debug, thiserror::Error)]
enum HookError {
    #[error("cannot post to {host}")]
    Lost {
        host: String,
        #[source]
        error: reqwest::Error,
    },
    #[error("{host} answered {status}{}", quoted(body))]
    Status { host: String, status: StatusCode, body: Vec<String> },
    #[error("{host} answered {status}, a redirect, which is not followed: a secret may be in the request")]
    Redirected { host: String, status: StatusCode },
    #[error("{host} refused it with errcode {code}: {message}")]
    Refused { host: String, code: i64, message: String },
    #[error("{host} answered something else than JSON with an errcode{}", quoted(body))]
    NoCode { host: String, body: Vec<String> },
}

async fn settle(service: &Service, host: &str, response: Response) -> Result<(), JobError> {
    let (host, status) = (host.to_owned(), response.status());
    if status.is_redirection() && response.headers().contains_key(LOCATION) {
        return Err(HookError::Redirected { host, status }.into());
    }
    let mut body = Vec::new();
    let whole = read(response, ANSWER_MAX, &mut body).await;
    if !status.is_success() || (service.has_code && status != StatusCode::OK) {
        return Err(HookError::Status { host, status, body: first_lines(&body) }.into());
    }
    if !service.has_code {
        return Ok(()); // The status says all.
    }
    whole.map_err(|error| HookError::Lost { host: host.clone(), error: error.without_url() })?;
    let answer: Option<Value> = serde_json::from_slice(&body).ok();
    match answer.as_ref().and_then(|it| it.get("errcode")).and_then(Value::as_i64) {
        Some(0) => Ok(()),
        Some(code) => {
            let message = answer.as_ref().and_then(|it| it.get("errmsg")).and_then(Value::as_str);
            let message = text::cut(message.unwrap_or_default(), 200);
            Err(HookError::Refused { host, code, message }.into())
        }
        None => Err(HookError::NoCode { host, body: first_lines(&body) }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_robot_with_a_secret_is_signed_as_java_signs_it() {
        let mut url = Url::parse("https://oapi.dingtalk.com/robot/send?access_token=a").unwrap();
        sign(&mut url, "SEC-test", Timestamp::from_millisecond(1_600_000_000_000).unwrap());
        // printf '1600000000000\nSEC-test' | openssl dgst -sha256 -hmac SEC-test -binary | base64
        assert_eq!(
            url.as_str(),
            "https://oapi.dingtalk.com/robot/send?access_token=a&timestamp=1600000000000&sign=8TG41bY4T%2BVA48QncC1ejuskMUjFaA90LaAabsF%2F0HM%3D"
        );
    }

    #[test]
    fn what_is_wrong_is_said_without_the_secret() {
        let said = |hook: &Hook, props: &[(&str, &str)]| {
            let props: BTreeMap<String, String> =
                props.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            ErrorHandler::check(hook, &props).map_or_else(|error| error.to_string(), |()| "fine".to_owned())
        };
        assert_eq!(
            said(&Hook::wechat(), &[]),
            "property wechat.webhook is missing: write where reports are posted to"
        );
        assert_eq!(
            said(&Hook::slack(), &[("elasticjob.slack.webhook", "hunter2")]),
            "property elasticjob.slack.webhook is no address: write one that begins with http:// or https://"
        );
        let url = ("dingtalk.webhook", "https://x/");
        assert_eq!(said(&Hook::dingtalk(), &[url]), "fine");
        let millis = "dingtalk.readTimeoutMilliseconds";
        for wrong in ["0", "-5", "5s"] {
            let said = said(&Hook::dingtalk(), &[url, (millis, wrong)]);
            assert!(said.starts_with(&format!("property {millis} `{wrong}` is no such number")), "{said}");
        }
        let said = said(
            &Hook::webhook(),
            &[("elasticjob.webhook.url", "http://x"), (AUTHORIZATION_PROP, "${NO_SUCH_X}")],
        );
        assert!(said.contains("needs the environment variable NO_SUCH_X"), "{said}");
    }
}
