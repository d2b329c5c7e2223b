//! To be written.

pub mod file;
pub mod host;
