//! Documentation of the commands: arguments, complexity, and changes by version.
//!
//! Each of three tables has a line for each command, or for each subcommand by its full name.
//! `complexity.txt` has a formula with its variables, `history.txt` a version with its change;
//! [`argument`] describes `arguments.txt`.

mod argument;

use std::sync::LazyLock;

use argument::Argument;
use bytes::Bytes;

use super::Spec;
use crate::{keyspace::Dict, resp::Reply};

/// Lines by command name, with which they begin.
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

/// Returns a command's arguments as in COMMAND DOCS; `None` for a command without arguments.
pub(super) fn arguments(spec: &Spec) -> Option<Reply> {
    let arguments = arguments_of(spec);
    (!arguments.is_empty()).then(|| Reply::Array(arguments.iter().map(Argument::describe).collect()))
}

/// Returns a command's arguments as in HELP: `<key> [<count>]`.
pub(super) fn usage(spec: &Spec) -> String {
    arguments_of(spec).iter().map(Argument::usage).collect::<Vec<_>>().join(" ")
}

/// Returns the complexity of a command as in COMMAND DOCS.
pub(super) fn complexity(spec: &Spec) -> Option<Reply> {
    said(&COMPLEXITY, spec).first().map(|cost| Reply::bulk(*cost))
}

/// Returns the changes of a command by version, as in COMMAND DOCS; `None` if it never changed.
pub(super) fn history(spec: &Spec) -> Option<Reply> {
    let entries = said(&HISTORY, spec).iter().filter_map(|entry| entry.split_once(' '));
    let entries: Vec<Reply> =
        entries.map(|(since, what)| Reply::Array(vec![Reply::bulk(since), Reply::bulk(what)])).collect();
    (!entries.is_empty()).then_some(Reply::Set(entries))
}
