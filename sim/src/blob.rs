//! The bytes of values and replies: short ones in place, long ones behind a pointer.

use std::{
    borrow::Borrow,
    cmp::Ordering,
    fmt, hash,
    ops::{Deref, Range},
};

use bytes::Bytes;

/// The maximum length of bytes kept in place: as many as fit without taking more room than
/// [`Bytes`] alone.
const SHORT_LEN_MAX: usize = 23;

/// The minimum length of bytes that are shared with the command that brought them instead of
/// copied.
const SHARED_LEN_MIN: usize = 64;

/// A key, a member, a field or a value. Most are a few bytes, which are read without a further
/// memory access; long ones are shared.
///
/// ```
/// use bytes::Bytes;
/// use lockstorm_sim::blob::Blob;
/// let blob = Blob::from(&Bytes::from_static(b"lock:7"));
/// assert_eq!(&blob[..4], b"lock");
/// assert_eq!(blob.to_bytes(), "lock:7");
/// ```
#[derive(Clone)]
pub struct Blob(Held);

#[derive(Clone)]
enum Held {
    Short { len: u8, bytes: [u8; SHORT_LEN_MAX] },
    Long(Bytes),
}

impl Blob {
    /// No bytes.
    pub const EMPTY: Blob = Blob(Held::Short { len: 0, bytes: [0; SHORT_LEN_MAX] });

    /// Makes a blob from a copy of the bytes.
    pub fn copy(bytes: &[u8]) -> Blob {
        Blob::short(bytes).unwrap_or_else(|| Blob(Held::Long(Bytes::copy_from_slice(bytes))))
    }

    fn short(text: &[u8]) -> Option<Blob> {
        let mut bytes = [0; SHORT_LEN_MAX];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Blob(Held::Short { len: text.len() as u8, bytes }))
    }

    /// Returns an integer in decimal digits.
    pub fn integer(n: i64) -> Blob {
        Blob::copy(itoa::Buffer::new().format(n).as_bytes())
    }

    /// Returns a part of the bytes, which is shared if it is long.
    ///
    /// # Panics
    /// If `range` is not within the bytes.
    pub fn slice(&self, range: Range<usize>) -> Blob {
        match &self.0 {
            Held::Long(bytes) if range.len() >= SHARED_LEN_MIN => Blob(Held::Long(bytes.slice(range))),
            _ => Blob::copy(&self[range]),
        }
    }

    /// Returns the bytes for a reply. Long ones are shared. Others are copied, because sharing them
    /// would leave a reference count allocated for good.
    pub fn apart(&self) -> Blob {
        match &self.0 {
            Held::Long(bytes) => Blob::from(bytes),
            Held::Short { .. } => self.clone(),
        }
    }

    /// Returns the bytes as [`Bytes`]; long ones are shared, short ones are copied.
    pub fn to_bytes(&self) -> Bytes {
        self.apart().into_bytes()
    }

    /// Converts the blob to [`Bytes`] without copying long bytes.
    pub fn into_bytes(self) -> Bytes {
        match self.0 {
            Held::Long(bytes) => bytes,
            Held::Short { .. } => Bytes::copy_from_slice(&self),
        }
    }
}

impl Default for Blob {
    fn default() -> Blob {
        Blob::EMPTY
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Short { len, bytes } => &bytes[..usize::from(*len)],
            Held::Long(bytes) => bytes,
        }
    }
}

/// Shares long bytes. A small slice of a large buffer is copied, so that it does not keep the
/// buffer alive.
impl From<&Bytes> for Blob {
    fn from(bytes: &Bytes) -> Blob {
        if bytes.len() < SHARED_LEN_MIN { Blob::copy(bytes) } else { Blob(Held::Long(bytes.clone())) }
    }
}

impl From<&Blob> for Blob {
    fn from(blob: &Blob) -> Blob {
        blob.clone()
    }
}

/// Takes over bytes that are not shared with a larger buffer.
impl From<Bytes> for Blob {
    fn from(bytes: Bytes) -> Blob {
        Blob::short(&bytes).unwrap_or(Blob(Held::Long(bytes)))
    }
}

impl From<&'static str> for Blob {
    fn from(text: &'static str) -> Blob {
        Blob::from(Bytes::from_static(text.as_bytes()))
    }
}

impl Borrow<[u8]> for Blob {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: AsRef<[u8]> + ?Sized> PartialEq<T> for Blob {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

impl Eq for Blob {}

impl PartialOrd for Blob {
    fn partial_cmp(&self, other: &Blob) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Blob {
    fn cmp(&self, other: &Blob) -> Ordering {
        (**self).cmp(other)
    }
}

impl hash::Hash for Blob {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_no_more_room_than_bytes() {
        assert_eq!(size_of::<Blob>(), size_of::<Bytes>());
    }

    #[test]
    fn integers_are_told_in_digits() {
        for n in [0, -1, 9, 10, i64::MAX, i64::MIN] {
            assert_eq!(Blob::integer(n), n.to_string());
        }
    }

    #[test]
    fn bytes_of_each_length_come_back_and_only_long_ones_are_shared() {
        for (len, is_in_place, is_shared) in [
            (0, true, false),
            (1, true, false),
            (23, true, false),
            (24, false, false),
            (63, false, false),
            (64, false, true),
        ] {
            let bytes = Bytes::from(vec![b'x'; len]);
            let blob = Blob::from(&bytes);
            assert_eq!(blob, bytes, "{len} bytes");
            assert_eq!(matches!(blob.0, Held::Short { .. }), is_in_place, "{len} bytes");
            assert_eq!(blob.as_ptr() == bytes.as_ptr(), is_shared, "{len} bytes that came");
            assert_eq!(blob.to_bytes().as_ptr() == blob.as_ptr(), is_shared, "{len} bytes that go");
            assert_eq!(
                (blob.clone(), blob.to_bytes(), blob.clone().into_bytes()),
                (blob, bytes.clone(), bytes)
            );
        }
    }
}
