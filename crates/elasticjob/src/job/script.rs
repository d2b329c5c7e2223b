//! Jobs that are programs.

use std::path::PathBuf;
use std::time::Duration;

use super::{Job, SCRIPT_CLASS, Work};
use crate::executor::script;

impl Job {
    /// A job that runs a program for each shard, with the shard as JSON for its last argument. Words are
    /// separated by blanks; quotes keep a word together. The program's exit code says whether it succeeded; if
    /// it did not, the last lines that it printed are part of the failure.
    ///
    /// ```
    /// use elasticjob::Job;
    ///
    /// let job = Job::script("report", "/opt/report.sh --format 'plain text'").cron("0 0 2 * * ?");
    /// # drop(job);
    /// ```
    pub fn script(name: impl Into<String>, command_line: impl Into<String>) -> Job {
        let job = Job { class: SCRIPT_CLASS.to_owned(), ..Job::new(name, Work::Script) };
        job.prop(script::COMMAND_LINE, command_line)
    }

    /// The same, with the program and its arguments as they are.
    ///
    /// ```
    /// use elasticjob::{Job, Outcome, testing};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), elasticjob::Error> {
    /// let job = Job::script_args("report", ["test", "it's one word", "=", "it's one word", "-o"]);
    /// let outcomes = testing::run_once(&job).await?;
    /// assert_eq!(outcomes[&0], Outcome::Succeeded);
    /// # Ok(()) }
    /// ```
    pub fn script_args<T: AsRef<str>>(name: impl Into<String>, words: impl IntoIterator<Item = T>) -> Job {
        Job::script(name, command_line(words))
    }

    /// Where a script runs. The default is where this process does. It is the property
    /// `elasticjob.script.directory`.
    ///
    /// ```
    /// let job = elasticjob::Job::script("report", "/opt/report.sh").script_directory("/var/lib/report");
    /// # drop(job);
    /// ```
    pub fn script_directory(self, directory: impl Into<PathBuf>) -> Job {
        let directory: PathBuf = directory.into();
        self.prop(script::DIRECTORY, directory.to_string_lossy())
    }

    /// One more variable in a script's environment, besides those of this process. It is the property
    /// `elasticjob.script.env.NAME`: everybody who can read the registry can read it, so it is no place for
    /// secrets.
    ///
    /// ```
    /// let job = elasticjob::Job::script("report", "/opt/report.sh").script_env("LANG", "de_AT.UTF-8");
    /// # drop(job);
    /// ```
    pub fn script_env(self, name: impl AsRef<str>, value: impl Into<String>) -> Job {
        self.prop(format!("{}{}", script::ENV, name.as_ref()), value)
    }

    /// A script that takes longer is stopped, and has failed. There is no limit by default. It is the property
    /// `elasticjob.script.timeout`.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let job = elasticjob::Job::script("report", "/opt/report.sh").script_timeout(Duration::from_secs(600));
    /// # drop(job);
    /// ```
    pub fn script_timeout(self, limit: Duration) -> Job {
        self.prop(script::TIMEOUT, format!("{}ms", limit.as_millis()))
    }
}

/// Words as a command line that is split into the same words again.
pub(crate) fn command_line<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    shell_words::join(words)
}
