//! A compiled expression in plain English: when on a day, then on which days, then in which years.

use crate::calendar::{FIRST_YEAR, LAST_YEAR};
use crate::cron::{
    ALL_HOURS, ALL_MONTH_DAYS, ALL_MONTHS, ALL_SIXTY, ALL_WEEKDAYS, Cron, Days, MonthDays, Years,
};
use crate::parse::{MONTHS, WEEKDAYS};
use crate::spell::{progression, runs, values};

pub(crate) fn english(cron: &Cron) -> String {
    let days = days(cron);
    let every_day = || "every day".to_owned();
    let mut text = match time_of_day(cron) {
        Time::At(times) => match days.unwrap_or_else(every_day) {
            days if days.starts_with("on ") || days.starts_with("every ") => format!("at {times} {days}"),
            days => format!("at {times}, {days}"),
        },
        Time::AllDay(frequency) => {
            days.map_or_else(|| frequency.clone(), |days| format!("{frequency}, {days}"))
        }
        Time::Window(frequency) => format!("{frequency}, {}", days.unwrap_or_else(every_day)),
    };
    if cron.years != Years::all() {
        text.push_str(&years(cron));
    }
    if cron.next_local(0).is_none() {
        text.push_str(" (which never comes)");
    }
    text
}

/// The time of day; what kind of phrase it is decides how the days are joined to it.
enum Time {
    /// A few times of the day.
    At(String),
    /// How often, through the whole day.
    AllDay(String),
    /// How often, in some hours of the day.
    Window(String),
}

/// More times than this in a day are described by their rhythm.
const TIMES_LISTED: usize = 6;

fn time_of_day(cron: &Cron) -> Time {
    let (seconds, minutes, hours) = (values(cron.seconds), values(cron.minutes), values(cron.hours.into()));
    if seconds.len() * minutes.len() * hours.len() <= TIMES_LISTED {
        let times = hours.iter().flat_map(|hour| {
            let minutes = &minutes;
            let seconds = &seconds;
            minutes.iter().flat_map(move |minute| {
                seconds.iter().map(move |second| format!("{hour:02}:{minute:02}:{second:02}"))
            })
        });
        return Time::At(and(&times.collect::<Vec<_>>()));
    }
    if cron.hours == ALL_HOURS {
        return Time::AllDay(within_the_hour(cron, &seconds, &minutes));
    }
    if let (true, [minute], Some(step)) = (seconds == [0], &minutes[..], full_rhythm(&hours, 24)) {
        let minute = if *minute == 0 { String::new() } else { format!(" at minute {minute}") };
        return Time::AllDay(format!("every {step} hours{minute}"));
    }
    let within = within_the_hour(cron, &seconds, &minutes);
    Time::Window(match (window(&hours), within.strip_suffix(EVERY_HOUR)) {
        (Some((first, last)), _) => format!("{within} from {first:02}:00 through {last:02}:59"),
        (None, Some(within)) => format!("{within} of {}", the_hours(&hours)),
        (None, None) => format!("{within} in {}", the_hours(&hours)),
    })
}

const EVERY_HOUR: &str = " of every hour";

fn the_hours(hours: &[u32]) -> String {
    let hours = numbers("hour", "hours", hours);
    if hours.starts_with("every") { hours } else { format!("the {hours}") }
}

/// What happens in each of the hours.
fn within_the_hour(cron: &Cron, seconds: &[u32], minutes: &[u32]) -> String {
    let every_minute = cron.minutes == ALL_SIXTY;
    if seconds == [0] {
        return match full_rhythm(minutes, 60) {
            _ if every_minute => "every minute".into(),
            Some(step) => format!("every {step} minutes"),
            None if minutes == [0] => "every hour".into(),
            None => format!("at {}{EVERY_HOUR}", numbers("minute", "minutes", minutes)),
        };
    }
    let often = match full_rhythm(seconds, 60) {
        _ if cron.seconds == ALL_SIXTY => "every second".into(),
        Some(step) => format!("every {step} seconds"),
        None => format!("at {}", numbers("second", "seconds", seconds)),
    };
    match (full_rhythm(minutes, 60), often.starts_with("every")) {
        _ if every_minute => {
            if often.starts_with("every") {
                often
            } else {
                format!("{often} of every minute")
            }
        }
        (Some(step), _) => format!("{often} of every {} minute", ordinal(step)),
        (None, true) => format!("{often} in {}{EVERY_HOUR}", numbers("minute", "minutes", minutes)),
        (None, false) => format!("{often} of {}{EVERY_HOUR}", numbers("minute", "minutes", minutes)),
    }
}

/// The step of values that run from 0 through the whole of `size`, so that the rhythm never breaks.
fn full_rhythm(values: &[u32], size: u32) -> Option<u32> {
    let step = match values {
        [0, second] => *second,
        _ => progression(values)?,
    };
    (values[0] == 0 && size.is_multiple_of(step) && values.len() as u32 == size / step).then_some(step)
}

/// Hours that follow one another, perhaps over midnight.
fn window(hours: &[u32]) -> Option<(u32, u32)> {
    match runs(hours)[..] {
        [(first, last)] => Some((first, last)),
        [(0, last), (first, 23)] => Some((first, last)),
        _ => None,
    }
}

/// On which days, or nothing for every day.
fn days(cron: &Cron) -> Option<String> {
    let every_month = cron.months == ALL_MONTHS;
    let months = if every_month { "every month".to_owned() } else { months(cron.months) };
    Some(match &cron.days {
        Days::OfMonth(MonthDays { plain: ALL_MONTH_DAYS, .. }) if every_month => return None,
        Days::OfMonth(MonthDays { plain: ALL_MONTH_DAYS, .. }) => format!("every day in {months}"),
        Days::OfMonth(days) => format!("on {} of {months}", month_days(days)),
        Days::OfWeek(days) if every_month => weekdays(*days),
        Days::OfWeek(days) => format!("{} in {months}", weekdays(*days)),
        Days::LastOfWeek(day) => format!("on the last {} of {months}", weekday((*day).into())),
        Days::NthOfWeek { weekday: day, nth } => {
            let nth = ["first", "second", "third", "fourth", "fifth"][usize::from(*nth) - 1];
            format!("on the {nth} {} of {months}", weekday((*day).into()))
        }
    })
}

fn month_days(days: &MonthDays) -> String {
    let last = |offset: u32| match offset {
        0 => "the last day".to_owned(),
        1 => "the last day but one".to_owned(),
        _ => format!("the day {offset} days before the last"),
    };
    let mut entries = Vec::new();
    if days.plain != 0 {
        entries.push(numbers("day", "days", &values(days.plain.into())));
    }
    let nearest = |day: &u32| format!("the weekday nearest to day {day}");
    entries.extend(values(days.nearest.into()).iter().map(nearest));
    entries.extend(values(days.from_last.into()).iter().map(|offset| last(*offset)));
    entries.extend(values(days.nearest_from_last.into()).iter().map(|offset| match offset {
        0 => "the last weekday".to_owned(),
        _ => format!("the weekday nearest to {}", last(*offset)),
    }));
    and(&entries)
}

fn weekdays(days: u8) -> String {
    // The week turns: Friday to Monday is one run.
    let starts: Vec<u32> = (1..=7).filter(|day| has(days, *day) && !has(days, day + 6)).collect();
    if let ([start], 3..) = (&starts[..], days.count_ones()) {
        let last = start + days.count_ones() - 1;
        return format!("{} to {}", weekday(*start), weekday(last));
    }
    // A week is read from Monday on.
    let from_monday = (2..=8).filter(|day| has(days & ALL_WEEKDAYS, *day));
    format!("on {}", and(&from_monday.map(weekday).collect::<Vec<_>>()))
}

fn has(days: u8, day: u32) -> bool {
    days >> ((day - 1) % 7 + 1) & 1 == 1
}

fn weekday(number: u32) -> String {
    capitalised(WEEKDAYS[(number as usize - 1) % 7])
}

fn months(set: u16) -> String {
    let name = |number: u32| capitalised(MONTHS[number as usize - 1]);
    let values = values(set.into());
    and(&spans(&values, name))
}

fn years(cron: &Cron) -> String {
    let years: Vec<u32> = cron.years.iter().map(|year| year as u32).collect();
    match progression(&years) {
        _ if years.is_empty() => format!(", in no year from {FIRST_YEAR} to {LAST_YEAR}"),
        Some(step) if step > 1 => {
            format!(", every {} year from {} to {}", ordinal(step), years[0], years[years.len() - 1])
        }
        _ => format!(", in {}", and(&spans(&years, |year| year.to_string()))),
    }
}

/// `minute 5`, or `minutes 5, 10 to 15 and 50`, or `every 7th minute from 0 to 56`.
fn numbers(one: &str, many: &str, values: &[u32]) -> String {
    match (values, progression(values)) {
        ([value], _) => format!("{one} {value}"),
        ([first, .., last], Some(step)) if step > 1 && values.len() > TIMES_LISTED => {
            format!("every {} {one} from {first} to {last}", ordinal(step))
        }
        _ => format!("{many} {}", and(&spans(values, |value| value.to_string()))),
    }
}

/// Runs of three or more as "a to b", the others one by one.
fn spans(values: &[u32], name: impl Fn(u32) -> String) -> Vec<String> {
    let span = |(first, last): (u32, u32)| match last - first {
        0 => vec![name(first)],
        1 => vec![name(first), name(last)],
        _ => vec![format!("{} to {}", name(first), name(last))],
    };
    runs(values).into_iter().flat_map(span).collect()
}

fn and(entries: &[String]) -> String {
    match entries {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

fn ordinal(number: u32) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

fn capitalised(name: &str) -> String {
    format!("{}{}", &name[..1], name[1..].to_ascii_lowercase())
}
