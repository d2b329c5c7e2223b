//! The attribute `#[elasticjob::job]`. Use it through the crate `elasticjob`, with its feature `macros`.

mod expand;

use proc_macro::TokenStream;

/// Makes a job of an async function: the function of that name then takes nothing, and returns the
/// `Job`, on which further settings can be called. That is all it does: nothing is
/// registered anywhere, and a job runs when a worker is given it.
///
/// ```
/// use elasticjob::{JobError, Outcome, Shard, Worker, testing};
///
/// /// Settles what was ordered yesterday.
/// #[elasticjob::job(cron = "0 0 2 * * ?", shards = 3, failover = true)]
/// async fn settle_orders(shard: Shard) -> Result<(), JobError> {
///     println!("orders with id % {} = {}", shard.total, shard.item);
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// assert_eq!(settle_orders().name(), "settle-orders");
/// let worker = Worker::new("embedded://").job(settle_orders().label("night")).start().await?;
/// assert_eq!(testing::run_once(&settle_orders()).await?[&2], Outcome::Succeeded);
/// # worker.shutdown().await; Ok(()) }
/// ```
///
/// What may be written is what `Job` has methods for, each with any expression: `cron`, `time_zone`, `shards`,
/// `shard_parameters`, `parameter`, `failover`, `misfire`, `monitor_execution`, `strategy`, `error_handlers`,
/// `description`, `disabled`, `overwrite`, `label`, `static_sharding`, `class_name`; and `name`, which is the
/// function's with hyphens for underscores otherwise. Whether a cron can be read is said when a worker starts.
///
/// What is wrong does not compile:
///
/// ```compile_fail
/// #[elasticjob::job(crom = "0 0 2 * * ?")] // no setting
/// async fn settle(_: elasticjob::Shard) -> Result<(), elasticjob::JobError> { Ok(()) }
/// ```
///
/// ```compile_fail
/// #[elasticjob::job(shards = "three")] // of another type
/// async fn settle(_: elasticjob::Shard) -> Result<(), elasticjob::JobError> { Ok(()) }
/// ```
///
/// ```compile_fail
/// #[elasticjob::job(shards = 3)] // not async
/// fn settle(_: elasticjob::Shard) -> Result<(), elasticjob::JobError> { Ok(()) }
/// ```
///
/// ```compile_fail
/// #[elasticjob::job(shards = 3)] // takes something else
/// async fn settle(_: String) -> Result<(), elasticjob::JobError> { Ok(()) }
/// ```
#[proc_macro_attribute]
pub fn job(settings: TokenStream, function: TokenStream) -> TokenStream {
    expand::job(settings.into(), function.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
