//! Lua scripts as Redis runs them: PUC Lua 5.1 in Redis's sandbox, with the libraries that Redis brings along.
//!
//! The module knows no command and no node. What a script may ask of its surroundings is [`Host`]; the commands of the
//! scripting group implement it. An [`Engine`] makes its interpreter when the first script comes, because most simulated
//! nodes never run one.
//!
//! Nothing a script does may depend on the machine: there is no clock, random numbers start from the same seed in every
//! script, and printed addresses are numbers given in order. One leak is left, the same as in Redis: `pairs` and `next`
//! visit keys that are tables, functions or coroutines in the order of their addresses.

mod api;
mod args;
mod bits;
mod convert;
mod desk;
mod engine;
mod errors;
mod failure;
mod json;
mod json_decode;
mod library;
mod msgpack;
mod pattern;
mod random;
mod register;
mod runner;
mod shebang;
mod strings;
mod structs;
mod vm;

pub use desk::Host;
pub use engine::{Callee, Engine, Outcome, Run, Script, Suspended};
pub use errors::{ScriptErrors, error_code};
pub use library::{Header, Libraries, Library, LibraryFunction};
pub use shebang::{Flags, ShebangError, declared};
