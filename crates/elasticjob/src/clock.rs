//! The time that drivers work by.

use elasticjob_core::coord::Now;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time of day, and the time since the worker started. Tests let both follow tokio's clock, which
/// they can move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    fixed: Option<Timestamp>,
}

impl Clock {
    pub(crate) fn system() -> Clock {
        Clock { started: Instant::now(), fixed: None }
    }

    /// It is `start` now, and as much later as tokio says.
    pub(crate) fn following_tokio(start: Timestamp) -> Clock {
        Clock { started: Instant::now(), fixed: Some(start) }
    }

    pub(crate) fn now(&self) -> Now {
        let mono = self.started.elapsed();
        let wall = match self.fixed {
            Some(start) => later(start, SignedDuration::try_from(mono).unwrap_or(SignedDuration::MAX)),
            None => Timestamp::now(),
        };
        Now { wall, mono }
    }

    /// The moment of tokio's clock at which `mono` will have passed.
    pub(crate) fn instant(&self, mono: std::time::Duration) -> Instant {
        self.started + mono
    }
}

fn later(start: Timestamp, by: SignedDuration) -> Timestamp {
    start.saturating_add(by).unwrap_or(Timestamp::MAX)
}
