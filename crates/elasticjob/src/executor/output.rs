//! What a program prints: passed on line by line as it comes, and the last of it kept, for the error if the
//! program fails, for the record if it does not.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::Child;
use tokio::task::JoinSet;

/// So much of the output is kept.
const LINES_MAX: usize = 20;
const BYTES_MAX: usize = 8 * 1024;
/// A longer line is passed on, and kept, in pieces.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// As much as a pipe holds is read and passed on at once.
const READ_BYTES_MAX: usize = 64 * 1024;
/// After a program's end its pipes are read as long as something comes, though not for ever: what it left
/// behind may hold them.
const SILENCE: Duration = Duration::from_secs(1);
const SILENCES_MAX: usize = 10;

/// The two pipes of a program. Dropped, it lets go of them.
pub(super) struct Output {
    readers: JoinSet<()>,
    tail: Arc<Mutex<Tail>>,
}

impl Output {
    pub(super) fn follow(
        child: &mut Child,
        stdout: impl AsyncWrite + Send + Unpin + 'static,
        stderr: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Output {
        let mut output = Output { readers: JoinSet::new(), tail: Arc::default() };
        if let Some(pipe) = child.stdout.take() {
            output.readers.spawn(pass_on(pipe, stdout, output.tail.clone()));
        }
        if let Some(pipe) = child.stderr.take() {
            output.readers.spawn(pass_on(pipe, stderr, output.tail.clone()));
        }
        output
    }

    /// The last lines, once the program has ended.
    pub(super) async fn end(mut self) -> Vec<String> {
        let mut seen = self.seen();
        for _ in 0..SILENCES_MAX {
            let ended = async { while self.readers.join_next().await.is_some() {} };
            let all = tokio::time::timeout(SILENCE, ended).await.is_ok();
            let before = std::mem::replace(&mut seen, self.seen());
            if all || before == seen {
                break;
            }
        }
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.lines.drain(..).collect()
    }

    fn seen(&self) -> u64 {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).seen
    }
}

async fn pass_on(mut from: impl AsyncRead + Unpin, to: impl AsyncWrite + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut to = Some(to);
    let mut text = Vec::with_capacity(READ_BYTES_MAX);
    loop {
        let room = READ_BYTES_MAX - text.len();
        let read = (&mut from).take(room as u64).read_buf(&mut text).await;
        let ended = !matches!(read, Ok(1..));
        let whole_lines = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let ready =
            if ended || text.len() - whole_lines >= LINE_BYTES_MAX { text.len() } else { whole_lines };
        let mut rest = text.split_off(ready);
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(&text);
        if ended && !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n'); // Others print after it.
        }
        // Nobody may be there to read it. The program is not to blame, and goes on.
        if let Some(open) = &mut to
            && write(open, &text).await.is_err()
        {
            to = None;
        }
        if ended {
            return;
        }
        text.clear();
        text.append(&mut rest);
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> std::io::Result<()> {
    to.write_all(line).await?;
    to.flush().await
}

/// The last lines.
#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
    /// How many bytes there were altogether.
    seen: u64,
}

impl Tail {
    fn push(&mut self, text: &[u8]) {
        self.seen = self.seen.saturating_add(text.len() as u64);
        for line in text.split(|byte| *byte == b'\n').flat_map(|line| line.chunks(LINE_BYTES_MAX)) {
            self.push_line(printable(line));
        }
    }

    fn push_line(&mut self, line: String) {
        if line.is_empty() {
            return;
        }
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(first) = self.lines.pop_front() else { break };
            self.bytes -= first.len();
        }
    }
}

/// A line of somebody's output as a message can have it: no control characters, and not too long.
fn printable(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut line = String::new();
    for c in text.trim_end().chars() {
        if line.len() > LINE_BYTES_MAX {
            line.push('…');
            break;
        }
        if c.is_control() && c != '\t' { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

/// What is kept of a run that went well: less, as most do.
const RECORD_LINES_MAX: usize = 5;
const RECORD_BYTES_MAX: usize = 1024;

/// The last of the last lines, as a record keeps them.
pub(super) fn for_the_record(lines: &[String]) -> Option<String> {
    let text = lines[lines.len().saturating_sub(RECORD_LINES_MAX)..].join("\n");
    let mut from = text.len().saturating_sub(RECORD_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    let cut = if from > 0 { "…" } else { "" };
    (!text.is_empty()).then(|| format!("{cut}{}", &text[from..]))
}

/// Lines at the end of a message: one goes on in the same line, several stand below it.
pub(crate) fn quoted<T: AsRef<str>>(lines: &[T]) -> String {
    match lines {
        [] => String::new(),
        [line] => format!(": {}", line.as_ref()),
        lines => lines.iter().fold(":".to_owned(), |text, line| text + "\n  " + line.as_ref()),
    }
}

/// The first lines of a text, as a message can have them.
#[cfg(any(feature = "http", test))]
pub(crate) fn first_lines(text: &[u8]) -> Vec<String> {
    let lines = text[..text.len().min(BYTES_MAX)].split(|byte| *byte == b'\n').map(printable);
    lines.filter(|line| !line.is_empty()).take(LINES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn passed_on(text: &[u8]) -> (Vec<u8>, Vec<String>) {
        let (mut out, tail) = (Vec::new(), Arc::default());
        pass_on(text, &mut out, Arc::clone(&tail)).await;
        let lines = tail.lock().unwrap().lines.iter().cloned().collect();
        (out, lines)
    }

    #[tokio::test]
    async fn everything_is_passed_on_and_the_last_of_it_is_kept() {
        assert_eq!(passed_on(b"").await, (Vec::new(), Vec::new()));
        let (out, tail) = passed_on(b"one\r\n\ntwo \xff\x1b[0m").await;
        assert_eq!(out, b"one\r\n\ntwo \xff\x1b[0m\n", "as it is, with the line ended");
        assert_eq!(tail, ["one", "two \u{fffd}\\u{1b}[0m"]);

        let many: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
        let (out, tail) = passed_on(many.as_bytes()).await;
        assert_eq!(out, many.as_bytes());
        assert_eq!((tail.len(), tail[0].as_str(), tail[19].as_str()), (20, "line 9980", "line 9999"));
    }

    #[tokio::test]
    async fn a_line_without_end_is_passed_on_too_and_little_of_it_kept() {
        for filler in [b'x', b'\x01', b'\xff'] {
            let endless = vec![filler; 1 << 20];
            let (out, tail) = passed_on(&endless).await;
            assert_eq!(out, endless);
            let kept: usize = tail.iter().map(String::len).sum();
            assert!((1..=BYTES_MAX).contains(&kept), "{kept}");
        }
    }

    #[tokio::test]
    async fn a_program_goes_on_if_nobody_reads_what_it_prints() {
        struct Closed;
        impl AsyncWrite for Closed {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
                _: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                std::task::Poll::Ready(Err(std::io::ErrorKind::BrokenPipe.into()))
            }
            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }
            fn poll_shutdown(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }
        }
        let tail: Arc<Mutex<Tail>> = Arc::default();
        pass_on(&b"a\nb\n"[..], Closed, tail.clone()).await;
        assert_eq!(tail.lock().unwrap().lines, ["a", "b"]);
    }

    #[test]
    fn a_record_keeps_little() {
        let lines = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(for_the_record(&[]), None);
        assert_eq!(for_the_record(&lines(&["3 rows"])).unwrap(), "3 rows");
        let many = for_the_record(&lines(&["1", "2", "3", "4", "5", "6"])).unwrap();
        assert_eq!(many, "2\n3\n4\n5\n6");
        let long = for_the_record(&lines(&["a", &"中".repeat(1000)])).unwrap();
        assert!(long.len() <= RECORD_BYTES_MAX + "…".len() && long.starts_with("…中"), "{}", long.len());
    }

    #[test]
    fn lines_are_quoted_so_that_they_can_be_read() {
        assert_eq!(quoted::<String>(&[]), "");
        assert_eq!(quoted(&["boom"]), ": boom");
        assert_eq!(quoted(&["one", "two"]), ":\n  one\n  two");
        assert_eq!(first_lines(b"\n<html>\r\n\n  <b>\n"), ["<html>", "  <b>"]);
        assert_eq!(first_lines("x\n".repeat(100).as_bytes()).len(), 20);
    }
}
