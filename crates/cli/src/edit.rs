//! `elasticjob job edit`: the stored document, in an editor or from a file, checked before it is written.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use elasticjob::Ops;
use elasticjob::ops::Stored;

use crate::failure::Failure;
use crate::screen::{Screen, ask, say};

pub(crate) async fn run(
    ops: &Ops,
    screen: &Screen,
    job: &str,
    file: Option<&Path>,
    dry_run: bool,
) -> Result<(), Failure> {
    let read = ops.config(job).await?;
    let Some(file) = file else { return in_editor(ops, screen, job, &read, dry_run).await };
    let text = text_of(file).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    apply(ops, screen, job, &read, &text, dry_run).await
}

async fn apply(
    ops: &Ops,
    screen: &Screen,
    job: &str,
    read: &Stored,
    text: &str,
    dry_run: bool,
) -> Result<(), Failure> {
    let done = match dry_run {
        true => ops.check_config(job, read, text).await?,
        false => ops.update_config(job, read, text).await?,
    };
    if dry_run {
        say("this is what would change; nothing was changed");
    }
    screen.done(&done)
}

async fn in_editor(
    ops: &Ops,
    screen: &Screen,
    job: &str,
    read: &Stored,
    dry_run: bool,
) -> Result<(), Failure> {
    let path =
        draft(job, &read.text).map_err(|error| Failure::failed(format!("cannot write a draft: {error}")))?;
    loop {
        open_editor(&path)?;
        let text = text_of(&path).map_err(|error| Failure::failed(format!("{}: {error}", path.display())))?;
        if text == read.text {
            _ = fs::remove_file(&path);
            say("nothing was changed");
            return Ok(());
        }
        let failure = match apply(ops, screen, job, read, &text, dry_run).await {
            Ok(()) => {
                _ = fs::remove_file(&path);
                return Ok(());
            }
            Err(failure) => failure,
        };
        // What somebody wrote is not thrown away.
        let kept =
            format!("{}\n  nothing was changed; your draft is in {}", failure.message(), path.display());
        if !failure.is_refusal() {
            return Err(Failure::failed(kept));
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::refused(kept));
        }
        say(&format!("error: {}", failure.message()));
        if ask("Edit again? [Y/n] ")?.eq_ignore_ascii_case("n") {
            return Err(Failure::refused(kept));
        }
    }
}

fn draft(job: &str, text: &str) -> io::Result<PathBuf> {
    let name: String = job.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let path = std::env::temp_dir().join(format!("elasticjob-{name}-{}.yaml", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600); // Settings may hold passwords.
    options.open(&path)?.write_all(text.as_bytes())?;
    Ok(path)
}

fn open_editor(path: &Path) -> Result<(), Failure> {
    let filled = |name| std::env::var(name).ok().filter(|it| !it.trim().is_empty());
    let editor = filled("VISUAL").or_else(|| filled("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // An editor may come with arguments, such as `code --wait`; the shell takes them apart as git does.
    let status = Command::new("sh").arg("-c").arg(format!("{editor} \"$@\"")).arg(&editor).arg(path).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(Failure::failed(format!("the editor `{editor}` ended with {status}; nothing was changed")))
        }
        Err(error) => Err(Failure::failed(format!(
            "cannot start the editor `{editor}`: {error}; set EDITOR, or use --file"
        ))),
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    if path != Path::new("-") {
        return fs::read_to_string(path);
    }
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text)?;
    Ok(text)
}
