//! Lua scripts as Redis runs them: PUC Lua 5.1 in Redis's sandbox, with the libraries that come
//! with Redis.
//!
//! The module knows no command and no node. A script reaches its surroundings through [`Host`],
//! which the commands of the scripting group implement. An [`Engine`] makes its interpreter for the
//! first script, because most simulated nodes never run one.
//!
//! No script depends on the machine: it has no clock, the random numbers of every node start from
//! the same seed, and printed addresses are numbers given in order. One exception remains, the same
//! as in Redis: `pairs` and `next` visit keys that are tables, functions or coroutines in the order
//! of their addresses.

mod api;
mod args;
mod bits;
mod convert;
mod context;
mod dialect;
mod sha1;
mod engine;
mod error_table;
mod errors;
mod failure;
mod json;
mod json_decode;
mod json_settings;
mod library;
mod math;
mod msgpack;
mod pattern;
mod position;
mod random;
mod register_function;
mod registry;
mod runner;
mod shebang;
mod strings;
mod structs;
mod vm;
mod word;

pub use context::Host;
pub use engine::{Callee, Engine, LoadedBy, Outcome, Run, Script, Suspended};
pub use errors::{ScriptErrors, error_code};
pub use library::{Header, Libraries, Library, LibraryFunction};
pub use sha1::sha1_hex;
pub use shebang::{Flags, ShebangError, declared};
