//! FUNCTION LIST [LIBRARYNAME pattern] [WITHCODE]: the libraries and their functions.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, printable},
    glob::matches_in_any_case,
    resp::Reply,
    script::{Library, LibraryFunction},
};

pub(super) const SPEC: Spec = Spec {
    name: "function|list",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "The libraries and their functions.",
    arity: -2,
    flags: Flags::NOSCRIPT,
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (mut pattern, mut with_code) = (None, false);
    let mut words = args[2..].iter();
    while let Some(word) = words.next() {
        match &word.to_ascii_lowercase()[..] {
            b"withcode" if !with_code => with_code = true,
            b"libraryname" if pattern.is_none() => {
                let given = words.next().ok_or(Error::of("ERR library name argument was not given"))?;
                pattern = Some(given);
            }
            _ => {
                let word = printable(word, usize::MAX);
                return Err(Error(format!("ERR Unknown argument {word}").into()));
            }
        }
    }
    let wanted = |library: &Library| {
        pattern.as_ref().is_none_or(|pattern| matches_in_any_case(pattern, library.name.as_bytes()))
    };
    let libraries = ctx.node.libraries.iter().filter(|library| wanted(library));
    Ok(Reply::Array(libraries.map(|library| describe(library, with_code)).collect()))
}

fn describe(library: &Library, with_code: bool) -> Reply {
    let functions = library.functions.values().map(|function| describe_function(function));
    let mut about = vec![
        (Reply::bulk("library_name"), Reply::bulk(&library.name)),
        (Reply::bulk("engine"), Reply::bulk("LUA")),
        (Reply::bulk("functions"), Reply::Array(functions.collect())),
    ];
    if with_code {
        about.push((Reply::bulk("library_code"), library.code.clone().into()));
    }
    Reply::Map(about)
}

fn describe_function(function: &LibraryFunction) -> Reply {
    let description = function.description.clone().map_or(Reply::Null, Reply::from);
    let flags = function.flags.names().map(|name| Reply::Status(name.into()));
    Reply::Map(vec![
        (Reply::bulk("name"), Reply::bulk(&function.name)),
        (Reply::bulk("description"), description),
        (Reply::bulk("flags"), Reply::Set(flags.collect())),
    ])
}
