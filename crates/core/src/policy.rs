//! What a job may ask for that Java's ElasticJob has no setting for. It is kept in `props`, where Java ignores it.

use std::fmt;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::spec::{JobSpec, SpecError};

/// How long one attempt at an item may take.
pub const TIME_LIMIT: &str = "elasticjob.time.limit";
/// How often an item that failed is tried again within its round.
pub const RETRIES: &str = "elasticjob.retries";
/// The pause before the first retry; each further one is twice as long.
pub const RETRY_BACKOFF: &str = "elasticjob.retry.backoff";
/// The longest pause.
pub const RETRY_BACKOFF_MAX: &str = "elasticjob.retry.backoff.max";
/// Items start by up to so much later than their fire.
pub const START_JITTER: &str = "elasticjob.start.jitter";
/// It fires at a fixed rate, in place of a cron.
pub const EVERY: &str = "elasticjob.every";
/// An item runs again so long after it ended, in place of a cron.
pub const DELAY: &str = "elasticjob.delay";
/// Before this instant nothing fires.
pub const VALID_FROM: &str = "elasticjob.valid.from";
/// From this instant on nothing fires.
pub const VALID_UNTIL: &str = "elasticjob.valid.until";
/// What happens to fires that passed while nobody was up.
pub const CATCH_UP: &str = "elasticjob.catchup";

/// How a jobs file calls these properties.
pub const NAMES: [(&str, &str); 10] = [
    ("timeLimit", TIME_LIMIT),
    ("retries", RETRIES),
    ("retryBackoff", RETRY_BACKOFF),
    ("retryBackoffMax", RETRY_BACKOFF_MAX),
    ("startJitter", START_JITTER),
    ("every", EVERY),
    ("delay", DELAY),
    ("validFrom", VALID_FROM),
    ("validUntil", VALID_UNTIL),
    ("catchUp", CATCH_UP),
];

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A longer limit or pause is a slip of the unit.
const LIMIT_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const PERIOD_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);
const RETRIES_MAX: u32 = 100;
/// More fires are not made up for one by one.
pub const CATCH_UP_MAX: u32 = 1000;

/// What happens to fires that passed while no instance was up.
///
/// ```
/// use elasticjob_core::policy::CatchUp;
///
/// assert_eq!(CatchUp::default(), CatchUp::None);
/// assert_eq!(CatchUp::All { max: 10 }.to_string(), "all:10");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// Nothing, unless an instance comes up within a minute.
    #[default]
    None,
    /// The item runs once, for the last of them.
    Last,
    /// The item runs for each of them, the oldest first.
    All {
        /// But only for so many, the most recent ones.
        max: u32,
    },
}

impl fmt::Display for CatchUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatchUp::None => f.write_str("none"),
            CatchUp::Last => f.write_str("last"),
            CatchUp::All { max } => write!(f, "all:{max}"),
        }
    }
}

/// What a job's properties ask for. Everything is off unless it is set.
///
/// ```
/// use elasticjob_core::policy::{CATCH_UP, CatchUp, Policies};
/// use elasticjob_core::spec::JobSpec;
///
/// let mut spec = JobSpec::new("nightly", 1);
/// assert_eq!(Policies::read(&spec)?, Policies::default());
/// spec.props.insert(CATCH_UP.into(), "all:10".into());
/// assert_eq!(Policies::read(&spec)?.catch_up, CatchUp::All { max: 10 });
/// spec.props.insert(CATCH_UP.into(), "some".into());
/// assert_eq!(
///     Policies::read(&spec).unwrap_err().to_string(),
///     "property elasticjob.catchup `some` is no such policy: write none, last, or all: and a number from 1 to 1000"
/// );
/// # Ok::<(), elasticjob_core::spec::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policies {
    /// How long one attempt at an item may take.
    pub time_limit: Option<Duration>,
    /// How often an item that failed is tried again.
    pub retries: u32,
    /// The pause before the first retry.
    pub backoff: Duration,
    /// The longest pause.
    pub backoff_max: Duration,
    /// Items start by up to so much later than their fire.
    pub start_jitter: Duration,
    /// It fires at a fixed rate.
    pub every: Option<SignedDuration>,
    /// An item runs again so long after it ended.
    pub delay: Option<SignedDuration>,
    /// Before this nothing fires.
    pub valid_from: Option<Timestamp>,
    /// From this on nothing fires.
    pub valid_until: Option<Timestamp>,
    /// What happens to fires that passed while nobody was up.
    pub catch_up: CatchUp,
}

impl Default for Policies {
    fn default() -> Policies {
        Policies {
            time_limit: None,
            retries: 0,
            backoff: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            start_jitter: Duration::ZERO,
            every: None,
            delay: None,
            valid_from: None,
            valid_until: None,
            catch_up: CatchUp::None,
        }
    }
}

impl Policies {
    /// Reads them.
    ///
    /// # Errors
    /// The first property that cannot be used, or not with the other settings.
    pub fn read(spec: &JobSpec) -> Result<Policies, SpecError> {
        let props = Props(spec);
        let off = Policies::default();
        let (zero, tick) = (Duration::from_millis(1), Duration::from_millis(100));
        let backoff = props.duration(RETRY_BACKOFF, zero, LIMIT_MAX)?.unwrap_or(off.backoff);
        let every = props.duration(EVERY, Duration::from_secs(1), PERIOD_MAX)?;
        let delay = props.duration(DELAY, tick, PERIOD_MAX)?;
        let policies = Policies {
            time_limit: props.duration(TIME_LIMIT, zero, LIMIT_MAX)?,
            retries: props.count(RETRIES, RETRIES_MAX)?.unwrap_or(0),
            backoff,
            backoff_max: props
                .duration(RETRY_BACKOFF_MAX, backoff, LIMIT_MAX)?
                .unwrap_or(off.backoff_max.max(backoff)),
            start_jitter: props.duration(START_JITTER, zero, DAY)?.unwrap_or_default(),
            every: every.map(signed),
            delay: delay.map(signed),
            valid_from: props.instant(VALID_FROM)?,
            valid_until: props.instant(VALID_UNTIL)?,
            catch_up: props.catch_up()?,
        };
        policies.agree(props).map(|()| policies)
    }

    /// Settings that exclude each other are not weighed against each other: somebody meant both.
    fn agree(&self, props: Props<'_>) -> Result<(), SpecError> {
        let spec = props.0;
        let has_cron = spec.cron.as_deref().is_some_and(|it| !it.trim().is_empty());
        let unless =
            |wrong: bool, key, fault: &str| if wrong { Err(props.wrong(key, fault)) } else { Ok(()) };
        let caught_up = self.catch_up != CatchUp::None;
        unless(self.every.is_some() && has_cron, EVERY, "stands beside a cron: keep one of them")?;
        unless(self.delay.is_some() && has_cron, DELAY, "stands beside a cron: keep one of them")?;
        unless(
            self.delay.is_some() && self.every.is_some(),
            DELAY,
            "stands beside elasticjob.every: keep one of them",
        )?;
        unless(
            self.delay.is_some() && !spec.monitor_execution,
            DELAY,
            "needs to know when a run ended: set monitorExecution to true",
        )?;
        let empty = self.valid_from.zip(self.valid_until).is_some_and(|(from, until)| from >= until);
        unless(empty, VALID_UNTIL, "is not after elasticjob.valid.from: write a later instant")?;
        unless(
            caught_up && !(spec.misfire && spec.monitor_execution),
            CATCH_UP,
            "needs to know what was missed: set misfire and monitorExecution to true",
        )
    }
}

/// A property that is blank counts as not written.
#[derive(Clone, Copy)]
struct Props<'a>(&'a JobSpec);

impl<'a> Props<'a> {
    fn text(self, key: &str) -> Option<&'a str> {
        self.0.props.get(key).map(|text| text.trim()).filter(|text| !text.is_empty())
    }

    fn wrong(self, key: &str, fault: impl Into<String>) -> SpecError {
        let value = self.text(key).unwrap_or_default().to_owned();
        SpecError::Property { key: key.to_owned(), value, fault: fault.into() }
    }

    fn duration(self, key: &str, least: Duration, most: Duration) -> Result<Option<Duration>, SpecError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let parsed: Result<SignedDuration, _> = text.parse();
        match parsed.ok().and_then(|it| Duration::try_from(it).ok()) {
            None => Err(self.wrong(key, "is no duration: write a number and its unit, as in 30s or 2m")),
            Some(it) if it < least => {
                Err(self.wrong(key, format!("is too short: write at least {}", spell(least))))
            }
            Some(it) if it > most => {
                Err(self.wrong(key, format!("is too long: write at most {}", spell(most))))
            }
            some => Ok(some),
        }
    }

    fn count(self, key: &str, most: u32) -> Result<Option<u32>, SpecError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let count = text.parse().ok().filter(|count| *count <= most);
        let fault = || format!("is no such number: write one from 0 to {most}");
        count.map(Some).ok_or_else(|| self.wrong(key, fault()))
    }

    fn instant(self, key: &str) -> Result<Option<Timestamp>, SpecError> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let fault = "is no instant: write one with its offset, as in 2030-01-01T06:00:00+01:00";
        text.parse().map(Some).map_err(|_| self.wrong(key, fault))
    }

    fn catch_up(self) -> Result<CatchUp, SpecError> {
        let count = |text: &str| text.parse().ok().filter(|max| (1..=CATCH_UP_MAX).contains(max));
        let fault =
            || format!("is no such policy: write none, last, or all: and a number from 1 to {CATCH_UP_MAX}");
        match self.text(CATCH_UP) {
            None | Some("none") => Ok(CatchUp::None),
            Some("last") => Ok(CatchUp::Last),
            Some(text) => match text.strip_prefix("all:").map(str::trim).and_then(count) {
                Some(max) => Ok(CatchUp::All { max }),
                None => Err(self.wrong(CATCH_UP, fault())),
            },
        }
    }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// As one would write it.
fn spell(duration: Duration) -> String {
    format!("{:#}", signed(duration))
}
