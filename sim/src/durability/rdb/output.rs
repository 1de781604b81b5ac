//! Writes the lengths and strings of snapshots.

use super::lzf::Packer;
use crate::{config::Config, generation::Generation, keyspace::integer};

/// The longest string that may be written as an integer.
const INTEGER_LEN_MAX: usize = 11;
/// The longest string that is never compressed.
const UNPACKED_LEN_MAX: usize = 20;

/// The bytes of a snapshot or payload being written.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    /// `None` without `rdbcompression`.
    packer: Option<Packer>,
    /// `list-max-listpack-size`
    pub(super) list_node_size: i32,
    /// The generation of servers whose encodings are written.
    pub(super) generation: Generation,
}

impl Output {
    /// Creates an empty output. Compresses long strings if `rdbcompression` is on and makes them
    /// shorter.
    pub fn new(config: &Config) -> Output {
        let packer = config.persistence.rdb_compression.then(Packer::default);
        let (list_node_size, generation) = (config.keyspace.list_node_size, config.generation);
        Output { bytes: Vec::new(), packer, list_node_size, generation }
    }

    /// Adds bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds one byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Adds a length, or another number that is rarely large.
    pub fn length(&mut self, len: u64) {
        match len {
            0..=0x3f => self.byte(len as u8),
            0x40..=0x3fff => self.raw(&(0x4000 | len as u16).to_be_bytes()),
            0x4000..=0xffff_ffff => {
                self.byte(0x80);
                self.raw(&(len as u32).to_be_bytes());
            }
            _ => {
                self.byte(0x81);
                self.raw(&len.to_be_bytes());
            }
        }
    }

    /// Adds a string: as an integer, compressed, or after its length.
    pub fn string(&mut self, bytes: &[u8]) {
        if bytes.len() <= INTEGER_LEN_MAX
            && let Some(n) = integer(bytes).and_then(|n| i32::try_from(n).ok())
        {
            return self.integer(n);
        }
        if bytes.len() > UNPACKED_LEN_MAX
            && let Some(packer) = &mut self.packer
            && let Some(packed) = packer.pack(bytes, bytes.len() - 4)
        {
            self.byte(0xc3);
            self.length(packed.len() as u64);
            self.length(bytes.len() as u64);
            return self.raw(&packed);
        }
        self.length(bytes.len() as u64);
        self.raw(bytes);
    }

    fn integer(&mut self, n: i32) {
        let (mark, width) = match n {
            -0x80..=0x7f => (0xc0, 1),
            -0x8000..=0x7fff => (0xc1, 2),
            _ => (0xc2, 4),
        };
        self.byte(mark);
        self.raw(&n.to_le_bytes()[..width]);
    }

    /// Returns the written bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
