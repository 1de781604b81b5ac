//! The shape of the repository, held by tests: who may import whom, lists against folders, sizes, words.
//!
//! Everything here reads the sources as text, so it needs no build of what it looks at.

mod imports;
mod lists;
mod sources;
mod words;
