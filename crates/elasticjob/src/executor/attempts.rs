//! One item, from its turn to its outcome: a start that is spread, a limit for each attempt, and further attempts.
//!
//! What is drawn by lot elsewhere is computed here from what the item is: so a run can be told again.

use std::time::Duration;

use elasticjob_core::event::{Outcome, Source};
use elasticjob_core::policy::Policies;
use tokio_util::sync::CancellationToken;

use super::{End, ItemRun, Props, check_work};
use crate::job::Shard;
use crate::lead::Waiting;
use crate::offsets::Offset;

impl ItemRun {
    pub(super) async fn run(self, shard: Shard, waiting: Option<Waiting>) -> End {
        // Also if this is dropped: what it left behind must not write.
        let _close = Close(shard.offset.clone());
        let group = waiting.as_ref().map(Waiting::group);
        let end = self.run_to_its_end(shard, waiting).await;
        if let Some(group) = group {
            group.all_begun().await;
        }
        end
    }

    async fn run_to_its_end(self, shard: Shard, waiting: Option<Waiting>) -> End {
        if !self.wait_for_its_start(&shard, waiting).await {
            return Outcome::Cancelled.into();
        }
        // Another attempt would not help.
        if let Err(error) = check_work(&self.work, Props(&self.props)) {
            return Outcome::Failed(error.to_string()).into();
        }
        let mut attempt = 1;
        loop {
            let end = self.attempt_in_time(Shard { attempt, ..shard.clone() }).await;
            let Outcome::Failed(error) = end.outcome else { return end };
            let retry = attempt <= self.policies.retries;
            let (job, item) = (&*shard.job, shard.item);
            if retry {
                tracing::warn!(job, item, attempt, "will be tried again: {error}");
            }
            if !retry || !pause(&shard, backoff(&self.policies, &shard, attempt)).await {
                return Outcome::Failed(after(attempt, error)).into();
            }
            attempt += 1;
        }
    }

    /// Says whether it may still begin. One that should yield does not wait.
    async fn wait_for_its_start(&self, shard: &Shard, waiting: Option<Waiting>) -> bool {
        if let Some(waiting) = waiting {
            tokio::select! {
                biased;
                () = shard.cancel.cancelled() => return false,
                () = tokio::time::sleep_until(waiting.at) => {}
            }
        }
        let jitter = self.policies.start_jitter;
        if shard.source == Source::Schedule && !jitter.is_zero() {
            pause(shard, start_delay(jitter, shard)).await;
        }
        !shard.is_cancelled()
    }

    /// An attempt that takes too long is told to stop, and then stopped, as if its item were cancelled. Code that
    /// cannot be stopped is waited for: nobody else may run the item meanwhile.
    async fn attempt_in_time(&self, shard: Shard) -> End {
        let Some(limit) = self.policies.time_limit else { return self.attempt(shard).await };
        let (round, attempt) = (shard.cancel.clone(), shard.cancel.child_token());
        let begun = CancellationToken::new();
        let work = self.attempt(Shard { cancel: attempt.clone(), begun: begun.clone(), ..shard });
        tokio::pin!(work);
        let over = async {
            begun.cancelled().await; // Waiting for its turn takes nothing of its time.
            tokio::time::sleep(limit).await;
        };
        tokio::select! {
            end = &mut work => return end,
            () = over => attempt.cancel(),
        }
        match work.await {
            End { outcome: Outcome::Cancelled, .. } if !round.is_cancelled() => {
                Outcome::Failed(format!("took longer than {limit:?}, and was stopped")).into()
            }
            end => end,
        }
    }
}

/// The run ends with it.
struct Close(Offset);

impl Drop for Close {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Waits, unless the item should stop or yield. Says whether it has waited.
async fn pause(shard: &Shard, time: Duration) -> bool {
    tokio::select! {
        biased;
        () = shard.cancel.cancelled() => false,
        () = shard.yielding.cancelled() => false,
        () = tokio::time::sleep(time) => true,
    }
}

fn after(attempts: u32, error: String) -> String {
    if attempts == 1 { error } else { format!("failed {attempts} times, at last: {error}") }
}

/// Twice as long each time, up to the longest; of that, between a half and all.
fn backoff(policies: &Policies, shard: &Shard, attempt: u32) -> Duration {
    let doubled = 2_u32.checked_pow(attempt - 1).and_then(|times| policies.backoff.checked_mul(times));
    let whole = doubled.unwrap_or(policies.backoff_max).min(policies.backoff_max);
    let seed =
        [shard.job.as_bytes(), shard.task_id.as_bytes(), &shard.item.to_le_bytes(), &attempt.to_le_bytes()];
    whole / 2 + part_of(whole / 2, &seed)
}

/// The same for the same shard and fire, and spread over the shards and jobs that fire together.
fn start_delay(jitter: Duration, shard: &Shard) -> Duration {
    let fire = shard.nominal.map_or(0, jiff::Timestamp::as_millisecond);
    part_of(jitter, &[shard.job.as_bytes(), &shard.item.to_le_bytes(), &fire.to_le_bytes()])
}

/// Between nothing and the whole, by a hash (FNV-1a, mixed) of the seed.
fn part_of(whole: Duration, seed: &[&[u8]]) -> Duration {
    let bytes = seed.iter().flat_map(|it| it.iter().chain(&[0]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    whole.mul_f64(mixed as f64 / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn pauses_grow_to_a_limit_and_differ_between_shards() {
        let mut policies = Policies::default();
        (policies.backoff, policies.backoff_max) = (Duration::from_secs(1), Duration::from_secs(10));
        let pauses = |item| -> Vec<Duration> {
            let shard = testing::shard("j", item, 9);
            (1..=100).map(|attempt| backoff(&policies, &shard, attempt)).collect()
        };
        for (pause, whole) in pauses(0).iter().zip([1.0, 2.0, 4.0, 8.0, 10.0, 10.0]) {
            let whole = Duration::from_secs_f64(whole);
            assert!(*pause >= whole / 2 && *pause <= whole, "{pause:?} of {whole:?}");
        }
        assert_eq!(pauses(3), pauses(3));
        assert_ne!(pauses(3), pauses(4));
    }

    #[test]
    fn starts_are_spread_over_the_whole_time() {
        let jitter = Duration::from_secs(60);
        let delays: Vec<Duration> =
            (0..1000).map(|item| start_delay(jitter, &testing::shard("j", item, 1000))).collect();
        assert!(delays.iter().all(|it| *it <= jitter));
        for quarter in 0..4 {
            let part = quarter * 15..(quarter + 1) * 15;
            let count = delays.iter().filter(|it| part.contains(&it.as_secs())).count();
            assert!((150..350).contains(&count), "{count} of 1000 in {part:?}");
        }
    }
}
