//! What a worker does, in numbers: counted where events are recorded and requests are made, and read as
//! Prometheus text, or through OpenTelemetry (feature `opentelemetry`).
//!
//! The number of series is bounded: labels are the worker's own jobs, and values of closed lists.

mod family;
mod job;
mod metered;
#[cfg(feature = "opentelemetry")]
mod otel;
mod text;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use family::{Family, Kind, Metric};
pub(crate) use metered::MeteredRegistry;

use job::Rounds;

/// The numbers of a worker, or of several in one process. Cheap to clone: all clones are one.
///
/// A worker with a [status port](crate::Worker::status_port) has them at `/metrics`. Without one, hand them over and
/// read them where you like:
///
/// ```
/// use elasticjob::metrics::Metrics;
/// use elasticjob::{Job, Shard, Worker};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
/// let metrics = Metrics::new();
/// let job = Job::simple("nightly", async |_: Shard| Ok(())).cron("0 0 2 * * ?");
/// let worker = Worker::new("embedded://").job(job).metrics(&metrics).start().await?;
/// assert!(metrics.text().contains("elasticjob_registered{job=\"nightly\"} 1\n"));
/// # worker.shutdown().await; Ok(()) }
/// ```
#[derive(Clone, Default)]
pub struct Metrics(Arc<Inner>);

#[derive(Default)]
struct Inner {
    store: Mutex<Store>,
    #[cfg(feature = "opentelemetry")]
    otel: std::sync::OnceLock<otel::Instruments>,
}

#[derive(Default)]
struct Store {
    series: BTreeMap<Series, Value>,
    /// The jobs of the worker, and what runs of each.
    jobs: BTreeMap<Arc<str>, Rounds>,
}

/// Which numbers belong together: a metric with its labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    metric: Metric,
    job: Option<Arc<str>>,
    /// Values of the family's other labels, in their order.
    details: Vec<&'static str>,
}

#[derive(Clone, Debug)]
enum Value {
    Number(f64),
    Spread { counts: Vec<u64>, sum: f64 },
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").field("series", &self.lock().series.len()).finish_non_exhaustive()
    }
}

impl Metrics {
    /// Numbers that begin at zero.
    pub fn new() -> Metrics {
        Metrics::default()
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.0.store.lock().unwrap_or_else(PoisonError::into_inner) // Nothing panics while it is held.
    }

    /// From now on there are numbers of this job, and what has never happened is not missing, but zero. Histograms
    /// and requests are many, and begin when they are needed.
    pub(crate) fn know(&self, job: &Arc<str>) {
        let mut store = self.lock();
        store.jobs.entry(job.clone()).or_default();
        let begins = |it: &Metric| {
            let Family { kind, per_job, .. } = it.family();
            *per_job && !matches!(kind, Kind::Histogram(_)) && *it != Metric::Requests
        };
        for metric in Metric::ALL.into_iter().filter(begins) {
            for details in metric.family().combinations() {
                let series = Series { metric, job: Some(job.clone()), details };
                store.series.entry(series).or_insert_with(|| Value::zero(metric));
            }
        }
    }

    /// The job's name, if it is one of the worker's: names that others give must not become labels.
    fn known(&self, job: &str) -> Option<Arc<str>> {
        self.lock().jobs.get_key_value(job).map(|it| it.0.clone())
    }

    fn add(&self, metric: Metric, job: Option<&Arc<str>>, details: &[&'static str], amount: f64) {
        self.change(metric, job, details, |value| match value {
            Value::Number(number) => *number += amount,
            Value::Spread { .. } => {}
        });
        #[cfg(feature = "opentelemetry")]
        if let Some(otel) = self.0.otel.get() {
            otel.add(metric, job, details, amount);
        }
    }

    fn set(&self, metric: Metric, job: Option<&Arc<str>>, number: f64) {
        self.change(metric, job, &[], |value| *value = Value::Number(number));
        #[cfg(feature = "opentelemetry")]
        if let Some(otel) = self.0.otel.get() {
            otel.set(metric, job, number);
        }
    }

    fn observe(&self, metric: Metric, job: Option<&Arc<str>>, details: &[&'static str], seconds: f64) {
        self.change(metric, job, details, |value| value.observe(metric, seconds));
        #[cfg(feature = "opentelemetry")]
        if let Some(otel) = self.0.otel.get() {
            otel.observe(metric, job, details, seconds);
        }
    }

    fn change(
        &self,
        metric: Metric,
        job: Option<&Arc<str>>,
        details: &[&'static str],
        change: impl FnOnce(&mut Value),
    ) {
        debug_assert!(metric.family().allows(details), "{metric:?} has no series {details:?}");
        let series = Series { metric, job: job.cloned(), details: details.to_vec() };
        change(self.lock().series.entry(series).or_insert_with(|| Value::zero(metric)));
    }

    /// A call of an error handler.
    pub(crate) fn reported(&self, told: bool) {
        self.add(Metric::Reports, None, &[if told { "told" } else { "failed" }], 1.0);
    }

    /// Failures that no error handler could tell.
    pub(crate) fn untold(&self, count: u64) {
        self.add(Metric::Untold, None, &[], as_number(count));
    }

    /// Records that a slow reader has lost.
    pub(crate) fn dropped(&self, count: u64) {
        self.add(Metric::RecordsDropped, None, &[], as_number(count));
    }
}

impl Value {
    fn zero(metric: Metric) -> Value {
        match metric.family().kind {
            Kind::Counter | Kind::Gauge => Value::Number(0.0),
            // One more than there are bounds, for what is above all of them.
            Kind::Histogram(bounds) => Value::Spread { counts: vec![0; bounds.len() + 1], sum: 0.0 },
        }
    }

    fn observe(&mut self, metric: Metric, seconds: f64) {
        if let (Value::Spread { counts, sum }, Kind::Histogram(bounds)) = (self, metric.family().kind) {
            let at = bounds.iter().position(|bound| seconds <= *bound).unwrap_or(bounds.len());
            counts[at] += 1;
            *sum += seconds;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody counts so far")]
fn as_number(count: u64) -> f64 {
    count as f64
}
