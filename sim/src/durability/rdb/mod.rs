//! The RDB format, in the version that the node's generation writes: the content of a full
//! resynchronization, of the file of SAVE, and of the reply of DUMP.
//!
//! Values are written as a server writes them, and read in every encoding that a server reads.
//! Source: the format as documented at rdb.fnordig.de and as `redis-server` 7.0 writes and reads
//! it.

mod crc64;
mod input;
mod intset;
mod listpack;
mod load;
mod lzf;
mod output;
mod payload;
mod read;
mod save;
mod stream;
mod write;
mod ziplist;

pub use input::Input;
pub use listpack::{Item, Listpack, listpack};
pub use output::Output;
pub use payload::{dump, restore, saved_len, seal, unseal};
pub use read::{Opened, open};
pub use save::{is_packed, nodes};
pub use write::{Origin, library, unwritable, write};

/// The bytes are not a snapshot, or contain something that this node cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RdbError {
    /// The bytes end early.
    #[error("the snapshot ends in the middle of {0}")]
    Short(&'static str),
    /// The bytes are not valid at this place.
    #[error("integrity check failed at {0}")]
    Damaged(&'static str),
    /// A collection without elements, which cannot be a value.
    #[error("the snapshot holds an empty collection")]
    Empty,
    /// The checksum does not match.
    #[error("CRC error: the snapshot's checksum does not match")]
    Checksum,
    /// A version or type that is unknown here.
    #[error("the snapshot holds {0}, which is not supported")]
    Unsupported(String),
}

/// The first bytes of items of a snapshot that are not keys.
pub mod opcode {
    /// The numbers of keys in a slot of a cluster, from Redis 7.4.
    pub(super) const SLOT_INFO: u8 = 0xf4;
    /// A library of functions.
    pub const FUNCTION2: u8 = 0xf5;
    pub(super) const FREQ: u8 = 0xf9;
    pub(super) const IDLE: u8 = 0xf8;
    pub(super) const AUX: u8 = 0xfa;
    pub(super) const RESIZE_DB: u8 = 0xfb;
    pub(super) const EXPIRE_MS: u8 = 0xfc;
    pub(super) const EXPIRE_SECONDS: u8 = 0xfd;
    pub(super) const SELECT_DB: u8 = 0xfe;
    pub(super) const EOF: u8 = 0xff;
}

/// The version of snapshots from which on a set may be a listpack, and a consumer of a stream has
/// a second time.
const PACKED_SETS: u16 = 11;

mod kind {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const ZSET_TEXT: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const ZSET: u8 = 5;
    pub(super) const HASH_ZIPMAP: u8 = 9;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTSET: u8 = 11;
    pub(super) const ZSET_ZIPLIST: u8 = 12;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const STREAM_LISTPACKS: u8 = 15;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const ZSET_LISTPACK: u8 = 17;
    pub(super) const LIST_QUICKLIST2: u8 = 18;
    pub(super) const STREAM_LISTPACKS_2: u8 = 19;
    pub(super) const SET_LISTPACK: u8 = 20;
    /// A stream whose consumers also have the time of their last successful read.
    pub(super) const STREAM_LISTPACKS_3: u8 = 21;
    /// A hash whose fields have a time to live, of Valkey.
    pub(super) const HASH_2: u8 = 22;
    /// A hash whose fields have a time to live, of Redis.
    pub(super) const HASH_METADATA: u8 = 24;
    /// The same in the compact encoding.
    pub(super) const HASH_LISTPACK_EX: u8 = 25;
}
