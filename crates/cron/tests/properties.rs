//! What must hold for every expression, zone, instant and policy, checked against the brute-force oracle.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod oracle;

use elasticjob_cron::{Cron, DstPolicy, Fold, Gap, Schedule, Zone};
use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use oracle::Oracle;
use proptest::prelude::*;
use proptest::sample::select;

const ZONES: [&str; 18] = [
    "Africa/Cairo",
    "America/New_York",
    "America/Santiago",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Asia/Shanghai",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "Europe/London",
    "Pacific/Apia",
    "Pacific/Chatham",
    "UTC",
    // Not in the golden file: a month of winter time in summer, and a day that was skipped in 1993.
    "Africa/Casablanca",
    "Pacific/Kwajalein",
];
const DAY: i64 = 86_400;
/// How far the oracle looks; it is slow.
const HORIZON: i64 = 400 * DAY;

fn policies() -> impl Strategy<Value = DstPolicy> {
    (select(&[Gap::Skip, Gap::RunAtEnd]), select(&[Fold::First, Fold::Second, Fold::Both]))
        .prop_map(|(gap, fold)| DstPolicy { gap, fold })
}

/// Half of the instants lie within two days of a clock change, where things go wrong.
fn zones_and_instants() -> impl Strategy<Value = (&'static str, Timestamp)> {
    let anywhere = (0..4_900_000_000_i64).prop_map(|second| second * 1000);
    (select(&ZONES[..]), anywhere, -2 * DAY..2 * DAY, any::<bool>(), 0..1000_i64).prop_map(
        |(zone, anywhere, distance, at_change, fraction)| {
            let rules = TimeZoneDatabase::bundled().get(zone).unwrap();
            let start = Timestamp::from_millisecond(anywhere).unwrap();
            let change = rules.following(start).next().filter(|_| at_change);
            let base = change.map_or(start, |change| change.timestamp());
            (zone, Timestamp::from_millisecond(base.as_millisecond() + distance * 1000 + fraction).unwrap())
        },
    )
}

/// A list of one to three entries within `min..=max`: values, ranges that may wrap, steps.
fn list(min: u32, max: u32) -> impl Strategy<Value = String> {
    let entry = (min..=max, min..=max, 1..=max.min(20), 0..6).prop_map(|(a, b, step, kind)| match kind {
        0 => format!("{a}-{b}"),
        1 => format!("{a}-{b}/{step}"),
        2 => format!("{a}/{step}"),
        3 => format!("*/{step}"),
        _ => a.to_string(),
    });
    prop::collection::vec(entry, 1..=3).prop_map(|entries| entries.join(","))
}

fn names(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    (select(names), select(names), any::<bool>())
        .prop_map(|(a, b, range)| if range { format!("{a}-{b}") } else { format!("{a},{b}") })
}

fn month_days() -> impl Strategy<Value = String> {
    let special = prop_oneof![
        Just("L".to_owned()),
        Just("LW".to_owned()),
        (0..=30).prop_map(|offset| format!("L-{offset}")),
        (0..=30).prop_map(|offset| format!("L-{offset}W")),
        (1..=31).prop_map(|day| format!("{day}W")),
        (1..=31_u32).prop_map(|day| day.to_string()),
    ];
    prop_oneof![
        Just("*".to_owned()),
        list(1, 31),
        prop::collection::vec(special, 1..=3).prop_map(|entries| entries.join(","))
    ]
}

fn weekdays() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        Just("L".to_owned()),
        list(1, 7),
        names(&["SUN", "MON", "Tuesday", "WED", "THURSDAY", "fri", "SAT"]),
        (1..=7).prop_map(|day| format!("{day}L")),
        (1..=7, 1..=5).prop_map(|(day, nth)| format!("{day}#{nth}")),
    ]
}

prop_compose! {
    fn expressions()(
        second in prop_oneof![Just("0".to_owned()), list(0, 59)],
        minute in prop_oneof![Just("*".to_owned()), list(0, 59), list(0, 59)],
        hour in prop_oneof![Just("*".to_owned()), list(0, 23), list(0, 3)],
        month_day in month_days(),
        weekday in weekdays(),
        by_weekday in any::<bool>(),
        month in prop_oneof![
            3 => Just("*".to_owned()),
            1 => list(1, 12),
            1 => names(&["JAN", "February", "MAR", "oct", "NOV", "DEC"])
        ],
        year in prop_oneof![
            5 => Just(String::new()),
            1 => Just(" *".to_owned()),
            1 => (1990..2060).prop_map(|year| format!(" {year}/3")),
            1 => (1990..2060).prop_map(|year| format!(" {year}-{}", year + 9)),
        ],
    ) -> String {
        let (month_day, weekday) = if by_weekday { ("?", &*weekday) } else { (&*month_day, "?") };
        format!("{second} {minute} {hour} {month_day} {month} {weekday}{year}")
    }
}

fn schedule(expression: &str, zone: &str, policy: DstPolicy) -> Schedule {
    let cron = Cron::parse(expression).unwrap_or_else(|error| panic!("`{expression}`: {error}"));
    Schedule::new(cron, Zone::parse(zone).unwrap()).with_policy(policy)
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// Not left to chance: every zone, every policy, every change of some years, forwards, backwards and counted.
#[test]
fn every_zone_and_every_policy_at_every_change() {
    let expressions = [
        "0 0/20 * * * ?",
        "0 15 0-3 * * ?",
        "0 0 0 * * ?",
        "30 30 2 ? * SUN",
        "0 0 2,3 L-6,15W,LW * ?",
        "0 5 1 * * ? 2011",
    ];
    let mut changes = 0;
    for zone in ZONES {
        let rules = TimeZoneDatabase::bundled().get(zone).unwrap();
        let years =
            ["2009-06-01T00:00:00Z", "2024-12-01T00:00:00Z"].map(|from| from.parse::<Timestamp>().unwrap());
        for change in years.iter().flat_map(|from| rules.following(*from).take(6)) {
            changes += 1;
            let (from, until) =
                (change.timestamp().as_second() - 2 * DAY, change.timestamp().as_second() + 2 * DAY);
            for (gap, fold) in [Gap::Skip, Gap::RunAtEnd]
                .into_iter()
                .flat_map(|gap| [Fold::First, Fold::Second, Fold::Both].map(|fold| (gap, fold)))
            {
                let policy = DstPolicy { gap, fold };
                for expression in expressions {
                    let schedule = schedule(expression, zone, policy);
                    let matches = Oracle::new(expression, zone, policy).fires(from, until);
                    let context = format!("{expression} in {zone} around {}, {policy:?}", change.timestamp());
                    let forwards = schedule.upcoming(at(from - 1)).take_while(|fire| *fire < at(until));
                    let forwards: Vec<i64> = forwards.map(Timestamp::as_second).collect();
                    assert_eq!(forwards, matches, "{context}");
                    let before = |fire: &Timestamp| schedule.previous_before(*fire);
                    let backwards = std::iter::successors(before(&at(until)), before);
                    let mut backwards: Vec<i64> =
                        backwards.map(Timestamp::as_second).take_while(|fire| *fire >= from).collect();
                    backwards.reverse();
                    assert_eq!(backwards, matches, "{context}");
                    let count = schedule.count_between(at(from - 1), at(until - 1));
                    assert_eq!(count, matches.len() as u64, "{context}");
                }
            }
        }
    }
    assert!(changes > 100, "only {changes} changes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn the_next_fire_is_the_first_match(
        expression in expressions(), (zone, instant) in zones_and_instants(), policy in policies()
    ) {
        let next = schedule(&expression, zone, policy).next_after(instant).map(Timestamp::as_second);
        let limit = instant.as_second() + HORIZON;
        let oracle = Oracle::new(&expression, zone, policy);
        prop_assert_eq!(next.filter(|fire| *fire <= limit), oracle.next_after(instant, limit));
        // A fire that makes up for a gap is the only one that does not match itself.
        prop_assert!(next.is_none_or(|fire| policy.gap == Gap::RunAtEnd || oracle.matches(fire)));
        prop_assert!(next.is_none_or(|fire| at(fire) > instant));
    }

    #[test]
    fn the_fires_around_a_change_are_the_matches(
        expression in expressions(), (zone, instant) in zones_and_instants(), policy in policies()
    ) {
        let schedule = schedule(&expression, zone, policy);
        let (from, until) = (instant.as_second(), instant.as_second() + 3 * DAY);
        let matches = Oracle::new(&expression, zone, policy).fires(from, until);
        // Forwards, one by one, in strict order.
        let walked = schedule.upcoming(at(from - 1)).map(Timestamp::as_second);
        let walked: Vec<i64> = walked.take_while(|fire| *fire < until).take(500).collect();
        let first = &matches[..matches.len().min(500)];
        prop_assert_eq!(&walked, first);
        prop_assert!(walked.is_sorted_by(|a, b| a < b));
        // Backwards the same.
        for pair in walked.windows(2) {
            prop_assert_eq!(schedule.previous_before(at(pair[1])), Some(at(pair[0])));
        }
        // Counted without walking.
        prop_assert_eq!(schedule.count_between(at(from - 1), at(until - 1)), matches.len() as u64);
    }

    #[test]
    fn previous_inverts_next(
        expression in expressions(), (zone, instant) in zones_and_instants(), policy in policies()
    ) {
        let schedule = schedule(&expression, zone, policy);
        if let Some(next) = schedule.next_after(instant) {
            let previous = schedule.previous_before(next);
            prop_assert!(previous.is_none_or(|previous| previous <= instant && schedule.next_after(previous) == Some(next)));
            prop_assert_eq!(schedule.count_between(instant, next), 1);
        }
        if let Some(previous) = schedule.previous_before(instant) {
            prop_assert!(previous < instant);
            let next = schedule.next_after(previous);
            prop_assert!(next.is_none_or(|next| next >= instant && schedule.previous_before(next) == Some(previous)));
        }
    }

    #[test]
    fn counts_agree_with_walking_and_add_up(
        expression in expressions(), (zone, instant) in zones_and_instants(), policy in policies(),
        steps in 0..300_usize, later in 0..40 * 365 * DAY
    ) {
        let schedule = schedule(&expression, zone, policy);
        let fires: Vec<Timestamp> = schedule.upcoming(instant).take(steps).collect();
        if let Some(last) = fires.last() {
            prop_assert_eq!(schedule.count_between(instant, *last), fires.len() as u64);
            let far = at(last.as_second() + later);
            prop_assert_eq!(
                schedule.count_between(instant, far),
                fires.len() as u64 + schedule.count_between(*last, far)
            );
            prop_assert_eq!(schedule.count_between(far, instant), 0);
        }
    }

    #[test]
    fn the_canonical_spelling_means_the_same(expression in expressions()) {
        let cron = Cron::parse(&expression).unwrap();
        let spelt = cron.to_string();
        prop_assert_eq!(Cron::parse(&spelt), Ok(cron), "{} became {}", expression, spelt);
    }

    #[test]
    fn no_text_and_no_instant_makes_it_panic(
        text in prop_oneof![
            any::<String>(),
            "[0-9*?/,LW#A-Z -]{0,40}",
            prop::collection::vec("[0-9*?/,LWlw#-]{1,6}|MON|jan|99|98", 5..9).prop_map(|fields| fields.join(" ")),
        ],
        zone in prop_oneof![any::<String>(), "GMT[+-][0-9:]{0,6}", select(&ZONES[..]).prop_map(str::to_owned)],
        second in prop_oneof![
            Just(Timestamp::MIN.as_second()), Just(Timestamp::MAX.as_second()),
            Timestamp::MIN.as_second()..=Timestamp::MAX.as_second()
        ],
        policy in policies(),
    ) {
        let zone = match Zone::parse(&zone) {
            Ok(zone) => zone,
            Err(error) => {
                prop_assert!(!error.to_string().contains('\n'));
                Zone::UTC
            }
        };
        match Cron::parse(&text) {
            Ok(cron) => {
                prop_assert!(!cron.describe().is_empty());
                prop_assert_eq!(Cron::parse(&cron.to_string()), Ok(cron.clone()));
                let schedule = Schedule::new(cron, zone).with_policy(policy);
                for instant in [at(second), Timestamp::MIN, Timestamp::MAX] {
                    let (next, previous) = (schedule.next_after(instant), schedule.previous_before(instant));
                    prop_assert!(next.is_none_or(|next| next > instant));
                    prop_assert!(previous.is_none_or(|previous| previous < instant));
                    let whole = schedule.count_between(Timestamp::MIN, Timestamp::MAX);
                    let (before, after) = (
                        schedule.count_between(Timestamp::MIN, instant),
                        schedule.count_between(instant, Timestamp::MAX),
                    );
                    prop_assert_eq!(before + after, whole);
                }
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
}
