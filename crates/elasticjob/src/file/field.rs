//! One setting: its path, its place, and its value as the type that is wanted.

use std::collections::BTreeMap;
use std::time::Duration;

use elasticjob_core::spec::secret::may_refer;
use elasticjob_cron::{Cron, Zone};
use jiff::SignedDuration;

use super::document::{Map, Node, Value};
use super::error::{Fault, Place, Shown};
use super::{keys, variables};

/// A grace longer than this is a slip of the unit.
const DURATION_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The text of the file, and the variables that expand in it.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) env: &'a dyn Fn(&str) -> Option<String>,
}

/// A setting as it stands in the file.
pub(super) struct Field<'a> {
    pub(super) source: &'a Source<'a>,
    /// Such as `jobs.clean-up.failover`, in the spelling of the file.
    pub(super) path: String,
    pub(super) key: Place,
    pub(super) node: &'a Node,
    /// Stands in a mapping between braces.
    pub(super) flow: bool,
}

/// What to do about a key that is the rest of a value.
const COMMA: &str =
    "is no setting: a comma ends a value between braces, so put a value that has commas between quotes";

/// The settings of a mapping, each under its camelCase name.
pub(super) fn settings<'a>(
    source: &'a Source<'a>,
    path: &str,
    map: &'a Map,
) -> Result<Vec<(String, Field<'a>)>, Fault> {
    let dot = if path.is_empty() { "" } else { "." };
    // Before anything else, because the setting whose value was cut short would be blamed otherwise.
    if let Some(rest) =
        map.entries.iter().find(|entry| map.flow && entry.node.is_null() && !is_word(&entry.key))
    {
        return Err(Fault::new(rest.place, format!("{path}{dot}{}", rest.key), COMMA));
    }
    let mut spellings = BTreeMap::new();
    let mut found = Vec::new();
    for entry in &map.entries {
        let field = Field {
            source,
            path: format!("{path}{dot}{}", entry.key),
            key: entry.place,
            node: &entry.node,
            flow: map.flow,
        };
        let name = keys::camel(&entry.key).into_owned();
        if let Some(other) = spellings.insert(name.clone(), &entry.key) {
            let reason = format!("is another spelling of {other}: keep one of them");
            return Err(Fault::new(entry.place, field.path, reason));
        }
        found.push((name, field));
    }
    Ok(found)
}

/// Whether a text could be the name of a setting.
fn is_word(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

impl<'a> Field<'a> {
    /// A fault of the key.
    pub(super) fn misplaced(&self, reason: impl Into<String>) -> Fault {
        Fault::new(self.key, &self.path, reason)
    }

    /// A key that nobody knows.
    pub(super) fn unknown(&self, name: &str, owner: &str, known: &[&str]) -> Fault {
        if self.flow && self.node.is_null() {
            return self.misplaced(COMMA);
        }
        self.misplaced(keys::unknown(name, owner, known))
    }

    /// A fault of the value, which `reason` goes on to describe.
    pub(super) fn wrong(&self, value: &str, reason: impl AsRef<str>) -> Fault {
        Fault::new(self.node.place, &self.path, format!("`{}` {}", Shown(value), reason.as_ref()))
    }

    fn element(&self, path: String, key: Place, node: &'a Node) -> Field<'a> {
        Field { source: self.source, path, key, node, flow: self.flow }
    }

    /// A single value as it stands there; nothing where nothing is written.
    fn raw(&self, expected: &str) -> Result<Option<String>, Fault> {
        match &self.node.value {
            _ if self.node.is_null() => Ok(None),
            Value::Scalar { text, .. } => Ok(Some(text.clone())),
            Value::List(_) | Value::Map(_) => Err(self.wrong(&self.node.shown(), expected)),
        }
    }

    /// A single value, variables expanded; nothing where nothing is written.
    fn scalar(&self, expected: &str) -> Result<Option<String>, Fault> {
        let Some(text) = self.raw(expected)? else { return Ok(None) };
        let expanded = variables::expand(&text, self.source.env);
        expanded
            .map(Some)
            .map_err(|flaw| Fault::new(self.within(&text, flaw.start, flaw.width), &self.path, flaw.reason))
    }

    /// A text that may be empty.
    pub(super) fn text(&self) -> Result<String, Fault> {
        self.scalar("is no text: write a single value").map(Option::unwrap_or_default)
    }

    /// A text that must be there.
    pub(super) fn word(&self) -> Result<String, Fault> {
        self.must("is no text: write a single value")
    }

    fn must(&self, expected: &str) -> Result<String, Fault> {
        self.scalar(expected)?.ok_or_else(|| self.misplaced("has no value: write one, or remove the key"))
    }

    /// `true` or `false`, and the words that Java's YAML takes for them.
    pub(super) fn flag(&self) -> Result<bool, Fault> {
        const EXPECTED: &str = "is no boolean: write true or false";
        let word = self.must(EXPECTED)?;
        match word.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(true),
            "false" | "no" | "off" => Ok(false),
            _ => Err(self.wrong(&word, EXPECTED)),
        }
    }

    pub(super) fn integer(&self) -> Result<i32, Fault> {
        const EXPECTED: &str = "is no integer: write a decimal number";
        let digits = self.must(EXPECTED)?;
        // A leading zero is octal to Java's YAML and decimal to others, so it is neither here.
        let bare = digits.strip_prefix(['-', '+']).unwrap_or(&digits);
        let decimal = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit());
        if !decimal || (bare.len() > 1 && bare.starts_with('0')) {
            return Err(self.wrong(&digits, EXPECTED));
        }
        digits.parse().map_err(|_| self.wrong(&digits, "is out of range: write a number of 32 bits"))
    }

    /// A number of items; the upper bound is the specification's business.
    pub(super) fn count(&self) -> Result<u32, Fault> {
        let count = self.integer()?;
        u32::try_from(count).map_err(|_| self.wrong(&count.to_string(), "is out of range: write at least 1"))
    }

    /// `30s`, `2m`, `1h 30m`.
    pub(super) fn duration(&self) -> Result<Duration, Fault> {
        const EXPECTED: &str = "is no duration: write a number and its unit, as in 30s or 2m";
        let text = self.must(EXPECTED)?;
        let parsed: Result<SignedDuration, _> = text.trim().parse();
        let duration = parsed.ok().and_then(|duration| Duration::try_from(duration).ok());
        let duration = duration.ok_or_else(|| self.wrong(&text, EXPECTED))?;
        if duration > DURATION_MAX {
            return Err(self.wrong(&text, "is out of range: write at most 24h"));
        }
        Ok(duration)
    }

    pub(super) fn cron(&self) -> Result<String, Fault> {
        let cron = self.word()?.trim().to_owned();
        // A blank one has a remedy of its own, which the specification knows.
        if cron.is_empty() {
            return Ok(cron);
        }
        match Cron::parse(&cron) {
            Ok(_) => Ok(cron),
            Err(error) => {
                let mut reason = "is no cron expression: ".to_owned();
                if let Some(field) = error.field() {
                    reason.push_str(&format!("{field} `{}`: ", Shown(error.text())));
                }
                reason.push_str(error.expected());
                if let Some(suggestion) = error.suggestion() {
                    reason.push_str(&format!("; did you mean `{suggestion}`?"));
                }
                let mut fault = self.wrong(&cron, reason);
                if error.field().is_some() {
                    fault.place = Some(self.within(&cron, error.column() - 1, error.text().chars().count()));
                }
                Err(fault)
            }
        }
    }

    pub(super) fn zone(&self) -> Result<String, Fault> {
        let zone = self.word()?.trim().to_owned();
        match Zone::parse(&zone) {
            Ok(_) => Ok(zone),
            Err(_) => Err(self.wrong(
                &zone,
                "is no time zone: write an IANA name such as Europe/Vienna, or an offset such as GMT+8:00",
            )),
        }
    }

    /// A list, or its elements in one text with commas between them.
    pub(super) fn texts(&self) -> Result<Vec<String>, Fault> {
        if let Value::List(nodes) = &self.node.value {
            let elements = nodes.iter().enumerate();
            return elements
                .map(|(at, node)| self.element(format!("{}[{at}]", self.path), node.place, node).word())
                .collect();
        }
        let text = self.scalar("is no list: write `- name` lines below the key")?.unwrap_or_default();
        Ok(text.split(',').map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect())
    }

    /// The values of a mapping, each still a field.
    pub(super) fn entries(&self, expected: &str) -> Result<Vec<(&'a str, Field<'a>)>, Fault> {
        match &self.node.value {
            Value::Map(map) => Ok(map
                .entries
                .iter()
                .map(|entry| {
                    let path = format!("{}.{}", self.path, entry.key);
                    let flow = map.flow;
                    (entry.key.as_str(), Field { flow, ..self.element(path, entry.place, &entry.node) })
                })
                .collect()),
            Value::Scalar { .. } | Value::List(_) if self.node.is_null() => Ok(Vec::new()),
            Value::Scalar { .. } | Value::List(_) => Err(self.wrong(&self.node.shown(), expected)),
        }
    }

    pub(super) fn properties(&self) -> Result<BTreeMap<String, String>, Fault> {
        let mut properties = BTreeMap::new();
        for (key, field) in self.entries("is no mapping: write `key: value` lines below the key")? {
            if key.is_empty() {
                return Err(field.misplaced("has an empty key: name the property"));
            }
            const EXPECTED: &str = "is no text: write a single value, and nested keys with dots";
            let value = match may_refer(key) {
                // It goes to the registry, so that each instance finds the secret for itself.
                true => field.raw(EXPECTED)?,
                false => field.scalar(EXPECTED)?,
            };
            let value = value.ok_or_else(|| {
                field.misplaced("has no value: write one, '' if it is empty; between braces a value that has commas needs quotes")
            })?;
            properties.insert(key.to_owned(), value);
        }
        Ok(properties)
    }

    /// Parameters of items, in the one text that Java has for them, and where each stands.
    ///
    /// They are written as that text, as a mapping from items, or as a list in the order of the items.
    pub(super) fn item_parameters(&self) -> Result<(String, BTreeMap<u32, Place>), Fault> {
        let elements: Vec<(u32, Field<'_>)> = match &self.node.value {
            Value::Scalar { .. } => return Ok((self.text()?, BTreeMap::new())),
            Value::List(nodes) => (0..)
                .zip(nodes)
                .map(|(item, node)| (item, self.element(format!("{}[{item}]", self.path), node.place, node)))
                .collect(),
            Value::Map(_) => self
                .entries("")?
                .into_iter()
                .map(|(key, field)| match key.parse() {
                    Ok(item) => Ok((item, field)),
                    Err(_) => Err(field.misplaced("is no item: write its number before the colon")),
                })
                .collect::<Result<_, _>>()?,
        };
        let mut texts = Vec::new();
        let mut places = BTreeMap::new();
        for (item, field) in elements {
            let text = field.text()?;
            if text.contains([',', '=']) {
                return Err(field.wrong(&text, "has `,` or `=`, which no item parameter can have: remove it"));
            }
            if places.insert(item, field.key).is_some() {
                return Err(field.misplaced(format!("is the second parameter of item {item}: keep one")));
            }
            if !text.trim().is_empty() {
                texts.push(format!("{item}={}", text.trim()));
            }
        }
        Ok((texts.join(","), places))
    }

    /// The place of a part of the value, if the value stands in the file as it is; else the whole value's.
    fn within(&self, text: &str, start: usize, width: usize) -> Place {
        let place = self.node.place;
        let line = self.source.text.split('\n').nth(place.line.saturating_sub(1)).unwrap_or_default();
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let behind = || line.chars().skip(place.column - 1);
        let stands = |skipped: usize| behind().skip(skipped).take(text.chars().count()).eq(text.chars());
        let quote = usize::from(behind().next().is_some_and(|c| matches!(c, '"' | '\'')));
        if !stands(quote) {
            return place;
        }
        Place { line: place.line, column: place.column + quote + start, width }
    }
}
