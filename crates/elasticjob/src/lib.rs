//! To be written.

pub mod registry;
