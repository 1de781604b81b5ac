//! Single bits of a string: reads, writes and offsets. Bit 0 is the highest bit of the first byte.

use bytes::{Bytes, BytesMut};

use crate::{
    commands::{Ctx, Error},
    keyspace::{self, Str},
};

const BAD_OFFSET: Error = Error::of("ERR bit offset is not an integer or out of range");

/// Parses a bit offset. With a `width`, `#n` is the offset of value n in a sequence of values of
/// that many bits.
pub(super) fn offset(ctx: &Ctx<'_>, text: &[u8], width: Option<u32>) -> Result<usize, Error> {
    let (digits, scale) = match (text, width) {
        ([b'#', digits @ ..], Some(width)) => (digits, i64::from(width)),
        _ => (text, 1),
    };
    let offset = keyspace::integer(digits).and_then(|n| n.checked_mul(scale)).ok_or(BAD_OFFSET)?;
    let offset = usize::try_from(offset).map_err(|_| BAD_OFFSET)?;
    if offset / 8 < ctx.node.config.clients.proto_max_bulk_len { Ok(offset) } else { Err(BAD_OFFSET) }
}

/// Returns a bit; 0 beyond the end.
pub(super) fn get(bytes: &[u8], offset: usize) -> bool {
    bytes.get(offset / 8).is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

/// Changes the string at `key` in place, after extending it to contain bit `last`. `change` gets
/// true if the string was extended.
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
            // Untouched zero pages use no memory.
            *bytes = BytesMut::zeroed(len);
        } else if grows {
            bytes.resize(len, 0);
        }
        change(bytes, grows)
    }))
}
