//! A session and the task behind it: it keeps a connection, and tries for another when that is lost, until
//! the server says that the session is over.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::connection::{Connection, Traffic};
use super::machine::{Command, Machine, Trouble, WatchId};
use super::mirror::Shared;
use super::settings::{Secret, Settings};
use super::wire::{self, Acl, Ticket, Welcome};
use crate::registry::feed::Next;
use crate::registry::{CommitError, Entry, Focus, Op, RegistryError, Session, Watch, WatchEvent, is_path};

/// How many commands wait for the task, and how many requests for the server.
const COMMANDS_MAX: usize = 256;
const REQUESTS_MAX: usize = 1024;
/// How long to wait for the answer to a goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

/// A session of a ZooKeeper ensemble.
pub(super) struct ZooKeeperSession {
    commands: mpsc::Sender<Order>,
    errands: Arc<Errands>,
    vitals: Arc<Vitals>,
}

/// Until when a goodbye may be answered, and who waits for it.
type Farewell = (Instant, oneshot::Sender<()>);

enum Order {
    Do(Command),
    Close(oneshot::Sender<()>),
}

/// What everybody may know of a session.
struct Vitals {
    state: Mutex<Vital>,
}

struct Vital {
    /// `None` when it has ended.
    timeout: Option<Duration>,
    /// When the last request was sent that has been answered.
    confirmed: Instant,
}

impl Vitals {
    fn lock(&self) -> MutexGuard<'_, Vital> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner) // Nothing panics while it is held.
    }

    fn has_ended(&self) -> bool {
        self.lock().timeout.is_none()
    }
}

/// What watches want of the task. There is one entry for a watch, however often it changes its mind.
struct Errands {
    list: Mutex<List>,
    wake: Notify,
    last: AtomicU64,
}

struct List {
    open: bool,
    watches: BTreeMap<WatchId, Errand>,
}

#[derive(Default)]
struct Errand {
    begin: Option<(String, Arc<Shared>)>,
    focus: Option<Focus>,
    over: bool,
}

impl Errands {
    fn leave(&self, id: WatchId, change: impl FnOnce(&mut Errand)) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.open {
            change(list.watches.entry(id).or_default());
            self.wake.notify_one();
        }
        list.open
    }

    fn take(&self) -> BTreeMap<WatchId, Errand> {
        std::mem::take(&mut self.list.lock().unwrap_or_else(PoisonError::into_inner).watches)
    }

    fn close(&self) -> BTreeMap<WatchId, Errand> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.open = false;
        std::mem::take(&mut list.watches)
    }
}

/// How sessions are begun.
pub(super) struct Dialer {
    pub(super) settings: Arc<Settings>,
    pub(super) secret: Option<Secret>,
    pub(super) tls: Option<TlsConnector>,
}

impl Dialer {
    /// Begins a session, or says why that was not possible in the time that is given.
    pub(super) async fn connect(self: Arc<Dialer>) -> Result<ZooKeeperSession, RegistryError> {
        let deadline = Instant::now() + self.settings.patience();
        let mut last = "no answer".to_owned();
        let mut task = Task::new(self.clone());
        let begin = async {
            let mut pause = Pause::new(&self.settings);
            loop {
                for _ in 0..self.settings.servers.len() {
                    match task.begin().await {
                        Ok(connection) => return Ok(connection),
                        Err(Trouble::TooOld) => {
                            let why = format!(
                                "ZooKeeper at {} is older than 3.6, the first with persistent recursive watches",
                                self.settings.place()
                            );
                            return Err(RegistryError::Unsupported(why));
                        }
                        Err(Trouble::Denied(why)) => return Err(RegistryError::Denied(why)),
                        Err(Trouble::Lost(why)) => last = why,
                        Err(Trouble::Expired | Trouble::Closed) => last = "the session was refused".into(),
                    }
                }
                tokio::time::sleep(pause.next()).await;
            }
        };
        match tokio::time::timeout_at(deadline, begin).await {
            Ok(connection) => {
                let connection = connection?;
                let (commands, orders) = mpsc::channel(COMMANDS_MAX);
                let session =
                    ZooKeeperSession { commands, errands: task.errands.clone(), vitals: task.vitals.clone() };
                tokio::spawn(task.run(connection, orders));
                Ok(session)
            }
            Err(_) => Err(RegistryError::Unreachable(format!(
                "ZooKeeper at {} does not serve us within {:?} ({last}): check the addresses, and that a majority of the servers runs",
                self.settings.place(),
                self.settings.patience(),
            ))),
        }
    }
}

/// Waits between attempts, longer each time.
struct Pause {
    next: Duration,
    most: Duration,
}

impl Pause {
    fn new(settings: &Settings) -> Pause {
        Pause { next: settings.base_sleep.min(settings.max_sleep), most: settings.max_sleep }
    }

    fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = self.most.min(self.next * 2);
        // So that the members of a fleet do not all come at once.
        pause / 2 + pause.mul_f64(random() * 0.5)
    }
}

/// From 0 to 1. The standard library seeds its hashers at random.
fn random() -> f64 {
    let random = std::hash::RandomState::new().build_hasher().finish() >> 32;
    f64::from(u32::try_from(random).unwrap_or_default()) / f64::from(u32::MAX)
}

struct Task {
    dialer: Arc<Dialer>,
    machine: Machine,
    errands: Arc<Errands>,
    vitals: Arc<Vitals>,
    ticket: Ticket,
    timeout: Duration,
    next_server: usize,
}

/// A server that has answered.
struct Called {
    connection: Connection,
    welcome: Welcome,
    asked: Instant,
}

/// Why the task stops.
struct Over;

impl Task {
    fn new(dialer: Arc<Dialer>) -> Task {
        let now = Instant::now();
        let acl = if dialer.secret.is_some() { Acl::Creator } else { Acl::Open };
        let machine = Machine::new(dialer.settings.namespace.clone(), acl, now);
        let list = Mutex::new(List { open: true, watches: BTreeMap::new() });
        let vital = Vital { timeout: Some(dialer.settings.session_timeout), confirmed: now };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is small and positive"
        )]
        let next_server = (random() * dialer.settings.servers.len() as f64) as usize;
        Task {
            timeout: dialer.settings.session_timeout,
            dialer,
            machine,
            errands: Arc::new(Errands { list, wake: Notify::new(), last: AtomicU64::new(0) }),
            vitals: Arc::new(Vitals { state: Mutex::new(vital) }),
            ticket: Ticket::default(),
            next_server,
        }
    }

    /// A session, and the server's answers to the first questions.
    async fn begin(&mut self) -> Result<Connection, Trouble> {
        self.ticket = Ticket::default();
        self.machine.disconnect("");
        let called = self.call().await?;
        let mut connection = self.greet(called);
        while !self.machine.is_welcome() {
            connection.exchange(&mut self.machine.out).await.map_err(|it| lost(&it))?;
            self.take_in(&mut connection)?;
        }
        Ok(connection)
    }

    /// Calls the next server, for the session that there is or for a new one.
    fn call(&mut self) -> impl Future<Output = Result<Called, Trouble>> + Send + use<> {
        let (dialer, ticket, zxid) = (self.dialer.clone(), self.ticket.clone(), self.machine.last_zxid);
        let settings = dialer.settings.clone();
        let server = settings.servers[self.next_server % settings.servers.len()].clone();
        self.next_server = (self.next_server + 1) % settings.servers.len();
        let limit = match ticket.id {
            0 => settings.connection_timeout,
            _ => settings.connection_timeout.min(self.timeout / 3),
        };
        async move {
            let timeout_ms = i32::try_from(settings.session_timeout.as_millis()).unwrap_or(i32::MAX);
            let open = Connection::open(&server, dialer.tls.as_ref(), &ticket, zxid, timeout_ms);
            let told = |why: &dyn std::fmt::Display| Trouble::Lost(format!("{server}: {why}"));
            let (connection, welcome, asked) = match tokio::time::timeout(limit, open).await {
                Ok(opened) => opened.map_err(|it| told(&it))?,
                Err(_) => return Err(told(&"it does not answer")),
            };
            match welcome.timeout_ms {
                ..=0 => Err(Trouble::Expired),
                _ if welcome.read_only => Err(told(&"it is read-only, without a majority of the ensemble")),
                _ => Ok(Called { connection, welcome, asked }),
            }
        }
    }

    /// A server has answered: the session is this one.
    fn greet(&mut self, called: Called) -> Connection {
        self.timeout = Duration::from_millis(u64::try_from(called.welcome.timeout_ms).unwrap_or_default());
        self.ticket = called.welcome.ticket;
        let auth = self.dialer.secret.as_ref().map(|it| wire::auth("digest", &it.0));
        self.machine.connect(self.ticket.id, auth, called.asked, Instant::now());
        *self.vitals.lock() = Vital { timeout: Some(self.timeout), confirmed: called.asked };
        called.connection
    }

    async fn run(mut self, connection: Connection, mut orders: mpsc::Receiver<Order>) {
        let mut connection = Some(connection);
        loop {
            let served = match connection.take() {
                Some(connection) => self.serve(connection, &mut orders).await,
                None => match self.reconnect(&mut orders).await {
                    Ok(fresh) => {
                        connection = Some(fresh);
                        continue;
                    }
                    Err(Over) => return,
                },
            };
            match served {
                Ok(()) | Err(Trouble::Expired | Trouble::Closed) => return,
                Err(Trouble::Lost(why) | Trouble::Denied(why)) => {
                    tracing::warn!("registry: the connection to ZooKeeper is lost: {why}");
                    self.machine.disconnect(&why);
                }
                Err(Trouble::TooOld) => self.machine.disconnect("the server is too old"),
            }
        }
    }

    /// Until the connection is lost or the session is over; `Ok` if nobody needs it any more.
    async fn serve(
        &mut self,
        mut connection: Connection,
        orders: &mut mpsc::Receiver<Order>,
    ) -> Result<(), Trouble> {
        let now = Instant::now();
        let (mut heard, mut spoke) = (now, now);
        let mut farewell: Option<Farewell> = None;
        loop {
            self.run_errands();
            let now = Instant::now();
            self.machine.flush(now);
            self.vitals.lock().confirmed = self.machine.confirmed;
            if !self.machine.out.is_empty() {
                spoke = now;
            }
            // The server hears of us at least every sixth of the timeout, and we of it before a third has
            // passed: enough of it is left for another connection while the session can still be trusted.
            let silent_at = farewell.as_ref().map_or(heard + self.timeout / 3, |it| it.0);
            let busy = self.machine.load() >= REQUESTS_MAX || farewell.is_some();
            tokio::select! {
                traffic = connection.exchange(&mut self.machine.out) => match traffic.map_err(|it| lost(&it))? {
                    Traffic::Read => {
                        heard = Instant::now();
                        self.take_in(&mut connection)?;
                    }
                    Traffic::Wrote => {}
                },
                order = orders.recv(), if !busy => match order {
                    None => return Ok(()),
                    Some(order) => {
                        // Jobs that fire together ask together: those that are about to go first.
                        tokio::task::yield_now().await;
                        farewell = self.take_orders(order, orders);
                    }
                },
                () = self.errands.wake.notified() => {}
                () = tokio::time::sleep_until(spoke + self.timeout / 6) => {
                    self.machine.ping(Instant::now(), self.timeout);
                }
                () = tokio::time::sleep_until(silent_at) => {
                    return Err(Trouble::Lost(format!("the server has said nothing for {:?}", heard.elapsed())));
                }
            }
        }
    }

    /// Takes an order and those that wait behind it. Gives what is to be known of a goodbye, if one of them was
    /// to say it.
    fn take_orders(&mut self, first: Order, orders: &mut mpsc::Receiver<Order>) -> Option<Farewell> {
        self.run_errands(); // A watch that began before must see it.
        let (now, mut next) = (Instant::now(), Some(first));
        while let Some(order) = next {
            match order {
                Order::Do(command) => self.machine.command(command, now),
                Order::Close(done) => {
                    self.finish();
                    self.machine.say_goodbye(now);
                    return Some((now + GOODBYE.min(self.timeout), done));
                }
            }
            next = if self.machine.load() < REQUESTS_MAX { orders.try_recv().ok() } else { None };
        }
        None
    }

    fn take_in(&mut self, connection: &mut Connection) -> Result<(), Trouble> {
        let now = Instant::now();
        while let Some(packet) = connection.take().map_err(|it| lost(&it))? {
            self.machine.packet(packet, now)?;
        }
        Ok(())
    }

    /// Tries one server after the other, until one takes the session up or says that it is over.
    async fn reconnect(&mut self, orders: &mut mpsc::Receiver<Order>) -> Result<Connection, Over> {
        let mut pause = Pause::new(&self.dialer.settings);
        loop {
            for _ in 0..self.dialer.settings.servers.len() {
                let call = self.call();
                match self.listen(orders, call).await? {
                    Ok(called) => return Ok(self.greet(called)),
                    Err(Trouble::Expired) => return Err(Over),
                    Err(trouble) => tracing::debug!("registry: {trouble:?}"),
                }
            }
            let until = Instant::now() + pause.next();
            self.listen(orders, tokio::time::sleep_until(until)).await?;
        }
    }

    /// Waits for something, and answers meanwhile that there is no connection.
    async fn listen<T>(
        &mut self,
        orders: &mut mpsc::Receiver<Order>,
        what: impl Future<Output = T>,
    ) -> Result<T, Over> {
        tokio::pin!(what);
        loop {
            self.run_errands();
            tokio::select! {
                result = &mut what => return Ok(result),
                order = orders.recv() => match order {
                    None => return Err(Over),
                    Some(Order::Do(command)) => self.machine.command(command, Instant::now()),
                    // It cannot be heard: the server will give the session up in time.
                    Some(Order::Close(done)) => {
                        self.finish();
                        let _ = done.send(());
                        return Err(Over);
                    }
                },
                () = self.errands.wake.notified() => {}
            }
        }
    }

    fn run_errands(&mut self) {
        for (id, errand) in self.errands.take() {
            let focus = errand.focus;
            match errand.begin {
                Some(_) if errand.over => {}
                Some((root, shared)) => {
                    self.machine.watch(id, &root, shared, focus);
                }
                None if errand.over => self.machine.unwatch(id),
                None => {
                    if let Some(focus) = focus {
                        self.machine.set_focus(id, focus);
                    }
                }
            }
        }
    }

    /// From now on the session has ended, for everybody here.
    fn finish(&mut self) {
        self.vitals.lock().timeout = None;
        for errand in self.errands.close().into_values() {
            if let Some((_, shared)) = errand.begin {
                shared.feed.end();
            }
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.finish();
        self.machine.end();
    }
}

fn lost(error: &io::Error) -> Trouble {
    Trouble::Lost(error.to_string())
}

impl ZooKeeperSession {
    async fn ask<T>(&self, command: Command, reply: oneshot::Receiver<T>) -> Option<T> {
        if self.vitals.has_ended() {
            return None;
        }
        self.commands.send(Order::Do(command)).await.ok()?;
        reply.await.ok()
    }
}

#[async_trait]
impl Session for ZooKeeperSession {
    fn watch(&self, root: &str) -> Watch {
        assert!(is_path(root), "`{root}` is not a root: it is empty, or begins with `/` and does not end so");
        let id = self.errands.last.fetch_add(1, Ordering::Relaxed);
        let shared = Arc::new(Shared::new());
        let begin = (root.to_owned(), shared.clone());
        if !self.errands.leave(id, |it| it.begin = Some(begin)) {
            shared.feed.end();
        }
        let aware = Arc::new(AtomicBool::new(false));
        let (errands, now_aware) = (self.errands.clone(), aware.clone());
        let mut watcher =
            Watcher { id, shared, errands: self.errands.clone(), aware, told: None, next: Vec::new() };
        Watch::from_fn(move |cx| watcher.poll(cx)).focusing(move |focus| {
            now_aware.store(true, Ordering::Release);
            errands.leave(id, |it| it.focus = Some(focus));
        })
    }

    async fn commit(&self, root: &str, ops: Vec<Op>) -> Result<(), CommitError> {
        for path in std::iter::once(root).chain(ops.iter().map(Op::path)) {
            if !is_path(path) {
                return Err(CommitError::Invalid(RegistryError::BadPath { path: path.into() }.to_string()));
            }
        }
        let (reply, answer) = oneshot::channel();
        match self.ask(Command::Commit { root: root.to_owned(), ops, reply }, answer).await {
            Some(answer) => answer,
            None if self.vitals.has_ended() => Err(CommitError::SessionEnded),
            None => Err(CommitError::Unknown("the session's task is gone".into())),
        }
    }

    async fn read(&self, root: &str) -> Result<Vec<Entry>, RegistryError> {
        check_root(root)?;
        let (reply, answer) = oneshot::channel();
        let answer = self.ask(Command::Read { root: root.to_owned(), reply }, answer).await;
        answer.unwrap_or(Err(RegistryError::SessionEnded))
    }

    async fn children(&self, root: &str) -> Result<Vec<String>, RegistryError> {
        check_root(root)?;
        let (reply, answer) = oneshot::channel();
        let answer = self.ask(Command::Children { root: root.to_owned(), reply }, answer).await;
        answer.unwrap_or(Err(RegistryError::SessionEnded))
    }

    fn trusted_for(&self) -> Duration {
        let vital = self.vitals.lock();
        let Some(timeout) = vital.timeout else { return Duration::ZERO };
        (timeout * 2 / 3).saturating_sub(vital.confirmed.elapsed())
    }

    async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.commands.send(Order::Close(done)).await.is_ok() {
            // An error means that the task is gone, and the session with it.
            let _ = closed.await;
        }
    }
}

fn check_root(root: &str) -> Result<(), RegistryError> {
    if is_path(root) { Ok(()) } else { Err(RegistryError::BadPath { path: root.to_owned() }) }
}

/// The watcher's side of a watch.
struct Watcher {
    id: WatchId,
    shared: Arc<Shared>,
    errands: Arc<Errands>,
    /// Somebody has asked for a focus, and understands what is said about it.
    aware: Arc<AtomicBool>,
    /// What the watcher was told it sees.
    told: Option<Focus>,
    /// What comes next, last first.
    next: Vec<WatchEvent>,
}

impl Watcher {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<WatchEvent> {
        loop {
            if let Some(event) = self.next.pop() {
                return Poll::Ready(event);
            }
            match self.shared.feed.poll(cx) {
                Next::Event(WatchEvent::Sees(focus)) => {
                    self.told = Some(focus.clone());
                    return Poll::Ready(WatchEvent::Sees(focus));
                }
                Next::Event(event) => return Poll::Ready(event),
                Next::Nothing => return Poll::Pending,
                Next::Snapshot => {
                    if let Some((focus, entries)) = self.shared.snapshot() {
                        self.tell(focus, entries);
                    }
                }
            }
        }
    }

    /// Whoever sees more from now on must not believe so before the snapshot, and whoever sees less must not
    /// believe after it to see more.
    fn tell(&mut self, focus: Focus, entries: Vec<Entry>) {
        if !self.aware.load(Ordering::Acquire) {
            self.next.push(WatchEvent::Snapshot(entries));
            return;
        }
        let both = match &self.told {
            None => Focus::Items([].into()),
            Some(told) => super::mirror::intersection(told, &focus),
        };
        self.next.extend((both != focus).then(|| WatchEvent::Sees(focus.clone())));
        self.next.push(WatchEvent::Snapshot(entries));
        self.next.extend((self.told.as_ref() != Some(&both)).then_some(WatchEvent::Sees(both)));
        self.told = Some(focus);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.errands.leave(self.id, |it| it.over = true);
    }
}
