//! User code: runs that take their time, fail, do not listen, and write to a store that checks tokens.

use elasticjob_core::coord::{HookOrder, Input, Order};
use elasticjob_core::event::{Hook, Outcome};

use crate::history::{Fact, HookCall, ProcessId, RunId, UserRun};
use crate::scenario::{Ms, Omen};
use crate::world::{Event, World};

impl World {
    pub(crate) fn run(&mut self, process: ProcessId, job: usize, order: Order) {
        let monitored = self.configs[job].as_ref().is_some_and(|it| it.monitor_execution);
        let clock = self.hosts[self.processes[process].host].clock;
        for item in order.items {
            let id = self.runs.len();
            let deaf = self.rng.chance(self.scenario.jobs[job].deaf_percent);
            self.runs.push(UserRun {
                id,
                instance: self.processes[process].instance(),
                job,
                item: item.item,
                round: order.round,
                task_id: order.task_id.clone(),
                source: order.source,
                nominal: order.nominal,
                merged: order.merged,
                total: order.total,
                parameter: order.job_parameter.clone(),
                token: item.token,
                monitored,
                clock_off: clock.off(),
                clock_off_for: self.now - clock.stepped_at(),
                started: self.now,
                cancelled: None,
                ended: None,
                killed: None,
                deaf,
            });
            self.see(Fact::Started(id));
            self.note(|| {
                format!(
                    "run {id}: item {} round {} {} nominal {:?} merged {} token {}",
                    item.item, order.round, order.source, order.nominal, order.merged, item.token
                )
            });
            self.write(id);
            let (lasts, outcome) = self.behaviour(job);
            self.after(lasts, Event::Return(id, outcome));
        }
    }

    /// A hook: it takes a moment, or longer, and may fail.
    pub(crate) fn call(&mut self, process: ProcessId, job: usize, order: HookOrder) {
        let HookOrder { hook, round } = order;
        let instance = self.processes[process].instance();
        self.note(|| {
            format!("{instance:?} job {job}: {hook} of round {} for {:?}", round.round, round.nominal)
        });
        let (number, nominal) = (round.round, round.nominal);
        let started = self.now;
        let call = HookCall { instance, job, round: number, hook, nominal, started, ended: None };
        self.calls.push(call);
        let lasts = if self.rng.chance(10) { self.rng.range(1_000..=8_000) } else { self.rng.range(1..=200) };
        let error = self.rng.chance(10).then(|| "it went wrong".to_owned());
        self.after(lasts, Event::HookReturn(self.calls.len() - 1, error));
        let omen = match hook {
            Hook::OnceBefore => Some(Omen::CallsBefore),
            Hook::OnceAfter => Some(Omen::Calls),
            Hook::Before | Hook::After => None,
        };
        if let Some(omen) = omen.filter(|_| lasts >= 1_000) {
            let me = self.processes[process].me();
            self.spring(job, 0, omen, &me);
        }
    }

    pub(crate) fn return_from_hook(&mut self, id: usize, error: Option<String>) {
        self.calls[id].ended = Some(self.now);
        let HookCall { instance, job, round, hook, .. } = self.calls[id];
        self.note(|| format!("{instance:?} job {job}: {hook} of round {round} returns"));
        self.feed(instance.process, job, Input::HookFinished { round, hook, error });
    }

    /// How long a run takes, and how it ends.
    fn behaviour(&mut self, job: usize) -> (Ms, Outcome) {
        let setup = &self.scenario.jobs[job];
        let (period, longest) = (setup.period.max(1_000), setup.longest_run());
        let (long, endless) = (setup.long_percent, setup.endless_percent);
        let lasts = if self.now < self.scenario.healed_at && self.rng.chance(endless) {
            // It ends when things are put right, at the latest.
            self.scenario.healed_at - self.now + self.rng.range(0..=3_000)
        } else if self.rng.chance(long) && !self.is_settling() {
            self.rng.range((period * 6 / 5).min(longest)..=longest)
        } else {
            self.rng.range(1..=900.min(period / 2))
        };
        let outcome =
            if self.rng.chance(8) { Outcome::Failed("it went wrong".to_owned()) } else { Outcome::Succeeded };
        (lasts, outcome)
    }

    /// While everything is put right, nothing long begins: each run that must move, and is still on when a
    /// leader loses patience, costs another assignment.
    fn is_settling(&self) -> bool {
        let settled = self.scenario.healed_at + self.scenario.settling_time() + self.scenario.longest_run();
        (self.scenario.healed_at..settled).contains(&self.now)
    }

    pub(crate) fn cancel(&mut self, process: ProcessId, job: usize, round: u64) {
        self.cancel_early(process, job, round);
        let told = |it: &&UserRun| it.instance.process == process && it.job == job && it.round == round;
        let runs: Vec<RunId> =
            self.runs.iter().filter(|it| it.over().is_none()).filter(told).map(|it| it.id).collect();
        for run in runs {
            self.runs[run].cancelled.get_or_insert(self.now);
            self.see(Fact::Cancelled(run));
            if !self.runs[run].deaf {
                let wait = self.rng.range(0..=60);
                self.after(wait, Event::Return(run, Outcome::Cancelled));
            }
        }
    }

    pub(crate) fn return_from(&mut self, id: RunId, outcome: Outcome) {
        if self.runs[id].over().is_some() {
            return;
        }
        self.write(id);
        self.runs[id].ended = Some((self.now, outcome.clone()));
        self.see(Fact::Ended(id));
        let UserRun { instance, job, round, item, .. } = self.runs[id];
        self.feed(instance.process, job, Input::ItemFinished { round, item, outcome, output: None });
    }

    /// An effect of user code on the world outside: a store that refuses a token older than one it has seen.
    fn write(&mut self, id: RunId) {
        let run = &self.runs[id];
        let newest = self.store.entry((run.job, run.item)).or_default();
        let accepted = run.token >= *newest;
        *newest = run.token.max(*newest);
        self.see(Fact::Wrote(id, accepted));
    }
}
