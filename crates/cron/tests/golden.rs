//! Every row of the golden file: what the real Quartz answered to "the next fire strictly after this instant".
//!
//! A row is answered as Quartz 2.3.2 answers it, or falls under one of the rules below. Each rule says why Quartz's
//! answer cannot stand, proves it for the row by a reading of the dialect that is independent of the engine, and is
//! held to the number of rows it covers.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod oracle;

use elasticjob_cron::{Cron, DstPolicy, Schedule, Zone};
use flate2::read::GzDecoder;
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use oracle::Oracle;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Read;

const GOLDEN: &[u8] = include_bytes!("data/quartz-golden.tsv.gz");
/// The end of 2126.
const END: i64 = 4_954_521_600;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    // Quartz has no answer, or a broken one.
    /// 2.3.2 refuses lists that mix `L` and `W` with other days; they mean what Quartz 2.5 makes of them.
    ListOfSpecialDays,
    /// Quartz does not return. We answer the first match.
    Hangs,
    /// Quartz does not return for `0W`, a day that no month has. We refuse it.
    HangsOnDayZero,
    /// Quartz accepts the text and throws at the first question. We refuse it.
    Throws,
    /// Quartz's answer does not satisfy the expression: `nW` in a month too short for it, or in one that lost the day.
    NotSatisfied,
    /// After a gap of other than a whole hour, or of more than one, Quartz passes over times that exist.
    PassesOverAfterGap,

    /// Quartz passes over a part of the text in silence. We refuse it.
    IgnoresText,

    // We answer differently on purpose.
    /// Quartz reads three letters of `MONDAY-FRIDAY` and passes over the rest. We take full names as they stand.
    FullNames,
    /// 2.3.2 applies `W` to the first day of a list and forgets the others. We answer as Quartz 2.5.
    ListOfNearestWeekdays,
    /// Asked within the first pass of a repeated hour, Quartz passes over the beginning of the second.
    PassesOverInFold,
}

struct Row<'a> {
    expression: String,
    zone: &'a str,
    instant: &'a str,
    quartz_2_3: &'a str,
    quartz_2_5: &'a str,
}

#[test]
fn every_row_is_answered_as_quartz_answers_it_or_falls_under_a_rule() {
    let mut text = String::new();
    GzDecoder::new(GOLDEN).read_to_string(&mut text).unwrap();
    let mut covered: BTreeMap<Rule, usize> = BTreeMap::new();
    let mut cuts = Cuts::new();
    let mut unexplained = String::new();
    for line in text.lines() {
        let [_, expression, zone, instant, quartz_2_3, quartz_2_5] = line.split('\t').collect::<Vec<_>>()[..]
        else {
            panic!("not six columns: {line}")
        };
        let row = Row { expression: expression.replace("\\t", "\t"), zone, instant, quartz_2_3, quartz_2_5 };
        let ours = answer(&row.expression, zone, instant);
        if ours == quartz_2_3 {
            continue;
        }
        match rule(&row, &ours, &mut cuts) {
            Some(rule) => *covered.entry(rule).or_default() += 1,
            None => writeln!(unexplained, "{line}\tours {ours}").unwrap(),
        }
    }
    assert_eq!(unexplained, "");
    let expected = [
        (Rule::ListOfSpecialDays, 784),
        (Rule::Hangs, 781),
        (Rule::HangsOnDayZero, 112),
        (Rule::Throws, 336),
        (Rule::NotSatisfied, 15),
        (Rule::PassesOverAfterGap, 3),
        (Rule::IgnoresText, 1792),
        (Rule::FullNames, 41),
        (Rule::ListOfNearestWeekdays, 100),
        (Rule::PassesOverInFold, 100),
    ];
    assert_eq!(covered.into_iter().collect::<Vec<_>>(), expected);
    let on_purpose: usize =
        expected.iter().filter(|(rule, _)| *rule >= Rule::FullNames).map(|(_, rows)| rows).sum();
    assert!(on_purpose * 200 < text.lines().count(), "{on_purpose} rows are 1 in 200 or more");
}

fn answer(expression: &str, zone: &str, instant: &str) -> String {
    let Ok(cron) = Cron::parse(expression) else { return "E".into() };
    let schedule = Schedule::new(cron, Zone::parse(zone).unwrap());
    let next = schedule.next_after(Timestamp::from_millisecond(instant.parse().unwrap()).unwrap());
    next.map_or_else(|| "-".into(), |fire| fire.as_second().to_string())
}

fn rule(row: &Row<'_>, ours: &str, cuts: &mut Cuts) -> Option<Rule> {
    let fields: Vec<&str> = row.expression.split_whitespace().collect();
    match (row.quartz_2_3, ours) {
        ("!", "E") => return Some(Rule::Throws),
        ("H", "E") if fields[3] == "0W" => return Some(Rule::HangsOnDayZero),
        (_, "E") => return has_no_effect(row, cuts).then_some(Rule::IgnoresText),
        _ => {}
    }
    // Whatever the rule: no answer of ours but the first instant that satisfies the expression.
    let instant = Timestamp::from_millisecond(row.instant.parse().unwrap()).unwrap();
    let oracle = Oracle::new(&row.expression, row.zone, DstPolicy::default());
    let first = oracle.next_after(instant, END);
    if first != ours.parse().ok() {
        return None;
    }
    let listed = fields[3].contains(',');
    match row.quartz_2_3 {
        "E" if listed && row.quartz_2_5 == ours => return Some(Rule::ListOfSpecialDays),
        "H" => return Some(Rule::Hangs),
        _ => {}
    }
    let quartz: i64 = row.quartz_2_3.parse().ok()?;
    // What Quartz read instead, put into words that both understand, must give Quartz's answer.
    let read_as = |field: usize, text: &str| {
        let expression = [&fields[..field], &[text], &fields[field + 1..]].concat().join(" ");
        answer(&expression, row.zone, row.instant) == row.quartz_2_3
    };
    if fields[5].contains("DAY") {
        return read_as(5, &fields[5][..3]).then_some(Rule::FullNames);
    }
    if listed && fields[3].contains('W') {
        let first = fields[3].trim_start_matches(',').split([',', 'W']).next().unwrap();
        let as_2_5 = row.quartz_2_5 == ours;
        return (as_2_5 && read_as(3, &format!("{first}W"))).then_some(Rule::ListOfNearestWeekdays);
    }
    if !oracle.matches(quartz) {
        return fields[3].contains('W').then_some(Rule::NotSatisfied);
    }
    // From here on both answers match and ours is the earlier one.
    assert!(first < Some(quartz));
    let zone = TimeZoneDatabase::bundled().get(row.zone).unwrap();
    let shift = |change: &jiff::tz::TimeZoneTransition<'_>| {
        let before = change.timestamp() - jiff::SignedDuration::from_secs(1);
        change.offset().seconds() - zone.to_offset(before).seconds()
    };
    let next = zone.following(instant).next()?;
    let until_change = next.timestamp().as_second() - instant.as_second();
    if shift(&next) < 0 && until_change <= i64::from(-shift(&next)) {
        return Some(Rule::PassesOverInFold);
    }
    let (first, last) = (next.timestamp().as_second(), next.timestamp().as_second() + 86_400);
    let odd = shift(&next) > 0 && shift(&next) != 3600;
    (odd && (first..last).contains(&quartz)).then_some(Rule::PassesOverAfterGap)
}

/// For an expression, the stretches of its text that could be struck out without a change to any answer so far.
type Cuts = BTreeMap<String, Vec<(usize, usize)>>;

/// Whether one and the same stretch of the text has no effect on Quartz's answer in this row and in those before it.
fn has_no_effect(row: &Row<'_>, cuts: &mut Cuts) -> bool {
    let text = &row.expression;
    let all = (0..text.len()).flat_map(|from| (from + 1..=text.len()).map(move |to| (from, to)));
    let cuts = cuts.entry(text.clone()).or_insert_with(|| all.collect());
    cuts.retain(|(from, to)| {
        let (Some(before), Some(after)) = (text.get(..*from), text.get(*to..)) else { return false };
        let shorter = Row { expression: format!("{before}{after}"), ..*row };
        let ours = answer(&shorter.expression, row.zone, row.instant);
        let in_fold = || rule(&shorter, &ours, &mut Cuts::new()) == Some(Rule::PassesOverInFold);
        ours == row.quartz_2_3 || (ours != "E" && in_fold())
    });
    !cuts.is_empty()
}
