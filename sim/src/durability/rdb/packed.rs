//! The three compact encodings of small collections: listpack, ziplist and intset, each unpacked to its elements.

use bytes::Bytes;

use super::RdbError;

const LISTPACK: RdbError = RdbError::Damaged("a listpack");
const ZIPLIST: RdbError = RdbError::Damaged("a ziplist");
const INTSET: RdbError = RdbError::Damaged("an intset");

fn text(n: i64) -> Bytes {
    Bytes::from(n.to_string())
}

/// The little-endian signed integer in `bytes`, of any width up to eight.
fn little(bytes: &[u8]) -> i64 {
    let mut wide = [if bytes.last().is_some_and(|top| top & 0x80 != 0) { 0xff } else { 0 }; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(wide)
}

/// The elements of a listpack.
pub(super) fn listpack(bytes: &[u8]) -> Result<Vec<Bytes>, RdbError> {
    let slice =
        |from: usize, len: usize| from.checked_add(len).and_then(|to| bytes.get(from..to)).ok_or(LISTPACK);
    let mut elements = Vec::new();
    let mut at = 6;
    loop {
        let first = *bytes.get(at).ok_or(LISTPACK)?;
        let (element, len) = match first {
            0xff => return Ok(elements),
            0x00..=0x7f => (text(i64::from(first)), 1),
            0x80..=0xbf => {
                let len = usize::from(first & 0x3f);
                (Bytes::copy_from_slice(slice(at + 1, len)?), 1 + len)
            }
            0xc0..=0xdf => {
                let value = i64::from(first & 0x1f) << 8 | i64::from(slice(at + 1, 1)?[0]);
                (text(if value >= 1 << 12 { value - (1 << 13) } else { value }), 2)
            }
            0xe0..=0xef => {
                let len = usize::from(first & 0x0f) << 8 | usize::from(slice(at + 1, 1)?[0]);
                (Bytes::copy_from_slice(slice(at + 2, len)?), 2 + len)
            }
            0xf0 => {
                let len = little(slice(at + 1, 4)?) as u32 as usize;
                (Bytes::copy_from_slice(slice(at + 5, len)?), 5 + len)
            }
            0xf1..=0xf4 => {
                let width = [2, 3, 4, 8][usize::from(first - 0xf1)];
                (text(little(slice(at + 1, width)?)), 1 + width)
            }
            0xf5..=0xfe => return Err(LISTPACK),
        };
        elements.push(element);
        // The element's length follows it once more, seven bits a byte, for walking backwards.
        let back = match len {
            0..=127 => 1,
            128..=16_383 => 2,
            16_384..=2_097_151 => 3,
            2_097_152..=268_435_455 => 4,
            _ => 5,
        };
        at += len + back;
    }
}

/// The elements of a ziplist, the listpack's predecessor.
pub(super) fn ziplist(bytes: &[u8]) -> Result<Vec<Bytes>, RdbError> {
    let slice =
        |from: usize, len: usize| from.checked_add(len).and_then(|to| bytes.get(from..to)).ok_or(ZIPLIST);
    let mut elements = Vec::new();
    let mut at = 10;
    loop {
        match *bytes.get(at).ok_or(ZIPLIST)? {
            0xff => return Ok(elements),
            // The length of the element before, for walking backwards.
            0xfe => at += 5,
            _ => at += 1,
        }
        let first = *bytes.get(at).ok_or(ZIPLIST)?;
        let integer = |width: usize| Ok((text(little(slice(at + 1, width)?)), 1 + width));
        let (element, len) = match first {
            0x00..=0x3f => {
                let len = usize::from(first);
                (Bytes::copy_from_slice(slice(at + 1, len)?), 1 + len)
            }
            0x40..=0x7f => {
                let len = usize::from(first & 0x3f) << 8 | usize::from(slice(at + 1, 1)?[0]);
                (Bytes::copy_from_slice(slice(at + 2, len)?), 2 + len)
            }
            0x80 => {
                let len = slice(at + 1, 4)?.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
                (Bytes::copy_from_slice(slice(at + 5, len)?), 5 + len)
            }
            0xc0 => integer(2)?,
            0xd0 => integer(4)?,
            0xe0 => integer(8)?,
            0xf0 => integer(3)?,
            0xfe => integer(1)?,
            0xf1..=0xfd => (text(i64::from(first) - 0xf1), 1),
            _ => return Err(ZIPLIST),
        };
        elements.push(element);
        at += len;
    }
}

/// The elements of an intset.
pub(super) fn intset(bytes: &[u8]) -> Result<Vec<Bytes>, RdbError> {
    let (header, values) = bytes.split_at_checked(8).ok_or(INTSET)?;
    let (width, count) = (little(&header[..4]), little(&header[4..]));
    if !matches!(width, 2 | 4 | 8) || values.len() as i64 != width * count {
        return Err(INTSET);
    }
    Ok(values.chunks_exact(width as usize).map(|value| text(little(value))).collect())
}
