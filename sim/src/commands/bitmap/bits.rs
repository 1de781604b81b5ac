//! Single bits of a string, the highest of the first byte being bit 0, and the place that a string
//! has for them.

use bytes::{Bytes, BytesMut};

use crate::{
    commands::{Ctx, Error},
    keyspace::{self, Str},
};

const BAD_OFFSET: Error = Error::of("ERR bit offset is not an integer or out of range");

/// Reads the place of a bit. `#n` is the place of the n-th of many values of `width` bits, where
/// that may be written.
pub(super) fn offset(ctx: &Ctx<'_>, text: &[u8], width: Option<u32>) -> Result<usize, Error> {
    let (digits, scale) = match (text, width) {
        ([b'#', digits @ ..], Some(width)) => (digits, i64::from(width)),
        _ => (text, 1),
    };
    let offset = keyspace::integer(digits).and_then(|n| n.checked_mul(scale)).ok_or(BAD_OFFSET)?;
    let offset = usize::try_from(offset).map_err(|_| BAD_OFFSET)?;
    if offset / 8 < ctx.node.config.proto_max_bulk_len { Ok(offset) } else { Err(BAD_OFFSET) }
}

/// A bit; beyond the end they are all 0.
pub(super) fn get(bytes: &[u8], offset: usize) -> bool {
    bytes.get(offset / 8).is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

/// Changes the string at `key` in place, after it has been made long enough to have the bit `last`;
/// tells the change whether it had to be.
pub(super) fn edit<T>(
    ctx: &mut Ctx<'_>,
    key: &Bytes,
    last: usize,
    change: impl FnOnce(&mut [u8], bool) -> T,
) -> Result<T, Error> {
    let string = ctx.modify_or_create::<Str>(key)?;
    Ok(string.edit(|bytes| {
        let len = last / 8 + 1;
        let grows = bytes.len() < len;
        if bytes.is_empty() {
            // Untouched zero pages take no memory.
            *bytes = BytesMut::zeroed(len);
        } else if grows {
            bytes.resize(len, 0);
        }
        change(bytes, grows)
    }))
}
