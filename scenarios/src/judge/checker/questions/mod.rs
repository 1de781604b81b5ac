//! The questions, one file each: the decision of a verdict, from evidence.

pub(super) mod commands;
pub(super) mod fairness;
pub(super) mod hygiene;
pub(super) mod l1_server;
pub(super) mod l2_belief;
pub(super) mod l3_effect;
pub(super) mod l4_fenced;
pub(super) mod latch;
pub(super) mod lease;
pub(super) mod owner_safety;
pub(super) mod permits;
pub(super) mod progress;
pub(super) mod rate;
pub(super) mod read_write;
pub(super) mod reentrancy;
pub(super) mod together;
pub(super) mod waiting;
pub(super) mod wake_ups;
pub(super) mod windows;
