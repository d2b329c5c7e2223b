//! Which registry a url names.

use std::path::PathBuf;
use std::time::Duration;

use super::RegistryError;
use super::embedded::{Embedded, SESSION_TIMEOUT};

/// A registry that can be opened.
#[derive(Debug, PartialEq)]
pub(super) enum Place {
    Embedded(EmbeddedPlace),
    #[cfg(feature = "zookeeper")]
    ZooKeeper(Box<super::zookeeper::Settings>),
}

/// An embedded registry that can be opened.
#[derive(Debug, PartialEq)]
pub(super) struct EmbeddedPlace {
    home: Home,
    session_timeout: Duration,
}

#[derive(Debug, PartialEq)]
enum Home {
    Private,
    Named(String),
    Directory(PathBuf),
}

impl EmbeddedPlace {
    pub(super) fn open(self) -> Result<Embedded, RegistryError> {
        let registry = match self.home {
            Home::Private => Embedded::new(),
            Home::Named(name) => Embedded::named(&name),
            Home::Directory(path) => Embedded::durable(path)?,
        };
        Ok(registry.with_session_timeout(self.session_timeout))
    }
}

const EXAMPLES: &str = "write `embedded://`, `embedded://name` or `embedded:///directory`";
const LONGEST_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) fn parse(url: &str) -> Result<Place, RegistryError> {
    let bad = |problem: String, remedy: String| RegistryError::BadUrl { url: shown(url), problem, remedy };
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(bad("it has no scheme".into(), EXAMPLES.into()));
    };
    match scheme {
        "embedded" => embedded(rest).map(Place::Embedded).map_err(|(problem, remedy)| bad(problem, remedy)),
        #[cfg(feature = "zookeeper")]
        "zookeeper" => super::zookeeper::Settings::parse(rest, timeout)
            .map(|it| Place::ZooKeeper(Box::new(it)))
            .map_err(|(problem, remedy)| bad(problem, remedy)),
        #[cfg(not(feature = "zookeeper"))]
        "zookeeper" => Err(RegistryError::MissingFeature { url: shown(url), feature: "zookeeper" }),
        "etcd" => Err(RegistryError::MissingFeature { url: shown(url), feature: "etcd" }),
        _ => Err(bad(
            format!("unknown scheme `{scheme}`"),
            "the known ones are embedded, zookeeper, etcd".into(),
        )),
    }
}

/// The problem and the remedy.
type Bad = (String, String);

fn embedded(rest: &str) -> Result<EmbeddedPlace, Bad> {
    let (home, query) = rest.split_once('?').unwrap_or((rest, ""));
    let home = match home {
        "" => Home::Private,
        path if path.starts_with('/') => Home::Directory(PathBuf::from(path)),
        name if is_name(name) => Home::Named(name.to_owned()),
        path if path.contains('/') => {
            let remedy = format!("for a directory write `embedded:///{path}`, with three slashes");
            return Err((format!("`{path}` is not a name"), remedy));
        }
        name => {
            return Err((
                format!("`{name}` is not a name"),
                "a name has letters, digits, `-`, `_` and `.`".into(),
            ));
        }
    };
    let mut session_timeout = SESSION_TIMEOUT;
    for setting in query.split('&').filter(|it| !it.is_empty()) {
        match setting.split_once('=') {
            Some(("session-timeout", value)) => session_timeout = timeout("session-timeout", value)?,
            _ => {
                let name = setting.split('=').next().unwrap_or_default();
                return Err((
                    format!("unknown setting `{name}`"),
                    "the only one is `session-timeout=10s`".into(),
                ));
            }
        }
    }
    Ok(EmbeddedPlace { home, session_timeout })
}

fn is_name(text: &str) -> bool {
    text.chars().all(|it| it.is_alphanumeric() || "-_.".contains(it))
}

fn timeout(name: &str, text: &str) -> Result<Duration, Bad> {
    let bad = || {
        let remedy = "write a number and a unit, from `10ms` to `24h`, such as `500ms`, `10s` or `2m`";
        (format!("{name} `{text}` is not a duration in range"), remedy.to_owned())
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(bad()),
    };
    let ms = number.parse::<u64>().ok().and_then(|it| it.checked_mul(unit_ms)).ok_or_else(bad)?;
    let range = Duration::from_millis(10)..=LONGEST_TIMEOUT;
    Some(Duration::from_millis(ms)).filter(|it| range.contains(it)).ok_or_else(bad)
}

/// The url without what stands before an `@` or in a `digest`: errors end up in logs, and passwords must not.
fn shown(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let rest = match authority.rfind('@') {
        Some(at) => format!("***{}", &rest[at..]),
        None => rest.to_owned(),
    };
    let Some((place, query)) = rest.split_once('?') else { return format!("{scheme}://{rest}") };
    let settings = query.split('&').map(|it| if it.starts_with("digest=") { "digest=***" } else { it });
    format!("{scheme}://{place}?{}", settings.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(home: Home, timeout_ms: u64) -> Place {
        Place::Embedded(EmbeddedPlace { home, session_timeout: Duration::from_millis(timeout_ms) })
    }

    #[test]
    fn a_url_names_a_registry() {
        let cases = [
            ("embedded://", place(Home::Private, 10_000)),
            ("embedded://orders", place(Home::Named("orders".into()), 10_000)),
            ("embedded://orders?session-timeout=500ms", place(Home::Named("orders".into()), 500)),
            ("embedded:///var/lib/jobs", place(Home::Directory("/var/lib/jobs".into()), 10_000)),
            ("embedded:///a b?session-timeout=2m", place(Home::Directory("/a b".into()), 120_000)),
        ];
        for (url, expected) in cases {
            assert_eq!(parse(url).unwrap(), expected, "{url}");
        }
    }

    #[test]
    #[cfg(feature = "zookeeper")]
    fn a_url_names_an_ensemble() {
        let url = "zookeeper://a,b:2182,[::1]:2183/team/billing/?session-timeout=30s&max-retries=2&max-sleep=500ms\
                   &digest=me:secret&tls-ca=/ca.pem";
        let shown = format!("{:?}", parse(url).unwrap());
        for part in ["a", "2181", "2182", "::1", "2183", "/team/billing\"", "30s", "/ca.pem", "***"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
        assert!(!shown.contains("secret"), "{shown}");
        let cases = [
            ("zookeeper://a/n?digest=me:secret&x=1", "zookeeper://a/n?digest=***&x=1`: unknown setting `x`"),
            ("zookeeper://a/n?digest=a:secret&digest-env=X", "keep one of `digest-env`"),
            (
                "zookeeper://me:secret@a/n",
                "a user before an `@`; give the user and password with `digest-env",
            ),
            ("zookeeper://a:x/n", "`a:x` is not a server"),
            ("zookeeper://a,,b/n", "`` is not a server"),
            ("zookeeper://::1/n", "`::1` is not a server"),
            ("zookeeper://a/n//m", "`n//m` is not a namespace"),
            ("zookeeper://a/n?max-retries=0", "max-retries `0` is not a number from 1 to 29"),
            ("zookeeper://a/n?base-sleep=5", "base-sleep `5` is not a duration"),
            ("zookeeper://a/n?tls-cert=x", "the files for TLS are not complete"),
        ];
        for (url, expected) in cases {
            let error = parse(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_bad_url_says_what_would_be_right() {
        let cases = [
            ("orders", "it has no scheme; write `embedded://`, `embedded://name` or `embedded:///directory`"),
            (
                "consul://x:secret@host/a",
                "bad registry url `consul://***@host/a`: unknown scheme `consul`; the known ones are embedded, zookeeper, etcd",
            ),
            #[cfg(not(feature = "zookeeper"))]
            ("zookeeper://host:2181", "needs the crate's feature `zookeeper`"),
            #[cfg(feature = "zookeeper")]
            (
                "zookeeper://host:2181",
                "`` is not a namespace; write `zookeeper://host:2181,host:2181/namespace`",
            ),
            ("etcd://me:secret@host", "registry url `etcd://***@host` needs the crate's feature `etcd`"),
            ("embedded://a/b", "for a directory write `embedded:///a/b`, with three slashes"),
            ("embedded://a b", "`a b` is not a name"),
            ("embedded://?timeout=5s", "unknown setting `timeout`; the only one is `session-timeout=10s`"),
            ("embedded://?session-timeout", "unknown setting `session-timeout`"),
            ("embedded://?session-timeout=5", "session-timeout `5` is not a duration in range"),
            ("embedded://?session-timeout=0s", "from `10ms` to `24h`"),
            ("embedded://?session-timeout=25h", "from `10ms` to `24h`"),
            ("embedded://?session-timeout=99999999999999999999s", "from `10ms` to `24h`"),
        ];
        for (url, expected) in cases {
            let error = parse(url).unwrap_err().to_string();
            assert!(error.contains(expected), "{url}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
