//! What all processes of a fleet said, in the order in which it was read.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::line::Line;

/// The lines of a fleet. Clones share them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::time::Duration;
/// use elasticjob_fleet::{Line, Log, What};
///
/// let log = Log::new();
/// log.add(Line::now("w1", What::Left));
/// let left = |lines: &[Line]| lines.iter().any(|it| it.what == What::Left);
/// assert!(log.until(Duration::from_secs(1), left).await);
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<Line>,
    /// What looked like a line and is none.
    bad: Vec<String>,
    copy: Option<File>,
}

impl Log {
    /// An empty one.
    pub fn new() -> Log {
        Log::default()
    }

    /// An empty one that is also written to this file.
    pub fn copied_to(path: &Path) -> io::Result<Log> {
        let log = Log::default();
        log.state().copy = Some(File::create(path)?);
        Ok(log)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line.
    pub fn add(&self, line: Line) {
        let count = {
            let mut state = self.state();
            if let Some(Err(error)) = state.copy.as_mut().map(|copy| writeln!(copy, "{line}")) {
                state.bad.push(format!("the log cannot be written: {error}"));
            }
            state.lines.push(line);
            state.lines.len()
        };
        self.0.count.send_replace(count);
    }

    /// Adds what a process printed: a line, or something else.
    pub fn add_text(&self, text: &str) {
        match text.parse() {
            Ok(line) => self.add(line),
            Err(_) if !text.starts_with('{') => {}
            Err(error) => self.state().bad.push(error.to_string()),
        }
    }

    /// A copy of all lines so far.
    pub fn lines(&self) -> Vec<Line> {
        self.state().lines.clone()
    }

    /// What looked like a line and is none. Whoever judges a log must look at this first.
    pub fn bad_lines(&self) -> Vec<String> {
        self.state().bad.clone()
    }

    /// Waits until this is true of the lines; `false` if it has not become so within `limit`.
    pub async fn until(&self, limit: Duration, is_true: impl Fn(&[Line]) -> bool) -> bool {
        let mut count = self.0.count.subscribe();
        let wait = async {
            loop {
                count.borrow_and_update();
                if is_true(&self.state().lines) {
                    return;
                }
                if count.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        tokio::time::timeout(limit, wait).await.is_ok()
    }
}
