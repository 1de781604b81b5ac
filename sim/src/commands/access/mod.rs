//! Access lists: converts rules to permissions and back, and checks if a user may run a command.

mod check;
mod describe;
mod file;
mod rules;

use std::sync::LazyLock;

use bytes::Bytes;

use super::{ALL, Categories, Spec, sentinel};
use crate::{acl::CommandId, generation::Generation, keyspace::Dict, node::Node};

pub use check::{Denied, check, refuse};
pub(super) use check::{Refusal, may_follow, note};
pub(super) use describe::{flags, rules_of_channels, rules_of_commands, rules_of_keys};
pub use file::{configured, lines, load_configured, read_file};
pub(super) use file::{line, read_users};
pub(super) use rules::{apply, has_spaces, merge_selectors};

/// The commands that rules can name: a Sentinel and a node with data have different ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The commands of a node with data, of this generation of servers.
    Data(Generation),
    /// The commands of a Sentinel of this generation.
    Sentinel(Generation),
}

/// A command or subcommand with the id that permissions use.
struct Known {
    id: CommandId,
    spec: &'static Spec,
    categories: Categories,
}

impl Table {
    /// Returns the table of this node.
    pub fn of(node: &Node) -> Table {
        let of = if node.sentinel.is_some() { Table::Sentinel } else { Table::Data };
        of(node.config.generation)
    }

    fn generation(self) -> Generation {
        let (Table::Data(generation) | Table::Sentinel(generation)) = self;
        generation
    }

    /// Returns every command and subcommand, each container before its subcommands.
    fn known(self) -> &'static [Known] {
        static DATA: [LazyLock<Vec<Known>>; Generation::ALL.len()] = [
            LazyLock::new(|| of_data(Generation::Redis62)),
            LazyLock::new(|| of_data(Generation::Redis70)),
            LazyLock::new(|| of_data(Generation::Redis82)),
            LazyLock::new(|| of_data(Generation::Valkey81)),
            LazyLock::new(|| of_data(Generation::Valkey91)),
        ];
        static SENTINEL: LazyLock<Vec<Known>> = LazyLock::new(|| known(sentinel::known()));
        match self {
            Table::Data(generation) => &DATA[generation as usize],
            Table::Sentinel(_) => &SENTINEL,
        }
    }

    /// Returns the commands and subcommands of a category.
    pub(super) fn of_category(self, category: Categories) -> impl Iterator<Item = &'static Spec> {
        self.known().iter().filter(move |known| known.categories.intersects(category)).map(|known| known.spec)
    }
}

fn of_data(generation: Generation) -> Vec<Known> {
    let mut all = known(ALL.iter().copied().flatten().copied());
    all.retain(|known| known.spec.is_in(generation));
    all
}

fn known(tops: impl Iterator<Item = &'static Spec>) -> Vec<Known> {
    with_subcommands(tops)
        .map(|spec| Known { id: id(spec), spec, categories: Categories::of(spec) })
        .collect()
}

fn with_subcommands(tops: impl Iterator<Item = &'static Spec>) -> impl Iterator<Item = &'static Spec> {
    tops.flat_map(|spec| std::iter::once(spec).chain(spec.subcommands.iter().copied()))
}

/// Returns the id of a command. Commands with the same name in both tables have the same id.
fn id(spec: &Spec) -> CommandId {
    static IDS: LazyLock<Dict<CommandId>> = LazyLock::new(|| {
        let tops = ALL.iter().copied().flatten().copied().chain(sentinel::ALL.iter().copied());
        let mut ids = Dict::default();
        for spec in with_subcommands(tops) {
            let name = Bytes::from_static(spec.name.as_bytes());
            if !ids.contains(&name) {
                ids.insert(name, ids.len());
            }
        }
        ids
    });
    IDS.get(spec.name.as_bytes()).copied().unwrap_or(CommandId::MAX)
}
