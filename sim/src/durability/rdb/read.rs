//! Reads a snapshot into databases.

use bytes::Bytes;

use super::{Input, RdbError, crc64::crc64, load, opcode};
use crate::{
    config::Config,
    keyspace::{Db, ExpiryRule, Usage},
};

/// The contents of a snapshot.
#[derive(Debug)]
pub struct Opened {
    /// The databases, by number.
    pub dbs: Vec<Db>,
    /// The code of each library of functions.
    pub libraries: Vec<Bytes>,
    /// The replication id, the offset, and the database selected in the stream; `None` if the
    /// snapshot does not contain them.
    pub replication: Option<(String, u64, usize)>,
    /// Length of the snapshot in bytes. An append-only file may continue after it.
    pub len: usize,
    /// Expired keys that were left out, each with the number of its database.
    pub expired: Vec<(usize, Bytes)>,
    /// Keys that were left out because their values are empty. Servers have written such keys.
    pub empty: Vec<Bytes>,
}

/// Reads a snapshot at `now_ms` milliseconds after the epoch, into as many databases as `config`
/// has. Leaves out keys that have expired by then, unless `keep_expired` is set.
///
/// # Errors
/// If the bytes are not a snapshot, are damaged, or contain something that this node cannot hold.
pub fn open(bytes: &[u8], config: &Config, now_ms: i64, keep_expired: bool) -> Result<Opened, RdbError> {
    let databases = config.keyspace.databases;
    let rule = ExpiryRule::at(now_ms);
    let mut input = Input::new(bytes);
    let header = input.take(9, "its header")?;
    let version = header.strip_prefix(b"REDIS").or(header.strip_prefix(b"VALKEY"));
    let version = version.ok_or(RdbError::Damaged("not a snapshot at all"))?;
    let version: u16 = std::str::from_utf8(version)
        .ok()
        .and_then(|version| version.parse().ok())
        .ok_or(RdbError::Damaged("its version"))?;
    if !config.generation.reads_rdb_version(version) {
        return Err(RdbError::Unsupported(format!("version {version}")));
    }
    let mut dbs: Vec<Db> = (0..databases).map(|_| Db::default()).collect();
    let (mut db, mut expires_ms, mut usage) = (0, None, None);
    let (mut libraries, mut expired, mut empty) = (Vec::new(), Vec::new(), Vec::new());
    let (mut id, mut offset, mut stream_db) = (None, None, 0);
    loop {
        match input.byte("a key")? {
            opcode::EOF => break,
            opcode::AUX => {
                let (name, value) = (input.string()?, input.string()?);
                let value = String::from_utf8_lossy(&value);
                match &name[..] {
                    b"repl-id" => id = Some(value.into_owned()),
                    b"repl-offset" => offset = value.parse().ok(),
                    b"repl-stream-db" => stream_db = value.parse().unwrap_or(0),
                    _ => {}
                }
            }
            opcode::SELECT_DB => {
                db = input.length()?;
                if db >= databases {
                    return Err(RdbError::Unsupported(format!("database {db}")));
                }
            }
            opcode::RESIZE_DB => {
                input.length()?;
                input.length()?;
            }
            // The slot, its keys, and those that expire: only hints, as RESIZE_DB.
            opcode::SLOT_INFO => {
                for _ in 0..3 {
                    input.length()?;
                }
            }
            opcode::EXPIRE_MS => {
                expires_ms = Some(i64::from_le_bytes(input.array("an expiry")?));
            }
            opcode::EXPIRE_SECONDS => {
                let seconds = i32::from_le_bytes(input.array("an expiry")?);
                expires_ms = Some(i64::from(seconds) * 1000);
            }
            opcode::FREQ => {
                usage = usage_of(config, Usage::counted(now_ms, input.byte("a frequency")?), true)
            }
            opcode::IDLE => {
                let secs = i64::try_from(input.number()?).unwrap_or(i64::MAX);
                usage = usage_of(config, Usage::idle_for(now_ms, secs), false);
            }
            opcode::FUNCTION2 => libraries.push(input.string()?),
            kind => {
                let key = input.string()?;
                let value = load::value(&mut input, kind, config);
                let expires_ms = expires_ms.take();
                let usage = usage.take().unwrap_or(Usage::new(now_ms));
                let is_expired = !keep_expired && expires_ms.is_some_and(|when_ms| rule.is_past(when_ms));
                match value {
                    // An empty collection cannot be a key. Servers have written some, and drop them
                    // when loading.
                    Err(RdbError::Empty) => empty.push(key),
                    Err(error) => return Err(error),
                    Ok(_) if is_expired => expired.push((db, key)),
                    Ok(value) => {
                        dbs[db].insert(&key, value, expires_ms, usage);
                    }
                }
            }
        }
    }
    if version >= 5 {
        let covered = bytes.len() - input.left();
        let checksum = u64::from_le_bytes(input.array("its checksum")?);
        // A server configured without checksums writes 0.
        if checksum != 0 && checksum != crc64(&bytes[..covered]) {
            return Err(RdbError::Checksum);
        }
    }
    let replication = id.zip(offset).map(|(id, offset)| (id, offset, stream_db));
    let len = bytes.len() - input.left();
    Ok(Opened { dbs, libraries, replication, len, expired, empty })
}

/// Returns the recorded use of a key, if the current eviction policy goes by it.
fn usage_of(config: &Config, usage: Usage, counted: bool) -> Option<Usage> {
    (config.memory.maxmemory_policy.counts_uses() == counted).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Eviction,
        keyspace::{Str, Value},
        script::Libraries,
    };

    #[test]
    fn how_keys_were_used_is_in_a_snapshot_where_eviction_goes_by_it() {
        let now_ms = 1_700_000_000_000;
        let mut db = Db::default();
        let value = || Value::String(Str::new("v"));
        db.insert("idle", value(), None, Usage::idle_for(now_ms, 100));
        db.insert("busy", value(), None, Usage::counted(now_ms, 77));
        let dbs = [db];
        for (policy, idle_ms, frequency) in
            [(Eviction::AllKeysLru, 100_000, 5), (Eviction::VolatileLfu, 0, 77), (Eviction::NoEviction, 0, 5)]
        {
            let config = Config::default().with(|config| config.memory.maxmemory_policy = policy);
            let origin = super::super::Origin {
                created: now_ms / 1000,
                replication: None,
                aof_base: false,
                version: None,
            };
            let snapshot = super::super::write(&dbs, &Libraries::default(), &origin, &config);
            let opened = open(&snapshot, &config, now_ms, false).expect("a whole snapshot");
            let usage = |key: &[u8]| opened.dbs[0].get(key).expect("it was written").usage;
            assert_eq!(usage(b"idle").idle_ms(now_ms), idle_ms, "{policy:?}");
            assert_eq!(usage(b"busy").frequency(now_ms, config.memory.lfu), frequency, "{policy:?}");
        }
    }

    /// A node of a cluster of Redis 8.2 counts the keys of each slot in its snapshot, as this one,
    /// which such a server has written.
    #[test]
    fn a_snapshot_with_counts_of_slots_is_read() {
        let hex = "524544495330303132fa0972656469732d76657205382e322e33fa0a72656469732d62697473c040fa056374\
                   696d65c212e00d6bfa08757365642d6d656dc2e8312600fa08616f662d62617365c000fe00fb0201f453c502\
                   01fc798b422ea201000000067b6261727d32c0010003626172c001ff0cbec34b6148869c";
        let digits = hex.as_bytes().as_chunks::<2>().0.iter();
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16);
        let snapshot: Vec<u8> = digits.map(|pair| byte(pair).expect("a byte")).collect();
        let opened = open(&snapshot, &Config::default(), 0, false).expect("a whole snapshot");
        assert_eq!(opened.len, snapshot.len());
        assert!(
            opened.dbs[0].get("bar".as_bytes()).is_some() && opened.dbs[0].get("{bar}2".as_bytes()).is_some()
        );
    }

    /// A replica that continues the stream from a snapshot must write into the database that was
    /// selected at that point.
    #[test]
    fn where_the_stream_stood_is_read_back() {
        let config = Config::default();
        for replication in [None, Some(("0123456789".repeat(4), 4_711, 3))] {
            let origin = super::super::Origin {
                created: 0,
                replication: replication.clone(),
                aof_base: false,
                version: None,
            };
            let snapshot = super::super::write(&[], &Libraries::default(), &origin, &config);
            assert_eq!(open(&snapshot, &config, 0, true).expect("a whole snapshot").replication, replication);
        }
    }

    /// Servers before 2.6 wrote expiries in seconds.
    #[test]
    fn an_expiry_in_seconds_is_read_as_milliseconds() {
        let seconds = 1_900_000_000i32.to_le_bytes();
        let snapshot = [b"REDIS0003\xfe\x00\xfd", &seconds[..], b"\x00\x01k\x01v\xff"].concat();
        let opened = open(&snapshot, &Config::default(), 0, true).expect("a whole snapshot");
        let entry = opened.dbs[0].get(b"k").expect("it is in there");
        assert_eq!(entry.expires_ms(), Some(1_900_000_000_000));
    }

    #[test]
    fn a_damaged_snapshot_is_refused() {
        let config = Config::default();
        let mut db = Db::default();
        db.insert("k", Value::String(Str::new("v")), None, Usage::default());
        let origin = super::super::Origin { created: 0, replication: None, aof_base: false, version: None };
        let snapshot = super::super::write(&[db], &Libraries::default(), &origin, &config);
        assert_eq!(open(&snapshot, &config, 0, true).expect("a whole snapshot").dbs[0].len(), 1);
        // This bit turns version 12 into version 2, which has no checksum.
        let without_checksum = 7;
        assert_eq!(&snapshot[..9], b"REDIS0012");
        for at in (0..snapshot.len()).filter(|&at| at != without_checksum) {
            let mut damaged = snapshot.to_vec();
            damaged[at] ^= 1;
            assert!(open(&damaged, &config, 0, true).is_err(), "a bit turned over at {at}");
            assert!(open(&snapshot[..at], &config, 0, true).is_err(), "cut off at {at}");
        }
    }
}
