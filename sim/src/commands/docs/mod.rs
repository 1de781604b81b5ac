//! What is said of the commands: their arguments, what they cost, and since which version they can
//! do what.
//!
//! Three tables with a line for each command, or subcommand by its full name. `complexity.txt` has
//! a formula and what stands in it, `history.txt` a version and what came with it, [`argument`]
//! says what `arguments.txt` has.

mod argument;

use std::sync::LazyLock;

use argument::Argument;
use bytes::Bytes;

use super::Spec;
use crate::{keyspace::Dict, resp::Reply};

/// Lines by the names that they begin with.
type Lines = LazyLock<Dict<Vec<&'static str>>>;

macro_rules! lines {
    ($file:literal) => {
        LazyLock::new(|| {
            let mut lines: Dict<Vec<&'static str>> = Dict::default();
            for (name, said) in include_str!($file).lines().filter_map(|line| line.split_once(' ')) {
                lines.get_or_insert_with(&Bytes::from_static(name.as_bytes()), Vec::new).push(said);
            }
            lines
        })
    };
}

static ARGUMENTS: Lines = lines!("arguments.txt");
static COMPLEXITY: Lines = lines!("complexity.txt");
static HISTORY: Lines = lines!("history.txt");

fn said(lines: &'static Lines, spec: &Spec) -> &'static [&'static str] {
    lines.get(spec.name.as_bytes()).map_or(&[], Vec::as_slice)
}

fn arguments_of(spec: &Spec) -> Vec<Argument> {
    said(&ARGUMENTS, spec).first().map(|line| Argument::all(line)).unwrap_or_default()
}

/// The arguments of a command as COMMAND DOCS answers them; `None` for one without.
pub(super) fn arguments(spec: &Spec) -> Option<Reply> {
    let arguments = arguments_of(spec);
    (!arguments.is_empty()).then(|| Reply::Array(arguments.iter().map(Argument::describe).collect()))
}

/// The arguments of a command as HELP shows them: `<key> [<count>]`.
pub(super) fn usage(spec: &Spec) -> String {
    arguments_of(spec).iter().map(Argument::usage).collect::<Vec<_>>().join(" ")
}

/// What a command costs, as COMMAND DOCS answers it.
pub(super) fn complexity(spec: &Spec) -> Option<Reply> {
    said(&COMPLEXITY, spec).first().map(|cost| Reply::bulk(*cost))
}

/// Which versions added what, as COMMAND DOCS answers it; `None` if a command is as it was when it
/// came.
pub(super) fn history(spec: &Spec) -> Option<Reply> {
    let entries = said(&HISTORY, spec).iter().filter_map(|entry| entry.split_once(' '));
    let entries: Vec<Reply> =
        entries.map(|(since, what)| Reply::Array(vec![Reply::bulk(since), Reply::bulk(what)])).collect();
    (!entries.is_empty()).then_some(Reply::Set(entries))
}
