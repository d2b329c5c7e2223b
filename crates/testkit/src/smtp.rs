//! A mail server: Debian's aiosmtpd, as a child process on a port of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tempfile::TempDir;

use crate::{certificates, free_ports, install_packages};

/// Debian's, which Debian's packages belong to; the first one in the path may be another.
const PYTHON: &str = "/usr/bin/python3";
const PROGRAM: &str = include_str!("smtp.py");
const LONG: Duration = Duration::from_secs(60);

/// How connections to it are made secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpTls {
    /// Not at all.
    None,
    /// From the first byte.
    Implicit,
    /// After a greeting in clear.
    StartTls,
}

/// What it does with a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SmtpBehaviour {
    /// Takes it.
    Take,
    /// Refuses it.
    Refuse,
    /// Never says.
    Hang,
}

/// A running server. It is killed when it is dropped.
pub struct Smtp {
    child: Child,
    port: u16,
    home: TempDir,
    lines: Receiver<String>,
}

impl Smtp {
    /// A server that lets in whoever knows this name and password, or everybody.
    pub fn start(tls: SmtpTls, login: Option<(&str, &str)>, behaviour: SmtpBehaviour) -> Smtp {
        install();
        let home = tempfile::tempdir().unwrap();
        let (key, certificate) = certificates(home.path(), "localhost");
        let program = home.path().join("smtp.py");
        std::fs::write(&program, PROGRAM).unwrap();
        let port = free_ports(1)[0];
        let quoted = |text: Option<&str>| text.map_or("null".to_owned(), |text| format!("{text:?}"));
        let settings = format!(
            r#"{{"tls": "{}", "certificate": {certificate:?}, "key": {key:?}, "user": {}, "password": {}, "behaviour": "{}"}}"#,
            format!("{tls:?}").to_lowercase(),
            quoted(login.map(|it| it.0)),
            quoted(login.map(|it| it.1)),
            format!("{behaviour:?}").to_lowercase(),
        );
        // The shell waits for the end of its input, which comes with our own, and kills what it started.
        let script = r#""$@" </dev/null 2>"$LOG" & cat >/dev/null; kill -9 $!; wait"#;
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh", PYTHON]).arg(&program).arg(port.to_string()).arg(settings);
        let log = home.path().join("log");
        command.env("LOG", &log);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a shell runs");
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let server = Smtp { child, port, home, lines };
        let said = server.lines.recv_timeout(LONG);
        let log = std::fs::read_to_string(log).unwrap_or_default();
        assert_eq!(said.as_deref(), Ok("serving"), "the mail server starts: {log}");
        server
    }

    /// Where it listens, at `localhost`.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of whoever signed its own, as PEM.
    pub fn ca(&self) -> PathBuf {
        self.home.path().join("ca.pem")
    }

    /// The next mail that it took, as JSON with `from`, `to`, `data`, `tls` and `user`. Blocks for a minute at most.
    pub fn mail(&self) -> String {
        self.lines.recv_timeout(LONG).expect("a mail comes")
    }

    /// How many mails it took that were not looked at.
    pub fn unseen(&self) -> usize {
        self.lines.try_iter().count()
    }
}

impl Drop for Smtp {
    fn drop(&mut self) {
        if let Some(mut input) = self.child.stdin.take() {
            input.flush().ok();
        }
        self.child.wait().unwrap();
    }
}

/// Installs Debian's package if it is missing.
fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let probe = Command::new(PYTHON).args(["-c", "import aiosmtpd"]).stderr(Stdio::null()).status();
        if Path::new(PYTHON).exists() && probe.is_ok_and(|it| it.success()) {
            return;
        }
        install_packages(&["python3-aiosmtpd"]);
    });
}
