//! Prometheus' text, version 0.0.4.

use std::fmt::Write;

use super::{Family, Kind, Metric, Metrics, Series, Value};

impl Metrics {
    /// The numbers as Prometheus reads them: the text format, version 0.0.4.
    ///
    /// ```
    /// use elasticjob::metrics::Metrics;
    ///
    /// let text = Metrics::new().text();
    /// assert!(text.contains("# TYPE elasticjob_rounds_total counter\n"));
    /// ```
    pub fn text(&self) -> String {
        let store = self.lock();
        let mut text = String::new();
        for metric in Metric::ALL {
            let family = metric.family();
            let kind = match family.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram(_) => "histogram",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {} {}\n# TYPE {} {kind}", family.name, family.help, family.name);
            let first = Series { metric, job: None, details: Vec::new() };
            let all = store.series.range(first..).take_while(|(series, _)| series.metric == metric);
            for (series, value) in all {
                show(&mut text, family, &labels(family, series), value);
            }
        }
        text
    }
}

fn show(text: &mut String, family: &Family, labels: &[String], value: &Value) {
    let name = family.name;
    match (value, family.kind) {
        (Value::Spread { counts, sum }, Kind::Histogram(bounds)) => {
            let mut total = 0;
            for (at, count) in counts.iter().enumerate() {
                total += count;
                let bound = bounds.get(at).map_or_else(|| "+Inf".to_owned(), f64::to_string);
                let labels = [labels, &[format!("le=\"{bound}\"")]].concat();
                let _ = writeln!(text, "{name}_bucket{} {total}", braced(&labels));
            }
            let labels = braced(labels);
            let _ = writeln!(text, "{name}_sum{labels} {sum}\n{name}_count{labels} {total}");
        }
        (Value::Number(number), _) => {
            let _ = writeln!(text, "{name}{} {number}", braced(labels));
        }
        (Value::Spread { .. }, _) => {}
    }
}

fn labels(family: &Family, series: &Series) -> Vec<String> {
    let job = series.job.as_ref().map(|job| format!("job=\"{}\"", escaped(job)));
    let others = family.labels.iter().zip(&series.details).map(|((name, _), it)| format!("{name}=\"{it}\""));
    job.into_iter().chain(others).collect()
}

fn braced(labels: &[String]) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_job_stays_one_label() {
        let metrics = Metrics::new();
        metrics.know(&"a\"b\\c\nd".into());
        let text = metrics.text();
        assert!(text.contains("elasticjob_leader{job=\"a\\\"b\\\\c\\nd\"} 0\n"), "{text}");
    }

    #[test]
    fn a_histogram_counts_upwards() {
        let metrics = Metrics::new();
        let job = "j".into();
        for seconds in [0.005, 0.2, 100.0] {
            metrics.observe(Metric::Lateness, Some(&job), &[], seconds);
        }
        let text = metrics.text();
        for line in [
            r#"_bucket{job="j",le="0.01"} 1"#,
            r#"_bucket{job="j",le="0.25"} 2"#,
            r#"_bucket{job="j",le="60"} 2"#,
            r#"_bucket{job="j",le="+Inf"} 3"#,
            r#"_sum{job="j"} 100.205"#,
            r#"_count{job="j"} 3"#,
        ] {
            assert!(text.contains(&format!("elasticjob_fire_lateness_seconds{line}\n")), "{line}\n{text}");
        }
    }
}
