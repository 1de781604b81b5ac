//! The registers of a HyperLogLog: how many there are, and their values.

/// How many registers there are.
pub(super) const REGISTERS: usize = 1 << INDEX_BITS;
/// The bits of a hash that choose its register.
pub(super) const INDEX_BITS: u32 = 14;

/// How many registers have each value.
pub(super) type Histogram = [u32; 64];
/// The values of all registers.
pub(super) type Registers = [u8; REGISTERS];
