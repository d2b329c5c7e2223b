//! What goes wrong, and how it is put right.

use crate::history::{Fact, Instance, ProcessId, SessionEnd};
use crate::process::{State, Way};
use crate::scenario::{Blow, Deed, Ms, Omen, Operation};
use crate::world::{Event, Undo, World};

/// Beyond the end of every simulation.
const NEVER: Ms = Ms::MAX / 4;

impl World {
    pub(crate) fn do_deed(&mut self, deed: &Deed) {
        *self.tally.deeds.entry(name(deed)).or_default() += 1;
        self.note(|| format!("*** {deed:?}"));
        match deed {
            Deed::Start(host) => self.start(*host),
            Deed::Crash(host) => self.with_process(*host, World::crash),
            Deed::CrashWithin(host, steps) => {
                self.with_process(*host, |world, id| world.processes[id].dies_in = Some(*steps));
            }
            Deed::Leave(host, grace) => {
                self.with_process(*host, |world, id| {
                    if world.processes[id].state == State::Alive {
                        world.leave(id, *grace);
                    }
                });
            }
            Deed::Pause(host, lasts) => self.with_process(*host, |world, id| world.pause(id, *lasts)),
            Deed::Partition { host, up, down, hold, lasts } => {
                let way = Way { blocked_until: self.now + lasts, hold: *hold, ..Way::default() };
                self.disturb("partition", *host, up.then_some(way), down.then_some(way), *lasts);
            }
            Deed::Lag(host, lag, lasts) => {
                let way = Way { lag: *lag, ..Way::default() };
                self.disturb("lag", *host, None, Some(way), *lasts);
            }
            Deed::LoseRequests(host, percent, lasts) => {
                let way = Way { loses: *percent, ..Way::default() };
                self.disturb("lost requests", *host, Some(way), None, *lasts);
            }
            Deed::LoseAnswers(host, percent, lasts) => {
                let way = Way { loses: *percent, ..Way::default() };
                self.disturb("lost answers", *host, None, Some(way), *lasts);
            }
            Deed::Outage(lasts, forget) => self.outage(*lasts, *forget),
            Deed::ClockStep(host, by) => {
                self.hosts[*host].clock.step(*by, self.now);
                self.begin_fault("wrong clock", vec![Undo::Clock(*host)], NEVER);
            }
            Deed::ClockRight(host) => self.put_clock_right(*host),
            Deed::Operate(job, operation) => self.operate(*job, operation),
            Deed::Ambush(job, ambush) => self.ambushes.push((*job, ambush.clone())),
            Deed::Heal => self.heal(),
        }
    }

    fn with_process(&mut self, host: usize, act: impl FnOnce(&mut World, ProcessId)) {
        if let Some(id) = self.hosts[host].process {
            act(self, id);
        }
    }

    /// A fault without length.
    pub(crate) fn point(&mut self, what: &'static str) {
        self.see(Fact::Fault(what, true));
        self.see(Fact::Fault(what, false));
    }

    fn begin_fault(&mut self, what: &'static str, undo: Vec<Undo>, lasts: Ms) {
        let number = self.tally.steps << 16 | self.faults.len() as u64;
        let number = (number..).find(|it| !self.faults.contains_key(it)).expect("numbers do not end");
        self.faults.insert(number, (what, undo));
        self.see(Fact::Fault(what, true));
        self.after(lasts, Event::Recover(number));
    }

    fn disturb(&mut self, what: &'static str, host: usize, up: Option<Way>, down: Option<Way>, lasts: Ms) {
        let mut undo = Vec::new();
        if let Some(way) = up {
            self.hosts[host].up = way;
            undo.push(Undo::Up(host));
        }
        if let Some(way) = down {
            self.hosts[host].down = way;
            undo.push(Undo::Down(host));
        }
        self.begin_fault(what, undo, lasts);
    }

    fn pause(&mut self, id: ProcessId, lasts: Ms) {
        if self.processes[id].state != State::Alive {
            return;
        }
        self.processes[id].state = State::Paused;
        self.see(Fact::Paused(id));
        self.begin_fault("pause", vec![Undo::Resume(id)], lasts);
    }

    /// A process wakes, and finds everything at once: its timers may be first, or its messages.
    fn resume(&mut self, id: ProcessId) {
        if self.processes[id].state != State::Paused {
            return;
        }
        self.processes[id].state = State::Alive;
        self.see(Fact::Resumed(id));
        let held = std::mem::take(&mut self.processes[id].held);
        let (timers, others): (Vec<Event>, Vec<Event>) =
            held.into_iter().partition(|it| matches!(it, Event::Timer(..)));
        let (first, second) = if self.rng.chance(50) { (timers, others) } else { (others, timers) };
        for event in first.into_iter().chain(second) {
            self.after(0, event);
        }
    }

    fn put_clock_right(&mut self, host: usize) {
        let wrong = |undo: &[Undo]| matches!(undo, [Undo::Clock(it)] if *it == host);
        let faults: Vec<u64> = self.faults.iter().filter(|it| wrong(&it.1.1)).map(|it| *it.0).collect();
        faults.into_iter().for_each(|it| self.recover(it));
    }

    fn outage(&mut self, lasts: Ms, forget: bool) {
        if self.registry.down {
            return;
        }
        self.registry.down = true;
        let conns: Vec<usize> = (0..self.conns.len()).filter(|it| self.conns[*it].open).collect();
        for conn in conns {
            self.conns[conn].open = false;
            let wait = self.rng.range(0..=20);
            self.after(wait, Event::Reset(conn));
        }
        for session in self.registry.sessions.values_mut() {
            session.conn = None;
        }
        let what = if forget { "outage that ends all sessions" } else { "outage" };
        self.begin_fault(what, vec![Undo::Registry { forget }], lasts);
    }

    fn come_back(&mut self, forget: bool) {
        self.registry.down = false;
        let ids: Vec<u64> = self.registry.sessions.keys().copied().collect();
        for id in ids {
            if forget {
                self.end_session(id, SessionEnd::Forgotten);
            } else if let Some(session) = self.registry.sessions.get_mut(&id) {
                session.last_heard = self.now;
                self.after(self.scenario.session_timeout, Event::Expire(id));
            }
        }
    }

    pub(crate) fn recover(&mut self, fault: u64) {
        let Some((what, undo)) = self.faults.remove(&fault) else { return };
        for step in undo {
            match step {
                Undo::Resume(id) => self.resume(id),
                Undo::Up(host) => self.hosts[host].up = Way::default(),
                Undo::Down(host) => self.hosts[host].down = Way::default(),
                Undo::Clock(host) => self.hosts[host].clock.put_right(self.now),
                Undo::Registry { forget } => self.come_back(forget),
            }
        }
        self.see(Fact::Fault(what, false));
    }

    /// Whoever lies in wait for this strikes.
    pub(crate) fn spring(&mut self, job: usize, item: u32, omen: Omen, instance: &str) {
        let Some(at) = self.ambushes.iter().position(|it| it.0 == job && it.1.omen == omen) else { return };
        let ambush = &mut self.ambushes[at].1;
        let (blow, delay) = (ambush.blow, ambush.delay);
        ambush.times -= 1;
        if ambush.times == 0 {
            self.ambushes.remove(at);
        }
        let instance = self.ids.get(instance).copied();
        self.after(delay, Event::Strike { job, item, instance, blow });
    }

    pub(crate) fn strike(&mut self, job: usize, item: u32, instance: Option<Instance>, blow: Blow) {
        if self.now >= self.scenario.healed_at {
            return;
        }
        self.note(|| format!("*** {blow:?} falls on item {item} of job {job}, {instance:?}"));
        let process = instance.map(|it| it.process).filter(|it| self.processes[*it].state != State::Dead);
        match (blow, process) {
            (Blow::Crash, Some(process)) => self.crash(process),
            (Blow::ShutDown, Some(process)) => {
                self.operate(job, &Operation::ShutDown(self.processes[process].host));
            }
            (Blow::Orphan, Some(process)) => {
                self.operate(job, &Operation::Trigger);
                let host = (self.processes[process].host + 1) % self.hosts.len();
                self.operate(job, &Operation::ShutDown(host));
            }
            (Blow::Retire, Some(process)) => {
                self.operate(job, &Operation::Server(self.processes[process].host, false));
            }
            (Blow::Crash | Blow::ShutDown | Blow::Retire | Blow::Orphan, None) => {}
            (Blow::Disable, _) => self.operate(job, &Operation::Item(item, false)),
            (Blow::ForgetMisfires, _) => self.operate(job, &Operation::Misfire(false)),
            (Blow::Trigger, _) => self.operate(job, &Operation::Trigger),
            (Blow::Count(count), _) => self.operate(job, &Operation::Count(count)),
            (Blow::ClocksRight, _) => (0..self.hosts.len()).for_each(|host| self.put_clock_right(host)),
        }
    }

    /// Everything works from now on. Somebody must be there to do the work; nobody who lives is restarted for
    /// it, unless all have been told to stop.
    fn heal(&mut self) {
        self.ambushes.clear();
        let faults: Vec<u64> = self.faults.keys().copied().collect();
        faults.into_iter().for_each(|it| self.recover(it));
        for host in 0..self.hosts.len() {
            if let Some(id) = self.hosts[host].process {
                self.processes[id].dies_in = None;
            }
        }
        let fixed = self.configs.iter().flatten().any(|it| it.static_sharding)
            || self.scenario.jobs.iter().any(|it| it.spec.static_sharding);
        for host in 0..self.hosts.len() {
            if fixed || host == 0 || self.rng.chance(70) {
                self.make_useful(host, fixed || host == 0);
            }
        }
        for job in 0..self.scenario.jobs.len() {
            let hosts = if fixed { 0..self.hosts.len() } else { 0..1 };
            hosts.for_each(|host| self.operate(job, &Operation::Server(host, true)));
        }
        self.point("heal");
    }

    /// Starts a process where none is, and, if that is asked for, one where a job was ended.
    fn make_useful(&mut self, host: usize, restart: bool) {
        let Some(id) = self.hosts[host].process else { return self.start(host) };
        let process = &self.processes[id];
        let ended = process.leaving || process.jobs.iter().any(|it| it.coordinator.is_none());
        if restart && ended {
            self.crash(id);
            self.after(300, Event::Restart(host));
        }
    }
}

/// One name for each kind, for the report.
fn name(deed: &Deed) -> &'static str {
    match deed {
        Deed::Start(_) => "start",
        Deed::Crash(_) => "crash",
        Deed::CrashWithin(..) => "crash within a step",
        Deed::Pause(..) => "pause",
        Deed::Leave(..) => "leave",
        Deed::Partition { up: true, down: true, hold: false, .. } => "partition, both ways",
        Deed::Partition { up: true, down: true, hold: true, .. } => "partition, messages held",
        Deed::Partition { .. } => "partition, one way",
        Deed::Lag(..) => "late mirror",
        Deed::LoseRequests(..) => "lost requests",
        Deed::LoseAnswers(..) => "lost answers",
        Deed::Outage(_, false) => "registry restart",
        Deed::Outage(_, true) => "registry restart, sessions lost",
        Deed::ClockStep(_, by) if *by >= 0 => "clock step ahead",
        Deed::ClockStep(..) => "clock step back",
        Deed::ClockRight(_) => "clock put right",
        Deed::Operate(_, operation) => match operation {
            Operation::Count(_) => "operator: count",
            Operation::Cron(_) => "operator: cron",
            Operation::Parameter(_) => "operator: parameter",
            Operation::Failover(_) => "operator: failover",
            Operation::Misfire(_) => "operator: misfire",
            Operation::Monitor(_) => "operator: monitoring",
            Operation::Server(_, true) => "operator: enable server",
            Operation::Server(_, false) => "operator: disable server",
            Operation::Item(_, true) => "operator: enable item",
            Operation::Item(_, false) => "operator: disable item",
            Operation::Trigger => "operator: trigger",
            Operation::ShutDown(_) => "operator: shut down",
            Operation::Remove(_) => "operator: remove",
            Operation::Nonsense => "operator: bad document",
        },
        Deed::Ambush(..) => "ambush",
        Deed::Heal => "heal",
    }
}
