//! The numbers of a worker, through OpenTelemetry's own exporter for tests.

use std::collections::BTreeSet;

use elasticjob::metrics::{Metric, Metrics};
use elasticjob::{Event, Job, Recorded, Shard, Worker};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, MetricData, ResourceMetrics, ScopeMetrics, SumDataPoint,
};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

#[tokio::test]
async fn a_meter_is_given_what_prometheus_reads() {
    let exporter = InMemoryMetricExporter::default();
    let provider =
        SdkMeterProvider::builder().with_reader(PeriodicReader::builder(exporter.clone()).build()).build();
    let metrics = Metrics::with_meter(&provider.meter("elasticjob"));
    let job = Job::simple("hello", async |_: Shard| Ok(())).shards(2);
    let worker = Worker::new("embedded://").job(job).metrics(&metrics).start().await.unwrap();
    let mut records = worker.records();
    worker.trigger("hello").await.unwrap();
    let ended = async {
        loop {
            if let Some(Recorded::Record(record)) = records.next().await
                && matches!(record.event, Event::RoundFinished { .. })
            {
                return;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), ended).await.unwrap();
    worker.shutdown().await;
    provider.force_flush().unwrap();
    let exported = exporter.get_finished_metrics().unwrap();
    let all = exported.iter().flat_map(ResourceMetrics::scope_metrics).flat_map(ScopeMetrics::metrics);
    let mut names = BTreeSet::new();
    let mut ended = 0.0;
    for metric in all {
        names.insert(metric.name().to_owned());
        if metric.name() == "elasticjob.shards"
            && let AggregatedMetrics::F64(MetricData::Sum(sum)) = metric.data()
        {
            ended = sum.data_points().map(SumDataPoint::value).sum();
        }
    }
    assert_eq!(ended, 2.0);
    for name in [
        "elasticjob.rounds",
        "elasticjob.shard_duration",
        "elasticjob.registry_requests",
        "elasticjob.leader",
    ] {
        assert!(names.contains(name), "{names:?}");
    }
    assert!(metrics.text().contains("elasticjob_shards_total{job=\"hello\",outcome=\"succeeded\"} 2\n"));
    assert!(names.len() <= Metric::ALL.len());
}
