//! What people read when an expression or a zone is refused, as a table.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use elasticjob_cron::{Cron, Zone};
use expect_test::{Expect, expect};
use std::fmt::Write as _;

fn check(expressions: &[&str], expected: &Expect) {
    let mut table = String::new();
    for expression in expressions {
        let error = Cron::parse(expression).unwrap_err();
        writeln!(table, "{expression:?}\n    {error}").unwrap();
    }
    expected.assert_eq(&table);
}

#[test]
fn values_out_of_range() {
    check(
        &[
            "60 0 0 * * ?",
            "0 60 0 * * ?",
            "0 0 24 * * ?",
            "0 0 0 0 * ?",
            "0 0 0 32 * ?",
            "0 0 0 0W * ?",
            "0 0 0 32W * ?",
            "0 0 0 L-31 * ?",
            "0 0 0 1 13 ?",
            "0 0 0 ? * 0",
            "0 0 0 ? * 8",
            "0 0 0 ? * 0L",
            "0 0 0 ? * 6#0",
            "0 0 0 ? * 6#6",
            "0 0 0 ? * 2#-1",
            "0 99999999999 0 * * ?",
            "0 0 0 1 1 ? 2030-2025",
            "0 0 0 1 1 ? 2200/2",
            "0 5,99 0 * * ?",
        ],
        &expect![[r#"
            "60 0 0 * * ?"
                second `60` at column 1: the second is 0 to 59
            "0 60 0 * * ?"
                minute `60` at column 3: the minute is 0 to 59
            "0 0 24 * * ?"
                hour `24` at column 5: the hour is 0 to 23
            "0 0 0 0 * ?"
                day of month `0` at column 7: the day of month is 1 to 31, L, L-n, LW, nW or ?
            "0 0 0 32 * ?"
                day of month `32` at column 7: the day of month is 1 to 31, L, L-n, LW, nW or ?
            "0 0 0 0W * ?"
                day of month `0` at column 7: the day of month is 1 to 31, L, L-n, LW, nW or ?
            "0 0 0 32W * ?"
                day of month `32` at column 7: the day of month is 1 to 31, L, L-n, LW, nW or ?
            "0 0 0 L-31 * ?"
                day of month `31` at column 9: at most 30 days before the last day of the month
            "0 0 0 1 13 ?"
                month `13` at column 9: the month is 1 to 12 or JAN to DEC
            "0 0 0 ? * 0"
                day of week `0` at column 11: the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?
            "0 0 0 ? * 8"
                day of week `8` at column 11: the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?
            "0 0 0 ? * 0L"
                day of week `0` at column 11: the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?
            "0 0 0 ? * 6#0"
                day of week `#0` at column 12: after `#` a number from 1 to 5 must follow
            "0 0 0 ? * 6#6"
                day of week `#6` at column 12: after `#` a number from 1 to 5 must follow
            "0 0 0 ? * 2#-1"
                day of week `#-1` at column 12: after `#` a number from 1 to 5 must follow
            "0 99999999999 0 * * ?"
                minute `99999999999` at column 3: the number is too large; the minute is 0 to 59
            "0 0 0 1 1 ? 2030-2025"
                year `2030-2025` at column 13: years do not wrap around; the year is 1970 to 2126
            "0 0 0 1 1 ? 2200/2"
                year `2200/2` at column 13: years do not wrap around; the year is 1970 to 2126
            "0 5,99 0 * * ?"
                minute `99` at column 5: the minute is 0 to 59
        "#]],
    );
}

#[test]
fn steps() {
    check(
        &[
            "0/60 * * * * ?",
            "*/ * * * * ?",
            "/ * * * * ?",
            "0/a * * * * ?",
            "0/-5 * * * * ?",
            "0/0 * * * * ?",
            "0 0 0/24 * * ?",
            "0 0 0 1/32 * ?",
            "0 0 0 1 1/13 ?",
            "0 0 0 ? * 1/8",
        ],
        &expect![[r#"
            "0/60 * * * * ?"
                second `60` at column 3: the step for the second is 1 to 59
            "*/ * * * * ?"
                second `/` at column 2: after `/` a number must follow
            "/ * * * * ?"
                second `/` at column 1: after `/` a number must follow
            "0/a * * * * ?"
                second `/a` at column 2: after `/` a number must follow
            "0/-5 * * * * ?"
                second `/-5` at column 2: after `/` a number must follow
            "0/0 * * * * ?"
                second `0` at column 3: a step of 0 has no effect in Quartz; write 1 or more, or no step
            "0 0 0/24 * * ?"
                hour `24` at column 7: the step for the hour is 1 to 23
            "0 0 0 1/32 * ?"
                day of month `32` at column 9: the step for the day of month is 1 to 31
            "0 0 0 1 1/13 ?"
                month `13` at column 11: the step for the month is 1 to 12
            "0 0 0 ? * 1/8"
                day of week `8` at column 13: the step for the day of week is 1 to 7
        "#]],
    );
}

#[test]
fn text_that_quartz_would_pass_over_in_silence() {
    check(
        &[
            "5x * * * * ?",
            "1.5 * * * * ?",
            "*5 * * * * ?",
            "*-5 * * * * ?",
            "10-20-30 * * * * ?",
            "0 0 0 10-15W * ?",
            "0 0 0 15W-17W * ?",
            "0 0 0 1 * ?1",
            "0 0 0 1 JAN-JUN/2 ?",
            "0 0 0 1 JAN/2 ?",
            "0 0 0 ? * MON-FRI/2",
            "0 0 0 ? * MON-FRI#2",
            "0 0 0 ? * MONX",
            "0 0 0 ? * TUES",
            "0 0 0 ? * 2#1,6",
            "0 0 0 ? * MON,FRI#2",
            "5 6 7 8 9 ? 2026 2027",
        ],
        &expect![[r#"
            "5x * * * * ?"
                second `x` at column 2: it has no meaning here; the second is 0 to 59
            "1.5 * * * * ?"
                second `.5` at column 2: it has no meaning here; the second is 0 to 59
            "*5 * * * * ?"
                second `5` at column 2: it has no meaning here; the second is 0 to 59
            "*-5 * * * * ?"
                second `-5` at column 2: it has no meaning here; the second is 0 to 59
            "10-20-30 * * * * ?"
                second `-30` at column 6: it has no meaning here; the second is 0 to 59
            "0 0 0 10-15W * ?"
                day of month `W` at column 12: `W` belongs to a single day, as in 15W; the day of month is 1 to 31, L, L-n, LW, nW or ?
            "0 0 0 15W-17W * ?"
                day of month `W-17W` at column 9: `W` belongs to a single day, as in 15W; the day of month is 1 to 31, L, L-n, LW, nW or ?
            "0 0 0 1 * ?1"
                day of week `?1` at column 11: `?` stands alone in its field
            "0 0 0 1 JAN-JUN/2 ?"
                month `/2` at column 16: a step after a name has no effect in Quartz; write the months as numbers to step through them, as in 1-6/2
            "0 0 0 1 JAN/2 ?"
                month `/2` at column 12: a step after a name has no effect in Quartz; write the months as numbers to step through them, as in 1-6/2
            "0 0 0 ? * MON-FRI/2"
                day of week `/2` at column 18: a step after a name has no effect in Quartz; write the days as numbers (1 is Sunday) to step through them, as in 2-6/2
            "0 0 0 ? * MON-FRI#2"
                day of week `#2` at column 18: `#` has no meaning here; the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?
            "0 0 0 ? * MONX"
                day of week `MONX` at column 11: write MON or MONDAY; the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?
            "0 0 0 ? * TUES"
                day of week `TUES` at column 11: write TUE or TUESDAY; the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?
            "0 0 0 ? * 2#1,6"
                day of week `2#1` at column 11: `L` and `#` cannot be listed with other days of the week; use one job for each
            "0 0 0 ? * MON,FRI#2"
                day of week `FRI#2` at column 15: `L` and `#` cannot be listed with other days of the week; use one job for each
            "5 6 7 8 9 ? 2026 2027"
                year `2027` at column 18: nothing may follow the year; an expression is: second minute hour day-of-month month day-of-week [year]
        "#]],
    );
}

#[test]
fn text_without_a_meaning() {
    check(
        &[
            "",
            "   ",
            "0",
            "0 0",
            "every day",
            "-5 * * * * ?",
            ", * * * * ?",
            "٣ * * * * ?",
            "L 0 0 * * ?",
            "0 0 ? * * ?",
            "0 0 0 H * ?",
            "0 0 0 W * ?",
            "0 0 0 5L * ?",
            "0 0 0 L5 * ?",
            "0 0 0 L- * ?",
            "0 0 0 ?? * ?",
            "0 0 0 1,? * ?",
            "0 0 0 1 L ?",
            "0 0 0 1 FOO ?",
            "0 0 0 1 JAN- ?",
            "0 0 0 1 JAN-3 ?",
            "0 0 0 1 1-MAR ?",
            "0 0 0 ? * M",
            "0 0 0 ? * #2",
            "0 0 0 ? * 2#",
            "0 0 0 ? * 2W",
            "0 0 0 ? * MON,6L",
            "0 0 0 ? * L,2",
            "0 0 0 1 * ? +2026",
        ],
        &expect![[r#"
            ""
                cron expression ``: it is empty; an expression is: second minute hour day-of-month month day-of-week [year]
            "   "
                cron expression `   `: it is empty; an expression is: second minute hour day-of-month month day-of-week [year]
            "0"
                cron expression `0`: one field is too few; an expression is: second minute hour day-of-month month day-of-week [year]
            "0 0"
                cron expression `0 0`: 2 fields are too few; an expression is: second minute hour day-of-month month day-of-week [year]
            "every day"
                cron expression `every day`: 2 fields are too few; an expression is: second minute hour day-of-month month day-of-week [year]
            "-5 * * * * ?"
                second `-5` at column 1: it has no meaning here; the second is 0 to 59
            ", * * * * ?"
                second `,` at column 1: the list is empty; the second is 0 to 59
            "٣ * * * * ?"
                second `٣` at column 1: it has no meaning here; the second is 0 to 59
            "L 0 0 * * ?"
                second `L` at column 1: `L` has no meaning here; the second is 0 to 59
            "0 0 ? * * ?"
                hour `?` at column 5: `?` is for the day of month and the day of week only; write `*`
            "0 0 0 H * ?"
                day of month `H` at column 7: it has no meaning here; the day of month is 1 to 31, L, L-n, LW, nW or ?
            "0 0 0 W * ?"
                day of month `W` at column 7: `W` belongs to a single day, as in 15W; the day of month is 1 to 31, L, L-n, LW, nW or ?
            "0 0 0 5L * ?"
                day of month `L` at column 8: `L` has no meaning here; the day of month is 1 to 31, L, L-n, LW, nW or ?
            "0 0 0 L5 * ?"
                day of month `5` at column 8: after `L` only `-n`, `W` or `-nW` may follow
            "0 0 0 L- * ?"
                day of month `-` at column 8: after `L` only `-n`, `W` or `-nW` may follow
            "0 0 0 ?? * ?"
                day of month `??` at column 7: `?` stands alone in its field
            "0 0 0 1,? * ?"
                day of month `?` at column 9: `?` stands alone in its field
            "0 0 0 1 L ?"
                month `L` at column 9: `L` has no meaning here; the month is 1 to 12 or JAN to DEC
            "0 0 0 1 FOO ?"
                month `FOO` at column 9: it has no meaning here; the month is 1 to 12 or JAN to DEC
            "0 0 0 1 JAN- ?"
                month `JAN-` at column 9: a range from a name must end with a name; the month is 1 to 12 or JAN to DEC
            "0 0 0 1 JAN-3 ?"
                month `3` at column 13: a range from a name must end with a name; the month is 1 to 12 or JAN to DEC
            "0 0 0 1 1-MAR ?"
                month `MAR` at column 11: a range from a number must end with a number; the month is 1 to 12 or JAN to DEC
            "0 0 0 ? * M"
                day of week `M` at column 11: it has no meaning here; the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?
            "0 0 0 ? * #2"
                day of week `#2` at column 11: `#` has no meaning here; the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?
            "0 0 0 ? * 2#"
                day of week `#` at column 12: after `#` a number from 1 to 5 must follow
            "0 0 0 ? * 2W"
                day of week `W` at column 12: `W` has no meaning here; the day of week is 1 (Sunday) to 7 or SUN to SAT, nL, n#k or ?
            "0 0 0 ? * MON,6L"
                day of week `6L` at column 15: `L` and `#` cannot be listed with other days of the week; use one job for each
            "0 0 0 ? * L,2"
                day of week `L` at column 11: `L` and `#` cannot be listed with other days of the week; use one job for each
            "0 0 0 1 * ? +2026"
                year `+2026` at column 13: it has no meaning here; the year is 1970 to 2126
        "#]],
    );
}

#[test]
fn both_days_or_neither() {
    check(
        &["0 0 0 * * *", "0 0 0 * * MON", "0 0 0 13 * FRI", "0 0 0 15W * *", "0 0 0 ? * ?"],
        &expect![[r#"
            "0 0 0 * * *"
                day of week `*` at column 11: the day of month `*` is given too; put `?` into the day of week; did you mean `0 0 0 * * ?`?
            "0 0 0 * * MON"
                day of week `MON` at column 11: the day of month `*` is given too; put `?` into the day of month; did you mean `0 0 0 ? * MON`?
            "0 0 0 13 * FRI"
                day of week `FRI` at column 12: the day of month `13` is given too; put `?` into the day of month
            "0 0 0 15W * *"
                day of week `*` at column 13: the day of month `15W` is given too; put `?` into the day of week; did you mean `0 0 0 15W * ?`?
            "0 0 0 ? * ?"
                day of week `?` at column 11: `?` in the day of month and in the day of week says nothing; put `*` into one of them
        "#]],
    );
}

#[test]
fn unix_expressions_with_the_right_one_beside_them() {
    check(
        &[
            "* * * * *",
            "*/5 * * * *",
            "0 3 * * *",
            "30 2 1 * *",
            "0 9 * * 1-5",
            "0 9 * * MON-FRI",
            "0 0 * * 0",
            "0 0 * * 7",
            "0 0 * * 5-7",
            "0 0 * * 0,3,6",
            "0 0 * * 0-7",
            "0 0 * * 1-5/2",
            "0 0 * jan ?",
            "0 0 13 * 5",
            "0 25 * * *",
            "@daily",
            "@Hourly",
            "@reboot",
        ],
        &expect![[r#"
            "* * * * *"
                cron expression `* * * * *`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 * * * * ?`?
            "*/5 * * * *"
                cron expression `*/5 * * * *`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 */5 * * * ?`?
            "0 3 * * *"
                cron expression `0 3 * * *`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 3 * * ?`?
            "30 2 1 * *"
                cron expression `30 2 1 * *`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 30 2 1 * ?`?
            "0 9 * * 1-5"
                cron expression `0 9 * * 1-5`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 9 ? * MON-FRI`?
            "0 9 * * MON-FRI"
                cron expression `0 9 * * MON-FRI`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 9 ? * MON-FRI`?
            "0 0 * * 0"
                cron expression `0 0 * * 0`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 0 ? * SUN`?
            "0 0 * * 7"
                cron expression `0 0 * * 7`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 0 ? * SUN`?
            "0 0 * * 5-7"
                cron expression `0 0 * * 5-7`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 0 ? * FRI-SUN`?
            "0 0 * * 0,3,6"
                cron expression `0 0 * * 0,3,6`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 0 ? * SUN,WED,SAT`?
            "0 0 * * 0-7"
                cron expression `0 0 * * 0-7`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 0 * * ?`?
            "0 0 * * 1-5/2"
                cron expression `0 0 * * 1-5/2`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 0 ? * 2-6/2`?
            "0 0 * jan ?"
                cron expression `0 0 * jan ?`: five fields are a Unix expression; here the second comes first and one of the two days is `?`; did you mean `0 0 0 * jan ?`?
            "0 0 13 * 5"
                cron expression `0 0 13 * 5`: five fields are a Unix expression, and Quartz cannot say "this day of month or that day of week"; write two expressions of six fields, with `?` for one day in each
            "0 25 * * *"
                cron expression `0 25 * * *`: five fields are a Unix expression; here the second comes first and one of the two days is `?`
            "@daily"
                cron expression `@daily`: names of schedules are not part of the Quartz dialect; did you mean `0 0 0 * * ?`?
            "@Hourly"
                cron expression `@Hourly`: names of schedules are not part of the Quartz dialect; did you mean `0 0 * * * ?`?
            "@reboot"
                cron expression `@reboot`: names of schedules are not part of the Quartz dialect
        "#]],
    );
}

#[test]
fn long_and_strange_texts_stay_on_one_line() {
    let long = format!("0 {} * * * ?", "7".repeat(500));
    check(
        &["0 0 0 1\n2 * ?", "0 0 \u{1b}[31m * * ?", &long],
        &expect![[r#"
        "0 0 0 1\n2 * ?"
            day of month `�2` at column 8: it has no meaning here; the day of month is 1 to 31, L, L-n, LW, nW or ?
        "0 0 \u{1b}[31m * * ?"
            hour `�[31m` at column 5: it has no meaning here; the hour is 0 to 23
        "0 77777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777777 * * * ?"
            minute `777777777777777777777777777777777777777777777777777777777777…` at column 3: the number is too large; the minute is 0 to 59
    "#]],
    );
}

#[test]
fn zones() {
    let mut table = String::new();
    for name in [
        "",
        "Mars/Olympus",
        "CEST",
        "GMT+",
        "GMT+24",
        "GMT+8:0",
        "GMT+8:60",
        "GMT+08:00:00",
        "GMT 8",
        "+08:00",
    ] {
        writeln!(table, "{name:?}\n    {}", Zone::parse(name).unwrap_err()).unwrap();
    }
    for name in [
        "utc",
        "gmt",
        "GMT+0",
        "GMT+8",
        "GMT+08",
        "GMT-3",
        "GMT+8:00",
        "GMT+0545",
        "GMT-12:30",
        "europe/vienna",
    ] {
        writeln!(table, "{name:?} is {}", Zone::parse(name).unwrap()).unwrap();
    }
    expect![[r#"
        ""
            no time zone is called ``; write an IANA name as in Europe/Vienna, or an offset as in GMT+8:00
        "Mars/Olympus"
            no time zone is called `Mars/Olympus`; write an IANA name as in Europe/Vienna, or an offset as in GMT+8:00
        "CEST"
            no time zone is called `CEST`; write an IANA name as in Europe/Vienna, or an offset as in GMT+8:00
        "GMT+"
            `GMT+` is no offset; after GMT come a sign, hours up to 23 and minutes, as in GMT+8:00
        "GMT+24"
            `GMT+24` is no offset; after GMT come a sign, hours up to 23 and minutes, as in GMT+8:00
        "GMT+8:0"
            `GMT+8:0` is no offset; after GMT come a sign, hours up to 23 and minutes, as in GMT+8:00
        "GMT+8:60"
            `GMT+8:60` is no offset; after GMT come a sign, hours up to 23 and minutes, as in GMT+8:00
        "GMT+08:00:00"
            `GMT+08:00:00` is no offset; after GMT come a sign, hours up to 23 and minutes, as in GMT+8:00
        "GMT 8"
            no time zone is called `GMT 8`; write an IANA name as in Europe/Vienna, or an offset as in GMT+8:00
        "+08:00"
            no time zone is called `+08:00`; write an IANA name as in Europe/Vienna, or an offset as in GMT+8:00
        "utc" is UTC
        "gmt" is UTC
        "GMT+0" is UTC
        "GMT+8" is GMT+8:00
        "GMT+08" is GMT+8:00
        "GMT-3" is GMT-3:00
        "GMT+8:00" is GMT+8:00
        "GMT+0545" is GMT+5:45
        "GMT-12:30" is GMT-12:30
        "europe/vienna" is Europe/Vienna
    "#]].assert_eq(&table);
}
