//! The world of one seed: true time, and a queue of what happens next.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use elasticjob_core::coord::Slot;
use elasticjob_core::event::Outcome;
use elasticjob_core::node::Node;
use elasticjob_core::spec::JobSpec;
use elasticjob_core::tree::{Change, SessionId};

use crate::clock::Clock;
use crate::early::Early;
use crate::history::{Fact, History, HookCall, Instance, ProcessId, RunId, UserRun};
use crate::process::{Host, Process, State, Timer, Way};
use crate::registry::{Conn, ConnId, Registry, Request, job_of, root};
use crate::rng::Rng;
use crate::scenario::{Ambush, Blow, Ms, Omen, Scenario};

/// Something that is going to happen.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A request reaches the registry.
    Arrive { conn: ConnId, sent: std::time::Duration, request: Request },
    /// Messages reach a process.
    Deliver(ConnId),
    /// A process notices that its connection is broken.
    Reset(ConnId),
    /// A process has waited long enough.
    Timer(ProcessId, Timer),
    /// User code returns.
    Return(RunId, Outcome),
    /// A round that was asked for early begins: it is time.
    Begin(usize),
    /// A hook returns.
    HookReturn(usize, Option<String>),
    /// The registry looks whether a session is silent for too long.
    Expire(SessionId),
    /// Something of the plan.
    Deed(usize),
    /// A fault is over.
    Recover(u64),
    /// What lay in wait for something strikes.
    Strike { job: usize, item: u32, instance: Option<Instance>, blow: Blow },
    /// An operator goes on removing a job.
    Remove(usize, usize),
    /// An operator puts a configuration back.
    PutBack(usize, String),
    /// A host whose process was ended for it gets another.
    Restart(usize),
}

struct Scheduled {
    at: Ms,
    sequence: u64,
    /// Boxed, because the queue moves its entries about.
    event: Box<Event>,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Scheduled) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Scheduled) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    fn cmp(&self, other: &Scheduled) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

/// What a run of the world is worth knowing for, besides its history.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Faults and operations by kind.
    pub deeds: BTreeMap<&'static str, u64>,
    /// Transactions that were done, by concern.
    pub slots: BTreeMap<Slot, u64>,
    /// Steps that ended in each state of a round.
    pub states: BTreeMap<&'static str, u64>,
    /// Steps in all.
    pub steps: u64,
}

/// The world of one seed.
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) rng: Rng,
    pub(crate) now: Ms,
    queue: BinaryHeap<Reverse<Scheduled>>,
    sequence: u64,
    pub(crate) registry: Registry,
    pub(crate) conns: Vec<Conn>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) processes: Vec<Process>,
    /// Which instance has which id.
    pub(crate) ids: BTreeMap<String, Instance>,
    pub(crate) runs: Vec<UserRun>,
    pub(crate) early: Vec<Early>,
    pub(crate) calls: Vec<HookCall>,
    pub(crate) configs: Vec<Option<JobSpec>>,
    /// The greatest token that the store has seen, by job and item.
    pub(crate) store: BTreeMap<(usize, u32), u64>,
    pub(crate) faults: BTreeMap<u64, (&'static str, Vec<Undo>)>,
    pub(crate) ambushes: Vec<(usize, Ambush)>,
    pub(crate) facts: Vec<(Ms, Fact)>,
    pub(crate) tally: Tally,
    pub(crate) trace: Option<Vec<String>>,
}

/// What ends with a fault.
#[derive(Clone, Debug)]
pub(crate) enum Undo {
    Resume(ProcessId),
    Up(usize),
    Down(usize),
    Clock(usize),
    Registry { forget: bool },
}

/// Lives through a seed.
pub fn live(seed: u64, trace: bool) -> (History, Tally, Vec<String>) {
    let mut world = World::new(Scenario::new(seed), trace);
    world.live();
    let history =
        History { scenario: world.scenario, runs: world.runs, calls: world.calls, facts: world.facts };
    (history, world.tally, world.trace.unwrap_or_default())
}

impl World {
    fn new(scenario: Scenario, trace: bool) -> World {
        let host = |setup| Host {
            clock: Clock::new(scenario.base, setup),
            process: None,
            up: Way::default(),
            down: Way::default(),
            starts: 0,
        };
        let hosts = scenario.clocks.iter().copied().map(host).collect();
        let configs = vec![None; scenario.jobs.len()];
        let mut world = World {
            rng: Rng::new(scenario.seed ^ 0x5eed),
            scenario,
            now: 0,
            queue: BinaryHeap::new(),
            sequence: 0,
            registry: Registry::new(),
            conns: Vec::new(),
            hosts,
            processes: Vec::new(),
            ids: BTreeMap::new(),
            runs: Vec::new(),
            early: Vec::new(),
            calls: Vec::new(),
            configs,
            store: BTreeMap::new(),
            faults: BTreeMap::new(),
            ambushes: Vec::new(),
            facts: Vec::new(),
            tally: Tally::default(),
            trace: trace.then(Vec::new),
        };
        for index in 0..world.scenario.plan.len() {
            let at = world.scenario.plan[index].0;
            world.schedule(at, Event::Deed(index));
        }
        world
    }

    fn live(&mut self) {
        while let Some(Reverse(next)) = self.queue.pop() {
            if next.at > self.scenario.ends_at {
                break;
            }
            self.now = next.at;
            self.happen(*next.event);
        }
        self.now = self.scenario.ends_at;
        for id in 0..self.processes.len() {
            self.note_state(id);
        }
    }

    /// Where everybody stands in the end.
    fn note_state(&mut self, id: ProcessId) {
        let process = &self.processes[id];
        let jobs = process.jobs.iter().filter_map(|it| it.coordinator.as_ref());
        let lines: Vec<String> = jobs.map(|it| format!("process {id}: {}", it.describe())).collect();
        if process.state != State::Dead {
            lines.into_iter().for_each(|line| self.note(|| line));
        }
    }

    pub(crate) fn schedule(&mut self, at: Ms, event: Event) {
        self.sequence += 1;
        let (at, sequence, event) = (at.max(self.now), self.sequence, Box::new(event));
        self.queue.push(Reverse(Scheduled { at, sequence, event }));
    }

    pub(crate) fn after(&mut self, wait: Ms, event: Event) {
        self.schedule(self.now + wait, event);
    }

    fn happen(&mut self, event: Event) {
        if let Some(process) = self.concerned(&event) {
            match self.processes[process].state {
                State::Dead => return,
                State::Paused => return self.processes[process].held.push(event),
                State::Alive => {}
            }
        }
        match event {
            Event::Arrive { conn, sent, request } => self.arrive(conn, sent, request),
            Event::Deliver(conn) => self.deliver(conn),
            Event::Reset(conn) => self.reset(conn),
            Event::Timer(process, timer) => self.on_timer(process, timer),
            Event::Return(run, outcome) => self.return_from(run, outcome),
            Event::Begin(index) => self.begin(index),
            Event::HookReturn(call, error) => self.return_from_hook(call, error),
            Event::Expire(session) => self.expire(session),
            Event::Deed(index) => {
                let deed = self.scenario.plan[index].1.clone();
                self.do_deed(&deed);
            }
            Event::Recover(fault) => self.recover(fault),
            Event::Strike { job, item, instance, blow } => self.strike(job, item, instance, blow),
            Event::Remove(job, steps) => self.remove(job, steps),
            Event::PutBack(job, text) => self.put_back(job, text),
            Event::Restart(host) => self.start(host),
        }
    }

    /// The process that must be awake for this.
    fn concerned(&self, event: &Event) -> Option<ProcessId> {
        match event {
            Event::Deliver(conn) | Event::Reset(conn) => Some(self.conns[*conn].process),
            Event::Timer(process, _) => Some(*process),
            Event::Return(run, _) => Some(self.runs[*run].instance.process),
            Event::Begin(index) => Some(self.early[*index].instance.process),
            Event::HookReturn(call, _) => Some(self.calls[*call].instance.process),
            Event::Arrive { .. }
            | Event::Expire(_)
            | Event::Deed(_)
            | Event::Recover(_)
            | Event::Strike { .. }
            | Event::Remove(..)
            | Event::PutBack(..)
            | Event::Restart(_) => None,
        }
    }

    // ---- What is to be seen ----

    pub(crate) fn see(&mut self, fact: Fact) {
        self.note(|| format!("{fact:?}"));
        self.facts.push((self.now, fact));
    }

    /// One line of a trace.
    pub(crate) fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>10.3}  {}", self.now as f64 / 1000.0, line()));
        }
    }

    /// What the registry's nodes tell an operator who looks at them.
    pub(crate) fn look_at(&mut self, changes: &[Change]) {
        for change in changes {
            let Some((job, rest)) = job_of(change.path()) else { continue };
            match (rest, change) {
                ("", Change::Put(entry)) if entry.stat.version == 0 => self.see(Fact::Exists(job, true)),
                ("", Change::Gone { .. }) => self.see(Fact::Exists(job, false)),
                ("/config", Change::Put(entry)) => {
                    let Ok(spec) = JobSpec::from_yaml(&entry.data) else { continue };
                    self.configs[job] = Some(spec.clone());
                    self.see(Fact::Config(job, Some(Box::new(spec))));
                }
                ("/config", Change::Gone { .. }) => {
                    self.configs[job] = None;
                    self.see(Fact::Config(job, None));
                }
                (_, Change::Put(entry)) if !self.ambushes.is_empty() => self.look_out(job, rest, &entry.data),
                _ => {}
            }
        }
    }

    fn look_out(&mut self, job: usize, path: &str, data: &str) {
        match Node::parse(path) {
            Node::Owner(item) => self.spring(job, item, Omen::Assigned, data),
            Node::Running(item) => self.spring(job, item, Omen::Claimed, data),
            Node::Failover(item) => self.spring(job, item, Omen::TakenOver, data),
            Node::Misfire(item) => self.spring(job, item, Omen::Missed, ""),
            Node::Necessary => {
                let leader = self.registry.tree.get(&format!("{}{}", root(job), Node::Leader.path()));
                let leader = leader.unwrap_or_default().to_owned();
                self.spring(job, 0, Omen::Announced, &leader);
            }
            _ => {}
        }
    }
}
