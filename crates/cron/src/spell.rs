//! The canonical spelling of a compiled expression, and the runs of values that it and the English share.

use crate::calendar::{FIRST_YEAR, LAST_YEAR};
use crate::cron::{ALL_HOURS, ALL_MONTH_DAYS, ALL_MONTHS, ALL_SIXTY, Cron, Days, MonthDays, Years};
use crate::parse::{MONTHS, WEEKDAYS};
use std::fmt;

pub(crate) fn expression(cron: &Cron, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (month_days, weekdays) = match &cron.days {
        Days::OfMonth(days) => (month_day_list(days), "?".to_owned()),
        Days::OfWeek(days) => ("?".to_owned(), list(&values((*days).into()), weekday)),
        Days::LastOfWeek(day) => ("?".to_owned(), format!("{}L", weekday((*day).into()))),
        Days::NthOfWeek { weekday: day, nth } => {
            ("?".to_owned(), format!("{}#{nth}", weekday((*day).into())))
        }
    };
    let number = |value: u32| value.to_string();
    let set = |set: u64, all: u64, first: u32, last: u32| {
        if set == all { "*".to_owned() } else { stepped(&values(set), first, last, number) }
    };
    write!(
        f,
        "{} {} {} {} {} {}",
        set(cron.seconds, ALL_SIXTY, 0, 59),
        set(cron.minutes, ALL_SIXTY, 0, 59),
        set(cron.hours.into(), ALL_HOURS.into(), 0, 23),
        month_days,
        if cron.months == ALL_MONTHS { "*".to_owned() } else { list(&values(cron.months.into()), month) },
        weekdays
    )?;
    if cron.years == Years::all() { Ok(()) } else { write!(f, " {}", years(&cron.years)) }
}

fn month_day_list(days: &MonthDays) -> String {
    if *days == (MonthDays { plain: ALL_MONTH_DAYS, ..MonthDays::default() }) {
        return "*".to_owned();
    }
    let number = |value: u32| value.to_string();
    if days.is_plain() {
        return stepped(&values(days.plain.into()), 1, 31, number);
    }
    let last = |offset: u32| if offset == 0 { "L".to_owned() } else { format!("L-{offset}") };
    let mut entries = Vec::new();
    if days.plain != 0 {
        entries.push(list(&values(days.plain.into()), number));
    }
    entries.extend(values(days.nearest.into()).iter().map(|day| format!("{day}W")));
    entries.extend(values(days.from_last.into()).iter().map(|offset| last(*offset)));
    entries.extend(values(days.nearest_from_last.into()).iter().map(|offset| format!("{}W", last(*offset))));
    entries.join(",")
}

fn years(years: &Years) -> String {
    let years: Vec<u32> = years.iter().map(|year| year as u32).collect();
    if years.is_empty() {
        // The years were all outside of the calendar; this is one of them.
        return (FIRST_YEAR - 1).to_string();
    }
    stepped(&years, FIRST_YEAR as u32, LAST_YEAR as u32, |year| year.to_string())
}

/// `a/s` where the values run in steps to the end, `a-b/s` where they stop before it, else a list.
fn stepped(values: &[u32], first: u32, last: u32, name: impl Fn(u32) -> String) -> String {
    match progression(values) {
        Some(step) if step > 1 && values[values.len() - 1] + step > last && step <= last => {
            format!("{}/{step}", values[0])
        }
        Some(step) if step > 1 => format!("{}-{}/{step}", values[0], values[values.len() - 1]),
        _ if values.len() as u32 == last - first + 1 => "*".to_owned(),
        _ => list(values, name),
    }
}

fn list(values: &[u32], name: impl Fn(u32) -> String) -> String {
    let entry = |(first, last): (u32, u32)| match last - first {
        0 => name(first),
        1 => format!("{},{}", name(first), name(last)),
        _ => format!("{}-{}", name(first), name(last)),
    };
    runs(values).into_iter().map(entry).collect::<Vec<_>>().join(",")
}

fn month(number: u32) -> String {
    MONTHS[number as usize - 1][..3].to_owned()
}

fn weekday(number: u32) -> String {
    WEEKDAYS[number as usize - 1][..3].to_owned()
}

/// The members of a bit set, in order.
pub(crate) fn values(set: u64) -> Vec<u32> {
    (0..64).filter(|bit| set >> bit & 1 == 1).collect()
}

/// Neighbouring values as pairs of the first and the last.
pub(crate) fn runs(values: &[u32]) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *value => *last = *value,
            _ => runs.push((*value, *value)),
        }
    }
    runs
}

/// The step of three or more values at equal distances.
pub(crate) fn progression(values: &[u32]) -> Option<u32> {
    let [first, second, _, ..] = values else { return None };
    let step = second - first;
    values.windows(2).all(|pair| pair[1] - pair[0] == step).then_some(step)
}
