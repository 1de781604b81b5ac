//! Reads an append-only file: a base, which may be a snapshot, and the commands after it.
//!
//! Memory is bounded by the snapshot and the longest command.

use std::{
    fmt,
    io::{self, Read},
};

use bytes::Bytes;
use lockstorm_sim::{
    config::Config,
    durability::{Commands, Unread, rdb},
    generation::Generation,
    keyspace::{Db, Value},
};

/// The size of the first read of a file.
const READ: usize = 1 << 20;

/// The most bytes of a command. A server's longest word has 512 MB by default.
const COMMAND_MAX: usize = 1 << 30;

/// The databases of a snapshot, which a server has by default 16 of.
const DATABASES: usize = 1_024;

/// The latest second that a timestamp may name, at the end of the year 9999.
const SECS_MAX: i64 = 253_402_300_799;

/// The append-only file of one node: files that are read one after the other.
pub struct Aof<'a> {
    pub(super) name: String,
    pub(super) files: Vec<(String, Box<dyn Read + 'a>)>,
}

impl fmt::Debug for Aof<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aof({} of {} files)", self.name, self.files.len())
    }
}

impl<'a> Aof<'a> {
    /// Begins the append-only file of a node.
    pub fn new(name: impl Into<String>) -> Aof<'a> {
        Aof { name: name.into(), files: Vec::new() }
    }

    /// Adds a file: the base first, if there is one, then the increments in the manifest's order.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, from: impl Read + 'a) -> Aof<'a> {
        self.files.push((name.into(), Box::new(from)));
        self
    }

    /// Returns true if a file that begins with these bytes is an append-only file or a snapshot,
    /// and no capture of MONITOR.
    pub fn begins_with(bytes: &[u8]) -> bool {
        [&b"REDIS"[..], b"VALKEY", b"*", b"#TS:"].iter().any(|prefix| bytes.starts_with(prefix))
    }
}

/// An item of an append-only file.
#[derive(Debug)]
pub(super) enum Item {
    /// The databases of a snapshot, by number.
    Base(Vec<Db>),
    /// A command at an offset, with the second of its annotation.
    Command { at: u64, secs: Option<i64>, words: Vec<Bytes> },
    /// The rest of the file cannot be read from this offset on.
    Bad { at: u64, what: String },
}

/// Reads one file, and gives its items to `take` until that returns false.
pub(super) fn read(from: &mut dyn Read, mut take: impl FnMut(Item) -> bool) -> io::Result<()> {
    let mut file = File { from, unread: Vec::new(), skipped: 0, is_at_end: false };
    file.more(READ)?;
    if file.unread.starts_with(b"REDIS") || file.unread.starts_with(b"VALKEY") {
        while !file.is_at_end {
            file.more(file.unread.len().max(READ))?;
        }
        match snapshot(&file.unread) {
            Ok((dbs, len)) => {
                if !take(Item::Base(dbs)) {
                    return Ok(());
                }
                file.skip(len);
            }
            Err(what) => {
                take(Item::Bad { at: 0, what });
                return Ok(());
            }
        }
    }
    let mut secs = None;
    loop {
        let mut commands = Commands::new(Bytes::from(std::mem::take(&mut file.unread)), 0);
        let stopped = loop {
            let read = commands.next();
            secs = commands.stamp_secs().filter(|secs| (0..=SECS_MAX).contains(secs)).or(secs);
            let at = file.skipped + commands.begun() as u64;
            match read {
                None => break None,
                Some(Ok(words)) => {
                    if !take(Item::Command { at, secs, words }) {
                        return Ok(());
                    }
                }
                Some(Err(unread)) => break Some((unread, at)),
            }
        };
        let rest = commands.rest();
        file.skipped += commands.begun() as u64;
        file.unread = rest.to_vec();
        match stopped {
            Some((Unread::Damaged, at)) => {
                take(Item::Bad { at, what: "has bytes that are no command".to_owned() });
                return Ok(());
            }
            Some((Unread::Short, at)) if file.is_at_end => {
                take(Item::Bad { at, what: "ends inside a command".to_owned() });
                return Ok(());
            }
            Some((Unread::Short, at)) if file.unread.len() > COMMAND_MAX => {
                take(Item::Bad { at, what: "has a command of more than a gibibyte".to_owned() });
                return Ok(());
            }
            None if file.is_at_end => return Ok(()),
            // Twice as much each time, so that a long command is not parsed again and again.
            _ => file.more(file.unread.len().max(READ))?,
        }
    }
}

/// A file with the bytes that were read and not used.
struct File<'a> {
    from: &'a mut dyn Read,
    unread: Vec<u8>,
    /// The offset of the first of them.
    skipped: u64,
    is_at_end: bool,
}

impl File<'_> {
    /// Reads this many bytes more, or up to the end.
    fn more(&mut self, count: usize) -> io::Result<()> {
        let read = (&mut *self.from).take(count as u64).read_to_end(&mut self.unread)?;
        self.is_at_end = read < count;
        Ok(())
    }

    fn skip(&mut self, count: usize) {
        let count = count.min(self.unread.len());
        self.unread.drain(..count);
        self.skipped += count as u64;
    }
}

/// Reads a snapshot. Returns its databases and its length, or the reason against it.
fn snapshot(bytes: &[u8]) -> Result<(Vec<Db>, usize), String> {
    // Each of these generations knows types that the other does not.
    let mut why = String::new();
    for generation in [Generation::Valkey91, Generation::Redis82] {
        let config = Config::of(generation).with(|config| config.keyspace.databases = DATABASES);
        match rdb::open(bytes, &config, 0, true) {
            Ok(opened) => return Ok((opened.dbs, opened.len)),
            Err(error) => why = format!("is no snapshot that this can read: {error}"),
        }
    }
    Err(why)
}

/// A key of a snapshot that may be a lock's: its owner, its levels and its expiry.
pub(super) struct Kept {
    pub(super) key: Box<[u8]>,
    pub(super) owner: String,
    pub(super) levels: u32,
    pub(super) expires_ms: Option<i64>,
    pub(super) is_hash: bool,
    /// Set for a hash that has the mode of a read-write lock, and then only key and expiry count.
    pub(super) has_mode: bool,
}

/// Returns the keys of a database that have a single value or field.
pub(super) fn kept(db: &Db) -> impl Iterator<Item = Kept> {
    db.entries().iter().filter_map(|(key, entry)| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut has_mode = false;
        let (owner, levels, is_hash) = match &entry.value {
            Value::String(value) => (text(&value.bytes().to_bytes()), 1, false),
            Value::Hash(hash) if hash.len() == 1 => {
                let (field, count) = hash.iter().next()?;
                (text(&field.to_bytes()), text(&count.to_bytes()).parse().unwrap_or(1), true)
            }
            Value::Hash(hash) if hash.contains(b"mode") => {
                has_mode = true;
                (String::new(), 0, true)
            }
            _ => return None,
        };
        let key = key.to_bytes().to_vec().into_boxed_slice();
        Some(Kept { key, owner, levels, expires_ms: entry.expires_ms(), is_hash, has_mode })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the items in short.
    fn items(bytes: &[u8]) -> Vec<String> {
        let (mut items, mut from) = (Vec::new(), bytes);
        let take = |item: Item| {
            items.push(match item {
                Item::Base(dbs) => format!("{} databases", dbs.len()),
                Item::Command { at, secs, words } => format!("{at} {secs:?} {}", words.len()),
                Item::Bad { at, what } => format!("{at} {what}"),
            });
            true
        };
        read(&mut from, take).expect("it is in memory");
        items
    }

    #[test]
    fn commands_have_their_offset_and_second() {
        let command = "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n";
        let text = format!("{command}#TS:17\r\n{command}{command}#TS:-1\r\n{command}");
        let expected = ["0 None 2", "29 Some(17) 2", "50 Some(17) 2", "79 Some(17) 2"];
        assert_eq!(items(text.as_bytes()), expected);
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        let command = "*2\r\n$4\r\nINCR\r\n$1\r\na\r\n";
        let rows = [
            ("", vec![]),
            ("*1\r\n$4\r\nPI", vec!["0 ends inside a command"]),
            ("!", vec!["0 has bytes that are no command"]),
        ];
        for (text, expected) in rows {
            assert_eq!(items(text.as_bytes()), expected, "{text}");
        }
        let cut = format!("{command}*1\r\n!!");
        assert_eq!(items(cut.as_bytes()), ["0 None 2", "21 has bytes that are no command"]);
        assert!(items(b"REDIS0011")[0].starts_with("0 is no snapshot"));
    }

    #[test]
    fn a_command_may_be_longer_than_a_read() {
        let long = "x".repeat(3 * READ);
        let text = format!("*2\r\n$3\r\nGET\r\n${}\r\n{long}\r\n*1\r\n$4\r\nPING\r\n", long.len());
        assert_eq!(items(text.as_bytes()), ["0 None 2".to_owned(), format!("{} None 1", text.len() - 14)]);
    }
}
