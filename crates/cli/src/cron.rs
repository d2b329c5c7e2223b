//! `elasticjob cron`: when an expression fires, in words and in times, and what clock changes do to it.

use elasticjob_cron::{Cron, DstPolicy, Fold, Gap, Schedule, Zone};
use jiff::{SignedDuration, Timestamp, ToSpan};
use serde_json::json;

use crate::failure::Failure;
use crate::screen::{Screen, print, print_json, say};
use crate::time;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The expression, in Quartz's dialect: second minute hour day-of-month month day-of-week, and a year if need be
    expression: String,
    /// The zone it is read in [default: that of this machine]
    #[arg(long, value_name = "ZONE")]
    zone: Option<String>,
    /// How many fires to show
    #[arg(short, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    n: u16,
    /// Show fires after this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    from: Option<Timestamp>,
}

pub(crate) fn run(arguments: &Arguments, screen: &Screen) -> Result<(), Failure> {
    let cron = Cron::parse(&arguments.expression).map_err(|error| Failure::usage(error.to_string()))?;
    let zone = match &arguments.zone {
        None => Zone::system(),
        Some(name) => Zone::parse(name).map_err(|error| Failure::usage(error.to_string()))?,
    };
    let from = arguments.from.unwrap_or_else(Timestamp::now);
    let schedule = Schedule::new(cron, zone.clone());
    let fires: Vec<Timestamp> = schedule.upcoming(from).take(arguments.n.into()).collect();
    let words = schedule.cron().describe();
    let notes = notes(&schedule, from);
    if screen.is_json() {
        let fires: Vec<String> = fires.iter().map(ToString::to_string).collect();
        return print_json(&json!({
            "cron": arguments.expression,
            "zone": zone.to_string(),
            "description": words,
            "fires": fires,
            "notes": notes,
        }));
    }
    say(&format!("{words} ({zone})"));
    if fires.is_empty() {
        say("it never fires again");
    }
    for fire in fires {
        let local = fire.to_zoned(zone.time_zone().clone());
        print(&format!("{}\n", local.strftime("%a %F %H:%M:%S %Z")))?;
    }
    for note in notes {
        say(&format!("note: {note}"));
    }
    Ok(())
}

/// The clock changes of the coming year that the schedule feels.
fn notes(schedule: &Schedule, from: Timestamp) -> Vec<String> {
    let zone = schedule.zone().time_zone();
    let end = from.checked_add(SignedDuration::from_hours(24 * 366)).unwrap_or(Timestamp::MAX);
    let changes = zone.following(from).take(8).map(|it| it.timestamp()).take_while(|at| *at <= end);
    changes.filter_map(|at| note(schedule, at)).collect()
}

fn note(schedule: &Schedule, at: Timestamp) -> Option<String> {
    let zone = schedule.zone().time_zone();
    let offset = |at: Timestamp| zone.to_offset(at).seconds();
    let before = offset(at.checked_sub(1.second()).ok()?);
    let shift = i64::from(offset(at) - before);
    let window = SignedDuration::from_secs(shift.abs() + 1);
    let (first, last) = (at.checked_sub(window).ok()?, at.checked_add(window).ok()?);
    let count = |policy| schedule.clone().with_policy(policy).count_between(first, last);
    let plain = count(DstPolicy::default());
    let clock = |seconds: i64| {
        let local = at.to_zoned(zone.clone()).datetime().checked_add(seconds.seconds()).ok()?;
        Some(local.strftime("%H:%M").to_string())
    };
    let day = at.to_zoned(zone.clone()).strftime("%F").to_string();
    if shift > 0 && count(DstPolicy { gap: Gap::RunAtEnd, ..DstPolicy::default() }) > plain {
        let (from, to) = (clock(-shift)?, clock(0)?);
        return Some(format!(
            "on {day} the clocks go from {from} to {to}: fires in between are skipped, unless the property elasticjob.dst.gap says run-at-end"
        ));
    }
    if shift < 0 && count(DstPolicy { fold: Fold::Both, ..DstPolicy::default() }) > plain {
        let (from, to) = (clock(0)?, clock(-shift)?);
        return Some(format!(
            "on {day} {from} to {to} comes twice: fires in it run the second time only, unless the property elasticjob.dst.fold says first or both"
        ));
    }
    None
}
