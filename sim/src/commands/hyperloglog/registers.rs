//! The registers of a HyperLogLog: their number and their values.

/// Number of registers.
pub(super) const REGISTERS: usize = 1 << INDEX_BITS;
/// Number of hash bits that choose the register.
pub(super) const INDEX_BITS: u32 = 14;

/// Number of registers with each value.
pub(super) type Histogram = [u32; 64];
/// The values of all registers.
pub(super) type Registers = [u8; REGISTERS];
