//! What is wrong with an expression, said to the person who has to fix it.

use crate::calendar::{FIRST_YEAR, LAST_YEAR};
use std::fmt;

/// Why a text is not a cron expression: the field, the column, the offending text and what is allowed instead.
///
/// ```
/// use elasticjob_cron::{Cron, Field};
///
/// let error = Cron::parse("0 0 12 ? * MON-FRI/2").unwrap_err();
/// assert_eq!(error.field(), Some(Field::DayOfWeek));
/// assert_eq!(error.column(), 19);
/// assert_eq!(error.text(), "/2");
/// assert_eq!(
///     error.to_string(),
///     "day of week `/2` at column 19: a step after a name has no effect in Quartz; \
///      write the days as numbers (1 is Sunday) to step through them, as in 2-6/2"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub(crate) field: Option<Field>,
    pub(crate) column: usize,
    pub(crate) text: String,
    pub(crate) expected: String,
    pub(crate) suggestion: Option<String>,
}

impl ParseError {
    /// The field that is wrong, or nothing when the expression as a whole is.
    ///
    /// ```
    /// use elasticjob_cron::{Cron, Field};
    ///
    /// assert_eq!(Cron::parse("0 60 * * * ?").unwrap_err().field(), Some(Field::Minute));
    /// assert_eq!(Cron::parse("every day").unwrap_err().field(), None);
    /// ```
    #[must_use]
    pub fn field(&self) -> Option<Field> {
        self.field
    }

    /// Where the offending text starts, in characters, the first of the expression being 1.
    ///
    /// ```
    /// use elasticjob_cron::Cron;
    ///
    /// assert_eq!(Cron::parse("0 0,15,60 * * * ?").unwrap_err().column(), 8);
    /// ```
    #[must_use]
    pub fn column(&self) -> usize {
        self.column
    }

    /// The offending text, as it was written.
    ///
    /// ```
    /// use elasticjob_cron::Cron;
    ///
    /// assert_eq!(Cron::parse("0 0,15,60 * * * ?").unwrap_err().text(), "60");
    /// ```
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What is allowed in its place.
    ///
    /// ```
    /// use elasticjob_cron::Cron;
    ///
    /// assert_eq!(Cron::parse("0 0,15,60 * * * ?").unwrap_err().expected(), "the minute is 0 to 59");
    /// ```
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// The expression that was probably meant; for Unix expressions of five fields and for `@daily` and its like.
    ///
    /// ```
    /// use elasticjob_cron::Cron;
    ///
    /// let error = Cron::parse("*/5 8-18 * * 1-5").unwrap_err();
    /// assert_eq!(error.suggestion(), Some("0 */5 8-18 ? * MON-FRI"));
    /// ```
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field {
            Some(field) => write!(f, "{field} ")?,
            None => f.write_str("cron expression ")?,
        }
        write!(f, "`{}`", printable(&self.text))?;
        if self.field.is_some() {
            write!(f, " at column {}", self.column)?;
        }
        write!(f, ": {}", self.expected)?;
        match &self.suggestion {
            Some(suggestion) => write!(f, "; did you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}

/// Keeps a message on one line of bearable length, whatever the text was.
pub(crate) fn printable(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown: String = text
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().count() > MOST {
        shown.push('…');
    }
    shown
}

/// A field of an expression.
///
/// ```
/// use elasticjob_cron::{Cron, Field};
///
/// let error = Cron::parse("0 0 0 32 * ?").unwrap_err();
/// assert_eq!(error.field(), Some(Field::DayOfMonth));
/// assert_eq!(Field::DayOfMonth.to_string(), "day of month");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// The first field, 0 to 59.
    Second,
    /// The second field, 0 to 59.
    Minute,
    /// The third field, 0 to 23.
    Hour,
    /// The fourth field, 1 to 31.
    DayOfMonth,
    /// The fifth field, 1 to 12 or a name.
    Month,
    /// The sixth field, 1 to 7 or a name, 1 being Sunday.
    DayOfWeek,
    /// The seventh field, which may be left out.
    Year,
}

impl Field {
    /// The values of the field, to end a message with.
    pub(crate) fn values(self) -> String {
        match self {
            Self::Second => "the second is 0 to 59".into(),
            Self::Minute => "the minute is 0 to 59".into(),
            Self::Hour => "the hour is 0 to 23".into(),
            Self::DayOfMonth => "the day of month is 1 to 31, L, L-n, LW, nW or ?".into(),
            Self::Month => "the month is 1 to 12 or JAN to DEC".into(),
            Self::DayOfWeek => "the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?".into(),
            Self::Year => format!("the year is {FIRST_YEAR} to {LAST_YEAR}"),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
            Self::Year => "year",
        })
    }
}
