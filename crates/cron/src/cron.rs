//! The compiled expression: bit sets for every field and the search over local time.
//! It knows nothing of zones; [`Schedule`](crate::Schedule) maps local time to instants.

use crate::calendar::{self, DAY, Date, FIRST_YEAR, LAST_YEAR, YEARS};
use crate::{ParseError, describe, parse};
use std::fmt;
use std::str::FromStr;

/// A compiled Quartz cron expression.
///
/// It takes no heap memory and less than 200 bytes. Two expressions that mean the same are equal:
///
/// ```
/// use elasticjob_cron::Cron;
///
/// let by_name: Cron = "0 0/20 6-22 ? * MON-FRI".parse()?;
/// let by_number = Cron::parse("0 0,20,40 6-22 ? JAN-DEC 2-6 *")?;
/// assert_eq!(by_name, by_number);
/// # Ok::<(), elasticjob_cron::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Cron {
    /// Bit `n` = second `n`.
    pub(crate) seconds: u64,
    /// Bit `n` = minute `n`.
    pub(crate) minutes: u64,
    /// Bit `n` = hour `n`.
    pub(crate) hours: u32,
    /// Bit `n` = month `n`, January is 1.
    pub(crate) months: u16,
    pub(crate) days: Days,
    pub(crate) years: Years,
}

/// Which days of a month: by their number or by their weekday, never both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Days {
    OfMonth(MonthDays),
    /// Bit `n` = weekday `n`, Sunday is 1.
    OfWeek(u8),
    /// The last such weekday of the month, Sunday is 1.
    LastOfWeek(u8),
    /// The `nth` such weekday of the month, Sunday is 1.
    NthOfWeek {
        weekday: u8,
        nth: u8,
    },
}

/// A list of days of the month, sorted by what the entries are relative to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct MonthDays {
    /// Bit `n` = day `n`.
    pub(crate) plain: u32,
    /// Bit `n` = `nW`, the weekday nearest to day `n`.
    pub(crate) nearest: u32,
    /// Bit `k` = `L-k`, with `L` as `L-0`.
    pub(crate) from_last: u32,
    /// Bit `k` = `L-kW`, with `LW` as `L-0W`.
    pub(crate) nearest_from_last: u32,
}

/// The years of an expression, as a bit set from [`FIRST_YEAR`] on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Years([u64; YEARS.div_ceil(64)]);

pub(crate) const ALL_SIXTY: u64 = (1 << 60) - 1;
pub(crate) const ALL_HOURS: u32 = (1 << 24) - 1;
pub(crate) const ALL_MONTHS: u16 = 0b1_1111_1111_1110;
pub(crate) const ALL_MONTH_DAYS: u32 = !1;
pub(crate) const ALL_WEEKDAYS: u8 = 0b1111_1110;

impl Cron {
    /// Compiles an expression; the same as `text.parse()`.
    ///
    /// ```
    /// use elasticjob_cron::Cron;
    ///
    /// assert!(Cron::parse("0 15 10 LW * ?").is_ok());
    /// let refused = Cron::parse("0 0 24 * * ?").unwrap_err();
    /// assert_eq!(refused.to_string(), "hour `24` at column 5: the hour is 0 to 23");
    /// ```
    ///
    /// # Errors
    ///
    /// When the text is not an expression of the dialect; see [`ParseError`].
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::cron(text)
    }

    /// The expression in plain English.
    ///
    /// ```
    /// use elasticjob_cron::Cron;
    ///
    /// let cron = Cron::parse("0 15 2 LW * ?")?;
    /// assert_eq!(cron.describe(), "at 02:15:00 on the last weekday of every month");
    /// # Ok::<(), elasticjob_cron::ParseError>(())
    /// ```
    #[must_use]
    pub fn describe(&self) -> String {
        describe::english(self)
    }

    /// The first matching local second at or after `local` (seconds since 1970-01-01T00:00 on the wall).
    pub(crate) fn next_local(&self, local: i64) -> Option<i64> {
        let local = local.max(0);
        let date = Date::from_days(local / DAY);
        if self.matches_date(date)
            && let Some(second) = self.next_second_of_day((local % DAY) as u32)
        {
            return Some(local - local % DAY + i64::from(second));
        }
        let day = self.next_date(date)?;
        Some(day.days() * DAY + i64::from(self.first_second_of_day()))
    }

    /// The last matching local second at or before `local`.
    pub(crate) fn previous_local(&self, local: i64) -> Option<i64> {
        if local < 0 {
            return None;
        }
        let local = local.min(end_of_time() - 1);
        let date = Date::from_days(local / DAY);
        if self.matches_date(date)
            && let Some(second) = self.previous_second_of_day((local % DAY) as u32)
        {
            return Some(local - local % DAY + i64::from(second));
        }
        let day = self.previous_date(date)?;
        Some(day.days() * DAY + i64::from(self.last_second_of_day()))
    }

    /// How many local seconds match in `from..until`. Days are counted month by month, not walked.
    pub(crate) fn count_local(&self, from: i64, until: i64) -> u64 {
        let (from, until) = (from.max(0), until.min(end_of_time()));
        if from >= until {
            return 0;
        }
        let (first, last) = (Date::from_days(from / DAY), Date::from_days(until / DAY));
        let per_day = self.count_before_second(DAY as u32);
        // Whole days from the first on, without the last; then the two ends are trimmed.
        let mut count = self.count_dates(first, last) * per_day;
        if self.matches_date(last) {
            count += self.count_before_second((until % DAY) as u32);
        }
        if self.matches_date(first) {
            count -= self.count_before_second((from % DAY) as u32);
        }
        count
    }

    fn matches_date(&self, date: Date) -> bool {
        self.years.contains(date.year)
            && self.months >> date.month & 1 == 1
            && self.days_in(date.year, date.month) >> date.day & 1 == 1
    }

    /// The first matching date after `date`.
    fn next_date(&self, date: Date) -> Option<Date> {
        let mut year = self.years.at_or_after(date.year)?;
        if year == date.year {
            if self.months >> date.month & 1 == 1 {
                let days = self.days_in(year, date.month) & above(date.day);
                if days != 0 {
                    return Some(Date { day: days.trailing_zeros(), ..date });
                }
            }
            if let Some(found) = self.first_date_in(year, self.months & !below_or_at_month(date.month)) {
                return Some(found);
            }
            year = self.years.at_or_after(year + 1)?;
        }
        // Bounded by the years of the set.
        loop {
            if let Some(found) = self.first_date_in(year, self.months) {
                return Some(found);
            }
            year = self.years.at_or_after(year + 1)?;
        }
    }

    fn first_date_in(&self, year: i32, mut months: u16) -> Option<Date> {
        while months != 0 {
            let month = months.trailing_zeros();
            let days = self.days_in(year, month);
            if days != 0 {
                return Some(Date { year, month, day: days.trailing_zeros() });
            }
            months &= months - 1;
        }
        None
    }

    /// The last matching date before `date`.
    fn previous_date(&self, date: Date) -> Option<Date> {
        let mut year = self.years.at_or_before(date.year)?;
        if year == date.year {
            if self.months >> date.month & 1 == 1 {
                let days = self.days_in(year, date.month) & below(date.day);
                if days != 0 {
                    return Some(Date { day: days.ilog2(), ..date });
                }
            }
            let earlier = self.months & (below_or_at_month(date.month) >> 1);
            if let Some(found) = self.last_date_in(year, earlier) {
                return Some(found);
            }
            year = self.years.at_or_before(year - 1)?;
        }
        // Bounded by the years of the set.
        loop {
            if let Some(found) = self.last_date_in(year, self.months) {
                return Some(found);
            }
            year = self.years.at_or_before(year - 1)?;
        }
    }

    fn last_date_in(&self, year: i32, mut months: u16) -> Option<Date> {
        while months != 0 {
            let month = months.ilog2();
            let days = self.days_in(year, month);
            if days != 0 {
                return Some(Date { year, month, day: days.ilog2() });
            }
            months &= !(1 << month);
        }
        None
    }

    /// How many dates match in `from..until`.
    fn count_dates(&self, from: Date, until: Date) -> u64 {
        let mut count = 0;
        let mut year = self.years.at_or_after(from.year);
        while let Some(y) = year.filter(|y| *y <= until.year) {
            let mut months = self.months;
            while months != 0 {
                let month = months.trailing_zeros();
                months &= months - 1;
                if (y, month) < (from.year, from.month) || (y, month) > (until.year, until.month) {
                    continue;
                }
                let mut days = self.days_in(y, month);
                if (y, month) == (from.year, from.month) {
                    days &= !below(from.day);
                }
                if (y, month) == (until.year, until.month) {
                    days &= below(until.day);
                }
                count += u64::from(days.count_ones());
            }
            year = self.years.at_or_after(y + 1);
        }
        count
    }

    /// The matching days of one month; bit `n` = day `n`.
    fn days_in(&self, year: i32, month: u32) -> u32 {
        let length = calendar::month_length(year, month);
        match self.days {
            Days::OfMonth(ref days) => days.in_month(year, month, length),
            Days::OfWeek(weekdays) => weekdays_in(weekdays, year, month, length),
            Days::LastOfWeek(weekday) => weekdays_in(1 << weekday, year, month, length) & above(length - 7),
            Days::NthOfWeek { weekday, nth } => {
                let before = 7 * (u32::from(nth) - 1);
                weekdays_in(1 << weekday, year, month, length) & above(before) & below(before + 8)
            }
        }
    }

    fn next_second_of_day(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1 {
                let seconds = self.seconds >> second;
                if seconds != 0 {
                    return Some(from + seconds.trailing_zeros());
                }
            }
            let minutes = self.minutes & (u64::MAX << minute << 1);
            if minutes != 0 {
                return Some(hour * 3600 + minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros());
            }
        }
        let hours = self.hours & (u32::MAX << hour << 1);
        (hours != 0).then(|| hours.trailing_zeros() * 3600 + self.first_second_of_hour())
    }

    fn previous_second_of_day(&self, from: u32) -> Option<u32> {
        let (hour, minute, second) = (from / 3600, from / 60 % 60, from % 60);
        if self.hours >> hour & 1 == 1 {
            if self.minutes >> minute & 1 == 1 {
                let seconds = self.seconds & !(u64::MAX << second << 1);
                if seconds != 0 {
                    return Some(from - second + seconds.ilog2());
                }
            }
            let minutes = self.minutes & !(u64::MAX << minute);
            if minutes != 0 {
                return Some(hour * 3600 + minutes.ilog2() * 60 + self.seconds.ilog2());
            }
        }
        let hours = self.hours & !(u32::MAX << hour);
        (hours != 0).then(|| hours.ilog2() * 3600 + self.minutes.ilog2() * 60 + self.seconds.ilog2())
    }

    /// How many seconds of a matching day lie before `until`, which may be the whole day.
    fn count_before_second(&self, until: u32) -> u64 {
        let (hour, minute, second) = (until / 3600, until / 60 % 60, until % 60);
        let per_minute = u64::from(self.seconds.count_ones());
        let per_hour = u64::from(self.minutes.count_ones()) * per_minute;
        let mut count = u64::from((self.hours & !(u32::MAX << hour)).count_ones()) * per_hour;
        if self.hours >> hour & 1 == 1 {
            count += u64::from((self.minutes & !(u64::MAX << minute)).count_ones()) * per_minute;
            if self.minutes >> minute & 1 == 1 {
                count += u64::from((self.seconds & !(u64::MAX << second)).count_ones());
            }
        }
        count
    }

    fn first_second_of_hour(&self) -> u32 {
        self.minutes.trailing_zeros() * 60 + self.seconds.trailing_zeros()
    }

    fn first_second_of_day(&self) -> u32 {
        self.hours.trailing_zeros() * 3600 + self.first_second_of_hour()
    }

    fn last_second_of_day(&self) -> u32 {
        self.hours.ilog2() * 3600 + self.minutes.ilog2() * 60 + self.seconds.ilog2()
    }
}

impl MonthDays {
    fn in_month(&self, year: i32, month: u32, length: u32) -> u32 {
        let in_range = below(length + 1) & !1;
        let mut days = self.plain & in_range;
        if self.from_last != 0 {
            days |= mirrored(self.from_last, length) & in_range;
        }
        if self.nearest | self.nearest_from_last != 0 {
            let first_weekday = calendar::first_weekday(year, month);
            let mut wanted = (self.nearest | mirrored(self.nearest_from_last, length)) & in_range;
            while wanted != 0 {
                days |= 1 << nearest_weekday(wanted.trailing_zeros(), first_weekday, length);
                wanted &= wanted - 1;
            }
        }
        days
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.nearest | self.from_last | self.nearest_from_last == 0
    }
}

impl Years {
    pub(crate) fn all() -> Self {
        let mut years = Self::default();
        (FIRST_YEAR..=LAST_YEAR).for_each(|year| years.insert(year));
        years
    }

    /// Years outside of the calendar are left out: they never come.
    pub(crate) fn insert(&mut self, year: i32) {
        if (FIRST_YEAR..=LAST_YEAR).contains(&year) {
            let index = (year - FIRST_YEAR) as usize;
            self.0[index / 64] |= 1 << (index % 64);
        }
    }

    pub(crate) fn contains(&self, year: i32) -> bool {
        self.at_or_after(year) == Some(year)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = i32> + '_ {
        (FIRST_YEAR..=LAST_YEAR).filter(|year| self.contains(*year))
    }

    fn at_or_after(&self, year: i32) -> Option<i32> {
        if year > LAST_YEAR {
            return None;
        }
        let index = (year - FIRST_YEAR).max(0) as usize;
        let mut word = index / 64;
        let mut bits = self.0[word] & (u64::MAX << (index % 64));
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(FIRST_YEAR + (word * 64) as i32 + bits.trailing_zeros() as i32)
    }

    fn at_or_before(&self, year: i32) -> Option<i32> {
        if year < FIRST_YEAR {
            return None;
        }
        let index = (year.min(LAST_YEAR) - FIRST_YEAR) as usize;
        let mut word = index / 64;
        let mut bits = self.0[word] & (u64::MAX >> (63 - index % 64));
        while bits == 0 {
            word = word.checked_sub(1)?;
            bits = self.0[word];
        }
        Some(FIRST_YEAR + (word * 64) as i32 + bits.ilog2() as i32)
    }
}

/// The day of the month that is the weekday nearest to `day`, without leaving the month.
fn nearest_weekday(day: u32, first_weekday: u32, length: u32) -> u32 {
    match (first_weekday + day - 1) % 7 {
        0 if day == length => day - 2,
        0 => day + 1,
        6 if day == 1 => 3,
        6 => day - 1,
        _ => day,
    }
}

/// Turns "days before the last" into days of a month of this length; what falls before the first is cut off.
fn mirrored(from_last: u32, length: u32) -> u32 {
    from_last.reverse_bits() >> (31 - length)
}

/// The days of a month that fall on the given weekdays (bit 1 = Sunday).
fn weekdays_in(weekdays: u8, year: i32, month: u32, length: u32) -> u32 {
    // Six weeks in a row, from a Sunday on; shifted so that bit 0 is the first of the month.
    let weeks = u64::from(weekdays >> 1) * 0b1_0000001_0000001_0000001_0000001_0000001;
    let month_days = weeks >> calendar::first_weekday(year, month);
    (month_days << 1) as u32 & below(length + 1)
}

/// The end of the last year, in local seconds.
pub(crate) fn end_of_time() -> i64 {
    Date { year: LAST_YEAR + 1, month: 1, day: 1 }.days() * DAY
}

fn above(day: u32) -> u32 {
    u32::MAX << day << 1
}

fn below(day: u32) -> u32 {
    !(u32::MAX.checked_shl(day).unwrap_or(0))
}

fn below_or_at_month(month: u32) -> u16 {
    !(u16::MAX << month << 1)
}

impl FromStr for Cron {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

/// Writes the shortest usual spelling, which parses to an equal value.
///
/// ```
/// use elasticjob_cron::Cron;
///
/// let cron = Cron::parse("0 0,20,40 * ? 1-12 monday-friday")?;
/// assert_eq!(cron.to_string(), "0 0/20 * ? * MON-FRI");
/// # Ok::<(), elasticjob_cron::ParseError>(())
/// ```
impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::spell::expression(self, f)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron(\"{self}\")")
    }
}

#[cfg(test)]
mod tests {
    use super::Cron;

    #[test]
    fn a_compiled_expression_is_small() {
        const { assert!(size_of::<Cron>() <= 200) };
    }

    #[test]
    fn an_impossible_expression_is_found_out_within_a_century_and_a_half_of_months() {
        for impossible in [
            "0 0 0 30 2 ?",
            "0 0 0 31 2,4,6,9,11 ?",
            "0 0 0 L-30 2 ?",
            "0 0 0 ? 2 1#5 2025",
            "* * * * * ? 1969",
        ] {
            let cron = Cron::parse(impossible).unwrap();
            assert_eq!((cron.next_local(0), cron.previous_local(i64::MAX)), (None, None), "{impossible}");
            assert_eq!(cron.count_local(i64::MIN, i64::MAX), 0, "{impossible}");
        }
    }
}
