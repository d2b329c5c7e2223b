//! The loop of one job: inputs in, effects out. It decides nothing.
//!
//! It is the only place that knows both the coordinator and a session.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use elasticjob_core::coord::{Coordinator, Effect, Input, Now, Slot, Verdict};
use elasticjob_core::event::{Event, Outcome, Source, StopReason};
use elasticjob_core::node::Node;
use elasticjob_core::plan::Plan;
use elasticjob_core::spec::JobSpec;
use elasticjob_core::timer::Timer;
use elasticjob_core::view::View;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::Clock;
use crate::executor::{End, Ended, Executor, MayBegin};
use crate::handler::{Failure, Reporter};
use crate::lead::{Lead, Starts};
use crate::link::{Connection, Link};
use crate::offsets::{NoOffsets, OffsetError, OffsetStore, RegistryOffsets};
use crate::recorder::{Record, Recorder};
use crate::registry::{CommitError, Focus, Op, Watch, WatchEvent};

/// Where a job is, for the worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) phase: Phase,
    /// It is registered, in a session that stands.
    pub(crate) stands: bool,
    /// What its clock goes by, and that in words.
    pub(crate) schedule: Option<Timer>,
    pub(crate) words: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    #[default]
    Starting,
    Registered,
    Stopped(StopReason),
}

pub(crate) struct Driver {
    job: Arc<str>,
    root: String,
    coordinator: Coordinator,
    executor: Executor,
    clock: Clock,
    lead: Lead,
    starts: Starts,
    /// Nothing of the user's is called before a round.
    hookless: bool,
    link: Link,
    connections: watch::Receiver<Option<Connection>>,
    connection: Option<Connection>,
    /// The session that the coordinator was told of last.
    known_session: u64,
    watch: Option<Watch>,
    /// What the watch was asked to follow last.
    focus: Option<Focus>,
    /// Transactions under way. They run in this task: an answer that is there at once needs no detour.
    commits: FuturesUnordered<BoxFuture<'static, Commit>>,
    /// The mirror is to be made anew, once nothing is under way.
    resync: bool,
    distrust_at: Option<Instant>,
    /// The session is not trusted, and has not been read anew since.
    distrusts: bool,
    clock_steps: watch::Receiver<u64>,
    /// Set, when all jobs of the worker are to leave: how long running shards may go on.
    leave: watch::Receiver<Option<Duration>>,
    recorder: Recorder,
    reporter: Reporter,
    status: watch::Sender<Status>,
    /// The id that we had last.
    me: Arc<str>,
}

/// The session that a transaction was sent in, its concern, and what became of it.
type Commit = (u64, Slot, Result<(), CommitError>);

/// What a driver is made of.
pub(crate) struct Parts {
    pub(crate) job: Arc<str>,
    pub(crate) coordinator: Coordinator,
    pub(crate) executor: Executor,
    pub(crate) clock: Clock,
    pub(crate) starts: Starts,
    pub(crate) hookless: bool,
    pub(crate) link: Link,
    pub(crate) clock_steps: watch::Receiver<u64>,
    pub(crate) leave: watch::Receiver<Option<Duration>>,
    pub(crate) recorder: Recorder,
    pub(crate) reporter: Reporter,
    pub(crate) status: watch::Sender<Status>,
}

/// What the loop waits for.
enum Happened {
    Link,
    Watch(WatchEvent),
    Committed(u64, Slot, Result<(), CommitError>),
    Ended(Ended),
    Leave,
    Distrust,
    Time,
}

impl Driver {
    pub(crate) fn new(parts: Parts) -> Driver {
        Driver {
            root: format!("/{}", parts.job),
            job: parts.job,
            coordinator: parts.coordinator,
            executor: parts.executor,
            clock: parts.clock,
            lead: Lead::default(),
            starts: parts.starts,
            hookless: parts.hookless,
            connections: parts.link.subscribe(),
            link: parts.link,
            connection: None,
            known_session: 0,
            watch: None,
            focus: None,
            commits: FuturesUnordered::new(),
            resync: false,
            distrust_at: None,
            distrusts: false,
            clock_steps: parts.clock_steps,
            leave: parts.leave,
            recorder: parts.recorder,
            reporter: parts.reporter,
            status: parts.status,
            me: "".into(),
        }
    }

    /// Runs until the job ends here. A panic, as of a user's strategy, ends this job and no other: it leaves the
    /// registry, so that its peers do not wait for it.
    pub(crate) async fn run(self: Box<Self>) -> StopReason {
        let (job, root, link, status) =
            (self.job.clone(), self.root.clone(), self.link.clone(), self.status.clone());
        let (mut reporter, clock) = (self.reporter.clone(), self.clock);
        let panic = match AssertUnwindSafe(self.work()).catch_unwind().await {
            Ok(reason) => return reason,
            Err(panic) => crate::executor::panic_text(panic.as_ref()),
        };
        tracing::error!(job = &*job, "broken: {panic}");
        if let Some(connection) = link.current() {
            clean_up(&connection, &root).await;
        }
        let message = format!("broken: {panic}");
        reporter.handle(None, &Failure::new(job, None, None, clock.now().wall, &message));
        let reason = StopReason::Broken(panic);
        status.send_modify(|it| it.phase = Phase::Stopped(reason.clone()));
        reason
    }

    /// Boxed, because a future holds what it takes by value twice.
    async fn work(mut self: Box<Self>) -> StopReason {
        self.follow_link();
        loop {
            let happened = self.wait().await;
            if let Some(reason) = self.handle(happened) {
                self.status.send_modify(|it| it.phase = Phase::Stopped(reason.clone()));
                return reason;
            }
            if self.resync && self.commits.is_empty() {
                self.resync = false;
                self.follow();
            }
        }
    }

    async fn wait(&mut self) -> Happened {
        let (now, wakeup) = (self.ahead(self.clock.now()), self.coordinator.next_wakeup());
        let distrust_at = self.distrust_at;
        tokio::select! {
            biased;
            changed = self.connections.changed() => match changed {
                Ok(()) => Happened::Link,
                Err(_) => std::future::pending().await, // The worker is being dropped, and this task with it.
            },
            event = next_event(self.watch.as_mut()) => Happened::Watch(event),
            Some((session, slot, result)) = self.commits.next() => Happened::Committed(session, slot, result),
            ended = self.executor.next() => Happened::Ended(ended),
            Ok(()) = self.leave.changed() => Happened::Leave,
            () = sleep_until(distrust_at) => Happened::Distrust,
            () = sleep_until(wakeup.mono.map(|mono| self.clock.instant(mono))) => Happened::Time,
            () = sleep_for_wall(wakeup.wall, now) => Happened::Time,
            Ok(()) = self.clock_steps.changed() => Happened::Time,
        }
    }

    /// Says why, if the job is over.
    fn handle(&mut self, happened: Happened) -> Option<StopReason> {
        match happened {
            Happened::Link => self.follow_link(),
            Happened::Watch(event) => self.watched(event),
            Happened::Committed(session, slot, result) => self.committed(session, slot, result),
            Happened::Ended(Ended::Item { round, item, end }) => {
                let End { outcome, output } = end;
                self.step(Input::ItemFinished { round, item, outcome, output })
            }
            Happened::Ended(Ended::Hook { round, hook, error }) => {
                self.step(Input::HookFinished { round, hook, error })
            }
            Happened::Leave => {
                let grace = (*self.leave.borrow_and_update())?;
                self.step(Input::Leave { grace })
            }
            Happened::Distrust => self.distrust(),
            Happened::Time => self.step(Input::Tick),
        }
    }

    fn follow_link(&mut self) -> Option<StopReason> {
        self.connection = self.connections.borrow_and_update().clone();
        self.follow();
        self.resync = false;
        None
    }

    /// Begins to watch anew.
    fn follow(&mut self) {
        self.watch = self.connection.as_ref().map(|it| it.session.watch(&self.root));
        self.focus = None;
        self.refocus();
    }

    /// Follows no more than the coordinator needs, where following costs something.
    fn refocus(&mut self) {
        let Some(watch) = self.watch.as_mut().filter(|it| it.is_focusable()) else { return };
        let wanted = self.coordinator.focus();
        if self.focus.as_ref() != Some(&wanted) {
            watch.set_focus(wanted.clone());
            self.focus = Some(wanted);
        }
    }

    fn watched(&mut self, event: WatchEvent) -> Option<StopReason> {
        let connection = self.connection.clone()?;
        match event {
            WatchEvent::Snapshot(_) if connection.session.trusted_for().is_zero() => {
                self.resync = true; // It lay about while we stood still.
                None
            }
            WatchEvent::Snapshot(nodes) => {
                (self.distrust_at, self.distrusts) = (None, false);
                let same_session = self.known_session == connection.number;
                self.known_session = connection.number;
                self.step(Input::Connected { me: connection.id.to_string(), nodes, same_session })
            }
            WatchEvent::Changed(changes) => self.step(Input::Changed(changes)),
            WatchEvent::Sees(focus) => self.step(Input::Sees(focus)),
            WatchEvent::Suspended => {
                self.distrust_at = Some(Instant::now() + connection.session.trusted_for());
                self.step(Input::Suspended)
            }
            WatchEvent::Ended => {
                self.watch = None;
                self.link.report_ended(connection.number);
                self.step(Input::Suspended).or_else(|| self.distrust())
            }
        }
    }

    /// The changes that decided a transaction were handed to the watch before its answer came: they go first.
    fn committed(&mut self, session: u64, slot: Slot, result: Result<(), CommitError>) -> Option<StopReason> {
        while let Some(event) = self.watch.as_mut().and_then(Watch::try_next) {
            if let Some(reason) = self.watched(event) {
                return Some(reason);
            }
        }
        if session != self.known_session {
            return None;
        }
        let verdict = match result {
            Ok(()) => Verdict::Done,
            Err(CommitError::Conflict { path }) => {
                tracing::debug!(job = &*self.job, ?slot, path, "looking again");
                Verdict::Refused
            }
            // The watch will say that the session has ended.
            Err(CommitError::SessionEnded) => return None,
            Err(error @ CommitError::Unknown(_)) => {
                tracing::warn!(job = &*self.job, ?slot, "registry: {error}");
                Verdict::Unknown
            }
            // Who cannot take part at all says so; rights that are taken away later may come back.
            Err(error @ CommitError::Denied { .. }) if self.status.borrow().phase == Phase::Starting => {
                return Some(StopReason::Denied(error.to_string()));
            }
            // It was not done. Trying again at once would not help.
            Err(
                error @ (CommitError::TooLarge { .. } | CommitError::Denied { .. } | CommitError::Invalid(_)),
            ) => {
                tracing::error!(job = &*self.job, ?slot, "registry: {error}");
                Verdict::Refused
            }
        };
        self.step(Input::Settled(slot, verdict))
    }

    /// A process that stood still wakes up to answers that prove nothing: before any of them is acted on, the
    /// session must still be one to be trusted. If it stands after all, reading it anew will show.
    fn look_at_lease(&mut self) -> Option<StopReason> {
        let connection = self.connection.as_ref().filter(|it| it.number == self.known_session)?;
        if self.distrusts || !connection.session.trusted_for().is_zero() {
            return None;
        }
        self.resync = true;
        self.distrust()
    }

    fn distrust(&mut self) -> Option<StopReason> {
        self.distrust_at = None;
        match std::mem::replace(&mut self.distrusts, true) {
            true => None,
            false => self.feed(Input::Distrusted),
        }
    }

    fn step(&mut self, input: Input) -> Option<StopReason> {
        self.look_at_lease().or_else(|| self.feed(input))
    }

    fn feed(&mut self, input: Input) -> Option<StopReason> {
        let mut effects = Vec::new();
        let now = self.clock.now();
        // There are many of these, and none of them changes what must be followed.
        let an_item_ended = matches!(input, Input::ItemFinished { .. });
        // It ended now, and not when the next fire was asked for.
        let told = if an_item_ended { now } else { self.ahead(now) };
        self.coordinator.step(told, input, &mut effects);
        if !an_item_ended {
            self.refocus();
        }
        let ended = effects.into_iter().fold(None, |ended, effect| ended.or(self.perform(effect, now)));
        self.tell_standing();
        ended
    }

    /// The time by which fires are asked for. While something runs it is the real one: what ends just before the next
    /// fire has not missed it. Who is to compare clocks, or to call something before a round, is not confused.
    fn ahead(&self, now: Now) -> Now {
        let compares = self.coordinator.plan().is_none_or(|it| it.spec.max_time_diff_seconds >= 0);
        if self.hookless && !compares && self.executor.is_idle() { self.lead.ahead(now) } else { now }
    }

    fn tell_standing(&self) {
        let stands = self.coordinator.stands();
        let told = self.status.send_if_modified(|it| std::mem::replace(&mut it.stands, stands) != stands);
        if told {
            self.recorder.stands(&self.job, stands);
        }
    }

    fn perform(&mut self, effect: Effect, now: Now) -> Option<StopReason> {
        match effect {
            Effect::Commit { slot, ops } => self.commit(slot, ops),
            Effect::Run(order) => {
                let plan = self.coordinator.plan().expect("an order comes from a plan");
                let (may_begin, offsets) = (self.may_begin(), self.offsets(&plan.spec));
                if let Some(fire) = order.nominal.filter(|_| order.source == Source::Schedule) {
                    let took = self.ahead(now).wall.duration_since(fire);
                    self.lead.learn(Duration::try_from(took).unwrap_or_default());
                }
                let start = order.nominal.and_then(|fire| self.starts.of(fire, now));
                self.executor.start(order, &plan.spec, &may_begin, &offsets, start.as_ref());
            }
            Effect::Hook(order) => self.executor.call(order),
            Effect::Yield { round } => self.executor.tell_to_yield(round),
            Effect::Cancel { round } => self.executor.cancel(round),
            Effect::Resync => self.resync = true,
            Effect::Record(event) => self.record(event, now),
            Effect::Stop(reason) => return Some(reason),
        }
        None
    }

    /// What was granted may begin for as long as the session can be trusted.
    fn may_begin(&self) -> MayBegin {
        match self.connection.as_ref().filter(|it| it.number == self.known_session) {
            Some(connection) => {
                let session = connection.session.clone();
                Arc::new(move || !session.trusted_for().is_zero())
            }
            None => Arc::new(|| false),
        }
    }

    /// Offsets are written in the session in which the round was claimed, or not at all.
    fn offsets(&self, spec: &JobSpec) -> Arc<dyn OffsetStore> {
        let connection = self.connection.as_ref().filter(|it| it.number == self.known_session);
        match connection {
            _ if !spec.monitor_execution => Arc::new(NoOffsets(OffsetError::NotMonitored)),
            None => Arc::new(NoOffsets(OffsetError::Fenced)),
            Some(Connection { session, id, .. }) => {
                let (session, root, me) = (session.clone(), self.root.clone(), id.clone());
                Arc::new(RegistryOffsets { session, root, me })
            }
        }
    }

    fn commit(&mut self, slot: Slot, ops: Vec<Op>) {
        let Some(connection) = self.connection.clone() else { return };
        let root = self.root.clone();
        self.commits.push(Box::pin(async move {
            let result = connection.session.commit(&root, ops).await;
            (connection.number, slot, result)
        }));
    }

    /// Hands a failure to the job's error handlers. It does not wait for them.
    fn fail(&mut self, failure: &Failure) {
        self.reporter.handle(self.coordinator.plan().map(|plan| &plan.spec), failure);
    }

    fn record(&mut self, event: Event, now: Now) {
        if matches!(event, Event::Registered { .. } | Event::ConfigChanged) {
            let plan = self.coordinator.plan();
            let (schedule, words) = (plan.and_then(|it| it.schedule.clone()), plan.and_then(Plan::describe));
            self.status.send_modify(|it| {
                (it.phase, it.schedule, it.words) = (Phase::Registered, schedule, words);
            });
        }
        if let Some(failure) = failure_of(&self.job, &event, now) {
            self.fail(&failure);
        }
        if let Some(connection) = &self.connection {
            self.me = connection.id.clone();
        }
        let (job, instance, next_fire) = (self.job.clone(), self.me.clone(), self.coordinator.next_fire());
        // What was asked for early begins in time.
        let at = match &event {
            Event::RoundStarted { nominal: Some(fire), .. } if !Lead::left(*fire, now).is_zero() => *fire,
            _ => now.wall,
        };
        self.recorder.record(Record { at, job, instance, event, next_fire });
    }
}

/// What error handlers are told of an event.
fn failure_of(job: &Arc<str>, event: &Event, now: Now) -> Option<Failure> {
    let (task_id, item, message) = match event {
        Event::ItemFinished { task_id, item, outcome: Outcome::Failed(error), .. } => {
            (task_id, Some(*item), error.clone())
        }
        Event::HookFailed { task_id, hook, error } => (task_id, None, format!("{hook} failed: {error}")),
        _ => return None,
    };
    Some(Failure::new(job.clone(), item, Some(task_id), now.wall, &message))
}

/// Removes what says that this instance takes part in the job, while its session goes on for other jobs.
async fn clean_up(connection: &Connection, root: &str) {
    let Ok(nodes) = connection.session.read(root).await else { return };
    let ours = View::new(&nodes).nodes_of(&connection.id);
    let gone: Vec<Op> = ours.iter().map(Node::delete).collect();
    if let Err(error) = connection.session.commit(root, gone).await {
        tracing::error!("{root} still counts this instance, until its session ends: {error}");
    }
}

async fn next_event(watch: Option<&mut Watch>) -> WatchEvent {
    match watch {
        Some(watch) => watch.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn sleep_for_wall(at: Option<jiff::Timestamp>, now: Now) {
    match at {
        Some(at) => {
            let left = at.duration_since(now.wall);
            tokio::time::sleep(Duration::try_from(left).unwrap_or(Duration::ZERO)).await;
        }
        None => std::future::pending().await,
    }
}
