//! Is the fleet healthy? What is stuck, orphaned, unassigned or offline, and what to do about it.

use std::collections::{BTreeMap, BTreeSet};

use elasticjob_cron::Zone;
use jiff::{SignedDuration, Timestamp};

use super::JobTree;
use super::ask::{ShardInfo, shards};
use super::config::Paused;
use super::words::{lasting, shards as listed, time};
use crate::node::Node;
use crate::view::{DISABLED, Item};

/// What takes longer than this is stuck: everything that the leader does is a matter of seconds.
const STUCK_AFTER: SignedDuration = SignedDuration::from_secs(60);
/// A fire noted for later than this from now was noted by a clock that is wrong.
const CLOCK_AHEAD: SignedDuration = SignedDuration::from_secs(30);

/// How bad a finding is.
///
/// ```
/// use elasticjob_core::ops::check::Level;
///
/// assert!(Level::Note < Level::Problem);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Somebody wanted it so.
    Note,
    /// Something does not run, or may not.
    Problem,
}

/// Something that an operator should know.
///
/// ```
/// use elasticjob_core::ops::JobTree;
/// use elasticjob_core::ops::check::{Level, check};
/// use elasticjob_cron::Zone;
///
/// let found = check(&JobTree::new("nightly", vec![]), jiff::Timestamp::UNIX_EPOCH, &Zone::UTC);
/// assert_eq!(found[0].level, Level::Problem);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// Which job it is about.
    pub job: String,
    /// What is the matter.
    pub what: String,
    /// What to do; empty if nothing need be.
    pub remedy: String,
}

/// Everything that is remarkable about a job, the worst first.
pub fn check(tree: &JobTree, now: Timestamp, zone: &Zone) -> Vec<Finding> {
    let mut doctor = Doctor { tree, now, zone, found: Vec::new() };
    doctor.document();
    doctor.members();
    doctor.leader();
    doctor.marks();
    doctor.items();
    let mut found = doctor.found;
    found.sort_by_key(|it| std::cmp::Reverse(it.level));
    found
}

struct Doctor<'a> {
    tree: &'a JobTree,
    now: Timestamp,
    zone: &'a Zone,
    found: Vec<Finding>,
}

impl Doctor<'_> {
    fn say(&mut self, level: Level, what: String, remedy: impl Into<String>) {
        self.found.push(Finding { level, job: self.tree.name.clone(), what, remedy: remedy.into() });
    }

    fn problem(&mut self, what: String, remedy: impl Into<String>) {
        self.say(Level::Problem, what, remedy);
    }

    fn document(&mut self) {
        let name = &self.tree.name;
        match self.tree.spec() {
            Err(refusal) => self.problem(refusal.to_string(), ""),
            Ok(spec) => {
                if let Err(error) = spec.validate() {
                    self.problem(
                        format!("its configuration is wrong: {error}"),
                        format!("elasticjob job edit {name}"),
                    );
                }
                if let Err(error) = spec.check_secrets(None) {
                    self.say(Level::Note, error.to_string(), format!("elasticjob job edit {name}"));
                }
                if let Some(paused) = Paused::of(&spec) {
                    self.say(
                        Level::Note,
                        format!("it is paused: {paused}"),
                        format!("elasticjob job resume {name}"),
                    );
                }
            }
        }
    }

    fn members(&mut self) {
        let (view, name) = (&self.tree.view, &self.tree.name);
        if view.instances.is_empty() {
            self.problem(
                "no instance is there: nothing of it runs".to_owned(),
                "start a worker that has the job",
            );
            return;
        }
        let offline: Vec<(&String, &String)> =
            view.servers.iter().filter(|(ip, _)| self.tree.instances_of(ip).next().is_none()).collect();
        for (ip, status) in offline {
            let (level, state) = match status.as_str() {
                DISABLED => (Level::Note, "disabled and offline"),
                _ => (Level::Problem, "offline"),
            };
            let what = format!("server {ip} is {state}: none of its instances is there");
            let remedy =
                format!("start its worker, or forget it: elasticjob job remove {name} --server {ip}");
            self.say(level, what, remedy);
        }
        let off: Vec<&str> = view
            .servers
            .iter()
            .filter(|(_, status)| *status == DISABLED)
            .map(|(ip, _)| ip.as_str())
            .collect();
        let here = |ip: &&&str| self.tree.instances_of(ip).next().is_some();
        let some: Vec<&str> = off.iter().filter(here).copied().collect();
        if !off.is_empty() && off.len() == view.servers.len() {
            self.say(
                Level::Note,
                "all of its servers are disabled: nothing of it runs".to_owned(),
                format!("elasticjob job enable {name}"),
            );
        } else if let Some(first) = some.first() {
            let what = format!("disabled: server {}", some.join(", "));
            self.say(Level::Note, what, format!("elasticjob job enable {name} --server {first}"));
        }
        let lost: Vec<String> = view
            .instances
            .keys()
            .filter(|id| !view.servers.contains_key(&self.tree.server_of(id)))
            .cloned()
            .collect();
        for id in lost {
            self.problem(
                format!("instance {id} has no server node, so it gets no shards"),
                "restart that instance",
            );
        }
    }

    fn leader(&mut self) {
        let view = &self.tree.view;
        if view.available().is_empty() {
            return; // Nobody could lead.
        }
        match view.leader.as_ref() {
            None => self.problem(
                "nobody leads: shards are not handed out".to_owned(),
                "wait a moment; if it stays so, restart the instances one by one",
            ),
            Some(id) if !view.is_alive(id) => {
                self.problem(
                    format!("the leader {id} is not among the instances"),
                    "wait for its session to end, or stop that process",
                );
            }
            Some(_) => {}
        }
        if let Some(since) = self.stuck(&Node::Necessary) {
            let busy = self.busy();
            let why =
                if busy.is_empty() { String::new() } else { format!(" for {} to end and", listed(&busy)) };
            self.problem(
                format!(
                    "the job waits{why} to hand out its shards anew, for {}: nothing starts meanwhile",
                    lasting(since, self.now)
                ),
                "let what runs end, or stop the instance that runs it",
            );
        }
    }

    /// Since when a node is there, if that is too long.
    fn stuck(&self, node: &Node) -> Option<Timestamp> {
        let since = self.tree.written(node)?;
        (self.now.duration_since(since) > STUCK_AFTER).then_some(since)
    }

    fn busy(&self) -> BTreeSet<u32> {
        let view = &self.tree.view;
        let runs = |it: &Item| it.running.as_ref().is_some_and(|mark| view.is_alive(&mark.by));
        view.items.iter().filter(|(_, it)| runs(it)).map(|(item, _)| *item).collect()
    }

    fn marks(&mut self) {
        let view = &self.tree.view;
        let orphans: Vec<String> = view.triggers.keys().filter(|id| !view.is_alive(id)).cloned().collect();
        for id in orphans {
            self.problem(
                format!("{id} was asked to run, and is gone"),
                "the leader hands its shards on; if it stays so, trigger the job again",
            );
        }
        let queued = view.crashed.clone();
        let stuck = queued.iter().any(|item| self.stuck(&Node::Crashed(*item)).is_some());
        if stuck {
            self.problem(
                format!("{} lost the runner, and nobody takes over", listed(&queued)),
                "enable or start an instance that is idle",
            );
        }
    }

    fn items(&mut self) {
        if self.tree.view.instances.is_empty() {
            return;
        }
        let all = shards(self.tree);
        let which = |fits: &dyn Fn(&ShardInfo) -> bool| -> BTreeSet<u32> {
            all.iter().filter(|it| fits(it)).map(|it| it.item).collect()
        };
        let able = !self.tree.view.available().is_empty();
        let unowned = which(&|it| !it.surplus && it.owner.is_none() && able);
        if !unowned.is_empty() {
            self.problem(
                format!("{} without an owner", has(&unowned)),
                "the leader hands them out within seconds; if it stays so, see the leader's log",
            );
        }
        let orphaned = which(&|it| !it.surplus && it.owner.is_some() && !it.owner_alive);
        if !orphaned.is_empty() {
            self.problem(
                format!("{} to an instance that is gone", belongs(&orphaned)),
                "the leader moves them within seconds; enable or start an instance if none may work",
            );
        }
        for it in all.iter().filter(|it| it.running.is_some() && !it.runner_alive) {
            let runner = it.running.as_deref().unwrap_or_default();
            self.problem(
                format!("shard {} is marked as running on {runner}, which is gone", it.item),
                "the leader clears the mark within seconds; if it stays so, no Rust instance leads: restart the leader",
            );
        }
        let off = which(&|it| it.status == super::ask::ShardStatus::Disabled);
        if !off.is_empty() {
            let first = off.first().copied().unwrap_or_default();
            self.say(
                Level::Note,
                format!("disabled: {}", listed(&off)),
                format!("elasticjob job enable {} --shard {first}", self.tree.name),
            );
        }
        let surplus = which(&|it| it.surplus);
        if !surplus.is_empty() {
            self.problem(
                format!("{} beyond the job's number of shards", has(&surplus)),
                "the leader clears them within seconds",
            );
        }
        self.lateness(&all);
    }

    fn lateness(&mut self, all: &[ShardInfo]) {
        let Some(schedule) = self.tree.schedule(self.zone) else { return };
        let mut behind: BTreeMap<Timestamp, BTreeSet<u32>> = BTreeMap::new();
        for it in all.iter().filter(|it| !it.surplus && it.status != super::ask::ShardStatus::Disabled) {
            if let Some(since) = it.running_since.filter(|_| it.runner_alive) {
                let passed = schedule.count_between(since, self.now);
                if passed >= 2 {
                    let runner = it.running.as_deref().unwrap_or_default();
                    self.problem(
                        format!(
                            "shard {} runs on {runner} for {}; {passed} fires passed meanwhile",
                            it.item,
                            lasting(since, self.now)
                        ),
                        "see what it does; fire less often, or make more shards",
                    );
                }
                continue;
            }
            let Some(settled) = it.settled else { continue };
            if settled.duration_since(self.now) > CLOCK_AHEAD {
                self.problem(
                    format!(
                        "shard {} ran a fire of {}, which is yet to come: a clock is wrong",
                        it.item,
                        time(settled, self.zone)
                    ),
                    "compare the clocks of the hosts",
                );
            }
            if it.owner_alive && !self.tree.view.available().is_empty() {
                behind.entry(settled).or_default().insert(it.item);
            }
        }
        for (settled, items) in behind {
            let before = self.now.checked_sub(STUCK_AFTER).unwrap_or(self.now);
            let passed = if settled < before { schedule.count_between(settled, before) } else { 0 };
            if passed >= 2 {
                let what = format!(
                    "{} {passed} fires behind: the last settled one was {}",
                    has(&items),
                    time(settled, self.zone)
                );
                self.problem(what, format!("elasticjob explain {}", self.tree.name));
            }
        }
    }
}

fn has(items: &BTreeSet<u32>) -> String {
    format!("{} {}", listed(items), if items.len() == 1 { "is" } else { "are" })
}

fn belongs(items: &BTreeSet<u32>) -> String {
    format!("{} belong{}", listed(items), if items.len() == 1 { "s" } else { "" })
}
