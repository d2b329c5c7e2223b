//! Fleets of Java and Rust processes: the same jobs, the same namespace, a real ZooKeeper. `cargo xtask interop`
//! runs them; `docs/java-fleets.md` says what they show.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on should stop")]

mod command;
mod documents;
mod failures;
mod handlers;
mod hooks;
mod java;
mod kinds;
mod membership;
mod notes;
mod operators;
mod sharing;
mod storm;
mod world;
