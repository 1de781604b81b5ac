//! The sparse encoding: runs of equal registers, each encoded in one or two bytes.
//!
//! | bits | |
//! | --- | --- |
//! | `00llllll` | up to 64 registers that are 0 |
//! | `01llllll llllllll` | up to 16384 registers that are 0 |
//! | `1vvvvvll` | up to 4 registers of one value up to 32 |
//!
//! All numbers are encoded minus 1.

use bytes::BytesMut;

/// Largest value of a register that can be encoded.
pub(super) const VALUE_MAX: u8 = 32;
/// Longest run of zeros in one byte.
const ZEROS_MAX: usize = 64;
/// Longest run of a value other than zero.
const VALUES_MAX: usize = 4;
/// Number of runs to check for equal neighbours after a change.
const MERGE_SCAN: usize = 5;

/// A run of equal registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// Value of each register.
    pub(super) value: u8,
    /// Number of registers.
    pub(super) len: usize,
    /// Bytes of the encoded run.
    pub(super) size: usize,
}

impl Run {
    /// Decodes the run at the start of `bytes`. In a truncated run, the missing byte counts as 0.
    fn first(bytes: &[u8]) -> Option<Run> {
        let first = *bytes.first()?;
        let low = usize::from(first & 0x3f);
        Some(match first >> 6 {
            0 => Run { value: 0, len: low + 1, size: 1 },
            1 => {
                let second = bytes.get(1).copied().unwrap_or(0);
                Run { value: 0, len: (low << 8 | usize::from(second)) + 1, size: 2 }
            }
            _ => Run { value: (first >> 2 & 0x1f) + 1, len: usize::from(first & 3) + 1, size: 1 },
        })
    }

    /// Encodes a run; writes nothing for an empty one.
    fn write(value: u8, len: usize, out: &mut Vec<u8>) {
        let Some(less) = len.checked_sub(1) else { return };
        match value {
            0 if len > ZEROS_MAX => out.extend([0x40 | (less >> 8) as u8, less as u8]),
            0 => out.push(less as u8),
            _ => out.push(0x80 | (value - 1) << 2 | less as u8),
        }
    }
}

/// Decodes the runs in `bytes`.
pub(super) fn runs(mut bytes: &[u8]) -> impl Iterator<Item = Run> {
    std::iter::from_fn(move || {
        let run = Run::first(bytes)?;
        bytes = bytes.get(run.size..).unwrap_or_default();
        Some(run)
    })
}

/// Result of raising a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Raised {
    /// The register had that value already, or a larger one.
    No,
    Yes,
    /// The sparse encoding cannot hold the result, or it exceeds the allowed length.
    TooLarge,
    /// No run covers the register.
    Corrupted,
}

/// Raises a register to a value, unless it is larger. The runs are in `bytes` from `begin` on;
/// `bytes` must not exceed `len_max`.
pub(super) fn raise(bytes: &mut BytesMut, begin: usize, index: usize, value: u8, len_max: usize) -> Raised {
    if value > VALUE_MAX {
        return Raised::TooLarge;
    }
    let (mut at, mut first, mut before) = (begin, 0, None);
    let run = loop {
        let Some(run) = bytes.get(at..).and_then(Run::first) else { return Raised::Corrupted };
        if index < first + run.len {
            break run;
        }
        before = Some(at);
        at += run.size;
        first += run.len;
    };
    if run.value >= value {
        return Raised::No;
    }
    // Split the run into the part before the register, the register, and the part after it.
    let mut parts = Vec::with_capacity(5);
    Run::write(run.value, index - first, &mut parts);
    Run::write(value, 1, &mut parts);
    Run::write(run.value, first + run.len - 1 - index, &mut parts);
    if parts.len() > run.size && bytes.len() + parts.len() - run.size > len_max {
        return Raised::TooLarge;
    }
    replace(bytes, at, run.size, &parts);
    merge(bytes, before.unwrap_or(begin));
    Raised::Yes
}

/// Replaces `len` bytes at `at`. A truncated run has one byte less, and the end is truncated again
/// afterwards.
fn replace(bytes: &mut BytesMut, at: usize, len: usize, by: &[u8]) {
    let new_len = bytes.len() - len + by.len();
    let tail = (at + len).min(bytes.len())..bytes.len();
    bytes.resize(bytes.len().max(at + by.len() + tail.len()), 0);
    bytes.copy_within(tail, at + by.len());
    bytes[at..at + by.len()].copy_from_slice(by);
    bytes.truncate(new_len);
}

/// Joins neighbours with the same value, up to the maximum length of a run.
fn merge(bytes: &mut BytesMut, mut at: usize) {
    for _ in 0..MERGE_SCAN {
        let Some(run) = bytes.get(at..).and_then(Run::first) else { return };
        if run.value > 0
            && let Some(next) = bytes.get(at + 1..).and_then(Run::first)
            && next.value == run.value
            && run.len + next.len <= VALUES_MAX
        {
            let mut joined = Vec::with_capacity(1);
            Run::write(run.value, run.len + next.len, &mut joined);
            replace(bytes, at, 2, &joined);
            // The joined run may be joined with the next one.
            continue;
        }
        at += run.size;
    }
}
