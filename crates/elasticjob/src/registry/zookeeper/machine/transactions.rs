//! Transactions: how they are sent, alone or together, and what their answers mean.

use std::collections::{BTreeSet, VecDeque};

use tokio::time::Instant;

use super::super::batch::{Committing, Part};
use super::super::transaction::{Attempt, Context, Left, Meaning, step_path};
use super::super::wire::{self, Mode, Step, code};
use super::{Machine, PACKET_MAX, Settling, Trouble, Waiting, WatchId, is_own, take_asks};
use crate::registry::CommitError;

impl Machine {
    pub(super) fn send_batch(&mut self, now: Instant) {
        let mut parts = self.batch.take();
        if let [_] = *parts
            && let Some(part) = parts.pop()
        {
            return self.send_at_once(part.packet, Waiting::Commit(part.committing, part.attempt), now);
        }
        if !parts.is_empty() {
            let packet = wire::together(parts.iter().map(|it| &it.packet));
            self.together
                .extend(parts.iter().filter_map(|it| it.committing.transaction.job()).map(str::to_owned));
            let parts = parts.into_iter().map(|it| (it.committing, it.attempt)).collect();
            self.send_at_once(packet, Waiting::Commits(parts), now);
        }
    }

    pub(super) fn commit(&mut self, committing: Box<Committing>, now: Instant) {
        if committing.transaction.job().is_some_and(|it| self.together.contains(it)) {
            return self.held_back.push_back(committing);
        }
        let Some(part) = self.draft(committing) else { return };
        if !self.batch.takes(&part) {
            self.send_batch(now);
            if part.committing.transaction.job().is_some_and(|it| self.together.contains(it)) {
                self.count_own(&part.attempt, -1);
                return self.held_back.push_back(part.committing);
            }
        }
        self.batch.add(part);
    }

    /// Sends a transaction that was to be tried again.
    pub(super) fn attempt(&mut self, committing: Box<Committing>, now: Instant) {
        if let Some(part) = self.draft(committing) {
            self.send(part.packet, Waiting::Commit(part.committing, part.attempt), now);
        }
    }

    /// A transaction as it is to be sent, and to be counted as under way; `None` if it is too large.
    pub(super) fn draft(&mut self, mut committing: Box<Committing>) -> Option<Part> {
        let knows = |path: &str| {
            let mirrors = Machine::mirrors_of(&self.roots, path);
            mirrors.iter().find_map(|id| self.mirrors.get(id)?.knows(path))
        };
        let attempt = committing.transaction.attempt(knows);
        let packet = wire::multi(&attempt.steps, self.acl);
        if packet.size() > PACKET_MAX {
            let error = CommitError::TooLarge { size: packet.size(), limit: PACKET_MAX };
            let _ = committing.reply.send(Err(error));
            return None;
        }
        self.count_own(&attempt, 1);
        Some(Part { committing, attempt, packet })
    }

    pub(super) fn count_own(&mut self, attempt: &Attempt, by: i32) {
        for step in &attempt.steps {
            let own = match step {
                Step::Check { .. } => continue,
                Step::Create { mode: Mode::EphemeralSequential, .. } => &mut self.own_lines,
                Step::Create { .. } | Step::Set { .. } | Step::Delete { .. } => &mut self.own,
            };
            let count = own.entry(step_path(step).to_owned()).or_default();
            *count = count.saturating_add_signed(by);
            if *count == 0 {
                own.remove(step_path(step));
            }
        }
    }

    /// All of them are done, or none is: then each is tried alone, and learns what is the matter with itself.
    pub(super) fn answered_together(
        &mut self,
        parts: Vec<(Box<Committing>, Attempt)>,
        head: wire::Head,
        results: &[wire::Done],
        now: Instant,
    ) -> Result<(), Trouble> {
        for (committing, _) in &parts {
            committing.transaction.job().map(|it| self.together.remove(it));
        }
        let refused = results.iter().any(|it| matches!(it, wire::Done::Failed(_)));
        let steps: usize = parts.iter().map(|(_, attempt)| attempt.steps.len()).sum();
        if refused || !matches!(head.error, code::OK | code::SESSION_EXPIRED) {
            for (committing, attempt) in parts {
                let packet = wire::multi(&attempt.steps, self.acl);
                self.send(packet, Waiting::Commit(committing, attempt), now);
            }
        } else if head.error == code::OK && results.len() == steps {
            self.done_together(parts, head, results);
        } else {
            // The session is over, or nobody knows what became of them: each hears of that.
            for (committing, attempt) in parts {
                self.answered(committing, &attempt, head, &[], now)?;
            }
        }
        for committing in std::mem::take(&mut self.held_back) {
            self.commit(committing, now);
        }
        Ok(())
    }

    pub(super) fn done_together(
        &mut self,
        parts: Vec<(Box<Committing>, Attempt)>,
        head: wire::Head,
        mut results: &[wire::Done],
    ) {
        let context = Context { zxid: head.zxid, session: self.session, error: head.error };
        let mut replies = Vec::new();
        for (mut committing, attempt) in parts {
            let (own, others) = results.split_at(attempt.steps.len());
            results = others;
            self.count_own(&attempt, -1);
            if let Meaning::Done(nodes) = committing.transaction.read(&attempt, context, own) {
                self.done(&attempt, &nodes);
            }
            replies.push(committing.reply);
        }
        // Only now: the mirrors of the others have shown by now what they have to. What the first waits for, the others
        // behind it do not wait for again.
        let mut marks = self.marks();
        for reply in replies {
            self.settling.push_back(Settling { result: Ok(()), reply, marks: std::mem::take(&mut marks) });
        }
    }

    pub(super) fn answered(
        &mut self,
        mut committing: Box<Committing>,
        attempt: &Attempt,
        head: wire::Head,
        results: &[wire::Done],
        now: Instant,
    ) -> Result<(), Trouble> {
        self.count_own(attempt, -1);
        let context = Context { zxid: head.zxid, session: self.session, error: head.error };
        let meaning = committing.transaction.read(attempt, context, results);
        let result = match meaning {
            Meaning::Done(nodes) => {
                self.done(attempt, &nodes);
                Ok(())
            }
            Meaning::Expired => {
                let _ = committing.reply.send(Err(CommitError::SessionEnded));
                return Err(Trouble::Expired);
            }
            Meaning::Again => {
                self.own_failed();
                self.attempt(committing, now);
                return Ok(());
            }
            Meaning::Look(asks) => {
                self.own_failed();
                committing.looking = asks;
                self.look_or_attempt(committing, now);
                return Ok(());
            }
            Meaning::Refused(error) => {
                self.own_failed();
                self.look_again(attempt);
                Err(error)
            }
        };
        let marks = self.marks();
        self.settling.push_back(Settling { result, reply: committing.reply, marks });
        Ok(())
    }

    /// A transaction was done, and left these nodes so. They are shown at once: then answers that come with
    /// its own have fewer mirrors to wait for.
    pub(super) fn done(&mut self, attempt: &Attempt, nodes: &[(String, Left)]) {
        for (path, left) in nodes {
            for id in Machine::mirrors_of(&self.roots, path) {
                if let Some(mirror) = self.mirrors.get_mut(&id) {
                    self.touched.insert(id);
                    mirror.own_done(path, left);
                }
            }
        }
        if attempt.stands_in_line() {
            self.own_failed(); // Others may stand in the same line under names that begin alike.
        }
        for id in self.mirrors_about(attempt) {
            if let Some(mirror) = self.mirrors.get_mut(&id) {
                self.touched.insert(id);
                mirror.advance().into_iter().for_each(std::task::Waker::wake);
            }
        }
    }

    pub(super) fn look_again(&mut self, attempt: &Attempt) {
        for id in self.mirrors_about(attempt) {
            if let Some(mirror) = self.mirrors.get_mut(&id) {
                self.touched.insert(id);
                mirror.look_again();
            }
        }
    }

    /// The mirrors of the nodes that a transaction is about.
    pub(super) fn mirrors_about(&self, attempt: &Attempt) -> BTreeSet<WatchId> {
        attempt.steps.iter().flat_map(|it| Machine::mirrors_of(&self.roots, step_path(it))).collect()
    }

    pub(super) fn own_failed(&mut self) {
        // Others have nothing in line.
        self.touched.extend(&self.behind);
        for id in &self.touched {
            if let Some(mirror) = self.mirrors.get_mut(id) {
                mirror.own_failed(|path| is_own(&self.own, &self.own_lines, path));
            }
        }
    }

    pub(super) fn look_or_attempt(&mut self, mut committing: Box<Committing>, now: Instant) {
        let mut left = VecDeque::from(std::mem::take(&mut committing.looking));
        let asks = take_asks(&mut left);
        committing.looking = left.into();
        if asks.is_empty() {
            self.attempt(committing, now);
        } else {
            self.send(wire::multi_read(&asks), Waiting::Parents(committing, asks), now);
        }
    }
}
