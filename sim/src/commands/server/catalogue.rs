//! Replies about the command tables, for COMMAND.

use bytes::Bytes;

use crate::{
    commands::{
        ALL, Begin, Categories, Error, Find, Flags, KeyFlags, KeySpec, Keys, Spec, docs, find_for, has_keys,
        key_specs, key_uses, sentinel, tips::tips,
    },
    generation::{Feature, Generation},
    node::Node,
    resp::Reply,
};

/// Returns every command that this node can run, including renamed ones, without subcommands.
pub(super) fn all(node: &Node) -> Box<dyn Iterator<Item = &'static Spec> + '_> {
    if node.sentinel.is_some() {
        return Box::new(sentinel::known());
    }
    let renames = &node.config.security.renames;
    let is_gone = |spec: &Spec| renames.iter().any(|(old, new)| old == spec.name && new.is_empty());
    Box::new(
        ALL.iter()
            .copied()
            .flatten()
            .copied()
            .filter(move |spec| spec.is_in(node.config.generation) && !is_gone(spec)),
    )
}

/// Finds a command by its name on this node, or a subcommand by a name such as `config|get`.
pub(super) fn by_full_name(node: &Node, name: &[u8]) -> Option<&'static Spec> {
    let words: Vec<Bytes> = name.splitn(2, |byte| *byte == b'|').map(Bytes::copy_from_slice).collect();
    find_for(node, &words).ok().filter(|spec| spec.name.contains('|') == (words.len() == 2))
}

/// Describes a command like COMMAND INFO.
pub(super) fn describe(generation: Generation, spec: &'static Spec) -> Reply {
    let (first, last, step) = match spec.keys {
        Keys::Range { first, last, step } => (first as i64, i64::from(last), step as i64),
        Keys::FirstAndCounted { .. } => (1, 1, 1),
        Keys::Found(_) => first_range(key_specs(spec)),
        Keys::None | Keys::Counted { .. } => (0, 0, 0),
    };
    let words =
        |words: Vec<String>| Reply::Set(words.into_iter().map(|word| Reply::Status(word.into())).collect());
    let subcommands: Vec<Reply> =
        spec.subcommands_in(generation).map(|sub| describe(generation, sub)).collect();
    Reply::Array(vec![
        Reply::bulk(spec.name),
        Reply::Integer(arity(generation, spec).into()),
        words(flags(generation, spec)),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        words(Categories::of(spec).names().map(|name| format!("@{name}")).collect()),
        Reply::Set(tips(spec).iter().map(Reply::bulk).collect()),
        Reply::Set(key_specs(spec).iter().map(key_spec).collect()),
        if subcommands.is_empty() { Reply::Set(subcommands) } else { Reply::Array(subcommands) },
    ])
}

/// Returns the arity in a generation, also of the commands of Sentinel, which check theirs
/// themselves.
fn arity(generation: Generation, spec: &Spec) -> i32 {
    match spec.name {
        "sentinel|failover" if !generation.has(Feature::CoordinatedFailover) => 3,
        _ => spec.arity_in(generation),
    }
}

/// Returns the first key, the last and the step, for clients that do not read the specifications.
/// They come from the first specification, if it has them, and are 0 otherwise.
fn first_range(specs: &[KeySpec]) -> (i64, i64, i64) {
    match specs.first() {
        Some(KeySpec { begin: Begin::Index(at), find: Find::Range { last, step, .. }, .. }) => {
            let (at, last) = (*at as i64, i64::from(*last));
            (at, if last < 0 { last } else { at + last }, *step as i64)
        }
        _ => (0, 0, 0),
    }
}

/// Returns the name and the documentation of a command, like COMMAND DOCS.
pub(super) fn document(generation: Generation, spec: &'static Spec) -> (Reply, Reply) {
    let mut about = vec![
        (Reply::bulk("summary"), Reply::bulk(spec.summary)),
        (Reply::bulk("since"), Reply::bulk(spec.since(generation))),
        (Reply::bulk("group"), Reply::bulk(spec.group.name())),
    ];
    about.extend(docs::complexity(spec).map(|complexity| (Reply::bulk("complexity"), complexity)));
    let flag = |flag: &'static str| (Reply::bulk("doc_flags"), Reply::Set(vec![Reply::Status(flag.into())]));
    if let Some((since, by)) = replaced(spec) {
        about.push(flag("deprecated"));
        about.push((Reply::bulk("deprecated_since"), Reply::bulk(since)));
        about.push((Reply::bulk("replaced_by"), Reply::bulk(by)));
    }
    if let "debug" | "pfdebug" | "pfselftest" | "replconf" | "restore-asking" = spec.name {
        about.push(flag("syscmd"));
    }
    about.extend(docs::history(spec).map(|history| (Reply::bulk("history"), history)));
    about.extend(docs::arguments(spec).map(|arguments| (Reply::bulk("arguments"), arguments)));
    if !spec.subcommands.is_empty() {
        let subcommands = spec.subcommands_in(generation).map(|sub| document(generation, sub)).collect();
        about.push((Reply::bulk("subcommands"), Reply::Map(subcommands)));
    }
    (Reply::bulk(spec.name), Reply::Map(about))
}

/// Returns the version that deprecated a command, and its replacement.
fn replaced(spec: &Spec) -> Option<(&'static str, &'static str)> {
    Some(match spec.name {
        "brpoplpush" => ("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments"),
        "cluster|slaves" => ("5.0.0", "`CLUSTER REPLICAS`"),
        "cluster|slots" => ("7.0.0", "`CLUSTER SHARDS`"),
        "georadius" => ("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"),
        "georadius_ro" => ("6.2.0", "`GEOSEARCH` with the `BYRADIUS` argument"),
        "georadiusbymember" => {
            ("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` and `FROMMEMBER` arguments")
        }
        "georadiusbymember_ro" => ("6.2.0", "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"),
        "getset" => ("6.2.0", "`SET` with the `!GET` argument"),
        "hmset" => ("4.0.0", "`HSET` with multiple field-value pairs"),
        "rpoplpush" => ("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments"),
        "slaveof" => ("5.0.0", "`REPLICAOF`"),
        "substr" => ("2.0.0", "`GETRANGE`"),
        "zrangebylex" => ("6.2.0", "`ZRANGE` with the `BYLEX` argument"),
        "zrangebyscore" => ("6.2.0", "`ZRANGE` with the `BYSCORE` argument"),
        "zrevrange" => ("6.2.0", "`ZRANGE` with the `REV` argument"),
        "zrevrangebylex" => ("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments"),
        "zrevrangebyscore" => ("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments"),
        _ => return None,
    })
}

fn flags(generation: Generation, spec: &Spec) -> Vec<String> {
    let is_free = spec.flags.contains(Flags::BLOCKING) && generation.has(Feature::BlockingInScripts);
    let movable = matches!(spec.keys, Keys::Counted { .. } | Keys::FirstAndCounted { .. } | Keys::Found(_));
    let own = spec.flags_in(generation);
    let flags = if movable { own | Flags::MOVABLEKEYS } else { own };
    flags.difference(if is_free { Flags::NOSCRIPT } else { Flags::empty() }).names().collect()
}

fn key_spec(keys: &KeySpec) -> Reply {
    let map = |pairs: Vec<(&str, Reply)>| {
        Reply::Map(pairs.into_iter().map(|(name, value)| (Reply::bulk(name), value)).collect())
    };
    let typed =
        |kind: &str, spec: Vec<(&str, Reply)>| map(vec![("type", Reply::bulk(kind)), ("spec", map(spec))]);
    let begin = match keys.begin {
        Begin::Index(at) => typed("index", vec![("index", at.into())]),
        Begin::Keyword(word, from) => {
            typed("keyword", vec![("keyword", Reply::bulk(word)), ("startfrom", i64::from(from).into())])
        }
        Begin::Unknown => typed("unknown", Vec::new()),
    };
    let find = match keys.find {
        Find::Range { last, step, limit } => typed(
            "range",
            vec![("lastkey", i64::from(last).into()), ("keystep", step.into()), ("limit", limit.into())],
        ),
        Find::Counted { step } => typed(
            "keynum",
            vec![
                ("keynumidx", Reply::Integer(0)),
                ("firstkey", Reply::Integer(1)),
                ("keystep", Reply::Integer(step as i64)),
            ],
        ),
        Find::Unknown => typed("unknown", Vec::new()),
    };
    let notes = (!keys.notes.is_empty()).then(|| ("notes", Reply::bulk(keys.notes)));
    let rest = [("flags", key_flags(keys.flags)), ("begin_search", begin), ("find_keys", find)];
    map(notes.into_iter().chain(rest).collect())
}

/// Replies with the effects on a key, like COMMAND.
pub(super) fn key_flags(flags: KeyFlags) -> Reply {
    Reply::Set(flags.names().map(|name| Reply::Status(name.into())).collect())
}

/// Returns the keys in a command's words.
pub(super) fn keys_of(node: &Node, words: &[Bytes]) -> Result<Vec<(Bytes, KeyFlags)>, Error> {
    let spec = find_for(node, words).map_err(|_| Error::of("ERR Invalid command specified"))?;
    if !has_keys(spec) {
        return Err(Error::of("ERR The command has no key arguments"));
    }
    if !spec.accepts(node.config.generation, words.len()) {
        return Err(Error::of("ERR Invalid number of arguments specified for command"));
    }
    let uses = key_uses(spec, words);
    if uses.is_empty() && !spec.flags.contains(Flags::NO_MANDATORY_KEYS) {
        return Err(Error::of("ERR Invalid arguments specified for command"));
    }
    Ok(uses.into_iter().map(|key| (words[key.at].clone(), key.flags)).collect())
}
