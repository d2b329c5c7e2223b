//! Why a job ran, did not run, or runs late: the fire in question, and what the registry and the records at
//! hand know about it.

use std::collections::BTreeSet;

use elasticjob_cron::{Schedule, Zone};
use jiff::{SignedDuration, Timestamp};

use super::ask::{ShardInfo, ShardStatus, shards};
use super::config::Paused;
use super::words::{lasting, shards as listed, time};
use super::{JobTree, Refusal};
use crate::event::Event;
use crate::node::Node;
use crate::spec::JobSpec;
use crate::view::DISABLED;

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
    /// The chain of causes, the nearest first.
    pub because: Vec<String>,
    /// What else is known about it.
    pub known: Vec<String>,
    /// What to do.
    pub remedies: Vec<String>,
}

/// What is asked, and what is known besides the tree.
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
    schedule: &'a Schedule,
    question: &'a Question<'a>,
    all: Vec<ShardInfo>,
}

/// A cause, and what to do about it.
type Cause = (String, Option<String>);

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
        let causes = self.obstacles(next);
        let answer = match causes.is_empty() {
            true => format!("the fire of {} is yet to come, and nothing stands in its way", self.time(next)),
            false => {
                format!("the fire of {} is yet to come, and would not run as things are", self.time(next))
            }
        };
        self.conclude(next, answer, causes)
    }

    fn fire(&self, fire: Timestamp) -> Explanation {
        let running = self.which(|it| it.running.is_some() && it.settled == Some(fire));
        let settled = self.which(|it| it.settled.is_some_and(|at| at >= fire));
        let unknown = self.which(|it| it.settled.is_none());
        let open = self.which(|it| it.settled.is_some_and(|at| at < fire));
        let when = self.time(fire);
        if !running.is_empty() && open.is_empty() {
            return self.conclude(
                fire,
                format!("the fire of {when} runs now: {}", listed(&running)),
                Vec::new(),
            );
        }
        if open.is_empty() && unknown.is_empty() {
            let latest = self.all.iter().filter_map(|it| it.settled).max().unwrap_or(fire);
            let later = if latest > fire {
                format!("; the last settled fire is {}", self.time(latest))
            } else {
                String::new()
            };
            let answer = format!(
                "the fire of {when} is settled for all shards: each ran it, or skipped it for a reason{later}"
            );
            return self.conclude(fire, answer, Vec::new());
        }
        let causes = self.obstacles(fire);
        let late = self.question.now.duration_since(fire) <= LATE_START;
        let answer = if open.is_empty() {
            format!("whether the fire of {when} ran is not known for {}: nobody noted it", listed(&unknown))
        } else if late && causes.is_empty() {
            format!(
                "the fire of {when} has not begun for {}: it may still, until {}",
                listed(&open),
                self.time(fire + LATE_START)
            )
        } else {
            let rest = if settled.is_empty() {
                String::new()
            } else {
                format!("; it is settled for {}", listed(&settled))
            };
            format!("the fire of {when} did not run for {}{rest}", listed(&open))
        };
        self.conclude(fire, answer, causes)
    }

    fn conclude(&self, fire: Timestamp, answer: String, causes: Vec<Cause>) -> Explanation {
        let (because, remedies): (Vec<_>, Vec<_>) = causes.into_iter().unzip();
        let mut remedies: Vec<String> = remedies.into_iter().flatten().collect();
        remedies.dedup();
        Explanation { fire: Some(fire), answer, because, known: self.known(fire), remedies }
    }

    /// What stands in the way of a fire, the nearest cause first.
    fn obstacles(&self, fire: Timestamp) -> Vec<Cause> {
        let mut causes = self.of_items(fire);
        causes.extend(self.of_the_assignment());
        causes.extend(self.of_the_fleet(fire));
        causes
    }

    fn of_items(&self, fire: Timestamp) -> Vec<Cause> {
        let name = &self.tree.name;
        let mut causes = Vec::new();
        for it in self.all.iter().filter(|it| !it.surplus) {
            let item = it.item;
            if it.status == ShardStatus::Disabled {
                let since = self.since(&Node::Disabled(item), fire);
                causes.push((
                    format!("shard {item} is disabled{since}"),
                    Some(format!("elasticjob job enable {name} --shard {item}")),
                ));
            } else if let Some(runner) = &it.running {
                let since = self.since(&Node::Running(item), fire);
                let gone = if it.runner_alive { "" } else { ", which is gone" };
                let then = match (it.misfire, self.spec.misfire) {
                    (true, _) => "; what it missed runs once more when it ends",
                    (false, true) => "",
                    (false, false) => "; misfire is off, so what it misses is not made up for",
                };
                if it.settled.is_none_or(|at| at < fire) || !it.runner_alive {
                    causes.push((
                        format!("shard {item} is still running on {runner}{gone}{since}{then}"),
                        None,
                    ));
                }
            } else if it.crashed {
                causes.push((
                    format!("shard {item} lost its runner, and waits for an idle instance to take it over"),
                    None,
                ));
            } else if it.misfire {
                causes.push((format!("shard {item} missed a fire, which is to be made up for"), None));
            }
        }
        let unowned = self.which(|it| it.owner.is_none());
        if !unowned.is_empty() && !self.tree.view.instances.is_empty() {
            causes.push((format!("no instance owns {}", listed(&unowned)), None));
        }
        let orphaned = self.which(|it| it.owner.is_some() && !it.owner_alive);
        if !orphaned.is_empty() {
            let owners: BTreeSet<&str> = self
                .all
                .iter()
                .filter(|it| orphaned.contains(&it.item))
                .filter_map(|it| it.owner.as_deref())
                .collect();
            let owners: Vec<&str> = owners.into_iter().collect();
            causes.push((
                format!("{} belonged to {}, which is gone", listed(&orphaned), owners.join(", ")),
                None,
            ));
        }
        causes
    }

    fn of_the_assignment(&self) -> Vec<Cause> {
        let view = &self.tree.view;
        let mut causes = Vec::new();
        if view.necessary && !view.instances.is_empty() {
            let since = self
                .tree
                .written(&Node::Necessary)
                .map(|at| format!(" since {}", self.time(at)))
                .unwrap_or_default();
            causes.push((
                format!("the shards are to be handed out anew{since}, and nothing starts before they are"),
                None,
            ));
        }
        if view.leader.is_none() && !view.available().is_empty() {
            causes.push(("nobody leads, so nobody hands out shards".to_owned(), None));
        }
        causes
    }

    fn of_the_fleet(&self, fire: Timestamp) -> Vec<Cause> {
        let (view, name) = (&self.tree.view, &self.tree.name);
        let mut causes = Vec::new();
        let all_off = !view.servers.is_empty() && view.servers.values().all(|it| it == DISABLED);
        if let Some(paused) = Paused::of(self.spec) {
            causes.push((
                format!("the job is paused: {paused}"),
                Some(format!("elasticjob job resume {name}")),
            ));
        } else if all_off {
            let servers: Vec<String> = view
                .servers
                .keys()
                .map(|ip| format!("{ip}{}", self.since(&Node::Server(ip.clone()), fire)))
                .collect();
            causes.push((
                format!("all servers are disabled: {}", servers.join("; ")),
                Some(format!("elasticjob job enable {name}")),
            ));
        }
        if view.instances.is_empty() {
            causes.push((
                "no instance is there: every process that has the job is down, or cannot reach the registry"
                    .to_owned(),
                Some("start a worker that has the job".to_owned()),
            ));
            return causes;
        }
        let joined: Vec<Timestamp> =
            view.instances.keys().filter_map(|id| self.tree.written(&Node::Instance(id.clone()))).collect();
        if let Some(first) =
            joined.iter().min().filter(|first| **first > fire && joined.len() == view.instances.len())
        {
            causes.push((
                format!("nobody who is here now was here then: the first joined at {}", self.time(*first)),
                None,
            ));
        }
        if let Some(changed) =
            self.tree.written(&Node::Config).filter(|at| *at > fire && fire <= self.question.now)
        {
            causes.push((
                format!("the configuration was written at {}, after that fire: the schedule may have been another one", self.time(changed)),
                None,
            ));
        }
        causes
    }

    /// Since when a node is there; what came after the fire did not cause it.
    fn since(&self, node: &Node, fire: Timestamp) -> String {
        match self.tree.written(node) {
            None => String::new(),
            Some(at) if at > fire && fire <= self.question.now => {
                format!(", but only since {}", self.time(at))
            }
            Some(at) => format!(" since {} ({})", self.time(at), lasting(at, self.question.now)),
        }
    }

    fn known(&self, fire: Timestamp) -> Vec<String> {
        let mut known: Vec<String> =
            self.question.past.iter().filter_map(|it| self.recalled(it, fire)).collect();
        for it in self.all.iter().filter(|it| !it.surplus) {
            let mut about = Vec::new();
            about.extend(it.settled.map(|at| format!("last settled fire {}", self.time(at))));
            about.extend(it.running_since.map(|at| format!("running since {}", self.time(at))));
            about.extend(it.owner.as_ref().map(|id| format!("owner {id}")));
            about.extend(it.failover.as_ref().map(|id| format!("taken over by {id}")));
            about.extend(it.missed.map(|at| format!("missed {}", self.time(at))));
            if !about.is_empty() {
                known.push(format!("shard {}: {}", it.item, about.join(", ")));
            }
        }
        known.extend(self.tree.view.leader.as_ref().map(|id| format!("leader {id}")));
        known.extend(
            self.schedule.next_after(self.question.now).map(|at| format!("next fire {}", self.time(at))),
        );
        known
    }

    fn recalled(&self, past: &Past, fire: Timestamp) -> Option<String> {
        let Past { at, instance, event } = past;
        let when = self.time(*at);
        match event {
            Event::RoundStarted { nominal, items, source, .. } if *nominal == Some(fire) => {
                Some(format!("{when}: {instance} began {} ({source})", listed(items)))
            }
            Event::Missed { nominal, items } if *nominal == fire => {
                Some(format!("{when}: {instance} missed it for {}", listed(items)))
            }
            Event::Skipped { nominal, items, why } if *nominal == Some(fire) => {
                Some(format!("{when}: {instance} skipped it for {}: {why}", listed(items)))
            }
            _ => None,
        }
    }
}
