//! The `elasticjob` command.

fn main() {}
