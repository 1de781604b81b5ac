//! Intsets: sets of integers in ascending order, all of one width.

use super::{RdbError, listpack::little};

const DAMAGED: RdbError = RdbError::Damaged("an intset");
const HEADER: usize = 8;

/// The bytes of the intset of these integers, which are in ascending order.
pub(super) fn write(integers: &[i64]) -> Vec<u8> {
    let fits = |width: usize| {
        let bits = 8 * width as u32 - 1;
        integers.iter().all(|n| (-(1i128 << bits)..1i128 << bits).contains(&i128::from(*n)))
    };
    let width = [2, 4].into_iter().find(|width| fits(*width)).unwrap_or(8);
    let mut bytes = Vec::with_capacity(HEADER + width * integers.len());
    bytes.extend((width as u32).to_le_bytes());
    bytes.extend((integers.len() as u32).to_le_bytes());
    integers.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()[..width]));
    bytes
}

/// The integers of an intset, each once and in ascending order.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<i64>, RdbError> {
    let (header, values) = bytes.split_at_checked(HEADER).ok_or(DAMAGED)?;
    let (width, count) = (little(&header[..4]), little(&header[4..]) as u32);
    if !matches!(width, 2 | 4 | 8) || count == 0 || values.len() as i64 != width * i64::from(count) {
        return Err(DAMAGED);
    }
    let integers: Vec<i64> = values.chunks_exact(width as usize).map(little).collect();
    if integers.is_sorted_by(|one, next| one < next) { Ok(integers) } else { Err(DAMAGED) }
}
