//! Running commands, and saying which.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The top of the project.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the project").to_owned()
}

pub(crate) fn cargo(arguments: &[&str]) -> Result<()> {
    cargo_env(arguments, &[])
}

pub(crate) fn cargo_env(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    run(&cargo, arguments, environment)
}

pub(crate) fn run(program: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let name = Path::new(program).file_name().map_or(program.into(), |it| it.to_string_lossy());
    println!("\n$ {name} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .with_context(|| format!("cannot start `{program}`"))?;
    if !status.success() {
        bail!("`{name} {}` failed: {status}", arguments.join(" "));
    }
    Ok(())
}
