//! `describe()` and the canonical spelling, as a table.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use elasticjob_cron::Cron;
use expect_test::{Expect, expect};
use std::fmt::Write as _;

fn check(expressions: &[&str], expected: &Expect) {
    let mut table = String::new();
    for expression in expressions {
        let cron = Cron::parse(expression).unwrap();
        writeln!(table, "{expression}\n    {}\n    {cron}", cron.describe()).unwrap();
    }
    expected.assert_eq(&table);
}

#[test]
fn times_of_the_day() {
    check(
        &[
            "0 15 10 * * ?",
            "0 0 0,6,12,18 * * ?",
            "15,45 30 0 * * ?",
            "59 59 23 ? * *",
            "* * * * * ?",
            "0 * * * * ?",
            "0 0 * * * ?",
            "0/5 * * * * ?",
            "0/30 * * * * ?",
            "7/13 * * * * ?",
            "30 * * * * ?",
            "30 0/20 * * * ?",
            "* 5 * * * ?",
            "0 0/20 * * * ?",
            "0 5/15 * * * ?",
            "0 5,10,50 * * * ?",
            "0 0/20 6-22 * * ?",
            "0 0/7 22-2 * * ?",
            "0 0 0/2 * * ?",
            "0 30 1/2 * * ?",
            "0 0/10 8-10,14-16,20 * * ?",
            "15,45 5,10 9-17 * * ?",
            "99 99 99 99 99 98 99",
        ],
        &expect![[r#"
            0 15 10 * * ?
                at 10:15:00 every day
                0 15 10 * * ?
            0 0 0,6,12,18 * * ?
                at 00:00:00, 06:00:00, 12:00:00 and 18:00:00 every day
                0 0 0/6 * * ?
            15,45 30 0 * * ?
                at 00:30:15 and 00:30:45 every day
                15,45 30 0 * * ?
            59 59 23 ? * *
                at 23:59:59 every day
                59 59 23 * * ?
            * * * * * ?
                every second
                * * * * * ?
            0 * * * * ?
                every minute
                0 * * * * ?
            0 0 * * * ?
                every hour
                0 0 * * * ?
            0/5 * * * * ?
                every 5 seconds
                0/5 * * * * ?
            0/30 * * * * ?
                every 30 seconds
                0,30 * * * * ?
            7/13 * * * * ?
                at seconds 7, 20, 33, 46 and 59 of every minute
                7/13 * * * * ?
            30 * * * * ?
                at second 30 of every minute
                30 * * * * ?
            30 0/20 * * * ?
                at second 30 of every 20th minute
                30 0/20 * * * ?
            * 5 * * * ?
                every second in minute 5 of every hour
                * 5 * * * ?
            0 0/20 * * * ?
                every 20 minutes
                0 0/20 * * * ?
            0 5/15 * * * ?
                at minutes 5, 20, 35 and 50 of every hour
                0 5/15 * * * ?
            0 5,10,50 * * * ?
                at minutes 5, 10 and 50 of every hour
                0 5,10,50 * * * ?
            0 0/20 6-22 * * ?
                every 20 minutes from 06:00 through 22:59, every day
                0 0/20 6-22 * * ?
            0 0/7 22-2 * * ?
                at every 7th minute from 0 to 56 of every hour from 22:00 through 02:59, every day
                0 0/7 0-2,22,23 * * ?
            0 0 0/2 * * ?
                every 2 hours
                0 0 0/2 * * ?
            0 30 1/2 * * ?
                at minute 30 of every 2nd hour from 1 to 23, every day
                0 30 1/2 * * ?
            0 0/10 8-10,14-16,20 * * ?
                every 10 minutes in the hours 8 to 10, 14 to 16 and 20, every day
                0 0/10 8-10,14-16,20 * * ?
            15,45 5,10 9-17 * * ?
                at seconds 15 and 45 of minutes 5 and 10 of every hour from 09:00 through 17:59, every day
                15,45 5,10 9-17 * * ?
            99 99 99 99 99 98 99
                every second
                * * * * * ?
        "#]],
    );
}

#[test]
fn days() {
    check(
        &[
            "0 0/20 6-22 ? * MON-FRI",
            "0 15 2 LW * ?",
            "0 0 12 ? * MON",
            "0 0 12 ? * SUN,SAT",
            "0 0 12 ? * FRI-MON",
            "0 0 12 ? * MON,WED,FRI",
            "0 0 12 ? * 1-6",
            "0 0 12 ? * L",
            "0 0 12 ? * 6L",
            "0 0 12 ? MAR 6#3",
            "0 0 12 ? JAN-MAR,DEC MON-FRI",
            "0 0 0 1 * ?",
            "0 0 0 1,15 * ?",
            "0 0 0 1-7,20-25/2 * ?",
            "0 0 0 L * ?",
            "0 0 0 L-1 * ?",
            "0 0 0 L-3 2,4 ?",
            "0 0 0 15W * ?",
            "0 0 0 L-3W * ?",
            "0 0 0 1,15W,L,LW * ?",
            "0/10 * * * JUN,AUG ?",
            "0 0/5 9-17 * JUN ?",
            "0 0/5 * ? * MON-FRI",
        ],
        &expect![[r#"
            0 0/20 6-22 ? * MON-FRI
                every 20 minutes from 06:00 through 22:59, Monday to Friday
                0 0/20 6-22 ? * MON-FRI
            0 15 2 LW * ?
                at 02:15:00 on the last weekday of every month
                0 15 2 LW * ?
            0 0 12 ? * MON
                at 12:00:00 on Monday
                0 0 12 ? * MON
            0 0 12 ? * SUN,SAT
                at 12:00:00 on Saturday and Sunday
                0 0 12 ? * SUN,SAT
            0 0 12 ? * FRI-MON
                at 12:00:00, Friday to Monday
                0 0 12 ? * SUN,MON,FRI,SAT
            0 0 12 ? * MON,WED,FRI
                at 12:00:00 on Monday, Wednesday and Friday
                0 0 12 ? * MON,WED,FRI
            0 0 12 ? * 1-6
                at 12:00:00, Sunday to Friday
                0 0 12 ? * SUN-FRI
            0 0 12 ? * L
                at 12:00:00 on Saturday
                0 0 12 ? * SAT
            0 0 12 ? * 6L
                at 12:00:00 on the last Friday of every month
                0 0 12 ? * FRIL
            0 0 12 ? MAR 6#3
                at 12:00:00 on the third Friday of March
                0 0 12 ? MAR FRI#3
            0 0 12 ? JAN-MAR,DEC MON-FRI
                at 12:00:00, Monday to Friday in January to March and December
                0 0 12 ? JAN-MAR,DEC MON-FRI
            0 0 0 1 * ?
                at 00:00:00 on day 1 of every month
                0 0 0 1 * ?
            0 0 0 1,15 * ?
                at 00:00:00 on days 1 and 15 of every month
                0 0 0 1,15 * ?
            0 0 0 1-7,20-25/2 * ?
                at 00:00:00 on days 1 to 7, 20, 22 and 24 of every month
                0 0 0 1-7,20,22,24 * ?
            0 0 0 L * ?
                at 00:00:00 on the last day of every month
                0 0 0 L * ?
            0 0 0 L-1 * ?
                at 00:00:00 on the last day but one of every month
                0 0 0 L-1 * ?
            0 0 0 L-3 2,4 ?
                at 00:00:00 on the day 3 days before the last of February and April
                0 0 0 L-3 FEB,APR ?
            0 0 0 15W * ?
                at 00:00:00 on the weekday nearest to day 15 of every month
                0 0 0 15W * ?
            0 0 0 L-3W * ?
                at 00:00:00 on the weekday nearest to the day 3 days before the last of every month
                0 0 0 L-3W * ?
            0 0 0 1,15W,L,LW * ?
                at 00:00:00 on day 1, the weekday nearest to day 15, the last day and the last weekday of every month
                0 0 0 1,15W,L,LW * ?
            0/10 * * * JUN,AUG ?
                every 10 seconds, every day in June and August
                0/10 * * * JUN,AUG ?
            0 0/5 9-17 * JUN ?
                every 5 minutes from 09:00 through 17:59, every day in June
                0 0/5 9-17 * JUN ?
            0 0/5 * ? * MON-FRI
                every 5 minutes, Monday to Friday
                0 0/5 * ? * MON-FRI
        "#]],
    );
}

#[test]
fn years() {
    check(
        &[
            "0 0 0 1 1 ? 2026",
            "0 0 0 1 1 ? 2024-2030",
            "0 0 0 1 1 ? 2026,2028",
            "0 0 0 1 1 ? 2010/5",
            "0 0 0 1 1 ? 2025-2035/3",
            "0 0 0 30 2 ?",
            "0 0 0 29 2 ? 2025-2027",
            "0 0 0 * * ? 1969",
        ],
        &expect![[r#"
            0 0 0 1 1 ? 2026
                at 00:00:00 on day 1 of January, in 2026
                0 0 0 1 JAN ? 2026
            0 0 0 1 1 ? 2024-2030
                at 00:00:00 on day 1 of January, in 2024 to 2030
                0 0 0 1 JAN ? 2024-2030
            0 0 0 1 1 ? 2026,2028
                at 00:00:00 on day 1 of January, in 2026 and 2028
                0 0 0 1 JAN ? 2026,2028
            0 0 0 1 1 ? 2010/5
                at 00:00:00 on day 1 of January, every 5th year from 2010 to 2125
                0 0 0 1 JAN ? 2010/5
            0 0 0 1 1 ? 2025-2035/3
                at 00:00:00 on day 1 of January, every 3rd year from 2025 to 2034
                0 0 0 1 JAN ? 2025-2034/3
            0 0 0 30 2 ?
                at 00:00:00 on day 30 of February (which never comes)
                0 0 0 30 FEB ?
            0 0 0 29 2 ? 2025-2027
                at 00:00:00 on day 29 of February, in 2025 to 2027 (which never comes)
                0 0 0 29 FEB ? 2025-2027
            0 0 0 * * ? 1969
                at 00:00:00 every day, in no year from 1970 to 2126 (which never comes)
                0 0 0 * * ? 1969
        "#]],
    );
}
