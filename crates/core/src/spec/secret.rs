//! Properties that hold secrets. A document is read by everybody who reads the registry, so it only says where a
//! secret is found: `${NAME}` is an environment variable, `${file:/path}` a file, of whoever needs it.

use super::SpecError;

/// What these hold is a secret, or has one in it.
const SECRETS: [&str; 6] = [
    "dingtalk.secret",
    "dingtalk.webhook",
    "elasticjob.slack.webhook",
    "elasticjob.webhook.authorization",
    "email.password",
    "wechat.webhook",
];

/// What these hold may have a secret in it.
const MAY_BE_SECRET: [&str; 1] = ["elasticjob.webhook.url"];

/// A piece of a value.
///
/// ```
/// use elasticjob_core::spec::secret::{Part, parts};
///
/// let url = parts("https://example.com/send?key=${CHAT_KEY}").unwrap();
/// assert_eq!(url, [Part::Text("https://example.com/send?key="), Part::Variable("CHAT_KEY")]);
/// assert_eq!(parts("${file:/run/secrets/mail}").unwrap(), [Part::File("/run/secrets/mail")]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// What it says.
    Text(&'a str),
    /// What an environment variable says.
    Variable(&'a str),
    /// What a file says.
    File(&'a str),
}

/// Whether a property may name the place of a secret instead of holding it.
///
/// ```
/// use elasticjob_core::spec::secret::may_refer;
///
/// assert!(may_refer("email.password") && !may_refer("email.host"));
/// ```
#[must_use]
pub fn may_refer(key: &str) -> bool {
    SECRETS.contains(&key) || MAY_BE_SECRET.contains(&key)
}

/// The pieces of a value. `$${` stands for the characters `${`.
///
/// # Errors
///
/// What is wrong with a reference. The value is not in the message.
pub fn parts(text: &str) -> Result<Vec<Part<'_>>, &'static str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            parts.push(Part::Text(&rest[..at - 1]));
            parts.push(Part::Text("${"));
            rest = &rest[at + 2..];
            continue;
        }
        parts.push(Part::Text(&rest[..at]));
        let (inner, behind) =
            rest[at + 2..].split_once('}').ok_or("has `${` without `}`: close it, or write `$${`")?;
        parts.push(reference(inner)?);
        rest = behind;
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| *part != Part::Text(""));
    Ok(parts)
}

fn reference(inner: &str) -> Result<Part<'_>, &'static str> {
    if let Some(path) = inner.strip_prefix("file:") {
        return if path.starts_with('/') {
            Ok(Part::File(path))
        } else {
            Err("names a file by no absolute path: write ${file:/path}")
        };
    }
    if inner.contains(':') {
        return Err(
            "has a default, which would be the secret in clear: write ${NAME}, and set the variable on each host",
        );
    }
    let is_name = inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name {
        Ok(Part::Variable(inner))
    } else {
        Err("names neither a variable nor a file: write ${NAME} or ${file:/path}")
    }
}

/// Refuses a secret in clear.
pub(super) fn check<'a>(props: impl Iterator<Item = (&'a String, &'a String)>) -> Result<(), SpecError> {
    for (key, value) in props.filter(|(key, value)| may_refer(key) && !value.trim().is_empty()) {
        let wrong = |fault| SpecError::Secret { key: key.clone(), fault };
        let parts = parts(value).map_err(wrong)?;
        let refers = parts.iter().any(|part| !matches!(part, Part::Text(_)));
        if SECRETS.contains(&key.as_str()) && !refers {
            return Err(wrong(
                "is a secret in clear, which everybody who reads the registry could read: write ${NAME} for an environment variable of each host, or ${file:/path} for a file there",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::JobSpec;

    fn said(key: &str, value: &str) -> String {
        let mut spec = JobSpec::new("j", 1);
        spec.props.insert(key.to_owned(), value.to_owned());
        spec.check_secrets(None).map_or_else(|error| error.to_string(), |()| "fine".to_owned())
    }

    #[test]
    fn a_secret_is_named_and_not_told() {
        let clear = said("email.password", "hunter2");
        assert!(clear.starts_with("props email.password is a secret in clear, "), "{clear}");
        for (value, fault) in [
            ("${SMTP:hunter2}", "has a default"),
            ("${hunter2", "has `${` without `}`"),
            ("${hunter 2}", "names neither a variable nor a file"),
            ("${}", "names neither"),
            ("${file:hunter2}", "names a file by no absolute path"),
            ("$${hunter2}", "is a secret in clear"),
            ("https://x/?key=hunter2", "is a secret in clear"),
        ] {
            let said = said("wechat.webhook", value);
            assert!(said.starts_with(&format!("props wechat.webhook {fault}")), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn what_names_its_place_or_is_no_secret_is_taken() {
        for (key, value) in [
            ("email.password", "${SMTP_PASSWORD}"),
            ("email.password", "${file:/run/secrets/smtp}"),
            ("email.password", " "),
            ("dingtalk.webhook", "https://x/send?access_token=${TOKEN}&b=c"),
            ("elasticjob.webhook.url", "http://alerts.example.com/"),
            ("elasticjob.webhook.url", "http://alerts.example.com/${KEY}"),
            ("email.host", "smtp.example.com"),
            ("my.password", "anything"),
        ] {
            assert_eq!(said(key, value), "fine", "{key}: {value}");
        }
    }

    #[test]
    fn parts_are_what_they_look_like() {
        use Part::{File, Text, Variable};
        assert_eq!(parts("").unwrap(), []);
        assert_eq!(parts("a${B}c${file:/d}").unwrap(), [Text("a"), Variable("B"), Text("c"), File("/d")]);
        assert_eq!(parts("a$${B}").unwrap(), [Text("a"), Text("${"), Text("B}")]);
        assert_eq!(parts("$ $B").unwrap(), [Text("$ $B")]);
    }
}
