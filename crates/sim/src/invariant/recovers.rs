//! Once nothing goes wrong any more, everything works again within a bounded time, and nobody had to be
//! restarted for it.

use super::Violation;
use super::case::Case;
use super::complete::lost_fires;

pub(super) const SENTENCE: &str = "after the last fault every item runs at every fire again, within a bounded time, and nothing is restarted";

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    let scenario = &case.history.scenario;
    let bound = scenario.ends_at - 3 * scenario.jobs.iter().map(|it| it.period).max().unwrap_or_default();
    match case.calm.last().filter(|it| it.1 == scenario.ends_at && it.0 <= bound) {
        Some(stretch) => lost_fires(case, *stretch, "recovers", found),
        None => found.push(Violation {
            invariant: "recovers",
            at: scenario.ends_at,
            what: format!("the cluster does not come to rest: {:?}", case.calm.last()),
        }),
    }
}
