//! Where things are written: data to stdout, words to stderr; colours only for people.

use std::io::{self, BufRead, IsTerminal, Write};

use elasticjob::ops::Done;
use serde_json::{Value, json};

use crate::failure::Failure;

pub(crate) struct Screen {
    json: bool,
    colours: bool,
}

/// What a word is meant to say by its colour.
#[derive(Clone, Copy)]
pub(crate) enum Tone {
    Good,
    Busy,
    Careful,
    Bad,
    Quiet,
}

impl Screen {
    pub(crate) fn new(json: bool) -> Screen {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
        Screen { json, colours: !json && !plain && io::stdout().is_terminal() }
    }

    /// Whether programs read what is written.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    pub(crate) fn paint(&self, text: &str, tone: Tone) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => 32,
            Tone::Busy => 36,
            Tone::Careful => 33,
            Tone::Bad => 31,
            Tone::Quiet => 2,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// What a command did, and what will come of it.
    pub(crate) fn done(&self, done: &Done) -> Result<(), Failure> {
        if self.json {
            return print_json(&json!({ "changes": done.changes, "consequences": done.consequences }));
        }
        for change in &done.changes {
            print(&format!("{change}\n"))?;
        }
        if done.changes.is_empty() {
            say("nothing to do: it is so already");
        }
        for consequence in &done.consequences {
            say(&format!("  then: {consequence}"));
        }
        Ok(())
    }
}

/// Asks somebody at a terminal.
pub(crate) fn ask(question: &str) -> Result<String, Failure> {
    eprint!("{question}");
    let mut answer = String::new();
    match io::stdin().lock().read_line(&mut answer) {
        Ok(_) => Ok(answer.trim().to_owned()),
        Err(error) => Err(Failure::failed(format!("cannot read the answer: {error}"))),
    }
}

/// Data. A reader that has seen enough, such as `head`, is not an error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::failed(format!("cannot write: {error}")))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Data for programs.
pub(crate) fn print_json(value: &Value) -> Result<(), Failure> {
    print(&format!("{value:#}\n"))
}

/// Words.
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// Asks before something that cannot be taken back.
pub(crate) fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        return Err(Failure::refused(format!(
            "{what}: nobody is here to confirm it; give --yes to do it without being asked"
        )));
    }
    if ask(&format!("{what}. Go on? [y/N] "))?.eq_ignore_ascii_case("y") {
        Ok(())
    } else {
        Err(Failure::refused("nothing was changed"))
    }
}
