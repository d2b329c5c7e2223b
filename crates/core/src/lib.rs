//! The decisions of ElasticJob, without input or output: what a job is, and who runs what and when.

pub mod spec;
