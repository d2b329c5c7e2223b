//! House keeping: `cargo xtask test | verify | fix`.

fn main() {}
