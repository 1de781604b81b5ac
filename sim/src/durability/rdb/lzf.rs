//! LZF, the compression of long strings in snapshots; only unpacking, because nothing obliges a writer to pack.

use super::RdbError;

/// Unpacks `packed` to exactly `len` bytes.
pub(super) fn unpack(packed: &[u8], len: usize) -> Result<Vec<u8>, RdbError> {
    const DAMAGED: RdbError = RdbError::Damaged("a compressed string");
    // A reference of three bytes stands for at most 264: a longer claim is a lie, found before room is made for it.
    if len > packed.len().saturating_mul(264) {
        return Err(DAMAGED);
    }
    let mut out = Vec::with_capacity(len);
    let mut rest = packed.iter().copied();
    while let Some(control) = rest.next() {
        if control < 32 {
            let literal = usize::from(control) + 1;
            if rest.len() < literal {
                return Err(DAMAGED);
            }
            out.extend(rest.by_ref().take(literal));
        } else {
            let mut run = usize::from(control >> 5);
            if run == 7 {
                run += usize::from(rest.next().ok_or(DAMAGED)?);
            }
            let back = (usize::from(control & 31) << 8) + usize::from(rest.next().ok_or(DAMAGED)?) + 1;
            let from = out.len().checked_sub(back).ok_or(DAMAGED)?;
            // The run may overlap what it writes: byte by byte.
            for at in from..from + run + 2 {
                out.push(out[at]);
            }
        }
        if out.len() > len {
            return Err(DAMAGED);
        }
    }
    if out.len() == len { Ok(out) } else { Err(DAMAGED) }
}
