//! What programs of both kinds tell a test, in the order in which it happened.

use std::io::Write;
use std::path::{Path, PathBuf};

use elasticjob::JobError;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe::{OpenOptions, Receiver};
use tokio::time::timeout;

use crate::world::{LONG, World};

/// What programs write to a pipe with a name.
pub(crate) struct Notes {
    pub(crate) path: PathBuf,
    lines: Lines<BufReader<Receiver>>,
}

impl Notes {
    pub(crate) fn new(world: &World, name: &str) -> Notes {
        let path = world.home.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        // Open for writing too, so that it does not end with those who write.
        let receiver = OpenOptions::new().read_write(true).open_receiver(&path).unwrap();
        Notes { path, lines: BufReader::new(receiver).lines() }
    }

    pub(crate) async fn take(&mut self, count: usize, world: &World) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.len() < count {
            match timeout(LONG, self.lines.next_line()).await {
                Ok(line) => lines.push(line.unwrap().unwrap()),
                Err(_) => panic!("{count} lines do not come: {lines:#?}\n{}", world.story().await),
            }
        }
        lines
    }
}

/// Writes a line of our own.
pub(crate) fn note(path: &Path, text: &str) -> Result<(), JobError> {
    let mut file = std::fs::File::options().append(true).open(path)?;
    Ok(file.write_all(format!("{text}\n").as_bytes())?)
}
