//! LZF, the compression of long strings in snapshots.
//!
//! Any unpacker reads any packing. This packer looks for repetitions where liblzf with its setting
//! "very fast" does, with a table of 2^16 entries and the same hash, so that its output equals that
//! of a server byte for byte.

use super::RdbError;

/// The longest run of literal bytes.
const LITERAL_MAX: usize = 32;
/// The greatest distance of a reference, in bytes.
const BACK_MAX: usize = 1 << 13;
/// The longest run of bytes that a reference repeats.
const RUN_MAX: usize = 264;
/// Number of entries in the table of earlier positions.
const PLACES: usize = 1 << 16;

/// Packs strings. Keeps its table from one string to the next, because clearing it would cost more
/// than packing most strings.
#[derive(Debug, Default)]
pub(super) struct Packer {
    /// For each hash: the last position of three bytes with that hash, plus `base`.
    places: Vec<u32>,
    /// Entries up to this value are left from earlier strings.
    base: u32,
}

impl Packer {
    /// Packs `bytes`; returns `None` if the result is longer than `len_max` bytes.
    pub(super) fn pack(&mut self, bytes: &[u8], len_max: usize) -> Option<Vec<u8>> {
        let len = u32::try_from(bytes.len()).ok()?;
        self.places.resize(PLACES, 0);
        if self.base.checked_add(len).is_none() {
            self.places.fill(0);
            self.base = 0;
        }
        let packed = self.run(bytes, len_max);
        self.base += len;
        packed
    }

    /// Records the position of the three bytes at `at`. Returns their last position before, if a
    /// reference can reach it.
    fn note(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let three = &bytes[at..at + 3];
        let seen = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        let place = ((seen >> 8).wrapping_sub(seen.wrapping_mul(5))) as usize & (PLACES - 1);
        let before = std::mem::replace(&mut self.places[place], self.base + at as u32);
        // The first position of a string looks like an empty entry.
        let before = before.checked_sub(self.base).filter(|before| *before > 0)? as usize;
        (at - before <= BACK_MAX && bytes[before..before + 3] == *three).then_some(before)
    }

    fn run(&mut self, bytes: &[u8], len_max: usize) -> Option<Vec<u8>> {
        // Begin with one byte for the length of the first run of literals.
        let (mut out, mut literals) = (vec![0], 0);
        let mut at = 0;
        while at + 2 < bytes.len() {
            let Some(before) = self.note(bytes, at) else {
                if out.len() >= len_max {
                    return None;
                }
                literal(&mut out, &mut literals, bytes[at]);
                at += 1;
                continue;
            };
            let needed = out.len() + 4 - usize::from(literals == 0);
            if needed >= len_max {
                return None;
            }
            end_literals(&mut out, &mut literals);
            let run = common(&bytes[before..], &bytes[at..]);
            let (back, code) = (at - before - 1, run - 2);
            let high = (back >> 8) as u8;
            match u8::try_from(code - code.min(7)) {
                Ok(_) if code < 7 => out.push(high + ((code as u8) << 5)),
                Ok(rest) => out.extend([high + (7 << 5), rest]),
                Err(_) => unreachable!("a run has its limit"),
            }
            out.extend([back as u8, 0]);
            at += run;
            if at + 2 >= bytes.len() {
                break;
            }
            // Of the positions that a reference covers, record only the last two.
            self.note(bytes, at - 2);
            self.note(bytes, at - 1);
        }
        if out.len() + 3 > len_max {
            return None;
        }
        for &byte in &bytes[at..] {
            literal(&mut out, &mut literals, byte);
        }
        end_literals(&mut out, &mut literals);
        Some(out)
    }
}

fn literal(out: &mut Vec<u8>, literals: &mut usize, byte: u8) {
    out.push(byte);
    *literals += 1;
    if *literals == LITERAL_MAX {
        end_literals(out, literals);
        out.push(0);
    }
}

/// Writes the length of a run of literals in front of it, or removes its byte if the run is empty.
fn end_literals(out: &mut Vec<u8>, literals: &mut usize) {
    if *literals == 0 {
        out.pop();
    } else {
        let at = out.len() - *literals - 1;
        out[at] = (*literals - 1) as u8;
    }
    *literals = 0;
}

/// Returns the length of the common start of two texts, whose first three bytes are known to be
/// equal. Compares as far as liblzf does: sixteen bytes without a check of the end if there are
/// that many, otherwise up to two bytes before the end.
fn common(before: &[u8], here: &[u8]) -> usize {
    let limit = (here.len() - 2).min(RUN_MAX);
    let mut len = 2;
    if limit > 16 {
        for _ in 0..16 {
            len += 1;
            if before[len] != here[len] {
                return len;
            }
        }
    }
    loop {
        len += 1;
        if len >= limit || before[len] != here[len] {
            return len;
        }
    }
}

/// Unpacks `packed` to exactly `len` bytes.
pub(super) fn unpack(packed: &[u8], len: usize) -> Result<Vec<u8>, RdbError> {
    const DAMAGED: RdbError = RdbError::Damaged("a compressed string");
    // A reference of three bytes unpacks to at most 264 bytes: refuse a longer claim before
    // allocating memory for it.
    if len > packed.len().saturating_mul(264) {
        return Err(DAMAGED);
    }
    let mut out = Vec::with_capacity(len);
    let mut rest = packed.iter().copied();
    while let Some(control) = rest.next() {
        if control < 32 {
            let literal = usize::from(control) + 1;
            if rest.len() < literal {
                return Err(DAMAGED);
            }
            out.extend(rest.by_ref().take(literal));
        } else {
            let mut run = usize::from(control >> 5);
            if run == 7 {
                run += usize::from(rest.next().ok_or(DAMAGED)?);
            }
            let back = (usize::from(control & 31) << 8) + usize::from(rest.next().ok_or(DAMAGED)?) + 1;
            let from = out.len().checked_sub(back).ok_or(DAMAGED)?;
            // Copy byte by byte: the run may overlap the bytes that it writes.
            for at in from..from + run + 2 {
                out.push(out[at]);
            }
        }
        if out.len() > len {
            return Err(DAMAGED);
        }
    }
    if out.len() == len { Ok(out) } else { Err(DAMAGED) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(
            texts in prop::collection::vec(prop::collection::vec(0u8..4, 0..700), 1..6),
            spare in 0usize..8,
        ) {
            let mut packer = Packer::default();
            for text in texts {
                let len_max = text.len().saturating_sub(spare);
                if let Some(packed) = packer.pack(&text, len_max) {
                    prop_assert!(packed.len() <= len_max);
                    prop_assert_eq!(unpack(&packed, text.len()).expect("what was packed"), text);
                }
            }
        }

        #[test]
        fn bytes_from_anywhere_are_unpacked_or_refused(packed in any::<Vec<u8>>(), len in 0usize..2000) {
            if let Ok(unpacked) = unpack(&packed, len) {
                prop_assert_eq!(unpacked.len(), len);
            }
        }
    }

    #[test]
    fn long_repetitions_shrink() {
        let text = b"lockstorm ".repeat(1000);
        let packed = Packer::default().pack(&text, text.len()).expect("it repeats itself");
        assert!(packed.len() < text.len() / 50, "{} bytes", packed.len());
        assert_eq!(unpack(&packed, text.len()), Ok(text));
    }

    /// A reference reaches 8 KiB back, and no further.
    #[test]
    fn a_repetition_out_of_reach_is_written_again() {
        let mut text: Vec<u8> = (0..9_000_u32).flat_map(|number| number.to_be_bytes()).collect();
        text.splice(0..0, *b"#lockstorm, once");
        text.extend(*b"lockstorm, once");
        let packed = Packer::default().pack(&text, 2 * text.len()).expect("there is room");
        assert_eq!(unpack(&packed, text.len()), Ok(text));
    }

    /// A run of literals begins with its length. Between two references without literals, that byte
    /// is not needed.
    #[test]
    fn a_repetition_behind_another_one_needs_a_byte_less() {
        // Two literals take three bytes, the 264 bytes that repeat them three, and the last 3 bytes
        // two. At the end there must be room for a run of two more.
        let text = [b'a'; 2 + 264 + 3];
        assert_eq!(Packer::default().pack(&text, 11), None);
        let packed = Packer::default().pack(&text, 12).expect("there is room");
        assert_eq!((packed.len(), unpack(&packed, text.len())), (8, Ok(text.to_vec())));
    }

    /// Three bytes unpack to at most 264, and no bytes to none.
    #[test]
    fn a_length_that_no_packing_has_is_refused_before_there_is_room_for_it() {
        assert_eq!(unpack(b"", 0), Ok(Vec::new()));
        for len in [2 * 264 + 1, usize::MAX] {
            assert_eq!(unpack(b"\0a", len), Err(RdbError::Damaged("a compressed string")), "{len} bytes");
        }
    }
}
