//! Databases to a snapshot.

use bytes::Bytes;

use super::{crc64::crc64, kind, object::Object, opcode};
use crate::keyspace::Db;

/// What a snapshot says about where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The wall clock in seconds.
    pub created: i64,
    /// The replication id and offset that the data stands at, and the database selected in the stream there; `None` where
    /// there is no stream to go on with.
    pub replication: Option<(String, u64, usize)>,
    /// Whether this is the base of an append-only file.
    pub aof_base: bool,
}

/// The snapshot of `dbs`. Expired keys that nobody found out yet are in it, as in Redis: whoever loads it decides.
pub fn write(dbs: &[Db], origin: &Origin) -> Bytes {
    let mut out = b"REDIS0010".to_vec();
    aux(&mut out, "redis-ver", "7.0.15");
    aux(&mut out, "redis-bits", "64");
    aux(&mut out, "ctime", &origin.created.to_string());
    if let Some((id, offset, db)) = &origin.replication {
        aux(&mut out, "repl-stream-db", &db.to_string());
        aux(&mut out, "repl-id", id);
        aux(&mut out, "repl-offset", &offset.to_string());
    }
    aux(&mut out, "aof-base", if origin.aof_base { "1" } else { "0" });
    for (number, db) in dbs.iter().enumerate().filter(|(_, db)| !db.is_empty()) {
        out.push(opcode::SELECT_DB);
        length(&mut out, number);
        out.push(opcode::RESIZE_DB);
        length(&mut out, db.len());
        length(&mut out, db.volatile_len());
        for (key, entry) in db.entries().iter() {
            if let Some(expires_ms) = entry.expires_ms {
                out.push(opcode::EXPIRE_MS);
                out.extend_from_slice(&expires_ms.to_le_bytes());
            }
            object(&mut out, key, &Object::of(&entry.value));
        }
    }
    out.push(opcode::EOF);
    let checksum = crc64(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    Bytes::from(out)
}

fn aux(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(opcode::AUX);
    string(out, name.as_bytes());
    string(out, value.as_bytes());
}

fn object(out: &mut Vec<u8>, key: &[u8], object: &Object) {
    out.push(match object {
        Object::String(_) => kind::STRING,
        Object::List(_) => kind::LIST,
        Object::Set(_) => kind::SET,
        Object::Hash(_) => kind::HASH,
        Object::SortedSet(_) => kind::ZSET,
    });
    string(out, key);
    match object {
        Object::String(bytes) => string(out, bytes),
        Object::List(elements) | Object::Set(elements) => {
            length(out, elements.len());
            elements.iter().for_each(|element| string(out, element));
        }
        Object::Hash(pairs) => {
            length(out, pairs.len());
            for (field, value) in pairs {
                string(out, field);
                string(out, value);
            }
        }
        Object::SortedSet(members) => {
            length(out, members.len());
            for (member, score) in members {
                string(out, member);
                out.extend_from_slice(&score.to_le_bytes());
            }
        }
    }
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn length(out: &mut Vec<u8>, len: usize) {
    match len {
        0..=0x3f => out.push(len as u8),
        0x40..=0x3fff => out.extend_from_slice(&(0x4000 | len as u16).to_be_bytes()),
        0x4000..=0xffff_ffff => {
            out.push(0x80);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
}
