//! A job's configuration, read and compiled: what the coordinator works by.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use elasticjob_cron::{DstPolicy, Fold, Gap, Schedule, Zone};

use crate::policy::Policies;
use crate::spec::{JobSpec, SHARDS_MAX, SpecError, read_cron, read_zone};
use crate::strategy::{SINGLE_SHARDING_BALANCE, Strategies, Strategy};
use crate::timer::Timer;

/// What happens to a fire whose time of day a clock change skips: a key of `props`.
pub const DST_GAP: &str = "elasticjob.dst.gap";
/// What happens to a fire whose time of day a clock change repeats: a key of `props`.
pub const DST_FOLD: &str = "elasticjob.dst.fold";

/// A configuration that can be worked by.
#[derive(Clone)]
pub struct Plan {
    /// What was written.
    pub spec: JobSpec,
    /// When it fires; `None` for a job that only runs when asked, or some time after it ended.
    pub schedule: Option<Timer>,
    /// What else its properties ask for.
    pub policies: Policies,
    /// The parameter of each item that has one.
    pub parameters: BTreeMap<u32, String>,
    /// Who gets what.
    pub strategy: Arc<dyn Strategy>,
}

impl Plan {
    /// Reads a specification. `zone` is where the schedule lives if the specification does not say. What can be
    /// worked by is taken, even if [`JobSpec::validate`] would complain: others may have written it.
    pub fn compile(spec: JobSpec, strategies: &Strategies, zone: &Zone) -> Result<Plan, SpecError> {
        if !(1..=SHARDS_MAX).contains(&spec.sharding_total_count) {
            return Err(SpecError::ShardCount { value: i64::from(spec.sharding_total_count) });
        }
        let policies = Policies::read(&spec)?;
        let schedule = compile_schedule(&spec, &policies, zone)?;
        let name = spec.job_sharding_strategy_type.as_deref();
        let strategy = strategies.find(name).ok_or_else(|| {
            let known: Vec<&str> = strategies.names().collect();
            SpecError::choice("jobShardingStrategyType", name.unwrap_or_default(), &known.join(", "))
        })?;
        Ok(Plan { schedule, policies, parameters: spec.item_parameters()?, strategy, spec })
    }

    /// When it runs, in words; `None` if only when asked.
    pub fn describe(&self) -> Option<String> {
        let delay = self.policies.delay.map(|it| format!("{it:#} after it ended"));
        self.schedule.as_ref().map(Timer::describe).or(delay)
    }

    /// Whether instances take turns at the only item.
    pub fn takes_turns(&self) -> bool {
        let name = self.spec.job_sharding_strategy_type.as_deref().unwrap_or_default();
        self.spec.sharding_total_count == 1 && name.eq_ignore_ascii_case(SINGLE_SHARDING_BALANCE)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan").field("spec", &self.spec).finish_non_exhaustive()
    }
}

fn compile_schedule(spec: &JobSpec, policies: &Policies, zone: &Zone) -> Result<Option<Timer>, SpecError> {
    let cron = read_cron(spec.cron.as_deref())?;
    let zone = spec.time_zone.as_deref().map_or_else(|| Ok(zone.clone()), read_zone)?;
    let timer = match (cron, policies.every) {
        (Some(cron), _) => Timer::cron(Schedule::new(cron, zone).with_policy(dst_policy(spec)?)),
        (None, Some(period)) => Timer::every(period, zone),
        (None, None) => return Ok(None),
    };
    Ok(Some(timer.within(policies.valid_from, policies.valid_until)))
}

fn dst_policy(spec: &JobSpec) -> Result<DstPolicy, SpecError> {
    let mut policy = DstPolicy::default();
    if let Some(text) = spec.props.get(DST_GAP) {
        policy.gap = match text.as_str() {
            "skip" => Gap::Skip,
            "run-at-end" => Gap::RunAtEnd,
            _ => return Err(SpecError::choice(DST_GAP, text, "skip or run-at-end")),
        };
    }
    if let Some(text) = spec.props.get(DST_FOLD) {
        policy.fold = match text.as_str() {
            "first" => Fold::First,
            "second" => Fold::Second,
            "both" => Fold::Both,
            _ => return Err(SpecError::choice(DST_FOLD, text, "first, second or both")),
        };
    }
    Ok(policy)
}
