//! The properties of a job type, read as what they mean.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::SignedDuration;

/// A longer limit is a slip of the unit.
const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Outside text in a message is cut to this many characters.
const SHOWN_MAX: usize = 80;

/// Why a job of this type cannot run: a property is wrong or missing, or this build lacks the type.
///
/// ```
/// use elasticjob::{Job, Worker};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let job = Job::script("report", "/opt/report.sh").prop("elasticjob.script.timeout", "soon");
/// let error = Worker::new("embedded://").job(job).start().await.unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "job `report`: property elasticjob.script.timeout `soon` is no duration: write a number and its unit, as in 30s or 2m"
/// );
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// A property that must be there is not.
    #[error("property {key} is missing: {remedy}")]
    Missing {
        /// The property.
        key: String,
        /// What to write.
        remedy: String,
    },
    /// A property has a value that cannot be used.
    #[error("property {key} `{}` {remedy}", Shown(value))]
    Wrong {
        /// The property.
        key: String,
        /// Its value.
        value: String,
        /// What is wrong with it, and what to write instead.
        remedy: String,
    },
    /// A property that may hold a secret cannot be used. Its value is not told.
    #[error("property {key} {fault}")]
    Secret {
        /// The property.
        key: String,
        /// What is wrong, and the remedy.
        fault: String,
    },
    /// What is called once for a round needs to know who is first and last.
    #[error(
        "listeners that are called once per cluster need monitorExecution: switch it on, or use a listener for every worker"
    )]
    NotMonitored,
    /// HTTP jobs are an option of the library, and this program was built without it.
    #[error("HTTP jobs need the feature `http` of the crate elasticjob, which this program is built without")]
    NoHttp,
}

impl TypeError {
    pub(crate) fn missing(key: &str, remedy: &str) -> TypeError {
        TypeError::Missing { key: key.to_owned(), remedy: remedy.to_owned() }
    }

    #[cfg(any(feature = "http", feature = "email"))]
    pub(crate) fn secret(key: &str, fault: String) -> TypeError {
        TypeError::Secret { key: key.to_owned(), fault }
    }

    pub(crate) fn wrong(key: &str, value: &str, remedy: impl Into<String>) -> TypeError {
        TypeError::Wrong { key: key.to_owned(), value: value.to_owned(), remedy: remedy.into() }
    }
}

/// A job's properties. One that is blank counts as not written.
#[derive(Clone, Copy)]
pub(crate) struct Props<'a>(pub(crate) &'a BTreeMap<String, String>);

impl<'a> Props<'a> {
    pub(crate) fn text(self, key: &str) -> Option<&'a str> {
        self.0.get(key).map(String::as_str).filter(|text| !text.trim().is_empty())
    }

    /// As Java reads it: everything but `true` is false.
    pub(crate) fn java_flag(self, key: &str) -> bool {
        self.text(key).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"))
    }

    pub(crate) fn count(self, key: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, TypeError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let count = text.trim().parse().ok().filter(|count| range.contains(count));
        let remedy = || format!("is no such number: write one from {} to {}", range.start(), range.end());
        count.map(Some).ok_or_else(|| TypeError::wrong(key, text, remedy()))
    }

    /// `30s`, `2m`, `1h 30m`.
    pub(crate) fn duration(self, key: &str) -> Result<Option<Duration>, TypeError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let parsed: Result<SignedDuration, _> = text.trim().parse();
        let duration = parsed.ok().and_then(|it| Duration::try_from(it).ok()).filter(|it| !it.is_zero());
        let wrong = |remedy: &str| TypeError::wrong(key, text, remedy);
        match duration {
            Some(duration) if duration > DURATION_MAX => Err(wrong("is too long: write at most 168h")),
            Some(duration) => Ok(Some(duration)),
            None => Err(wrong("is no duration: write a number and its unit, as in 30s or 2m")),
        }
    }
}

/// Outside text: on one line, and of bearable length.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, c) in self.0.chars().enumerate() {
            if at == SHOWN_MAX {
                return f.write_str("…");
            }
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { write!(f, "{c}")? }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn props(value: &str) -> BTreeMap<String, String> {
        BTreeMap::from([("k".to_owned(), value.to_owned())])
    }

    #[test]
    fn a_property_is_what_it_says_or_what_is_wrong_with_it() {
        let duration = |text: &str| Props(&props(text)).duration("k").map_err(|error| error.to_string());
        assert_eq!(duration("1h 30m"), Ok(Some(Duration::from_secs(5400))));
        assert_eq!(duration(" "), Ok(None));
        assert_eq!(duration("200h"), Err("property k `200h` is too long: write at most 168h".to_owned()));
        for text in ["30", "0s", "-3s", "soon", "1 mnth"] {
            assert!(duration(text).unwrap_err().contains("is no duration"), "{text}");
        }
        let count = |text: &str| Props(&props(text)).count("k", 1..=9).map_err(|error| error.to_string());
        assert_eq!(count(" 9 "), Ok(Some(9)));
        assert_eq!(count(""), Ok(None));
        for text in ["0", "10", "-1", "3.5", "99999999999999999999"] {
            let said = format!("property k `{text}` is no such number: write one from 1 to 9");
            assert_eq!(count(text), Err(said));
        }
        for (text, flag) in [("true", true), ("TRUE ", true), ("yes", false), ("", false), ("false", false)] {
            assert_eq!(Props(&props(text)).java_flag("k"), flag, "{text}");
        }
        let long = TypeError::wrong("k", &format!("\u{1b}[31m\n{}", "x".repeat(500)), "is too long");
        assert!(long.to_string().starts_with("property k `\\u{1b}[31m\\nxxx"), "{long}");
        assert!(long.to_string().ends_with("xxx…` is too long"), "{long}");
    }
}
