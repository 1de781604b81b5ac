//! Strings: bytes, and how Redis would hold them.

use bytes::{Bytes, BytesMut};

use super::{Typed, Value};

/// The most bytes that Redis holds in one allocation with the object's header.
const EMBSTR_LEN_MAX: usize = 44;

/// A string value. The bytes are kept as they are; the encoding that OBJECT ENCODING names follows from them and from what
/// last wrote them.
///
/// ```
/// use lockstorm_sim::keyspace::Str;
/// let mut text = Str::new("12".into());
/// assert_eq!(text.encoding(), "int");
/// text.edit(|bytes| bytes.extend_from_slice(b"3"));
/// assert_eq!((text.bytes().as_ref(), text.encoding()), (&b"123"[..], "raw"));
/// ```
#[derive(Debug, Clone)]
pub struct Str {
    bytes: Bytes,
    written: Written,
}

/// What wrote a string last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// Set as a whole, which looks for an integer.
    Whole,
    /// Set as a whole without looking for an integer, as INCRBYFLOAT does.
    Text,
    /// Edited in place, which leaves room to grow.
    Edited,
}

impl Str {
    /// A string set as a whole.
    pub fn new(bytes: Bytes) -> Str {
        Str { bytes, written: Written::Whole }
    }

    /// A string set as a whole that is held as text even if it is an integer.
    pub fn text(bytes: Bytes) -> Str {
        Str { bytes, written: Written::Text }
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The integer it is, written as Redis writes integers: digits with an optional minus, no leading zeros.
    pub fn integer(&self) -> Option<i64> {
        integer(&self.bytes)
    }

    /// Changes the bytes in place.
    pub fn edit<T>(&mut self, change: impl FnOnce(&mut BytesMut) -> T) -> T {
        let bytes = std::mem::take(&mut self.bytes);
        // The bytes are copied only while a reply or the replication stream still holds them.
        let mut bytes = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        let result = change(&mut bytes);
        self.bytes = bytes.freeze();
        self.written = Written::Edited;
        result
    }

    /// The name of the encoding, as OBJECT ENCODING answers it.
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
        Value::String(Str { bytes: Bytes::new(), written: Written::Edited })
    }
}

/// Reads a decimal integer in its one canonical form, so that writing it again gives the same bytes.
pub fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [] => false,
        [b'0'] => text.len() == 1,
        [first, ..] => *first != b'0' && digits.iter().all(u8::is_ascii_digit),
    };
    if !canonical || digits.len() > 19 {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}
