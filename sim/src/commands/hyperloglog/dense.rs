//! The dense encoding: six bits per register, the first in the lowest bits of the first byte.

use super::registers::REGISTERS;

const BITS: usize = 6;
/// Largest value of a register.
const MAX: u8 = (1 << BITS) - 1;
/// Bytes of all registers.
pub(super) const LEN: usize = REGISTERS * BITS / 8;

pub(super) fn get(registers: &[u8], index: usize) -> u8 {
    let (at, shift) = (index * BITS / 8, index * BITS % 8);
    let byte = |at: usize| u16::from(registers.get(at).copied().unwrap_or(0));
    ((byte(at) | byte(at + 1) << 8) >> shift) as u8 & MAX
}

/// Raises a register to a value; returns false, without a change, if it is not smaller.
pub(super) fn raise(registers: &mut [u8], index: usize, value: u8) -> bool {
    if get(registers, index) >= value {
        return false;
    }
    let (at, shift) = (index * BITS / 8, index * BITS % 8);
    let (mask, value) = (u16::from(MAX) << shift, u16::from(value & MAX) << shift);
    for (byte, part) in [(at, 0), (at + 1, 8)] {
        if let Some(byte) = registers.get_mut(byte) {
            *byte = *byte & !((mask >> part) as u8) | (value >> part) as u8;
        }
    }
    true
}
