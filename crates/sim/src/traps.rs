//! Traps with a stage of their own: seeds about one moment alone that takes a cluster of a certain kind. One
//! seed in a hundred for each, drawn apart, so that the rest of the seeds is what it was.

use std::time::Duration;

use elasticjob_core::coord::{Deadlines, Hooks};
use elasticjob_core::spec::JobSpec;

use crate::rng::Rng;
use crate::scenario::{
    Ambush, Blow, Deed, JobSetup, Ms, Omen, Operation, PATIENCE, Scenario, calm_day, clock, next_fire,
};

impl Scenario {
    /// A few seeds are about a cluster made for one moment, and nothing else happens in it.
    pub(crate) fn set_stage(&mut self) {
        let mut rng = Rng::new(self.seed ^ 0x73_7461_6765);
        let trap: fn(&mut Scenario, &mut Rng) = match rng.below(100) {
            0 => Scenario::skipped_without_a_cursor,
            1 => Scenario::fires_while_rounds_begin,
            2 => Scenario::count_changes_after_a_wait,
            3 => Scenario::caller_is_shut_down,
            4 => Scenario::asked_again_before_the_answer,
            5 => Scenario::waits_under_another_name,
            6 => Scenario::something_ends_during_a_call,
            7 => Scenario::callers_before_are_shut_down,
            8 => Scenario::something_ends_during_a_wait,
            9 => Scenario::items_of_callers_are_moved,
            10 => Scenario::fires_wait_behind_a_request,
            11 => Scenario::callers_take_over,
            _ => return,
        };
        trap(self, &mut rng);
        self.plan.push((self.healed_at, Deed::Heal));
        self.plan.sort_by_key(|it| it.0);
        self.ends_at = self.last_moment();
    }

    /// One monitored job that makes up for what it missed, on that many hosts. The late ones, which are the
    /// last, are to be started.
    fn stage(&mut self, rng: &mut Rng, hosts: usize, late: usize, items: u32, cron: (&str, Ms)) {
        let mut spec = JobSpec::new("job-0", items);
        spec.cron = Some(cron.0.to_owned());
        (spec.misfire, spec.monitor_execution, spec.failover) = (true, true, rng.chance(50));
        spec.max_time_diff_seconds = -1;
        spec.reconcile_interval_minutes = 10;
        let (period, hooks) = (cron.1, Hooks::default());
        let (long_percent, endless_percent, deaf_percent) = (0, 0, 20);
        self.jobs = vec![JobSetup { spec, period, long_percent, endless_percent, deaf_percent, hooks }];
        self.base = calm_day();
        self.clocks = (0..hosts).map(|_| clock(rng)).collect();
        self.session_timeout = 4_000;
        self.looks_at_clock = 10_000;
        self.latency = *rng.pick(&[(0, 1), (1, 5), (5, 40)]);
        self.healed_at = 90_000;
        self.plan = (0..hosts - late).map(|host| (rng.range(0..=2_000), Deed::Start(host))).collect();
    }

    fn call_once(&mut self) {
        let seconds = Duration::from_secs;
        let once = Some(Deadlines { started: seconds(30), completed: seconds(240) });
        self.jobs[0].hooks = Hooks { each: false, once };
    }

    fn then(&mut self, at: Ms, operation: Operation) {
        self.plan.push((at, Deed::Operate(0, operation)));
    }

    fn lie_in_wait(&mut self, at: Ms, omen: Omen, blow: Blow, delay: Ms) {
        self.plan.push((at, Deed::Ambush(0, Ambush { omen, blow, delay, times: 1 })));
    }

    /// Items are disabled while monitoring begins, and enabled again while others run. The next fire is
    /// skipped for them, while somebody waits to get them.
    fn skipped_without_a_cursor(&mut self, rng: &mut Rng) {
        self.stage(rng, 3, 1, 6, ("0/20 * * * * ?", 20_000));
        (self.jobs[0].spec.misfire, self.jobs[0].spec.monitor_execution) = (false, false);
        self.jobs[0].long_percent = 60;
        let first = next_fire(self, 0, 9_000);
        for _ in 0..3 {
            let item = rng.below(6) as u32;
            self.then(first - 6_000, Operation::Item(item, false));
            self.then(first + rng.range(500..=4_000), Operation::Item(item, true));
        }
        self.then(first - 4_000, Operation::Monitor(true));
        self.plan.push((first + 20_000 - rng.range(1_000..=5_000), Deed::Start(2)));
    }

    /// Without monitoring a round begins at once, but for one that makes up for a missed fire: it takes the
    /// mark away first, and the next fire comes meanwhile.
    fn fires_while_rounds_begin(&mut self, rng: &mut Rng) {
        self.stage(rng, 5, 0, 5, ("0/5 * * * * ?", 5_000));
        (self.jobs[0].spec.monitor_execution, self.jobs[0].long_percent) = (false, 50);
        self.latency = (40, 100);
        self.healed_at = 150_000;
    }

    /// A leader waits for an item that must go, loses patience, and is told that others must go, too, as it
    /// begins to move what is left.
    fn count_changes_after_a_wait(&mut self, rng: &mut Rng) {
        self.stage(rng, 3, 0, 8, ("0/20 * * * * ?", 20_000));
        self.jobs[0].long_percent = 60;
        self.latency = (2, 150);
        let fewer = next_fire(self, 0, 9_000) + rng.range(1_000..=4_000);
        let (count, delay) = (rng.range(1..=4) as u32, PATIENCE + rng.range(0..=250));
        self.lie_in_wait(fewer, Omen::Announced, Blow::Count(count), delay);
        self.then(fewer, Operation::Count(7));
    }

    /// Who calls the hook after a round is shut down. Its process lives on.
    fn caller_is_shut_down(&mut self, rng: &mut Rng) {
        self.stage(rng, 3, 0, 6, ("0/5 * * * * ?", 5_000));
        self.call_once();
        self.lie_in_wait(12_000, Omen::Calls, Blow::ShutDown, rng.range(0..=300));
    }

    /// All are asked to run, do not hear the answers to their claims, and are asked again.
    fn asked_again_before_the_answer(&mut self, rng: &mut Rng) {
        self.stage(rng, 2, 0, 4, ("0/20 * * * * ?", 20_000));
        let mut at = 20_000;
        for _ in 0..3 {
            at = next_fire(self, 0, at) + rng.range(3_000..=8_000);
            for host in 0..2 {
                self.plan.push((at, Deed::LoseAnswers(host, 100, rng.range(400..=900))));
            }
            self.lie_in_wait(at, Omen::Claimed, Blow::Trigger, rng.range(100..=1_200));
            self.then(at + 5, Operation::Trigger);
        }
    }

    /// Who is asked to run while it waits for its first items loses its session, and waits on in another.
    fn waits_under_another_name(&mut self, rng: &mut Rng) {
        self.stage(rng, 4, 2, 8, ("0/20 * * * * ?", 20_000));
        self.jobs[0].long_percent = 50;
        let joins = next_fire(self, 0, 9_000) + rng.range(500..=2_000);
        self.plan.extend([(joins, Deed::Start(2)), (joins + 20, Deed::Start(3))]);
        let asked = joins + rng.range(400..=900);
        self.then(asked, Operation::Trigger);
        let (host, up, down, hold, lasts) = (2, true, true, false, rng.range(3_000..=4_200));
        self.plan.push((asked + rng.range(50..=200), Deed::Partition { host, up, down, hold, lasts }));
    }

    /// While one calls the hook after a round, a request to another, who is shut down, comes to it with the
    /// items.
    fn something_ends_during_a_call(&mut self, rng: &mut Rng) {
        self.stage(rng, 3, 0, 6, ("0/10 * * * * ?", 10_000));
        self.call_once();
        self.lie_in_wait(12_000, Omen::Calls, Blow::Orphan, rng.range(0..=300));
        self.healed_at = 120_000;
    }

    /// Where instances take turns, those who call the hook before a round are shut down, again and again. The next
    /// registers just as they take back what they registered.
    fn callers_before_are_shut_down(&mut self, rng: &mut Rng) {
        self.stage(rng, 5, 0, 1, ("0/5 * * * * ?", 5_000));
        self.call_once();
        self.jobs[0].spec.job_sharding_strategy_type = Some("SINGLE_SHARDING_BALANCE".to_owned());
        self.latency = (2, 150);
        self.healed_at = 150_000;
        for at in (12_000..self.healed_at - 20_000).step_by(20_000) {
            self.lie_in_wait(at, Omen::CallsBefore, Blow::ShutDown, rng.range(0..=300));
        }
    }

    /// While some wait for the end of a round, a request to one who is shut down comes to them with its items.
    fn something_ends_during_a_wait(&mut self, rng: &mut Rng) {
        self.stage(rng, 4, 0, 8, ("0/20 * * * * ?", 20_000));
        self.call_once();
        self.jobs[0].long_percent = 25;
        let at = next_fire(self, 0, 9_000) + rng.range(1_500..=6_000);
        self.then(at, Operation::Trigger);
        self.then(at, Operation::ShutDown(rng.below(4)));
    }

    /// While one calls the hook after a round it loses its items to others, of whom one was not in that round: that one
    /// runs the next.
    fn items_of_callers_are_moved(&mut self, rng: &mut Rng) {
        self.stage(rng, 3, 0, 2, ("0/5 * * * * ?", 5_000));
        self.call_once();
        self.healed_at = 150_000;
        for at in (12_000..self.healed_at - 20_000).step_by(15_000) {
            self.lie_in_wait(at, Omen::Calls, Blow::Retire, rng.range(0..=300));
            (0..3).for_each(|host| self.then(at, Operation::Server(host, true)));
        }
    }

    /// A leader dies as it is about to hand out items. Who is asked to run then waits for the next leader, and the next
    /// fire behind that. Without monitoring nobody else knows of the fires that come while the request is answered.
    fn fires_wait_behind_a_request(&mut self, rng: &mut Rng) {
        self.stage(rng, 2, 0, 3, ("0/30 * * * * ?", 30_000));
        (self.jobs[0].spec.monitor_execution, self.jobs[0].long_percent) = (false, 60);
        let fire = next_fire(self, 0, 9_000);
        self.lie_in_wait(fire - 3_000, Omen::Announced, Blow::Crash, 0);
        self.then(fire - 2_000, Operation::Count(7));
        self.then(fire - 1_500, Operation::Trigger);
        self.then(fire - 1_000, Operation::Cron("0/5 * * * * ?"));
        self.healed_at = fire + rng.range(5_000..=8_000);
    }

    /// While one calls the hook after a round, a newcomer begins the next and is shut down. What it began is taken over, and
    /// ends, before that call returns.
    fn callers_take_over(&mut self, rng: &mut Rng) {
        self.stage(rng, 4, 1, 4, ("0/5 * * * * ?", 5_000));
        self.call_once();
        self.jobs[0].spec.failover = true;
        self.healed_at = 170_000;
        for at in (12_000..self.healed_at - 20_000).step_by(15_000) {
            let fire = next_fire(self, 0, at);
            self.plan.push((fire + rng.range(500..=1_500), Deed::Start(3)));
            self.then(fire + 5_000 + rng.range(20..=500), Operation::ShutDown(3));
            self.plan.push((fire + 8_000, Deed::Crash(3)));
        }
    }
}
