//! The shape of the repository, held by tests: imports, lists against folders, sizes, words.
//!
//! Everything here reads the sources as text, so it needs no build of what it looks at.

mod imports;
mod lists;
mod sources;
mod words;
