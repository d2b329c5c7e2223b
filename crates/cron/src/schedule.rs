//! A compiled expression in a time zone: from local time to instants and back, through the clock changes.

use crate::cron::end_of_time;
use crate::zone::{Change, timestamp};
use crate::{Cron, Zone};
use jiff::Timestamp;

/// What to do with a fire whose local time does not exist, because the clocks were put forward over it.
///
/// ```
/// use elasticjob_cron::{Cron, DstPolicy, Gap, Schedule, Zone};
///
/// // In Vienna 02:00 to 03:00 did not exist on 2026-03-29.
/// let schedule = Schedule::new(Cron::parse("0 30 2 * * ?")?, Zone::parse("Europe/Vienna").unwrap());
/// let evening_before: jiff::Timestamp = "2026-03-28T20:00:00+01:00".parse().unwrap();
///
/// let skipping = schedule.clone().with_policy(DstPolicy { gap: Gap::Skip, ..DstPolicy::default() });
/// assert_eq!(skipping.next_after(evening_before), "2026-03-30T02:30:00+02:00".parse().ok());
///
/// let late = schedule.with_policy(DstPolicy { gap: Gap::RunAtEnd, ..DstPolicy::default() });
/// assert_eq!(late.next_after(evening_before), "2026-03-29T03:00:00+02:00".parse().ok());
/// # Ok::<(), elasticjob_cron::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Gap {
    /// The fire is left out. This is what Quartz does.
    #[default]
    Skip,
    /// One fire at the first instant after the gap, however many were skipped.
    RunAtEnd,
}

/// What to do with a fire whose local time comes twice, because the clocks were put back over it.
///
/// ```
/// use elasticjob_cron::{Cron, DstPolicy, Fold, Schedule, Zone};
///
/// // In Vienna 02:00 to 03:00 came twice on 2026-10-25.
/// let schedule = Schedule::new(Cron::parse("0 30 2 * * ?")?, Zone::parse("Europe/Vienna").unwrap());
/// let evening_before: jiff::Timestamp = "2026-10-24T20:00:00+02:00".parse().unwrap();
/// let on_the_day = |fold| {
///     let schedule = schedule.clone().with_policy(DstPolicy { fold, ..DstPolicy::default() });
///     let fires = schedule.upcoming(evening_before);
///     fires.take_while(|fire| fire.as_second() < evening_before.as_second() + 86_400).count()
/// };
/// assert_eq!([Fold::First, Fold::Second, Fold::Both].map(on_the_day), [1, 1, 2]);
/// # Ok::<(), elasticjob_cron::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fold {
    /// The first time only; jobs that run every few minutes pause during the second.
    First,
    /// The second time only; jobs that run every few minutes pause during the first. This is what Quartz does.
    #[default]
    Second,
    /// Both times.
    Both,
}

/// How clock changes are treated. The default is what Quartz does: [`Gap::Skip`] and [`Fold::Second`].
///
/// ```
/// use elasticjob_cron::{DstPolicy, Fold, Gap};
///
/// assert_eq!(DstPolicy::default(), DstPolicy { gap: Gap::Skip, fold: Fold::Second });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DstPolicy {
    /// For local times that do not exist.
    pub gap: Gap,
    /// For local times that come twice.
    pub fold: Fold,
}

/// An expression, the zone it is read in and what happens when the clocks change.
///
/// Every method is quick whatever the instant, and none panics. A schedule fires between the beginning of 1970
/// and the end of 2126, local time.
///
/// ```
/// use elasticjob_cron::{Cron, Schedule, Zone};
///
/// let schedule = Schedule::new(Cron::parse("0 0 9 ? * MON-FRI")?, Zone::parse("America/New_York").unwrap());
/// let friday: jiff::Timestamp = "2026-11-13T09:00:00-05:00".parse().unwrap();
/// assert_eq!(schedule.next_after(friday), "2026-11-16T09:00:00-05:00".parse().ok());
/// # Ok::<(), elasticjob_cron::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    cron: Cron,
    zone: Zone,
    policy: DstPolicy,
}

impl Schedule {
    /// A schedule that treats clock changes as Quartz does.
    ///
    /// ```
    /// use elasticjob_cron::{Cron, Schedule, Zone};
    ///
    /// let hourly = Schedule::new(Cron::parse("0 0 * * * ?")?, Zone::UTC);
    /// assert_eq!(hourly.next_after(jiff::Timestamp::UNIX_EPOCH).unwrap().as_second(), 3600);
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn new(cron: Cron, zone: Zone) -> Self {
        Self { cron, zone, policy: DstPolicy::default() }
    }

    /// The same schedule with another treatment of clock changes.
    ///
    /// ```
    /// use elasticjob_cron::{Cron, DstPolicy, Fold, Schedule, Zone};
    ///
    /// let both = DstPolicy { fold: Fold::Both, ..DstPolicy::default() };
    /// let schedule = Schedule::new(Cron::parse("0 0/10 * * * ?")?, Zone::system()).with_policy(both);
    /// assert_eq!(schedule.policy(), both);
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn with_policy(self, policy: DstPolicy) -> Self {
        Self { policy, ..self }
    }

    /// The expression.
    ///
    /// ```
    /// # use elasticjob_cron::{Cron, Schedule, Zone};
    /// let schedule = Schedule::new(Cron::parse("0 0 3 * * ?")?, Zone::UTC);
    /// assert_eq!(schedule.cron().describe(), "at 03:00:00 every day");
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn cron(&self) -> &Cron {
        &self.cron
    }

    /// The zone.
    ///
    /// ```
    /// # use elasticjob_cron::{Cron, Schedule, Zone};
    /// let schedule = Schedule::new(Cron::parse("0 0 3 * * ?")?, Zone::UTC);
    /// assert_eq!(schedule.zone(), &Zone::UTC);
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The treatment of clock changes.
    ///
    /// ```
    /// # use elasticjob_cron::{Cron, DstPolicy, Schedule, Zone};
    /// let schedule = Schedule::new(Cron::parse("0 0 3 * * ?")?, Zone::UTC);
    /// assert_eq!(schedule.policy(), DstPolicy::default());
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn policy(&self) -> DstPolicy {
        self.policy
    }

    /// The first fire strictly after an instant, at a whole second; nothing when there is none any more.
    ///
    /// ```
    /// use elasticjob_cron::{Cron, Schedule, Zone};
    ///
    /// let leap_days = Schedule::new(Cron::parse("0 0 0 29 2 ?")?, Zone::UTC);
    /// let now: jiff::Timestamp = "2026-11-15T12:34:56.789Z".parse().unwrap();
    /// assert_eq!(leap_days.next_after(now), "2028-02-29T00:00:00Z".parse().ok());
    ///
    /// let never = Schedule::new(Cron::parse("0 0 0 30 2 ?")?, Zone::UTC);
    /// assert_eq!(never.next_after(now), None);
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        self.next_from(floor(instant) + 1).and_then(timestamp)
    }

    /// The last fire strictly before an instant; nothing when there was none since 1970.
    ///
    /// ```
    /// use elasticjob_cron::{Cron, Schedule, Zone};
    ///
    /// let monthly = Schedule::new(Cron::parse("0 0 0 LW * ?")?, Zone::UTC);
    /// let now: jiff::Timestamp = "2026-11-15T12:34:56Z".parse().unwrap();
    /// assert_eq!(monthly.previous_before(now), "2026-10-30T00:00:00Z".parse().ok());
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn previous_before(&self, instant: Timestamp) -> Option<Timestamp> {
        self.previous_until(ceiling(instant) - 1).and_then(timestamp)
    }

    /// The fires strictly after an instant, in order.
    ///
    /// ```
    /// use elasticjob_cron::{Cron, Schedule, Zone};
    ///
    /// let fridays = Schedule::new(Cron::parse("0 0 12 ? * 6#3")?, Zone::UTC);
    /// let days: Vec<String> = fridays
    ///     .upcoming("2026-11-15T00:00:00Z".parse().unwrap())
    ///     .map(|fire| fire.strftime("%m-%d").to_string())
    ///     .take(3)
    ///     .collect();
    /// assert_eq!(days, ["11-20", "12-18", "01-15"]);
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    pub fn upcoming(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.next_after(after), |fire| self.next_after(*fire))
    }

    /// How many fires lie after `after` and not after `until`, without walking them.
    ///
    /// ```
    /// use elasticjob_cron::{Cron, Schedule, Zone};
    ///
    /// let every_second = Schedule::new(Cron::parse("* * * * * ?")?, Zone::UTC);
    /// let from: jiff::Timestamp = "2000-01-01T00:00:00Z".parse().unwrap();
    /// let until: jiff::Timestamp = "2100-01-01T00:00:00Z".parse().unwrap();
    /// assert_eq!(every_second.count_between(from, until), 36_525 * 86_400);
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn count_between(&self, after: Timestamp, until: Timestamp) -> u64 {
        let from = (floor(after) + 1).max(EARLIEST);
        let until = floor(until).min(latest());
        if from > until {
            return 0;
        }
        let mut count = 0;
        let mut stretch = self.stretch_at(from);
        // Bounded by the zone's changes between 1970 and 2126.
        loop {
            let (first, end) = (stretch.first.max(from + stretch.offset), until + 1 + stretch.offset);
            count += self.cron.count_local(first, stretch.end.min(end));
            if let Some(late) = self.late_fire(&stretch)
                && (from..=until).contains(&late)
                && self.cron.count_local(late + stretch.offset, late + stretch.offset + 1) == 0
            {
                count += 1;
            }
            match stretch.next {
                Some(change) if change.at <= until => stretch = self.stretch_after(&stretch, change),
                _ => return count,
            }
        }
    }

    fn next_from(&self, from: i64) -> Option<i64> {
        let from = from.max(EARLIEST);
        if from > latest() {
            return None;
        }
        let mut from = from;
        let mut stretch = self.stretch_at(from);
        // Bounded by the zone's changes between 1970 and 2126: each turn moves on to a later stretch.
        loop {
            if let Some(late) = self.late_fire(&stretch).filter(|late| *late >= from) {
                return Some(late);
            }
            let sought = stretch.first.max(from + stretch.offset);
            let found = self.cron.next_local(sought)?;
            if found < stretch.end {
                return Some(found - stretch.offset);
            }
            let change = stretch.next?;
            // Nothing matches from `sought` to `found`, and no zone is further from UTC than this: what lies
            // between can be passed over, unless the clocks are put back behind `sought`.
            let near = found - FURTHEST_OFFSET;
            if near > change.at + SHORTEST_STRETCH && change.at + change.offset >= sought {
                from = near;
                stretch = self.stretch_at(from);
            } else {
                from = change.at;
                stretch = self.stretch_after(&stretch, change);
            }
        }
    }

    fn previous_until(&self, until: i64) -> Option<i64> {
        let mut until = until.min(latest());
        // Bounded like the search forwards.
        while until >= EARLIEST {
            let stretch = self.whole_stretch_at(until);
            let sought = (stretch.end - 1).min(until + stretch.offset);
            let found = self.cron.previous_local(sought);
            if let Some(found) = found.filter(|found| *found >= stretch.first) {
                return Some(found - stretch.offset);
            }
            if let Some(late) = self.late_fire(&stretch) {
                return Some(late);
            }
            let change = stretch.previous?;
            until = change.at - 1;
            // Nothing matches from `found` to `sought`, so that what lies between can be passed over, unless the
            // clocks were put back from beyond `sought`.
            if change.at + change.offset <= sought + 1 {
                until = until.min(found? + FURTHEST_OFFSET);
            }
        }
        None
    }

    /// The fire that makes up for those in the gap before the stretch.
    fn late_fire(&self, stretch: &Stretch) -> Option<i64> {
        if self.policy.gap == Gap::Skip {
            return None;
        }
        let gap = stretch.previous.filter(|change| change.offset < stretch.offset)?;
        let skipped = self.cron.next_local(gap.at + gap.offset)?;
        (skipped < gap.at + stretch.offset).then_some(gap.at)
    }

    /// The stretch around an instant. Its beginning is looked up only where the policy cares for it.
    fn stretch_at(&self, instant: i64) -> Stretch {
        if self.policy == DstPolicy::default() {
            let offset = self.zone.offset_at(instant);
            return Stretch::new(None, offset, self.zone.change_after(instant, offset), self.policy.fold);
        }
        self.whole_stretch_at(instant)
    }

    fn whole_stretch_at(&self, instant: i64) -> Stretch {
        let offset = self.zone.offset_at(instant);
        let previous = self.zone.change_at_or_before(instant, offset);
        Stretch::new(previous, offset, self.zone.change_after(instant, offset), self.policy.fold)
    }

    fn stretch_after(&self, stretch: &Stretch, change: Change) -> Stretch {
        let previous = Change { at: change.at, offset: stretch.offset };
        let next = self.zone.change_after(change.at, change.offset);
        Stretch::new(Some(previous), change.offset, next, self.policy.fold)
    }
}

/// A stretch of constant offset, with the local times in which it may fire under a policy: `first..end`.
///
/// The times that come twice belong to the stretch before a change as well as to the one after it. Taking them from
/// one of the two is all there is to [`Fold`].
struct Stretch {
    previous: Option<Change>,
    offset: i64,
    next: Option<Change>,
    first: i64,
    end: i64,
}

impl Stretch {
    fn new(previous: Option<Change>, offset: i64, next: Option<Change>, fold: Fold) -> Self {
        let first = previous.map_or(i64::MIN, |change| match fold {
            Fold::First => change.at + offset.max(change.offset),
            Fold::Second | Fold::Both => change.at + offset,
        });
        let end = next.map_or(i64::MAX, |change| match fold {
            Fold::Second => change.at + offset.min(change.offset),
            Fold::First | Fold::Both => change.at + offset,
        });
        Self { previous, offset, next, first, end }
    }
}

/// No offset is further from UTC than this, in seconds.
const FURTHEST_OFFSET: i64 = 26 * 3600;
/// No zone changes its offset twice within this time; in the zone data a week is the shortest.
const SHORTEST_STRETCH: i64 = 2 * 86_400;
/// Before this instant it is not yet 1970 anywhere.
const EARLIEST: i64 = -FURTHEST_OFFSET;

/// After this instant 2126 is over everywhere.
fn latest() -> i64 {
    end_of_time() + FURTHEST_OFFSET
}

fn floor(instant: Timestamp) -> i64 {
    instant.as_second() - i64::from(instant.subsec_nanosecond() < 0)
}

fn ceiling(instant: Timestamp) -> i64 {
    instant.as_second() + i64::from(instant.subsec_nanosecond() > 0)
}
