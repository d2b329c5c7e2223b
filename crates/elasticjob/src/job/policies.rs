//! What a job may ask for that Java's ElasticJob has no setting for. It is kept in the job's properties, where operators
//! can change it, and which Java ignores.

use std::time::Duration;

pub use elasticjob_core::policy::CatchUp;
use elasticjob_core::policy::{
    CATCH_UP, DELAY, EVERY, RETRIES, RETRY_BACKOFF, RETRY_BACKOFF_MAX, START_JITTER, TIME_LIMIT, VALID_FROM,
    VALID_UNTIL,
};
use jiff::{SignedDuration, Timestamp};

use super::Job;

impl Job {
    /// How long an attempt at a shard may take. Then it is told to stop ([`Shard::is_cancelled`](crate::Shard::is_cancelled)),
    /// dropped where it waits if it does not within [`Worker::cancel_grace`](crate::Worker::cancel_grace), and has failed.
    /// Blocking code cannot be dropped: it is waited for. Off by default.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.time_limit(Duration::from_secs(300))
    /// # }
    /// ```
    pub fn time_limit(self, limit: Duration) -> Job {
        self.prop(TIME_LIMIT, spell(limit))
    }

    /// A shard that failed is tried again, up to so many times within its round. 0 by default. See
    /// [`Shard::attempt`](crate::Shard::attempt).
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use std::time::Duration;
    /// use elasticjob::{Job, Outcome, Shard, testing};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() -> Result<(), elasticjob::Error> {
    /// let job = Job::simple("flaky", async |shard: Shard| match shard.attempt {
    ///     1 | 2 => Err("not yet".into()),
    ///     _ => Ok(()),
    /// })
    /// .retries(3)
    /// .retry_backoff(Duration::from_millis(500), Duration::from_secs(30));
    /// assert_eq!(testing::run_once(&job).await?[&0], Outcome::Succeeded);
    /// # Ok(()) }
    /// ```
    pub fn retries(self, times: u32) -> Job {
        self.prop(RETRIES, times.to_string())
    }

    /// The pause before the first retry, and the longest: each is twice as long as the one before, less up to a half that
    /// differs from shard to shard. One second and one minute by default.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.retries(5).retry_backoff(Duration::from_secs(2), Duration::from_secs(120))
    /// # }
    /// ```
    pub fn retry_backoff(self, first: Duration, longest: Duration) -> Job {
        self.prop(RETRY_BACKOFF, spell(first)).prop(RETRY_BACKOFF_MAX, spell(longest))
    }

    /// Shards start up to so much later than their fire, each by another time, so that what fires together does not start
    /// together. Off by default.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.start_jitter(Duration::from_secs(30))
    /// # }
    /// ```
    pub fn start_jitter(self, most: Duration) -> Job {
        self.prop(START_JITTER, spell(most))
    }

    /// It fires at a fixed rate, in place of [`Job::cron`]: on a grid that begins with [`Job::valid_from`], or else with 1970,
    /// so that all workers agree on it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use elasticjob::{Job, Shard};
    ///
    /// let job = Job::simple("poll", async |_: Shard| Ok(())).every(Duration::from_secs(90));
    /// # drop(job);
    /// ```
    pub fn every(self, period: Duration) -> Job {
        self.prop(EVERY, spell(period))
    }

    /// A shard runs at once, and then so long after it ended, in place of [`Job::cron`]. Each shard has its own pace, which it
    /// keeps when it moves. It needs [`Job::monitor_execution`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use elasticjob::{Job, Shard};
    ///
    /// let job = Job::simple("drain", async |_: Shard| Ok(())).delay(Duration::from_secs(5));
    /// # drop(job);
    /// ```
    pub fn delay(self, pause: Duration) -> Job {
        self.prop(DELAY, spell(pause))
    }

    /// It does not fire before this instant. What is triggered by hand runs.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.valid_from("2030-01-01T00:00:00+01:00".parse().unwrap())
    /// # }
    /// ```
    pub fn valid_from(self, instant: Timestamp) -> Job {
        self.prop(VALID_FROM, instant.to_string())
    }

    /// It does not fire from this instant on. What is triggered by hand runs.
    ///
    /// ```
    /// # fn f(job: elasticjob::Job) -> elasticjob::Job {
    /// job.valid_until("2031-01-01T00:00:00+01:00".parse().unwrap())
    /// # }
    /// ```
    pub fn valid_until(self, instant: Timestamp) -> Job {
        self.prop(VALID_UNTIL, instant.to_string())
    }

    /// What happens to fires that passed while no worker was up. The default is [`CatchUp::None`]. It needs [`Job::misfire`]
    /// and [`Job::monitor_execution`].
    ///
    /// ```
    /// use elasticjob::{CatchUp, Job, Shard};
    ///
    /// let job = Job::simple("bills", async |_: Shard| Ok(())).cron("0 0 2 * * ?").catch_up(CatchUp::All { max: 31 });
    /// # drop(job);
    /// ```
    pub fn catch_up(self, policy: CatchUp) -> Job {
        self.prop(CATCH_UP, policy.to_string())
    }
}

fn spell(duration: Duration) -> String {
    format!("{:#}", SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX))
}
