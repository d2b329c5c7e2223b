//! A host's clocks: one that shows the time of day and can be wrong, one that only counts.

use std::time::Duration;

use elasticjob_core::coord::Now;
use jiff::{SignedDuration, Timestamp};

use crate::scenario::{ClockSetup, Ms};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    base: Timestamp,
    offset: i64,
    drift_ppm: i64,
    step: i64,
    stepped_at: Ms,
}

impl Clock {
    pub(crate) fn new(base: Timestamp, setup: ClockSetup) -> Clock {
        Clock { base, offset: setup.offset, drift_ppm: setup.drift_ppm, step: 0, stepped_at: 0 }
    }

    pub(crate) fn step(&mut self, by: i64, at: Ms) {
        self.step += by;
        self.stepped_at = at;
    }

    pub(crate) fn put_right(&mut self, at: Ms) {
        self.step = 0;
        self.stepped_at = at;
    }

    /// By how much it is off, but for what it always is.
    pub(crate) fn off(&self) -> i64 {
        self.step
    }

    pub(crate) fn stepped_at(&self) -> Ms {
        self.stepped_at
    }

    pub(crate) fn read(&self, at: Ms) -> Now {
        let wall = at.cast_signed() + self.offset + self.step + self.drift(at);
        Now { wall: self.base + SignedDuration::from_millis(wall), mono: self.mono(at) }
    }

    pub(crate) fn mono(&self, at: Ms) -> Duration {
        // Any fixed moment is as good as another; not zero, so that nothing relies on it.
        Duration::from_millis(1_000_000_u64.saturating_add_signed(at.cast_signed() + self.drift(at)))
    }

    fn drift(&self, at: Ms) -> i64 {
        at.cast_signed() * self.drift_ppm / 1_000_000
    }

    /// How much true time passes while this clock counts so much, rounded up.
    pub(crate) fn true_time(&self, counted: Duration) -> Ms {
        let ms = i64::try_from(counted.as_millis()).unwrap_or(i64::MAX / 4_000);
        (ms - ms * self.drift_ppm / 1_000_000 + 1).unsigned_abs()
    }
}
