//! What a program prints: passed on line by line as it comes, and the last of it kept, to be shown if the
//! program fails.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::Child;
use tokio::task::JoinSet;

/// So much of the output is kept.
const LINES_MAX: usize = 20;
const BYTES_MAX: usize = 8 * 1024;
/// A longer line is passed on in pieces.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// How long after a program's end its pipes may stay open: what it left behind may hold them for ever.
const PIPES_GRACE: Duration = Duration::from_secs(1);

/// The two pipes of a program. Dropped, it lets go of them.
pub(super) struct Output {
    readers: JoinSet<()>,
    tail: Arc<Mutex<Tail>>,
}

impl Output {
    pub(super) fn follow(child: &mut Child) -> Output {
        let mut output = Output { readers: JoinSet::new(), tail: Arc::default() };
        if let Some(pipe) = child.stdout.take() {
            output.readers.spawn(pass_on(pipe, tokio::io::stdout(), output.tail.clone()));
        }
        if let Some(pipe) = child.stderr.take() {
            output.readers.spawn(pass_on(pipe, tokio::io::stderr(), output.tail.clone()));
        }
        output
    }

    /// The last lines, once the program has ended.
    pub(super) async fn end(mut self) -> Vec<String> {
        let ended = async { while self.readers.join_next().await.is_some() {} };
        // Whoever still holds the pipes is not the script.
        tokio::time::timeout(PIPES_GRACE, ended).await.ok();
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.lines.drain(..).collect()
    }
}

async fn pass_on(from: impl AsyncRead + Unpin, to: impl AsyncWrite + Unpin, tail: Arc<Mutex<Tail>>) {
    let mut from = BufReader::new(from);
    let mut to = Some(to);
    let mut line = Vec::new();
    loop {
        line.clear();
        let piece = (&mut from).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line).await;
        if !matches!(piece, Ok(1..)) {
            return;
        }
        tail.lock().unwrap_or_else(PoisonError::into_inner).push(&line);
        if !line.ends_with(b"\n") && line.len() < LINE_BYTES_MAX {
            line.push(b'\n'); // The end of the output; others print after it.
        }
        // Nobody may be there to read it. The program is not to blame, and goes on.
        if let Some(open) = &mut to
            && write(open, &line).await.is_err()
        {
            to = None;
        }
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
}

impl Tail {
    fn push(&mut self, line: &[u8]) {
        let line = printable(line);
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

/// Lines at the end of a message: one goes on in the same line, several stand below it.
pub(super) fn quoted<T: AsRef<str>>(lines: &[T]) -> String {
    match lines {
        [] => String::new(),
        [line] => format!(": {}", line.as_ref()),
        lines => lines.iter().fold(":".to_owned(), |text, line| text + "\n  " + line.as_ref()),
    }
}

/// The first lines of a text, as a message can have them.
#[cfg(any(feature = "http", test))]
pub(super) fn first_lines(text: &[u8]) -> Vec<String> {
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
    fn lines_are_quoted_so_that_they_can_be_read() {
        assert_eq!(quoted::<String>(&[]), "");
        assert_eq!(quoted(&["boom"]), ": boom");
        assert_eq!(quoted(&["one", "two"]), ":\n  one\n  two");
        assert_eq!(first_lines(b"\n<html>\r\n\n  <b>\n"), ["<html>", "  <b>"]);
        assert_eq!(first_lines("x\n".repeat(100).as_bytes()).len(), 20);
    }
}
