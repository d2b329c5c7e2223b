//! Being there: the job's class and `config`, `servers/{ip}` and `instances/{id}`.

use super::{Local, Move, Standpoint};
use crate::mutants::{Mutant, on};
use crate::node::{Latch, Node};
use crate::tree::Op;
use crate::view::{DISABLED, ENABLED, View, ip_of};

/// The job's document is the registry's, unless there is none, or ours is meant to replace it.
pub(super) fn set_up(local: &Local, view: &View, may_overwrite: bool) -> Option<Move> {
    let stored = view.config.as_ref();
    if stored.is_some() && !may_overwrite {
        return None;
    }
    let ours = local.spec.to_yaml();
    let config = match stored {
        None => Node::Config.create(ours),
        Some(stored) if stored.text != ours => Node::Config.set_at(stored.stat.version, ours),
        Some(_) => return None,
    };
    let class = match view.class.as_deref() {
        None => Some(Node::Root.create(local.class.clone())),
        Some(theirs) if theirs != local.class && !local.class.is_empty() => {
            Some(Node::Root.set(local.class.clone()))
        }
        Some(_) => None,
    };
    Some(class.into_iter().chain([config]).collect::<Vec<_>>().into())
}

/// Here while we work, gone when we leave.
pub(super) fn be_present(at: &Standpoint<'_>) -> Option<Move> {
    if at.leaving { leave(at) } else { join(at) }
}

/// Registers this instance and its host. A host that is known keeps the status that an operator gave it; one
/// that a Java peer removed while we live (it takes slow starters for dead) is put back.
fn join(at: &Standpoint<'_>) -> Option<Move> {
    let ip = ip_of(at.me);
    let server = || Node::Server(ip.to_owned());
    let hold_back = at.hold_back;
    let first = if at.plan.spec.disabled { DISABLED } else { ENABLED };
    let status = match at.status {
        None => Some(server().create(at.last_status.unwrap_or(first))),
        Some(DISABLED) if on(Mutant::EnableOnJoin) && !at.is_registered() => Some(server().set(ENABLED)),
        Some(ENABLED) if hold_back => Some(server().set(DISABLED)),
        Some(ENABLED | DISABLED) => None,
        Some(_) => Some(server().set(first)),
    };
    let instance = (!at.is_registered()).then(|| {
        let document = crate::spec::InstanceDoc::new(at.me, ip).to_yaml();
        Node::Instance(at.me.to_owned()).create_ephemeral(document)
    });
    let ops: Vec<Op> = status.into_iter().chain(instance).collect();
    // A job that was removed meanwhile must not come back to life.
    (!ops.is_empty()).then(|| [vec![Node::Config.exists()], ops].concat().into())
}

/// Leaves, once nothing of ours runs any more. Java peers take an instance that goes while it runs items for
/// a crashed one.
fn leave(at: &Standpoint<'_>) -> Option<Move> {
    let busy = !at.run.is_idle() || at.barriers.is_any();
    if (busy && !on(Mutant::LeaveWhileRunning)) || at.busy_leading {
        return None;
    }
    let mut ops: Vec<Op> = [Latch::Election, Latch::Failover, Latch::Started, Latch::Completed]
        .into_iter()
        .filter_map(|latch| Some(Node::InLine(latch, at.place_in_line(latch)?.clone()).delete()))
        .collect();
    ops.extend(at.holds_lead().then(|| Node::Leader.delete()));
    ops.extend(at.is_registered().then(|| Node::Instance(at.me.to_owned()).delete()));
    (!ops.is_empty()).then(|| ops.into())
}
