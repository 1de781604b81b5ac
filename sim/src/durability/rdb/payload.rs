//! The payloads of DUMP and FUNCTION DUMP: values or libraries, followed by the version of the
//! format and a checksum.

use bytes::Bytes;

use super::{Input, Output, RdbError, crc64::crc64, load, save};
use crate::{config::Config, generation::Generation, keyspace::Value};

/// Bytes of the version (two) and of the checksum (eight).
const FOOTER: usize = 10;

/// Appends the version and the checksum to a payload.
pub fn seal(mut payload: Vec<u8>, generation: Generation) -> Bytes {
    payload.extend(generation.rdb_version().to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend(checksum.to_le_bytes());
    Bytes::from(payload)
}

/// Returns a payload without its version and checksum. Ignores the checksum unless `checked` is
/// set.
///
/// # Errors
/// If the payload is too short, its version is too new, or its checksum is checked and wrong.
pub fn unseal(sealed: &[u8], checked: bool, generation: Generation) -> Result<&[u8], RdbError> {
    let (payload, footer) = sealed
        .len()
        .checked_sub(FOOTER)
        .and_then(|at| sealed.split_at_checked(at))
        .ok_or(RdbError::Short("the end of a payload"))?;
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    if !generation.reads_rdb_version(version) {
        return Err(RdbError::Unsupported(format!("version {version}")));
    }
    let is_right = || footer[2..] == crc64(&sealed[..payload.len() + 2]).to_le_bytes();
    if !checked || is_right() { Ok(payload) } else { Err(RdbError::Checksum) }
}

/// Bytes of a value in a snapshot, without its key and the byte for its type.
pub fn saved_len(value: &Value, config: &Config) -> usize {
    let mut out = Output::new(config);
    save::value(&mut out, value);
    out.into_bytes().len()
}

/// Returns a value as the payload of DUMP.
pub fn dump(value: &Value, config: &Config) -> Bytes {
    let mut out = Output::new(config);
    let kind = save::kind(&out, value);
    out.byte(kind);
    save::value(&mut out, value);
    seal(out.into_bytes(), config.generation)
}

/// Reads the value of a payload of DUMP without its version and checksum, which [`unseal`] checks.
/// Ignores bytes after the value, as Redis does.
///
/// # Errors
/// If the payload is not a valid value.
pub fn restore(payload: &[u8], config: &Config) -> Result<Value, RdbError> {
    let mut input = Input::new(payload);
    let kind = input.byte("the type of a value")?;
    load::value(&mut input, kind, config)
}
