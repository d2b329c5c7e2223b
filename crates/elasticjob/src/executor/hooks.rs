//! Calls the listeners of a job, one after another, none for longer than it may take.

use std::collections::BTreeMap;
use std::time::Duration;

use elasticjob_core::coord::HookOrder;
use elasticjob_core::event::{Hook, Outcome};
use tokio_util::sync::CancellationToken;

use super::{Ended, cancelled_for, caught, with_causes};
use crate::job::{JobError, Listeners, Round};

/// Rounds whose outcomes are kept for listeners. More than a few are those of rounds whose session ended, and nobody
/// is told of them.
const KEPT: usize = 16;

/// The calls that go on, and what they will be told.
#[derive(Default)]
pub(super) struct Hooks {
    listeners: Listeners,
    calls: BTreeMap<(u64, Hook), CancellationToken>,
    outcomes: BTreeMap<u64, BTreeMap<u32, Outcome>>,
}

impl Hooks {
    pub(super) fn new(listeners: Listeners) -> Hooks {
        Hooks { listeners, ..Hooks::default() }
    }

    /// An item ended.
    pub(super) fn note(&mut self, round: u64, item: u32, outcome: &Outcome) {
        if self.listeners.iter().next().is_none() {
            return;
        }
        self.outcomes.entry(round).or_default().insert(item, outcome.clone());
        while self.outcomes.len() > KEPT {
            self.outcomes.pop_first();
        }
    }

    /// The work of one call.
    pub(super) fn call(
        &mut self,
        job: std::sync::Arc<str>,
        order: HookOrder,
        grace: Duration,
    ) -> impl Future<Output = Ended> + Send + 'static {
        let HookOrder { hook, round: order } = order;
        let number = order.round;
        let outcomes = match hook {
            Hook::Before | Hook::OnceBefore => BTreeMap::new(),
            Hook::After | Hook::OnceAfter => self.outcomes.get(&number).cloned().unwrap_or_default(),
        };
        let round = Round::new(job, order, outcomes);
        let (listeners, cancel) = (self.listeners.clone(), CancellationToken::new());
        self.calls.insert((number, hook), cancel.clone());
        async move {
            let mut errors = Vec::new();
            for listener in listeners.iter() {
                let call = caught(async { listener.call(hook, &round).await });
                let result = tokio::select! {
                    result = call => result,
                    () = cancelled_for(&cancel, grace) => Err("it was stopped".into()),
                    () = tokio::time::sleep(listener.time_limit()) => Err(too_long(listener.time_limit())),
                };
                errors.extend(result.err().map(|error| with_causes(error.as_ref())));
            }
            let error = (!errors.is_empty()).then(|| errors.join("; "));
            Ended::Hook { round: number, hook, error }
        }
    }

    pub(super) fn ended(&mut self, round: u64, hook: Hook) {
        self.calls.remove(&(round, hook));
    }

    pub(super) fn cancel(&self, round: u64) {
        let of_round = self.calls.range((round, Hook::Before)..=(round, Hook::OnceAfter));
        of_round.for_each(|(_, token)| token.cancel());
    }
}

fn too_long(limit: Duration) -> JobError {
    format!("it took longer than {limit:?}, and was given up").into()
}
