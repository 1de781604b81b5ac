//! The RDB snapshot format, version 10 as Redis 7.0 writes it: what a full resynchronisation carries and SAVE leaves.
//!
//! Reading takes every encoding of the five basic types that servers since 2.8 write; writing uses the plain ones, which
//! every server reads. Source: the format as documented at rdb.fnordig.de and as `redis-server` 7.0 writes and reads it.

mod crc64;
mod lzf;
mod object;
mod packed;
mod read;
mod write;

pub use read::{Opened, open};
pub use write::{Origin, write};

/// Bytes that are no snapshot, or one that holds what this node cannot hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RdbError {
    /// The bytes end early.
    #[error("the snapshot ends in the middle of {0}")]
    Short(&'static str),
    /// The bytes make no sense here.
    #[error("the snapshot is damaged: {0}")]
    Damaged(&'static str),
    /// The checksum does not match.
    #[error("the snapshot's checksum does not match")]
    Checksum,
    /// A version or type that is not known here.
    #[error("the snapshot holds {0}, which is not supported")]
    Unsupported(String),
}

mod opcode {
    pub(super) const FUNCTION2: u8 = 0xf5;
    pub(super) const FREQ: u8 = 0xf9;
    pub(super) const IDLE: u8 = 0xf8;
    pub(super) const AUX: u8 = 0xfa;
    pub(super) const RESIZE_DB: u8 = 0xfb;
    pub(super) const EXPIRE_MS: u8 = 0xfc;
    pub(super) const EXPIRE_SECONDS: u8 = 0xfd;
    pub(super) const SELECT_DB: u8 = 0xfe;
    pub(super) const EOF: u8 = 0xff;
}

mod kind {
    pub(super) const STRING: u8 = 0;
    pub(super) const LIST: u8 = 1;
    pub(super) const SET: u8 = 2;
    pub(super) const ZSET_TEXT: u8 = 3;
    pub(super) const HASH: u8 = 4;
    pub(super) const ZSET: u8 = 5;
    pub(super) const LIST_ZIPLIST: u8 = 10;
    pub(super) const SET_INTSET: u8 = 11;
    pub(super) const ZSET_ZIPLIST: u8 = 12;
    pub(super) const HASH_ZIPLIST: u8 = 13;
    pub(super) const LIST_QUICKLIST: u8 = 14;
    pub(super) const HASH_LISTPACK: u8 = 16;
    pub(super) const ZSET_LISTPACK: u8 = 17;
    pub(super) const LIST_QUICKLIST2: u8 = 18;
    pub(super) const SET_LISTPACK: u8 = 20;
}
