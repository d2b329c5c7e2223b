//! Quartz cron expressions, answered as Quartz answers them, with zones and daylight saving said out loud.
//!
//! ```
//! use elasticjob_cron::{Cron, Schedule, Zone};
//!
//! let cron: Cron = "0 0/20 6-22 ? * MON-FRI".parse()?;
//! assert_eq!(cron.describe(), "every 20 minutes from 06:00 through 22:59, Monday to Friday");
//!
//! let schedule = Schedule::new(cron, Zone::parse("Europe/Vienna")?);
//! let friday_night = "2026-11-13T22:50:00+01:00".parse()?;
//! assert_eq!(schedule.next_after(friday_night), Some("2026-11-16T06:00:00+01:00".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The engine does no I/O, keeps no state and looks at no clock: the instant to search from is an argument, and the zone
//! rules are bundled ([`Zone::system`] alone asks the machine, for the name of its zone). Nothing panics, and nothing
//! takes longer than a fraction of a millisecond, also when the answer is "never".
//!
//! # The dialect
//!
//! Six or seven fields, separated by blanks or tabs, in any case:
//!
//! | field | values | also |
//! |---|---|---|
//! | second | 0 to 59 | |
//! | minute | 0 to 59 | |
//! | hour | 0 to 23 | |
//! | day of month | 1 to 31 | `L` the last day, `L-n` n days before it, `LW` the last weekday, `L-nW`, `nW` the weekday nearest to day n; `?` |
//! | month | 1 to 12, `JAN` to `DEC`, `JANUARY` to `DECEMBER` | |
//! | day of week | 1 to 7 from Sunday, `SUN` to `SAT`, `SUNDAY` to `SATURDAY` | `nL` the last such day of the month, `n#k` the k-th; `L` alone is Saturday; `?` |
//! | year | 1970 to 2126 | may be left out |
//!
//! * `*` is every value; `a-b` a range; `a/s` every s-th from a to the end of the field; `*/s` and `/s` every s-th from
//!   its beginning; `a-b/s` every s-th of a range; `,` joins them to a list.
//! * A range whose end lies before its start goes round: `22-2` are the hours around midnight, `NOV-FEB` the winter. Years
//!   do not go round.
//! * One of the two days is `?`, which stands for "whatever the other one says".
//! * `nW` and `L-nW` stay within the month. A month that does not have the day, or the k-th weekday, is skipped.
//! * In a list of days of the month `L`, `W` and plain days may be mixed, as in Quartz 2.5.
//! * A year outside of 1970 to 2126 is not an error; it never comes. Quartz ends "this year plus 100", which makes the
//!   answer depend on the day of the question; here the end stands still.
//! * Like Quartz, a field that is `99` is taken for `*`, a day that is `98` for `?`, and a comma too many is passed over.
//!
//! # Clock changes
//!
//! [`DstPolicy`] says what happens to local times that do not exist ([`Gap`]) or come twice ([`Fold`]). The default is
//! what Quartz does: what falls into a gap is left out, and what comes twice fires the second time only, so that a job
//! that runs every ten minutes pauses for an hour in autumn. A schedule is a set of instants: [`Schedule::next_after`],
//! [`Schedule::previous_before`], [`Schedule::upcoming`] and [`Schedule::count_between`] all speak of the same set,
//! wherever the question is asked from.
//!
//! # Where the answer is not Quartz's
//!
//! The tests hold the engine to 49,577 answers of the real Quartz, in 16 zones. It answers as Quartz 2.3 and 2.4 do, but
//! for the rows under these rules. The test proves the rule for every row, by a second reading of the dialect that shares
//! no code with the engine, and counts the rows.
//!
//! Where Quartz has no answer, or a broken one, the answer is what the expression says:
//!
//! | Quartz 2.3 | here | rows |
//! |---|---|---:|
//! | refuses a list that mixes `L` or `LW` with other days (`15,L`) | the meaning of Quartz 2.5 | 784 |
//! | does not return (`LW`, `31W` and the like) | the first match | 781 |
//! | does not return for `0W`, a day that no month has | refused | 112 |
//! | accepts the text and throws at the first question (`,`, or `L` as a month) | refused | 336 |
//! | fires `31W` in a month of 30 days, or beside a day that a zone skipped | the first match | 15 |
//! | passes over existing times after a gap of two hours or of odd minutes | the first match | 3 |
//!
//! Where Quartz ignores a part of the text in silence, the expression is refused with a message; 1,792 rows. The text
//! is `5x`, `1.5`, `*5`, `MONX`, `?1`, a step after a name (`MON-FRI/2`), a step of 0, `W` or `#` after a range
//! (`10-15W`, `MON-FRI#2`), an eighth field, or the other days in a list with `n#k`.
//!
//! Where the answer differs on purpose; 241 rows, fewer than 1 in 200:
//!
//! | Quartz 2.3 | here | rows |
//! |---|---|---:|
//! | reads three letters of `MONDAY-FRIDAY` and ignores the rest | full names mean what they say | 41 |
//! | applies `W` to the first day of a list and forgets the others (`1W,15W`), so that it passes over the earlier match | the meaning of Quartz 2.5 | 100 |
//! | asked within the first pass of a repeated hour, passes over the beginning of the second: at the first 02:30, "at 02:00" waits until tomorrow | the first match | 100 |

mod calendar;
mod cron;
mod describe;
mod error;
mod parse;
mod schedule;
mod spell;
mod unix;
mod zone;

pub use cron::Cron;
pub use error::{Field, ParseError};
pub use schedule::{DstPolicy, Fold, Gap, Schedule};
pub use zone::{Zone, ZoneError};

/// The README's example is compiled and run with the others.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
