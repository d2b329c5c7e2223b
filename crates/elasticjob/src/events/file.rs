//! A file of records, one line each: appended to, and put aside when it is full.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use super::line::{LineError, read_line, write_line};
use crate::recorder::{Record, Recorded, Records};

/// What a file may grow to. There are two: the current one, and the one before with `.1` behind its name.
const FULL: u64 = 16 << 20;
/// So many records are written at once, at most.
const BATCH: usize = 256;
/// How long the rest may take when the worker leaves.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file of records: what a worker with [`event_file`](crate::Worker::event_file) writes, and what
/// `elasticjob explain --events` reads.
///
/// ```
/// use elasticjob::events::EventFile;
///
/// let dir = tempfile::tempdir().unwrap();
/// let file = EventFile::new(dir.path().join("events.jsonl"));
/// assert!(file.read().is_err()); // Nobody has written it.
/// ```
#[derive(Clone, Debug)]
pub struct EventFile {
    path: PathBuf,
    full: u64,
}

impl EventFile {
    /// The file at this path.
    pub fn new(path: impl Into<PathBuf>) -> EventFile {
        EventFile { path: path.into(), full: FULL }
    }

    /// It is put aside when it has so many bytes: 16 MiB if nothing is said.
    #[must_use]
    pub fn full_at(mut self, bytes: u64) -> EventFile {
        self.full = bytes;
        self
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn before(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".1");
        name.into()
    }

    /// All that is in it and in the one before it, the oldest first, and how many lines could not be read. The last
    /// line of a file may be torn, if whoever wrote it died: it does not count.
    ///
    /// # Errors
    ///
    /// If the file is not there, or cannot be read.
    pub fn read(&self) -> io::Result<(Vec<Record>, usize)> {
        let (mut records, mut unreadable) = (Vec::new(), 0);
        let before = match File::open(self.before()) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        for file in before.into_iter().chain([File::open(&self.path)?]) {
            unreadable += read_all(file, &mut records)?;
        }
        Ok((records, unreadable))
    }

    /// Appends to it, from the end of the last whole line.
    fn open(&self) -> io::Result<Appender> {
        let mut file = OpenOptions::new().create(true).append(true).read(true).open(&self.path)?;
        let written = file.metadata()?.len();
        if written > 0 && !ends_with_newline(&self.path)? {
            file.write_all(b"\n")?; // The torn line stays one line.
        }
        Ok(Appender { file, written: file_length(&self.path)?, at: self.clone() })
    }

    /// Keeps what a worker records, until the worker ends.
    pub(crate) fn keep(self, records: Records) -> io::Result<FileKeeper> {
        let appender = self.open()?;
        let path = self.path;
        let task = tokio::spawn(async move {
            if let Err(error) = keep_all(appender, records).await {
                tracing::error!("events are no longer written to {}: {error}", path.display());
            }
        });
        Ok(FileKeeper(Some(AbortOnDropHandle::new(task))))
    }
}

fn file_length(path: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(path)?.len())
}

fn ends_with_newline(path: &Path) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn read_all(file: File, records: &mut Vec<Record>) -> io::Result<usize> {
    let mut reader = BufReader::new(file);
    let (mut line, mut unreadable) = (Vec::new(), 0);
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            return Ok(unreadable);
        }
        let whole = line.ends_with(b"\n");
        match read_line(&String::from_utf8_lossy(&line)) {
            Ok(record) => records.push(record),
            Err(LineError::UnknownEvent(_)) => {}
            Err(_) if !whole => {}
            Err(_) => unreadable += 1,
        }
    }
}

struct Appender {
    file: File,
    written: u64,
    at: EventFile,
}

impl Appender {
    fn append(mut self, lines: &str) -> io::Result<Appender> {
        if self.written > 0 && self.written + lines.len() as u64 > self.at.full {
            std::fs::rename(&self.at.path, self.at.before())?;
            self = self.at.open()?;
        }
        self.file.write_all(lines.as_bytes())?;
        self.written += lines.len() as u64;
        Ok(self)
    }
}

async fn keep_all(mut appender: Appender, mut records: Records) -> io::Result<()> {
    while let Some(first) = records.next().await {
        let mut lines = String::new();
        let (mut next, mut count) = (Some(first), 0);
        while let Some(recorded) = next {
            match recorded {
                Recorded::Record(record) => lines.push_str(&(write_line(&record) + "\n")),
                Recorded::Missed(count) => tracing::warn!("{count} events are not in the event file"),
            }
            count += 1;
            next = if count < BATCH { records.try_next() } else { None };
        }
        // Files block. The runtime may be about to end: then so do we.
        let written = tokio::task::spawn_blocking(move || appender.append(&lines)).await;
        appender = written.map_err(io::Error::other)??;
    }
    Ok(())
}

/// The task that writes an event file. Dropping it leaves the rest unwritten.
#[derive(Debug)]
pub struct FileKeeper(Option<AbortOnDropHandle<()>>);

impl FileKeeper {
    /// Waits until everything is written that was recorded; nobody must be recording any more.
    pub(crate) async fn finish(mut self) {
        if let Some(task) = self.0.take()
            && tokio::time::timeout(PATIENCE, task).await.is_err()
        {
            tracing::warn!("the last events were not written within {PATIENCE:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use elasticjob_core::event::Event;

    fn lines(numbers: std::ops::Range<u32>) -> String {
        let record = |item| Record {
            at: jiff::Timestamp::UNIX_EPOCH,
            job: "j".into(),
            instance: "i".into(),
            event: Event::TookOver { item },
            next_fire: None,
        };
        numbers.map(|it| write_line(&record(it)) + "\n").collect()
    }

    fn items(file: &EventFile) -> (Vec<u32>, usize) {
        let (records, unreadable) = file.read().unwrap();
        let item = |it: &Record| match it.event {
            Event::TookOver { item } => item,
            ref other => panic!("{other:?}"),
        };
        (records.iter().map(item).collect(), unreadable)
    }

    #[test]
    fn a_full_file_is_put_aside_and_both_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let one = lines(0..1).len() as u64;
        let file = EventFile::new(dir.path().join("events.jsonl")).full_at(3 * one);
        let mut appender = file.open().unwrap();
        for item in 0..8 {
            appender = appender.append(&lines(item..item + 1)).unwrap();
        }
        assert_eq!(items(&file), (vec![3, 4, 5, 6, 7], 0), "what was put aside before is gone");
        assert!(file_length(file.path()).unwrap() <= 3 * one);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_torn_last_line_is_passed_over_and_does_not_tear_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let file = EventFile::new(dir.path().join("events.jsonl"));
        let whole = lines(0..2);
        let torn = whole.len() - 5;
        std::fs::write(file.path(), &whole[..torn]).unwrap();
        assert_eq!(items(&file), (vec![0], 0));
        file.open().unwrap().append(&lines(5..6)).unwrap();
        assert_eq!(items(&file), (vec![0, 5], 1), "by now it is a line like others, and counts");
        std::fs::write(file.path(), b"\xff\xfe\n\n{}\n").unwrap();
        assert_eq!(items(&file), (vec![], 3));
    }
}
