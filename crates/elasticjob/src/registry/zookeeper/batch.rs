//! Transactions of several jobs that go to the server as one.
//!
//! Jobs often fire at the same second. A server takes one transaction of many steps in a fraction of the time
//! that it takes for as many small ones, and nobody's code begins before its own is answered.

use std::collections::HashSet;

use super::machine::Reply;
use super::transaction::{Attempt, Transaction};
use super::wire::{Ask, Packet};
use crate::registry::CommitError;

/// How many transactions go together. Others of the server wait while it is at them.
const PARTS_MAX: usize = 64;
/// What is larger goes alone.
const PART_BYTES_MAX: usize = 4 << 10;

/// A transaction, and who waits for it.
pub(super) struct Committing {
    pub(super) transaction: Transaction,
    pub(super) reply: Reply<Result<(), CommitError>>,
    /// Parents that have yet to be looked at.
    pub(super) looking: Vec<Ask>,
}

/// A transaction as it is to be sent.
pub(super) struct Part {
    pub(super) committing: Box<Committing>,
    pub(super) attempt: Attempt,
    pub(super) packet: Packet,
}

/// Transactions that go together. None of them is about a node that another one is about, so it is the same
/// as if each went by itself, one behind the other.
#[derive(Default)]
pub(super) struct Batch {
    parts: Vec<Part>,
    jobs: HashSet<String>,
}

impl Batch {
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether this one may go with those that are here.
    pub(super) fn takes(&self, part: &Part) -> bool {
        let fits = |it: &Part| it.packet.size() <= PART_BYTES_MAX;
        match &*self.parts {
            [] => true,
            [first, ..] => {
                let job = part.job();
                let is_apart = job.is_some_and(|it| !self.jobs.contains(it)) && first.job().is_some();
                is_apart && fits(part) && fits(first) && self.parts.len() < PARTS_MAX
            }
        }
    }

    pub(super) fn add(&mut self, part: Part) {
        self.jobs.extend(part.job().map(str::to_owned));
        self.parts.push(part);
    }

    pub(super) fn take(&mut self) -> Vec<Part> {
        self.jobs.clear();
        std::mem::take(&mut self.parts)
    }
}

impl Part {
    /// The job that it is about, if it touches nothing else.
    fn job(&self) -> Option<&str> {
        self.committing.transaction.job().filter(|_| self.attempt.stays_within(&self.committing.transaction))
    }
}
