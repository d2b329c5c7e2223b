//! Between processes and the registry: messages that are slow, held up or lost, and sessions that time out.

use std::collections::BTreeMap;
use std::time::Duration;

use elasticjob_core::coord::{Focus, Verdict};
use elasticjob_core::tree::{Change, Entry, SessionId};

use crate::history::{Fact, Instance, ProcessId, SessionEnd};
use crate::registry::{Conn, ConnId, Message, News, Parcel, Request, Session, all_of, item_of, job_of, root};
use crate::scenario::Ms;
use crate::world::{Event, World};

/// No job has more items.
const ITEMS_MAX: u32 = 32;

impl World {
    fn latency(&mut self) -> Ms {
        let (least, most) = self.scenario.latency;
        self.rng.range(least..=most)
    }

    /// Opens another connection for a process. The old one is left to itself.
    pub(crate) fn open_conn(&mut self, process: ProcessId) -> ConnId {
        self.conns.push(Conn::new(process));
        self.conns.len() - 1
    }

    /// Sends a request. It may never arrive, and nobody is told.
    pub(crate) fn send(&mut self, conn: ConnId, sent: Duration, request: Request) {
        let way = self.hosts[self.processes[self.conns[conn].process].host].up;
        let may_get_lost = matches!(request, Request::Commit { .. } | Request::Read { .. });
        let mut from = self.now;
        if self.now < way.blocked_until {
            if !way.hold {
                self.conns[conn].lost_up = true;
            }
            from = way.blocked_until;
        }
        if self.conns[conn].lost_up || (may_get_lost && self.rng.chance(way.loses)) {
            return self.note(|| format!("lost on the way up: {request:?}"));
        }
        let at = (from + self.latency()).max(self.conns[conn].last_arrival);
        self.conns[conn].last_arrival = at;
        self.schedule(at, Event::Arrive { conn, sent, request });
    }

    /// Sends a message down. Messages of one connection arrive in order, or not at all.
    fn push(&mut self, conn: ConnId, asked: Option<Duration>, message: Message) {
        let way = self.hosts[self.processes[self.conns[conn].process].host].down;
        let mut from = self.now;
        if self.now < way.blocked_until {
            if !way.hold {
                self.conns[conn].lost_down = true;
            }
            from = way.blocked_until;
        }
        let answers = matches!(message, Message::Settled { .. });
        if self.conns[conn].lost_down || (answers && self.rng.chance(way.loses)) {
            return self.note(|| format!("lost on the way down: {}", brief(&message)));
        }
        let late = self.rng.range(0..=way.lag);
        let at = (from + self.latency() + late).max(self.conns[conn].last_delivery);
        self.conns[conn].last_delivery = at;
        self.conns[conn].fifo.push_back(Parcel { due: at, asked, message });
        self.schedule(at, Event::Deliver(conn));
    }

    // ---- At the registry ----

    pub(crate) fn arrive(&mut self, conn: ConnId, sent: Duration, request: Request) {
        if self.registry.down || !self.conns[conn].open {
            let wait = self.latency();
            return self.after(wait, Event::Reset(conn));
        }
        if let Request::Connect(session) = request {
            // A healthy network does not bring up what was held back for somebody who has hung up.
            let hung_up = self.processes[self.conns[conn].process].conn != Some(conn);
            if hung_up && self.now > self.scenario.healed_at {
                return;
            }
            return self.attach(conn, sent, session);
        }
        let Some(session) = self.conns[conn].session.filter(|it| self.registry.sessions.contains_key(it))
        else {
            return self.push(conn, None, Message::Expired);
        };
        if let Some(session) = self.registry.sessions.get_mut(&session) {
            session.last_heard = self.now;
        }
        match request {
            Request::Connect(_) => {}
            Request::Ping => self.push(conn, Some(sent), Message::Pong),
            Request::Focus(job, focus) => self.focus(conn, job, focus),
            Request::Close => self.end_session(session, SessionEnd::Closed),
            Request::Read { number, job } => self.push_snapshot(conn, Some(sent), Some(number), job),
            Request::Commit { number, job, ops } => {
                let now = self.scenario.wall(self.now);
                let verdict = match self.registry.tree.commit(session, &root(job), &ops, now) {
                    Ok(changes) => {
                        self.tell(changes);
                        Verdict::Done
                    }
                    Err(refused) => {
                        self.note(|| format!("refused: {refused}"));
                        Verdict::Refused
                    }
                };
                self.push(conn, Some(sent), Message::Settled { number, verdict });
            }
        }
    }

    fn attach(&mut self, conn: ConnId, sent: Duration, session: Option<SessionId>) {
        let id = match session {
            Some(id) if self.registry.sessions.contains_key(&id) => id,
            Some(_) => return self.push(conn, None, Message::Expired),
            None => self.open_session(conn),
        };
        let session = self.registry.sessions.get_mut(&id).expect("it was found or made");
        session.last_heard = self.now;
        let number = session.instance.session;
        if let Some(before) = session.conn.replace(conn).filter(|it| *it != conn) {
            self.conns[before].open = false; // What still comes from there is refused.
        }
        self.conns[conn].session = Some(id);
        self.push(conn, Some(sent), Message::Welcome { session: id, number });
        for job in 0..self.scenario.jobs.len() {
            self.push_snapshot(conn, Some(sent), None, job);
            if self.scenario.focuses {
                self.push(conn, None, Message::Sees(job, Focus::Everything));
            }
        }
    }

    fn open_session(&mut self, conn: ConnId) -> SessionId {
        let id = self.registry.tree.open_session();
        // Every session has its number, also those whose process never hears of them.
        let process = &mut self.processes[self.conns[conn].process];
        process.sessions_opened += 1;
        let instance = Instance { process: process.id, session: process.sessions_opened };
        let session = Session { instance, last_heard: self.now, conn: None };
        self.registry.sessions.insert(id, session);
        self.after(self.scenario.session_timeout, Event::Expire(id));
        self.see(Fact::Opened(instance));
        id
    }

    fn push_snapshot(&mut self, conn: ConnId, asked: Option<Duration>, number: Option<u64>, job: usize) {
        let nodes = self.registry.tree.snapshot(&root(job));
        self.push(conn, asked, Message::Snapshot { number, job, nodes });
    }

    /// Tells everybody who is connected what has changed.
    pub(crate) fn tell(&mut self, changes: Vec<Change>) {
        self.look_at(&changes);
        let mut by_job: BTreeMap<usize, Vec<News>> = BTreeMap::new();
        for change in changes {
            let Some((job, below)) = job_of(change.path()) else { continue };
            let (item, path) = (item_of(below).filter(|_| self.scenario.focuses), below.to_owned());
            let change = match change {
                Change::Put(entry) => Change::Put(Entry { path, ..entry }),
                Change::Gone { .. } => Change::Gone { path },
            };
            by_job.entry(job).or_default().push(News { item, change });
        }
        let listeners: Vec<ConnId> = self.registry.sessions.values().filter_map(|it| it.conn).collect();
        for (job, news) in by_job {
            for &conn in &listeners {
                let changes = self.conns[conn].seen(job, &news);
                if !changes.is_empty() {
                    self.push(conn, None, Message::Changed { job, changes });
                }
            }
        }
    }

    /// Tells all about what is followed from now on and was not, and then that it is so.
    fn focus(&mut self, conn: ConnId, job: usize, focus: Focus) {
        let before = self.conns[conn].focus.insert(job, focus.clone()).unwrap_or(Focus::Everything);
        let changes: Vec<Change> = (0..ITEMS_MAX)
            .filter(|item| focus.covers(*item) && !before.covers(*item))
            .flat_map(|item| all_of(&self.registry.tree, job, item))
            .collect();
        if !changes.is_empty() {
            self.push(conn, None, Message::Changed { job, changes });
        }
        self.push(conn, None, Message::Sees(job, focus));
    }

    pub(crate) fn expire(&mut self, id: SessionId) {
        let Some(session) = self.registry.sessions.get(&id) else { return };
        let over = session.last_heard + self.scenario.session_timeout;
        if self.registry.down {
            self.after(self.scenario.session_timeout, Event::Expire(id));
        } else if over > self.now {
            self.schedule(over, Event::Expire(id));
        } else {
            self.end_session(id, SessionEnd::Expired);
        }
    }

    pub(crate) fn end_session(&mut self, id: SessionId, how: SessionEnd) {
        let Some(session) = self.registry.sessions.remove(&id) else { return };
        if let Some(conn) = session.conn {
            self.conns[conn].open = false;
        }
        self.see(Fact::Closed(session.instance, how));
        let changes = self.registry.tree.end_session(id);
        self.tell(changes);
    }

    // ---- At the process ----

    pub(crate) fn deliver(&mut self, conn: ConnId) {
        let due = |it: &Parcel, now| it.due <= now;
        let Some(parcel) = self.conns[conn].fifo.pop_front_if(|it| due(it, self.now)) else { return };
        if self.processes[self.conns[conn].process].conn != Some(conn) {
            return; // The process has given this connection up.
        }
        let message = match parcel.message {
            Message::Changed { job, changes } => self.coalesce(conn, job, changes),
            message => message,
        };
        self.receive(conn, parcel.asked, message);
    }

    /// What has piled up is sometimes told at once.
    fn coalesce(&mut self, conn: ConnId, job: usize, mut changes: Vec<Change>) -> Message {
        let now = self.now;
        while self.rng.chance(60) {
            let more = |it: &mut Parcel| {
                it.due <= now && matches!(&it.message, Message::Changed { job: j, .. } if *j == job)
            };
            let Some(parcel) = self.conns[conn].fifo.pop_front_if(more) else { break };
            if let Message::Changed { changes: more, .. } = parcel.message {
                changes.extend(more);
            }
        }
        Message::Changed { job, changes }
    }
}

fn brief(message: &Message) -> String {
    match message {
        Message::Snapshot { job, nodes, .. } => format!("snapshot of job {job}, {} nodes", nodes.len()),
        other => format!("{other:?}"),
    }
}
