//! What the library's driver does, without its runtime: inputs in, effects out, timers, sessions. It decides
//! nothing about jobs.

use std::time::Duration;

use elasticjob_core::coord::{Coordinator, Effect, Input, Local, Slot, Verdict};
use elasticjob_core::strategy::Strategies;
use elasticjob_core::tree::{Op, SessionId};
use elasticjob_cron::Zone;

use crate::history::{Fact, ProcessId};
use crate::process::{Awaited, JobHere, Process, State, Timer, ip};
use crate::registry::{ConnId, Message, Request};
use crate::scenario::Ms;
use crate::world::{Event, World};

impl World {
    /// Starts a process on a host, if none lives there.
    pub(crate) fn start(&mut self, host: usize) {
        if self.hosts[host].process.is_some() {
            return;
        }
        let id = self.processes.len();
        self.hosts[host].starts += 1;
        self.hosts[host].process = Some(id);
        let now = self.hosts[host].clock.read(self.now);
        let jobs = self.scenario.jobs.iter().map(|job| {
            let hooks = job.hooks;
            let local = Local { spec: job.spec.clone(), class: "SIM".to_owned(), zone: Zone::UTC, hooks };
            let coordinator = Some(Coordinator::new(local, Strategies::default(), now));
            JobHere { coordinator, session: None, focus: None, wants_resync: false, wakes_at: None }
        });
        let jobs = jobs.collect();
        self.processes.push(Process {
            id,
            host,
            boot: 0x1000 * (host as u32 + 1) + self.hosts[host].starts,
            state: State::Alive,
            held: Vec::new(),
            conn: None,
            connected: false,
            session: None,
            session_number: 0,
            sessions_opened: 0,
            trusted_until: Duration::ZERO,
            distrusts: false,
            distrust_armed: false,
            last_heard: now.mono,
            awaited: Default::default(),
            next_request: 0,
            jobs,
            leaving: false,
            dies_in: None,
        });
        self.see(Fact::Born(id, host));
        self.connect(id);
    }

    pub(crate) fn mono(&self, process: ProcessId) -> Duration {
        self.hosts[self.processes[process].host].clock.mono(self.now)
    }

    fn in_true_time(&self, process: ProcessId, counted: Duration) -> Ms {
        self.hosts[self.processes[process].host].clock.true_time(counted)
    }

    fn session_timeout(&self) -> Duration {
        Duration::from_millis(self.scenario.session_timeout)
    }

    // ---- The session ----

    fn connect(&mut self, id: ProcessId) {
        let conn = self.open_conn(id);
        let sent = self.mono(id);
        let session = self.processes[id].session;
        self.processes[id].conn = Some(conn);
        self.send(conn, sent, Request::Connect(session));
        let wait = 1_000 + self.rng.range(0..=1_000);
        self.after(wait, Event::Timer(id, Timer::Connect(conn)));
    }

    pub(crate) fn on_timer(&mut self, id: ProcessId, timer: Timer) {
        let process = &self.processes[id];
        match timer {
            Timer::Tick(job) => {
                if process.jobs[job].wakes_at.is_some_and(|at| at <= self.now) {
                    self.processes[id].jobs[job].wakes_at = None;
                    self.feed(id, job, Input::Tick);
                }
            }
            Timer::Connect(conn) if !process.connected && process.conn == Some(conn) => self.connect(id),
            Timer::Connect(_) => {}
            Timer::Ping(conn) if process.connected && process.conn == Some(conn) => self.ping(id, conn),
            Timer::Ping(_) => {}
            Timer::Distrust => {
                self.processes[id].distrust_armed = false;
                self.look_at_lease(id);
                self.arm_distrust(id);
            }
            Timer::Request(number) => self.give_up_request(id, number),
        }
    }

    fn ping(&mut self, id: ProcessId, conn: ConnId) {
        let now = self.mono(id);
        if now.saturating_sub(self.processes[id].last_heard) > self.session_timeout() * 2 / 3 {
            return self.lose_connection(id);
        }
        self.send(conn, now, Request::Ping);
        self.after(self.scenario.session_timeout / 3, Event::Timer(id, Timer::Ping(conn)));
    }

    pub(crate) fn reset(&mut self, conn: ConnId) {
        let id = self.conns[conn].process;
        if self.processes[id].conn == Some(conn) {
            self.lose_connection(id);
        }
    }

    /// What is under way is unknown now, in whatever order the news arrives.
    fn lose_connection(&mut self, id: ProcessId) {
        let was_connected = std::mem::take(&mut self.processes[id].connected);
        self.processes[id].conn = None;
        let awaited = std::mem::take(&mut self.processes[id].awaited);
        let first = self.rng.chance(50);
        let jobs = self.processes[id].jobs.len();
        if was_connected && first {
            (0..jobs).for_each(|job| self.feed(id, job, Input::Suspended));
        }
        for awaited in awaited.into_values() {
            if let Awaited::Commit(job, slot) = awaited {
                self.settled(id, job, slot, Verdict::Unknown);
            }
        }
        if was_connected && !first {
            (0..jobs).for_each(|job| self.feed(id, job, Input::Suspended));
        }
        if self.processes[id].state == State::Alive && self.processes[id].conn.is_none() {
            // Nobody answers at once: a registry that is back is not to be run over.
            let conn = self.open_conn(id);
            self.processes[id].conn = Some(conn);
            let wait = self.rng.range(20..=1_000);
            self.after(wait, Event::Timer(id, Timer::Connect(conn)));
        }
    }

    pub(crate) fn receive(&mut self, conn: ConnId, asked: Option<Duration>, message: Message) {
        let id = self.conns[conn].process;
        if let Some(asked) = asked {
            self.trust(id, asked);
        }
        match message {
            Message::Welcome { session, number } => self.welcome(id, conn, session, number),
            Message::Expired => self.session_ended(id),
            Message::Pong => {}
            Message::Changed { job, changes } => self.feed(id, job, Input::Changed(changes)),
            Message::Sees(job, focus) => self.feed(id, job, Input::Sees(focus)),
            Message::Settled { number, verdict } => {
                if let Some(Awaited::Commit(job, slot)) = self.processes[id].awaited.remove(&number) {
                    self.settled(id, job, slot, verdict);
                }
            }
            Message::Snapshot { number, job, nodes } => {
                if let Some(number) = number {
                    self.processes[id].awaited.remove(&number);
                }
                self.look_at_lease(id);
                if self.processes[id].distrusts {
                    return; // It is read anew when the session is trusted again.
                }
                let process = &mut self.processes[id];
                let same_session = process.jobs[job].session == process.session;
                process.jobs[job].session = process.session;
                let me = process.me();
                self.feed(id, job, Input::Connected { me, nodes, same_session });
            }
        }
    }

    /// The registry had not given us up when it answered what we sent then.
    fn trust(&mut self, id: ProcessId, asked: Duration) {
        let until = asked + self.session_timeout() * 5 / 6;
        let now = self.mono(id);
        let process = &mut self.processes[id];
        process.last_heard = now;
        process.trusted_until = process.trusted_until.max(until);
        if process.connected && process.distrusts && now < process.trusted_until {
            // The session stands after all. Whoever was told otherwise must be told what it says now.
            process.distrusts = false;
            for job in 0..self.processes[id].jobs.len() {
                self.resync(id, job);
            }
            self.arm_distrust(id);
        }
    }

    fn arm_distrust(&mut self, id: ProcessId) {
        let process = &self.processes[id];
        if process.distrust_armed || process.distrusts || process.session.is_none() {
            return;
        }
        let wait = process.trusted_until.saturating_sub(self.mono(id));
        self.processes[id].distrust_armed = true;
        let wait = self.in_true_time(id, wait);
        self.after(wait, Event::Timer(id, Timer::Distrust));
    }

    /// Whoever cannot trust his session must not act on what it told him.
    fn look_at_lease(&mut self, id: ProcessId) {
        let now = self.mono(id);
        let process = &mut self.processes[id];
        if process.session.is_none() || process.distrusts || now < process.trusted_until {
            return;
        }
        process.distrusts = true;
        for job in 0..self.processes[id].jobs.len() {
            self.feed(id, job, Input::Distrusted);
        }
    }

    fn welcome(&mut self, id: ProcessId, conn: ConnId, session: SessionId, number: u32) {
        let now = self.mono(id);
        let process = &mut self.processes[id];
        process.connected = true;
        // An answer that lay in a buffer while the process stood still proves nothing.
        process.distrusts = now >= process.trusted_until;
        if process.session != Some(session) {
            process.session = Some(session);
            process.session_number = number;
            let (me, instance) = (process.me(), process.instance());
            self.ids.insert(me, instance);
        }
        forget_focus(&mut self.processes[id]);
        self.arm_distrust(id);
        self.ping(id, conn);
    }

    fn session_ended(&mut self, id: ProcessId) {
        self.lose_connection(id);
        let process = &mut self.processes[id];
        process.session = None;
        if !std::mem::replace(&mut process.distrusts, true) {
            for job in 0..self.processes[id].jobs.len() {
                self.feed(id, job, Input::Distrusted);
            }
        }
    }

    // ---- The coordinators ----

    fn settled(&mut self, id: ProcessId, job: usize, slot: Slot, verdict: Verdict) {
        if verdict == Verdict::Done {
            *self.tally.slots.entry(slot).or_default() += 1;
        }
        let instance = self.processes[id].instance();
        self.see(Fact::Settled(instance, job, slot, verdict));
        self.feed(id, job, Input::Settled(slot, verdict));
    }

    pub(crate) fn feed(&mut self, id: ProcessId, job: usize, input: Input) {
        if !matches!(input, Input::Distrusted) {
            self.look_at_lease(id);
        }
        let now = self.hosts[self.processes[id].host].clock.read(self.now);
        if self.processes[id].state == State::Dead {
            return;
        }
        // What ends does so now, and not when the next fire is asked for.
        let an_item_ended = matches!(input, Input::ItemFinished { .. });
        let told = if an_item_ended { now } else { self.ahead(id, job, now) };
        let Some(coordinator) = &mut self.processes[id].jobs[job].coordinator else { return };
        let mut effects = Vec::new();
        coordinator.step(told, input, &mut effects);
        self.tally.steps += 1;
        *self.tally.states.entry(coordinator.run().name()).or_default() += 1;
        let lives_for = self.count_down(id, effects.len());
        for effect in effects.into_iter().take(lives_for.unwrap_or(usize::MAX)) {
            self.do_effect(id, job, effect);
        }
        match lives_for {
            Some(_) => self.crash(id),
            None => {
                self.refocus(id, job);
                self.resync_if_quiet(id, job);
                self.arm(id, job);
            }
        }
    }

    /// A process that is to die in this step does so after some of its effects.
    fn count_down(&mut self, id: ProcessId, effects: usize) -> Option<usize> {
        let left = self.processes[id].dies_in?;
        self.processes[id].dies_in = Some(left.saturating_sub(1));
        (left == 0).then(|| self.rng.below(effects + 1))
    }

    fn do_effect(&mut self, id: ProcessId, job: usize, effect: Effect) {
        let instance = self.processes[id].instance();
        match effect {
            Effect::Commit { slot, ops } => self.commit(id, job, slot, ops),
            Effect::Run(order) => self.run_in_time(id, job, order),
            Effect::Hook(order) => self.call(id, job, order),
            Effect::Yield { round } => self.note(|| format!("{instance:?} job {job}: yield round {round}")),
            Effect::Cancel { round } => self.cancel(id, job, round),
            Effect::Resync => self.processes[id].jobs[job].wants_resync = true,
            Effect::Record(event) => self.see(Fact::Recorded(instance, job, event)),
            Effect::Stop(reason) => {
                self.processes[id].jobs[job].coordinator = None;
                self.see(Fact::Stopped(instance, job, reason));
                self.leave_if_done(id);
            }
        }
    }

    fn commit(&mut self, id: ProcessId, job: usize, slot: Slot, ops: Vec<Op>) {
        let instance = self.processes[id].instance();
        self.see(Fact::Sent(instance, job, slot));
        self.note(|| format!("{instance:?} job {job}: {slot:?} {}", spell(&ops)));
        let number = self.await_answer(id, Awaited::Commit(job, slot));
        let sent = self.mono(id);
        let Some(conn) = self.processes[id].conn.filter(|_| self.processes[id].connected) else {
            // The news that the connection is lost has not reached this coordinator yet.
            return self.after(0, Event::Timer(id, Timer::Request(number)));
        };
        self.send(conn, sent, Request::Commit { number, job, ops });
    }

    /// Follows no more than the coordinator needs.
    fn refocus(&mut self, id: ProcessId, job: usize) {
        let process = &self.processes[id];
        if !self.scenario.focuses || !process.connected {
            return;
        }
        let (Some(conn), Some(coordinator)) = (process.conn, &process.jobs[job].coordinator) else { return };
        let wanted = coordinator.focus();
        if process.jobs[job].focus.as_ref() != Some(&wanted) {
            let sent = self.mono(id);
            self.processes[id].jobs[job].focus = Some(wanted.clone());
            self.send(conn, sent, Request::Focus(job, wanted));
        }
    }

    /// What is under way while the mirror is read would be forgotten by it.
    fn resync_if_quiet(&mut self, id: ProcessId, job: usize) {
        let process = &mut self.processes[id];
        let under_way = |it: &Awaited| matches!(it, Awaited::Commit(j, _) | Awaited::Read(j) if *j == job);
        if process.jobs[job].wants_resync && !process.awaited.values().any(under_way) {
            process.jobs[job].wants_resync = false;
            self.resync(id, job);
        }
    }

    fn resync(&mut self, id: ProcessId, job: usize) {
        // A lost connection is read anew in any case.
        if !self.processes[id].connected {
            return;
        }
        let instance = self.processes[id].instance();
        self.see(Fact::Resynced(instance, job));
        let number = self.await_answer(id, Awaited::Read(job));
        let sent = self.mono(id);
        let conn = self.processes[id].conn.expect("it is connected");
        self.send(conn, sent, Request::Read { number, job });
    }

    fn await_answer(&mut self, id: ProcessId, awaited: Awaited) -> u64 {
        let process = &mut self.processes[id];
        process.next_request += 1;
        let number = process.next_request;
        process.awaited.insert(number, awaited);
        self.after(self.scenario.session_timeout / 2, Event::Timer(id, Timer::Request(number)));
        number
    }

    fn give_up_request(&mut self, id: ProcessId, number: u64) {
        match self.processes[id].awaited.remove(&number) {
            None => {}
            Some(Awaited::Commit(job, slot)) => self.settled(id, job, slot, Verdict::Unknown),
            Some(Awaited::Read(job)) => self.resync(id, job),
        }
    }

    /// Sees to it that a coordinator is called when it wants to be.
    fn arm(&mut self, id: ProcessId, job: usize) {
        let clock = self.hosts[self.processes[id].host].clock;
        let now = self.ahead(id, job, clock.read(self.now));
        let look_at_clock = Duration::from_millis(self.scenario.looks_at_clock);
        let here = &mut self.processes[id].jobs[job];
        let Some(coordinator) = &here.coordinator else { return };
        let wakeup = coordinator.next_wakeup();
        let wall = wakeup.wall.map(|at| {
            let wait = Duration::try_from(at.duration_since(now.wall)).unwrap_or_default();
            wait.min(look_at_clock)
        });
        let mono = wakeup.mono.map(|at| at.saturating_sub(now.mono));
        let Some(wait) = wall.into_iter().chain(mono).min() else { return };
        let at = self.now + clock.true_time(wait);
        if here.wakes_at.is_none_or(|armed| at < armed) {
            here.wakes_at = Some(at);
            self.schedule(at, Event::Timer(id, Timer::Tick(job)));
        }
    }

    // ---- The end ----

    pub(crate) fn leave(&mut self, id: ProcessId, grace: Ms) {
        if std::mem::replace(&mut self.processes[id].leaving, true) {
            return;
        }
        self.see(Fact::Leaving(id));
        for job in 0..self.processes[id].jobs.len() {
            self.feed(id, job, Input::Leave { grace: Duration::from_millis(grace) });
        }
        self.leave_if_done(id);
    }

    /// Once all its jobs are over, a process that leaves says good-bye.
    fn leave_if_done(&mut self, id: ProcessId) {
        let process = &self.processes[id];
        let done = process.jobs.iter().all(|it| it.coordinator.is_none());
        if !process.leaving || !done || process.state == State::Dead {
            return;
        }
        if let Some(conn) = process.conn.filter(|_| process.connected) {
            let sent = self.mono(id);
            self.send(conn, sent, Request::Close);
        }
        self.see(Fact::Left(id));
        self.bury(id);
    }

    pub(crate) fn crash(&mut self, id: ProcessId) {
        if self.processes[id].state == State::Dead {
            return;
        }
        self.see(Fact::Died(id));
        self.bury(id);
    }

    fn bury(&mut self, id: ProcessId) {
        self.processes[id].state = State::Dead;
        self.processes[id].held.clear();
        let host = self.processes[id].host;
        if self.hosts[host].process == Some(id) {
            self.hosts[host].process = None;
        }
        for run in self.runs.iter_mut().filter(|it| it.instance.process == id && it.over().is_none()) {
            run.killed = Some(self.now);
        }
        self.note(|| format!("the process of {} is gone", ip(host)));
    }
}

/// A new connection follows everything, until it is asked for less.
fn forget_focus(process: &mut Process) {
    process.jobs.iter_mut().for_each(|it| it.focus = None);
}

fn spell(ops: &[Op]) -> String {
    let word = |op: &Op| match op {
        Op::Check { path, version: None } => format!("exists {path}"),
        Op::Check { path, version: Some(version) } => format!("at {version} {path}"),
        Op::Create { path, data, .. } if path == "/config" => format!("create {path} ({} bytes)", data.len()),
        Op::Create { path, data, .. } => format!("create {path} {}", data.lines().next().unwrap_or_default()),
        Op::Enqueue { prefix } => format!("stand in {prefix}"),
        Op::Set { path, data, version } => {
            format!("set {path} {} at {version:?}", data.lines().next().unwrap_or_default())
        }
        Op::Delete { path } => format!("delete {path}"),
    };
    ops.iter().map(word).collect::<Vec<_>>().join("; ")
}
