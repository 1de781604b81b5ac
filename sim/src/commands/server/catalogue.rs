//! The tables of the commands as COMMAND answers them.

use bytes::Bytes;

use crate::{
    commands::{ALL, Error, Flags, Group, Keys, Spec, find},
    resp::Reply,
};

/// Every command that is no subcommand.
pub(super) fn all() -> impl Iterator<Item = &'static Spec> {
    ALL.iter().copied().flatten().copied()
}

/// The command of a name, or the subcommand of a name such as `config|get`.
pub(super) fn by_full_name(name: &[u8]) -> Option<&'static Spec> {
    let words: Vec<Bytes> = name.splitn(2, |byte| *byte == b'|').map(Bytes::copy_from_slice).collect();
    find(&words).ok().filter(|spec| spec.name.contains('|') == (words.len() == 2))
}

/// A command as COMMAND INFO answers it.
pub(super) fn describe(spec: &'static Spec) -> Reply {
    let (first, last, step) = match spec.keys {
        Keys::Range { first, last, step } => (first as i64, i64::from(last), step as i64),
        Keys::FirstAndCounted { .. } => (1, 1, 1),
        _ => (0, 0, 0),
    };
    let words =
        |words: Vec<String>| Reply::Set(words.into_iter().map(|word| Reply::Status(word.into())).collect());
    let subcommands: Vec<Reply> = spec.subcommands.iter().copied().map(describe).collect();
    Reply::Array(vec![
        Reply::bulk(spec.name),
        Reply::Integer(spec.arity.into()),
        words(flags(spec)),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        words(categories(spec).into_iter().map(str::to_owned).collect()),
        Reply::Set(Vec::new()),
        Reply::Set(key_specs(spec)),
        if subcommands.is_empty() { Reply::Set(subcommands) } else { Reply::Array(subcommands) },
    ])
}

/// A command as COMMAND DOCS answers it: its name, and what is said of it.
pub(super) fn document(spec: &'static Spec) -> (Reply, Reply) {
    let mut about = vec![
        (Reply::bulk("summary"), Reply::bulk(spec.summary)),
        (Reply::bulk("since"), Reply::bulk(spec.since)),
        (Reply::bulk("group"), Reply::bulk(spec.group.name())),
    ];
    if !spec.subcommands.is_empty() {
        let subcommands = spec.subcommands.iter().copied().map(document).collect();
        about.push((Reply::bulk("subcommands"), Reply::Map(subcommands)));
    }
    (Reply::bulk(spec.name), Reply::Map(about))
}

fn flags(spec: &Spec) -> Vec<String> {
    let movable = matches!(spec.keys, Keys::Counted { .. } | Keys::FirstAndCounted { .. } | Keys::Found(_));
    let flags = if movable { spec.flags | Flags::MOVABLEKEYS } else { spec.flags };
    // How effects are propagated is this server's own affair.
    (flags - Flags::NESTS).iter_names().map(|(name, _)| name.to_ascii_lowercase()).collect()
}

/// The categories that access lists know a command by. They follow from flags and group, but for a few.
pub(super) fn categories(spec: &Spec) -> Vec<&'static str> {
    let has = |flag| spec.flags.contains(flag);
    let container = !spec.subcommands.is_empty() && spec.name != "command";
    let admin = has(Flags::ADMIN) || matches!(spec.name, "lastsave" | "role");
    let dangerous = [
        "flushall",
        "flushdb",
        "info",
        "keys",
        "migrate",
        "restore",
        "restore-asking",
        "sort",
        "sort_ro",
        "swapdb",
    ];
    let keyspace = ["dbsize", "flushall", "flushdb", "swapdb"];
    let by_group = match spec.group {
        Group::Bitmap => "@bitmap",
        Group::Connection => "@connection",
        Group::Generic => "@keyspace",
        Group::Geo => "@geo",
        Group::Hash => "@hash",
        Group::HyperLogLog => "@hyperloglog",
        Group::List => "@list",
        Group::Scripting => "@scripting",
        Group::Set => "@set",
        Group::SortedSet => "@sortedset",
        Group::Stream => "@stream",
        Group::String => "@string",
        Group::Transactions => "@transaction",
        Group::Cluster | Group::Pubsub | Group::Sentinel | Group::Server => "",
    };
    let of_group = match spec.name {
        "sort" | "sort_ro" | "wait" => "",
        name if name == "command" || name.starts_with("command|") => "@connection",
        name if keyspace.contains(&name) => "@keyspace",
        _ if container => "",
        _ => by_group,
    };
    let speed = if has(Flags::FAST) { "@fast" } else { "@slow" };
    [
        (!of_group.is_empty(), of_group),
        (has(Flags::READONLY) && spec.group != Group::Scripting, "@read"),
        (has(Flags::WRITE), "@write"),
        (has(Flags::PUBSUB), "@pubsub"),
        (admin, "@admin"),
        (true, speed),
        (has(Flags::BLOCKING), "@blocking"),
        (admin || dangerous.contains(&spec.name), "@dangerous"),
    ]
    .into_iter()
    .filter_map(|(is, category)| is.then_some(category))
    .collect()
}

fn key_specs(spec: &Spec) -> Vec<Reply> {
    match spec.keys {
        Keys::None => Vec::new(),
        Keys::Range { first, last, step } => vec![key_range(spec, first, last, step)],
        Keys::Counted { count } => vec![key_count(spec, count)],
        Keys::FirstAndCounted { count } => vec![key_range(spec, 1, 1, 1), key_count(spec, count)],
        Keys::Found(_) => vec![key_spec(spec, 1, "unknown", Vec::new())],
    }
}

/// Keys from one argument to another. Counted from the first key; a negative last one stays a distance from the end.
fn key_range(spec: &Spec, first: usize, last: i32, step: usize) -> Reply {
    let last = if last < 0 { i64::from(last) } else { i64::from(last) - first as i64 };
    let range = vec![("lastkey", last.into()), ("keystep", step.into()), ("limit", Reply::Integer(0))];
    key_spec(spec, first, "range", range)
}

/// As many keys as the argument at `count` says.
fn key_count(spec: &Spec, count: usize) -> Reply {
    let one = Reply::Integer(1);
    let keys = vec![("keynumidx", Reply::Integer(0)), ("firstkey", one.clone()), ("keystep", one)];
    key_spec(spec, count, "keynum", keys)
}

fn key_spec(spec: &Spec, index: usize, kind: &str, find_keys: Vec<(&str, Reply)>) -> Reply {
    let map = |pairs: Vec<(&str, Reply)>| {
        Reply::Map(pairs.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
    };
    let typed = |kind: &str, spec: Reply| map(vec![("type", Reply::bulk(kind)), ("spec", spec)]);
    let begin = typed("index", map(vec![("index", index.into())]));
    let find = typed(kind, map(find_keys));
    map(vec![("flags", key_flags(spec, 0)), ("begin_search", begin), ("find_keys", find)])
}

/// How a command uses its key number `at`. Told from the command's flags, which do not say what becomes of old values: a
/// write counts as one that also reads, but where the name says otherwise.
pub(super) fn key_flags(spec: &Spec, at: usize) -> Reply {
    let flags: &[&'static str] = match (spec.name, at) {
        ("set" | "mset", _) | ("rename" | "renamenx" | "copy", 1) => &["OW", "update"],
        ("rename" | "renamenx", _) => &["RW", "access", "delete"],
        ("del" | "unlink", _) => &["RM", "delete"],
        _ if spec.group == Group::Pubsub => &["not_key"],
        _ if spec.flags.contains(Flags::WRITE) => &["RW", "access", "update"],
        _ => &["RO", "access"],
    };
    Reply::Set(flags.iter().map(|flag| Reply::Status((*flag).into())).collect())
}

/// The command that `words` are, and its keys among them.
pub(super) fn keys_of(words: &[Bytes]) -> Result<(&'static Spec, Vec<Bytes>), Error> {
    let spec = find(words).map_err(|_| Error::of("ERR Invalid command specified"))?;
    // The names of shard channels are hashed like keys, but are none.
    if matches!(spec.keys, Keys::None) || spec.group == Group::Pubsub {
        return Err(Error::of("ERR The command has no key arguments"));
    }
    if !spec.accepts(words.len()) {
        return Err(Error::of("ERR Invalid number of arguments specified for command"));
    }
    let keys: Vec<Bytes> =
        spec.keys.positions(words).into_iter().filter_map(|at| words.get(at).cloned()).collect();
    if keys.is_empty() && !spec.flags.contains(Flags::NO_MANDATORY_KEYS) {
        return Err(Error::of("ERR Invalid arguments specified for command"));
    }
    Ok((spec, keys))
}
