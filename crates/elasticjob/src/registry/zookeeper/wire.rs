//! ZooKeeper's wire format: requests as bytes, and bytes as replies. Nothing here waits or remembers.
//!
//! Every packet is a length in four bytes and that many bytes more. Numbers are big-endian; a string is its
//! length and its bytes; a length of -1 is "none".

use jiff::Timestamp;

use crate::registry::Stat;

/// What requests are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Opcode {
    Delete = 2,
    GetData = 4,
    SetData = 5,
    GetChildren = 8,
    Sync = 9,
    Ping = 11,
    Check = 13,
    Multi = 14,
    Create2 = 15,
    RemoveWatches = 18,
    CreateContainer = 19,
    MultiRead = 22,
    Auth = 100,
    SetWatches2 = 105,
    CloseSession = -11,
}

/// Numbers that stand for a kind of packet rather than for a request of ours.
pub(super) mod xid {
    pub(in crate::registry::zookeeper) const NOTIFICATION: i32 = -1;
    pub(in crate::registry::zookeeper) const PING: i32 = -2;
    pub(in crate::registry::zookeeper) const AUTH: i32 = -4;
}

/// Error codes of replies.
pub(super) mod code {
    pub(in crate::registry::zookeeper) const OK: i32 = 0;
    pub(in crate::registry::zookeeper) const UNIMPLEMENTED: i32 = -6;
    pub(in crate::registry::zookeeper) const NO_NODE: i32 = -101;
    pub(in crate::registry::zookeeper) const NO_AUTH: i32 = -102;
    pub(in crate::registry::zookeeper) const BAD_VERSION: i32 = -103;
    pub(in crate::registry::zookeeper) const NO_CHILDREN_FOR_EPHEMERALS: i32 = -108;
    pub(in crate::registry::zookeeper) const NODE_EXISTS: i32 = -110;
    pub(in crate::registry::zookeeper) const NOT_EMPTY: i32 = -111;
    pub(in crate::registry::zookeeper) const SESSION_EXPIRED: i32 = -112;
    pub(in crate::registry::zookeeper) const INVALID_ACL: i32 = -114;
    pub(in crate::registry::zookeeper) const AUTH_FAILED: i32 = -115;
    pub(in crate::registry::zookeeper) const REQUIRES_AUTH: i32 = -124;
    /// What stands for the steps of a transaction that were not reached.
    pub(in crate::registry::zookeeper) const RUNTIME_INCONSISTENCY: i32 = -2;
}

/// ZooKeeper's own name of an error.
pub(super) fn name(code: i32) -> String {
    let name = match code {
        -1 => "system error",
        -4 => "connection loss",
        -5 => "marshalling error",
        code::UNIMPLEMENTED => "unimplemented",
        -7 => "operation timeout",
        -8 => "bad arguments",
        code::NO_NODE => "no node",
        code::NO_AUTH => "no authority",
        code::BAD_VERSION => "bad version",
        code::NO_CHILDREN_FOR_EPHEMERALS => "no children for ephemeral nodes",
        code::NODE_EXISTS => "node exists",
        code::NOT_EMPTY => "not empty",
        code::SESSION_EXPIRED => "session expired",
        code::INVALID_ACL => "invalid access control list",
        code::AUTH_FAILED => "authentication failed",
        -118 => "session moved",
        -119 => "server is read-only",
        -122 => "request timeout",
        code::REQUIRES_AUTH => "authentication required",
        -125 => "quota exceeded",
        -127 => "throttled",
        _ => return format!("error {code}"),
    };
    name.to_owned()
}

/// Bytes that are not what ZooKeeper sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

// ---- Writing ----

/// A packet in the making, length and all.
pub(super) struct Packet(Vec<u8>);

impl Packet {
    /// A packet without a request's head.
    pub(super) fn bare() -> Packet {
        Packet(vec![0; 4])
    }

    /// A request's packet. Its number is put in when it is sent.
    pub(super) fn request(opcode: Opcode) -> Packet {
        let mut packet = Packet::bare();
        packet.int(0);
        packet.int(opcode as i32);
        packet
    }

    pub(super) fn int(&mut self, value: i32) -> &mut Packet {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn long(&mut self, value: i64) -> &mut Packet {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(super) fn bool(&mut self, value: bool) -> &mut Packet {
        self.0.push(value.into());
        self
    }

    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Packet {
        // What is longer than this is refused for its size before it is sent.
        self.int(i32::try_from(value.len()).unwrap_or(i32::MAX));
        self.0.extend(value);
        self
    }

    pub(super) fn string(&mut self, value: &str) -> &mut Packet {
        self.bytes(value.as_bytes())
    }

    pub(super) fn strings<'a>(&mut self, values: impl ExactSizeIterator<Item = &'a String>) -> &mut Packet {
        self.int(i32::try_from(values.len()).unwrap_or(i32::MAX));
        for value in values {
            self.string(value);
        }
        self
    }

    /// The bytes after the length.
    pub(super) fn size(&self) -> usize {
        self.0.len() - 4
    }

    /// The bytes to send.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let size = u32::try_from(self.size()).unwrap_or(u32::MAX);
        self.0[..4].copy_from_slice(&size.to_be_bytes());
        self.0
    }

    /// The bytes to send, as request number `xid`.
    pub(super) fn number(self, xid: i32) -> Vec<u8> {
        let mut bytes = self.finish();
        bytes[4..8].copy_from_slice(&xid.to_be_bytes());
        bytes
    }
}

/// Who may do what with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acl {
    /// Everybody everything.
    Open,
    /// Whoever proved the same identity as its creator.
    Creator,
}

/// How long a node lives, as ZooKeeper numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Mode {
    Persistent = 0,
    Ephemeral = 1,
    EphemeralSequential = 3,
    Container = 4,
}

/// One step of a transaction, with absolute paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Check { path: String, version: i32 },
    Create { path: String, data: String, mode: Mode },
    Set { path: String, data: String, version: i32 },
    Delete { path: String },
}

/// The session that a connection is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) id: i64,
    pub(super) password: Vec<u8>,
}

pub(super) fn connect(ticket: &Ticket, last_zxid: i64, timeout_ms: i32) -> Packet {
    let mut packet = Packet::bare();
    packet.int(0).long(last_zxid).int(timeout_ms).long(ticket.id);
    let password = if ticket.password.is_empty() { &[0; 16] } else { &*ticket.password };
    // A server that cannot write is of no use to us.
    packet.bytes(password).bool(false);
    packet
}

pub(super) fn auth(scheme: &str, secret: &str) -> Packet {
    let mut packet = Packet::request(Opcode::Auth);
    packet.int(0).string(scheme).string(secret);
    packet
}

/// Transactions of a session without authority to read are still in order: the closing one too.
pub(super) fn bare(opcode: Opcode) -> Packet {
    Packet::request(opcode)
}

/// `getData` or `getChildren`, without a watch.
pub(super) fn look(opcode: Opcode, path: &str) -> Packet {
    let mut packet = Packet::request(opcode);
    packet.string(path).bool(false);
    packet
}

pub(super) fn sync(path: &str) -> Packet {
    let mut packet = Packet::request(Opcode::Sync);
    packet.string(path);
    packet
}

/// Adds persistent watches: on the single nodes, and on the nodes with all below them.
pub(super) fn set_watches<'a>(
    zxid: i64,
    single: impl ExactSizeIterator<Item = &'a String>,
    recursive: impl ExactSizeIterator<Item = &'a String>,
) -> Packet {
    let mut packet = Packet::request(Opcode::SetWatches2);
    packet.long(zxid).int(0).int(0).int(0).strings(single).strings(recursive);
    packet
}

pub(super) fn remove_watches(path: &str) -> Packet {
    const ANY: i32 = 3;
    let mut packet = Packet::request(Opcode::RemoveWatches);
    packet.string(path).int(ANY);
    packet
}

/// What a combined read asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Data(String),
    Children(String),
}

impl Ask {
    pub(super) fn path(&self) -> &String {
        match self {
            Ask::Data(path) | Ask::Children(path) => path,
        }
    }
}

pub(super) fn multi_read(asks: &[Ask]) -> Packet {
    let mut packet = Packet::request(Opcode::MultiRead);
    for ask in asks {
        let opcode = match ask {
            Ask::Data(_) => Opcode::GetData,
            Ask::Children(_) => Opcode::GetChildren,
        };
        step_head(&mut packet, opcode).string(ask.path()).bool(false);
    }
    end_of_steps(&mut packet);
    packet
}

pub(super) fn multi(steps: &[Step], acl: Acl) -> Packet {
    let mut packet = Packet::request(Opcode::Multi);
    for step in steps {
        match step {
            Step::Check { path, version } => {
                step_head(&mut packet, Opcode::Check).string(path).int(*version);
            }
            Step::Create { path, data, mode } => {
                let opcode = match mode {
                    Mode::Container => Opcode::CreateContainer,
                    Mode::Persistent | Mode::Ephemeral | Mode::EphemeralSequential => Opcode::Create2,
                };
                step_head(&mut packet, opcode).string(path).string(data);
                write_acl(&mut packet, acl).int(*mode as i32);
            }
            Step::Set { path, data, version } => {
                step_head(&mut packet, Opcode::SetData).string(path).string(data).int(*version);
            }
            Step::Delete { path } => {
                step_head(&mut packet, Opcode::Delete).string(path).int(-1);
            }
        }
    }
    end_of_steps(&mut packet);
    packet
}

/// Several transactions as one, in this order.
pub(super) fn together<'a>(transactions: impl Iterator<Item = &'a Packet>) -> Packet {
    let mut packet = Packet::request(Opcode::Multi);
    for transaction in transactions {
        let end = transaction.0.len().saturating_sub(END_OF_STEPS);
        packet.0.extend(transaction.0.get(REQUEST_HEAD..end).unwrap_or_default());
    }
    end_of_steps(&mut packet);
    packet
}

/// The bytes before the steps: length, number and opcode.
const REQUEST_HEAD: usize = 12;
/// The bytes behind them.
const END_OF_STEPS: usize = 9;

fn step_head(packet: &mut Packet, opcode: Opcode) -> &mut Packet {
    packet.int(opcode as i32).bool(false).int(-1)
}

fn end_of_steps(packet: &mut Packet) {
    packet.int(-1).bool(true).int(-1);
}

fn write_acl(packet: &mut Packet, acl: Acl) -> &mut Packet {
    const ALL: i32 = 31;
    let (scheme, id) = match acl {
        Acl::Open => ("world", "anyone"),
        Acl::Creator => ("auth", ""),
    };
    packet.int(1).int(ALL).string(scheme).string(id)
}

// ---- Reading ----

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    pub(super) fn int(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    pub(super) fn long(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub(super) fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.array::<1>()? != [0])
    }

    /// No bytes at all are as good as an empty value: Java writes either.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        match self.int()? {
            -1 => Ok(&[]),
            size => self.take(usize::try_from(size).map_err(|_| Malformed)?),
        }
    }

    /// Values are text. One that somebody else wrote otherwise must not end the session.
    pub(super) fn string(&mut self) -> Result<String, Malformed> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    fn strings(&mut self) -> Result<Vec<String>, Malformed> {
        let count = self.int()?.max(0);
        (0..count).map(|_| self.string()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What a server says to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    /// Not positive if the session has expired.
    pub(super) timeout_ms: i32,
    pub(super) ticket: Ticket,
    pub(super) read_only: bool,
}

pub(super) fn read_welcome(bytes: &[u8]) -> Result<Welcome, Malformed> {
    let mut reader = Reader::new(bytes);
    reader.int()?;
    let timeout_ms = reader.int()?;
    let ticket = Ticket { id: reader.long()?, password: reader.bytes()?.to_owned() };
    let read_only = !reader.is_empty() && reader.bool()?;
    Ok(Welcome { timeout_ms, ticket, read_only })
}

/// What every packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) xid: i32,
    pub(super) zxid: i64,
    pub(super) error: i32,
}

pub(super) fn read_head<'a>(bytes: &'a [u8]) -> Result<(Head, Reader<'a>), Malformed> {
    let mut reader = Reader::new(bytes);
    let head = Head { xid: reader.int()?, zxid: reader.long()?, error: reader.int()? };
    Ok((head, reader))
}

/// What a watch says. It says nothing of the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Notification {
    /// Made, or its data set.
    Put(String),
    Deleted(String),
    /// Something that single nodes' watches say, and that we do not need.
    Other,
}

pub(super) fn read_notification(mut reader: Reader<'_>) -> Result<Notification, Malformed> {
    let (kind, _state, path) = (reader.int()?, reader.int()?, reader.string()?);
    Ok(match kind {
        1 | 3 => Notification::Put(path),
        2 => Notification::Deleted(path),
        _ => Notification::Other,
    })
}

/// A node as the server describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) data: String,
    pub(super) stat: Stat,
    /// The session that it goes with; 0 if none.
    pub(super) owner: i64,
}

pub(super) fn read_stat(reader: &mut Reader<'_>) -> Result<(Stat, i64), Malformed> {
    let created = reader.long()?;
    let written = reader.long()?;
    let _created_at = reader.long()?;
    let modified_ms = reader.long()?;
    let version = reader.int()?;
    let (_children_version, _acl_version) = (reader.int()?, reader.int()?);
    let owner = reader.long()?;
    let (_length, _children, _children_zxid) = (reader.int()?, reader.int()?, reader.long()?);
    // Containers and nodes with a time to live are marked in the same field.
    let is_marker = owner == i64::MIN || owner.to_be_bytes()[0] == 0xff;
    let owner = if is_marker { 0 } else { owner };
    let stat = Stat {
        created: u64::try_from(created).map_err(|_| Malformed)?,
        written: u64::try_from(written).map_err(|_| Malformed)?,
        version: version.cast_unsigned(),
        modified: Timestamp::from_millisecond(modified_ms).map_err(|_| Malformed)?,
        ephemeral: owner != 0,
    };
    Ok((stat, owner))
}

/// What became of one step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// Made: under this name.
    Created {
        path: String,
        stat: Option<Stat>,
    },
    Set {
        stat: Stat,
        owner: i64,
    },
    /// Checked or deleted.
    Nothing,
    /// Refused, or taken back because another was.
    Failed(i32),
}

pub(super) fn read_multi(mut reader: Reader<'_>) -> Result<Vec<Done>, Malformed> {
    let mut results = Vec::new();
    while let Some(opcode) = next_step(&mut reader)? {
        results.push(match opcode {
            // Within a transaction the server describes containers, and nothing else that it makes.
            1 => Done::Created { path: reader.string()?, stat: None },
            15 | 19 => Done::Created { path: reader.string()?, stat: Some(read_stat(&mut reader)?.0) },
            5 => {
                let (stat, owner) = read_stat(&mut reader)?;
                Done::Set { stat, owner }
            }
            2 | 13 => Done::Nothing,
            -1 => Done::Failed(reader.int()?),
            _ => return Err(Malformed),
        });
    }
    Ok(results)
}

/// The answer to one [`Ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Data(Node),
    Children(Vec<String>),
    Failed(i32),
}

pub(super) fn read_multi_read(mut reader: Reader<'_>) -> Result<Vec<Told>, Malformed> {
    let mut results = Vec::new();
    while let Some(opcode) = next_step(&mut reader)? {
        results.push(match opcode {
            4 => {
                let data = reader.string()?;
                let (stat, owner) = read_stat(&mut reader)?;
                Told::Data(Node { data, stat, owner })
            }
            8 => Told::Children(reader.strings()?),
            -1 => Told::Failed(reader.int()?),
            _ => return Err(Malformed),
        });
    }
    Ok(results)
}

fn next_step(reader: &mut Reader<'_>) -> Result<Option<i32>, Malformed> {
    let (opcode, done, _error) = (reader.int()?, reader.bool()?, reader.int()?);
    Ok((!done).then_some(opcode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_its_length_its_number_and_what_it_says() {
        let bytes = look(Opcode::GetData, "/a").number(7);
        assert_eq!(bytes, [0, 0, 0, 15, 0, 0, 0, 7, 0, 0, 0, 4, 0, 0, 0, 2, b'/', b'a', 0]);
    }

    #[test]
    fn a_transaction_is_its_steps_and_an_end() {
        let steps = [Step::Delete { path: "/a".into() }];
        let bytes = multi(&steps, Acl::Open).number(1);
        let body = &bytes[12..];
        let step = [0, 0, 0, 2, 0, 255, 255, 255, 255, 0, 0, 0, 2, b'/', b'a', 255, 255, 255, 255];
        let end = [255, 255, 255, 255, 1, 255, 255, 255, 255];
        assert_eq!(body, [&step[..], &end].concat());
    }

    #[test]
    fn what_is_cut_short_or_nonsense_is_malformed_and_no_more() {
        let mut answer = Packet::bare();
        answer.int(15).bool(false).int(0).string("/a");
        for value in [5, 6, 100, 200] {
            answer.long(value);
        }
        answer.int(3).int(0).int(0).long(0).int(0).int(0).long(5).int(-1).bool(true).int(-1);
        let bytes = answer.finish().split_off(4);
        let read = |bytes: &[u8]| read_multi(Reader::new(bytes));
        let stat = Stat {
            created: 5,
            written: 6,
            version: 3,
            modified: Timestamp::from_millisecond(200).expect("a time"),
            ephemeral: false,
        };
        assert_eq!(read(&bytes), Ok(vec![Done::Created { path: "/a".into(), stat: Some(stat) }]));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Err(Malformed), "{end}");
        }
        for bad in [[0x7f; 64], [0x80; 64], [0; 64]] {
            let _ = (read(&bad), read_multi_read(Reader::new(&bad)), read_welcome(&bad));
        }
    }

    #[test]
    fn a_container_is_not_ephemeral() {
        for (owner, ephemeral) in [(0, false), (i64::MIN, false), (-1, false), (0x1234, true)] {
            let mut stat = Packet::bare();
            stat.long(1).long(1).long(1).long(1).int(0).int(0).int(0).long(owner).int(0).int(0).long(1);
            let bytes = stat.finish().split_off(4);
            let (stat, _) = read_stat(&mut Reader::new(&bytes)).expect("a stat");
            assert_eq!(stat.ephemeral, ephemeral, "{owner:x}");
        }
    }
}
