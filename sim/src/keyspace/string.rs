//! Strings: their bytes, and the encoding that Redis would use for them.

use bytes::BytesMut;

use super::{Typed, Value};
use crate::blob::Blob;

/// Maximum bytes of a string that Redis allocates together with the object's header.
const EMBSTR_LEN_MAX: usize = 44;

/// Length of the longest integer, including its sign.
const INTEGER_LEN_MAX: usize = 20;

/// A string value. The bytes are kept as they are. The encoding that OBJECT ENCODING reports
/// follows from them and from the kind of the last write.
///
/// ```
/// use lockstorm_sim::{blob::Blob, keyspace::Str};
/// let mut text = Str::new(Blob::from("12"));
/// assert_eq!(text.encoding(), "int");
/// text.edit(|bytes| bytes.extend_from_slice(b"3"));
/// assert_eq!((text.bytes().as_ref(), text.encoding()), (&b"123"[..], "raw"));
/// ```
#[derive(Debug, Clone)]
pub struct Str {
    bytes: Blob,
    written: Written,
}

/// Kind of the last write to a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// Set as a whole; an integer gets the integer encoding.
    Whole,
    /// Set as a whole and kept as text even if it is an integer, as INCRBYFLOAT does.
    Text,
    /// Edited in place, which leaves spare capacity.
    Edited,
}

impl Str {
    /// Makes a string that was set as a whole.
    pub fn new(bytes: impl Into<Blob>) -> Str {
        Str { bytes: bytes.into(), written: Written::Whole }
    }

    /// Makes a string that holds an integer.
    pub fn number(n: i64) -> Str {
        Str::new(Blob::integer(n))
    }

    /// Makes a string that was set as a whole, kept as text even if it is an integer.
    pub fn text(bytes: impl Into<Blob>) -> Str {
        Str { bytes: bytes.into(), written: Written::Text }
    }

    /// Makes a string with the encoding of one that was edited in place.
    pub fn raw(bytes: impl Into<Blob>) -> Str {
        Str { bytes: bytes.into(), written: Written::Edited }
    }

    /// Returns the bytes; those of an integer are its decimal digits.
    pub fn bytes(&self) -> &Blob {
        &self.bytes
    }

    /// Returns the string as an integer, if it is written like Redis writes integers: digits with
    /// an optional minus, no leading zeros.
    pub fn integer(&self) -> Option<i64> {
        integer(&self.bytes)
    }

    /// Changes the bytes in place.
    pub fn edit<T>(&mut self, change: impl FnOnce(&mut BytesMut) -> T) -> T {
        let bytes = std::mem::take(&mut self.bytes).into_bytes();
        // Copies the bytes only if a reply or the replication stream still holds them.
        let mut bytes = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        let result = change(&mut bytes);
        self.bytes = bytes.freeze().into();
        self.written = Written::Edited;
        result
    }

    /// Returns the encoding's name in the reply of OBJECT ENCODING.
    pub fn encoding(&self) -> &'static str {
        match self.written {
            Written::Edited => "raw",
            Written::Whole if self.integer().is_some() => "int",
            _ if self.bytes.len() <= EMBSTR_LEN_MAX => "embstr",
            _ => "raw",
        }
    }
}

impl Typed for Str {
    fn of(value: &Value) -> Option<&Str> {
        if let Value::String(string) = value { Some(string) } else { None }
    }
    fn of_mut(value: &mut Value) -> Option<&mut Str> {
        if let Value::String(string) = value { Some(string) } else { None }
    }
    fn empty() -> Value {
        Value::String(Str::raw(Blob::EMPTY))
    }
}

/// Parses a decimal integer in its canonical form only, so that formatting it gives the same bytes.
pub fn integer(text: &[u8]) -> Option<i64> {
    // Skip long text: no integer is longer than this.
    if text.len() > INTEGER_LEN_MAX {
        return None;
    }
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [] => false,
        [b'0'] => text.len() == 1,
        [first, ..] => *first != b'0' && digits.iter().all(u8::is_ascii_digit),
    };
    if !canonical {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_string_with_one_reference_is_edited_in_place() {
        let whole = Str::new(Bytes::copy_from_slice(&[7; 1000]));
        for mut text in [whole, Str::raw(Bytes::from(vec![7; 1000]))] {
            let place = text.bytes().as_ptr();
            for at in 0..1000 {
                text.edit(|bytes| bytes[at] = 8);
                assert_eq!(text.bytes().as_ptr(), place, "edit {at}");
            }
            // Growth moves the bytes a few times, not each time.
            let mut moves = 0;
            for _ in 0..100_000 {
                let before = text.bytes().as_ptr();
                text.edit(|bytes| bytes.extend_from_slice(b"x"));
                moves += u32::from(text.bytes().as_ptr() != before);
            }
            assert!(moves < 20, "moved {moves} times");
            assert_eq!(text.bytes().len(), 101_000);
        }
    }

    #[test]
    fn a_reader_keeps_the_string_as_it_was() {
        let mut text = Str::new(Bytes::from_static(b"abc"));
        let read = text.bytes().clone();
        text.edit(|bytes| bytes[0] = b'x');
        assert_eq!((read.as_ref(), text.bytes().as_ref()), (&b"abc"[..], &b"xbc"[..]));
    }
}
