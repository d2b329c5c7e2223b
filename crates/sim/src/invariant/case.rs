//! A history, sorted so that sentences about it are short.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use elasticjob_core::coord::{Slot, Verdict};
use elasticjob_core::event::{Event, Skip, Source};
use elasticjob_core::plan::Plan;
use elasticjob_core::spec::JobSpec;
use elasticjob_core::strategy::Strategies;
use elasticjob_core::timer::Timer;
use elasticjob_cron::Zone;
use jiff::Timestamp;

use crate::history::{Fact, History, Instance, ProcessId, SessionEnd, UserRun};
use crate::scenario::{Deed, Ms};

/// How long before it is done a new assignment may have kept items from starting.
const RESHARDING: Ms = 12_000;

/// A cron expression, and its zone.
type Timing = (Option<String>, Option<String>, BTreeMap<String, String>);

/// A history with its indexes.
pub struct Case<'a> {
    pub(super) history: &'a History,
    /// What happened to the cluster, without the daily work: few of all facts, and looked through often.
    pub(super) turns: Vec<&'a (Ms, Fact)>,
    pub(super) jobs: Vec<JobCase<'a>>,
    /// Stretches in which nothing disturbs, after everything has settled.
    pub(super) calm: Vec<(Ms, Ms)>,
    /// What was done to the cluster, and from when to when.
    disturbed: BTreeSet<(Ms, Ms)>,
    sessions: BTreeMap<Instance, (Ms, SessionEnd)>,
    bad_documents: Vec<(Ms, Ms)>,
    absurd_clocks: Vec<(Ms, Ms)>,
    schedules: RefCell<BTreeMap<Timing, Option<Timer>>>,
}

/// What belongs to one job.
#[derive(Default)]
pub(super) struct JobCase<'a> {
    /// Configurations, each with the time from which it stood.
    pub(super) configs: Vec<(Ms, Option<&'a JobSpec>)>,
    /// All runs, in the order of their beginnings.
    pub(super) runs: Vec<&'a UserRun>,
    /// What was recorded.
    pub(super) events: Vec<(Ms, Instance, &'a Event)>,
    /// When the job's nodes went or came.
    pub(super) existence: Vec<(Ms, bool)>,
    /// When somebody was at removing a job, this one or another.
    removing: Vec<Ms>,
    /// By item: how each of its fires was settled, in the order of time.
    pub(super) settled: BTreeMap<u32, Vec<Settled<'a>>>,
}

/// How a fire ended for an item.
#[derive(Clone, Copy)]
pub(super) struct Settled<'a> {
    pub(super) at: Ms,
    pub(super) nominal: Timestamp,
    pub(super) by: ProcessId,
    pub(super) how: How<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum How<'a> {
    Ran(&'a UserRun),
    Skipped(Skip),
}

impl<'a> Case<'a> {
    /// Sorts a history.
    pub fn new(history: &'a History) -> Case<'a> {
        let mut jobs: Vec<JobCase<'a>> = history.scenario.jobs.iter().map(|_| JobCase::default()).collect();
        let mut sessions = BTreeMap::new();
        let mut bad_documents = Vec::new();
        for run in &history.runs {
            jobs[run.job].runs.push(run);
        }
        for (at, fact) in &history.facts {
            match fact {
                Fact::Config(job, spec) => jobs[*job].configs.push((*at, spec.as_deref())),
                Fact::Exists(job, exists) => jobs[*job].existence.push((*at, *exists)),
                Fact::Recorded(instance, job, event) => jobs[*job].events.push((*at, *instance, event)),
                Fact::Fault("remove", true) => jobs.iter_mut().for_each(|it| it.removing.push(*at)),
                Fact::Fault("bad document", true) => bad_documents.push((*at, Ms::MAX)),
                Fact::Fault("bad document", false) => {
                    if let Some(stood) = bad_documents.iter_mut().find(|it: &&mut (Ms, Ms)| it.1 == Ms::MAX) {
                        stood.1 = *at;
                    }
                }
                Fact::Closed(instance, how) => drop(sessions.insert(*instance, (*at, *how))),
                _ => {}
            }
        }
        jobs.iter_mut().for_each(JobCase::settle);
        let disturbed = disturbed(history);
        Case {
            calm: calm(history, &disturbed),
            turns: history.facts.iter().filter(|it| !is_daily_work(&it.1)).collect(),
            disturbed,
            history,
            jobs,
            sessions,
            bad_documents,
            absurd_clocks: absurd_clocks(history),
            schedules: RefCell::default(),
        }
    }

    /// Nothing was done to the cluster in this stretch.
    pub(super) fn is_undisturbed(&self, from: Ms, until: Ms) -> bool {
        !self.disturbed.iter().any(|it| it.0 <= until && from <= it.1)
    }

    /// The same, but for what does not count.
    pub(super) fn is_left_alone(&self, from: Ms, until: Ms, but_for: impl Fn(&Fact) -> bool) -> bool {
        let mut on = 0_usize;
        for (at, fact) in self.turns.iter().copied().take_while(|it| it.0 <= until) {
            if but_for(fact) {
                continue;
            }
            match fact {
                Fact::Fault(_, true) => on += 1,
                Fact::Fault(_, false) => on = on.saturating_sub(1),
                _ => {}
            }
            if *at >= from && disturbs(fact) {
                return false;
            }
        }
        on == 0
    }

    /// Something was wrong for a while in this stretch: news may have been late.
    pub(super) fn has_faults(&self, from: Ms, until: Ms) -> bool {
        self.disturbed.iter().any(|it| it.0 < it.1 && it.0 <= until && from <= it.1)
    }

    /// When a session ended, by the registry's time.
    pub(super) fn session_end(&self, instance: Instance) -> Option<(Ms, SessionEnd)> {
        self.sessions.get(&instance).copied()
    }

    /// The configurations that somebody who starts something at this time may have gone by.
    pub(super) fn configs_around(&self, job: usize, at: Ms) -> impl Iterator<Item = &'a JobSpec> {
        self.configs_between(job, at, at)
    }

    /// The same, for somebody who decided at some time in between.
    pub(super) fn configs_between(
        &self,
        job: usize,
        from: Ms,
        until: Ms,
    ) -> impl Iterator<Item = &'a JobSpec> {
        self.jobs[job].between(from.saturating_sub(self.history.scenario.news_time()), until)
    }

    /// The job had fewer items for a while, as far as its leader knew: what was known of the item went with it.
    pub(super) fn lost_item_between(&self, job: usize, item: u32, from: Ms, until: Ms) -> bool {
        self.configs_between(job, from, until).any(|it| it.sharding_total_count <= item)
    }

    /// A document that cannot be used stood then. Who had not seen the one before it goes by an older one.
    pub(super) fn in_doubt(&self, at: Ms) -> bool {
        let from = at.saturating_sub(self.history.scenario.news_time());
        self.bad_documents.iter().any(|it| it.0 <= at && from <= it.1)
    }

    /// The job was monitored all around this time.
    pub(super) fn is_monitored(&self, job: usize, at: Ms) -> bool {
        self.is_monitored_between(job, at, at)
    }

    /// The job was monitored all the time, and around it.
    pub(super) fn is_monitored_between(&self, job: usize, from: Ms, until: Ms) -> bool {
        let news = self.history.scenario.news_time();
        let in_doubt = self.in_doubt(from) || self.in_doubt(until);
        !in_doubt
            && self.jobs[job].between(from.saturating_sub(news), until + news).all(|it| it.monitor_execution)
    }

    /// The moment of a fire, in true time.
    pub(super) fn true_time(&self, nominal: Timestamp) -> i64 {
        nominal.as_millisecond() - self.history.scenario.base.as_millisecond()
    }

    /// How much a clock that is right may differ from true time at most.
    pub(super) fn clock_error(&self) -> Ms {
        // Clocks begin wrong by up to 40 ms and then go wrong by up to 300 in a million.
        40 + self.history.scenario.ends_at * 300 / 1_000_000
    }

    /// A clock was wrong at some time.
    pub(super) fn has_wrong_clocks(&self) -> bool {
        self.history.scenario.plan.iter().any(|it| matches!(it.1, Deed::ClockStep(..)))
    }

    /// A clock was wrong by so much that nobody believes the cursors that it wrote, nor it those of others.
    pub(super) fn has_absurd_clocks(&self, from: Ms, until: Ms) -> bool {
        self.absurd_clocks.iter().any(|it| it.0 <= until && from <= it.1)
    }

    /// When a job fires.
    pub(super) fn schedule(&self, spec: &JobSpec) -> Option<Timer> {
        let compile = || Plan::compile(spec.clone(), &Strategies::default(), &Zone::UTC).ok()?.schedule;
        let key = (spec.cron.clone(), spec.time_zone.clone(), spec.props.clone());
        self.schedules.borrow_mut().entry(key).or_insert_with(compile).clone()
    }

    /// The fires of a job in a calm stretch, each with its true time, and what its configuration is.
    pub(super) fn fires(
        &self,
        job: usize,
        (from, until): (Ms, Ms),
    ) -> Option<(&'a JobSpec, Vec<(Ms, Timestamp)>)> {
        let spec = self.jobs[job].config_at(from)?;
        let schedule = self.schedule(spec)?;
        let scenario = &self.history.scenario;
        let fires = schedule.upcoming(scenario.wall(from)).take_while(|it| *it <= scenario.wall(until));
        let with_time = fires.map(|it| (self.true_time(it).unsigned_abs(), it)).take(100_000);
        Some((spec, with_time.collect()))
    }

    /// A round of this job was on, on that process, about then.
    pub(super) fn is_busy(&self, job: usize, process: ProcessId, at: Ms) -> bool {
        self.jobs[job].runs.iter().any(|it| it.instance.process == process && self.is_on(it, at))
    }

    /// The item ran about then, wherever.
    pub(super) fn is_running(&self, job: usize, item: u32, at: Ms) -> bool {
        self.jobs[job].runs.iter().any(|it| it.item == item && self.is_on(it, at))
    }

    /// What ran about then for an earlier session of the process that runs the item now.
    pub(super) fn is_outlived(&self, run: &UserRun, at: Ms) -> bool {
        let earlier = |it: &&UserRun| {
            it.item == run.item && it.instance.process == run.instance.process && it.instance < run.instance
        };
        self.jobs[run.job].runs.iter().copied().filter(earlier).any(|it| self.is_on(it, at))
    }

    fn is_on(&self, run: &UserRun, at: Ms) -> bool {
        let slack = 1_000 + self.clock_error() + 4 * self.history.scenario.latency.1;
        run.started <= at + slack && run.over().is_none_or(|over| over + slack >= at)
    }

    /// An operator's word on an item, that has stood since before `at`, by `margin`, and still does.
    pub(super) fn item_disabled(&self, job: usize, item: u32, at: Ms, margin: Ms) -> Option<bool> {
        let mut word = Some((0, false));
        for (when, fact) in self.turns.iter().take_while(|it| it.0 <= at) {
            match fact {
                Fact::Item(j, i, on) if (*j, *i) == (job, item) => word = Some((*when, !on)),
                // An item that goes loses what was said about it, but not at once.
                Fact::Config(j, Some(spec)) if *j == job && spec.sharding_total_count <= item => word = None,
                Fact::Exists(j, false) if *j == job => word = Some((*when, false)),
                _ => {}
            }
        }
        word.filter(|(when, _)| *when == 0 || when + margin <= at).map(|it| it.1)
    }

    /// Somebody lives who has the job and may work on it.
    pub(super) fn anybody_may_work(&self, job: usize, at: Ms) -> bool {
        let leaves = |process: &ProcessId| {
            self.turns.iter().any(|it| it.0 <= at && matches!(it.1, Fact::Leaving(p) if p == *process))
        };
        !self.able(job, at).iter().all(leaves)
    }

    /// Who lives, has the job and may work on it.
    pub(super) fn able(&self, job: usize, at: Ms) -> BTreeSet<ProcessId> {
        let mut hosts: BTreeMap<ProcessId, usize> = BTreeMap::new();
        let mut disabled: BTreeSet<usize> = BTreeSet::new();
        for (_, fact) in self.turns.iter().take_while(|it| it.0 <= at) {
            match fact {
                Fact::Born(process, host) => drop(hosts.insert(*process, *host)),
                Fact::Died(process) | Fact::Left(process) => drop(hosts.remove(process)),
                Fact::Stopped(instance, j, _) | Fact::ShutDown(j, instance) if *j == job => {
                    hosts.remove(&instance.process);
                }
                Fact::Server(j, host, true) if *j == job => drop(disabled.remove(host)),
                Fact::Server(j, host, false) if *j == job => drop(disabled.insert(*host)),
                Fact::Exists(j, false) if *j == job => disabled.clear(),
                _ => {}
            }
        }
        hosts.into_iter().filter(|it| !disabled.contains(&it.1)).map(|it| it.0).collect()
    }

    /// Hooks hold up the rounds of this job.
    pub(super) fn has_hooks(&self, job: usize) -> bool {
        self.history.scenario.jobs[job].hooks != Default::default()
    }

    /// When a run was decided on: when it started, or, where hooks came in between, when it was claimed.
    pub(super) fn decided_at(&self, run: &UserRun) -> Ms {
        if self.has_hooks(run.job) { self.claimed_at(run) } else { run.started }
    }

    /// When the last claim before the start of a run was sent: for the first time, if nobody knew what had become of it and
    /// it was sent again.
    pub(super) fn claimed_at(&self, run: &UserRun) -> Ms {
        let facts = &self.history.facts; // In the order of time.
        let before = &facts[..facts.partition_point(|it| it.0 <= run.started)];
        let mut claim = None;
        for (at, fact) in before.iter().rev() {
            match fact {
                Fact::Sent(i, j, Slot::Run) if (*i, *j) == (run.instance, run.job) => claim = Some(*at),
                Fact::Settled(i, j, Slot::Run, verdict)
                    if (*i, *j) == (run.instance, run.job)
                        && claim.is_some()
                        && *verdict != Verdict::Unknown =>
                {
                    break;
                }
                Fact::Opened(instance) if *instance == run.instance => break,
                _ => {}
            }
        }
        claim.unwrap_or(run.started)
    }

    /// Since when the instance leads the job, as far as it knows: it was elected, and has not stepped down since.
    pub(super) fn leads_since(&self, job: usize, instance: Instance, at: Ms) -> Option<Ms> {
        let elected =
            |it: &&(Ms, Instance, &Event)| it.0 <= at && it.1 == instance && matches!(it.2, Event::Elected);
        let since = self.jobs[job].events.iter().rev().find(elected)?.0;
        let moved_on = |it: &(Ms, Fact)| {
            matches!(it.1, Fact::Sent(i, j, Slot::Election) if i == instance && j == job) && it.0 >= since
        };
        (!self.history.facts.iter().take_while(|it| it.0 <= at).any(moved_on)).then_some(since)
    }

    /// The recorded skip of an unmonitored job names no items.
    pub(super) fn skips_unnamed(&self, job: usize, nominal: Timestamp) -> bool {
        self.jobs[job].events.iter().any(|(_, _, event)| {
            matches!(event, Event::Skipped { nominal: Some(at), items, .. } if *at == nominal && items.is_empty())
        })
    }
}

impl<'a> JobCase<'a> {
    pub(super) fn config_at(&self, at: Ms) -> Option<&'a JobSpec> {
        self.configs.iter().rev().find(|it| it.0 <= at).and_then(|it| it.1)
    }

    fn between(&self, from: Ms, until: Ms) -> impl Iterator<Item = &'a JobSpec> {
        let first = self.configs.iter().rposition(|it| it.0 <= from).unwrap_or(0);
        let stood: Vec<&'a JobSpec> =
            self.configs[first..].iter().take_while(|it| it.0 <= until).filter_map(|it| it.1).collect();
        stood.into_iter()
    }

    /// The job was removed, wholly or in part, in this stretch.
    pub(super) fn removed_between(&self, from: Ms, until: Ms) -> bool {
        let gone = self.configs.iter().filter(|it| it.1.is_none()).map(|it| it.0);
        let gone = gone.chain(self.existence.iter().filter(|it| !it.1).map(|it| it.0));
        let gone = gone.chain(self.removing.iter().copied());
        gone.into_iter().any(|at| from <= at && at <= until)
    }

    fn settle(&mut self) {
        for run in &self.runs {
            let (Source::Schedule | Source::Misfire, Some(nominal)) = (run.source, run.nominal) else {
                continue;
            };
            let how = Settled { at: run.started, nominal, by: run.instance.process, how: How::Ran(run) };
            self.settled.entry(run.item).or_default().push(how);
        }
        for (at, instance, event) in &self.events {
            let Event::Skipped { nominal: Some(nominal), items, why } = event else { continue };
            for item in items {
                let how =
                    Settled { at: *at, nominal: *nominal, by: instance.process, how: How::Skipped(*why) };
                self.settled.entry(*item).or_default().push(how);
            }
        }
        self.settled.values_mut().for_each(|all| all.sort_by_key(|it| it.at));
    }

    /// How the fire of an item ended: what settled it or a later one first.
    pub(super) fn outcome(&self, item: u32, fire: Timestamp, after: Ms) -> Option<Settled<'a>> {
        self.settled.get(&item)?.iter().find(|it| it.nominal >= fire && it.at >= after).copied()
    }
}

/// Instances take turns, one for each fire.
pub(super) fn takes_turns(spec: &JobSpec) -> bool {
    spec.sharding_total_count == 1
        && spec.job_sharding_strategy_type.as_deref() == Some("SINGLE_SHARDING_BALANCE")
}

fn is_daily_work(fact: &Fact) -> bool {
    match fact {
        Fact::Started(_)
        | Fact::Ended(_)
        | Fact::Cancelled(_)
        | Fact::Wrote(..)
        | Fact::Recorded(..)
        | Fact::Sent(..)
        | Fact::Settled(..)
        | Fact::Resynced(..) => true,
        Fact::Config(..)
        | Fact::Exists(..)
        | Fact::Born(..)
        | Fact::Died(_)
        | Fact::Leaving(_)
        | Fact::Left(_)
        | Fact::Opened(_)
        | Fact::Closed(..)
        | Fact::Server(..)
        | Fact::Item(..)
        | Fact::ShutDown(..)
        | Fact::Stopped(..)
        | Fact::Fault(..)
        | Fact::Paused(_)
        | Fact::Resumed(_)
        | Fact::Triggered(..) => false,
    }
}

/// When clocks were off by nearly an hour or more, which is what they are trusted for.
fn absurd_clocks(history: &History) -> Vec<(Ms, Ms)> {
    let mut since: BTreeMap<usize, (i64, Ms)> = BTreeMap::new();
    let mut absurd = Vec::new();
    for (at, deed) in &history.scenario.plan {
        let hosts: Vec<usize> = match deed {
            Deed::ClockStep(host, _) | Deed::ClockRight(host) => vec![*host],
            Deed::Heal => since.keys().copied().collect(),
            _ => continue,
        };
        for host in hosts {
            let (off, from) = since.remove(&host).unwrap_or((0, *at));
            if off.abs() > 3_000_000 {
                absurd.push((from, *at));
            }
            if let Deed::ClockStep(_, by) = deed {
                since.insert(host, (off + by, *at));
            }
        }
    }
    absurd
}

/// What is done to a cluster, by faults, operators and the coming and going of processes.
fn disturbed(history: &History) -> BTreeSet<(Ms, Ms)> {
    let mut disturbed: BTreeSet<(Ms, Ms)> = BTreeSet::new();
    let mut on: BTreeMap<&str, Vec<Ms>> = BTreeMap::new();
    for (at, fact) in &history.facts {
        match fact {
            Fact::Fault(what, true) => on.entry(what).or_default().push(*at),
            Fact::Fault(what, false) => {
                let began = on.get_mut(what).and_then(Vec::pop).unwrap_or(*at);
                disturbed.insert((began, *at));
            }
            fact if disturbs(fact) => drop(disturbed.insert((*at, *at))),
            _ => {}
        }
    }
    disturbed
}

/// Whether it was done to the cluster, and is not what the cluster does.
fn disturbs(fact: &Fact) -> bool {
    match fact {
        Fact::Fault(..)
        | Fact::Config(..)
        | Fact::Exists(..)
        | Fact::Born(..)
        | Fact::Died(_)
        | Fact::Leaving(_)
        | Fact::Left(_)
        | Fact::Opened(_)
        | Fact::Closed(..)
        | Fact::Server(..)
        | Fact::Item(..)
        | Fact::ShutDown(..)
        | Fact::Stopped(..) => true,
        Fact::Paused(_)
        | Fact::Resumed(_)
        | Fact::Triggered(..)
        | Fact::Started(_)
        | Fact::Ended(_)
        | Fact::Cancelled(_)
        | Fact::Wrote(..)
        | Fact::Recorded(..)
        | Fact::Sent(..)
        | Fact::Settled(..)
        | Fact::Resynced(..) => false,
    }
}

/// Stretches that begin when everything has settled. A new assignment disturbs too: until it is made, nobody
/// begins anything.
fn calm(history: &History, disturbed: &BTreeSet<(Ms, Ms)>) -> Vec<(Ms, Ms)> {
    let settling = history.scenario.settling_time();
    let resharded =
        history.facts.iter().filter(|it| matches!(it.1, Fact::Recorded(_, _, Event::Resharded { .. })));
    let resharded = resharded.map(|it| (it.0.saturating_sub(RESHARDING), it.0));
    let disturbed: BTreeSet<(Ms, Ms)> = disturbed.iter().copied().chain(resharded).collect();
    let mut calm = Vec::new();
    let mut quiet_since = 0;
    for (began, ended) in disturbed {
        if quiet_since + settling < began {
            calm.push((quiet_since + settling, began));
        }
        quiet_since = quiet_since.max(ended);
    }
    if quiet_since + settling < history.scenario.ends_at {
        calm.push((quiet_since + settling, history.scenario.ends_at));
    }
    calm
}
