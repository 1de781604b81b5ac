//! Writes databases as a snapshot.

use bytes::Bytes;

use super::{Output, crc64::crc64, opcode, save};
use crate::{
    config::{Config, Eviction},
    generation::{Generation, VALKEY_RDB},
    keyspace::{Db, Value},
    script::Libraries,
};

/// The origin of a snapshot, as the snapshot records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The time of the wall clock in seconds.
    pub created: i64,
    /// The replication id and offset of the data, and the database selected in the stream there;
    /// `None` if no stream can continue from it.
    pub replication: Option<(String, u64, usize)>,
    /// True for the base of an append-only file.
    pub aof_base: bool,
    /// The version for replicas that may read no newer one; `None` for the generation's own.
    pub version: Option<u16>,
}

/// Writes a library of functions.
pub fn library(out: &mut Output, code: &[u8]) {
    out.byte(opcode::FUNCTION2);
    out.string(code);
}

/// Returns the number of the first database with a value that no snapshot of this version holds: a
/// hash whose fields have a time to live, in an older version than the first of Valkey's own.
pub fn unwritable(dbs: &[Db], version: u16, config: &Config) -> Option<usize> {
    if !config.generation.is_valkey() || version >= VALKEY_RDB {
        return None;
    }
    let has_times = |value: &Value| matches!(value, Value::Hash(hash) if hash.has_times());
    dbs.iter().position(|db| db.entries().iter().any(|(_, entry)| has_times(&entry.value)))
}

/// Returns the snapshot of `dbs` and of the function libraries. It includes expired keys that are
/// not deleted yet, as in Redis: the loading server decides about them.
pub fn write(dbs: &[Db], libraries: &Libraries, origin: &Origin, config: &Config) -> Bytes {
    let mut out = Output::new(config);
    let generation = config.generation;
    let version = origin.version.unwrap_or(generation.rdb_version());
    // The versions that are Valkey's own have another name before them.
    let header =
        if version < VALKEY_RDB { format!("REDIS{version:04}") } else { format!("VALKEY{version:03}") };
    out.raw(header.as_bytes());
    let created_ms = origin.created.saturating_mul(1000);
    let writer = if generation.is_valkey() { "valkey-ver" } else { "redis-ver" };
    aux(&mut out, writer, generation.version());
    aux(&mut out, "redis-bits", "64");
    aux(&mut out, "ctime", &origin.created.to_string());
    if let Some((id, offset, db)) = &origin.replication {
        aux(&mut out, "repl-stream-db", &db.to_string());
        aux(&mut out, "repl-id", id);
        aux(&mut out, "repl-offset", &offset.to_string());
    }
    let base = if generation == Generation::Redis62 { "aof-preamble" } else { "aof-base" };
    aux(&mut out, base, if origin.aof_base { "1" } else { "0" });
    libraries.iter().for_each(|each| library(&mut out, &each.code));
    for (number, db) in dbs.iter().enumerate().filter(|(_, db)| !db.is_empty()) {
        out.byte(opcode::SELECT_DB);
        out.length(number as u64);
        out.byte(opcode::RESIZE_DB);
        out.length(db.len() as u64);
        out.length(db.volatile_len() as u64);
        for (key, entry) in db.entries().iter() {
            if let Some(expires_ms) = entry.expires_ms() {
                out.byte(opcode::EXPIRE_MS);
                out.raw(&expires_ms.to_le_bytes());
            }
            match config.memory.maxmemory_policy {
                Eviction::AllKeysLru | Eviction::VolatileLru => {
                    out.byte(opcode::IDLE);
                    out.length(entry.usage.idle_ms(created_ms) as u64 / 1000);
                }
                Eviction::AllKeysLfu | Eviction::VolatileLfu => {
                    out.byte(opcode::FREQ);
                    out.byte(entry.usage.frequency(created_ms, config.memory.lfu));
                }
                _ => {}
            }
            let kind = save::kind(&out, &entry.value);
            out.byte(kind);
            out.string(key);
            save::value(&mut out, &entry.value);
        }
    }
    out.byte(opcode::EOF);
    let mut bytes = out.into_bytes();
    let checksum = crc64(&bytes);
    bytes.extend(checksum.to_le_bytes());
    Bytes::from(bytes)
}

fn aux(out: &mut Output, name: &str, value: &str) {
    out.byte(opcode::AUX);
    out.string(name.as_bytes());
    out.string(value.as_bytes());
}
