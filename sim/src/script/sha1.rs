//! The SHA-1 digests that name scripts.

/// Returns the SHA-1 of a script in lower-case hexadecimal digits, its name for `EVALSHA`.
///
/// ```
/// assert_eq!(lockstorm_sim::script::sha1_hex(b"return 1"), "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
/// ```
pub fn sha1_hex(script: &[u8]) -> String {
    sha1_smol::Sha1::from(script).digest().to_string()
}
