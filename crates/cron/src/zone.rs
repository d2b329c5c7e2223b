//! Time zones by the names that ElasticJob and Quartz use, and the stretches of constant offset they consist of.

use crate::error::printable;
use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use std::fmt;
use std::str::FromStr;

/// A time zone: an IANA name such as `Europe/Vienna`, or Java's `GMT`, `GMT+8:00`, `GMT-3`.
///
/// Cloning is cheap. The rules are those of the zone data that jiff bundles into the program, so that every instance
/// of a cluster agrees on them, whatever the machine it runs on has installed.
///
/// ```
/// use elasticjob_cron::Zone;
///
/// let vienna = Zone::parse("Europe/Vienna")?;
/// let china: Zone = "GMT+8:00".parse()?;
/// assert_eq!(vienna.to_string(), "Europe/Vienna");
/// assert_eq!(china.to_string(), "GMT+8:00");
/// # Ok::<(), elasticjob_cron::ZoneError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Coordinated universal time.
    ///
    /// ```
    /// use elasticjob_cron::Zone;
    ///
    /// assert_eq!(Zone::UTC, Zone::parse("UTC")?);
    /// # Ok::<(), elasticjob_cron::ZoneError>(())
    /// ```
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Looks a zone up by name. Names are not case-sensitive; `GMT` is followed by a sign, hours and, if need be, minutes.
    ///
    /// ```
    /// use elasticjob_cron::Zone;
    ///
    /// for name in ["America/St_Johns", "GMT", "GMT+8", "GMT-3:30", "GMT+0545", "UTC"] {
    ///     assert!(Zone::parse(name).is_ok());
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// When there is no such zone; the error says what a zone looks like.
    pub fn parse(name: &str) -> Result<Self, ZoneError> {
        let refused = |reason| ZoneError { text: name.to_owned(), reason };
        let offset = name.get(..3).filter(|prefix| prefix.eq_ignore_ascii_case("GMT")).map(|_| &name[3..]);
        match offset {
            Some("") => return Ok(Self::UTC),
            Some(offset) if offset.starts_with(['+', '-']) => {
                let seconds = gmt_offset(offset).ok_or_else(|| refused(Reason::Offset))?;
                let offset = Offset::from_seconds(seconds).map_err(|_| refused(Reason::Offset))?;
                return Ok(Self(TimeZone::fixed(offset)));
            }
            _ => {}
        }
        // The bundled rules, not those of the machine: instances of a cluster must not differ over a fire.
        TimeZoneDatabase::bundled().get(name).map(Self).map_err(|_| refused(Reason::Unknown))
    }

    /// Coordinated universal time, for those who prefer a function to [`Zone::UTC`].
    ///
    /// ```
    /// use elasticjob_cron::Zone;
    ///
    /// assert_eq!(Zone::utc(), Zone::UTC);
    /// ```
    #[must_use]
    pub const fn utc() -> Self {
        Self::UTC
    }

    /// The zone this machine is set to, or UTC where that cannot be found out.
    ///
    /// ```
    /// use elasticjob_cron::{Cron, Schedule, Zone};
    ///
    /// let nightly = Schedule::new(Cron::parse("0 0 3 * * ?")?, Zone::system());
    /// assert!(nightly.next_after("2026-01-01T00:00:00Z".parse().unwrap()).is_some());
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn system() -> Self {
        let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
        zone.iana_name().and_then(|name| Self::parse(name).ok()).unwrap_or_else(|| Self(zone.clone()))
    }

    /// The zone as jiff knows it, for showing instants to people.
    ///
    /// ```
    /// use elasticjob_cron::Zone;
    ///
    /// let fire: jiff::Timestamp = "2026-07-01T01:00:00Z".parse().unwrap();
    /// let shown = fire.to_zoned(Zone::parse("Europe/Vienna")?.time_zone().clone());
    /// assert_eq!(shown.datetime().to_string(), "2026-07-01T03:00:00");
    /// # Ok::<(), elasticjob_cron::ZoneError>(())
    /// ```
    #[must_use]
    pub fn time_zone(&self) -> &TimeZone {
        &self.0
    }

    /// The offset at an instant, in seconds.
    pub(crate) fn offset_at(&self, instant: i64) -> i64 {
        timestamp(instant).map_or(0, |at| self.0.to_offset(at).seconds().into())
    }

    /// The first change of the offset after an instant, at which it is `offset`.
    pub(crate) fn change_after(&self, instant: i64, offset: i64) -> Option<Change> {
        let changes = self.0.following(timestamp(instant)?);
        changes
            .map(|change| Change {
                at: change.timestamp().as_second(),
                offset: change.offset().seconds().into(),
            })
            .find(|change| change.offset != offset)
    }

    /// The last change of the offset at or before an instant, at which it is `offset`.
    pub(crate) fn change_at_or_before(&self, instant: i64, offset: i64) -> Option<Change> {
        let mut changes =
            self.0.preceding(timestamp(instant + 1)?).map(|change| change.timestamp().as_second());
        // A transition may change the name of the time only; then the one before it counts.
        changes.find_map(|at| {
            let before = self.offset_at(at - 1);
            (before != offset).then_some(Change { at, offset: before })
        })
    }
}

/// A change of the offset. `offset` is the one on the far side, seen from where the question was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) at: i64,
    pub(crate) offset: i64,
}

pub(crate) fn timestamp(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}

/// `+8`, `+08`, `+8:00`, `+08:00`, `+0800`, as Java reads them after `GMT`.
fn gmt_offset(text: &str) -> Option<i32> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, &text[1..]), |digits| (-1, digits));
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "00"),
    };
    let number = |text: &str, most: i32| {
        let valid = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| valid && *number <= most)
    };
    Some(sign * (number(hours, 23)? * 3600 + number(minutes, 59)? * 60))
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(name: &str) -> Result<Self, ZoneError> {
        Self::parse(name)
    }
}

/// Writes the name under which [`Zone::parse`] finds the zone again.
///
/// ```
/// use elasticjob_cron::Zone;
///
/// assert_eq!(Zone::parse("GMT-0330")?.to_string(), "GMT-3:30");
/// # Ok::<(), elasticjob_cron::ZoneError>(())
/// ```
impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.0.iana_name() {
            return f.write_str(name);
        }
        let minutes = self.0.to_offset(Timestamp::UNIX_EPOCH).seconds() / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        write!(f, "GMT{sign}{}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
    }
}

/// A text that names no time zone.
///
/// ```
/// use elasticjob_cron::Zone;
///
/// let error = Zone::parse("Europe/Wien").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "no time zone is called `Europe/Wien`; write an IANA name as in Europe/Vienna, or an offset as in GMT+8:00"
/// );
/// assert_eq!(error.text(), "Europe/Wien");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneError {
    text: String,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Unknown,
    Offset,
}

impl ZoneError {
    /// The text that was given.
    ///
    /// ```
    /// use elasticjob_cron::Zone;
    ///
    /// assert_eq!(Zone::parse("GMT+25").unwrap_err().text(), "GMT+25");
    /// ```
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ZoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = printable(&self.text);
        match self.reason {
            Reason::Unknown => write!(
                f,
                "no time zone is called `{text}`; \
                 write an IANA name as in Europe/Vienna, or an offset as in GMT+8:00"
            ),
            Reason::Offset => {
                write!(
                    f,
                    "`{text}` is no offset; after GMT come a sign, hours up to 23 and minutes, as in GMT+8:00"
                )
            }
        }
    }
}

impl std::error::Error for ZoneError {}
