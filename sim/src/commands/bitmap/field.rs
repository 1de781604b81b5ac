//! Integers of any width inside a string, which BITFIELD reads and writes.

use crate::commands::Error;

/// The type of an integer: `i5`, `u63`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Width {
    pub(super) signed: bool,
    pub(super) bits: u32,
}

/// Treatment of a number that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Overflow {
    /// Keeps the lowest bits.
    #[default]
    Wrap,
    /// Uses the nearest number that fits.
    Saturate,
    /// Writes nothing.
    Fail,
}

impl Width {
    /// Parses a type.
    pub(super) fn parse(text: &[u8]) -> Result<Width, Error> {
        let width = match text {
            [b'i', bits @ ..] => bits_in(bits, 64).map(|bits| Width { signed: true, bits }),
            [b'u', bits @ ..] => bits_in(bits, 63).map(|bits| Width { signed: false, bits }),
            _ => None,
        };
        width.ok_or(Error::of(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        ))
    }

    fn mask(self) -> u128 {
        (1 << self.bits) - 1
    }

    /// Fits a number into the range of the type. `None` if it is out of range and `overflow` is
    /// [`Overflow::Fail`].
    pub(super) fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = match self.signed {
            true => (-(1i128 << (self.bits - 1)), (1i128 << (self.bits - 1)) - 1),
            false => (0, (1i128 << self.bits) - 1),
        };
        let fitting = match overflow {
            _ if (min..=max).contains(&number) => number,
            Overflow::Saturate => number.clamp(min, max),
            Overflow::Wrap => self.extend(number as u128 & self.mask()),
            Overflow::Fail => return None,
        };
        i64::try_from(fitting).ok()
    }

    /// Returns true if 64 bits cannot hold the distance of a number below the largest of a signed
    /// type.
    pub(super) fn is_too_far_below(self, number: i64) -> bool {
        self.signed && self.bits < 64 && ((1i64 << (self.bits - 1)) - 1).checked_sub(number).is_none()
    }

    /// Interprets the bits as a number of this type.
    fn extend(self, bits: u128) -> i128 {
        let negative = self.signed && bits >> (self.bits - 1) & 1 == 1;
        if negative { bits as i128 - (1i128 << self.bits) } else { bits as i128 }
    }

    /// Reads the number whose highest bit is at `offset`. Bits after the end of the string are
    /// zeros.
    pub(super) fn get(self, bytes: &[u8], offset: usize) -> i64 {
        let window = window(bytes, offset / 8) >> self.shift(offset) & self.mask();
        // At most 63 bits and a sign, or 64 bits including the sign.
        self.extend(window) as i64
    }

    /// Writes a number at `offset`. The string must be long enough.
    pub(super) fn set(self, bytes: &mut [u8], offset: usize, number: i64) {
        let (at, shift) = (offset / 8, self.shift(offset));
        let cleared = window(bytes, at) & !(self.mask() << shift);
        let written = cleared | (number as u128 & self.mask()) << shift;
        let written = &written.to_be_bytes()[16 - WINDOW..];
        let len = WINDOW.min(bytes.len() - at);
        bytes[at..at + len].copy_from_slice(&written[..len]);
    }

    fn shift(self, offset: usize) -> usize {
        WINDOW * 8 - offset % 8 - self.bits as usize
    }
}

/// Bytes that contain 64 bits at any bit offset.
const WINDOW: usize = 9;

fn window(bytes: &[u8], at: usize) -> u128 {
    (at..at + WINDOW).fold(0, |window, at| window << 8 | u128::from(bytes.get(at).copied().unwrap_or(0)))
}

fn bits_in(text: &[u8], max: u32) -> Option<u32> {
    // Redis treats the argument as text that ends at a zero byte.
    let text = text.split(|byte| *byte == 0).next()?;
    let bits = crate::keyspace::integer(text)?;
    u32::try_from(bits).ok().filter(|bits| (1..=max).contains(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_nothing_else_is_changed() {
        for signed in [false, true] {
            for bits in 1..=if signed { 64 } else { 63 } {
                let width = Width { signed, bits };
                for offset in 0..24 {
                    for pattern in [0u8, 0xff, 0xa5] {
                        let before = [pattern; 12];
                        let mut bytes = before;
                        let number = width.fit(0x5a5a_5a5a_5a5a_5a5a, Overflow::Wrap).expect("wrapped");
                        width.set(&mut bytes, offset, number);
                        assert_eq!(width.get(&bytes, offset), number, "{width:?} at {offset}");
                        let old = width.get(&before, offset);
                        width.set(&mut bytes, offset, old);
                        assert_eq!(bytes, before, "{width:?} at {offset}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_wrapped_cut_or_refused() {
        let (i8, u8) = (Width { signed: true, bits: 8 }, Width { signed: false, bits: 8 });
        for (width, number, wrapped, nearest) in
            [(i8, 128, -128, 127), (i8, -129, 127, -128), (u8, 256, 0, 255), (u8, -1, 255, 0)]
        {
            assert_eq!(width.fit(number, Overflow::Wrap), Some(wrapped));
            assert_eq!(width.fit(number, Overflow::Saturate), Some(nearest));
            assert_eq!(width.fit(number, Overflow::Fail), None);
        }
        assert_eq!(Width { signed: true, bits: 64 }.fit(1 << 63, Overflow::Wrap), Some(i64::MIN));
        assert_eq!(i8.fit(127, Overflow::Fail), Some(127));
    }
}
