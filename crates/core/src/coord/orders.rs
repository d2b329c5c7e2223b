//! What is ordered of the driver: rounds and hooks, by name.

use super::{Coordinator, Effect, HookOrder, Order, OrderItem, Round};
use crate::event::{Hook, Source};
use crate::mutants::{Mutant, on};

impl Coordinator {
    pub(super) fn call(&self, hook: Hook, round: &Round, out: &mut Vec<Effect>) {
        out.push(Effect::Hook(HookOrder { hook, round: self.order(round) }));
    }

    pub(super) fn order(&self, round: &Round) -> Order {
        let plan = self.plan.as_ref().expect("a round has a plan");
        let token = |item| {
            let state = self.view.items.get(&item);
            let running = |it: &'_ crate::view::Item| it.running.clone().filter(|_| !on(Mutant::OwnerToken));
            let mark = state.and_then(|it| running(it).or(it.owner.clone()));
            mark.map_or(0, |it| it.token)
        };
        let order_item = |&item: &u32| OrderItem {
            item,
            parameter: plan.parameters.get(&item).cloned(),
            trigger_parameter: round.parameters.get(&item).cloned(),
            token: token(item),
        };
        Order {
            round: round.number,
            task_id: self.task_id(round),
            source: round.source,
            nominal: round.nominal,
            merged: round.merged,
            total: plan.spec.sharding_total_count,
            job_parameter: plan.spec.job_parameter.clone(),
            items: round.items.iter().map(order_item).collect(),
        }
    }

    /// Java's five parts, the last of which is opaque: ours names the round of this session.
    pub(super) fn task_id(&self, round: &Round) -> String {
        let kind = if round.source == Source::Failover { "FAILOVER" } else { "READY" };
        let items: Vec<String> = round.items.iter().map(u32::to_string).collect();
        let (job, number) = (&self.local.spec.job_name, round.number);
        format!("{job}@-@{}@-@{kind}@-@{}-{number}", items.join(","), self.me)
    }
}
