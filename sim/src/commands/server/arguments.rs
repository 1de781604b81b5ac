//! The arguments of the commands, as COMMAND DOCS tells them.
//!
//! `arguments.txt` has a line for each command: its name, and its arguments parted by spaces. One argument is written as
//! `?*+name:type#key=token@since!deprecated(parts)`, with the parts that it has: `?` for optional, `*` for one that may come
//! several times, `+` if its token does then, the number of its key specification, the word that stands before it.

use std::sync::LazyLock;

use bytes::Bytes;

use crate::{keyspace::Dict, resp::Reply};

/// The arguments of a command, or of a subcommand by its full name; `None` for one without.
pub(super) fn arguments(name: &str) -> Option<Reply> {
    static LINES: LazyLock<Dict<&'static str>> = LazyLock::new(|| {
        let mut lines = Dict::default();
        for (name, arguments) in include_str!("arguments.txt").lines().filter_map(|line| line.split_once(' '))
        {
            lines.insert(Bytes::from_static(name.as_bytes()), arguments);
        }
        lines
    });
    let mut rest = *LINES.get(name.as_bytes())?;
    Some(list(&mut rest))
}

/// Arguments up to the end, or to the parenthesis that closes them.
fn list(rest: &mut &str) -> Reply {
    let mut arguments = Vec::new();
    while !rest.is_empty() && !rest.starts_with(')') {
        arguments.push(argument(rest));
        *rest = rest.strip_prefix(' ').unwrap_or(rest);
    }
    Reply::Array(arguments)
}

fn argument(rest: &mut &str) -> Reply {
    let mut flags = Vec::new();
    for (mark, flag) in [('?', "optional"), ('*', "multiple"), ('+', "multiple_token")] {
        if let Some(after) = rest.strip_prefix(mark) {
            *rest = after;
            flags.push(Reply::Status(flag.into()));
        }
    }
    let (name, kind) = until(rest, "#=@! ()").rsplit_once(':').unwrap_or_default();
    let mut about = vec![("name", Reply::bulk(name)), ("type", Reply::bulk(kind))];
    for (mark, what) in [('#', "key_spec_index"), ('=', "token"), ('@', "since"), ('!', "deprecated_since")] {
        let Some(after) = rest.strip_prefix(mark) else { continue };
        *rest = after;
        // A token may be any sign, or nothing.
        let value = if mark == '=' { until(rest, "@! ()") } else { until(rest, "#=@! ()") };
        about.push((
            what,
            match (mark, value) {
                ('#', number) => Reply::Integer(number.parse().unwrap_or(0)),
                ('=', "\"\"") => Reply::bulk(""),
                (_, value) => Reply::bulk(value),
            },
        ));
    }
    if !flags.is_empty() {
        about.push(("flags", Reply::Set(flags)));
    }
    if let Some(after) = rest.strip_prefix('(') {
        *rest = after;
        about.push(("arguments", list(rest)));
        *rest = rest.strip_prefix(')').unwrap_or(rest);
    }
    Reply::Map(about.into_iter().map(|(what, value)| (Reply::bulk(what), value)).collect())
}

/// What stands before the next of some signs, which is left.
fn until<'a>(rest: &mut &'a str, signs: &str) -> &'a str {
    let end = rest.find(|sign| signs.contains(sign)).unwrap_or(rest.len());
    let (before, after) = rest.split_at(end);
    *rest = after;
    before
}
