//! Quartz cron expressions in Rust.

mod calendar;
mod cron;
mod describe;
mod error;
mod parse;
mod schedule;
mod spell;
mod unix;
mod zone;

pub use cron::Cron;
pub use error::{Field, ParseError};
pub use schedule::{DstPolicy, Fold, Gap, Schedule};
pub use zone::{Zone, ZoneError};
