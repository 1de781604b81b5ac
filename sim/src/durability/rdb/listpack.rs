//! Listpacks: sequences of strings and integers in one block of memory, the compact encoding since
//! Redis 7.
//!
//! A listpack has six bytes of header (number of bytes, number of elements), the elements, and
//! 0xff. An element has a mark with its type and length, its data, and the length of both again in
//! groups of seven bits, for walking backwards.

use bytes::Bytes;

use super::RdbError;
use crate::keyspace::integer;

const DAMAGED: RdbError = RdbError::Damaged("a listpack");
const HEADER: usize = 6;
const END: u8 = 0xff;
/// The number in the header of a listpack that has too many elements to count.
const UNCOUNTED: usize = u16::MAX as usize;

/// A listpack being written.
///
/// ```
/// use lockstorm_sim::durability::rdb::Listpack;
/// let mut pack = Listpack::default();
/// pack.push(b"field");
/// pack.push(b"17");
/// assert_eq!(pack.finish(), b"\x10\0\0\0\x02\0\x85field\x06\x11\x01\xff");
/// ```
#[derive(Debug)]
pub struct Listpack {
    bytes: Vec<u8>,
    count: usize,
}

impl Default for Listpack {
    fn default() -> Listpack {
        Listpack { bytes: vec![0; HEADER], count: 0 }
    }
}

impl Listpack {
    /// Bytes of the listpack if it ends here.
    pub fn size(&self) -> usize {
        self.bytes.len() + 1
    }

    /// Number of elements.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Adds a string, as an integer if it is one.
    pub fn push(&mut self, text: &[u8]) {
        if let Some(n) = integer(text) {
            return self.push_integer(n);
        }
        let start = self.bytes.len();
        match text.len() {
            len @ 0..=0x3f => self.bytes.push(0x80 | len as u8),
            len @ 0x40..=0xfff => self.bytes.extend([0xe0 | (len >> 8) as u8, len as u8]),
            len => {
                self.bytes.push(0xf0);
                self.bytes.extend((len as u32).to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(text);
        self.end(start);
    }

    /// Adds an integer.
    pub fn push_integer(&mut self, n: i64) {
        let start = self.bytes.len();
        match n {
            0..=0x7f => self.bytes.push(n as u8),
            -0x1000..=0xfff => self.bytes.extend([0xc0 | (n >> 8 & 0x1f) as u8, n as u8]),
            _ => {
                let (mark, width) = match n {
                    -0x8000..=0x7fff => (0xf1, 2),
                    -0x80_0000..=0x7f_ffff => (0xf2, 3),
                    -0x8000_0000..=0x7fff_ffff => (0xf3, 4),
                    _ => (0xf4, 8),
                };
                self.bytes.push(mark);
                self.bytes.extend_from_slice(&n.to_le_bytes()[..width]);
            }
        }
        self.end(start);
    }

    fn end(&mut self, start: usize) {
        let len = self.bytes.len() - start;
        let (back, width) = back(len);
        self.bytes.extend_from_slice(&back[..width]);
        self.count += 1;
    }

    /// Returns the bytes of the whole listpack.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.push(END);
        let size = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&size.to_le_bytes());
        let count = self.count.min(UNCOUNTED) as u16;
        self.bytes[4..HEADER].copy_from_slice(&count.to_le_bytes());
        self.bytes
    }
}

/// Returns the backward length of an element, and the number of its bytes.
fn back(len: usize) -> ([u8; 5], usize) {
    // From three bytes on, each width begins one value earlier than groups of seven bits require.
    let width = match len {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    };
    let mut bytes = [0; 5];
    for (at, byte) in bytes[..width].iter_mut().enumerate() {
        let group = (len >> (7 * (width - 1 - at))) as u8 & 0x7f;
        *byte = if at == 0 { group } else { group | 0x80 };
    }
    (bytes, width)
}

/// An element of a listpack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// A string that is the decimal form of a 64-bit integer.
    Integer(i64),
    /// Any other string.
    Text(&'a [u8]),
}

impl Item<'_> {
    /// The element as a string.
    pub fn bytes(self) -> Bytes {
        match self {
            Item::Integer(n) => Bytes::from(n.to_string()),
            Item::Text(text) => Bytes::copy_from_slice(text),
        }
    }

    /// The element as an integer, if it is one.
    pub fn integer(self) -> Option<i64> {
        match self {
            Item::Integer(n) => Some(n),
            Item::Text(text) => integer(text),
        }
    }
}

/// Returns the elements of a listpack, and checks it as a whole.
///
/// # Errors
/// If a length is wrong, an encoding byte is unknown, or bytes follow the end.
pub fn listpack(bytes: &[u8]) -> Result<Vec<Item<'_>>, RdbError> {
    let slice =
        |from: usize, len: usize| from.checked_add(len).and_then(|to| bytes.get(from..to)).ok_or(DAMAGED);
    let header = slice(0, HEADER)?;
    let (size, count) = (little(&header[..4]) as u32, little(&header[4..]) as u16);
    if size as usize != bytes.len() {
        return Err(DAMAGED);
    }
    let mut items = Vec::new();
    let mut at = HEADER;
    loop {
        let first = slice(at, 1)?[0];
        let (item, len) = match first {
            END => break,
            0x00..=0x7f => (Item::Integer(i64::from(first)), 1),
            0x80..=0xbf => {
                let len = usize::from(first & 0x3f);
                (Item::Text(slice(at + 1, len)?), 1 + len)
            }
            0xc0..=0xdf => {
                let value = i64::from(first & 0x1f) << 8 | i64::from(slice(at + 1, 1)?[0]);
                (Item::Integer(if value >= 1 << 12 { value - (1 << 13) } else { value }), 2)
            }
            0xe0..=0xef => {
                let len = usize::from(first & 0x0f) << 8 | usize::from(slice(at + 1, 1)?[0]);
                (Item::Text(slice(at + 2, len)?), 2 + len)
            }
            0xf0 => {
                let len = little(slice(at + 1, 4)?) as u32 as usize;
                (Item::Text(slice(at + 5, len)?), 5 + len)
            }
            0xf1..=0xf4 => {
                let width = [2, 3, 4, 8][usize::from(first - 0xf1)];
                (Item::Integer(little(slice(at + 1, width)?)), 1 + width)
            }
            0xf5..=0xfe => return Err(DAMAGED),
        };
        let (back, width) = back(len);
        at += len;
        if slice(at, width)? != &back[..width] {
            return Err(DAMAGED);
        }
        at += width;
        items.push(item);
    }
    let counted = usize::from(count) == UNCOUNTED || usize::from(count) == items.len();
    if at + 1 == bytes.len() && counted { Ok(items) } else { Err(DAMAGED) }
}

/// Reads a little-endian signed integer of up to eight bytes.
pub(super) fn little(bytes: &[u8]) -> i64 {
    let mut wide = [if bytes.last().is_some_and(|top| top & 0x80 != 0) { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let word = prop_oneof![
            any::<i64>().prop_map(|n| n.to_string().into_bytes()),
            (any::<i64>(), 0u32..64).prop_map(|(n, shift)| (n >> shift).to_string().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..200),
            (4090usize..4100).prop_map(|len| vec![b'x'; len]),
            (16_376usize..16_386).prop_map(|len| vec![b'y'; len]),
        ];
        prop::collection::vec(word, 0..20)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(words in words()) {
            let mut pack = Listpack::default();
            words.iter().for_each(|word| pack.push(word));
            let size = pack.size();
            let bytes = pack.finish();
            prop_assert_eq!(bytes.len(), size);
            let read: Vec<Vec<u8>> =
                listpack(&bytes).expect("a listpack").into_iter().map(|item| item.bytes().to_vec()).collect();
            prop_assert_eq!(read, words);
        }

        #[test]
        fn bytes_from_anywhere_are_read_or_refused(
            words in words(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut pack = Listpack::default();
            words.iter().for_each(|word| pack.push(word));
            let mut bytes = pack.finish();
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let _ = listpack(&bytes);
        }
    }

    #[test]
    fn a_listpack_that_is_cut_or_goes_on_is_refused() {
        let mut pack = Listpack::default();
        [&b"a"[..], b"-5", b"5000", b"100000", b"999999999999"].iter().for_each(|word| pack.push(word));
        let bytes = pack.finish();
        for end in 0..bytes.len() {
            assert_eq!(listpack(&bytes[..end]), Err(DAMAGED), "cut at {end}");
        }
        assert_eq!(listpack(&[&bytes[..], b"\xff"].concat()), Err(DAMAGED));
    }
}
