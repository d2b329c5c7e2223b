//! What a seed stands for: a cluster, its jobs, its network, and everything that will go wrong.
//!
//! All of it is decided before the first event, so that a change in the core's behaviour does not change what
//! it is exposed to.

mod planner;

use elasticjob_core::coord::{Deadlines, Hooks};
use elasticjob_core::policy::{CATCH_UP, EVERY, VALID_FROM};
use elasticjob_core::spec::JobSpec;
use jiff::Timestamp;

use crate::rng::Rng;

/// Milliseconds of true time since the simulation began.
pub type Ms = u64;

/// Kinds of faults, and of what operators do, some of them more than once.
const FAULTS: usize = 13;
const OPERATIONS: usize = 22;

/// How long a leader waits for running items before it moves the others.
pub(crate) const PATIENCE: Ms = 10_000;
/// Nothing is asked for earlier than this.
pub(crate) const LEAD_MAX: Ms = 250;

/// The longest that a hook takes.
const CALL_MAX: Ms = 8_000;

/// Everything that a seed decides.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// The time of day at which it begins.
    pub base: Timestamp,
    /// Hosts, each with its clock.
    pub clocks: Vec<ClockSetup>,
    /// The jobs; each process has all of them.
    pub jobs: Vec<JobSetup>,
    /// How often the time of day is looked at, at the least: a clock that was set does not wake anybody.
    pub looks_at_clock: Ms,
    /// How long the registry waits for a silent session.
    pub session_timeout: Ms,
    /// Processes follow only the items that they need.
    pub focuses: bool,
    /// One way through a healthy network takes from this to that.
    pub latency: (Ms, Ms),
    /// So long before a fire its round is asked for.
    pub lead: Ms,
    /// How much later than at once a busy machine does something. In virtual time, not at all.
    pub slack: Ms,
    /// What happens, in the order of time.
    pub plan: Vec<(Ms, Deed)>,
    /// From here on nothing goes wrong any more.
    pub healed_at: Ms,
    /// The end.
    pub ends_at: Ms,
}

/// How a host's clock is wrong from the beginning.
#[derive(Clone, Copy, Debug)]
pub struct ClockSetup {
    /// By so many milliseconds.
    pub offset: i64,
    /// And by so many more in a million.
    pub drift_ppm: i64,
}

/// A job, and how its user code behaves.
#[derive(Clone, Debug)]
pub struct JobSetup {
    /// Its settings.
    pub spec: JobSpec,
    /// The time between two fires; zero if it has no schedule.
    pub period: Ms,
    /// How many of a hundred runs take longer than the period.
    pub long_percent: u64,
    /// How many of a hundred runs end only when they are told to, while things may go wrong.
    pub endless_percent: u64,
    /// How many of a hundred runs do not listen.
    pub deaf_percent: u64,
    /// The hooks around its rounds.
    pub hooks: Hooks,
}

/// Something that happens to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// A process starts on a host where none lives.
    Start(usize),
    /// The process dies at once.
    Crash(usize),
    /// The process dies in the middle of what it does some steps later.
    CrashWithin(usize, u64),
    /// The process is stopped, and goes on as if nothing had been.
    Pause(usize, Ms),
    /// The process leaves, with this grace for what runs.
    Leave(usize, Ms),
    /// Messages of a host do not get through.
    Partition {
        /// The host.
        host: usize,
        /// Those to the registry.
        up: bool,
        /// Those from the registry.
        down: bool,
        /// They arrive late, instead of never.
        hold: bool,
        /// How long.
        lasts: Ms,
    },
    /// What the registry tells a host arrives late by up to so much.
    Lag(usize, Ms, Ms),
    /// So many of a hundred requests of a host get lost.
    LoseRequests(usize, u64, Ms),
    /// So many of a hundred answers to a host get lost.
    LoseAnswers(usize, u64, Ms),
    /// The registry is down for that long; its sessions survive, or not.
    Outage(Ms, bool),
    /// The clock of a host jumps.
    ClockStep(usize, i64),
    /// The clock of a host is put right.
    ClockRight(usize),
    /// An operator's work.
    Operate(usize, Operation),
    /// Something is done to a job just when something else happens to it, and again the next times.
    Ambush(usize, Ambush),
    /// Everything is put right that may have gone wrong.
    Heal,
}

/// What an operator does to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Another number of items.
    Count(u32),
    /// Another schedule, with its period.
    Cron(&'static str),
    /// Another parameter.
    Parameter(u64),
    /// Failover on or off.
    Failover(bool),
    /// Making up for missed fires on or off.
    Misfire(bool),
    /// Monitoring on or off.
    Monitor(bool),
    /// A host may work, or must not.
    Server(usize, bool),
    /// An item may run, or must not.
    Item(u32, bool),
    /// Run now.
    Trigger,
    /// End this job on that host.
    ShutDown(usize),
    /// Remove the job, in so many transactions.
    Remove(usize),
    /// A document that cannot be used.
    Nonsense,
}

/// What is waited for, what is done then, so much later, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambush {
    /// What is waited for.
    pub omen: Omen,
    /// What is done.
    pub blow: Blow,
    /// How much later.
    pub delay: Ms,
    /// How often at most.
    pub times: u32,
}

/// Something that an item goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Omen {
    /// It gets an owner.
    Assigned,
    /// Somebody is about to run it.
    Claimed,
    /// Somebody takes it over from a dead instance.
    TakenOver,
    /// A fire of it was missed, or a request to run it.
    Missed,
    /// The leader says that there will be another assignment.
    Announced,
    /// Somebody calls the hook after a round, and it takes a while.
    Calls,
    /// The same, before one.
    CallsBefore,
}

/// What can be done to an item at that moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// The instance's process dies.
    Crash,
    /// The job is ended on that instance.
    ShutDown,
    /// Nothing is to run any more where that instance is.
    Retire,
    /// The item must not run.
    Disable,
    /// Missed fires are not made up for any more.
    ForgetMisfires,
    /// Run now.
    Trigger,
    /// So many items from now on.
    Count(u32),
    /// All clocks are put right.
    ClocksRight,
    /// Everybody is asked to run, and one of the others is shut down before it can.
    Orphan,
}

const SCHEDULES: [(&str, Ms); 6] = [
    ("0/5 * * * * ?", 5_000),
    ("0/10 * * * * ?", 10_000),
    ("3/15 * * * * ?", 15_000),
    ("0/20 * * * * ?", 20_000),
    ("0/30 * * * * ?", 30_000),
    ("0/10 0-58 * * * ?", 10_000),
];

/// Schedules of a simulation that lasts for hours.
const SLOW_SCHEDULES: [(&str, Ms); 3] =
    [("0 0/10 * * * ?", 600_000), ("0 0/20 * * * ?", 1_200_000), ("0 5/15 * * * ?", 900_000)];

/// Moments shortly before a change of clocks in Vienna or New York, and one without.
const BASES: [&str; 5] = [
    "2026-03-29T00:58:00Z",
    "2026-10-25T00:58:10Z",
    "2026-11-01T05:57:30Z",
    "2026-12-31T23:58:00Z",
    "2026-06-15T12:00:03Z",
];

const ZONES: [Option<&str>; 5] =
    [None, Some("Europe/Vienna"), Some("America/New_York"), Some("GMT+8:00"), Some("GMT")];

impl Scenario {
    /// The scenario of this seed.
    pub fn new(seed: u64) -> Scenario {
        let mut rng = Rng::new(seed);
        let slow = rng.chance(6);
        let hosts = *rng.pick(&[1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 5, 7, 9]);
        let jobs: Vec<JobSetup> =
            (0..*rng.pick(&[1, 1, 1, 2, 3])).map(|number| job(&mut rng, number, slow)).collect();
        // Hours are simulated with sessions that need less attention, or they would be spent on it.
        let session_timeout = *rng.pick(&[4_000, 6_000, 10_000]) * if slow { 5 } else { 1 };
        let latency = *rng.pick(&[(0, 1), (1, 5), (1, 5), (5, 40), (2, 150)]);
        let chaos = if slow { rng.range(1_800_000..=5_400_000) } else { rng.range(40_000..=150_000) };
        let mut scenario = Scenario {
            seed,
            base: rng.pick(&BASES).parse().expect("these are written well"),
            clocks: (0..hosts).map(|_| clock(&mut rng)).collect(),
            jobs,
            looks_at_clock: if slow { 60_000 } else { 10_000 },
            session_timeout,
            focuses: rng.chance(60),
            latency,
            lead: 0,
            slack: 0,
            plan: Vec::new(),
            healed_at: 5_000 + chaos,
            ends_at: 0,
        };
        let focus = rng.chance(35).then(|| (rng.below(FAULTS), rng.below(OPERATIONS)));
        scenario.plan =
            planner::Planner { focus, rng: &mut rng, scenario: &scenario, slow, plan: Vec::new() }.plan();
        scenario.set_trap(slow);
        // Policies may take from the plan; a seed lasts for as long as it did without them.
        scenario.ends_at = scenario.last_moment();
        scenario.draw_policies();
        scenario.set_stage();
        scenario.draw_lead();
        scenario
    }

    /// In some seeds, fires are asked for early. Drawn apart, so that the rest of the seeds is what it was.
    fn draw_lead(&mut self) {
        let mut rng = Rng::new(self.seed ^ 0x6c65_6164);
        if rng.chance(5) {
            self.lead = rng.range(1..=LEAD_MAX);
        }
    }

    /// The end, if everything goes as it does now.
    pub(crate) fn last_moment(&self) -> Ms {
        let period = self.jobs.iter().map(|it| it.period).max().unwrap_or_default();
        // Whoever waits for a hook in vain, after a new assignment perhaps twice, gives up after half a minute.
        let waiting = if self.has_hooks() { 60_000 } else { 0 };
        self.healed_at + 2 * self.settling_time() + self.longest_run() + 4 * period + waiting
    }

    /// A few seeds are about one thing alone, which would hardly ever come about beside all the others. Drawn apart,
    /// so that the rest of the seeds is what it was.
    fn set_trap(&mut self, slow: bool) {
        let mut rng = Rng::new(self.seed ^ 0x7472_6170);
        let kind = rng.below(100);
        let job = rng.below(self.jobs.len());
        if self.jobs[job].period == 0 {
            return;
        }
        let trap: fn(&mut Scenario, usize, &mut Rng) = match kind {
            0..12 if slow => Scenario::clock_leaps,
            _ if slow || self.clocks.len() == 1 => return,
            0..2 => Scenario::heir_is_shut_down,
            2 => Scenario::job_ends_with_its_turn,
            3 => Scenario::items_come_and_go,
            _ => return,
        };
        self.quiet_down();
        trap(self, job, &mut rng);
    }

    /// Nothing but the first starts happens.
    fn quiet_down(&mut self) {
        self.plan.retain(|(at, deed)| match deed {
            Deed::Start(_) => *at <= 20_000,
            Deed::Heal => true,
            _ => false,
        });
    }

    /// Whoever takes an item over is shut down before he can begin it. His process lives on.
    fn heir_is_shut_down(&mut self, job: usize, rng: &mut Rng) {
        (self.jobs[job].spec.failover, self.jobs[job].spec.monitor_execution) = (true, true);
        self.jobs[job].long_percent = 30;
        let delay = rng.range(0..=self.latency.1);
        let ambush = Ambush { omen: Omen::TakenOver, blow: Blow::ShutDown, delay, times: 1 };
        let mut deeds = vec![(12_000, Deed::Ambush(job, ambush))];
        let mut at = 12_000;
        for _ in 0..2 {
            at = next_fire(self, job, at) + rng.range(0..=600);
            deeds.push((at, Deed::Crash(rng.below(self.clocks.len()))));
            at += 2 * self.session_timeout;
        }
        self.add(deeds);
    }

    /// Clocks go hours ahead while items run, and are put right as soon as a fire of then was noted as missed.
    fn clock_leaps(&mut self, job: usize, rng: &mut Rng) {
        (self.jobs[job].spec.misfire, self.jobs[job].spec.monitor_execution) = (true, true);
        let ambush = Ambush { omen: Omen::Missed, blow: Blow::ClocksRight, delay: 0, times: 9 };
        let mut deeds = vec![(12_000, Deed::Ambush(job, ambush))];
        let mut at = 20_000;
        for _ in 0..rng.range(1..=4) {
            at = next_fire(self, job, at) + rng.range(20..=500);
            let host = rng.below(self.clocks.len());
            deeds.push((at, Deed::ClockStep(host, rng.signed(4_000_000..=9_000_000))));
            at += 90_000;
            deeds.push((at, Deed::ClockRight(host)));
        }
        self.add(deeds);
    }

    /// A job whose instances take turns is removed just when the first of them has had its turn.
    fn job_ends_with_its_turn(&mut self, job: usize, rng: &mut Rng) {
        let setup = &mut self.jobs[job];
        (setup.spec.sharding_total_count, setup.spec.monitor_execution) = (1, false);
        setup.spec.job_sharding_strategy_type = Some("SINGLE_SHARDING_BALANCE".to_owned());
        (setup.long_percent, setup.endless_percent) = (0, 0);
        self.latency = (2, 150);
        let mut deeds = Vec::new();
        let mut at = 12_000;
        for _ in 0..4 {
            at = next_fire(self, job, at) + rng.range(20..=1_100);
            deeds.push((at, Deed::Operate(job, Operation::Remove(1))));
            for host in 0..self.clocks.len() {
                let again = at + rng.range(3_000..=5_000);
                deeds.push((again, Deed::Crash(host)));
                deeds.push((again + rng.range(100..=500), Deed::Start(host)));
            }
            at += 8_000;
        }
        self.add(deeds);
    }

    /// Items go and come back faster than mirrors follow, and are asked for meanwhile.
    fn items_come_and_go(&mut self, job: usize, rng: &mut Rng) {
        self.jobs[job].spec.monitor_execution = true;
        (self.focuses, self.latency) = (true, (2, 150));
        let mut deeds = Vec::new();
        let mut at = 12_000;
        for turn in 0..rng.range(6..=14) {
            at += rng.range(30..=900);
            let count = if turn % 2 == 0 { 1 } else { rng.range(5..=8) } as u32;
            deeds.push((at, Deed::Operate(job, Operation::Count(count))));
            deeds.push((at + rng.range(0..=400), Deed::Operate(job, Operation::Trigger)));
        }
        self.add(deeds);
    }

    fn add(&mut self, deeds: Vec<(Ms, Deed)>) {
        let in_time = |it: &(Ms, Deed)| it.0 + 1_000 < self.healed_at;
        self.plan.extend(deeds.into_iter().filter(in_time));
        self.plan.sort_by_key(|it| it.0);
    }

    /// What jobs ask for beyond Java's settings. Drawn apart, so that the rest of a seed is what it was.
    fn draw_policies(&mut self) {
        let mut rng = Rng::new(self.seed ^ 0x706f_6c69_6379);
        let with_hooks = rng.chance(8);
        for job in 0..self.jobs.len() {
            let kind = rng.below(100);
            if with_hooks {
                let seconds = std::time::Duration::from_secs;
                let once = Deadlines { started: seconds(30), completed: seconds(240) };
                let once = Some(once).filter(|_| kind < 85);
                self.jobs[job].hooks = Hooks { each: kind.is_multiple_of(2) || once.is_none(), once };
            } else if kind < 6 {
                self.set_rate(job);
            } else if kind < 12 {
                let from = self.wall(rng.range(10_000..=60_000));
                self.jobs[job].spec.props.insert(VALID_FROM.to_owned(), from.to_string());
            } else if kind < 20 {
                self.catch_up(job);
            }
        }
        if with_hooks {
            // Whoever waits for a hook in vain, after a new assignment perhaps twice, gives up after half a minute.
            self.ends_at += 60_000;
        }
        if with_hooks && rng.chance(20) {
            self.quiet_down();
            self.waiting_are_shut_down(&mut rng);
        }
    }

    /// Those who were asked to run, and wait for the hook before that, are shut down.
    fn waiting_are_shut_down(&mut self, rng: &mut Rng) {
        let job = rng.below(self.jobs.len());
        let mut at = 12_000;
        let mut deeds = Vec::new();
        for _ in 0..2 {
            at = next_fire(self, job, at) + rng.range(1_500..=4_000);
            let (delay, times) = (rng.range(0..=2 * self.latency.1), rng.range(1..=3) as u32);
            let ambush = Ambush { omen: Omen::Claimed, blow: Blow::ShutDown, delay, times };
            deeds.push((at, Deed::Ambush(job, ambush)));
            deeds.push((at + 1, Deed::Operate(job, Operation::Trigger)));
        }
        self.add(deeds);
    }

    /// A settings document that says both is refused, so nobody may write a cron.
    fn set_rate(&mut self, job: usize) {
        let setup = &mut self.jobs[job];
        let cron = |it: &(Ms, Deed)| matches!(it.1, Deed::Operate(j, Operation::Cron(_)) if j == job);
        if setup.spec.cron.is_some() && !self.plan.iter().any(cron) {
            setup.spec.cron = None;
            setup.spec.props.insert(EVERY.to_owned(), format!("{}ms", setup.period));
        }
    }

    /// The same goes for what it needs.
    fn catch_up(&mut self, job: usize) {
        let spec = &mut self.jobs[job].spec;
        let forgets = |it: &(Ms, Deed)| match &it.1 {
            Deed::Operate(j, Operation::Misfire(_) | Operation::Monitor(_)) => *j == job,
            Deed::Ambush(j, ambush) => *j == job && ambush.blow == Blow::ForgetMisfires,
            _ => false,
        };
        if spec.misfire && spec.monitor_execution && !self.plan.iter().any(forgets) {
            spec.props.insert(CATCH_UP.to_owned(), "last".to_owned());
        }
    }

    /// Whether jobs have hooks, which hold up rounds.
    pub fn has_hooks(&self) -> bool {
        self.jobs.iter().any(|it| it.hooks != Hooks::default())
    }

    /// How long after the last disturbance everything is to be as if there had been none.
    pub fn settling_time(&self) -> Ms {
        // The registry must notice a death, the leader waits for what runs, and slow answers make us hesitate
        // for up to ten seconds. Fires that a clock settled ahead of time do not come again.
        self.session_timeout + PATIENCE + self.looks_at_clock + self.furthest_ahead()
    }

    /// How long after it was acknowledged an operator's work must have reached everybody who may still act.
    pub fn news_time(&self) -> Ms {
        self.session_timeout + 4_000
    }

    /// The longest that user code runs once everything is healed.
    pub fn longest_run(&self) -> Ms {
        self.jobs.iter().map(JobSetup::longest_run).max().unwrap_or_default()
    }

    /// How far clocks may be ahead: items whose fires they settled wait for that long. Beyond an hour nobody
    /// believes them, but until the next fire that hour may come near; and where clocks are wrong more than once, one that is
    /// wrong may believe another.
    fn furthest_ahead(&self) -> Ms {
        let steps = || {
            self.plan.iter().filter_map(|(at, deed)| match deed {
                Deed::ClockStep(_, by) => Some((*at, by.unsigned_abs())),
                _ => None,
            })
        };
        let period = self.jobs.iter().map(|it| it.period).max().unwrap_or_default();
        let reach = steps().map(|(at, by)| at + by).max().unwrap_or_default();
        let believed = if steps().count() > 1 { reach.saturating_sub(self.healed_at) } else { 0 };
        steps().map(|it| it.1).sum::<Ms>().min(believed.max(3_600_000) + period)
    }

    /// The time of day, as a clock that is right shows it.
    pub fn wall(&self, at: Ms) -> Timestamp {
        self.base + std::time::Duration::from_millis(at)
    }
}

impl JobSetup {
    /// The longest that this job's code runs once everything is healed.
    pub fn longest_run(&self) -> Ms {
        if self.long_percent == 0 { 900 } else { (self.period * 5 / 2).clamp(900, 40_000) }
    }

    /// How long the calls around a round take at most, all of them: up to eight seconds each.
    pub fn longest_calls(&self) -> Ms {
        2 * CALL_MAX * (Ms::from(self.hooks.each) + Ms::from(self.hooks.once.is_some()))
    }
}

/// A moment far from any change of clocks.
pub(crate) fn calm_day() -> Timestamp {
    BASES[BASES.len() - 1].parse().expect("it is written well")
}

/// The next fire of a job, if clocks are right and nobody changes its schedule.
pub(crate) fn next_fire(scenario: &Scenario, job: usize, at: Ms) -> Ms {
    let period = scenario.jobs[job].period.max(5_000);
    let of_day = scenario.base.as_millisecond().unsigned_abs() + at;
    at + (period - of_day % period)
}

pub(crate) fn clock(rng: &mut Rng) -> ClockSetup {
    ClockSetup { offset: rng.signed(-40..=40), drift_ppm: rng.signed(-300..=300) }
}

fn job(rng: &mut Rng, number: usize, slow: bool) -> JobSetup {
    let count = *rng.pick(&[1, 1, 2, 3, 3, 4, 5, 7, 12]);
    let mut spec = JobSpec::new(format!("job-{number}"), count);
    let (cron, period) = if slow { *rng.pick(&SLOW_SCHEDULES) } else { *rng.pick(&SCHEDULES) };
    let one_off = rng.chance(6);
    spec.cron = (!one_off).then(|| cron.to_owned());
    spec.time_zone = rng.pick(&ZONES).map(str::to_owned);
    spec.failover = rng.chance(45);
    spec.misfire = rng.chance(65);
    spec.monitor_execution = rng.chance(88);
    spec.static_sharding = rng.chance(12);
    spec.overwrite = rng.chance(10);
    spec.max_time_diff_seconds = if rng.chance(15) { 20 } else { -1 };
    spec.reconcile_interval_minutes = *rng.pick(&[0, 1, 10]);
    let strategies = [
        None,
        None,
        Some("AVG_ALLOCATION"),
        Some("ODEVITY"),
        Some("ROUND_ROBIN"),
        Some("SINGLE_SHARDING_BALANCE"),
    ];
    spec.job_sharding_strategy_type = rng.pick(&strategies).map(str::to_owned);
    spec.job_parameter = "p0".to_owned();
    if slow {
        spec.max_time_diff_seconds = -1;
    }
    JobSetup {
        spec,
        period: if one_off { 0 } else { period },
        long_percent: *rng.pick(&[0, 0, 10, 30]),
        endless_percent: *rng.pick(&[0, 0, 3]),
        deaf_percent: *rng.pick(&[0, 20, 60]),
        hooks: Hooks::default(),
    }
}
