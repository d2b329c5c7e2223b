//! Why a job ran, did not run, or runs late: the fire in question, and what the registry and the records at
//! hand know about it.

mod records;
mod told;

use std::collections::BTreeSet;

use elasticjob_cron::Zone;
use jiff::{SignedDuration, Timestamp};

use super::ask::{ShardInfo, ShardStatus, shards};
use super::config::Paused;
use super::words::{lasting, shards as listed, time};
use super::{JobTree, Refusal};
use crate::event::Event;
use crate::node::Node;
use crate::spec::JobSpec;
use crate::timer::Timer;
use crate::view::DISABLED;
use records::Records;

/// A fire may begin that late, after a pause, a reconnect or a change of owner.
const LATE_START: SignedDuration = SignedDuration::from_secs(60);

/// Something that an instance recorded: the history that an explanation may draw on.
///
/// ```
/// use elasticjob_core::event::Event;
/// use elasticjob_core::ops::explain::Past;
///
/// let past = Past { at: jiff::Timestamp::UNIX_EPOCH, instance: "10.0.0.1@-@1.a.1".into(), event: Event::Elected };
/// assert_eq!(past.event, Event::Elected);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// When.
    pub at: Timestamp,
    /// By whom.
    pub instance: String,
    /// What.
    pub event: Event,
}

/// An answer, with its reasons.
///
/// ```
/// use elasticjob_core::ops::JobTree;
/// use elasticjob_core::ops::explain::{Question, explain};
/// use elasticjob_cron::Zone;
/// use jiff::Timestamp;
///
/// let now = Timestamp::UNIX_EPOCH;
/// let question = Question { at: now, now, zone: &Zone::UTC, past: &[] };
/// assert!(explain(&JobTree::new("nightly", vec![]), &question).is_err()); // It has no configuration.
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// The fire that was asked about, if there is one.
    pub fire: Option<Timestamp>,
    /// In one sentence.
    pub answer: String,
    /// Chains of causes that do not depend on each other; in each, the nearest cause comes first.
    pub because: Vec<Vec<String>>,
    /// What else is known about it.
    pub known: Vec<String>,
    /// What to do.
    pub remedies: Vec<String>,
}

/// What is asked, and what is known besides the tree.
///
/// ```
/// use elasticjob_core::ops::explain::Question;
/// use elasticjob_cron::Zone;
/// use jiff::Timestamp;
///
/// let now: Timestamp = "2026-11-15T02:10:00Z".parse().unwrap();
/// let why_not_at_two = Question { at: "2026-11-15T02:00:00Z".parse().unwrap(), now, zone: &Zone::UTC, past: &[] };
/// assert!(why_not_at_two.at < why_not_at_two.now);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The last fire up to this instant is meant; the next one, if the instant is yet to come.
    pub at: Timestamp,
    /// The present.
    pub now: Timestamp,
    /// Where the schedule lives if the job's settings do not say.
    pub zone: &'a Zone,
    /// What instances recorded, if anybody kept it.
    pub past: &'a [Past],
}

/// Answers why the job ran, did not run, or runs late.
///
/// # Errors
///
/// If the job's settings cannot be read.
pub fn explain(tree: &JobTree, question: &Question<'_>) -> Result<Explanation, Refusal> {
    let spec = tree.spec()?;
    let Some(schedule) = tree.schedule(question.zone) else { return Ok(unscheduled(tree, &spec)) };
    let instant = question.at.min(question.now);
    let asked = instant.checked_add(SignedDuration::from_nanos(1)).unwrap_or(instant);
    let case = Case { tree, spec: &spec, schedule: &schedule, question, all: shards(tree) };
    let fire = if question.at > question.now { None } else { schedule.previous_before(asked) };
    Ok(match fire {
        Some(fire) => case.fire(fire),
        None => case.coming(),
    })
}

fn unscheduled(tree: &JobTree, spec: &JobSpec) -> Explanation {
    let answer = match spec.cron {
        Some(_) => "its schedule cannot be read, so it never fires",
        None if spec.props.contains_key(crate::policy::DELAY) => {
            "it has no fires: each shard runs again some time after it ended"
        }
        None => "it has no cron: it runs only when it is triggered",
    };
    let asked = tree.view.triggers.keys().map(|id| format!("{id} is asked to run, and has not begun"));
    Explanation {
        answer: answer.to_owned(),
        known: asked.collect(),
        remedies: vec![format!("elasticjob job trigger {}", tree.name)],
        ..Explanation::default()
    }
}

struct Case<'a> {
    tree: &'a JobTree,
    spec: &'a JobSpec,
    schedule: &'a Timer,
    question: &'a Question<'a>,
    all: Vec<ShardInfo>,
}

/// One chain of causes, the nearest first, and what to do about it.
#[derive(Clone, Default)]
struct Chain {
    causes: Vec<String>,
    remedy: Option<String>,
}

impl Chain {
    fn of(causes: impl IntoIterator<Item = String>) -> Chain {
        Chain { causes: causes.into_iter().collect(), remedy: None }
    }

    fn remedy(self, remedy: String) -> Chain {
        Chain { remedy: Some(remedy), ..self }
    }
}

impl Case<'_> {
    fn time(&self, at: Timestamp) -> String {
        time(at, self.schedule.zone())
    }

    fn which(&self, fits: impl Fn(&ShardInfo) -> bool) -> BTreeSet<u32> {
        self.all.iter().filter(|it| !it.surplus && fits(it)).map(|it| it.item).collect()
    }

    /// The next fire is asked about, or none has come yet.
    fn coming(&self) -> Explanation {
        let from = self.question.at.max(self.question.now);
        let Some(next) = self.schedule.next_after(from) else {
            let answer = "its schedule has no further fire".to_owned();
            return Explanation { answer, ..Explanation::default() };
        };
        let chains = self.chains(next, &self.which(|_| true), &Records::default());
        let answer = match chains.is_empty() {
            true => format!("the fire of {} is yet to come, and nothing stands in its way", self.time(next)),
            false => {
                format!("the fire of {} is yet to come, and would not run as things are", self.time(next))
            }
        };
        self.conclude(next, answer, chains, &Records::default())
    }

    fn fire(&self, fire: Timestamp) -> Explanation {
        let when = self.time(fire);
        let running = self.which(|it| it.running.is_some() && it.runner_alive && it.settled == Some(fire));
        let records = Records::of(self.question.past, fire);
        let told = records.settled();
        let untold = |it: &ShardInfo| !told.contains(&it.item);
        let settled = self.which(|it| it.settled.is_some_and(|at| at >= fire) && untold(it));
        let unknown = self.which(|it| it.settled.is_none() && untold(it));
        let open = self.which(|it| it.settled.is_some_and(|at| at < fire) && untold(it));
        let unsettled = self.which(|it| it.settled.is_none_or(|at| at < fire) && untold(it));
        let chains = self.chains(fire, &unsettled, &records);
        let mut parts = self.told_parts(&records, &running);
        if !running.is_empty() {
            parts.push(format!("it runs now for {}", listed(&running)));
        }
        let ended: BTreeSet<u32> = settled.difference(&running).copied().collect();
        if !ended.is_empty() {
            let latest = self.all.iter().filter_map(|it| it.settled).max();
            let latest = latest.filter(|at| *at > fire && *at <= self.question.now);
            let later =
                latest.map(|at| format!(" (the last settled fire is {})", self.time(at))).unwrap_or_default();
            parts.push(format!("{} ran it, or skipped it for a reason{later}", listed(&ended)));
        }
        if !open.is_empty() {
            let late = self.question.now.duration_since(fire) <= LATE_START && chains.is_empty();
            parts.push(match late {
                true => {
                    format!("{} may still begin it, until {}", listed(&open), self.time(fire + LATE_START))
                }
                false => format!("{} did not run it", listed(&open)),
            });
        }
        if !unknown.is_empty() {
            parts.push(format!("whether {} ran it is not known, because nobody noted it", listed(&unknown)));
        }
        self.conclude(fire, format!("the fire of {when}: {}", parts.join("; ")), chains, &records)
    }

    fn conclude(
        &self,
        fire: Timestamp,
        answer: String,
        chains: Vec<Chain>,
        records: &Records<'_>,
    ) -> Explanation {
        let mut remedies: Vec<String> = chains.iter().filter_map(|it| it.remedy.clone()).collect();
        remedies.dedup();
        let because = chains.into_iter().map(|it| it.causes).collect();
        Explanation { fire: Some(fire), answer, because, known: self.known(fire, records), remedies }
    }

    /// Whether a node was there when the fire came. Of a fire to come, it is assumed of what is there now.
    fn was_there(&self, node: &Node, fire: Timestamp) -> bool {
        fire > self.question.now || self.tree.written(node).is_none_or(|at| at <= fire)
    }

    /// What stands in the way of a fire of these shards. Where nobody can work at all, the rest follows.
    fn chains(&self, fire: Timestamp, items: &BTreeSet<u32>, records: &Records<'_>) -> Vec<Chain> {
        let mut chains = self.told_chains(records, fire);
        if items.is_empty() {
            return chains;
        }
        if let Some(chain) = self.nobody_is_there().or_else(|| self.nobody_may_work(fire)) {
            return [chains, vec![chain], self.told_absent(records, fire)].concat();
        }
        let all = self.all.iter().filter(|it| items.contains(&it.item));
        chains.extend(all.filter_map(|it| self.of_item(it, fire)));
        chains.extend(self.of_owners(items));
        chains.extend(self.told_absent(records, fire));
        chains.extend(self.after_the_fact(fire));
        let over = fire + LATE_START < self.question.now;
        if chains.is_empty() && over {
            let owners: BTreeSet<&str> = self
                .all
                .iter()
                .filter(|it| items.contains(&it.item))
                .filter_map(|it| it.owner.as_deref())
                .collect();
            let owners: Vec<&str> = owners.into_iter().collect();
            let what = "the registry knows no reason: what stood in the way then is gone since";
            chains
                .push(Chain::of([what.to_owned()]).remedy(format!("see the logs of {}", owners.join(", "))));
        }
        chains
    }

    fn nobody_is_there(&self) -> Option<Chain> {
        let what =
            "no instance is there: every process that has the job is down, or cannot reach the registry";
        let chain = Chain::of([what.to_owned()]).remedy("start a worker that has the job".to_owned());
        self.tree.view.instances.is_empty().then_some(chain)
    }

    fn nobody_may_work(&self, fire: Timestamp) -> Option<Chain> {
        let (servers, name) = (&self.tree.view.servers, &self.tree.name);
        let off = |ip: &String, status: &String| {
            status == DISABLED && self.was_there(&Node::Server(ip.clone()), fire)
        };
        if servers.is_empty() || !servers.iter().all(|(ip, status)| off(ip, status)) {
            return None;
        }
        let since = |ip: &String| format!("{ip}{}", self.since(&Node::Server(ip.clone())));
        let list: Vec<String> = servers.keys().map(since).collect();
        let disabled = format!("all servers are disabled: {}", list.join("; "));
        Some(match Paused::of(self.spec) {
            None => Chain::of([disabled]).remedy(format!("elasticjob job enable {name}")),
            Some(paused) => Chain::of([disabled, format!("the job is paused: {paused}")])
                .remedy(format!("elasticjob job resume {name}")),
        })
    }

    fn of_item(&self, it: &ShardInfo, fire: Timestamp) -> Option<Chain> {
        let (item, name) = (it.item, &self.tree.name);
        if it.status == ShardStatus::Disabled {
            if !self.was_there(&Node::Disabled(item), fire) {
                return None;
            }
            let since = self.since(&Node::Disabled(item));
            let chain = Chain::of([format!("shard {item} is disabled{since}")]);
            return Some(chain.remedy(format!("elasticjob job enable {name} --shard {item}")));
        }
        let missed = || {
            let which = it.missed.map(|at| format!(" of {}", self.time(at))).unwrap_or_default();
            format!("shard {item} missed a fire{which}, and runs once more to make up for it")
        };
        if let Some(runner) = it.running.as_ref().filter(|_| self.was_there(&Node::Running(item), fire)) {
            let since = self.since(&Node::Running(item));
            let busy = match it.runner_alive {
                true => format!("shard {item} is still running on {runner}{since}"),
                false => format!("shard {item} is marked as running on {runner}{since}, which is gone"),
            };
            let lost = (!it.misfire && !self.spec.misfire)
                .then(|| format!("misfire is off, so what shard {item} misses meanwhile is not made up for"));
            let first = it.misfire.then(missed).or(lost);
            let whose = (!it.runner_alive).then(|| self.why_marks_stay()).flatten();
            return Some(Chain::of(first.into_iter().chain([busy]).chain(whose)));
        }
        if it.crashed {
            return Some(Chain::of([format!(
                "shard {item} lost its runner, and waits for an idle instance to take it over"
            )]));
        }
        it.misfire.then(|| Chain::of([missed()]))
    }

    fn of_owners(&self, items: &BTreeSet<u32>) -> Option<Chain> {
        let unowned = self.which(|it| items.contains(&it.item) && it.owner.is_none());
        let orphaned = self.which(|it| items.contains(&it.item) && it.owner.is_some() && !it.owner_alive);
        let mut missing = Vec::new();
        if !unowned.is_empty() {
            missing.push(format!("no instance owns {}", listed(&unowned)));
        }
        if !orphaned.is_empty() {
            let owned = self.all.iter().filter(|it| orphaned.contains(&it.item));
            let owners: BTreeSet<&str> = owned.filter_map(|it| it.owner.as_deref()).collect();
            let owners: Vec<&str> = owners.into_iter().collect();
            let belonged = if orphaned.len() == 1 { "belongs" } else { "belong" };
            missing.push(format!("{} {belonged} to {}, which is gone", listed(&orphaned), owners.join(", ")));
        }
        let mut causes = Vec::new();
        causes.extend((!missing.is_empty()).then(|| missing.join(", and ")));
        if self.tree.view.necessary {
            let since = self
                .tree
                .written(&Node::Necessary)
                .map(|at| format!(" since {}", self.time(at)))
                .unwrap_or_default();
            causes.push(format!(
                "the shards are to be handed out anew{since}, and nothing starts before they are"
            ));
            let busy = self.which(|it| it.running.is_some() && it.runner_alive);
            if !busy.is_empty() {
                causes.push(format!("{} must come to rest before", listed(&busy)));
            }
        }
        if !causes.is_empty() {
            causes.extend(self.why_marks_stay());
        }
        (!causes.is_empty()).then(|| Chain::of(causes))
    }

    /// Only a leader cleans up and hands out.
    fn why_marks_stay(&self) -> Option<String> {
        let view = &self.tree.view;
        match &view.leader {
            None => Some("nobody leads, and only a leader puts that right".to_owned()),
            Some(id) if !view.is_alive(id) => {
                Some(format!("the leader {id} is gone, and its place is not free yet"))
            }
            Some(_) => None,
        }
    }

    /// What was another way when the fire came, as far as that can be told.
    fn after_the_fact(&self, fire: Timestamp) -> Vec<Chain> {
        let mut chains = Vec::new();
        if fire > self.question.now {
            return chains;
        }
        let instances = &self.tree.view.instances;
        let joined: Vec<Timestamp> =
            instances.keys().filter_map(|id| self.tree.written(&Node::Instance(id.clone()))).collect();
        if let Some(first) =
            joined.iter().min().filter(|first| **first > fire && joined.len() == instances.len())
        {
            chains.push(Chain::of([format!(
                "nobody who is here now was here then: the first joined at {}",
                self.time(*first)
            )]));
        }
        if let Some(changed) = self.tree.written(&Node::Config).filter(|at| *at > fire) {
            let what = format!(
                "the configuration was written at {}, after that fire: the schedule may have been another one",
                self.time(changed)
            );
            chains.push(Chain::of([what]));
        }
        chains
    }

    fn since(&self, node: &Node) -> String {
        let written = self.tree.written(node);
        written
            .map(|at| format!(" since {} ({})", self.time(at), lasting(at, self.question.now)))
            .unwrap_or_default()
    }

    fn known(&self, fire: Timestamp, records: &Records<'_>) -> Vec<String> {
        let mut known = self.told_known(records);
        for it in self.all.iter().filter(|it| !it.surplus) {
            let mut about = Vec::new();
            about.extend(it.settled.map(|at| format!("last settled fire {}", self.time(at))));
            about.extend(it.running_since.map(|at| format!("running since {}", self.time(at))));
            about.extend(
                self.tree
                    .written(&Node::Disabled(it.item))
                    .map(|at| format!("disabled since {}", self.time(at))),
            );
            about.extend(it.owner.as_ref().map(|id| format!("owner {id}")));
            about.extend(it.failover.as_ref().map(|id| format!("taken over by {id}")));
            about.extend(it.missed.map(|at| format!("missed {}", self.time(at))));
            if !about.is_empty() {
                known.push(format!("shard {}: {}", it.item, about.join(", ")));
            }
        }
        let off = self.tree.view.servers.iter().filter(|(_, status)| *status == DISABLED);
        for (ip, _) in off.filter(|_| self.nobody_may_work(fire).is_none()) {
            known.push(format!("server {ip} is disabled{}", self.since(&Node::Server(ip.clone()))));
        }
        known.extend(self.tree.view.leader.as_ref().map(|id| format!("leader {id}")));
        known.extend(
            self.schedule.next_after(self.question.now).map(|at| format!("next fire {}", self.time(at))),
        );
        known
    }
}
