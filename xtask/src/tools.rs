//! Tools that are not part of the toolchain: installed where they are missing.

use anyhow::Result;

use crate::sh::{cargo, root, run};

/// Licences, bans and sources of all dependencies.
pub(crate) fn cargo_deny() -> Result<()> {
    let home = root().join("target/tools");
    let program = home.join("bin/cargo-deny");
    if !program.exists() {
        let home = home.to_string_lossy();
        cargo(&["install", "--locked", "--version", "0.20.2", "--root", &home, "cargo-deny"])?;
    }
    run(&program.to_string_lossy(), &["--all-features", "check", "bans", "licenses", "sources"], &[])
}
