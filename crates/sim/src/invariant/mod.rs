//! stub
use crate::history::History;
/// stub
#[derive(Debug, Clone)]
pub struct Violation {
    /// which
    pub invariant: &'static str,
    /// when
    pub at: u64,
    /// what
    pub what: String,
}
/// stub
pub fn check(_: &History) -> Vec<Violation> {
    Vec::new()
}
