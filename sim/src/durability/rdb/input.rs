//! Reads the lengths and strings of snapshots. Every length comes from outside: memory is allocated
//! for the bytes that exist, never for a mere claim.

use bytes::Bytes;

use super::{RdbError, listpack::little, lzf};

/// The unread bytes of a snapshot or payload.
#[derive(Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// Begins at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    /// Number of unread bytes.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Takes the next `len` bytes. An error names them by `what`.
    ///
    /// # Errors
    /// If fewer bytes are left.
    pub fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], RdbError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(RdbError::Short(what))?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the next `N` bytes.
    ///
    /// # Errors
    /// If fewer bytes are left.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], RdbError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(RdbError::Short(what))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Takes the next byte.
    ///
    /// # Errors
    /// If no byte is left.
    pub fn byte(&mut self, what: &'static str) -> Result<u8, RdbError> {
        Ok(self.take(1, what)?[0])
    }

    /// Reads a length; returns `Err` with the number of a special string encoding.
    fn length_or_encoding(&mut self) -> Result<Result<u64, u8>, RdbError> {
        let first = self.byte("a length")?;
        Ok(match first >> 6 {
            0 => Ok(u64::from(first & 0x3f)),
            1 => Ok(u64::from(first & 0x3f) << 8 | u64::from(self.byte("a length")?)),
            2 if first == 0x80 => Ok(u32::from_be_bytes(self.array("a length")?).into()),
            2 if first == 0x81 => Ok(u64::from_be_bytes(self.array("a length")?)),
            2 => return Err(RdbError::Damaged("a length")),
            _ => Err(first & 0x3f),
        })
    }

    /// Reads a number that was written as a length.
    ///
    /// # Errors
    /// If the bytes are not a length.
    pub fn number(&mut self) -> Result<u64, RdbError> {
        self.length_or_encoding()?.map_err(|_| RdbError::Damaged("a length"))
    }

    /// Reads a length. It is only a claim: it limits how often to read on, not how much memory to
    /// allocate.
    ///
    /// # Errors
    /// If the bytes are not a length.
    pub fn length(&mut self) -> Result<usize, RdbError> {
        usize::try_from(self.number()?).map_err(|_| RdbError::Damaged("a length"))
    }

    /// Reads a string in any of its forms.
    ///
    /// # Errors
    /// If the bytes are not a string.
    pub fn string(&mut self) -> Result<Bytes, RdbError> {
        match self.length_or_encoding()? {
            Ok(len) => {
                let len = usize::try_from(len).map_err(|_| RdbError::Damaged("a length"))?;
                Ok(Bytes::copy_from_slice(self.take(len, "a string")?))
            }
            Err(encoding @ 0..=2) => {
                Ok(Bytes::from(little(self.take(1 << encoding, "a string")?).to_string()))
            }
            Err(3) => {
                let (packed, len) = (self.length()?, self.length()?);
                lzf::unpack(self.take(packed, "a string")?, len).map(Bytes::from)
            }
            Err(_) => Err(RdbError::Damaged("a string")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_written_in_one_of_four_forms() {
        const DAMAGED: RdbError = RdbError::Damaged("a length");
        const SHORT: RdbError = RdbError::Short("a length");
        for (bytes, expected, left) in [
            (&[0x00, 7][..], Ok(0), 1),
            (&[0x3f], Ok(63), 0),
            (&[0x40, 0x40, 7], Ok(64), 1),
            (&[0x7f, 0xff], Ok(16_383), 0),
            (&[0x40], Err(SHORT), 0),
            (&[0x80, 0, 0, 0x40, 0x00, 7], Ok(16_384), 1),
            (&[0x80, 0xff, 0xff, 0xff], Err(SHORT), 3),
            (&[0x81, 0, 0, 0, 1, 0, 0, 0, 0, 7], Ok(1 << 32), 1),
            (&[0x82, 0, 0, 0, 0], Err(DAMAGED), 4),
            // A string in a special encoding has no length.
            (&[0xc0, 1], Err(DAMAGED), 1),
            (&[], Err(SHORT), 0),
        ] {
            let mut input = Input::new(bytes);
            assert_eq!(input.number(), expected, "{bytes:x?}");
            assert_eq!(input.left(), left, "{bytes:x?}");
        }
    }

    #[test]
    fn a_string_is_bytes_or_an_integer_or_compressed() {
        let text = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
        for (bytes, expected, left) in [
            (&[2, b'a', b'b', b'c'][..], text("ab"), 1),
            (&[0], text(""), 0),
            (&[3, b'a'], Err(RdbError::Short("a string")), 1),
            // Little-endian, with a sign.
            (&[0xc0, 0xfe, 7], text("-2"), 1),
            (&[0xc1, 0x00, 0x01], text("256"), 0),
            (&[0xc2, 0, 0, 1, 0], text("65536"), 0),
            // Two bytes that are packed as one literal run of two.
            (&[0xc3, 3, 2, 0x01, b'a', b'b', 7], text("ab"), 1),
            (&[0xc4], Err(RdbError::Damaged("a string")), 0),
        ] {
            let mut input = Input::new(bytes);
            assert_eq!(input.string(), expected, "{bytes:x?}");
            assert_eq!(input.left(), left, "{bytes:x?}");
        }
    }
}
