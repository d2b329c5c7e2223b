//! How far a job has come with an item: `offset/{item}`, where ElasticJob 1.x kept it. It belongs to the item and not to
//! whoever owns it, so it survives restarts and moves.

use crate::node::Node;
use crate::tree::Op;

/// Longer offsets are data, and belong elsewhere.
pub const LENGTH_MAX: usize = 64 * 1024;

/// One transaction that writes an offset, if `me` still runs the item: it is refused once the instance is gone, or its
/// mark is. The mark of a run never goes while its instance lives, so nobody who lost the item can write.
///
/// ```
/// use elasticjob_core::offset::{is_fence, write};
///
/// let ops = write("10.0.0.1@-@1.a.1", 3, false, "4711");
/// let paths: Vec<&str> = ops.iter().map(|op| op.path()).collect();
/// assert_eq!(paths, ["/instances/10.0.0.1@-@1.a.1", "/sharding/3/running", "/offset/3"]);
/// assert!(is_fence(3, paths[0]) && is_fence(3, paths[1]) && !is_fence(3, paths[2]));
/// ```
pub fn write(me: &str, item: u32, exists: bool, text: &str) -> Vec<Op> {
    let node = Node::Offset(item);
    let write = if exists { node.set(text) } else { node.create(text) };
    vec![Node::Instance(me.to_owned()).exists(), Node::Running(item).exists(), write]
}

/// Whether a refusal because of that node means that the item is another's.
pub fn is_fence(item: u32, path: &str) -> bool {
    path != Node::Offset(item).path()
}
