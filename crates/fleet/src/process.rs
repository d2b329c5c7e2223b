//! Worker processes: started, hurt, and gone for sure when whoever started them is.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::log::Log;

/// What to start.
///
/// ```
/// use elasticjob_fleet::Program;
///
/// let java = Program::new("java").args(["-jar", "worker.jar"]).env("MODE", "simple");
/// # drop(java);
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    path: OsString,
    args: Vec<OsString>,
    envs: Vec<(OsString, OsString)>,
    errors: Option<PathBuf>,
}

impl Program {
    /// A program by its path, or by its name.
    pub fn new(path: impl Into<OsString>) -> Program {
        Program { path: path.into(), args: Vec::new(), envs: Vec::new(), errors: None }
    }

    /// With more arguments.
    #[must_use]
    pub fn args<T: Into<OsString>>(mut self, args: impl IntoIterator<Item = T>) -> Program {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// With this variable in its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Program {
        self.envs.push((name.into(), value.into()));
        self
    }

    /// What it says on stderr is added to this file; otherwise it goes where ours goes.
    #[must_use]
    pub fn errors_to(mut self, path: impl Into<PathBuf>) -> Program {
        self.errors = Some(path.into());
        self
    }
}

/// The program's own shell says its process id and becomes the program. The outer one waits for the end of
/// its input, which comes with our own end however we end, and kills what it started, also if that stands
/// still. It lets go of the output: the end of that is the end of the program.
const SCRIPT: &str = r#"sh -c 'echo $$; exec "$@"' sh "$@" </dev/null & exec >/dev/null
cat; kill -9 $! 2>/dev/null; wait $!"#;

/// A running process whose lines go into a log. It is killed when it is dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// use std::time::Duration;
/// use elasticjob_fleet::{Log, Process, Program};
///
/// let log = Log::new();
/// let line = r#"{"at":1,"process":"w1","kind":"left"}"#;
/// let process = Process::start(&Program::new("echo").args([line]), &log)?;
/// assert!(process.ended(Duration::from_secs(10)).await);
/// assert_eq!(log.lines().len(), 1);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Process {
    pid: Pid,
    shell: Child,
    ended: watch::Receiver<bool>,
    reader: Option<JoinHandle<()>>,
}

impl Process {
    /// Starts it.
    pub fn start(program: &Program, log: &Log) -> io::Result<Process> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(&program.path).args(&program.args);
        command.envs(program.envs.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(path) = &program.errors {
            command.stderr(append_to(path)?);
        }
        let mut shell = command.spawn()?;
        let mut output = BufReader::new(shell.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
        let mut first = String::new();
        output.read_line(&mut first)?;
        let pid = first.trim().parse().ok().and_then(Pid::from_raw);
        let Some(pid) = pid else {
            return Err(io::Error::other(format!("a process id was expected, not `{}`", first.trim())));
        };
        let (sender, ended) = watch::channel(false);
        let log = log.clone();
        let reader = std::thread::spawn(move || {
            read(output, &log);
            sender.send_replace(true);
        });
        Ok(Process { pid, shell, ended, reader: Some(reader) })
    }

    /// Its number. It stays its own for as long as this value lives.
    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Kills it at once: `kill -9`.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    /// Asks it to end: `SIGTERM`.
    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// Stops it in its tracks: `SIGSTOP`.
    pub fn pause(&self) -> io::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it go on: `SIGCONT`.
    pub fn resume(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        // Until the shell is asked to, nobody takes its number back: it is the right process, or a dead one.
        kill_process(self.pid, signal).map_err(io::Error::from)
    }

    /// Whether it has ended, and everything it printed is in the log.
    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits until it has ended and everything it printed is in the log; `false` if that takes longer.
    pub async fn ended(&self, limit: Duration) -> bool {
        let mut ended = self.ended.clone();
        let wait = async { ended.wait_for(|it| *it).await.is_ok() };
        tokio::time::timeout(limit, wait).await.unwrap_or(false)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // The shell kills it and ends; its output ends with it, and the reader with that.
        let waited = self.shell.wait();
        if let Some(Err(_)) = self.reader.take().map(JoinHandle::join) {
            eprintln!("the reader of process {} panicked", self.pid());
        }
        if let Err(error) = waited {
            eprintln!("process {} cannot be waited for: {error}", self.pid());
        }
    }
}

fn read(output: impl BufRead, log: &Log) {
    for line in output.lines() {
        // What is no text is no line of ours. A line of up to 4096 bytes is written whole, or not at all.
        let Ok(line) = line else { continue };
        log.add_text(&line);
    }
}

fn append_to(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}
