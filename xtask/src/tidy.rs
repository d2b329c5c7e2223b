//! What no lint sees: who may know whom, no loose ends, no test data that nothing uses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::sh::root;

/// A module, and what it must not know of: the dependency rules of ARCHITECTURE.md.
const STRANGERS: &[(&str, &[&str])] = &[
    ("crates/core/src/view.rs", &["coord"]),
    ("crates/core/src/tree.rs", &["coord", "view", "node", "spec"]),
    ("crates/core/src/node.rs", &["coord", "view", "spec"]),
    ("crates/elasticjob/src/executor", &["registry", "coord::Coordinator", "recorder"]),
    ("crates/elasticjob/src/handler", &["registry", "driver", "coord::"]),
    ("crates/elasticjob/src/registry", &["coord::Coordinator", "driver", "executor", "worker"]),
    ("crates/elasticjob/src/job.rs", &["registry", "driver", "coord::"]),
    ("crates/cli/src", &["registry::", "elasticjob_core"]),
];

/// Nothing of this may be left in a file.
const LOOSE_ENDS: &[&str] = &["TODO", "FIXME", "XXX", "todo!(", "unimplemented!(", "dbg!("];

/// A file that is longer has to be one thing, and to be listed here with what that is.
const LONG: &[(&str, &str)] = &[
    ("crates/elasticjob/src/registry/conformance.rs", "all laws of a registry"),
    (
        "crates/elasticjob/src/registry/zookeeper/mirror.rs",
        "the mirror: what is followed, read and told, in order",
    ),
];
const LONG_LINES: usize = 800;

pub(crate) fn check() -> Result<()> {
    println!("\n$ tidy");
    let files = tracked_files()?;
    let mut faults = Vec::new();
    for file in files.iter().filter(|it| is_source(it)) {
        let text = fs::read_to_string(root().join(file)).with_context(|| file.display().to_string())?;
        faults.extend(check_file(file, &text));
    }
    faults.extend(unused_test_data(&files)?);
    if !faults.is_empty() {
        bail!("not tidy:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

fn tracked_files() -> Result<Vec<PathBuf>> {
    let output =
        Command::new("git").args(["ls-files"]).current_dir(root()).output().context("git ls-files")?;
    let existing = |path: &PathBuf| root().join(path).exists();
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(PathBuf::from).filter(existing).collect())
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "rs") && !path.starts_with("xtask")
}

fn check_file(file: &Path, text: &str) -> Vec<String> {
    let name = file.display();
    let mut faults = Vec::new();
    for loose_end in LOOSE_ENDS.iter().filter(|it| text.contains(**it)) {
        faults.push(format!("{name}: `{loose_end}` is a loose end"));
    }
    for (module, strangers) in STRANGERS.iter().filter(|(module, _)| file.starts_with(module)) {
        let uses = text.lines().filter(|line| line.trim_start().starts_with("use "));
        for line in uses {
            for stranger in strangers.iter().filter(|it| mentions(line, it)) {
                faults.push(format!("{name}: {module} must not know `{stranger}`: {}", line.trim()));
            }
        }
    }
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
    let is_test = file.components().any(|it| it.as_os_str() == "tests");
    if lines > LONG_LINES && !is_test && !LONG.iter().any(|(long, _)| file == Path::new(long)) {
        faults.push(format!(
            "{name}: {lines} lines; split it by thing, or say in xtask/src/tidy.rs what one thing it is"
        ));
    }
    faults
}

/// Whether a `use` names that path, as whole words.
fn mentions(line: &str, path: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_none_or(|c| !inside(c));
        let after = path.ends_with(':') || line[at + path.len()..].chars().next().is_none_or(|c| !inside(c));
        before && after
    })
}

/// Every file of test data is named, or its folder is read, by some source.
fn unused_test_data(files: &[PathBuf]) -> Result<Vec<String>> {
    let sources: Vec<String> = files
        .iter()
        .filter(|it| is_source(it))
        .map(|it| fs::read_to_string(root().join(it)).with_context(|| it.display().to_string()))
        .collect::<Result<_>>()?;
    let is_data = |path: &&PathBuf| {
        path.components().any(|it| it.as_os_str() == "data" || it.as_os_str() == "transcripts")
    };
    let named = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let folder =
            path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        name == "README.md"
            || sources.iter().any(|it| it.contains(&name) || it.contains(&format!("/{folder}\"")))
    };
    let unused = files.iter().filter(is_data).filter(|it| !is_source(it) && !named(it));
    Ok(unused.map(|it| format!("{}: no test uses it", it.display())).collect())
}
