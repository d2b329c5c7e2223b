//! Fleets of real worker processes: what they print, how they are started and hurt, and whether what they
//! did was right. Not published.
//!
//! A worker is any program that prints the [lines](mod@line) of its jobs: ours is the binary `fleet-worker`, and
//! a Java program can be another. A [`Process`] reads them into a [`Log`], which tests wait on; [`check`]
//! says what is wrong with a log. [`chaos`] hurts a fleet on an ensemble, by a plan that a seed decides, and
//! has the simulator's checker judge what was seen ([`history`]), sessions and orders by the ensemble's own
//! account ([`ledger`]).

pub mod chaos;
pub mod check;
pub mod history;
pub mod java;
pub mod job;
pub mod ledger;
pub mod line;
mod log;
mod process;
pub mod store;

pub use line::{Line, What};
pub use log::Log;
pub use process::{Process, Program};
