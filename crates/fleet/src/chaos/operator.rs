//! An operator who works while everything breaks. What came of an order is read in the ensemble's log.

use std::time::Duration;

use elasticjob::ops::{Ops, OpsError, Part};
use elasticjob_core::spec::JobSpec;

use super::plan::Order;

/// An order takes no longer than this, or is given up.
const LIMIT: Duration = Duration::from_secs(15);

/// Tries once; says what went wrong.
pub(super) async fn try_once(url: &str, order: &Order) -> Result<(), String> {
    let carry_out = async {
        let ops = Ops::connect(url).await?;
        let done = carry_out(&ops, order).await;
        ops.close().await;
        done
    };
    match tokio::time::timeout(LIMIT, carry_out).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("{order:?}: {error}")),
        Err(_) => Err(format!("{order:?}: not done within {LIMIT:?}")),
    }
}

async fn carry_out(ops: &Ops, order: &Order) -> Result<(), OpsError> {
    match order {
        Order::Job(job, true) => drop(ops.enable(job, &Part::Job).await?),
        Order::Job(job, false) => drop(ops.disable(job, &Part::Job).await?),
        Order::Item(job, item, true) => drop(ops.enable(job, &Part::Item(*item)).await?),
        Order::Item(job, item, false) => drop(ops.disable(job, &Part::Item(*item)).await?),
        Order::Trigger(job) => drop(ops.trigger(job, None).await?),
        Order::Count(job, count) => {
            let stored = ops.config(job).await?;
            if let Ok(mut spec) = JobSpec::from_yaml(&stored.text) {
                spec.sharding_total_count = *count;
                ops.update_config(job, &stored, &spec.to_yaml()).await?;
            }
        }
    }
    Ok(())
}

/// Lets all jobs and items work again, however often it takes.
pub(super) async fn enable_everything(url: &str, jobs: &[String]) -> Result<(), String> {
    let mut last = String::new();
    for _ in 0..10 {
        let attempt = async {
            let ops = Ops::connect(url).await?;
            for job in jobs {
                let detail = ops.job(job).await?;
                ops.enable(job, &Part::Job).await?;
                for item in 0..u32::try_from(detail.shards.len()).unwrap_or(u32::MAX) {
                    ops.enable(job, &Part::Item(item)).await?;
                }
            }
            ops.close().await;
            Ok::<(), OpsError>(())
        };
        match tokio::time::timeout(LIMIT, attempt).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => last = error.to_string(),
            Err(_) => last = format!("not done within {LIMIT:?}"),
        }
    }
    Err(last)
}
