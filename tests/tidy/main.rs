//! Tests of the repository's shape: boundaries of claims, imports, lists against folders, sizes,
//! words.
//!
//! All tests read the sources as text, so they need no build of the code that they check.

mod boundaries;
mod imports;
mod lists;
mod measured;
mod sources;
mod words;
