//! Ranges of bits for BITCOUNT and BITPOS: parsing, counting and searching.

use std::ops::Range;

use bytes::Bytes;

use crate::commands::{Error, index_range};

/// The unit of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Byte,
    Bit,
}

impl Unit {
    /// Parses the last argument of a range.
    pub(super) fn parse(text: &Bytes) -> Result<Unit, Error> {
        match text.to_ascii_lowercase().as_slice() {
            b"bit" => Ok(Unit::Bit),
            b"byte" => Ok(Unit::Byte),
            _ => Err(Error::SYNTAX),
        }
    }

    /// Returns the bits from `start` to `end`, both included, of a string of `len` bytes. Negative
    /// numbers count from its end.
    pub(super) fn bits(self, start: i64, end: i64, len: usize) -> Range<usize> {
        let (len, scale) = if self == Unit::Bit { (len * 8, 1) } else { (len, 8) };
        // An end before the first element means the first element.
        let end = if end < 0 { end.saturating_add(len as i64).max(0) } else { end };
        let range = index_range(start, end, len);
        range.start * scale..range.end * scale
    }
}

/// Counts the bits of a range that are 1.
pub(super) fn count(bytes: &[u8], range: Range<usize>) -> usize {
    let (first, last) = (range.start / 8, range.end.div_ceil(8));
    let Some(bytes) = bytes.get(first..last).filter(|bytes| !bytes.is_empty()) else { return 0 };
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words.iter().map(|word| u64::from_ne_bytes(*word).count_ones() as usize).sum::<usize>()
        + rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    // Subtract the bits of the first and the last byte outside of the range.
    let before = !(0xff_u8 >> (range.start % 8)) & bytes[0];
    let after = (0xff_u16 >> ((range.end + 7) % 8 + 1)) as u8 & bytes[bytes.len() - 1];
    whole - (before.count_ones() + after.count_ones()) as usize
}

/// Finds the first bit of a range that equals `bit`.
pub(super) fn find(bytes: &[u8], range: Range<usize>, bit: bool) -> Option<usize> {
    // Sets every bit that matches inside the range, and clears the others.
    let looked_at = |at: usize| {
        let byte = if bit { bytes[at] } else { !bytes[at] };
        let from = if at == range.start / 8 { 0xff >> (range.start % 8) } else { 0xff };
        let until = if at == range.end / 8 { !(0xff_u8 >> (range.end % 8)) } else { 0xff };
        byte & from & until
    };
    let found = |at: usize| {
        let byte = looked_at(at);
        (byte != 0).then(|| at * 8 + byte.leading_zeros() as usize)
    };
    let (mut at, end) = (range.start / 8, range.end.div_ceil(8).min(bytes.len()));
    let dull = if bit { [0; 8] } else { [0xff; 8] };
    while at < end {
        if at > range.start / 8 {
            let words = bytes[at..end].as_chunks::<8>().0;
            at += 8 * words.iter().take_while(|word| **word == dull).count();
        }
        // The next eight bytes contain a match, or the end is near.
        for at in at..end.min(at + 8) {
            if let found @ Some(_) = found(at) {
                return found;
            }
        }
        at = (at + 8).min(end);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_and_searching_agree_with_looking_at_each_bit() {
        let bytes: Vec<u8> =
            (0..40u8).map(|at| [0, 0xff, 0x10, 0, 0, 0xf0, 1][usize::from(at) % 7]).collect();
        let zeros = [vec![0; 21], vec![4]].concat();
        for bytes in [bytes, zeros, vec![0xff; 19]] {
            let bits: Vec<bool> =
                bytes.iter().flat_map(|byte| (0..8).map(move |n| byte >> (7 - n) & 1 == 1)).collect();
            for start in 0..bits.len() {
                for end in start + 1..=bits.len() {
                    let part = &bits[start..end];
                    assert_eq!(
                        count(&bytes, start..end),
                        part.iter().filter(|bit| **bit).count(),
                        "{start}..{end}"
                    );
                    for bit in [false, true] {
                        let expected = part.iter().position(|at| *at == bit).map(|at| at + start);
                        assert_eq!(find(&bytes, start..end, bit), expected, "{bit} in {start}..{end}");
                    }
                }
            }
        }
        assert_eq!((count(&[], 0..0), find(&[], 0..0, true)), (0, None));
    }
}
