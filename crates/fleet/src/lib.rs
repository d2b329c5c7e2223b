//! Fleets of real worker processes: what they print, how they are started and hurt, and whether what they
//! did was right. Not published.
//!
//! A worker is any program that prints the [lines](line) of its jobs: ours is the binary `fleet-worker`, and
//! a Java program can be another. A [`Process`] reads them into a [`Log`], which tests wait on; [`check`]
//! says what is wrong with a log.

pub mod check;
pub mod job;
pub mod line;
mod log;
mod process;
pub mod store;

pub use line::{Line, What};
pub use log::Log;
pub use process::{Process, Program};
