//! The operator, who works while things go wrong. What he does is acknowledged when it returns.

use elasticjob_core::node::Node;
use elasticjob_core::spec::JobSpec;
use elasticjob_core::tree::Op;
use elasticjob_core::view::{DISABLED, ENABLED};

use crate::history::Fact;
use crate::process::ip;
use crate::registry::root;
use crate::scenario::Operation;
use crate::world::{Event, World};

impl World {
    pub(crate) fn operate(&mut self, job: usize, operation: &Operation) {
        match operation.clone() {
            Operation::Count(count) => self.configure(job, |spec| spec.sharding_total_count = count),
            Operation::Cron(cron) => self.configure(job, |spec| spec.cron = Some(cron.to_owned())),
            Operation::Parameter(to) => self.configure(job, |spec| spec.job_parameter = format!("p{to}")),
            Operation::Failover(on) => self.configure(job, |spec| spec.failover = on),
            Operation::Misfire(on) => self.configure(job, |spec| spec.misfire = on),
            Operation::Monitor(on) => self.configure(job, |spec| spec.monitor_execution = on),
            Operation::Server(host, on) => self.server(job, host, on),
            Operation::Item(item, on) => self.item(job, item, on),
            Operation::Trigger => self.trigger(job),
            Operation::ShutDown(host) => self.shut_down(job, host),
            Operation::Remove(steps) => self.remove(job, steps),
            Operation::Nonsense => self.write_nonsense(job),
        }
    }

    /// Commits, and tells everybody. Says whether the registry took it.
    fn write_as_operator(&mut self, job: usize, ops: &[Op]) -> bool {
        let now = self.scenario.wall(self.now);
        match self.registry.operate(&root(job), ops, now) {
            Some(changes) => {
                self.tell(changes);
                true
            }
            None => false,
        }
    }

    fn exists(&self, job: usize, node: &Node) -> bool {
        self.registry.tree.get(&format!("{}{}", root(job), node.path())).is_some()
    }

    fn configure(&mut self, job: usize, change: impl FnOnce(&mut JobSpec)) {
        let Some(mut spec) = self.configs[job].clone() else { return };
        change(&mut spec);
        if self.exists(job, &Node::Config) {
            self.write_as_operator(job, &[Node::Config.set(spec.to_yaml())]);
        }
    }

    fn write_nonsense(&mut self, job: usize) {
        let Some(spec) = self.configs[job].clone().filter(|_| self.exists(job, &Node::Config)) else {
            return;
        };
        self.write_as_operator(job, &[Node::Config.set("shardingTotalCount: many\n")]);
        self.see(Fact::Fault("bad document", true));
        let wait = self.rng.range(1_000..=15_000).min(self.scenario.healed_at.saturating_sub(self.now + 500));
        self.after(wait, Event::PutBack(job, spec.to_yaml()));
    }

    pub(crate) fn put_back(&mut self, job: usize, text: String) {
        self.see(Fact::Fault("bad document", false));
        if self.exists(job, &Node::Config) {
            self.write_as_operator(job, &[Node::Config.set(text)]);
        }
    }

    fn server(&mut self, job: usize, host: usize, on: bool) {
        let node = Node::Server(ip(host));
        let status = if on { ENABLED } else { DISABLED };
        if self.exists(job, &node) && self.write_as_operator(job, &[node.set(status)]) {
            self.see(Fact::Server(job, host, on));
        }
    }

    fn item(&mut self, job: usize, item: u32, on: bool) {
        let node = Node::Disabled(item);
        let total = self.configs[job].as_ref().map_or(0, |it| it.sharding_total_count);
        let stands = item < total && self.exists(job, &Node::Owner(item));
        let op = if on { node.delete() } else { node.create("") };
        if stands && self.exists(job, &node) == on && self.write_as_operator(job, &[op]) {
            self.see(Fact::Item(job, item, on));
        }
    }

    /// Java's console asks every instance.
    fn trigger(&mut self, job: usize) {
        let ids = self.registry.tree.children(&format!("{}/instances", root(job)));
        let mut asked = Vec::new();
        for id in ids {
            let instance = self.ids.get(&id).copied();
            if self.write_as_operator(job, &[Node::Trigger(id).create("")]) {
                asked.extend(instance);
            }
        }
        self.see(Fact::Triggered(job, asked));
    }

    fn shut_down(&mut self, job: usize, host: usize) {
        let Some(process) = self.hosts[host].process else { return };
        let process = &self.processes[process];
        let (id, instance) = (process.me(), process.instance());
        if self.write_as_operator(job, &[Node::Instance(id).delete()]) {
            self.see(Fact::ShutDown(job, instance));
        }
    }

    /// Removes the whole subtree, as the registry's command line does: children first, in several steps if
    /// there are many, and again if something came back meanwhile.
    pub(crate) fn remove(&mut self, job: usize, steps: usize) {
        let mut paths: Vec<String> =
            self.registry.tree.snapshot(&root(job)).into_iter().map(|it| it.path).collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.matches('/').count()));
        let some = if steps > 1 { paths.len().div_ceil(steps) } else { paths.len() };
        let ops: Vec<Op> = paths.into_iter().take(some).map(|path| Op::Delete { path }).collect();
        if !ops.is_empty() {
            self.write_as_operator(job, &ops);
        }
        if steps > 1 {
            let wait = self.rng.range(0..=40);
            self.after(wait, Event::Remove(job, steps - 1));
        }
        self.point("remove");
    }
}
