//! The words of verdicts, one file per question. No other module of the checkers writes sentences
//! about a decision; `evidence::words` describes instants, promises, beliefs and faults for all.

mod commands;
mod fairness;
mod owner_safety;
mod permits;
