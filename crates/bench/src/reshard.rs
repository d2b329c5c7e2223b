//! One more instance of a job with many items: how long until every item has an owner again, and how much
//! moves for it. All times are those that ZooKeeper wrote at its nodes, so nobody watches meanwhile.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use elasticjob::registry::{self, Entry, Session};

use crate::side::{Member, Setup, Side, Stage};

/// How long one assignment may take, and the start of all instances with it.
const LIMIT: Duration = Duration::from_secs(120);
/// How often it is looked whether everything has its owner.
const LOOK: Duration = Duration::from_millis(500);
/// Nothing fires meanwhile.
const NEVER: &str = "0 0 0 1 1 ? 2099";

/// What an instance more, or one less, did to the assignment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resharded {
    pub(crate) items: usize,
    /// With the one that comes or goes.
    pub(crate) instances: usize,
    /// From the registration of the last instance until the last item had its owner, in milliseconds.
    pub(crate) joined: f64,
    pub(crate) moved: usize,
    /// From the request to end until the last item had its owner.
    pub(crate) left: f64,
    pub(crate) moved_back: usize,
}

impl Resharded {
    /// The least that gives the newcomer its share.
    pub(crate) fn least(&self) -> usize {
        self.items / self.instances
    }
}

/// Who owns which item, and since when.
pub(crate) struct Owners {
    pub(crate) of: BTreeMap<String, String>,
    /// When the last of them was written, in milliseconds since 1970.
    pub(crate) written: i64,
    /// When each instance was registered.
    pub(crate) instances: BTreeMap<String, i64>,
}

pub(crate) async fn measure(stage: &Stage, side: Side, items: usize, instances: usize) -> Result<Resharded> {
    let namespace = stage.namespace();
    let setup = Setup { cron: NEVER, ..Setup::each_second(namespace.clone(), 1, items) };
    let url = stage.server.url(&namespace, "session-timeout=20s");
    let reader = registry::open(&url)?.connect().await?;
    let many = stage.start(side, &Setup { instances: instances - 1, ..setup.clone() })?;
    let before = until_assigned(&*reader, &many, items, instances - 1).await?;
    let last = stage.start(side, &setup)?;
    let after = until_assigned(&*reader, &last, items, instances).await?;
    let is_new = |id: &&String| !before.instances.contains_key(*id);
    let newcomer = after.instances.keys().find(is_new).context("the last instance is not there")?;
    let joined = (after.written - after.instances[newcomer]) as f64;
    let asked = crate::side::now() as f64 / 1e3;
    last.end().await?;
    let again = until_assigned(&*reader, &many, items, instances - 1).await?;
    let left = again.written as f64 - asked;
    many.end().await?;
    reader.close().await;
    let moves = |from: &Owners, to: &Owners| {
        to.of.iter().filter(|(item, owner)| from.of.get(*item) != Some(owner)).count()
    };
    let (moved, moved_back) = (moves(&before, &after), moves(&after, &again));
    Ok(Resharded { items, instances, joined, moved, left, moved_back })
}

/// Waits until each item is owned by somebody who is there, and so many are there.
pub(crate) async fn until_assigned(
    reader: &dyn Session,
    member: &Member,
    items: usize,
    instances: usize,
) -> Result<Owners> {
    let wait = async {
        loop {
            let is_done = |it: &Owners| it.instances.len() == instances && it.of.len() == items;
            if may_be_assigned(reader, instances).await?
                && let Some(owners) = owners(&reader.read("/job-0").await?).filter(is_done)
            {
                return Ok(owners);
            }
            if member.has_ended() {
                bail!("a worker ended before every item had an owner");
            }
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(LIMIT, wait).await.with_context(|| format!("no assignment within {LIMIT:?}"))?
}

/// Reading all of it would keep the server from making the assignment: it is looked at two nodes first.
async fn may_be_assigned(reader: &dyn Session, instances: usize) -> Result<bool> {
    let there = reader.children("/job-0/instances").await?.len();
    let sharding = reader.children("/job-0/leader/sharding").await?;
    let under_way = sharding.iter().any(|it| it == "necessary" || it == "processing");
    Ok(there == instances && !under_way)
}

/// `None` while the assignment is under way, or does not fit those who are there.
fn owners(entries: &[Entry]) -> Option<Owners> {
    let mut found = Owners { of: BTreeMap::new(), written: 0, instances: BTreeMap::new() };
    for entry in entries {
        let parts: Vec<&str> = entry.path.split('/').skip(1).collect();
        let written = entry.stat.modified.as_millisecond();
        match parts[..] {
            ["instances", id] => drop(found.instances.insert(id.to_owned(), written)),
            ["leader", "sharding", "necessary" | "processing"] => return None,
            ["sharding", item, "instance"] => {
                found.of.insert(item.to_owned(), entry.data.clone());
                found.written = found.written.max(written);
            }
            _ => {}
        }
    }
    let working: std::collections::BTreeSet<&String> = found.of.values().collect();
    let all_live = working.iter().all(|it| found.instances.contains_key(*it));
    let all_work = found.of.len() < found.instances.len() || working.len() == found.instances.len();
    (all_live && all_work).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use elasticjob::registry::Stat;
    use jiff::Timestamp;

    fn entry(path: &str, data: &str, at: i64) -> Entry {
        let modified = Timestamp::from_millisecond(at).unwrap();
        let stat = Stat { created: 1, written: 1, version: 0, modified, ephemeral: false };
        Entry { path: path.into(), data: data.into(), stat }
    }

    #[test]
    fn an_assignment_counts_when_all_who_are_there_have_work_and_nobody_else_has() {
        let (a, b) = (entry("/instances/a", "", 5), entry("/instances/b", "", 7));
        let of = |item: u32, owner: &str| entry(&format!("/sharding/{item}/instance"), owner, 10);
        let found = owners(&[a.clone(), b.clone(), of(0, "a"), of(1, "b")]).unwrap();
        assert_eq!((found.written, found.instances["b"], found.of.len()), (10, 7, 2));
        assert!(owners(&[a.clone(), b.clone(), of(0, "a"), of(1, "a")]).is_none(), "b has nothing yet");
        assert!(owners(&[a.clone(), of(0, "a"), of(1, "b")]).is_none(), "b is gone");
        let necessary = entry("/leader/sharding/necessary", "", 1);
        assert!(owners(&[a, b, of(0, "a"), of(1, "b"), necessary]).is_none(), "it is under way");
    }
}
