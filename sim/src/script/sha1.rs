//! The SHA-1 digests that name scripts.

use sha1::{Digest, Sha1};

/// Returns the SHA-1 of a script as lower-case hex digits.
pub(super) fn sha1_hex(bytes: &[u8]) -> String {
    Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
