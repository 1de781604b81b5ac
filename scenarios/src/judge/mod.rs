//! Decides what a run has shown: histories, verdicts, checkers and kinds of locks.
//!
//! A judge reads a history and nothing else: it starts nothing, and knows no file.
//!
//! | module | contents |
//! | --- | --- |
//! | `digest` | bytes and their digests as text |
//! | [`history`] | the events of one run, the only input of a checker |
//! | [`verdict`] | *holds*, *violated* or *undecided*, measures, counterexamples and expectations |
//! | [`checker`] | one file per question about a history |
//! | [`object`] | one adapter per kind of lock: its keys, its changes, its promises |

pub mod digest;

pub mod history;

pub mod verdict;

pub mod checker;

pub mod object;
