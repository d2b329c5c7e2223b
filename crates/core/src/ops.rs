//! What operators ask for, as functions of what the registry says.

use crate::node::Node;
use crate::tree::Op;
use crate::view::View;

/// Asks every instance to run its items now. Those that were asked before and have not begun are not asked
/// twice.
///
/// ```
/// use elasticjob_core::node::Node;
/// use elasticjob_core::ops::trigger;
/// use elasticjob_core::view::View;
///
/// let mut view = View::default();
/// view.instances.insert("10.0.0.1@-@1.a.1".into(), true);
/// assert_eq!(trigger(&view)[1], Node::Trigger("10.0.0.1@-@1.a.1".into()).create(""));
/// ```
pub fn trigger(view: &View) -> Vec<Op> {
    let unasked = view.instances.keys().filter(|id| !view.triggers.contains_key(*id));
    // An instance that has gone meanwhile would never react.
    unasked
        .flat_map(|id| [Node::Instance(id.clone()).exists(), Node::Trigger(id.clone()).create("")])
        .collect()
}
