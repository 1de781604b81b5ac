//! The words of verdicts, one file per question. No other module of the checkers writes sentences
//! about a decision; `evidence::words` describes instants, promises, beliefs and faults for all.

mod calls;
mod commands;
mod ending;
mod fairness;
mod hygiene;
mod l1_server;
mod l2_belief;
mod l3_effect;
mod l4_fenced;
mod latch;
mod lease;
pub(super) mod overlap;
mod owner_safety;
mod permits;
mod progress;
mod rate;
mod read_write;
mod reentrancy;
mod together;
mod waiting;
mod wake_ups;
mod windows;
