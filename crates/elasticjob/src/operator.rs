//! What a worker opens for operators, if it is asked to: a status port, a dump port, a file of events, numbers.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use crate::error::Error;
use crate::events::{EventFile, EventLog, FileKeeper};
use crate::link::Link;
use crate::listen::ListenAt;
use crate::metrics::{MeteredRegistry, Metrics};
use crate::ops::DumpPort;
use crate::recorder::Recorder;
use crate::registry::Registry;
use crate::status::{Pages, Standing, StatusPort};

/// What was asked for. Nothing is open unless it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) status: Option<ListenAt>,
    pub(crate) dump: Option<ListenAt>,
    pub(crate) events: Option<EventFile>,
    pub(crate) metrics: Option<Metrics>,
}

/// What is open.
pub(crate) struct Opened {
    pub(crate) recorder: Recorder,
    metrics: Option<Metrics>,
    standing: Standing,
    status: Option<StatusPort>,
    dump_listener: Option<TcpListener>,
    dump: Option<DumpPort>,
    keeper: Option<FileKeeper>,
}

impl Wanted {
    /// Opens what does not need a session, before there is one: a port that is taken is no reason to join and leave
    /// a fleet, and who asks whether the process is well wants an answer while it waits for the registry.
    pub(crate) async fn open(&self) -> Result<Opened, Error> {
        let metrics = self.metrics.clone().or_else(|| self.status.map(|_| Metrics::new()));
        let events = EventLog::default();
        let recorder = Recorder::new(metrics.clone(), events.clone());
        let standing = Standing::default();
        let status = match bind("status port", self.status).await? {
            None => None,
            Some(listener) => {
                let metrics = metrics.clone().unwrap_or_default();
                let pages = Pages { metrics, events, standing: standing.clone() };
                Some(
                    StatusPort::open(listener, pages)
                        .map_err(|error| refused("status port", self.status, error))?,
                )
            }
        };
        let dump_listener = bind("dump port", self.dump).await?;
        let keep = |file: EventFile| {
            let path = file.path().to_owned();
            file.keep(recorder.reader()).map_err(|error| Error::EventFile { path, error })
        };
        let keeper = self.events.clone().map(keep).transpose()?;
        Ok(Opened { recorder, metrics, standing, status, dump_listener, dump: None, keeper })
    }
}

async fn bind(what: &'static str, at: Option<ListenAt>) -> Result<Option<TcpListener>, Error> {
    let Some(address) = at else { return Ok(None) };
    let bound = TcpListener::bind(address.0).await;
    bound.map(Some).map_err(|error| refused(what, at, error))
}

fn refused(what: &'static str, at: Option<ListenAt>, error: std::io::Error) -> Error {
    let address = at.map(|it| it.to_string()).unwrap_or_default();
    Error::Port { what, address, error }
}

impl Opened {
    /// The registry, with its requests counted if anybody counts.
    pub(crate) fn counted(&self, registry: Arc<dyn Registry>) -> Arc<dyn Registry> {
        match &self.metrics {
            Some(metrics) => Arc::new(MeteredRegistry::new(registry, metrics.clone())),
            None => registry,
        }
    }

    /// The numbers, if anybody counts.
    pub(crate) fn metrics(&self) -> Option<Metrics> {
        self.metrics.clone()
    }

    /// A job of the worker.
    pub(crate) fn know(&self, job: &Arc<str>) {
        if let Some(metrics) = &self.metrics {
            metrics.know(job);
        }
    }

    /// From now on there is a session to ask.
    pub(crate) fn follow(&mut self, link: &Link) -> Result<(), Error> {
        let Some(listener) = self.dump_listener.take() else { return Ok(()) };
        let opened = DumpPort::over(listener, link.clone());
        self.dump = Some(opened.map_err(|error| refused("dump port", None, error))?);
        Ok(())
    }

    pub(crate) fn standing(&self) -> &Standing {
        &self.standing
    }

    pub(crate) fn status_address(&self) -> Option<SocketAddr> {
        self.status.as_ref().map(StatusPort::address)
    }

    pub(crate) fn dump_address(&self) -> Option<SocketAddr> {
        self.dump.as_ref().map(DumpPort::address)
    }

    /// Writes what is left to write. Nobody must be recording any more.
    pub(crate) async fn close(self) {
        let Opened { recorder, keeper, .. } = self;
        drop(recorder);
        if let Some(keeper) = keeper {
            keeper.finish().await;
        }
    }
}
