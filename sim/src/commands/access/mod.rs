//! Access lists in words and in deed: rules to permissions and back, and whether a user may run a command.

mod check;
mod describe;
mod file;
mod rules;

use std::sync::LazyLock;

use bytes::Bytes;

use super::{ALL, Categories, Spec};
use crate::{acl::CommandId, keyspace::Dict};

pub use check::{Denied, check, refuse};
pub(super) use check::{Refusal, may_follow, note};
pub(super) use describe::{flags, rules_of_channels, rules_of_commands, rules_of_keys};
pub use file::{configured, load_configured, read_file};
pub(super) use file::{line, read_users};
pub(super) use rules::{apply, has_spaces, merge_selectors};

/// Every command and subcommand with its categories, containers before what they contain. The place in the list is the number by
/// which permissions know it.
fn known() -> &'static [(&'static Spec, Categories)] {
    static KNOWN: LazyLock<Vec<(&'static Spec, Categories)>> = LazyLock::new(|| {
        let tops = ALL.iter().copied().flatten().copied();
        let specs = tops.flat_map(|spec| std::iter::once(spec).chain(spec.subcommands.iter().copied()));
        specs.map(|spec| (spec, Categories::of(spec))).collect()
    });
    &KNOWN
}

/// The commands and subcommands of a category.
pub(super) fn of_category(category: Categories) -> impl Iterator<Item = &'static Spec> {
    let of_it = move |(_, categories): &&(&Spec, Categories)| categories.intersects(category);
    known().iter().filter(of_it).map(|(spec, _)| *spec)
}

/// The number of a command.
fn id(spec: &Spec) -> CommandId {
    static IDS: LazyLock<Dict<CommandId>> = LazyLock::new(|| {
        let names = known().iter().map(|(spec, _)| Bytes::from_static(spec.name.as_bytes()));
        let mut ids = Dict::default();
        for (id, name) in names.enumerate() {
            ids.insert(name, id);
        }
        ids
    });
    IDS.get(spec.name.as_bytes()).copied().unwrap_or(CommandId::MAX)
}
