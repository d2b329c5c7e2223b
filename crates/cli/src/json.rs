//! The shapes that programs read. Names are those of Java's lifecycle interface where it has them.

use elasticjob::ops::{
    Explanation, Finding, InstanceInfo, JobDetail, JobSummary, Level, ServerSummary, ShardInfo,
};
use jiff::Timestamp;
use serde_json::{Value, json};

fn at(time: Option<Timestamp>) -> Option<String> {
    time.map(|it| it.to_string())
}

pub(crate) fn summary(job: &JobSummary) -> Value {
    json!({
        "jobName": job.name,
        "status": job.status.to_string(),
        "description": job.description,
        "cron": job.cron,
        "instanceCount": job.instances,
        "shardingTotalCount": job.shards,
        "paused": job.paused.as_ref().map(ToString::to_string),
        "problem": job.problem,
    })
}

pub(crate) fn detail(job: &JobDetail) -> Value {
    let mut value = summary(&job.summary);
    let more = json!({
        "class": job.class,
        "schedule": job.schedule,
        "timeZone": job.spec.as_ref().and_then(|it| it.time_zone.clone()),
        "nextFire": at(job.next_fire),
        "leader": job.leader,
        "resharding": job.resharding,
        "servers": job.servers,
        "instances": job.instances.iter().map(instance).collect::<Vec<_>>(),
        "shards": job.shards.iter().map(shard).collect::<Vec<_>>(),
    });
    if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
        value.extend(more);
    }
    value
}

fn instance(it: &InstanceInfo) -> Value {
    json!({
        "instanceId": it.id,
        "serverIp": it.server,
        "enabled": it.enabled,
        "leader": it.leads,
        "rust": it.rust,
        "since": at(it.since),
        "items": it.items,
        "running": it.running,
        "asked": it.asked,
    })
}

pub(crate) fn shard(it: &ShardInfo) -> Value {
    json!({
        "item": it.item,
        "parameter": it.parameter,
        "status": it.status.to_string(),
        "instanceId": it.owner,
        "serverIp": it.server,
        "instanceAlive": it.owner_alive,
        "running": it.running,
        "runningSince": at(it.running_since),
        "failover": it.failover,
        "crashed": it.crashed,
        "misfire": it.misfire,
        "missed": at(it.missed),
        "lastSettledFire": at(it.settled),
        "surplus": it.surplus,
    })
}

pub(crate) fn server(it: &ServerSummary) -> Value {
    json!({
        "serverIp": it.ip,
        "instances": it.instances,
        "jobNames": it.jobs,
        "disabledJobs": it.disabled,
        "instancesNum": it.instances.len(),
        "jobsNum": it.jobs.len(),
        "disabledJobsNum": it.disabled.len(),
    })
}

pub(crate) fn finding(it: &Finding) -> Value {
    let level = match it.level {
        Level::Note => "note",
        Level::Problem => "problem",
    };
    json!({ "level": level, "jobName": it.job, "what": it.what, "remedy": it.remedy })
}

pub(crate) fn explanation(it: &Explanation) -> Value {
    json!({
        "fire": at(it.fire),
        "answer": it.answer,
        "because": it.because,
        "known": it.known,
        "remedies": it.remedies,
    })
}
