//! The shape of the repository, held by tests: boundaries of claims, imports, lists against
//! folders, sizes, words.
//!
//! Everything here reads the sources as text, so it needs no build of what it looks at.

mod boundaries;
mod imports;
mod lists;
mod measured;
mod sources;
mod words;
