//! Recognises what people bring from elsewhere, five fields of Unix cron and `@daily`, and says it in Quartz's words.

use crate::parse::WEEKDAYS;
use crate::{Cron, ParseError};

/// A refusal with the right expression beside it, when the text is a Unix expression.
pub(crate) fn recognise(text: &str) -> Option<ParseError> {
    let refused = |expected: &str, suggestion: Option<String>| {
        let suggestion = suggestion.filter(|suggestion| Cron::parse(suggestion).is_ok());
        Some(ParseError {
            field: None,
            column: 1,
            text: text.to_owned(),
            expected: expected.into(),
            suggestion,
        })
    };
    if text.starts_with('@') {
        return refused("names of schedules are not part of the Quartz dialect", by_name(text));
    }
    let fields: Vec<&str> = text.split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    let [minute, hour, month_day, month, weekday] = fields[..] else { return None };
    let weekday = weekdays(weekday);
    let expected =
        "five fields are a Unix expression; here the second comes first and one of the two days is `?`";
    let (month_day, weekday) = match (month_day, weekday.as_deref()) {
        (_, None) => return refused(expected, None),
        (_, Some("*" | "?")) => (if month_day == "?" { "*" } else { month_day }, "?"),
        ("*" | "?", Some(weekday)) => ("?", weekday),
        (_, Some(_)) => {
            // Unix fires when either day matches, which no single Quartz expression can say.
            let expected = "five fields are a Unix expression, and Quartz cannot say \"this day of month or that \
                            day of week\"; write two expressions of six fields, with `?` for one day in each";
            return refused(expected, None);
        }
    };
    refused(expected, Some(format!("0 {minute} {hour} {month_day} {month} {weekday}")))
}

fn by_name(text: &str) -> Option<String> {
    let expression = match text.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 0 1 1 ?",
        "@monthly" => "0 0 0 1 * ?",
        "@weekly" => "0 0 0 ? * SUN",
        "@daily" | "@midnight" => "0 0 0 * * ?",
        "@hourly" => "0 0 * * * ?",
        _ => return None,
    };
    Some(expression.to_owned())
}

/// Unix counts the days of the week from Sunday = 0 and also calls Sunday 7; names cannot be misread.
fn weekdays(text: &str) -> Option<String> {
    let entries: Option<Vec<String>> = text.split(',').map(weekday_entry).collect();
    Some(entries?.join(","))
}

fn weekday_entry(entry: &str) -> Option<String> {
    let (range, step) = entry.split_once('/').map_or((entry, None), |(range, step)| (range, Some(step)));
    let (first, last) = range.split_once('-').map_or((range, None), |(first, last)| (first, Some(last)));
    let number = |text: &str| text.parse::<usize>().ok().filter(|day| *day <= 7);
    let named = |day: usize| &WEEKDAYS[day % 7][..3];
    Some(match (number(first), last.map(number), step) {
        (None, _, _) => entry.to_owned(),
        (Some(0), Some(Some(6 | 7)), None) | (Some(1), Some(Some(7)), None) => "*".into(),
        (Some(day), None, None) => named(day).into(),
        (Some(first), Some(Some(last)), None) => format!("{}-{}", named(first), named(last)),
        (Some(first), Some(Some(last)), Some(step)) if first <= last && last < 7 => {
            format!("{}-{}/{step}", first + 1, last + 1)
        }
        _ => return None,
    })
}
