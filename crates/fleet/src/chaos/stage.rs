//! Where a run takes place: the ensemble, the network of each worker, and the workers.

use std::io;
use std::time::Duration;

use elasticjob_testkit::proxy::Weather;
use elasticjob_testkit::{Ensemble, Proxy, ZooKeeper};
use tokio::task::JoinSet;

use super::plan::{Disturbance, Order, Step};
use super::{NAMESPACE, Options, SESSION_TIMEOUT, jobs, operator};
use crate::ledger;
use crate::line::{Deed, Fault, Line, What};
use crate::log::Log;
use crate::process::{Process, Program};
use crate::store::Store;

/// Nobody waits longer than this for a process that was killed, or for the first of a fleet.
const LIMIT: Duration = Duration::from_secs(60);

pub(super) struct Stage {
    options: Options,
    log: Log,
    workers: Vec<Worker>,
    /// Always there, but for when a thread has it that waits for servers.
    ensemble: Option<Ensemble>,
    /// The server that is down alone.
    down: Option<usize>,
    /// Servers at which faults are under way.
    ailing: Vec<Fault>,
    url: String,
    orders: JoinSet<()>,
    _store: Store,
}

/// A place for one process at a time, behind a network of its own.
struct Worker {
    number: usize,
    proxies: Vec<Proxy>,
    generation: usize,
    process: Option<Process>,
    paused: bool,
    leaving: bool,
    disturbed: Option<Fault>,
}

impl Worker {
    fn name(&self) -> String {
        format!("w{}.{}", self.number, self.generation)
    }
}

impl Stage {
    pub(super) async fn open(options: &Options) -> io::Result<Stage> {
        if options.home.exists() {
            std::fs::remove_dir_all(&options.home)?;
        }
        std::fs::create_dir_all(&options.home)?;
        let ensemble = tokio::task::spawn_blocking(Ensemble::start).await?;
        let url = ensemble.url(NAMESPACE, SETTINGS);
        let mut workers = Vec::new();
        for number in 0..options.workers {
            let mut proxies = Vec::new();
            for server in &ensemble.servers {
                proxies.push(Proxy::start(server.port()).await);
            }
            let (generation, process) = (0, None);
            let (paused, leaving, disturbed) = (false, false, None);
            workers.push(Worker { number, proxies, generation, process, paused, leaving, disturbed });
        }
        let mut stage = Stage {
            options: options.clone(),
            log: Log::copied_to(&options.home.join("log.jsonl"))?,
            workers,
            ensemble: Some(ensemble),
            down: None,
            ailing: Vec::new(),
            url,
            orders: JoinSet::new(),
            _store: Store::start(&options.home.join("store"))?,
        };
        stage.assemble().await?;
        Ok(stage)
    }

    async fn assemble(&mut self) -> io::Result<()> {
        let Options { seed, workers, seconds, .. } = self.options;
        self.say(Deed::Began { seed, workers, seconds });
        for worker in 0..self.workers.len() {
            self.start(worker)?;
        }
        let all = self.workers.len();
        let ready = move |lines: &[Line]| {
            lines.iter().filter(|it| matches!(it.what, What::Ready { .. })).count() == all
        };
        match self.log.until(LIMIT, ready).await {
            true => Ok(()),
            false => Err(io::Error::other(format!("the fleet does not assemble within {LIMIT:?}"))),
        }
    }

    fn say(&self, deed: Deed) {
        self.log.add(Line::now("chaos", What::Done(deed)));
    }

    fn fault(&self, fault: Fault, on: bool) {
        self.say(Deed::Fault { fault, on });
    }

    pub(super) async fn act(&mut self, step: Step) -> io::Result<()> {
        match step {
            Step::Kill(worker) => self.kill(worker).await?,
            Step::Leave(worker) => self.leave(worker)?,
            Step::Start(worker) => self.start(worker)?,
            Step::Pause(worker) => self.pause(worker)?,
            Step::Resume(worker) => self.resume(worker)?,
            Step::Disturb(worker, fault, disturbance) => self.disturb(worker, fault, disturbance),
            Step::Calm(worker, fault) => self.calm(worker, fault),
            Step::Break(worker) => self.workers[worker].proxies.iter().for_each(Proxy::break_connections),
            Step::Down(fault) => self.take_down(fault).await?,
            Step::Up(fault) => self.bring_up(fault).await?,
            Step::Operate(order) => self.operate(order),
            Step::Heal => self.heal().await?,
        }
        Ok(())
    }

    /// Starts a process where none runs.
    fn start(&mut self, number: usize) -> io::Result<()> {
        let worker = &mut self.workers[number];
        if worker.process.as_ref().is_some_and(|it| !it.has_ended()) {
            return Ok(());
        }
        worker.process = None;
        worker.generation += 1;
        worker.leaving = false;
        let ports: Vec<String> = worker.proxies.iter().map(|it| format!("127.0.0.1:{}", it.port())).collect();
        let url = format!("zookeeper://{}/{NAMESPACE}?{SETTINGS}", ports.join(","));
        let home = &self.options.home;
        let mut program = Program::new(&self.options.program)
            .args(["--registry", &url, "--process", &worker.name(), "--store"])
            .args([home.join("store")])
            .errors_to(home.join(format!("w{number}.stderr")));
        if let Some(mutant) = &self.options.mutant {
            program = program.args(["--mutant", mutant]);
        }
        for job in jobs() {
            program = program.args(["--job", &job.to_string()]);
        }
        worker.process = Some(Process::start(&program, &self.log)?);
        Ok(())
    }

    async fn kill(&mut self, number: usize) -> io::Result<()> {
        let worker = &mut self.workers[number];
        let Some(process) = worker.process.take().filter(|it| !it.has_ended()) else { return Ok(()) };
        let who = worker.name();
        worker.paused = false;
        self.fault(Fault::Crash, true);
        process.kill()?;
        if !process.ended(LIMIT).await {
            return Err(io::Error::other(format!("{who} does not die")));
        }
        self.say(Deed::Killed { who });
        self.fault(Fault::Crash, false);
        Ok(())
    }

    fn leave(&mut self, number: usize) -> io::Result<()> {
        let worker = &mut self.workers[number];
        let Some(process) = worker.process.as_ref().filter(|it| !it.has_ended()) else { return Ok(()) };
        process.terminate()?;
        worker.leaving = true;
        let who = worker.name();
        self.say(Deed::Leaving { who });
        Ok(())
    }

    fn pause(&mut self, number: usize) -> io::Result<()> {
        let worker = &mut self.workers[number];
        let Some(process) = worker.process.as_ref().filter(|it| !it.has_ended()) else { return Ok(()) };
        process.pause()?;
        worker.paused = true;
        let who = worker.name();
        self.fault(Fault::Pause, true);
        self.say(Deed::Paused { who });
        Ok(())
    }

    fn resume(&mut self, number: usize) -> io::Result<()> {
        let worker = &mut self.workers[number];
        if !std::mem::take(&mut worker.paused) {
            return Ok(());
        }
        if let Some(process) = &worker.process {
            process.resume()?;
        }
        let who = worker.name();
        self.say(Deed::Resumed { who });
        self.fault(Fault::Pause, false);
        Ok(())
    }

    fn disturb(&mut self, number: usize, fault: Fault, disturbance: Disturbance) {
        let worker = &mut self.workers[number];
        worker.disturbed = Some(fault);
        let weather = match disturbance {
            Disturbance::Cut => Weather::Cut,
            Disturbance::HalfOpen => Weather::HalfOpen,
            Disturbance::Deaf => Weather::Deaf,
            Disturbance::Slow(ms) => Weather::Slow(Duration::from_millis(ms)),
            Disturbance::Fair => Weather::Fair,
        };
        worker.proxies.iter().for_each(|it| it.set(weather));
        self.fault(fault, true);
    }

    fn calm(&mut self, number: usize, fault: Fault) {
        let worker = &mut self.workers[number];
        if worker.disturbed.take().is_some() {
            worker.proxies.iter().for_each(|it| it.set(Weather::Fair));
            self.fault(fault, false);
        }
    }

    async fn with_ensemble<T: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Ensemble) -> T + Send + 'static,
    ) -> io::Result<T> {
        let Some(mut ensemble) = self.ensemble.take() else { return Err(io::ErrorKind::NotFound.into()) };
        let done = tokio::task::spawn_blocking(move || {
            let done = act(&mut ensemble);
            (ensemble, done)
        });
        let (ensemble, done) = done.await?;
        self.ensemble = Some(ensemble);
        Ok(done)
    }

    async fn take_down(&mut self, fault: Fault) -> io::Result<()> {
        if self.down.is_some() || !self.ailing.is_empty() {
            return Ok(());
        }
        self.fault(fault, true);
        self.ailing.push(fault);
        self.down = self
            .with_ensemble(move |ensemble| {
                if fault == Fault::Ensemble {
                    ensemble.servers.iter_mut().for_each(ZooKeeper::kill);
                    return None;
                }
                let leader = ensemble.leader().unwrap_or_default();
                let victim = if fault == Fault::Leader { leader } else { (leader + 1) % 3 };
                ensemble.servers[victim].kill();
                Some(victim)
            })
            .await?;
        Ok(())
    }

    async fn bring_up(&mut self, fault: Fault) -> io::Result<()> {
        if !self.ailing.contains(&fault) {
            return Ok(());
        }
        self.with_ensemble(Ensemble::restart).await?;
        self.ailing.clear();
        self.down = None;
        self.fault(fault, false);
        Ok(())
    }

    fn operate(&mut self, order: Order) {
        let url = self.url.clone();
        while self.orders.try_join_next().is_some() {}
        self.orders.spawn(async move {
            if let Err(error) = operator::try_once(&url, &order).await {
                eprintln!("an order was not carried out: {error}");
            }
        });
    }

    /// Everything works from now on, and nobody who lives is restarted for it.
    async fn heal(&mut self) -> io::Result<()> {
        for fault in self.ailing.clone() {
            self.bring_up(fault).await?;
        }
        for number in 0..self.workers.len() {
            self.resume(number)?;
            if let Some(fault) = self.workers[number].disturbed {
                self.calm(number, fault);
            }
        }
        for number in 0..self.workers.len() {
            let worker = &self.workers[number];
            if let Some(process) = worker.process.as_ref().filter(|_| worker.leaving) {
                process.ended(LIMIT).await;
            }
            self.start(number)?;
        }
        while self.orders.join_next().await.is_some() {}
        let names: Vec<String> = jobs().into_iter().map(|it| it.name).collect();
        operator::enable_everything(&self.url, &names).await.map_err(io::Error::other)?;
        self.say(Deed::Healed);
        Ok(())
    }

    /// Ends everything, and completes the log with what the ensemble knows.
    pub(super) async fn close(mut self) -> io::Result<Log> {
        self.say(Deed::Over);
        let workers = std::mem::take(&mut self.workers);
        tokio::task::spawn_blocking(move || drop(workers)).await?;
        let lines = self
            .with_ensemble(|ensemble| {
                let folders: Vec<_> = ensemble.servers.iter().map(ZooKeeper::transactions).collect();
                ledger::read(folders.iter().map(AsRef::as_ref), NAMESPACE)
            })
            .await??;
        lines.into_iter().for_each(|it| self.log.add(it));
        if let Some(ensemble) = self.ensemble.take() {
            tokio::task::spawn_blocking(move || drop(ensemble)).await?;
        }
        Ok(self.log)
    }
}

/// How workers and operators talk to the ensemble.
const SETTINGS: &str = "session-timeout=5s&connection-timeout=2s&base-sleep=50ms&max-sleep=1s&max-retries=29";
const _: () = assert!(SESSION_TIMEOUT == 5_000, "as the settings say");
