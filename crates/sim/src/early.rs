//! Fires that are asked for early, as the library's driver does it, and begin in time.

use std::time::Duration;

use elasticjob_core::coord::{Input, Now, Order};
use elasticjob_core::event::Outcome;
use elasticjob_core::mutants::{Mutant, on};
use jiff::SignedDuration;

use crate::history::{Instance, ProcessId};
use crate::scenario::{LEAD_MAX, Ms};
use crate::world::{Event, World};

/// A round that waits for its fire.
#[derive(Debug)]
pub(crate) struct Early {
    pub(crate) instance: Instance,
    job: usize,
    /// `None` once it has begun, or was given up.
    order: Option<Order>,
    told_to_stop: bool,
}

impl World {
    /// What a coordinator is told the time to be. While something runs it is the real one.
    pub(crate) fn ahead(&self, process: ProcessId, job: usize, now: Now) -> Now {
        let Some(lead) = Some(self.scenario.lead).filter(|it| *it > 0) else { return now };
        let hooks = self.scenario.jobs[job].hooks;
        let coordinator = self.processes[process].jobs[job].coordinator.as_ref();
        let plan = coordinator.and_then(|it| it.plan());
        let compares = plan.is_none_or(|it| it.spec.max_time_diff_seconds >= 0);
        if hooks.each || hooks.once.is_some() || compares || self.is_busy(process, job) {
            return now;
        }
        Now { wall: now.wall + SignedDuration::from_millis(lead.cast_signed()), ..now }
    }

    fn is_busy(&self, process: ProcessId, job: usize) -> bool {
        let runs =
            self.runs.iter().any(|it| it.over().is_none() && (it.instance.process, it.job) == (process, job));
        let waits = |it: &Early| it.order.is_some() && (it.instance.process, it.job) == (process, job);
        runs || self.early.iter().any(waits)
    }

    /// Runs it when its fire has come. One that is far away is that of a clock that was wrong.
    pub(crate) fn run_in_time(&mut self, process: ProcessId, job: usize, order: Order) {
        let clock = self.hosts[self.processes[process].host].clock;
        let wall = clock.read(self.now).wall;
        let left = order.nominal.map_or(0, |it| it.duration_since(wall).as_millis());
        let left = Ms::try_from(left).ok().filter(|it| (1..=LEAD_MAX).contains(it));
        let Some(left) = left.filter(|_| self.scenario.lead > 0 && !on(Mutant::BeginEarly)) else {
            return self.run(process, job, order);
        };
        let instance = self.processes[process].instance();
        self.early.push(Early { instance, job, order: Some(order), told_to_stop: false });
        let wait = clock.true_time(Duration::from_millis(left));
        self.after(wait, Event::Begin(self.early.len() - 1));
    }

    pub(crate) fn begin(&mut self, index: usize) {
        let early = &mut self.early[index];
        let Some(order) = early.order.take() else { return };
        let (instance, job, told_to_stop) = (early.instance, early.job, early.told_to_stop);
        let id = instance.process;
        let granted =
            self.processes[id].instance() == instance && self.mono(id) < self.processes[id].trusted_until;
        if granted && !told_to_stop {
            return self.run(id, job, order);
        }
        self.note(|| format!("{instance:?} job {job}: round {} does not begin", order.round));
        for item in order.items {
            let (round, item, outcome) = (order.round, item.item, Outcome::Cancelled);
            self.feed(id, job, Input::ItemFinished { round, item, outcome, output: None });
        }
    }

    pub(crate) fn cancel_early(&mut self, process: ProcessId, job: usize, round: u64) {
        let told = |it: &Early| {
            let of_round = it.order.as_ref().is_some_and(|it| it.round == round);
            of_round && (it.instance.process, it.job) == (process, job)
        };
        let Some(index) = self.early.iter().position(told) else { return };
        self.early[index].told_to_stop = true;
        self.after(0, Event::Begin(index));
    }
}
