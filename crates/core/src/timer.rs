//! When a job fires: by its cron or at a fixed rate, and within the time that it is valid.

use elasticjob_cron::{Schedule, Zone};
use jiff::{SignedDuration, Timestamp};

/// Fires that everybody who reads the same settings agrees on.
///
/// ```
/// use elasticjob_core::timer::Timer;
/// use elasticjob_cron::Zone;
/// use jiff::{SignedDuration, Timestamp};
///
/// let from: Timestamp = "2030-01-01T00:00:10Z".parse().unwrap();
/// let timer = Timer::every(SignedDuration::from_secs(90), Zone::UTC).within(Some(from), None);
/// assert_eq!(timer.next_after(Timestamp::UNIX_EPOCH), Some(from));
/// assert_eq!(timer.next_after(from), "2030-01-01T00:01:40Z".parse().ok());
/// assert_eq!(timer.describe(), "every 1m 30s, from 2030-01-01T00:00:10Z");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    beat: Beat,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Beat {
    Cron(Schedule),
    /// On a grid that begins when the job becomes valid, or else with 1970: nobody needs to know when it began.
    Every {
        period: SignedDuration,
        zone: Zone,
    },
}

impl Timer {
    /// It fires as a schedule says.
    pub fn cron(schedule: Schedule) -> Timer {
        Timer { beat: Beat::Cron(schedule), from: None, until: None }
    }

    /// It fires once in every period; `zone` is that in which times are shown. A period of less than a millisecond is
    /// one.
    pub fn every(period: SignedDuration, zone: Zone) -> Timer {
        let period = period.max(SignedDuration::from_millis(1));
        Timer { beat: Beat::Every { period, zone }, from: None, until: None }
    }

    /// The same, but without what it fires before `from`, and from `until` on.
    #[must_use]
    pub fn within(self, from: Option<Timestamp>, until: Option<Timestamp>) -> Timer {
        Timer { from, until, ..self }
    }

    /// The first fire strictly after an instant.
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        let after = self.from.map_or(instant, |from| instant.max(just_before(from)));
        let next = match &self.beat {
            Beat::Cron(schedule) => schedule.next_after(after)?,
            Beat::Every { period, .. } => self.on_grid(*period, after, 1)?,
        };
        self.until.is_none_or(|until| next < until).then_some(next)
    }

    /// The last fire strictly before an instant.
    pub fn previous_before(&self, instant: Timestamp) -> Option<Timestamp> {
        let before = self.until.map_or(instant, |until| instant.min(until));
        let previous = match &self.beat {
            Beat::Cron(schedule) => schedule.previous_before(before)?,
            Beat::Every { period, .. } => self.on_grid(*period, just_before(before), 0)?,
        };
        self.from.is_none_or(|from| previous >= from).then_some(previous)
    }

    /// The fires strictly after an instant, in order.
    pub fn upcoming(&self, after: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        std::iter::successors(self.next_after(after), |fire| self.next_after(*fire))
    }

    /// How many fires there are after an instant, up to and including another.
    pub fn count_between(&self, after: Timestamp, until: Timestamp) -> u64 {
        let after = self.from.map_or(after, |from| after.max(just_before(from)));
        let until = self.until.map_or(until, |end| until.min(just_before(end)));
        match &self.beat {
            Beat::Cron(schedule) => schedule.count_between(after, until),
            Beat::Every { period, .. } => {
                let steps = self.step_at(*period, until) - self.step_at(*period, after);
                u64::try_from(steps.max(0)).unwrap_or(u64::MAX)
            }
        }
    }

    /// Where its times are at home.
    pub fn zone(&self) -> &Zone {
        match &self.beat {
            Beat::Cron(schedule) => schedule.zone(),
            Beat::Every { zone, .. } => zone,
        }
    }

    /// In words.
    pub fn describe(&self) -> String {
        let beat = match &self.beat {
            Beat::Cron(schedule) => schedule.cron().describe(),
            Beat::Every { period, .. } => format!("every {period:#}"),
        };
        let from = self.from.map(|it| format!(", from {it}")).unwrap_or_default();
        let until = self.until.map(|it| format!(", until {it}")).unwrap_or_default();
        format!("{beat}{from}{until}")
    }

    fn anchor(&self) -> Timestamp {
        self.from.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The number of the last point of the grid up to an instant.
    fn step_at(&self, period: SignedDuration, at: Timestamp) -> i128 {
        at.duration_since(self.anchor()).as_nanos().div_euclid(period.as_nanos())
    }

    /// The point of the grid that is so many after the last one up to an instant.
    fn on_grid(&self, period: SignedDuration, at: Timestamp, further: i128) -> Option<Timestamp> {
        let nanos = (self.step_at(period, at) + further).checked_mul(period.as_nanos())?;
        let nanos = nanos.checked_add(self.anchor().as_nanosecond())?;
        Timestamp::from_nanosecond(nanos).ok()
    }
}

fn just_before(instant: Timestamp) -> Timestamp {
    instant.checked_sub(SignedDuration::from_nanos(1)).unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use elasticjob_cron::Cron;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn every(seconds: i64) -> Timer {
        Timer::every(SignedDuration::from_secs(seconds), Zone::UTC)
    }

    #[test]
    fn a_rate_is_a_grid_that_everybody_agrees_on() {
        let timer = every(7);
        let now = at("2030-01-01T00:00:00Z");
        let fires: Vec<Timestamp> = timer.upcoming(now).take(3).collect();
        assert!(fires.iter().all(|it| it.as_second() % 7 == 0), "{fires:?}");
        assert_eq!(timer.count_between(now, fires[2]), 3);
        assert_eq!(timer.count_between(fires[0], fires[2]), 2);
        assert_eq!(timer.previous_before(fires[1]), Some(fires[0]));
        assert_eq!(timer.next_after(fires[0]), Some(fires[1]));
        assert_eq!(timer.next_after(just_before(fires[0])), Some(fires[0]));
        assert_eq!(timer.next_after(Timestamp::MAX), None);
    }

    #[test]
    fn outside_of_its_time_nothing_fires() {
        let (from, until) = (at("2030-01-01T00:00:10Z"), at("2030-01-01T00:01:00Z"));
        let cron = Schedule::new(Cron::parse("0/10 * * * * ?").unwrap(), Zone::UTC);
        for timer in [Timer::cron(cron), every(10)] {
            let timer = timer.within(Some(from), Some(until));
            let fires: Vec<Timestamp> = timer.upcoming(Timestamp::UNIX_EPOCH).collect();
            assert_eq!((fires.len(), fires[0], fires[4]), (5, from, at("2030-01-01T00:00:50Z")));
            assert_eq!(timer.previous_before(Timestamp::MAX), Some(fires[4]));
            assert_eq!(timer.previous_before(from), None);
            assert_eq!(timer.next_after(fires[4]), None);
            assert_eq!(timer.count_between(Timestamp::UNIX_EPOCH, Timestamp::MAX), 5);
            assert_eq!(timer.count_between(from, until), 4);
        }
    }
}
