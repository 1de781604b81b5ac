//! Lua scripts as Redis runs them: PUC Lua 5.1 in Redis's sandbox, with the libraries that Redis
//! brings along.
//!
//! The module knows no command and no node. What a script may ask of its surroundings is [`Host`];
//! the commands of the scripting group implement it. An [`Engine`] makes its interpreter when the
//! first script comes, because most simulated nodes never run one.
//!
//! Nothing a script does may depend on the machine: there is no clock, random numbers start from
//! the same seed in every script, and printed addresses are numbers given in order. One leak is
//! left, the same as in Redis: `pairs` and `next` visit keys that are tables, functions or
//! coroutines in the order of their addresses.

mod api;
mod args;
mod bits;
mod convert;
mod desk;
mod dialect;
mod digest;
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
mod register;
mod registry;
mod runner;
mod shebang;
mod strings;
mod structs;
mod vm;
mod word;

pub use desk::Host;
pub use engine::{Callee, Engine, Outcome, Run, Script, Suspended};
pub use errors::{ScriptErrors, error_code};
pub use library::{Header, Libraries, Library, LibraryFunction};
pub use shebang::{Flags, ShebangError, declared};
