//! The same numbers as instruments of OpenTelemetry.

use std::collections::BTreeMap;
use std::sync::Arc;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter};

use super::{Kind, Metric, Metrics};

pub(super) struct Instruments {
    counters: BTreeMap<Metric, Counter<f64>>,
    gauges: BTreeMap<Metric, Gauge<f64>>,
    histograms: BTreeMap<Metric, Histogram<f64>>,
}

impl Metrics {
    /// Numbers that are also given to a meter of OpenTelemetry, from now on. Names are those of Prometheus with a dot
    /// behind `elasticjob`, and without `_total` and `_seconds`: an exporter adds what its side wants.
    ///
    /// ```
    /// use elasticjob::metrics::Metrics;
    ///
    /// let metrics = Metrics::with_meter(&opentelemetry::global::meter("elasticjob"));
    /// # drop(metrics);
    /// ```
    pub fn with_meter(meter: &Meter) -> Metrics {
        let metrics = Metrics::new();
        let instruments = Instruments::new(meter);
        if metrics.0.otel.set(instruments).is_err() {
            unreachable!("they are new");
        }
        metrics
    }
}

impl Instruments {
    fn new(meter: &Meter) -> Instruments {
        let mut it =
            Instruments { counters: BTreeMap::new(), gauges: BTreeMap::new(), histograms: BTreeMap::new() };
        for metric in Metric::ALL {
            let (family, name) = (metric.family(), name(metric));
            match family.kind {
                Kind::Counter => {
                    let counter = meter.f64_counter(name).with_description(family.help).build();
                    it.counters.insert(metric, counter);
                }
                Kind::Gauge => {
                    let gauge = meter.f64_gauge(name).with_description(family.help).build();
                    it.gauges.insert(metric, gauge);
                }
                Kind::Histogram(bounds) => {
                    let histogram = meter.f64_histogram(name).with_description(family.help);
                    let histogram = histogram.with_unit("s").with_boundaries(bounds.to_vec()).build();
                    it.histograms.insert(metric, histogram);
                }
            }
        }
        it
    }

    pub(super) fn add(&self, metric: Metric, job: Option<&Arc<str>>, details: &[&'static str], amount: f64) {
        if let Some(counter) = self.counters.get(&metric) {
            counter.add(amount, &attributes(metric, job, details));
        }
    }

    pub(super) fn set(&self, metric: Metric, job: Option<&Arc<str>>, number: f64) {
        if let Some(gauge) = self.gauges.get(&metric) {
            gauge.record(number, &attributes(metric, job, &[]));
        }
    }

    pub(super) fn observe(
        &self,
        metric: Metric,
        job: Option<&Arc<str>>,
        details: &[&'static str],
        seconds: f64,
    ) {
        if let Some(histogram) = self.histograms.get(&metric) {
            histogram.record(seconds, &attributes(metric, job, details));
        }
    }
}

fn attributes(metric: Metric, job: Option<&Arc<str>>, details: &[&'static str]) -> Vec<KeyValue> {
    let job = job.map(|job| KeyValue::new("job", job.clone()));
    let names = metric.family().labels.iter().map(|(name, _)| *name);
    job.into_iter().chain(names.zip(details).map(|(name, it)| KeyValue::new(name, *it))).collect()
}

fn name(metric: Metric) -> String {
    let name = metric.family().name;
    let name = name.strip_suffix("_total").or(name.strip_suffix("_seconds")).unwrap_or(name);
    name.replacen("elasticjob_", "elasticjob.", 1)
}
