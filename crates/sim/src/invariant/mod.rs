//! What must be true of every history. Each file begins with the sentence it proves.
//!
//! A sentence about *calm* stretches holds where nothing has disturbed the cluster for long enough. Every
//! history ends with such a stretch; nobody is restarted to get there.

mod bounded;
pub mod case;
mod complete;
mod covered;
mod fenced;
mod history_is_true;
mod hooks;
mod merge_lawful;
mod no_overlap;
mod obeys;
mod on_time;
mod recovers;
mod stops;
mod triggers;
mod unique;

use crate::history::History;
use crate::scenario::Ms;
use case::Case;

/// A sentence that is not true of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The sentence.
    pub invariant: &'static str,
    /// When it became false.
    pub at: Ms,
    /// How.
    pub what: String,
}

type Check = fn(&Case<'_>, &mut Vec<Violation>);

/// All of them.
pub const INVARIANTS: [(&str, &str); 14] = [
    ("complete", complete::SENTENCE),
    ("unique", unique::SENTENCE),
    ("fenced", fenced::SENTENCE),
    ("no overlap", no_overlap::SENTENCE),
    ("covered", covered::SENTENCE),
    ("on time", on_time::SENTENCE),
    ("recovers", recovers::SENTENCE),
    ("stops", stops::SENTENCE),
    ("bounded", bounded::SENTENCE),
    ("obeys", obeys::SENTENCE),
    ("triggers", triggers::SENTENCE),
    ("history is true", history_is_true::SENTENCE),
    ("merge-lawful", merge_lawful::SENTENCE),
    ("hooks", hooks::SENTENCE),
];

const CHECKS: [Check; 14] = [
    complete::check,
    unique::check,
    fenced::check,
    no_overlap::check,
    covered::check,
    on_time::check,
    recovers::check,
    stops::check,
    bounded::check,
    obeys::check,
    triggers::check,
    history_is_true::check,
    merge_lawful::check,
    hooks::check,
];

/// Everything that is wrong with a history, first things first.
pub fn check(history: &History) -> Vec<Violation> {
    check_those(history, |_| true)
}

/// The same, by those sentences alone whose names are wanted.
pub fn check_those(history: &History, wanted: impl Fn(&str) -> bool) -> Vec<Violation> {
    let case = Case::new(history);
    let mut found = Vec::new();
    for (_, check) in INVARIANTS.iter().zip(CHECKS).filter(|it| wanted(it.0.0)) {
        check(&case, &mut found);
    }
    found.sort_by(|a, b| (a.at, a.invariant).cmp(&(b.at, b.invariant)));
    found
}
