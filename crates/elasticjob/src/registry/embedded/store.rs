//! The file of a durable registry: persistent nodes, and the transaction numbers that are taken.

use std::fs::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use elasticjob_core::tree::{Stat, Zxid};
use jiff::Timestamp;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::registry::{Entry, RegistryError};

/// The file's name within the registry's directory.
pub(super) const FILE: &str = "registry.redb";

const FORMAT: u64 = 1;

/// Absolute path to data, the transactions that made it and wrote it last, version, and time of the last write:
/// seconds, nanoseconds.
const NODES: TableDefinition<'_, &str, (&str, u64, u64, u32, i64, i32)> = TableDefinition::new("nodes");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

/// The tree is in memory; the file is only ever read whole, and written at its leaves.
const CACHE_BYTES: usize = 4 << 20;

/// One step of what is to be stored.
#[derive(Debug)]
pub(super) enum Write {
    Put(Entry),
    Remove(String),
    /// No transaction number up to this one may be given again.
    Ceiling(Zxid),
}

/// An open file.
#[derive(Debug)]
pub(super) struct Store {
    database: Database,
}

impl Store {
    /// Opens or makes the file in a directory: with its nodes, and the last number that may have been given.
    pub(super) fn open(home: &Path) -> Result<(Store, Vec<Entry>, Zxid), RegistryError> {
        let path = home.join(FILE);
        let damaged = |cause: String| RegistryError::Damaged { path: path.clone(), cause };
        // A file that is damaged in the right places makes redb panic.
        let opened = catch_unwind(AssertUnwindSafe(|| {
            let mut database = Database::builder().set_cache_size(CACHE_BYTES).create(&path)?;
            // Reading alone does not look at the checksums.
            if !database.check_integrity()? {
                let cause = "a check failed; it is repaired, but what was written last may be missing";
                return Err(redb::Error::Corrupted(cause.into()));
            }
            let store = Store { database };
            let content = store.read()?;
            Ok((store, content))
        }));
        let (store, content) = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(redb::Error::DatabaseAlreadyOpen)) => {
                return Err(RegistryError::InUse { path: home.to_owned() });
            }
            Ok(Err(redb::Error::Io(source))) if !is_about_content(&source) => {
                return Err(RegistryError::Io { path, source });
            }
            Ok(Err(error)) => return Err(damaged(error.to_string())),
            Err(_) => return Err(damaged("its structure is broken".into())),
        };
        let Content { format, entries, ceiling } = content;
        match format {
            None => {
                let io =
                    |cause: String| RegistryError::Io { path: path.clone(), source: io::Error::other(cause) };
                store.write_format().map_err(|error| io(error.to_string()))?;
                // So that the file's name is as durable as its content.
                File::open(home).and_then(|it| it.sync_all()).map_err(|error| io(error.to_string()))?;
            }
            Some(FORMAT) => {}
            Some(found) if found > FORMAT => {
                return Err(RegistryError::NewerFormat { path, found, known: FORMAT });
            }
            Some(found) => return Err(damaged(format!("there is no format {found}"))),
        }
        Ok((store, entries.map_err(damaged)?, ceiling))
    }

    /// On some other disk than the machine's.
    #[cfg(test)]
    pub(super) fn on(disk: impl redb::StorageBackend) -> Result<(Store, Vec<Entry>, Zxid), redb::Error> {
        let store = Store { database: Database::builder().create_with_backend(disk)? };
        let content = store.read()?;
        store.write_format()?;
        Ok((store, content.entries.unwrap_or_default(), content.ceiling))
    }

    fn read(&self) -> Result<Content, redb::Error> {
        let transaction = self.database.begin_read()?;
        let numbers = match transaction.open_table(NUMBERS) {
            Err(redb::TableError::TableDoesNotExist(_)) => {
                return Ok(Content { format: None, entries: Ok(Vec::new()), ceiling: 0 });
            }
            numbers => numbers?,
        };
        let number = |name| Ok::<_, redb::Error>(numbers.get(name)?.map(|it| it.value()));
        let (format, ceiling) = (number("format")?, number("ceiling")?.unwrap_or(0));
        if format.is_some_and(|it| it != FORMAT) {
            return Ok(Content { format, entries: Ok(Vec::new()), ceiling });
        }
        let mut entries = Vec::new();
        for node in transaction.open_table(NODES)?.iter()? {
            let (path, value) = node?;
            let (data, created, written, version, second, nanosecond) = value.value();
            match Timestamp::new(second, nanosecond) {
                Ok(modified) => entries.push(Entry {
                    path: path.value().to_owned(),
                    data: data.to_owned(),
                    stat: Stat { created, written, version, modified, ephemeral: false },
                }),
                Err(error) => {
                    let cause = format!("at `{}`: {error}", path.value());
                    return Ok(Content { format, entries: Err(cause), ceiling });
                }
            }
        }
        Ok(Content { format, entries: Ok(entries), ceiling })
    }

    fn write_format(&self) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        transaction.open_table(NODES)?;
        transaction.open_table(NUMBERS)?.insert("format", FORMAT)?;
        transaction.commit()?;
        Ok(())
    }

    /// Stores all of it, or nothing; on disk when it returns. On an error nobody knows.
    pub(super) fn write<'a>(&self, writes: impl Iterator<Item = &'a Write>) -> Result<(), String> {
        let mut writes = writes.peekable();
        if writes.peek().is_none() {
            return Ok(());
        }
        self.try_write(writes).map_err(|error| error.to_string())
    }

    fn try_write<'a>(&self, writes: impl Iterator<Item = &'a Write>) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut nodes = transaction.open_table(NODES)?;
            let mut numbers = transaction.open_table(NUMBERS)?;
            for write in writes {
                match write {
                    Write::Put(Entry { path, data, stat }) => {
                        let (second, nanosecond) =
                            (stat.modified.as_second(), stat.modified.subsec_nanosecond());
                        let Stat { created, written, version, .. } = *stat;
                        nodes.insert(
                            path.as_str(),
                            (data.as_str(), created, written, version, second, nanosecond),
                        )?;
                    }
                    Write::Remove(path) => drop(nodes.remove(path.as_str())?),
                    Write::Ceiling(ceiling) => drop(numbers.insert("ceiling", ceiling)?),
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

/// What a file holds.
struct Content {
    /// `None` in a new file.
    format: Option<u64>,
    entries: Result<Vec<Entry>, String>,
    ceiling: Zxid,
}

/// Whether the operating system's error says that the file is not what it should be.
fn is_about_content(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}
