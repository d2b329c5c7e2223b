//! The proleptic Gregorian calendar on plain integers: days since 1970-01-01, for the years the engine knows.
//! It is separate from jiff because a search over a century must not build a date value per month.

/// The first year an expression can name.
pub(crate) const FIRST_YEAR: i32 = 1970;
/// The last year an expression can name. Quartz takes "this year plus 100" at start-up, which makes the answer
/// depend on the day it is asked; this is that bound as of 2026, held still.
pub(crate) const LAST_YEAR: i32 = 2126;
pub(crate) const YEARS: usize = (LAST_YEAR - FIRST_YEAR + 1) as usize;
pub(crate) const DAY: i64 = 86_400;

/// Days before each month of a common year.
const BEFORE_MONTH: [i32; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];

/// A date; `month` and `day` count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i32,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

impl Date {
    /// The date that lies `days` after 1970-01-01; `days` is not negative.
    pub(crate) fn from_days(days: i64) -> Self {
        let days = i32::try_from(days).unwrap_or(i32::MAX / 2);
        // 365.2425 days a year, so the estimate is right or one too high.
        let mut year = FIRST_YEAR + (i64::from(days) * 400 / 146_097) as i32;
        while days_before_year(year) > days {
            year -= 1;
        }
        while days_before_year(year + 1) <= days {
            year += 1;
        }
        let day_of_year = days - days_before_year(year);
        let mut month = (day_of_year / 32) as u32 + 1;
        while days_before_month(year, month + 1) <= day_of_year {
            month += 1;
        }
        let day = (day_of_year - days_before_month(year, month)) as u32 + 1;
        Self { year, month, day }
    }

    pub(crate) fn days(self) -> i64 {
        i64::from(
            days_before_year(self.year) + days_before_month(self.year, self.month) + self.day as i32 - 1,
        )
    }
}

pub(crate) fn month_length(year: i32, month: u32) -> u32 {
    (days_before_month(year, month + 1) - days_before_month(year, month)) as u32
}

/// The weekday of the first of a month, 0 = Sunday.
pub(crate) fn first_weekday(year: i32, month: u32) -> u32 {
    // 1970-01-01 was a Thursday.
    (days_before_year(year) + days_before_month(year, month) + 4).rem_euclid(7) as u32
}

fn is_leap(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_before_year(year: i32) -> i32 {
    let leap_days = |y: i32| y / 4 - y / 100 + y / 400;
    365 * (year - FIRST_YEAR) + leap_days(year - 1) - leap_days(FIRST_YEAR - 1)
}

fn days_before_month(year: i32, month: u32) -> i32 {
    BEFORE_MONTH[month as usize - 1] + i32::from(month > 2 && is_leap(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_every_year_agrees_with_jiff() {
        let mut expected = jiff::civil::date(1970, 1, 1);
        for days in 0..58_000 {
            let date = Date::from_days(days);
            assert_eq!(
                (date.year, date.month, date.day),
                (i32::from(expected.year()), expected.month() as u32, expected.day() as u32)
            );
            assert_eq!(date.days(), days);
            assert_eq!(month_length(date.year, date.month), expected.days_in_month() as u32);
            assert_eq!(
                first_weekday(date.year, date.month),
                expected.first_of_month().weekday().to_sunday_zero_offset() as u32
            );
            expected = expected.tomorrow().unwrap();
        }
    }
}
