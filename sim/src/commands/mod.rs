//! The commands: one file each, in the folder of its Redis group.
//!
//! To add a command, write `<group>/<name>.rs` with its [`Spec`] on top, add one line to the
//! group's `ALL`, and write its transcript in `tests/parity/<group>/<name>.redis`. Dispatch,
//! COMMAND, the documentation and the tests read the lists.

mod categories;
pub mod access;
mod conditions;
mod ctx;
mod differences;
mod dispatch;
mod docs;
mod commands_md;
mod key_specs;
mod wait;
mod double;
pub mod routing;
mod draw;
mod error;
mod long_double;
mod many_keys;
mod help;
mod parse;
mod partial_sort;
pub mod permit;
mod scan;
mod secrets;
mod large_commands;
mod spec;
mod timing;
mod tips;

mod bitmap;
mod cluster;
mod connection;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod sorted_set;
mod set;
mod list;
mod pubsub;
mod scripting;
mod sentinel;
mod server;
mod stream;
mod string;
mod transactions;

pub use categories::Categories;
pub use commands_md::markdown;
pub use ctx::{Ctx, Lookup, Origin};
pub use differences::{absent, difference};
use dispatch::printable;
pub use dispatch::{Late, check_renames, find, find_in, run, unknown, wrong_arity};
pub use double::{double, double_prefix};
pub use error::Error;
pub use key_specs::{Begin, Find, KeyFlags, KeySpec, KeyUse, has_keys, key_specs, key_uses};
use many_keys::many_keys;
pub use parse::{index_range, int32, integer, integer_in, ranged};
pub use scripting::declared;
pub(crate) use scripting::next_turn;
pub use sentinel::{ALL as SENTINEL, find_for};
pub(crate) use server::debug;
pub use spec::{Flags, Group, Keys, Spec};
pub(crate) use transactions::resume_transaction;
pub use wait::Wait;

/// All commands of a node by group, each group sorted by name. Containers hold their subcommands. A
/// Sentinel has its own list (`sentinel/mod.rs`).
pub const ALL: &[&[&Spec]] = &[
    bitmap::ALL,
    cluster::ALL,
    connection::ALL,
    generic::ALL,
    geo::ALL,
    hash::ALL,
    hyperloglog::ALL,
    list::ALL,
    set::ALL,
    sorted_set::ALL,
    pubsub::ALL,
    scripting::ALL,
    server::ALL,
    stream::ALL,
    string::ALL,
    transactions::ALL,
];
