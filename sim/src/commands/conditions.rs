//! NX, XX, GT and LT: the conditions for setting the expiry of a key or of a field.

use bytes::Bytes;

use super::{Error, printable};

/// Conditions for setting an expiry.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Conditions {
    /// NX: there is no expiry.
    none: bool,
    /// XX: there is an expiry.
    some: bool,
    /// GT: the new expiry is later. No expiry counts as never.
    later: bool,
    /// LT: the new expiry is earlier.
    earlier: bool,
}

impl Conditions {
    /// Reads any number of conditions.
    ///
    /// # Errors
    /// A word is no condition, or two of them exclude each other.
    pub(super) fn parse(options: &[Bytes]) -> Result<Conditions, Error> {
        let mut parsed = Conditions::default();
        for option in options {
            if !parsed.add(option) {
                let option = printable(option, usize::MAX);
                return Err(Error(format!("ERR Unsupported option {option}").into()));
            }
        }
        if parsed.none && (parsed.some || parsed.later || parsed.earlier) {
            return Err(Error::of("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if parsed.later && parsed.earlier {
            return Err(Error::of("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(parsed)
    }

    /// Adds the condition that the word names. Returns false if it names none.
    pub(super) fn add(&mut self, word: &[u8]) -> bool {
        let place = match word.to_ascii_lowercase().as_slice() {
            b"nx" => &mut self.none,
            b"xx" => &mut self.some,
            b"gt" => &mut self.later,
            b"lt" => &mut self.earlier,
            _ => return false,
        };
        *place = true;
        true
    }

    /// Returns true if the conditions allow to replace the old expiry by the new one.
    pub(super) fn allow(self, old_ms: Option<i64>, new_ms: i64) -> bool {
        !(self.none && old_ms.is_some()
            || self.some && old_ms.is_none()
            || self.later && old_ms.is_none_or(|old_ms| new_ms <= old_ms)
            || self.earlier && old_ms.is_some_and(|old_ms| new_ms >= old_ms))
    }
}
