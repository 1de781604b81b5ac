//! A snapshot to databases. Every length comes from outside: room is made for what is there, never for what is claimed.

use bytes::Bytes;

use super::{RdbError, crc64::crc64, kind, lzf, object::Object, opcode, packed};
use crate::{config::Config, keyspace::Db};

/// What a snapshot holds.
#[derive(Debug)]
pub struct Opened {
    /// The databases, by number.
    pub dbs: Vec<Db>,
    /// The replication id, the offset and the database selected in the stream, if the snapshot tells them.
    pub replication: Option<(String, u64, usize)>,
}

/// Reads a snapshot into the databases that `config` has. Keys that expired before `expired_before_ms` are left out.
///
/// # Errors
/// When the bytes are no snapshot, are damaged, or hold what this node has no type for.
pub fn open(bytes: &[u8], config: &Config, expired_before_ms: Option<i64>) -> Result<Opened, RdbError> {
    let databases = config.databases;
    let mut reader = Reader { rest: bytes };
    let header = reader.take(9, "its header")?;
    let version = header.strip_prefix(b"REDIS").ok_or(RdbError::Damaged("not a snapshot at all"))?;
    let version: u32 = std::str::from_utf8(version)
        .ok()
        .and_then(|version| version.parse().ok())
        .ok_or(RdbError::Damaged("its version"))?;
    if !(1..=11).contains(&version) {
        return Err(RdbError::Unsupported(format!("version {version}")));
    }
    let mut dbs: Vec<Db> = (0..databases).map(|_| Db::default()).collect();
    let (mut db, mut expires_ms) = (0, None);
    let (mut id, mut offset, mut stream_db) = (None, None, 0);
    loop {
        match reader.byte("a key")? {
            opcode::EOF => break,
            opcode::AUX => {
                let (name, value) = (reader.string()?, reader.string()?);
                let value = String::from_utf8_lossy(&value);
                match &name[..] {
                    b"repl-id" => id = Some(value.into_owned()),
                    b"repl-offset" => offset = value.parse().ok(),
                    b"repl-stream-db" => stream_db = value.parse().unwrap_or(0),
                    _ => {}
                }
            }
            opcode::SELECT_DB => {
                db = reader.length()?;
                if db >= databases {
                    return Err(RdbError::Unsupported(format!("database {db}")));
                }
            }
            opcode::RESIZE_DB => {
                reader.length()?;
                reader.length()?;
            }
            opcode::EXPIRE_MS => {
                let ms = reader.take(8, "an expiry")?.try_into().expect("eight bytes were taken");
                expires_ms = Some(i64::from_le_bytes(ms));
            }
            opcode::EXPIRE_SECONDS => {
                let seconds = reader.take(4, "an expiry")?.try_into().expect("four bytes were taken");
                expires_ms = Some(i64::from(i32::from_le_bytes(seconds)) * 1000);
            }
            opcode::FREQ => {
                reader.byte("a frequency")?;
            }
            opcode::IDLE => {
                reader.length()?;
            }
            // Libraries of functions: there is nothing here that could call them.
            opcode::FUNCTION2 => {
                reader.string()?;
            }
            kind => {
                let key = reader.string()?;
                let value = reader.object(kind)?.into_value(&config.encodings)?;
                let expires_ms = expires_ms.take();
                let expired = expires_ms.zip(expired_before_ms).is_some_and(|(when, now)| when < now);
                // An empty collection cannot be a key; servers have written some, and drop them when loading.
                if !expired && !value.is_empty_collection() {
                    dbs[db].insert(key, value, expires_ms);
                }
            }
        }
    }
    if version >= 5 {
        let covered = bytes.len() - reader.rest.len();
        let checksum = reader.take(8, "its checksum")?.try_into().expect("eight bytes were taken");
        let checksum = u64::from_le_bytes(checksum);
        // A server told not to compute checksums writes 0.
        if checksum != 0 && checksum != crc64(&bytes[..covered]) {
            return Err(RdbError::Checksum);
        }
    }
    let replication = id.zip(offset).map(|(id, offset)| (id, offset, stream_db));
    Ok(Opened { dbs, replication })
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], RdbError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(RdbError::Short(what))?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self, what: &'static str) -> Result<u8, RdbError> {
        Ok(self.take(1, what)?[0])
    }

    fn big_endian(&mut self, width: usize) -> Result<usize, RdbError> {
        let bytes = self.take(width, "a length")?;
        Ok(bytes.iter().fold(0, |value, &byte| value << 8 | usize::from(byte)))
    }

    /// A length, or `Err` with the number of a special string encoding.
    fn length_or_encoding(&mut self) -> Result<Result<usize, u8>, RdbError> {
        let first = self.byte("a length")?;
        Ok(match first >> 6 {
            0 => Ok(usize::from(first & 0x3f)),
            1 => Ok(usize::from(first & 0x3f) << 8 | usize::from(self.byte("a length")?)),
            2 if first == 0x80 => Ok(self.big_endian(4)?),
            2 if first == 0x81 => Ok(self.big_endian(8)?),
            2 => return Err(RdbError::Damaged("a length")),
            _ => Err(first & 0x3f),
        })
    }

    fn length(&mut self) -> Result<usize, RdbError> {
        self.length_or_encoding()?.map_err(|_| RdbError::Damaged("a length"))
    }

    fn string(&mut self) -> Result<Bytes, RdbError> {
        let integer = |bytes: &[u8]| {
            let negative = bytes.last().is_some_and(|top| top & 0x80 != 0);
            let mut wide = [if negative { 0xff } else { 0 }; 8];
            wide[..bytes.len()].copy_from_slice(bytes);
            Bytes::from(i64::from_le_bytes(wide).to_string())
        };
        match self.length_or_encoding()? {
            Ok(len) => Ok(Bytes::copy_from_slice(self.take(len, "a string")?)),
            Err(encoding @ 0..=2) => Ok(integer(self.take(1 << encoding, "a string")?)),
            Err(3) => {
                let (packed, len) = (self.length()?, self.length()?);
                lzf::unpack(self.take(packed, "a string")?, len).map(Bytes::from)
            }
            Err(_) => Err(RdbError::Damaged("a string")),
        }
    }

    fn strings(&mut self) -> Result<Vec<Bytes>, RdbError> {
        let len = self.length()?;
        (0..len).map(|_| self.string()).collect()
    }

    fn object(&mut self, kind: u8) -> Result<Object, RdbError> {
        Ok(match kind {
            kind::STRING => Object::String(self.string()?),
            kind::LIST => Object::List(self.strings()?),
            kind::SET => Object::Set(self.strings()?),
            kind::HASH => {
                let len = self.length()?;
                Object::Hash(
                    (0..len).map(|_| Ok((self.string()?, self.string()?))).collect::<Result<_, _>>()?,
                )
            }
            kind::ZSET | kind::ZSET_TEXT => {
                let len = self.length()?;
                let member = |_| {
                    let member = self.string()?;
                    let score = if kind == kind::ZSET { self.binary_score()? } else { self.text_score()? };
                    Ok((member, score))
                };
                Object::SortedSet((0..len).map(member).collect::<Result<_, _>>()?)
            }
            kind::LIST_ZIPLIST => Object::List(packed::ziplist(&self.string()?)?),
            kind::SET_INTSET => Object::Set(packed::intset(&self.string()?)?),
            kind::SET_LISTPACK => Object::Set(packed::listpack(&self.string()?)?),
            kind::HASH_ZIPLIST => pairs(packed::ziplist(&self.string()?)?).map(Object::Hash)?,
            kind::HASH_LISTPACK => pairs(packed::listpack(&self.string()?)?).map(Object::Hash)?,
            kind::ZSET_ZIPLIST => scored(packed::ziplist(&self.string()?)?)?,
            kind::ZSET_LISTPACK => scored(packed::listpack(&self.string()?)?)?,
            kind::LIST_QUICKLIST => {
                let mut elements = Vec::new();
                for _ in 0..self.length()? {
                    elements.extend(packed::ziplist(&self.string()?)?);
                }
                Object::List(elements)
            }
            kind::LIST_QUICKLIST2 => {
                let mut elements = Vec::new();
                for _ in 0..self.length()? {
                    match self.length()? {
                        1 => elements.push(self.string()?),
                        2 => elements.extend(packed::listpack(&self.string()?)?),
                        _ => return Err(RdbError::Damaged("a quicklist")),
                    }
                }
                Object::List(elements)
            }
            other => return Err(RdbError::Unsupported(format!("a value of type {other}"))),
        })
    }

    fn binary_score(&mut self) -> Result<f64, RdbError> {
        let bytes = self.take(8, "a score")?.try_into().expect("eight bytes were taken");
        Ok(f64::from_le_bytes(bytes))
    }

    fn text_score(&mut self) -> Result<f64, RdbError> {
        match self.byte("a score")? {
            253 => Ok(f64::NAN),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            len => score(self.take(usize::from(len), "a score")?),
        }
    }
}

fn score(text: &[u8]) -> Result<f64, RdbError> {
    const DAMAGED: RdbError = RdbError::Damaged("a score");
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(DAMAGED)
}

fn pairs(elements: Vec<Bytes>) -> Result<Vec<(Bytes, Bytes)>, RdbError> {
    let (pairs, []) = elements.as_chunks::<2>() else {
        return Err(RdbError::Damaged("an odd number of parts of pairs"));
    };
    Ok(pairs.iter().map(|[first, second]| (first.clone(), second.clone())).collect())
}

fn scored(elements: Vec<Bytes>) -> Result<Object, RdbError> {
    let members = pairs(elements)?.into_iter().map(|(member, text)| Ok((member, score(&text)?)));
    Ok(Object::SortedSet(members.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Bytes {
        Bytes::copy_from_slice(text.as_bytes())
    }

    fn unhex(hex: &str) -> Vec<u8> {
        hex.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hex"))
            .collect()
    }

    #[test]
    fn every_encoding_that_a_real_server_dumps_is_read() {
        let strings = |words: &[&str]| words.iter().map(|word| text(word)).collect::<Vec<_>>();
        let long = "x".repeat(70);
        // What DUMP of redis-server 7.0.15 answers, without the version and checksum at the end.
        let rows = [
            ("00c007", Object::String(text("7"))),
            ("00c1d4fe", Object::String(text("-300"))),
            ("00c270110100", Object::String(text("70000"))),
            ("00c30a405002616261e04201016162", Object::String(text(&"ab".repeat(40)))),
            (
                "120102c32940691a690000000600816102dffb02f1881303f2a0860104f4ff0fa5d4e820190309e04678e03c000148ff",
                Object::List(strings(&["a", "-5", "5000", "100000", "999999999999", &long])),
            ),
            ("0b14040000000300000090eefeff0100000003000000", Object::Set(strings(&["-70000", "1", "3"]))),
            ("02010162", Object::Set(strings(&["b"]))),
            (
                "101414000000040081660201018167028374776f04ff",
                Object::Hash(vec![(text("f"), text("1")), (text("g"), text("two"))]),
            ),
            (
                "1118180000000400816202842d696e660581610283312e3504ff",
                Object::SortedSet(vec![(text("b"), f64::NEG_INFINITY), (text("a"), 1.5)]),
            ),
            ("05010161000000000000f83f", Object::SortedSet(vec![(text("a"), 1.5)])),
            ("040101660176", Object::Hash(vec![(text("f"), text("v"))])),
        ];
        for (hex, expected) in rows {
            let bytes = unhex(hex);
            let mut reader = Reader { rest: &bytes[1..] };
            assert_eq!(reader.object(bytes[0]), Ok(expected), "{hex}");
            assert!(reader.rest.is_empty(), "{hex} is read to its end");
            // Cut short anywhere it is an error, and never a panic.
            for end in 1..bytes.len() {
                assert!(Reader { rest: &bytes[1..end] }.object(bytes[0]).is_err(), "{hex} cut at {end}");
            }
        }
    }

    #[test]
    fn a_damaged_snapshot_is_refused() {
        let mut db = Db::default();
        db.insert(
            text("k"),
            Object::String(text("v")).into_value(&Default::default()).expect("a string"),
            None,
        );
        let origin = super::super::Origin { created: 0, replication: None, aof_base: false };
        let snapshot = super::super::write(&[db], &origin);
        let config = Config::default();
        assert_eq!(open(&snapshot, &config, None).expect("a whole snapshot").dbs[0].len(), 1);
        for at in 0..snapshot.len() {
            let mut damaged = snapshot.to_vec();
            damaged[at] ^= 1;
            assert!(open(&damaged, &config, None).is_err(), "a bit turned over at {at}");
            assert!(open(&snapshot[..at], &config, None).is_err(), "cut off at {at}");
        }
    }
}
