//! What goes wrong, and when: all of it decided by a seed before anything begins.

use elasticjob_sim::rng::Rng;
use elasticjob_sim::scenario::Ms;

use super::SESSION_TIMEOUT;
use crate::job::FleetJob;
use crate::line::Fault;

/// How long after a storm everything has time to come right and to be seen to work.
const CALM: Ms = 80_000;
/// How long a storm is, about: up to twice that where it is the only one.
const STORM: Ms = 80_000;
/// Until the first storm the fleet assembles.
const START: Ms = 4_000;

/// Everything that a seed decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What is done, in the order of time.
    pub steps: Vec<(Ms, Step)>,
    /// When it is over.
    pub ends_at: Ms,
}

/// Something that is done to the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The process of a worker is killed.
    Kill(usize),
    /// It is asked to leave.
    Leave(usize),
    /// It is started, if none runs.
    Start(usize),
    /// It is stopped in its tracks.
    Pause(usize),
    /// It goes on.
    Resume(usize),
    /// The network of a worker goes bad.
    Disturb(usize, Fault, Disturbance),
    /// It is fair again.
    Calm(usize, Fault),
    /// The connections of a worker break once.
    Break(usize),
    /// A server of the ensemble, or all of them, are killed.
    Down(Fault),
    /// They are started again.
    Up(Fault),
    /// An operator's order.
    Operate(Order),
    /// Everything is put right.
    Heal,
}

/// What a network does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Connections break and are refused.
    Cut,
    /// Connections stay and carry nothing.
    HalfOpen,
    /// Connections carry no answers.
    Deaf,
    /// Connections are late by so many milliseconds.
    Slow(u64),
    /// Nothing, in between.
    Fair,
}

/// What an operator wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// A job may work, or must not.
    Job(String, bool),
    /// An item may run, or must not.
    Item(String, u32, bool),
    /// Another number of items.
    Count(String, u32),
    /// Run now.
    Trigger(String),
}

impl Plan {
    /// The plan of this seed, for so many milliseconds and workers.
    pub fn new(seed: u64, lasts: Ms, workers: usize, jobs: &[FleetJob]) -> Plan {
        let mut planner = Planner {
            rng: Rng::new(seed),
            jobs,
            steps: Vec::new(),
            workers: vec![START; workers],
            servers: START,
            end: 0,
        };
        // As many as make the storms about that long.
        let storms = ((lasts.saturating_sub(START) + (STORM + CALM) / 2) / (STORM + CALM)).max(1);
        let each = (lasts.saturating_sub(START) / storms).saturating_sub(CALM).max(10_000);
        let mut at = START;
        for _ in 0..storms {
            planner.storm(at, at + each);
            planner.steps.push((at + each, Step::Heal));
            at += each + CALM;
        }
        planner.steps.sort_by_key(|it| it.0);
        Plan { steps: planner.steps, ends_at: at }
    }
}

struct Planner<'a> {
    rng: Rng,
    jobs: &'a [FleetJob],
    steps: Vec<(Ms, Step)>,
    /// Until when each worker has enough to suffer.
    workers: Vec<Ms>,
    /// And the ensemble.
    servers: Ms,
    end: Ms,
}

impl Planner<'_> {
    fn storm(&mut self, from: Ms, until: Ms) {
        self.end = until;
        let mut at = from + self.rng.range(0..=2_000);
        while at + 1_000 < until {
            match self.rng.below(100) {
                0..70 => self.hurt_worker(at),
                70..82 => self.hurt_ensemble(at),
                _ => self.order(at),
            }
            at += self.rng.range(200..=4_000);
        }
    }

    /// A step of this storm.
    fn push(&mut self, at: Ms, step: Step) {
        self.steps.push((at.min(self.end - 500), step));
    }

    /// A length of time around those that matter: the session's.
    fn length(&mut self) -> Ms {
        match self.rng.below(3) {
            0 => self.rng.range(100..=SESSION_TIMEOUT / 2),
            1 => self.rng.range(SESSION_TIMEOUT / 2..=SESSION_TIMEOUT * 3 / 2),
            _ => self.rng.range(SESSION_TIMEOUT..=SESSION_TIMEOUT * 3),
        }
    }

    fn hurt_worker(&mut self, at: Ms) {
        let (kind, lasts, chosen) = (self.rng.below(15), self.length(), self.rng.below(self.workers.len()));
        let count = self.workers.len();
        let free = (0..count).map(|it| (chosen + it) % count).find(|it| self.workers[*it] <= at);
        let Some(worker) = free else { return };
        self.workers[worker] = at + lasts + 500;
        match kind {
            0..4 => {
                self.push(at, Step::Kill(worker));
                self.push(at + lasts, Step::Start(worker));
            }
            4..8 => {
                self.push(at, Step::Pause(worker));
                self.push(at + lasts, Step::Resume(worker));
            }
            8 => {
                self.push(at, Step::Leave(worker));
                self.push(at + lasts, Step::Start(worker));
            }
            9 => self.flap(at, worker, lasts),
            kind => {
                let slow = Disturbance::Slow(self.rng.range(50..=700));
                let (fault, disturbance) = match kind {
                    10 | 11 => (Fault::Cut, Disturbance::Cut),
                    12 => (Fault::HalfOpen, Disturbance::HalfOpen),
                    13 => (Fault::Deaf, Disturbance::Deaf),
                    _ => (Fault::Slow, slow),
                };
                self.push(at, Step::Disturb(worker, fault, disturbance));
                self.push(at + lasts, Step::Calm(worker, fault));
            }
        }
    }

    fn flap(&mut self, at: Ms, worker: usize, lasts: Ms) {
        self.push(at, Step::Disturb(worker, Fault::Flap, Disturbance::Fair));
        let mut next = at;
        while next < at + lasts {
            self.push(next, Step::Break(worker));
            next += self.rng.range(20..=1_500);
        }
        self.push(at + lasts, Step::Calm(worker, Fault::Flap));
    }

    fn hurt_ensemble(&mut self, at: Ms) {
        let fault = *self.rng.pick(&[Fault::Member, Fault::Leader, Fault::Leader, Fault::Ensemble]);
        let lasts = self.length();
        if self.servers > at {
            return;
        }
        // A server takes its time to start.
        self.servers = at + lasts + 6_000;
        self.push(at, Step::Down(fault));
        self.push(at + lasts, Step::Up(fault));
    }

    fn order(&mut self, at: Ms) {
        let job = &self.jobs[self.rng.below(self.jobs.len())];
        // What is forbidden stays so for long enough that everybody has heard of it and a fire has passed.
        let (name, lasts) = (job.name.clone(), self.rng.range(SESSION_TIMEOUT..=SESSION_TIMEOUT * 5));
        let item = self.rng.below(job.count as usize) as u32;
        match self.rng.below(6) {
            0 => {
                self.push(at, Step::Operate(Order::Job(name.clone(), false)));
                self.push(at + lasts, Step::Operate(Order::Job(name, true)));
            }
            1 => {
                self.push(at, Step::Operate(Order::Item(name.clone(), item, false)));
                self.push(at + lasts, Step::Operate(Order::Item(name, item, true)));
            }
            2 | 3 => {
                let count = self.rng.range(1..=8) as u32;
                self.push(at, Step::Operate(Order::Count(name, count)));
            }
            _ => self.push(at, Step::Operate(Order::Trigger(name))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::jobs;

    #[test]
    fn a_seed_decides_all_and_every_storm_is_followed_by_a_calm() {
        let plan = |seed| Plan::new(seed, 600_000, 5, &jobs());
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
        let mut kinds = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let plan = plan(seed);
            assert!(plan.steps.is_sorted_by_key(|it| it.0));
            let heals: Vec<Ms> = plan.steps.iter().filter(|it| it.1 == Step::Heal).map(|it| it.0).collect();
            assert_eq!(heals.len(), 4, "{heals:?}");
            for heal in heals {
                let after = plan.steps.iter().find(|it| it.0 > heal).map_or(plan.ends_at, |it| it.0);
                assert!(after >= heal + CALM, "{heal} {after}");
            }
            kinds.extend(plan.steps.iter().filter_map(|it| match it.1 {
                Step::Kill(_) => Some(Fault::Crash),
                Step::Pause(_) => Some(Fault::Pause),
                Step::Disturb(_, fault, _) | Step::Down(fault) => Some(fault),
                _ => None,
            }));
        }
        assert_eq!(kinds.len(), 10, "all of them occur: {kinds:?}");
    }
}
