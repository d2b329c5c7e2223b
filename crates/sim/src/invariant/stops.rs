//! Who has lost his session starts nothing any more, and what he runs is told to stop.

use std::collections::BTreeMap;

use super::Violation;
use super::case::Case;
use crate::history::{Fact, SessionEnd};
use crate::scenario::Ms;

pub(super) const SENTENCE: &str =
    "nothing starts after its session is over, and what runs by then has been told to stop";

/// How soon after it could know a process must have told its runs.
const AT_ONCE: Ms = 200;

pub(super) fn check(case: &Case<'_>, found: &mut Vec<Violation>) {
    let awake = awake_from(case);
    let timeout = case.history.scenario.session_timeout;
    for run in &case.history.runs {
        let Some((end, how)) = case.session_end(run.instance) else { continue };
        // A registry that forgets its sessions ends them before their time.
        let over = if how == SessionEnd::Forgotten { end + timeout } else { end };
        if run.started > over {
            let what = format!("run {} started {} ms after its session was over", run.id, run.started - over);
            found.push(Violation { invariant: "stops", at: run.started, what });
        }
        let slept = awake.get(&run.instance.process).map(Vec::as_slice).unwrap_or_default();
        let woke = slept.iter().find(|it| it.0 <= over && over <= it.1).map_or(over, |it| it.1);
        let deadline = woke + AT_ONCE + case.history.scenario.slack;
        let over_by_then =
            run.over().is_some_and(|at| at <= deadline) || deadline > case.history.scenario.ends_at;
        if !over_by_then && run.cancelled.is_none_or(|at| at > deadline) {
            let what = format!("run {} was not told to stop when its session was over", run.id);
            found.push(Violation { invariant: "stops", at: deadline, what });
        }
    }
}

/// When each process stood still.
fn awake_from(case: &Case<'_>) -> BTreeMap<usize, Vec<(Ms, Ms)>> {
    let mut slept: BTreeMap<usize, Vec<(Ms, Ms)>> = BTreeMap::new();
    for (at, fact) in &case.history.facts {
        match fact {
            Fact::Paused(process) => slept.entry(*process).or_default().push((*at, Ms::MAX / 2)),
            Fact::Resumed(process) => {
                if let Some(last) = slept.get_mut(process).and_then(|it| it.last_mut()) {
                    last.1 = *at;
                }
            }
            _ => {}
        }
    }
    slept
}
