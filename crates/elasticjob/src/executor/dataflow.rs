//! Dataflow jobs: fetch, process, and again while there is more.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::task::JoinSet;
use tracing::Instrument;

use super::caught;
use super::props::{Props, TypeError};
use crate::job::{DataflowJob, JobError, PartlyFailed, Processed, Shard};

/// Fetch again until there is nothing.
pub(crate) const STREAMING: &str = "streaming.process";
/// How many elements a fetch should bring.
pub(crate) const FETCH_SIZE: &str = "elasticjob.dataflow.fetch.size";
/// How many calls work on what one fetch brought.
pub(crate) const WORKERS: &str = "elasticjob.dataflow.workers";

const WORKERS_MAX: u32 = 1024;

/// What the properties say. They are read for each round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    streaming: bool,
    workers: usize,
}

impl Settings {
    pub(super) fn read(props: Props<'_>) -> Result<Settings, TypeError> {
        fetch_size(props)?;
        let workers = props.count(WORKERS, 1..=WORKERS_MAX)?.unwrap_or(1);
        Ok(Settings { streaming: props.java_flag(STREAMING), workers: workers as usize })
    }
}

pub(super) fn fetch_size(props: Props<'_>) -> Result<Option<u32>, TypeError> {
    props.count(FETCH_SIZE, 1..=u32::MAX)
}

/// [`DataflowJob`], in a form that can be stored.
pub(crate) trait Flow: Send + Sync {
    fn run(self: Arc<Self>, shard: Shard, settings: Settings) -> BoxFuture<'static, Result<(), JobError>>;
}

impl<J: DataflowJob> Flow for J {
    fn run(self: Arc<Self>, shard: Shard, settings: Settings) -> BoxFuture<'static, Result<(), JobError>> {
        Box::pin(flow(self, shard, settings))
    }
}

async fn flow<J: DataflowJob>(job: Arc<J>, shard: Shard, settings: Settings) -> Result<(), JobError> {
    let mut tally = Tally { shard: &shard, batches: 0, processed: Processed::default() };
    loop {
        if shard.is_cancelled() {
            return Err("it was stopped between two batches".into());
        }
        let items = job.fetch(&shard).await?;
        if items.is_empty() {
            return Ok(());
        }
        let (processed, result) = process(&job, &shard, items, settings.workers).await;
        tally.batches += 1;
        tally.processed += processed;
        // After a failure, the next fetch may well bring the same again, for ever.
        result?;
        if !settings.streaming || (shard.should_yield() && !shard.is_cancelled()) {
            return Ok(());
        }
        // A job that never waits must not keep its worker from hearing that it should yield.
        tokio::task::yield_now().await;
    }
}

async fn process<J: DataflowJob>(
    job: &Arc<J>,
    shard: &Shard,
    items: Vec<J::Item>,
    workers: usize,
) -> (Processed, Result<(), JobError>) {
    let total = items.len();
    if workers == 1 || total == 1 {
        let result = caught(async { job.process(shard, items).await }).await;
        return (count(total, &result), result);
    }
    let mut calls = JoinSet::new();
    for (number, chunk) in split(items, workers).into_iter().enumerate() {
        let (job, shard, len) = (job.clone(), shard.clone(), chunk.len());
        let call = async move { (number, len, caught(async { job.process(&shard, chunk).await }).await) };
        calls.spawn(call.in_current_span());
    }
    let mut processed = Processed::default();
    let mut first: Option<(usize, JobError)> = None;
    while let Some(call) = calls.join_next().await {
        // A call catches its own panics, and nobody aborts it.
        let Ok((number, len, result)) = call else { continue };
        processed += count(len, &result);
        if let Err(error) = result
            && first.as_ref().is_none_or(|(before, _)| number < *before)
        {
            first = Some((number, error));
        }
    }
    let first = first.map(|(_, error)| match error.downcast::<PartlyFailed>() {
        Ok(partly) => partly.first,
        Err(error) => error,
    });
    (processed, first.map_or(Ok(()), |first| Err(PartlyFailed { processed, first }.into())))
}

fn count(len: usize, result: &Result<(), JobError>) -> Processed {
    let len = len as u64;
    match result {
        Ok(()) => Processed { succeeded: len, failed: 0 },
        Err(error) => match error.downcast_ref::<PartlyFailed>() {
            Some(partly) => partly.processed,
            None => Processed { succeeded: 0, failed: len },
        },
    }
}

/// At most so many parts, in order, none empty, and none more than one longer than another.
fn split<T>(items: Vec<T>, parts: usize) -> Vec<Vec<T>> {
    let parts = parts.min(items.len());
    let (len, longer) = (items.len() / parts.max(1), items.len() % parts.max(1));
    let mut items = items.into_iter();
    (0..parts).map(|part| items.by_ref().take(len + usize::from(part < longer)).collect()).collect()
}

/// What a shard has done. Said when it ends, however it ends.
struct Tally<'a> {
    shard: &'a Shard,
    batches: u64,
    processed: Processed,
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        let (job, item, batches) = (&*self.shard.job, self.shard.item, self.batches);
        let Processed { succeeded, failed } = self.processed;
        if batches > 0 {
            tracing::info!(job, item, batches, succeeded, failed, "processed");
        } else {
            tracing::debug!(job, item, "nothing to process");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_batch_is_split_as_equally_as_can_be() {
        let lengths = |items: usize, parts| -> Vec<usize> {
            let chunks = split((0..items).collect(), parts);
            assert!(chunks.iter().flatten().copied().eq(0..items), "all of it, in order");
            chunks.iter().map(Vec::len).collect()
        };
        assert_eq!(lengths(7, 4), [2, 2, 2, 1]);
        assert_eq!(lengths(8, 4), [2, 2, 2, 2]);
        assert_eq!(lengths(3, 4), [1, 1, 1]);
        assert_eq!(lengths(1000, 1), [1000]);
        assert_eq!(lengths(0, 4), [0; 0]);
    }
}
