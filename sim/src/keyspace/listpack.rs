//! Size of a listpack, Redis's compact encoding of a sequence of strings. It decides when a stream
//! node is full.

use super::integer;

/// Bytes of a listpack besides its elements: its length, its count and its end.
pub(super) const FRAME: usize = 7;

/// Returns the bytes of a string. A string that is an integer is encoded as one.
pub(super) fn text_len(text: &[u8]) -> usize {
    if let Some(value) = integer(text) {
        return integer_len(value);
    }
    let header = match text.len() {
        0..64 => 1,
        64..4096 => 2,
        _ => 5,
    };
    let len = header + text.len();
    // The length repeats after the element, seven bits a byte, for walking backwards.
    len + match len {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    }
}

pub(super) fn integer_len(value: i64) -> usize {
    1 + match value {
        0..128 => 1,
        -4096..4096 => 2,
        -32_768..32_768 => 3,
        -8_388_608..8_388_608 => 4,
        -2_147_483_648..2_147_483_648 => 5,
        _ => 9,
    }
}
