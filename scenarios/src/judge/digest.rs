//! Formats bytes and their digests as text.

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of some bytes, as 64 hexadecimal digits.
pub fn sha256(bytes: impl AsRef<[u8]>) -> String {
    hex(Sha256::digest(bytes))
}

/// Returns two lower-case hexadecimal digits for each byte.
pub fn hex(bytes: impl AsRef<[u8]>) -> String {
    bytes.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
