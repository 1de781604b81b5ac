//! The ids of permits.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::env::Env;
use crate::error::{Error, Result};
use crate::guard::Got;

/// The id of one permit of a [`PermitSemaphore`](crate::PermitSemaphore): 16 random bytes, shown as
/// 32 hexadecimal digits, as in Redisson.
///
/// ```
/// use lockstorm_client::PermitId;
/// let id: PermitId = "00112233445566778899aabbccddeeff".parse()?;
/// assert_eq!(id.as_bytes()[1], 0x11);
/// assert_eq!(id.to_string(), "00112233445566778899aabbccddeeff");
/// # Ok::<(), lockstorm_client::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PermitId([u8; Self::LEN]);

impl PermitId {
    const LEN: usize = 16;

    pub(super) fn fresh(env: &dyn Env) -> Self {
        Self((u128::from(env.random()) << 64 | u128::from(env.random())).to_be_bytes())
    }

    /// Returns the bytes, as stored in Redis.
    pub fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl fmt::Display for PermitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PermitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PermitId {
    type Err = Error;

    /// # Errors
    /// When the text is not 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self> {
        let is_id = text.len() == 2 * Self::LEN && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bytes = u128::from_str_radix(text, 16).ok().filter(|_| is_id);
        let wrong = || Error::config(format!("the id of a permit is 32 hexadecimal digits, not {text:?}"));
        bytes.map(|bytes| Self(bytes.to_be_bytes())).ok_or_else(wrong)
    }
}

/// The ids of permits that were acquired together.
#[derive(Debug, Clone)]
pub struct PermitIds(Arc<[PermitId]>);

impl PermitIds {
    pub(super) fn fresh(env: &dyn Env, permits: u32) -> Self {
        Self((0..permits).map(|_| PermitId::fresh(env)).collect())
    }

    pub(super) fn as_slice(&self) -> &[PermitId] {
        &self.0
    }

    /// Returns the name of their owner: the concatenated ids.
    pub(super) fn name(&self) -> String {
        self.0.iter().map(ToString::to_string).collect()
    }
}

impl Got for PermitIds {
    fn token(&self) -> Option<u64> {
        None
    }
}

/// Returns the concatenated bytes of the ids in a [name](PermitIds::name).
pub(super) fn bytes_of(name: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        name.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_bytes_of_its_ids() {
        let ids = ["00112233445566778899aabbccddeeff", "0f0e0d0c0b0a09080706050403020100"];
        let ids = PermitIds(ids.iter().map(|id| id.parse().unwrap()).collect());
        assert_eq!(bytes_of(&ids.name()), ids.as_slice().iter().flat_map(|id| id.0).collect::<Vec<u8>>());
    }

    #[test]
    fn what_is_no_id_is_refused() {
        let long = "0".repeat(33);
        for text in ["", "00", "+0112233445566778899aabbccddeef", "0011223344556677-899aabbccddeeff", &long] {
            assert!(text.parse::<PermitId>().unwrap_err().is_definite(), "{text}");
        }
    }
}
