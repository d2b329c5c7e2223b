//! A second reading of the dialect, for tests: it keeps the text, asks every entry about every value, and takes all
//! calendar and zone arithmetic from jiff's civil types. It shares no code and no idea with the engine.

use elasticjob_cron::{DstPolicy, Fold, Gap};
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, ToSpan};

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const DAY: i64 = 86_400;

pub(crate) struct Oracle {
    fields: Vec<String>,
    seconds: Vec<i8>,
    minutes: Vec<i8>,
    hours: Vec<i8>,
    zone: TimeZone,
    policy: DstPolicy,
}

impl Oracle {
    /// `expression` is one that the engine accepts.
    pub(crate) fn new(expression: &str, zone: &str, policy: DstPolicy) -> Self {
        let mut fields: Vec<String> =
            expression.to_uppercase().split_whitespace().map(str::to_owned).collect();
        fields.resize(7, "*".into());
        let times = |index: usize, last: i8| {
            (0..=last).filter(|value| in_list(&fields[index], (*value).into(), 0, last.into(), &[])).collect()
        };
        let (seconds, minutes, hours) = (times(0, 59), times(1, 59), times(2, 23));
        let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
        Self { fields, seconds, minutes, hours, zone, policy }
    }

    /// Whether the expression names this instant, as the clock on the wall shows it.
    pub(crate) fn matches(&self, second: i64) -> bool {
        let at = self.zone.to_datetime(Timestamp::from_second(second).unwrap());
        self.matches_date(at.date())
            && self.hours.contains(&at.hour())
            && self.minutes.contains(&at.minute())
            && self.seconds.contains(&at.second())
    }

    /// The first fire after an instant and not after `limit`.
    pub(crate) fn next_after(&self, instant: Timestamp, limit: i64) -> Option<i64> {
        let mut from = instant.as_nanosecond().div_euclid(1_000_000_000) as i64 + 1;
        let mut span = 3600;
        while from <= limit {
            if let Some(fire) = self.fires(from, from + span).first() {
                return Some(*fire).filter(|fire| *fire <= limit);
            }
            from += span;
            span = (span * 3).min(20 * DAY);
        }
        None
    }

    /// All fires in `from..until`.
    pub(crate) fn fires(&self, from: i64, until: i64) -> Vec<i64> {
        let wall = |second: i64| TimeZone::UTC.to_datetime(Timestamp::from_second(second).unwrap());
        let (mut date, last) = (wall(from - 2 * DAY).date(), wall(until + 2 * DAY).date());
        let mut fires = Vec::new();
        while date <= last {
            if self.matches_date(date) {
                for hour in &self.hours {
                    let utc = TimeZone::UTC.to_timestamp(date.at(*hour, 0, 0, 0)).unwrap().as_second();
                    if (from - 28 * 3600..until + 28 * 3600).contains(&utc) {
                        self.fires_in_hour(date, *hour, &mut fires);
                    }
                }
            }
            date = date.tomorrow().unwrap();
        }
        fires.retain(|fire| (from..until).contains(fire));
        fires.sort_unstable();
        fires.dedup();
        fires
    }

    fn fires_in_hour(&self, date: Date, hour: i8, fires: &mut Vec<i64>) {
        for minute in &self.minutes {
            for second in &self.seconds {
                self.instants(date.at(hour, *minute, *second, 0), fires);
            }
        }
    }

    fn instants(&self, wall: DateTime, fires: &mut Vec<i64>) {
        let at = |offset: jiff::tz::Offset| offset.to_timestamp(wall).unwrap().as_second();
        match self.zone.to_ambiguous_timestamp(wall).offset() {
            AmbiguousOffset::Unambiguous { offset } => fires.push(at(offset)),
            AmbiguousOffset::Gap { before, .. } => {
                if self.policy.gap == Gap::RunAtEnd {
                    // Read with the old offset, the time lies after the change that skipped it.
                    let after = Timestamp::from_second(at(before) + 1).unwrap();
                    fires.push(self.zone.preceding(after).next().unwrap().timestamp().as_second());
                }
            }
            AmbiguousOffset::Fold { before, after } => match self.policy.fold {
                Fold::First => fires.push(at(before)),
                Fold::Second => fires.push(at(after)),
                Fold::Both => fires.extend([at(before), at(after)]),
            },
        }
    }

    fn matches_date(&self, date: Date) -> bool {
        let [_, _, _, month_day, month, weekday, year] = &self.fields[..] else { unreachable!() };
        let year_number = i64::from(date.year());
        (1970..=2126).contains(&year_number)
            && year.split(',').filter(|entry| !entry.is_empty()).any(|entry| in_years(entry, year_number))
            && in_list(month, date.month().into(), 1, 12, &MONTHS)
            && match month_day.as_str() {
                "?" | "98" => matches_weekday(weekday, date),
                _ => month_day.split(',').any(|entry| matches_month_day(entry, date)),
            }
    }
}

fn matches_month_day(entry: &str, date: Date) -> bool {
    let month = (1..=date.days_in_month()).map(|day| date.with().day(day).build().unwrap());
    let (target, nearest) = match entry.strip_suffix('W') {
        Some(target) => (target, true),
        None => (entry, false),
    };
    let target = match target.strip_prefix('L') {
        Some("") => Some(i64::from(date.days_in_month())),
        Some(offset) => Some(i64::from(date.days_in_month()) + offset.parse::<i64>().unwrap()),
        None => target.parse().ok(),
    };
    match target {
        Some(target) if nearest => {
            // A day that the month does not have has no neighbours either.
            let exists = (1..=i64::from(date.days_in_month())).contains(&target);
            let working = month.filter(|day| day.weekday().to_monday_one_offset() <= 5);
            let closest = working.min_by_key(|day| (i64::from(day.day()) - target).abs());
            exists && closest == Some(date)
        }
        Some(target) if entry != "99" => i64::from(date.day()) == target,
        _ => in_list(entry, date.day().into(), 1, 31, &[]),
    }
}

fn matches_weekday(field: &str, date: Date) -> bool {
    let weekday = i64::from(date.weekday().to_sunday_one_offset());
    if field == "L" {
        return weekday == 7;
    }
    if let Some((day, nth)) = field.split_once('#') {
        return number(day, &WEEKDAYS) == weekday && nth.parse() == Ok((date.day() - 1) / 7 + 1);
    }
    match field.strip_suffix('L') {
        Some(day) => {
            number(day, &WEEKDAYS) == weekday && date.checked_add(7.days()).unwrap().month() != date.month()
        }
        None => in_list(field, weekday, 1, 7, &WEEKDAYS),
    }
}

fn in_list(field: &str, value: i64, min: i64, max: i64, names: &[&str]) -> bool {
    field == "99"
        || field.split(',').filter(|entry| !entry.is_empty()).any(|entry| {
            let (first, last, step) = range(entry, min, max, names);
            let size = max - min + 1;
            let length = if last < first { last + size - first } else { last - first };
            (0..=length).step_by(step as usize).any(|walked| (first - min + walked) % size + min == value)
        })
}

fn in_years(entry: &str, year: i64) -> bool {
    let (first, last, step) = range(entry, 1970, 2126, &[]);
    entry == "99" || ((first..=last).contains(&year) && (year - first) % step == 0)
}

fn range(entry: &str, min: i64, max: i64, names: &[&str]) -> (i64, i64, i64) {
    let (range, step) = match entry.split_once('/') {
        Some((range, step)) => (range, Some(step.parse().unwrap())),
        None => (entry, None),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (number(first, names), number(last, names)),
        None if range.is_empty() || range == "*" => (min, max),
        None if step.is_some() => (number(range, names), max),
        None => (number(range, names), number(range, names)),
    };
    (first, last, step.unwrap_or(1))
}

fn number(text: &str, names: &[&str]) -> i64 {
    let named = names.iter().position(|name| text.starts_with(name));
    named.map_or_else(|| text.parse().unwrap(), |index| index as i64 + 1)
}
