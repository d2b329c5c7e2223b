//! What the registry did, by its own account: the transaction logs of a ZooKeeper ensemble. They say which
//! session was over when, which no observer could say without a delay of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use crate::line::{Fact, Line, What};

const CREATE: i32 = 1;
const DELETE: i32 = 2;
const SET_DATA: i32 = 5;
const MULTI: i32 = 14;
const CREATE_2: i32 = 15;
const CREATE_CONTAINER: i32 = 19;
const CREATE_TTL: i32 = 21;
const OPEN_SESSION: i32 = -10;
const CLOSE_SESSION: i32 = -11;

/// A transaction's number, time, session, request number and content.
#[derive(Clone, Debug)]
struct Transaction {
    at: u64,
    session: i64,
    request: i32,
    ops: Vec<Op>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Op {
    Open,
    Close,
    Put { path: String, data: String, is_new: bool },
    Delete { path: String },
}

/// The lines of everything that matters below a namespace, from these directories of logs. Members that were
/// down lack what others have: all of them together have all.
pub fn read<'a>(logs: impl IntoIterator<Item = &'a Path>, namespace: &str) -> io::Result<Vec<Line>> {
    let mut transactions: BTreeMap<i64, Transaction> = BTreeMap::new();
    for folder in logs {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let is_log = path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("log."));
            if is_log {
                transactions.extend(parse(&fs::read(path)?));
            }
        }
    }
    Ok(Teller::new(namespace).tell(transactions.into_values()))
}

/// The transactions of one file. It ends where nothing more was written, or where it was torn.
fn parse(bytes: &[u8]) -> BTreeMap<i64, Transaction> {
    let mut transactions = BTreeMap::new();
    let mut reader = Reader(bytes);
    // Magic, version, database.
    if reader.take(16).is_none() {
        return transactions;
    }
    while let Some((number, transaction)) = reader.transaction() {
        transactions.insert(number, transaction);
    }
    transactions
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<String> {
        let size = self.int()?;
        let bytes = self.take(usize::try_from(size.max(0)).ok()?)?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    fn transaction(&mut self) -> Option<(i64, Transaction)> {
        let _checksum = self.long()?;
        let size = usize::try_from(self.int()?).ok().filter(|it| *it > 0)?;
        let mut body = Reader(self.take(size)?);
        self.take(1).filter(|end| *end == b"B")?;
        let (session, request, number, at) = (body.long()?, body.int()?, body.long()?, body.long()?);
        let kind = body.int()?;
        let mut ops = Vec::new();
        match kind {
            OPEN_SESSION => ops.push(Op::Open),
            CLOSE_SESSION => ops.push(Op::Close),
            MULTI => {
                for _ in 0..body.int()? {
                    let kind = body.int()?;
                    let size = usize::try_from(body.int()?.max(0)).ok()?;
                    ops.extend(Reader(body.take(size)?).op(kind));
                }
            }
            kind => ops.extend(body.op(kind)),
        }
        Some((number, Transaction { at: u64::try_from(at).ok()?, session, request, ops }))
    }

    fn op(&mut self, kind: i32) -> Option<Op> {
        match kind {
            CREATE | CREATE_2 | CREATE_CONTAINER | CREATE_TTL => {
                Some(Op::Put { path: self.text()?, data: self.text()?, is_new: true })
            }
            SET_DATA => Some(Op::Put { path: self.text()?, data: self.text()?, is_new: false }),
            DELETE => Some(Op::Delete { path: self.text()? }),
            _ => None,
        }
    }
}

/// Makes lines of transactions.
struct Teller {
    prefix: String,
    /// The instance that each session goes by.
    instances: BTreeMap<i64, String>,
    opened: BTreeMap<i64, u64>,
    servers: BTreeMap<(String, String), bool>,
    lines: Vec<Line>,
}

impl Teller {
    fn new(namespace: &str) -> Teller {
        Teller {
            prefix: format!("/{namespace}/"),
            instances: BTreeMap::new(),
            opened: BTreeMap::new(),
            servers: BTreeMap::new(),
            lines: Vec::new(),
        }
    }

    fn tell(mut self, transactions: impl Iterator<Item = Transaction>) -> Vec<Line> {
        for Transaction { at, session, request, ops } in transactions {
            for op in ops {
                match op {
                    Op::Open => drop(self.opened.insert(session, at)),
                    Op::Close => {
                        if let Some(instance) = self.instances.get(&session).cloned() {
                            // What a server ends by itself is no client's request.
                            self.say(at, Fact::Closed { instance, expired: request == 0 });
                        }
                    }
                    Op::Put { path, data, is_new } => self.put(at, session, &path, data, is_new),
                    Op::Delete { path } => self.delete(at, &path),
                }
            }
        }
        self.lines.sort_by_key(|it| it.at);
        self.lines
    }

    fn say(&mut self, at: u64, fact: Fact) {
        self.lines.push(Line { at, process: "registry".to_owned(), what: What::Registry(fact) });
    }

    fn put(&mut self, at: u64, session: i64, path: &str, data: String, is_new: bool) {
        let Some(rest) = path.strip_prefix(&self.prefix) else { return };
        let names: Vec<&str> = rest.split('/').collect();
        match names.as_slice() {
            [job] if is_new => self.say(at, Fact::Exists { job: (*job).to_owned() }),
            [job, "config"] => {
                self.say(at, Fact::Config { job: (*job).to_owned(), document: Some(data) });
            }
            [_, "instances", id] if !self.instances.contains_key(&session) => {
                self.instances.insert(session, (*id).to_owned());
                let opened = self.opened.get(&session).copied().unwrap_or(at);
                self.say(opened, Fact::Opened { instance: (*id).to_owned() });
            }
            [job, "servers", ip] => {
                let (job, ip) = ((*job).to_owned(), (*ip).to_owned());
                let enabled = data != "DISABLED";
                let before = self.servers.insert((job.clone(), ip.clone()), enabled);
                if before.is_some_and(|it| it != enabled) {
                    self.say(at, Fact::Server { job, ip, enabled });
                }
            }
            [job, "sharding", item, "disabled"] => self.item(at, job, item, false),
            [job, "trigger", id] => {
                let (job, instance) = ((*job).to_owned(), (*id).to_owned());
                self.say(at, Fact::Triggered { job, instance });
            }
            _ => {}
        }
    }

    fn delete(&mut self, at: u64, path: &str) {
        let Some(rest) = path.strip_prefix(&self.prefix) else { return };
        let names: Vec<&str> = rest.split('/').collect();
        match names.as_slice() {
            [job, "config"] => self.say(at, Fact::Config { job: (*job).to_owned(), document: None }),
            [job, "sharding", item, "disabled"] => self.item(at, job, item, true),
            _ => {}
        }
    }

    fn item(&mut self, at: u64, job: &str, item: &str, enabled: bool) {
        if let Ok(item) = item.parse() {
            self.say(at, Fact::Item { job: job.to_owned(), item, enabled });
        }
    }
}
