//! What DUMP and FUNCTION DUMP answer: values or libraries, and behind them the version of the
//! format and a checksum.

use bytes::Bytes;

use super::{Input, Output, RdbError, VERSION, crc64::crc64, load, save};
use crate::{config::Config, keyspace::Value};

/// The version in two bytes and the checksum in eight.
const FOOTER: usize = 10;

/// Ends a payload with its version and checksum.
pub fn seal(mut payload: Vec<u8>) -> Bytes {
    payload.extend(VERSION.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend(checksum.to_le_bytes());
    Bytes::from(payload)
}

/// The payload inside, if its version is known and its checksum right; or whatever its checksum is,
/// unless that is `checked`.
///
/// # Errors
/// When it is not so.
pub fn unseal(sealed: &[u8], checked: bool) -> Result<&[u8], RdbError> {
    let (payload, footer) = sealed
        .len()
        .checked_sub(FOOTER)
        .and_then(|at| sealed.split_at_checked(at))
        .ok_or(RdbError::Short("the end of a payload"))?;
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    if version > VERSION {
        return Err(RdbError::Unsupported(format!("version {version}")));
    }
    let is_right = || footer[2..] == crc64(&sealed[..payload.len() + 2]).to_le_bytes();
    if !checked || is_right() { Ok(payload) } else { Err(RdbError::Checksum) }
}

/// How many bytes a value takes in a snapshot, without its key and the byte for its type.
pub fn saved_len(value: &Value, config: &Config) -> usize {
    let mut out = Output::new(config);
    save::value(&mut out, value);
    out.into_bytes().len()
}

/// A value as DUMP answers it.
pub fn dump(value: &Value, config: &Config) -> Bytes {
    let mut out = Output::new(config);
    out.byte(save::kind(value));
    save::value(&mut out, value);
    seal(out.into_bytes())
}

/// The value in what DUMP answered; whether the end of it is right is for [`unseal`] to say. What
/// follows the value is not looked at, as in Redis.
///
/// # Errors
/// When there is none.
pub fn restore(payload: &[u8], config: &Config) -> Result<Value, RdbError> {
    let mut input = Input::new(payload);
    let kind = input.byte("the type of a value")?;
    load::value(&mut input, kind, &config.encodings)
}
