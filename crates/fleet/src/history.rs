//! A log as the simulator's checker reads it: the same sentences that virtual clusters are judged by judge
//! real ones.

use std::collections::BTreeMap;

use elasticjob_core::event::{Event, Outcome};
use elasticjob_core::spec::JobSpec;
use elasticjob_sim::history::{Fact, History, Instance, SessionEnd, UserRun};
use elasticjob_sim::invariant::{self, Violation};
use elasticjob_sim::scenario::{ClockSetup, JobSetup, Ms, Scenario};
use jiff::Timestamp;

use crate::line::{self, Deed, Ended, Line, Start, What};

/// Sentences about what real processes show: starts, ends, tokens, writes, sessions and orders. Not among
/// them are those about transactions, which a process does not tell, and about records, of which the last are
/// lost when it is killed.
pub const JUDGED: [&str; 10] = [
    "complete",
    "unique",
    "fenced",
    "no overlap",
    "covered",
    "on time",
    "recovers",
    "stops",
    "obeys",
    "merge-lawful",
];

/// What the checker must know of a fleet besides its log.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The seed of its faults.
    pub seed: u64,
    /// The jobs, and how their code behaves.
    pub jobs: Vec<JobSetup>,
    /// The session's timeout, in milliseconds.
    pub session_timeout: Ms,
    /// When it began, in milliseconds since 1970.
    pub began: u64,
    /// From when on nothing went wrong any more.
    pub healed: u64,
    /// When it was over; later lines do not count.
    pub ended: u64,
}

/// What is wrong with a log. The times are milliseconds since it began.
pub fn judge(setup: &Setup, lines: &[Line]) -> Vec<Violation> {
    invariant::check_those(&history(setup, lines), |name| JUDGED.contains(&name))
}

/// The log as a history.
pub fn history(setup: &Setup, lines: &[Line]) -> History {
    let mut lines: Vec<&Line> = lines.iter().filter(|it| it.at <= setup.ended).collect();
    lines.sort_by_key(|it| it.at);
    let mut builder = Builder::new(setup, &lines);
    lines.iter().for_each(|line| builder.add(line));
    builder.finish()
}

struct Builder<'a> {
    setup: &'a Setup,
    jobs: BTreeMap<&'a str, usize>,
    processes: BTreeMap<&'a str, usize>,
    instances: BTreeMap<&'a str, Instance>,
    /// The session that each process opened last.
    sessions: BTreeMap<usize, u32>,
    /// How many rounds of each process have begun, by their task ids.
    rounds: BTreeMap<(usize, &'a str), u64>,
    names: BTreeMap<&'a str, usize>,
    configs: BTreeMap<usize, JobSpec>,
    runs: Vec<UserRun>,
    facts: Vec<(Ms, Fact)>,
}

impl<'a> Builder<'a> {
    fn new(setup: &'a Setup, lines: &[&'a Line]) -> Builder<'a> {
        let numbered = |(number, job): (usize, &'a JobSetup)| (job.spec.job_name.as_str(), number);
        let mut builder = Builder {
            setup,
            jobs: setup.jobs.iter().enumerate().map(numbered).collect(),
            processes: BTreeMap::new(),
            instances: BTreeMap::new(),
            sessions: BTreeMap::new(),
            rounds: BTreeMap::new(),
            names: BTreeMap::new(),
            configs: BTreeMap::new(),
            runs: Vec::new(),
            facts: Vec::new(),
        };
        for line in lines {
            let id = match &line.what {
                What::Born { .. } => {
                    let number = builder.processes.len();
                    builder.processes.insert(&line.process, number);
                    continue;
                }
                What::Ready { instance } | What::Start(Start { instance, .. }) => instance,
                What::Record { event: Event::Registered { id }, .. } => id,
                _ => continue,
            };
            builder.meet(&line.process, id);
        }
        builder
    }

    /// An instance is a process in one of its sessions, which are counted as they come up.
    fn meet(&mut self, process: &'a str, id: &'a str) {
        let Some(process) = self.processes.get(process).copied() else { return };
        let session = self.instances.values().filter(|it| it.process == process).count();
        let session = u32::try_from(session).unwrap_or(u32::MAX);
        self.instances.entry(id).or_insert(Instance { process, session });
    }

    fn ms(&self, at: u64) -> Ms {
        at.saturating_sub(self.setup.began)
    }

    fn add(&mut self, line: &'a Line) {
        let at = self.ms(line.at);
        let process = self.processes.get(line.process.as_str()).copied();
        match &line.what {
            What::Born { .. } => self.facts.extend(process.map(|it| (at, Fact::Born(it, 0)))),
            What::Ready { .. } => {}
            What::Start(start) => self.start(at, start),
            What::Told { run } => self.with_run(run, at, |run, at| {
                run.cancelled.get_or_insert(at);
                Fact::Cancelled(run.id)
            }),
            What::Wrote { run, accepted } => self.with_run(run, at, |run, _| Fact::Wrote(run.id, *accepted)),
            What::End { run, outcome } => self.with_run(run, at, |run, at| {
                run.ended = Some((at, outcome_of(*outcome)));
                Fact::Ended(run.id)
            }),
            What::Record { job, event } => self.record(at, process, job, event),
            What::Left => self.facts.extend(process.map(|it| (at, Fact::Left(it)))),
            What::Done(deed) => self.deed(at, deed),
            What::Registry(fact) => self.registry(at, fact),
        }
    }

    fn with_run(&mut self, name: &str, at: Ms, change: impl FnOnce(&mut UserRun, Ms) -> Fact) {
        if let Some(number) = self.names.get(name) {
            let fact = change(&mut self.runs[*number], at);
            self.facts.push((at, fact));
        }
    }

    fn start(&mut self, at: Ms, start: &'a Start) {
        let (Some(instance), Some(job)) =
            (self.instances.get(start.instance.as_str()), self.jobs.get(start.job.as_str()))
        else {
            return;
        };
        let (instance, job) = (*instance, *job);
        let next = self.rounds.keys().filter(|it| it.0 == instance.process).count() as u64 + 1;
        let round = *self.rounds.entry((instance.process, &start.task)).or_insert(next);
        let id = self.runs.len();
        self.names.insert(&start.run, id);
        self.runs.push(UserRun {
            id,
            instance,
            job,
            item: start.item,
            round,
            task_id: start.task.clone(),
            source: start.source.unwrap_or(line::Why::Schedule).into(),
            nominal: start.fire.and_then(timestamp),
            merged: start.merged,
            total: start.total,
            parameter: start.parameter.clone(),
            token: start.token.unwrap_or_default(),
            monitored: self.configs.get(&job).is_none_or(|it| it.monitor_execution),
            clock_off: 0,
            clock_off_for: at,
            started: at,
            cancelled: None,
            ended: None,
            killed: None,
            deaf: self.setup.jobs[job].deaf_percent > 0,
        });
        self.facts.push((at, Fact::Started(id)));
    }

    fn record(&mut self, at: Ms, process: Option<usize>, job: &str, event: &Event) {
        let (Some(process), Some(job)) = (process, self.jobs.get(job).copied()) else { return };
        let session = self.sessions.get(&process).copied().unwrap_or_default();
        let instance = Instance { process, session };
        if let Event::Stopped { reason } = event {
            self.facts.push((at, Fact::Stopped(instance, job, reason.clone())));
        }
        self.facts.push((at, Fact::Recorded(instance, job, event.clone())));
    }

    fn deed(&mut self, at: Ms, deed: &Deed) {
        let number = |who: &String| self.processes.get(who.as_str()).copied();
        let fact = match deed {
            Deed::Began { .. } | Deed::Healed | Deed::Over => None,
            Deed::Fault { fault, on } => Some(Fact::Fault(fault.name(), *on)),
            Deed::Killed { who } => number(who).map(Fact::Died),
            Deed::Leaving { who } => number(who).map(Fact::Leaving),
            Deed::Paused { who } => number(who).map(Fact::Paused),
            Deed::Resumed { who } => number(who).map(Fact::Resumed),
        };
        if let Some(Fact::Died(process)) = fact {
            let open = |it: &&mut UserRun| it.instance.process == process && it.over().is_none();
            self.runs.iter_mut().filter(open).for_each(|it| it.killed = Some(at));
        }
        self.facts.extend(fact.map(|it| (at, it)));
    }

    fn registry(&mut self, at: Ms, fact: &line::Fact) {
        let job = |name: &String| self.jobs.get(name.as_str()).copied();
        let instance = |id: &String| self.instances.get(id.as_str()).copied();
        let fact = match fact {
            line::Fact::Exists { job: name } => job(name).map(|it| Fact::Exists(it, true)),
            line::Fact::Config { job: name, document } => {
                let spec = document.as_deref().and_then(|it| JobSpec::from_yaml(it).ok());
                if let (Some(job), Some(spec)) = (job(name), &spec) {
                    self.configs.insert(job, spec.clone());
                }
                self.jobs.get(name.as_str()).map(|it| Fact::Config(*it, spec.map(Box::new)))
            }
            line::Fact::Opened { instance: id } => instance(id).map(Fact::Opened),
            line::Fact::Closed { instance: id, expired } => {
                let how = if *expired { SessionEnd::Expired } else { SessionEnd::Closed };
                instance(id).map(|it| Fact::Closed(it, how))
            }
            line::Fact::Server { job: name, ip: _, enabled } => {
                job(name).map(|it| Fact::Server(it, 0, *enabled))
            }
            line::Fact::Item { job: name, item, enabled } => {
                job(name).map(|it| Fact::Item(it, *item, *enabled))
            }
            line::Fact::Triggered { job: name, instance: id } => {
                job(name).zip(instance(id)).map(|it| Fact::Triggered(it.0, vec![it.1]))
            }
        };
        if let Some(Fact::Opened(instance)) = fact {
            self.sessions.insert(instance.process, instance.session);
        }
        self.facts.extend(fact.map(|it| (at, it)));
    }

    fn finish(self) -> History {
        let Setup { seed, jobs, session_timeout, began, healed, ended } = self.setup.clone();
        let scenario = Scenario {
            seed,
            base: timestamp(i64::try_from(began).unwrap_or_default()).unwrap_or(Timestamp::UNIX_EPOCH),
            clocks: vec![ClockSetup { offset: 0, drift_ppm: 0 }],
            jobs,
            looks_at_clock: 10_000,
            session_timeout,
            focuses: true,
            // Two busy cores: what takes a millisecond may take many.
            latency: (0, 300),
            // How early a worker asks is its own business.
            lead: 250,
            slack: 800,
            plan: Vec::new(),
            healed_at: healed.saturating_sub(began),
            ends_at: ended.saturating_sub(began),
        };
        History { scenario, runs: self.runs, calls: Vec::new(), facts: self.facts }
    }
}

fn timestamp(ms: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(ms).ok()
}

fn outcome_of(ended: Ended) -> Outcome {
    match ended {
        Ended::Succeeded => Outcome::Succeeded,
        Ended::Failed => Outcome::Failed("it failed".to_owned()),
        Ended::Cancelled => Outcome::Cancelled,
    }
}
