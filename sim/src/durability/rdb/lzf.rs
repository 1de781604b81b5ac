//! LZF, the compression of long strings in snapshots.
//!
//! Any unpacker reads any packing. This one looks for repetitions where liblzf in its "very fast"
//! setting does, with a table of 2^16 places found by the same hash, so that what it packs is byte
//! for byte what a server writes.

use super::RdbError;

/// The longest run of bytes that stand for themselves.
const LITERAL_MAX: usize = 32;
/// How far back a reference reaches.
const BACK_MAX: usize = 1 << 13;
/// The longest run that a reference is looked for, above its first two bytes.
const RUN_MAX: usize = 264;
/// Places in the table of what was seen where.
const PLACES: usize = 1 << 16;

/// Packs strings. The table is kept from one to the next, because clearing it would cost more than
/// most strings.
#[derive(Debug, Default)]
pub(super) struct Packer {
    /// Where three bytes of this hash were seen last: `base` and the index.
    places: Vec<u32>,
    /// What lies at or below it is left from earlier strings.
    base: u32,
}

impl Packer {
    /// `bytes` packed, if that is at most `len_max` bytes long.
    pub(super) fn pack(&mut self, bytes: &[u8], len_max: usize) -> Option<Vec<u8>> {
        let len = u32::try_from(bytes.len()).ok().filter(|len| *len < u32::MAX)?;
        self.places.resize(PLACES, 0);
        if self.base.checked_add(len).is_none() {
            self.places.fill(0);
            self.base = 0;
        }
        let packed = self.run(bytes, len_max);
        self.base += len;
        packed
    }

    /// Notes that the three bytes at `at` were seen, and answers where they were before, if that
    /// can be referred to.
    fn note(&mut self, bytes: &[u8], at: usize) -> Option<usize> {
        let three = &bytes[at..at + 3];
        let seen = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        let place = ((seen >> 8).wrapping_sub(seen.wrapping_mul(5))) as usize & (PLACES - 1);
        let before = std::mem::replace(&mut self.places[place], self.base + at as u32);
        // The very first byte of a string is indistinguishable from an empty slot.
        let before = before.checked_sub(self.base).filter(|before| *before > 0)? as usize;
        (at - before <= BACK_MAX && bytes[before..before + 3] == *three).then_some(before)
    }

    fn run(&mut self, bytes: &[u8], len_max: usize) -> Option<Vec<u8>> {
        // One byte for the length of the run of literals that is being written.
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
            // Of what a reference covers, only its last two places are remembered.
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

/// Writes the length in front of a run of literals, or takes its byte back where there are none.
fn end_literals(out: &mut Vec<u8>, literals: &mut usize) {
    if *literals == 0 {
        out.pop();
    } else {
        let at = out.len() - *literals - 1;
        out[at] = (*literals - 1) as u8;
    }
    *literals = 0;
}

/// How many bytes two texts have in common, of which the first three are known to be; as far as
/// liblzf looks, which is sixteen bytes at once where there are that many, and otherwise two short
/// of the end.
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
    // A reference of three bytes stands for at most 264: a longer claim is a lie, found before room
    // is made for it.
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
            // The run may overlap what it writes: byte by byte.
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

    /// A run of literals begins with its length. Where none are between two references, that byte
    /// is not needed.
    #[test]
    fn a_repetition_behind_another_one_needs_a_byte_less() {
        // Two literals in three bytes, 264 that repeat them in three, 3 more in two; and at the end
        // there must be room for a run of two more.
        let text = [b'a'; 2 + 264 + 3];
        assert_eq!(Packer::default().pack(&text, 11), None);
        let packed = Packer::default().pack(&text, 12).expect("there is room");
        assert_eq!((packed.len(), unpack(&packed, text.len())), (8, Ok(text.to_vec())));
    }

    /// Three bytes stand for at most 264, and nothing for nothing.
    #[test]
    fn a_length_that_no_packing_has_is_refused_before_there_is_room_for_it() {
        assert_eq!(unpack(b"", 0), Ok(Vec::new()));
        for len in [2 * 264 + 1, usize::MAX] {
            assert_eq!(unpack(b"\0a", len), Err(RdbError::Damaged("a compressed string")), "{len} bytes");
        }
    }
}
