//! A HyperLogLog as the bytes of a string, in Redis's layout.
//!
//! | bytes | |
//! | --- | --- |
//! | 4 | `HYLL` |
//! | 1 | 0 for the dense form, 1 for the sparse one |
//! | 3 | nothing |
//! | 8 | the last estimate, little-endian; the highest bit says that it is out of date |
//! | rest | the registers |

use bytes::BytesMut;

use super::{
    dense,
    estimate::estimate,
    murmur,
    registers::{Histogram, INDEX_BITS, REGISTERS, Registers},
    sparse::{self, Raised},
};
use crate::commands::Error;

const MAGIC: &[u8; 4] = b"HYLL";
const HEADER: usize = 16;
const ENCODING: usize = 4;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// Position of the estimate.
const ESTIMATE: std::ops::Range<usize> = 8..16;
/// Bit in the last byte of the estimate: set if it is out of date.
const STALE: u8 = 1 << 7;
/// Seed that all HyperLogLogs of Redis share, so that they can be merged.
const SEED: u64 = 0xadc8_3b19;

/// Rejects a string that is not a HyperLogLog.
pub(super) fn check(bytes: &[u8]) -> Result<(), Error> {
    let valid = bytes.len() >= HEADER
        && bytes.starts_with(MAGIC)
        && match bytes[ENCODING] {
            DENSE => bytes.len() == HEADER + dense::LEN,
            encoding => encoding == SPARSE,
        };
    if valid { Ok(()) } else { Err(Error::NOT_HYPERLOGLOG) }
}

/// Writes an empty HyperLogLog into an empty buffer.
pub(super) fn begin(bytes: &mut BytesMut) {
    bytes.extend_from_slice(MAGIC);
    bytes.resize(HEADER, 0);
    bytes[ENCODING] = SPARSE;
    // One run of all registers, with value 0.
    bytes.extend_from_slice(&[0x7f, 0xff]);
}

/// Returns true for the sparse encoding.
pub(super) fn is_sparse(bytes: &[u8]) -> bool {
    bytes[ENCODING] == SPARSE
}

/// Returns the cached estimate; `None` if it is out of date.
pub(super) fn cached(bytes: &[u8]) -> Option<u64> {
    let estimate = bytes[ESTIMATE].try_into().map(u64::from_le_bytes).unwrap_or_default();
    (bytes[ESTIMATE.end - 1] & STALE == 0).then_some(estimate)
}

/// Caches an estimate.
pub(super) fn cache(bytes: &mut [u8], estimate: u64) {
    bytes[ESTIMATE].copy_from_slice(&estimate.to_le_bytes());
}

/// Marks the estimate as out of date.
pub(super) fn invalidate(bytes: &mut [u8]) {
    bytes[ESTIMATE.end - 1] |= STALE;
}

/// Returns the register of an element, and its value.
pub(super) fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur::hash(element, SEED);
    let index = hash as usize & (REGISTERS - 1);
    // A bit above the highest one ends every run of zeros.
    let rest = hash >> INDEX_BITS | 1 << (u64::BITS - INDEX_BITS);
    (index, rest.trailing_zeros() as u8 + 1)
}

/// Adds an element; returns true if a register changed. Beyond `sparse_max` bytes the encoding
/// becomes dense.
pub(super) fn add(bytes: &mut BytesMut, element: &[u8], sparse_max: usize) -> Result<bool, Error> {
    let (index, value) = place(element);
    raise(bytes, index, value, sparse_max)
}

/// Raises a register to a value, unless it is larger; returns true if it changed.
pub(super) fn raise(bytes: &mut BytesMut, index: usize, value: u8, sparse_max: usize) -> Result<bool, Error> {
    if is_sparse(bytes) {
        match sparse::raise(bytes, HEADER, index, value, sparse_max) {
            Raised::No => return Ok(false),
            Raised::Yes => {
                invalidate(bytes);
                return Ok(true);
            }
            Raised::TooLarge => make_dense(bytes)?,
            Raised::Corrupted => return Err(Error::CORRUPTED_HYPERLOGLOG),
        }
    }
    Ok(dense::raise(&mut bytes[HEADER..], index, value))
}

/// Converts to the dense encoding. Leaves corrupted data as it is.
pub(super) fn make_dense(bytes: &mut BytesMut) -> Result<(), Error> {
    if !is_sparse(bytes) {
        return Ok(());
    }
    let mut registers = vec![0; dense::LEN];
    visit(bytes, |range, value| {
        if value > 0 {
            range.for_each(|index| _ = dense::raise(&mut registers, index, value));
        }
    })?;
    bytes.truncate(HEADER);
    bytes[ENCODING] = DENSE;
    bytes.extend_from_slice(&registers);
    Ok(())
}

/// Calls `show` for the registers in order, as ranges with one value.
fn visit(bytes: &[u8], mut show: impl FnMut(std::ops::Range<usize>, u8)) -> Result<(), Error> {
    let registers = &bytes[HEADER..];
    if !is_sparse(bytes) {
        (0..REGISTERS).for_each(|index| show(index..index + 1, dense::get(registers, index)));
        return Ok(());
    }
    let mut next = 0;
    for run in sparse::runs(registers) {
        let range = next..next + run.len;
        if range.end > REGISTERS {
            return Err(Error::CORRUPTED_HYPERLOGLOG);
        }
        next = range.end;
        show(range, run.value);
    }
    if next == REGISTERS { Ok(()) } else { Err(Error::CORRUPTED_HYPERLOGLOG) }
}

/// Returns the estimate.
pub(super) fn count(bytes: &[u8]) -> Result<u64, Error> {
    let mut histogram: Histogram = [0; 64];
    visit(bytes, |range, value| histogram[usize::from(value)] += range.len() as u32)?;
    Ok(estimate(&histogram))
}

/// Raises each of `registers` to its value in `bytes`.
pub(super) fn merge_into(registers: &mut Registers, bytes: &[u8]) -> Result<(), Error> {
    visit(bytes, |range, value| {
        registers[range].iter_mut().for_each(|register| *register = value.max(*register));
    })
}

/// Returns the estimate for registers outside of a string.
pub(super) fn count_registers(registers: &Registers) -> u64 {
    let mut histogram: Histogram = [0; 64];
    registers.iter().for_each(|value| histogram[usize::from(*value)] += 1);
    estimate(&histogram)
}

/// Returns the values of all registers.
pub(super) fn registers(bytes: &[u8]) -> Result<Box<Registers>, Error> {
    let mut registers = Box::new([0; REGISTERS]);
    merge_into(&mut registers, bytes)?;
    Ok(registers)
}

/// Writes the runs of the sparse encoding like PFDEBUG DECODE.
pub(super) fn decode(bytes: &[u8]) -> String {
    let runs = sparse::runs(&bytes[HEADER..]).map(|run| match run {
        sparse::Run { value: 0, len, size: 1 } => format!("z:{len}"),
        sparse::Run { value: 0, len, .. } => format!("Z:{len}"),
        sparse::Run { value, len, .. } => format!("v:{value},{len}"),
    });
    runs.collect::<Vec<_>>().join(" ")
}
