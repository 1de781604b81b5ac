//! The commands: one file each, in the folder of the group that Redis gives it.
//!
//! To add a command, write `<group>/<name>.rs` with its [`Spec`] on top, add one line to the group's `ALL`, and write its
//! transcript in `tests/parity/<group>/<name>.redis`. Dispatch, COMMAND, the documentation and the tests read the lists.

mod ctx;
mod dispatch;
mod wait;
mod double;
mod draw;
mod error;
mod long_double;
mod help;
mod parse;
pub mod permit;
mod scan;
mod spec;

mod connection;
mod generic;
mod hash;
mod sorted_set;
mod set;
mod list;
mod pubsub;
mod scripting;
mod server;
mod string;
mod transactions;

pub use ctx::{Ctx, Origin, expire};
pub use dispatch::{find, run, unknown};
pub use double::{double, double_prefix};
pub use error::Error;
pub use parse::{index_range, int32, integer, integer_in, ranged};
pub use spec::{Flags, Group, Keys, Spec};
pub use wait::Wait;

/// Every command, group by group, each group sorted by name. Subcommands hang below their containers.
pub const ALL: &[&[&Spec]] = &[
    connection::ALL,
    generic::ALL,
    hash::ALL,
    list::ALL,
    set::ALL,
    sorted_set::ALL,
    pubsub::ALL,
    scripting::ALL,
    server::ALL,
    string::ALL,
    transactions::ALL,
];
