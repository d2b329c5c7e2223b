//! What goes wrong, and what operators do, in the order of time.

use super::{Ambush, Blow, Deed, FAULTS, Ms, OPERATIONS, Omen, Operation, SCHEDULES, Scenario, next_fire};
use crate::rng::Rng;

/// Thinks up what goes wrong.
pub(super) struct Planner<'a> {
    /// Kinds of faults and of operations that this seed prefers, to have them meet more often.
    pub(super) focus: Option<(usize, usize)>,
    pub(super) rng: &'a mut Rng,
    pub(super) scenario: &'a Scenario,
    pub(super) slow: bool,
    pub(super) plan: Vec<(Ms, Deed)>,
}

impl Planner<'_> {
    pub(super) fn plan(mut self) -> Vec<(Ms, Deed)> {
        let hosts = self.scenario.clocks.len();
        for host in 0..hosts {
            let at = if self.rng.chance(70) { self.rng.range(0..=3_000) } else { self.rng.range(0..=20_000) };
            self.plan.push((at, Deed::Start(host)));
        }
        // Some clusters are hardly disturbed at all, others all the time.
        let deeds = *self.rng.pick(&[0, 1, 2, 3, 5, 8, 13, 20]);
        for _ in 0..deeds {
            let at = self.rng.range(1_000..=self.scenario.healed_at - 2_000);
            if self.rng.chance(55) { self.fault(at) } else { self.operation(at) }
        }
        if self.rng.chance(20) {
            self.storm();
        }
        if self.rng.chance(25) {
            self.ambush();
        }
        self.plan.push((self.scenario.healed_at, Deed::Heal));
        self.plan.sort_by_key(|it| it.0);
        self.plan
    }

    /// Several things of a kind, each just when a round begins: what is under way then must not go astray.
    fn storm(&mut self) {
        let job = self.rng.below(self.scenario.jobs.len());
        let kind = self.rng.below(4);
        let slack = 6 * self.scenario.latency.1 + 20;
        let mut at = self.rng.range(8_000..=self.scenario.healed_at / 2);
        for turn in 0..self.rng.range(2..=7) {
            at = self.next_fire(job, at) + self.rng.range(0..=slack);
            let host = self.host();
            let operation = match kind {
                0 => Operation::Count(if turn % 2 == 0 {
                    self.rng.range(1..=2)
                } else {
                    self.rng.range(5..=10)
                } as u32),
                1 => Operation::Misfire(turn % 2 == 1),
                2 if turn % 2 == 0 => {
                    self.plan.push((at, Deed::Crash(host)));
                    self.plan.push((at + self.rng.range(500..=9_000), Deed::Start(host)));
                    continue;
                }
                2 => Operation::ShutDown(host),
                _ => Operation::Trigger,
            };
            if kind == 2 {
                at += self.scenario.session_timeout;
            }
            if kind == 3 {
                self.plan.push((
                    at + self.rng.range(0..=slack),
                    Deed::Operate(job, Operation::Count(self.rng.range(1..=3) as u32)),
                ));
            }
            self.plan.push((at, Deed::Operate(job, operation)));
            at += self.rng.range(500..=12_000);
        }
        self.plan.retain(|(time, _)| *time + 1_000 < self.scenario.healed_at);
    }

    /// Blows that fall just when something is under way, which chance alone would seldom bring about. What they
    /// wait for is helped along.
    fn ambush(&mut self) {
        let job = self.rng.below(self.scenario.jobs.len());
        let omen = *self.rng.pick(&[Omen::Assigned, Omen::Claimed, Omen::TakenOver, Omen::Missed]);
        let count = self.rng.range(1..=6) as u32;
        let blows = [
            Blow::Crash,
            Blow::ShutDown,
            Blow::Disable,
            Blow::ForgetMisfires,
            Blow::Trigger,
            Blow::Count(count),
        ];
        let delay = self.rng.range(0..=4 * self.scenario.latency.1);
        let ambush =
            Ambush { omen, blow: *self.rng.pick(&blows), delay, times: self.rng.range(1..=4) as u32 };
        self.plan.push((self.rng.range(3_000..=10_000), Deed::Ambush(job, ambush)));
        let mut at = 10_000;
        for _ in 0..self.rng.range(2..=5) {
            at = self.next_fire(job, at) + self.rng.range(0..=1_000);
            let host = self.host();
            if self.rng.chance(60) {
                self.plan.push((at, Deed::Operate(job, Operation::Trigger)));
            }
            let soon = at + self.rng.range(0..=6 * self.scenario.latency.1);
            self.crash(soon, host, Deed::Crash(host));
            at += self.rng.range(2_000..=20_000);
        }
        self.plan.retain(|(time, _)| *time + 1_000 < self.scenario.healed_at);
    }

    fn next_fire(&self, job: usize, at: Ms) -> Ms {
        next_fire(self.scenario, job, at)
    }

    fn host(&mut self) -> usize {
        self.rng.below(self.scenario.clocks.len())
    }

    /// A length of time around those that matter: the session's.
    fn length(&mut self) -> Ms {
        let timeout = self.scenario.session_timeout;
        match self.rng.below(3) {
            0 => self.rng.range(100..=timeout / 2),
            1 => self.rng.range(timeout / 2..=timeout * 3 / 2),
            _ => self.rng.range(timeout..=timeout * 4),
        }
    }

    fn fault(&mut self, at: Ms) {
        let host = self.host();
        let lasts = self.length();
        let kind = self.rng.below(FAULTS);
        let kind = self.focus.filter(|_| self.rng.chance(70)).map_or(kind, |it| it.0);
        let deed = match kind {
            0 => return self.crash(at, host, Deed::Crash(host)),
            1 | 2 => {
                let steps = self.rng.range(1..=60);
                return self.crash(at, host, Deed::CrashWithin(host, steps));
            }
            3 => Deed::Pause(host, lasts),
            4 => {
                let grace = self.rng.range(0..=8_000);
                return self.crash(at, host, Deed::Leave(host, grace));
            }
            5 => return self.deploy(at),
            6 => return self.partition(at, host, lasts),
            7 => return self.flap(at, host),
            8 => Deed::Lag(host, self.rng.range(100..=3_000), lasts),
            9 => Deed::LoseRequests(host, self.rng.range(5..=50), lasts),
            10 => Deed::LoseAnswers(host, self.rng.range(5..=50), lasts),
            11 => Deed::Outage(lasts, self.rng.chance(30)),
            _ => return self.clock(at, host),
        };
        self.plan.push((at, deed));
    }

    /// A host whose process goes usually gets another.
    fn crash(&mut self, at: Ms, host: usize, deed: Deed) {
        self.plan.push((at, deed));
        if self.rng.chance(70) {
            let back = at + self.rng.range(200..=25_000);
            self.plan.push((back.min(self.scenario.healed_at - 1_000), Deed::Start(host)));
        }
    }

    fn deploy(&mut self, at: Ms) {
        let mut at = at;
        for host in 0..self.scenario.clocks.len() {
            let grace = self.rng.range(0..=3_000);
            self.plan.push((at, Deed::Leave(host, grace)));
            at += self.rng.range(3_500..=6_000);
            self.plan.push((at.min(self.scenario.healed_at - 1_000), Deed::Start(host)));
            at += self.rng.range(0..=2_000);
        }
        self.plan.retain(|(time, _)| *time < self.scenario.healed_at);
    }

    fn partition(&mut self, at: Ms, host: usize, lasts: Ms) {
        let (up, down) = *self.rng.pick(&[(true, true), (true, true), (true, false), (false, true)]);
        let hold = self.rng.chance(50);
        self.plan.push((at, Deed::Partition { host, up, down, hold, lasts }));
        // Often it is a whole side of the network.
        if self.rng.chance(40) {
            let other = self.host();
            self.plan.push((at, Deed::Partition { host: other, up, down, hold, lasts }));
        }
    }

    fn flap(&mut self, at: Ms, host: usize) {
        let mut at = at;
        for _ in 0..self.rng.range(2..=6) {
            let lasts = self.rng.range(300..=self.scenario.session_timeout);
            let hold = self.rng.chance(50);
            self.plan.push((at, Deed::Partition { host, up: true, down: true, hold, lasts }));
            at += lasts + self.rng.range(100..=3_000);
        }
        self.plan.retain(|(time, _)| *time < self.scenario.healed_at);
    }

    fn clock(&mut self, at: Ms, host: usize) {
        let by = match self.rng.below(4) {
            0 => self.rng.signed(-3_000..=3_000),
            1 | 2 => self.rng.signed(-50_000..=50_000),
            _ if self.slow => self.rng.signed(-9_000_000..=9_000_000),
            _ => self.rng.signed(-90_000..=90_000),
        };
        self.plan.push((at, Deed::ClockStep(host, by)));
        if self.rng.chance(60) {
            let right = at + self.rng.range(500..=60_000);
            self.plan.push((right.min(self.scenario.healed_at - 1_000), Deed::ClockRight(host)));
        }
    }

    fn operation(&mut self, at: Ms) {
        let job = self.rng.below(self.scenario.jobs.len());
        let total = self.scenario.jobs[job].spec.sharding_total_count;
        let host = self.host();
        let kind = self.rng.below(OPERATIONS);
        let kind = self.focus.filter(|_| self.rng.chance(70)).map_or(kind, |it| it.1);
        let operation = match kind {
            0..=3 => Operation::Count(self.rng.range(1..=10) as u32),
            4 | 5 if self.scenario.jobs[job].period > 0 && !self.slow => {
                Operation::Cron(self.rng.pick(&SCHEDULES).0)
            }
            6 => Operation::Parameter(self.rng.range(1..=9)),
            7 => Operation::Failover(self.rng.chance(50)),
            8 => Operation::Misfire(self.rng.chance(50)),
            9 => Operation::Monitor(self.rng.chance(60)),
            10 | 11 => Operation::Server(host, false),
            12 => Operation::Server(host, true),
            13 => Operation::Item(self.rng.below(total as usize) as u32, false),
            14 => Operation::Item(self.rng.below(total as usize) as u32, true),
            15..=17 => Operation::Trigger,
            18 => Operation::ShutDown(host),
            19 => return self.remove(at, job),
            20 => Operation::Nonsense,
            _ => Operation::Trigger,
        };
        self.plan.push((at, Deed::Operate(job, operation)));
    }

    /// A removed job comes back with the next processes that have it.
    fn remove(&mut self, at: Ms, job: usize) {
        let steps = self.rng.range(1..=3) as usize;
        self.plan.push((at, Deed::Operate(job, Operation::Remove(steps))));
        let again = at + self.rng.range(500..=20_000);
        for host in 0..self.scenario.clocks.len() {
            let at = again + self.rng.range(0..=5_000);
            self.plan.push((at, Deed::Crash(host)));
            self.plan.push((at + self.rng.range(100..=4_000), Deed::Start(host)));
        }
        self.plan.retain(|(time, _)| *time < self.scenario.healed_at);
    }
}
