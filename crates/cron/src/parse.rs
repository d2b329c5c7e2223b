//! From text to bit sets. Quartz passes over characters that it cannot place; here every character must mean
//! something, or the expression is refused with the column at which it stops making sense.

use crate::calendar::{FIRST_YEAR, LAST_YEAR};
use crate::cron::{
    ALL_HOURS, ALL_MONTH_DAYS, ALL_MONTHS, ALL_SIXTY, ALL_WEEKDAYS, Cron, Days, MonthDays, Years,
};
use crate::{Field, ParseError, unix};

pub(crate) const MONTHS: [&str; 12] = [
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
];
pub(crate) const WEEKDAYS: [&str; 7] =
    ["SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"];

pub(crate) fn cron(original: &str) -> Result<Cron, ParseError> {
    let upper = original.to_ascii_uppercase();
    let source = Source { original, upper: &upper };
    let fields: Vec<&str> = upper.trim_ascii().split([' ', '\t']).filter(|field| !field.is_empty()).collect();
    if let Some(refused) = unix::recognise(original.trim_ascii()) {
        return Err(refused);
    }
    let [second, minute, hour, month_day, month, weekday, ref year @ ..] = fields[..] else {
        return Err(source.whole(format!("{}; {SHAPE}", count_of_fields(fields.len()))));
    };
    if let [_, extra, ..] = year {
        return Err(source.at(Field::Year, extra, format!("nothing may follow the year; {SHAPE}")));
    }
    let seconds = source.set(Field::Second, second)?;
    let minutes = source.set(Field::Minute, minute)?;
    let hours = source.set(Field::Hour, hour)?;
    let month_days = source.month_days(month_day)?;
    let months = source.set(Field::Month, month)?;
    let weekdays = source.weekdays(weekday)?;
    let years = year.first().map_or_else(|| Ok(Years::all()), |year| source.years(year))?;
    let days = match (month_days, weekdays) {
        (Some(days), None) => Days::OfMonth(days),
        // Every weekday is every day; one spelling for it makes equal expressions equal.
        (None, Some(Days::OfWeek(ALL_WEEKDAYS))) => {
            Days::OfMonth(MonthDays { plain: ALL_MONTH_DAYS, ..MonthDays::default() })
        }
        (None, Some(days)) => days,
        (None, None) => {
            let expected =
                "`?` in the day of month and in the day of week says nothing; put `*` into one of them";
            return Err(source.at(Field::DayOfWeek, weekday, expected));
        }
        (Some(_), Some(_)) => {
            return Err(source.both_days(&fields));
        }
    };
    Ok(Cron { seconds, minutes, hours: hours as u32, months: months as u16, days, years })
}

const SHAPE: &str = "an expression is: second minute hour day-of-month month day-of-week [year]";

fn count_of_fields(count: usize) -> String {
    match count {
        0 => "it is empty".into(),
        1 => "one field is too few".into(),
        _ => format!("{count} fields are too few"),
    }
}

/// The expression, in both spellings; every text below is a slice of `upper`.
struct Source<'a> {
    original: &'a str,
    upper: &'a str,
}

/// `first`, `first + step`, … up to `last`, which lies before `first` when the range wraps around.
#[derive(Clone, Copy, Debug)]
struct Range {
    first: u32,
    last: u32,
    step: u32,
}

impl<'a> Source<'a> {
    fn set(&self, field: Field, text: &'a str) -> Result<u64, ParseError> {
        if text == EVERYTHING {
            return Ok(everything(field));
        }
        let mut set = 0;
        for entry in self.entries(field, text)? {
            set |= bits(field, self.range(field, entry)?);
        }
        Ok(set)
    }

    fn years(&self, text: &'a str) -> Result<Years, ParseError> {
        if text == EVERYTHING {
            return Ok(Years::all());
        }
        let mut years = Years::default();
        for entry in self.entries(Field::Year, text)? {
            let Range { first, last, step } = self.range(Field::Year, entry)?;
            if first > last {
                let expected = format!("years do not wrap around; {}", Field::Year.values());
                return Err(self.at(Field::Year, entry, expected));
            }
            let named = |year: &i32| {
                let year = *year as u32;
                (first..=last).contains(&year) && (year - first).is_multiple_of(step)
            };
            (FIRST_YEAR..=LAST_YEAR).filter(named).for_each(|year| years.insert(year));
        }
        Ok(years)
    }

    /// The day of month, or nothing for `?`.
    fn month_days(&self, text: &'a str) -> Result<Option<MonthDays>, ParseError> {
        const FIELD: Field = Field::DayOfMonth;
        if text == "?" || text == UNSPECIFIED {
            return Ok(None);
        }
        if text == EVERYTHING {
            return Ok(Some(MonthDays { plain: ALL_MONTH_DAYS, ..MonthDays::default() }));
        }
        let mut days = MonthDays::default();
        for entry in self.entries(FIELD, text)? {
            if let Some(rest) = entry.strip_prefix('L') {
                let (offset, nearest) = self.after_last(rest)?;
                let set = if nearest { &mut days.nearest_from_last } else { &mut days.from_last };
                *set |= 1 << offset;
            } else if let Some(day) = entry.strip_suffix('W').filter(|day| is_number(day)) {
                days.nearest |= 1 << self.value(FIELD, day)?;
            } else {
                days.plain |= bits(FIELD, self.range(FIELD, entry)?) as u32;
            }
        }
        Ok(Some(days))
    }

    /// What follows an `L` in the day of month: how many days before the last, and whether a weekday is wanted.
    fn after_last(&self, rest: &'a str) -> Result<(u32, bool), ParseError> {
        const FIELD: Field = Field::DayOfMonth;
        let (offset, nearest) = rest.strip_suffix('W').map_or((rest, false), |offset| (offset, true));
        if offset.is_empty() {
            return Ok((0, nearest));
        }
        let number = offset.strip_prefix('-').filter(|number| is_number(number));
        let Some(number) = number else {
            return Err(self.at(FIELD, rest, "after `L` only `-n`, `W` or `-nW` may follow"));
        };
        match self.number(FIELD, number)? {
            days @ 0..=30 => Ok((days, nearest)),
            _ => Err(self.at(FIELD, number, "at most 30 days before the last day of the month")),
        }
    }

    /// The day of week, or nothing for `?`.
    fn weekdays(&self, text: &'a str) -> Result<Option<Days>, ParseError> {
        const FIELD: Field = Field::DayOfWeek;
        if text == "?" || text == UNSPECIFIED {
            return Ok(None);
        }
        let single = !text.contains(',');
        for entry in self.entries(FIELD, text)? {
            if entry == "L" {
                let saturday = Days::OfWeek(1 << 7);
                return if single { Ok(Some(saturday)) } else { Err(self.not_in_a_list(entry)) };
            }
            let special = if let Some(day) = entry.strip_suffix('L').filter(|day| is_weekday(day)) {
                Days::LastOfWeek(self.value(FIELD, day)? as u8)
            } else if let Some(at) = entry.find('#').filter(|at| is_weekday(&entry[..*at])) {
                let (day, nth) = entry.split_at(at);
                Days::NthOfWeek { weekday: self.value(FIELD, day)? as u8, nth: self.nth(nth)? }
            } else {
                continue;
            };
            return if single { Ok(Some(special)) } else { Err(self.not_in_a_list(entry)) };
        }
        Ok(Some(Days::OfWeek(self.set(FIELD, text)? as u8)))
    }

    /// `#k`.
    fn nth(&self, text: &'a str) -> Result<u8, ParseError> {
        match text[1..].parse() {
            Ok(nth @ 1..=5) if is_number(&text[1..]) => Ok(nth),
            _ => Err(self.at(Field::DayOfWeek, text, "after `#` a number from 1 to 5 must follow")),
        }
    }

    fn not_in_a_list(&self, entry: &'a str) -> ParseError {
        let expected = "`L` and `#` cannot be listed with other days of the week; use one job for each";
        self.at(Field::DayOfWeek, entry, expected)
    }

    /// The entries of a list. Quartz passes over a comma too many, so do we, unless nothing is left.
    fn entries(&self, field: Field, text: &'a str) -> Result<impl Iterator<Item = &'a str>, ParseError> {
        if let Some(at) = text.find('?') {
            let expected = match field {
                Field::DayOfMonth | Field::DayOfWeek => "`?` stands alone in its field",
                Field::Second | Field::Minute | Field::Hour | Field::Month | Field::Year => {
                    "`?` is for the day of month and the day of week only; write `*`"
                }
            };
            return Err(self.at(field, &text[at..], expected));
        }
        let entries = || text.split(',').filter(|entry| !entry.is_empty());
        if entries().next().is_none() {
            return Err(self.at(field, text, format!("the list is empty; {}", field.values())));
        }
        Ok(entries())
    }

    /// `*`, `*/s`, `/s`, `a`, `a/s`, `a-b` or `a-b/s`.
    fn range(&self, field: Field, entry: &'a str) -> Result<Range, ParseError> {
        let (min, max) = limits(field);
        if entry.starts_with(['*', '/']) {
            let rest = entry.strip_prefix('*').unwrap_or(entry);
            let step = if rest.is_empty() { 1 } else { self.step(field, rest, true)? };
            return Ok(Range { first: min, last: max, step });
        }
        let (first_text, rest) = entry.split_at(value_length(entry));
        if first_text.is_empty() {
            return Err(self.at(field, entry, hint(field, entry)));
        }
        let first = self.value(field, first_text)?;
        if rest.is_empty() {
            return Ok(Range { first, last: first, step: 1 });
        }
        let named = !is_number(first_text);
        let Some(rest) = rest.strip_prefix('-') else {
            self.no_step_after_a_name(field, named, rest)?;
            return Ok(Range { first, last: max, step: self.step(field, rest, true)? });
        };
        let (last_text, rest) = rest.split_at(value_length(rest));
        if last_text.is_empty() || is_number(last_text) == named {
            let kind = if named { "name" } else { "number" };
            let expected = format!("a range from a {kind} must end with a {kind}; {}", field.values());
            return Err(self.at(field, if last_text.is_empty() { entry } else { last_text }, expected));
        }
        let last = self.value(field, last_text)?;
        if rest.is_empty() {
            return Ok(Range { first, last, step: 1 });
        }
        self.no_step_after_a_name(field, named, rest)?;
        Ok(Range { first, last, step: self.step(field, rest, false)? })
    }

    /// `/s`; Quartz bounds the step by the field, but not after a range.
    fn step(&self, field: Field, text: &'a str, bounded: bool) -> Result<u32, ParseError> {
        let Some(number) = text.strip_prefix('/') else {
            return Err(self.at(field, text, hint(field, text)));
        };
        if !is_number(number) {
            return Err(self.at(field, text, "after `/` a number must follow"));
        }
        let most = if field == Field::Year { u32::MAX } else { limits(field).1 };
        match self.number(field, number)? {
            0 => Err(self.at(
                field,
                number,
                "a step of 0 has no effect in Quartz; write 1 or more, or no step",
            )),
            step if bounded && step > most => {
                Err(self.at(field, number, format!("the step for the {field} is 1 to {most}")))
            }
            step => Ok(step),
        }
    }

    fn no_step_after_a_name(&self, field: Field, named: bool, rest: &'a str) -> Result<(), ParseError> {
        if !named || !rest.starts_with('/') {
            return Ok(());
        }
        let (days, example) = if field == Field::DayOfWeek {
            ("days as numbers (1 is Sunday)", "2-6/2")
        } else {
            ("months as numbers", "1-6/2")
        };
        let expected = format!(
            "a step after a name has no effect in Quartz; write the {days} to step through them, as in {example}"
        );
        Err(self.at(field, rest, expected))
    }

    /// A number within the field's limits, or a name.
    fn value(&self, field: Field, text: &'a str) -> Result<u32, ParseError> {
        if is_number(text) {
            let (min, max) = limits(field);
            let number = self.number(field, text)?;
            // A year that has no place in the calendar is not an error to Quartz: it never comes.
            return if field == Field::Year || (min..=max).contains(&number) {
                Ok(number)
            } else {
                Err(self.at(field, text, field.values()))
            };
        }
        let names: &[&str] = match field {
            Field::Month => &MONTHS,
            Field::DayOfWeek => &WEEKDAYS,
            Field::Second | Field::Minute | Field::Hour | Field::DayOfMonth | Field::Year => &[],
        };
        let found = names.iter().position(|name| *name == text || &name[..3] == text);
        found.map(|index| index as u32 + 1).ok_or_else(|| self.at(field, text, hint(field, text)))
    }

    fn number(&self, field: Field, text: &'a str) -> Result<u32, ParseError> {
        text.parse().map_err(|_| self.at(field, text, format!("the number is too large; {}", field.values())))
    }

    /// The refusal of an expression that gives both days, with the right one beside it if one of them is just `*`.
    fn both_days(&self, fields: &[&'a str]) -> ParseError {
        let (month_day, weekday) = (fields[3], fields[5]);
        let (index, other) = if weekday == "*" { (5, Field::DayOfWeek) } else { (3, Field::DayOfMonth) };
        let mut right = fields.to_vec();
        right[index] = "?";
        let suggestion = (month_day == "*" || weekday == "*").then(|| right.join(" "));
        let expected = format!("the day of month `{month_day}` is given too; put `?` into the {other}");
        ParseError { suggestion, ..self.at(Field::DayOfWeek, weekday, expected) }
    }

    fn at(&self, field: Field, text: &str, expected: impl Into<String>) -> ParseError {
        let start = text.as_ptr() as usize - self.upper.as_ptr() as usize;
        let before = self.original.get(..start).unwrap_or_default();
        ParseError {
            field: Some(field),
            column: before.chars().count() + 1,
            text: self.original.get(start..start + text.len()).unwrap_or_default().to_owned(),
            expected: expected.into(),
            suggestion: None,
        }
    }

    fn whole(&self, expected: String) -> ParseError {
        ParseError { field: None, column: 1, text: self.original.to_owned(), expected, suggestion: None }
    }
}

/// Quartz keeps "every value" and "no value" as these numbers, and takes them for `*` and `?` in a field that
/// holds nothing else.
const EVERYTHING: &str = "99";
const UNSPECIFIED: &str = "98";

fn everything(field: Field) -> u64 {
    match field {
        Field::Second | Field::Minute => ALL_SIXTY,
        Field::Hour => ALL_HOURS.into(),
        Field::DayOfMonth => ALL_MONTH_DAYS.into(),
        Field::Month => ALL_MONTHS.into(),
        Field::DayOfWeek | Field::Year => ALL_WEEKDAYS.into(),
    }
}

fn limits(field: Field) -> (u32, u32) {
    match field {
        Field::Second | Field::Minute => (0, 59),
        Field::Hour => (0, 23),
        Field::DayOfMonth => (1, 31),
        Field::Month => (1, 12),
        Field::DayOfWeek => (1, 7),
        Field::Year => (FIRST_YEAR as u32, LAST_YEAR as u32),
    }
}

/// The values of a range as bits; a range whose end lies before its start goes round once.
fn bits(field: Field, range: Range) -> u64 {
    let (min, max) = limits(field);
    let size = max - min + 1;
    let last = if range.last < range.first { range.last + size } else { range.last };
    (range.first..=last)
        .step_by(range.step as usize)
        .fold(0, |set, value| set | 1 << ((value - min) % size + min))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_weekday(text: &str) -> bool {
    is_number(text) || WEEKDAYS.iter().any(|name| *name == text || &name[..3] == text)
}

/// How many bytes at the start are one number or one name.
fn value_length(text: &str) -> usize {
    let same_kind: fn(&u8) -> bool = if text.starts_with(|c: char| c.is_ascii_digit()) {
        u8::is_ascii_digit
    } else {
        u8::is_ascii_alphabetic
    };
    text.bytes().take_while(same_kind).count()
}

/// Says what is wrong with a text that cannot be placed.
fn hint(field: Field, text: &str) -> String {
    let values = field.values();
    let names: &[&str] = if field == Field::Month { &MONTHS } else { &WEEKDAYS };
    let near = names.iter().find(|name| text.get(..3) == Some(&name[..3]));
    match (field, near) {
        (Field::Month | Field::DayOfWeek, Some(name)) => {
            format!("write {} or {name}; {values}", &name[..3])
        }
        _ if text.starts_with('W') && field == Field::DayOfMonth => {
            format!("`W` belongs to a single day, as in 15W; {values}")
        }
        _ if text.starts_with(['L', 'W', '#']) => {
            format!("`{}` has no meaning here; {values}", &text[..1])
        }
        _ => format!("it has no meaning here; {values}"),
    }
}
