//! Distributed periodic jobs without a scheduling centre.
//!
//! Each process embeds this library. All processes of a job are peers; a [registry] holds configuration,
//! membership, and who owns which shard. Peers fire their own clocks and run their own shards; one of them
//! leads, only to hand out shards.
//!
//! ```no_run
//! use elasticjob::{Job, Shard, Worker};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), elasticjob::Error> {
//!     let greet = Job::simple("greet", async |shard: Shard| {
//!         println!("shard {} of {}: hello, {:?}", shard.item, shard.total, shard.parameter);
//!         Ok(())
//!     })
//!     .cron("0/5 * * * * ?")
//!     .shards(3)
//!     .shard_parameters(["Beijing", "Shanghai", "Guangzhou"]);
//!
//!     Worker::new("embedded://").job(greet).run().await
//! }
//! ```
//!
//! What is promised, and what is not, is in [`Shard::token`] and in the project's `docs/`.

mod clock;
mod driver;
mod error;
pub mod events;
mod executor;
mod extensions;
pub mod file;
mod handler;
pub mod host;
mod job;
mod lead;
mod link;
mod listen;
pub mod metrics;
mod offsets;
mod operator;
pub mod ops;
mod recorder;
pub mod registry;
mod status;
pub mod testing;
mod unbound;
mod worker;

pub use elasticjob_core::event::{Event, Hook, Outcome, Skip, Source, StopReason};
pub use elasticjob_core::spec::{JobSpec, SpecError};
pub use elasticjob_core::strategy::Strategy;
#[cfg(feature = "macros")]
pub use elasticjob_macros::job;
pub use error::Error;
pub use executor::TypeError;
pub use extensions::Extensions;
pub use handler::{ErrorHandler, Failure, FailureKind, HandlerCounts, Report, Thrown};
pub use job::{
    CatchUp, DataflowJob, EachJob, Job, JobError, JobType, Listener, OnceListener, PartlyFailed, Pool,
    Processed, Round, Shard, SimpleJob, ThroughputJob,
};
pub use listen::ListenAt;
pub use offsets::OffsetError;
pub use ops::{Ops, OpsError};
pub use recorder::{Record, Recorded, Records};
pub use worker::{JobState, RegistryAt, RunningWorker, Worker, until_asked_to_end};
