//! Intsets: sets of integers in ascending order, all of one width.

use super::{RdbError, listpack::little};

const DAMAGED: RdbError = RdbError::Damaged("an intset");
const HEADER: usize = 8;

/// Writes an intset of integers that are in ascending order.
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

/// Returns the integers of an intset, which must be in strictly ascending order.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<i64>, RdbError> {
    let (header, values) = bytes.split_at_checked(HEADER).ok_or(DAMAGED)?;
    let (width, count) = (little(&header[..4]), little(&header[4..]) as u32);
    if !matches!(width, 2 | 4 | 8) || count == 0 || values.len() as i64 != width * i64::from(count) {
        return Err(DAMAGED);
    }
    let integers: Vec<i64> = values.chunks_exact(width as usize).map(little).collect();
    if integers.is_sorted_by(|one, next| one < next) { Ok(integers) } else { Err(DAMAGED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intset_has_as_many_integers_as_it_says_and_one_at_least() {
        let of = |width: u32, count: u32, values: &[u8]| {
            [&width.to_le_bytes(), &count.to_le_bytes(), values].concat()
        };
        assert_eq!(read(&of(2, 2, &[1, 0, 2, 0])), Ok(vec![1, 2]));
        for (width, count, values) in [
            (2, 0, &[] as &[u8]),
            (2, 1, &[]),
            (2, 1, &[1, 0, 2, 0]),
            (2, 3, &[1, 0, 2, 0]),
            (4, 2, &[1, 0, 2, 0]),
        ] {
            assert_eq!(
                read(&of(width, count, values)),
                Err(DAMAGED),
                "{count} of {width} bytes in {values:?}"
            );
        }
    }
}
