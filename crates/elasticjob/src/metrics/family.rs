//! Every metric: its name, its kind, its labels and all values that they can have.

use elasticjob_core::event::{Hook, Skip};

/// What kind of number a metric is.
///
/// ```
/// use elasticjob::metrics::{Kind, Metric};
///
/// assert_eq!(Metric::Rounds.family().kind, Kind::Counter);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How values are spread, by these upper bounds in seconds.
    Histogram(&'static [f64]),
}

/// What there is to know of a metric.
///
/// ```
/// use elasticjob::metrics::Metric;
///
/// for metric in Metric::ALL {
///     assert!(metric.family().name.starts_with("elasticjob_"));
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Family {
    /// Its name in Prometheus' spelling.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// What it says.
    pub help: &'static str,
    /// There is one for each job, with the label `job`.
    pub per_job: bool,
    /// Its other labels, each with all values that it can have.
    pub labels: &'static [(&'static str, &'static [&'static str])],
}

impl Family {
    const fn new(name: &'static str, kind: Kind) -> Family {
        Family { name, kind, help: "", per_job: true, labels: &[] }
    }

    const fn by(self, labels: &'static [(&'static str, &'static [&'static str])]) -> Family {
        Family { labels, ..self }
    }

    const fn of_the_worker(self) -> Family {
        Family { per_job: false, ..self }
    }

    /// All combinations of the values of its labels.
    pub(super) fn combinations(&self) -> Vec<Vec<&'static str>> {
        self.labels.iter().fold(vec![Vec::new()], |all, (_, values)| {
            let longer = |it: &Vec<&'static str>| {
                values.iter().map(|value| [it.as_slice(), &[value]].concat()).collect::<Vec<_>>()
            };
            all.iter().flat_map(longer).collect()
        })
    }

    pub(super) fn allows(&self, details: &[&'static str]) -> bool {
        details.len() == self.labels.len()
            && self.labels.iter().zip(details).all(|((_, values), it)| values.contains(it))
    }
}

const LATENESS: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
const DURATION: &[f64] = &[0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0];
const LATENCY: &[f64] = &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

const SOURCES: &[&str] = &["schedule", "trigger", "misfire", "failover"];
const OUTCOMES: &[&str] = &["succeeded", "failed", "cancelled"];
const OPERATIONS: &[&str] = &["commit", "read", "children"];
const RESULTS: &[&str] = &["ok", "conflict", "unknown", "session-ended", "error"];

/// Declares the metrics: a name in the code, and what there is to know of it.
macro_rules! metrics {
    ($($metric:ident $help:literal = $family:expr;)*) => {
        /// A metric.
        ///
        /// ```
        /// use elasticjob::metrics::Metric;
        ///
        /// assert_eq!(Metric::Rounds.family().name, "elasticjob_rounds_total");
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Metric {
            $(#[doc = $help] $metric,)*
        }

        impl Metric {
            /// All of them.
            pub const ALL: [Metric; [$(Metric::$metric),*].len()] = [$(Metric::$metric),*];

            /// What there is to know of it.
            pub const fn family(self) -> &'static Family {
                const FAMILIES: [Family; Metric::ALL.len()] = [$(Family { help: $help, ..$family }),*];
                &FAMILIES[self as usize]
            }
        }
    };
}

metrics! {
    Rounds "Rounds begun." =
        Family::new("elasticjob_rounds_total", Kind::Counter).by(&[("source", SOURCES)]);
    Lateness "How long after its time a fire began." =
        Family::new("elasticjob_fire_lateness_seconds", Kind::Histogram(LATENESS));
    Shards "Shards ended." =
        Family::new("elasticjob_shards_total", Kind::Counter).by(&[("outcome", OUTCOMES)]);
    Duration "How long shards took, from the beginning of their round." =
        Family::new("elasticjob_shard_duration_seconds", Kind::Histogram(DURATION))
            .by(&[("outcome", OUTCOMES)]);
    Running "Shards that run now." =
        Family::new("elasticjob_shards_running", Kind::Gauge);
    Merged "Earlier fires that a round made up for." =
        Family::new("elasticjob_fires_merged_total", Kind::Counter);
    Missed "Shards that missed a fire, to be made up for." =
        Family::new("elasticjob_misfires_total", Kind::Counter);
    Skipped "Fires and triggers that did not run." =
        Family::new("elasticjob_fires_skipped_total", Kind::Counter).by(&[("reason", Skip::NAMES)]);
    HookFailures "Hooks around rounds that failed, or were not called in time." =
        Family::new("elasticjob_hook_failures_total", Kind::Counter).by(&[("hook", Hook::NAMES)]);
    Failovers "Shards taken over from dead instances." =
        Family::new("elasticjob_failovers_total", Kind::Counter);
    Crashed "Shards whose runner died, as found by the leader." =
        Family::new("elasticjob_shards_crashed_total", Kind::Counter);
    Reshards "How often the shards were handed out anew, by this leader." =
        Family::new("elasticjob_reshards_total", Kind::Counter);
    Moved "Shards that got another owner, from this leader." =
        Family::new("elasticjob_shards_moved_total", Kind::Counter);
    TriggersHandedOn "Triggers of dead instances handed on, by this leader." =
        Family::new("elasticjob_triggers_handed_on_total", Kind::Counter);
    Leads "Whether this instance leads." =
        Family::new("elasticjob_leader", Kind::Gauge);
    Registered "Whether this instance is registered, and its session stands." =
        Family::new("elasticjob_registered", Kind::Gauge);
    ConfigChanges "Changes of the configuration." =
        Family::new("elasticjob_config_changes_total", Kind::Counter)
            .by(&[("result", &["adopted", "refused"])]);
    NextFire "When the clock fires next, in seconds since 1970; 0 if it does not." =
        Family::new("elasticjob_next_fire_timestamp_seconds", Kind::Gauge);
    LastSuccess "When a shard last succeeded here, in seconds since 1970; 0 if none did." =
        Family::new("elasticjob_last_success_timestamp_seconds", Kind::Gauge);
    Requests "Requests to the registry." =
        Family::new("elasticjob_registry_requests_total", Kind::Counter)
            .by(&[("operation", OPERATIONS), ("result", RESULTS)]);
    Latency "How long the registry took to answer." =
        Family::new("elasticjob_registry_request_duration_seconds", Kind::Histogram(LATENCY))
            .by(&[("operation", OPERATIONS)]);
    SessionUp "Whether the connection to the registry stands." =
        Family::new("elasticjob_session_up", Kind::Gauge).of_the_worker();
    Sessions "Sessions begun with the registry." =
        Family::new("elasticjob_sessions_total", Kind::Counter).of_the_worker();
    RecordsDropped "Records that slow readers lost." =
        Family::new("elasticjob_records_dropped_total", Kind::Counter).of_the_worker();
    Reports "Calls of error handlers, each with a report of one failure or many." =
        Family::new("elasticjob_error_reports_total", Kind::Counter)
            .by(&[("result", &["told", "failed"])])
            .of_the_worker();
    Untold "Failures that no error handler could tell." =
        Family::new("elasticjob_failures_untold_total", Kind::Counter).of_the_worker();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_say_what_kind_they_are() {
        let mut names = std::collections::BTreeSet::new();
        for metric in Metric::ALL {
            let Family { name, kind, .. } = metric.family();
            assert!(names.insert(name), "{name} twice");
            match kind {
                Kind::Counter => assert!(name.ends_with("_total"), "{name}"),
                Kind::Histogram(bounds) => {
                    assert!(name.ends_with("_seconds") && bounds.is_sorted(), "{name}");
                }
                Kind::Gauge => assert!(!name.ends_with("_total"), "{name}"),
            }
        }
    }

    #[test]
    fn labels_combine() {
        assert_eq!(Metric::Requests.family().combinations().len(), 15);
        assert_eq!(Metric::Leads.family().combinations(), [Vec::<&str>::new()]);
        assert!(Metric::Requests.family().allows(&["commit", "ok"]));
        assert!(!Metric::Requests.family().allows(&["commit"]));
    }
}
