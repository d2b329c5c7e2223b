//! The desk of a worker: failures lie there for a moment, so that many become one report, and are told from there.
//!
//! It is one task for all jobs. Its inbox is bounded, and nobody who puts something into it ever waits; every call
//! of a handler has a deadline; what cannot be told in the end is in the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::pile::Pile;
use super::{Failure, Handler, Report};
use crate::executor::{caught, with_causes};
use crate::metrics::Metrics;

/// So many failures lie in the inbox; of more, the number is kept.
const INBOX: usize = 1024;
/// Failures that are thrown and not looked at.
const THROWN: usize = 256;
/// Reports that are being told at a time.
const IN_FLIGHT_MAX: usize = 8;
/// The first failure waits so long for others of the same round.
const GATHER: Duration = Duration::from_secs(1);
/// A report that cannot be told is tried so often.
const ATTEMPTS_MAX: u32 = 3;
/// How long a leaving worker takes to tell what it has not told yet.
const FLUSH: Duration = Duration::from_secs(10);

/// How error handling went so far, on one worker.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let worker = elasticjob::Worker::new("embedded://").start().await?;
/// assert_eq!(worker.handler_counts().failed, 0);
/// # worker.shutdown().await; Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerCounts {
    /// Reports that were told.
    pub told: u64,
    /// Calls of a handler that failed, panicked, or took too long.
    pub failed: u64,
    /// Failures that nobody was told of: too many came at once, or their handler failed to the end. They are in
    /// the log.
    pub lost: u64,
}

#[derive(Debug, Default)]
struct Counts {
    told: AtomicU64,
    failed: AtomicU64,
    lost: AtomicU64,
    /// Failures that found the inbox full, and are in no report yet.
    unseen: AtomicU64,
    metrics: Option<Metrics>,
}

impl Counts {
    fn called(&self, told: bool) {
        let counter = if told { &self.told } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        if let Some(metrics) = &self.metrics {
            metrics.reported(told);
        }
    }

    fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
        if let Some(metrics) = &self.metrics {
            metrics.untold(count);
        }
    }
}

/// Who is told, and how.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) name: Arc<str>,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) destination: Arc<str>,
    pub(super) props: Arc<BTreeMap<String, String>>,
    /// At most one report in this time.
    pub(super) interval: Duration,
    /// How long telling it may take.
    pub(super) limit: Duration,
}

struct Letter {
    route: Route,
    failure: Failure,
}

/// Where failures are handed in.
#[derive(Clone)]
pub(crate) struct Inbox {
    letters: mpsc::Sender<Letter>,
    counts: Arc<Counts>,
    thrown: broadcast::Sender<Failure>,
}

impl Inbox {
    pub(super) fn put(&self, route: Route, failure: Failure) {
        if let Err(error) = self.letters.try_send(Letter { route, failure }) {
            let (mpsc::error::TrySendError::Full(letter) | mpsc::error::TrySendError::Closed(letter)) = error;
            self.counts.unseen.fetch_add(1, Ordering::Relaxed);
            self.counts.lose(1);
            let Failure { job, item, message, .. } = &letter.failure;
            let handler = &*letter.route.name;
            tracing::error!(job = &**job, item, handler, "too many failures to tell them all: {message}");
        }
    }

    pub(super) fn throw(&self, failure: Failure) {
        // Nobody may be listening.
        drop(self.thrown.send(failure));
    }
}

/// A reader of the failures of jobs whose error handler is `THROW`, from the moment it was made.
///
/// ```
/// use elasticjob::{Job, Shard, Worker};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let job = Job::simple("settle", async |_: Shard| Err("no rows".into())).one_off().error_handlers(["THROW"]);
/// let worker = Worker::new("embedded://").job(job).start().await?;
/// let mut thrown = worker.thrown();
/// worker.trigger("settle").await?;
/// assert_eq!(&*thrown.next().await.unwrap().message, "no rows");
/// # worker.shutdown().await; Ok(()) }
/// ```
#[derive(Debug)]
pub struct Thrown(broadcast::Receiver<Failure>);

impl Thrown {
    /// The next failure; `None` when the worker has ended. A reader who is too slow misses the oldest; they are in
    /// the log. Cancel safe.
    pub async fn next(&mut self) -> Option<Failure> {
        loop {
            match self.0.recv().await {
                Ok(failure) => return Some(failure),
                Err(broadcast::error::RecvError::Lagged(missed)) => {
                    tracing::warn!("{missed} failures were thrown, and nobody looked in time");
                }
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// The desk. Dropped, it tells nothing more.
pub(crate) struct Desk {
    inbox: Inbox,
    closing: CancellationToken,
    clerk: AbortOnDropHandle<()>,
}

impl Desk {
    pub(crate) fn open(metrics: Option<Metrics>) -> Desk {
        let (sender, letters) = mpsc::channel(INBOX);
        let (counts, closing) = (Arc::new(Counts { metrics, ..Counts::default() }), CancellationToken::new());
        let clerk = Clerk {
            letters,
            slots: BTreeMap::new(),
            deliveries: FuturesUnordered::new(),
            counts: counts.clone(),
            closing: closing.clone(),
        };
        let clerk = AbortOnDropHandle::new(tokio::spawn(clerk.work()));
        Desk {
            inbox: Inbox { letters: sender, counts, thrown: broadcast::Sender::new(THROWN) },
            closing,
            clerk,
        }
    }

    pub(crate) fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    pub(crate) fn thrown(&self) -> Thrown {
        Thrown(self.inbox.thrown.subscribe())
    }

    pub(crate) fn counts(&self) -> HandlerCounts {
        let Counts { told, failed, lost, .. } = &*self.inbox.counts;
        let read = |it: &AtomicU64| it.load(Ordering::Relaxed);
        HandlerCounts { told: read(told), failed: read(failed), lost: read(lost) }
    }

    /// Tells what has not been told yet, and closes. It takes a few seconds at most.
    pub(crate) async fn close(self) {
        self.closing.cancel();
        if let Err(error) = self.clerk.await {
            tracing::error!("error handling broke off: {error}");
        }
    }
}

/// The name of a handler, and where it sends its reports.
type Key = (Arc<str>, Arc<str>);

/// What waits for one destination.
struct Slot {
    route: Route,
    pile: Pile,
    /// What is being told.
    telling: Option<Report>,
    attempts: u32,
    /// When the pile is to be told; `None` if it is empty.
    due: Option<Instant>,
    not_before: Instant,
}

impl Slot {
    fn is_done(&self, now: Instant) -> bool {
        self.pile.is_empty() && self.telling.is_none() && self.not_before <= now
    }
}

/// A call of a handler that ended, and why it failed.
type Delivery = (Key, Result<(), String>);

struct Clerk {
    letters: mpsc::Receiver<Letter>,
    slots: BTreeMap<Key, Slot>,
    deliveries: FuturesUnordered<BoxFuture<'static, Delivery>>,
    counts: Arc<Counts>,
    closing: CancellationToken,
}

impl Clerk {
    async fn work(mut self) {
        let mut letters = Vec::new();
        loop {
            let due = self.next_due();
            tokio::select! {
                () = self.closing.cancelled() => break,
                count = self.letters.recv_many(&mut letters, INBOX) => if count == 0 { break },
                Some((key, result)) = self.deliveries.next() => self.told(&key, result),
                () = sleep_until(due) => {}
            }
            letters.drain(..).for_each(|letter| self.take_in(letter));
            let now = Instant::now();
            self.tell_due(now);
            self.slots.retain(|_, slot| !slot.is_done(now));
        }
        self.flush().await;
    }

    fn next_due(&self) -> Option<Instant> {
        if self.deliveries.len() >= IN_FLIGHT_MAX {
            return None; // The end of one of them will wake us.
        }
        self.slots.values().filter(|it| it.telling.is_none()).filter_map(|it| it.due).min()
    }

    fn take_in(&mut self, Letter { route, failure }: Letter) {
        let now = Instant::now();
        // Names have no case.
        let key = (route.name.to_uppercase().into(), route.destination.clone());
        let slot = self.slots.entry(key).or_insert_with(|| Slot {
            route: route.clone(),
            pile: Pile::default(),
            telling: None,
            attempts: 0,
            due: None,
            not_before: now,
        });
        let gathered = now + GATHER.min(route.interval);
        slot.route = route;
        slot.pile.add(failure);
        slot.due = slot.due.or(Some(gathered.max(slot.not_before)));
    }

    fn tell_due(&mut self, now: Instant) {
        for (key, slot) in &mut self.slots {
            let is_due = slot.telling.is_none() && slot.due.is_some_and(|due| due <= now);
            if !is_due || self.deliveries.len() >= IN_FLIGHT_MAX {
                continue;
            }
            slot.due = None;
            if slot.pile.is_empty() {
                continue; // What was not looked at is told with something that was.
            }
            slot.pile.add_unseen(self.counts.unseen.swap(0, Ordering::Relaxed));
            let Some(report) = slot.pile.take(slot.route.props.clone()) else { continue };
            slot.telling = Some(report.clone());
            let (key, call) =
                (key.clone(), AbortOnDropHandle::new(tokio::spawn(tell(slot.route.clone(), report))));
            self.deliveries.push(Box::pin(async move {
                // The call catches the panics of its handler.
                (key, call.await.unwrap_or_else(|error| Err(error.to_string())))
            }));
        }
    }

    fn told(&mut self, key: &Key, result: Result<(), String>) {
        let Some(slot) = self.slots.get_mut(key) else { return };
        let Some(report) = slot.telling.take() else { return };
        slot.not_before = Instant::now() + slot.route.interval;
        match result {
            Ok(()) => {
                self.counts.called(true);
                slot.attempts = 0;
            }
            Err(error) => {
                self.counts.called(false);
                tracing::error!(handler = &*slot.route.name, "error handler failed: {error}");
                slot.attempts += 1;
                if slot.attempts == ATTEMPTS_MAX || self.closing.is_cancelled() {
                    slot.attempts = 0;
                    give_up(&self.counts, &slot.route.name, &report);
                } else {
                    slot.pile.put_back(report);
                }
            }
        }
        slot.due = (!slot.pile.is_empty()).then_some(slot.not_before);
    }

    /// Tells all that is there, once, without regard to intervals.
    async fn flush(mut self) {
        self.letters.close();
        while let Some(letter) = self.letters.recv().await {
            self.take_in(letter);
        }
        let end = Instant::now() + FLUSH;
        loop {
            let now = Instant::now();
            self.slots.values_mut().for_each(|slot| slot.due = Some(now));
            self.tell_due(now);
            tokio::select! {
                next = self.deliveries.next() => match next {
                    Some((key, result)) => self.told(&key, result),
                    None => break,
                },
                () = tokio::time::sleep_until(end) => break,
            }
        }
        for slot in self.slots.values_mut() {
            let waiting = slot.pile.take(slot.route.props.clone());
            for report in slot.telling.take().into_iter().chain(waiting) {
                tracing::error!(
                    handler = &*slot.route.name,
                    "not told within {FLUSH:?}, and the worker leaves"
                );
                give_up(&self.counts, &slot.route.name, &report);
            }
        }
    }
}

fn give_up(counts: &Counts, handler: &str, report: &Report) {
    counts.lose(report.count());
    tracing::error!(handler, "nobody was told: {}", report.text());
}

async fn tell(route: Route, report: Report) -> Result<(), String> {
    let call = caught(route.handler.handle(report));
    match tokio::time::timeout(route.limit, call).await {
        Ok(result) => result.map_err(|error| with_causes(error.as_ref())),
        Err(_) => Err(format!("it took longer than {:?} and was stopped", route.limit)),
    }
}

/// Has a handler tell one failure, now.
pub(super) async fn tell_one(route: Route, failure: Failure) -> Result<(), String> {
    let mut pile = Pile::default();
    pile.add(failure);
    match pile.take(route.props.clone()) {
        Some(report) => tell(route, report).await,
        None => Ok(()),
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn more_than_the_inbox_holds_are_counted() {
        let (told, desk) = (Arc::new(Mutex::new(Vec::new())), Desk::open(None));
        let tell = told.clone();
        let handler = move |report: Report| {
            tell.lock().unwrap().push((report.count(), report.others));
            async { Ok(()) }
        };
        let route = Route {
            name: "pager".into(),
            handler: Arc::new(handler),
            destination: "".into(),
            props: Arc::default(),
            interval: Duration::from_secs(60),
            limit: Duration::from_secs(30),
        };
        let (count, room) = (3 * INBOX as u64, INBOX as u64);
        for item in 0..3 * INBOX as u32 {
            let (job, at, message) = ("j".into(), jiff::Timestamp::UNIX_EPOCH, "boom".into());
            // The clerk has no chance to look meanwhile.
            desk.inbox().put(route.clone(), Failure { job, item: Some(item), run: None, at, message });
        }
        assert_eq!(desk.counts().lost, count - room);
        desk.close().await;
        assert_eq!(*told.lock().unwrap(), [(count, count - room)]);
    }
}
