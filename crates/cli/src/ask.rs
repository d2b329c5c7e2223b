//! How a job, its instances and its shards are shown to people.

use elasticjob::ops::{JobDetail, JobStatus, ShardInfo, ShardStatus};

use crate::screen::{Screen, Tone};
use crate::table::{Cell, Table};
use crate::time;

pub(crate) fn job_status(status: JobStatus) -> Cell {
    let tone = match status {
        JobStatus::Ok => Tone::Good,
        JobStatus::Disabled => Tone::Careful,
        JobStatus::ShardingFlag => Tone::Busy,
        JobStatus::Crashed => Tone::Bad,
    };
    Cell::toned(&status, tone)
}

fn shard_status(shard: &ShardInfo) -> Cell {
    let tone = match shard.status {
        ShardStatus::Disabled => Tone::Careful,
        ShardStatus::Running if !shard.runner_alive => Tone::Bad,
        ShardStatus::Running => Tone::Busy,
        ShardStatus::ShardingFlag => Tone::Bad,
        ShardStatus::Pending => Tone::Good,
    };
    Cell::toned(&shard.status, tone)
}

pub(crate) fn shards(screen: &Screen, shards: &[ShardInfo]) -> String {
    let mut table = Table::new([
        "SHARD",
        "STATUS",
        "OWNER",
        "RUNNING ON",
        "SINCE",
        "LAST SETTLED FIRE",
        "MARKS",
        "PARAMETER",
    ]);
    for it in shards {
        let gone = |id: &Option<String>, alive: bool| match id {
            Some(id) if alive => Cell::from(id.clone()),
            Some(id) => Cell::toned(&format!("{id} (gone)"), Tone::Bad),
            None => Cell::from(""),
        };
        table.row([
            it.item.to_string().into(),
            shard_status(it),
            gone(&it.owner, it.owner_alive),
            gone(&it.running, it.runner_alive),
            it.running_since.map(time::show).unwrap_or_default().into(),
            it.settled.map(time::show).unwrap_or_default().into(),
            marks(it).into(),
            it.parameter.clone().unwrap_or_default().into(),
        ]);
    }
    table.show(screen)
}

fn marks(it: &ShardInfo) -> String {
    let mut marks = Vec::new();
    marks.extend(it.failover.as_ref().map(|id| format!("failover to {id}")));
    marks.extend(it.crashed.then(|| "crashed".to_owned()));
    marks.extend(it.misfire.then(|| match it.missed {
        Some(at) => format!("missed {}", time::show(at)),
        None => "missed a fire".to_owned(),
    }));
    marks.extend(it.surplus.then(|| "surplus".to_owned()));
    marks.join(", ")
}

pub(crate) fn job(screen: &Screen, job: &JobDetail) -> String {
    let mut lines = vec![("job", job.summary.name.clone()), ("status", job.summary.status.to_string())];
    let mut add =
        |name, value: Option<String>| lines.extend(value.filter(|it| !it.is_empty()).map(|it| (name, it)));
    add("paused", job.summary.paused.as_ref().map(ToString::to_string));
    add("problem", job.summary.problem.clone());
    add("description", Some(job.summary.description.replace(char::is_control, " ")));
    add("class", Some(job.class.clone()));
    let words = job.schedule.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    add(
        "cron",
        Some(
            job.summary
                .cron
                .as_ref()
                .map_or_else(|| "none: runs when triggered".to_owned(), |it| format!("{it}{words}")),
        ),
    );
    add("time zone", job.spec.as_ref().and_then(|it| it.time_zone.clone()));
    add("next fire", job.next_fire.map(time::show));
    add("leader", Some(job.leader.clone().unwrap_or_else(|| "none".to_owned())));
    add("resharding", job.resharding.then(|| "yes: the shards are about to be handed out anew".to_owned()));
    let mut text: String = lines.into_iter().map(|(name, value)| format!("{name:<12} {value}\n")).collect();
    let mut servers = Table::new(["SERVER", "STATUS", "INSTANCES"]);
    for (ip, status) in &job.servers {
        let here = job.instances.iter().filter(|it| it.server == *ip).count();
        let tone = if status == "DISABLED" { Tone::Careful } else { Tone::Good };
        servers.row([ip.clone().into(), Cell::toned(&status, tone), here.to_string().into()]);
    }
    let mut instances = Table::new(["INSTANCE", "SINCE", "SHARDS", "RUNNING", "MARKS"]);
    for it in &job.instances {
        let list = |items: &std::collections::BTreeSet<u32>| {
            items.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
        };
        let mut marks = Vec::new();
        marks.extend(it.leads.then_some("leads"));
        marks.extend((!it.enabled).then_some("disabled"));
        marks.extend(it.asked.then_some("asked to run"));
        marks.extend((!it.rust).then_some("java"));
        instances.row([
            it.id.clone().into(),
            it.since.map(time::show).unwrap_or_default().into(),
            list(&it.items).into(),
            list(&it.running).into(),
            marks.join(", ").into(),
        ]);
    }
    for table in [servers.show(screen), instances.show(screen), shards(screen, &job.shards)] {
        text.push('\n');
        text.push_str(&table);
    }
    text
}
