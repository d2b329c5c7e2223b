//! What is wrong with a jobs file, said to the person who has the file open.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Texts in messages are cut to this many characters; the snippet shows the line anyway.
const SHOWN_MAX: usize = 80;

/// A snippet shows so many characters of a line at most.
const SNIPPET_MAX: usize = 110;

/// What is wrong with a jobs file, and where.
///
/// On one line it reads like a compiler's message; the alternate form adds the line of the file.
///
/// ```
/// use elasticjob::file::JobsFile;
///
/// let text = "jobs:\n  clean-up:\n    failover: maybe\n";
/// let error = JobsFile::parse(text, |_| None).unwrap_err();
/// assert_eq!((error.line(), error.column(), error.field()), (Some(3), Some(15), "jobs.clean-up.failover"));
/// assert_eq!(
///     format!("{error:#}"),
///     "line 3, column 15: jobs.clean-up.failover `maybe` is no boolean: write true or false
///   |
/// 3 |     failover: maybe
///   |               ^^^^^"
/// );
/// ```
#[derive(Debug)]
pub struct FileError {
    file: Option<PathBuf>,
    fault: Box<Fault>,
    snippet: Option<Box<Snippet>>,
    source: Option<io::Error>,
}

impl FileError {
    pub(super) fn new(fault: Fault, text: &str) -> FileError {
        let snippet = fault.place.and_then(|place| Snippet::cut(place, text)).map(Box::new);
        FileError { file: None, fault: Box::new(fault), snippet, source: None }
    }

    pub(super) fn unreadable(source: io::Error) -> FileError {
        let fault = Fault { place: None, field: String::new(), reason: "cannot be read".to_owned() };
        FileError { file: None, fault: Box::new(fault), snippet: None, source: Some(source) }
    }

    #[must_use]
    pub(super) fn in_file(mut self, file: &Path) -> FileError {
        self.file = Some(file.to_owned());
        self
    }

    /// The file, where it was read from one.
    ///
    /// ```
    /// let error = elasticjob::file::JobsFile::parse("", |_| None).unwrap_err();
    /// assert_eq!(error.file(), None);
    /// ```
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The line, counted from 1; nothing if the file could not be read at all.
    ///
    /// ```
    /// let error = elasticjob::file::JobsFile::parse("jobs: {a: {cron: daily}}", |_| None).unwrap_err();
    /// assert_eq!(error.line(), Some(1));
    /// ```
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.fault.place.map(|place| place.line)
    }

    /// The column, in characters counted from 1.
    ///
    /// ```
    /// let error = elasticjob::file::JobsFile::parse("jobs: {a: {cron: daily}}", |_| None).unwrap_err();
    /// assert_eq!(error.column(), Some(18));
    /// ```
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.fault.place.map(|place| place.column)
    }

    /// The path of the setting, such as `jobs.clean-up.failover`; empty where the fault is not one setting's.
    ///
    /// ```
    /// let error = elasticjob::file::JobsFile::parse("jobs: {a: {cron: daily}}", |_| None).unwrap_err();
    /// assert_eq!(error.field(), "jobs.a.cron");
    /// ```
    #[must_use]
    pub fn field(&self) -> &str {
        &self.fault.field
    }

    /// The message together with the line of the file, as `{:#}` shows it.
    ///
    /// ```
    /// let error = elasticjob::file::JobsFile::parse("job: {}", |_| None).unwrap_err();
    /// assert!(error.report().ends_with("1 | job: {}\n  | ^^^"));
    /// ```
    #[must_use]
    pub fn report(&self) -> String {
        format!("{self:#}")
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.fault.place) {
            (Some(file), Some(place)) => {
                write!(out, "{}:{}:{}: ", file.display(), place.line, place.column)?;
            }
            (Some(file), None) => write!(out, "{}: ", file.display())?,
            (None, Some(place)) => write!(out, "line {}, column {}: ", place.line, place.column)?,
            (None, None) => {}
        }
        if !self.fault.field.is_empty() {
            write!(out, "{} ", Shown(&self.fault.field))?;
        }
        out.write_str(&self.fault.reason)?;
        if let Some(source) = &self.source {
            write!(out, ": {source}")?;
        }
        match &self.snippet {
            Some(snippet) if out.alternate() => write!(out, "\n{snippet}"),
            _ => Ok(()),
        }
    }
}

// The cause is part of the message already, so there is no `source` to print a second time.
impl std::error::Error for FileError {}

/// A fault before it is known which file it is in.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) place: Option<Place>,
    /// The path of the setting; the message begins with it.
    pub(super) field: String,
    /// What follows the path.
    pub(super) reason: String,
}

impl Fault {
    pub(super) fn new(place: Place, field: impl Into<String>, reason: impl Into<String>) -> Fault {
        Fault { place: Some(place), field: field.into(), reason: reason.into() }
    }

    /// A fault of the whole file.
    pub(super) fn whole(reason: impl Into<String>) -> Fault {
        Fault::new(Place { line: 1, column: 1, width: 1 }, "", reason)
    }
}

/// Where something stands: line and column from 1, and how many characters of the line it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) width: usize,
}

/// Outside text in a message: on one line, and of bearable length.
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, c) in self.0.chars().enumerate() {
            if at == SHOWN_MAX {
                return out.write_str("…");
            }
            if c.is_control() { write!(out, "{}", c.escape_default())? } else { write!(out, "{c}")? }
        }
        Ok(())
    }
}

/// A line of the file, with a mark below what is meant.
#[derive(Debug)]
struct Snippet {
    line: usize,
    text: String,
    before: usize,
    carets: usize,
}

impl Snippet {
    fn cut(place: Place, text: &str) -> Option<Snippet> {
        let line = text.split('\n').nth(place.line.checked_sub(1)?)?.trim_end_matches('\r');
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        if line.trim().is_empty() {
            return None;
        }
        // Of a very long line, the part around the mark.
        let first = if place.column > SNIPPET_MAX / 2 && line.chars().count() > SNIPPET_MAX {
            place.column - SNIPPET_MAX / 2
        } else {
            0
        };
        let shown: String = line
            .chars()
            .skip(first)
            .take(SNIPPET_MAX)
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        let mark = place.column.saturating_sub(1).saturating_sub(first);
        let before = shown.chars().take(mark).map(columns).sum();
        let carets = shown.chars().skip(mark).take(place.width).map(columns).sum::<usize>().max(1);
        Some(Snippet { line: place.line, text: shown.trim_end().to_owned(), before, carets })
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        let (blanks, carets) = (" ".repeat(self.before), "^".repeat(self.carets));
        write!(out, "{gutter} |\n{number} | {}\n{gutter} | {blanks}{carets}", self.text)
    }
}

/// Terminals give ideographs two columns; without this the mark would stand too far left.
fn columns(c: char) -> usize {
    let wide = matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}'
        | '\u{20000}'..='\u{3fffd}');
    if wide { 2 } else { 1 }
}
