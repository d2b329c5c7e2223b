//! The pure heart of ElasticJob for Rust.
//!
//! What decides who runs what and when is here, and nothing else: no runtime, no network, no clock, no
//! randomness. The same inputs give the same effects, on every machine and in every run, which is what lets
//! the simulator try thousands of hostile clusters in a minute.

pub mod coord;
pub mod event;
#[doc(hidden)]
pub mod mutants;
pub mod node;
pub mod offset;
pub mod ops;
pub mod plan;
pub mod policy;
pub mod spec;
pub mod strategy;
pub mod timer;
pub mod tree;
pub mod view;
