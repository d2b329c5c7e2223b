//! Hostile clusters in virtual time, and the checker that judges what the core does in them.
//!
//! A seed decides a cluster, its jobs, its network and everything that goes wrong ([`scenario`]). The world
//! lives through it ([`world`]): real coordinators on the real registry tree, behind a network that delays,
//! reorders where a real session would, and loses; in processes that crash, stand still and have wrong clocks.
//! What user code, recorders and the operator saw is the [`history`], and the [`invariant`]s are sentences
//! about it. The same seed gives the same history, byte for byte.

mod clock;
mod deeds;
mod driver;
mod early;
pub mod history;
#[cfg(feature = "mutants")]
pub mod hunt;
pub mod invariant;
mod network;
mod operator;
mod process;
mod registry;
pub mod rng;
pub mod runner;
pub mod scenario;
mod traps;
mod user;
pub mod world;
