//! Compares the command tables with the real server's COMMAND INFO: arity, flags, positions of
//! keys, categories, tips, key specifications.

use std::fmt::Write as _;

use libtest_mimic::Failed;
use lockstorm_sim::commands::{ALL, Flags, Keys, Spec, absent};

use crate::{
    PATIENCE,
    servers::{Play, REFERENCE, Real, Received, Simulated},
    wire::{Wire, command},
};

/// Compares every specification with the real server's; the error lists all differences.
pub(crate) fn compare() -> Result<(), Failed> {
    let (mut real, mut own) = (Real::start(), Simulated::start());
    for server in [&mut real as &mut dyn Play, &mut own] {
        server.send("3", b"HELLO 3\r\n");
        server.receive("3", PATIENCE);
    }
    let mut differences = String::new();
    let has = |spec: &&Spec| spec.is_in(REFERENCE);
    for spec in ALL.iter().copied().flatten().filter(|spec| has(spec)) {
        let theirs = info(&mut real, spec)?;
        one(spec, theirs.first(), &mut differences);
        if let (Some(ours), Some(theirs)) = (info(&mut own, spec)?.first(), theirs.first()) {
            replies(ours, theirs, &mut differences);
        }
        let (ours, theirs) = (docs(&mut own, spec)?, docs(&mut real, spec)?);
        if ours != theirs {
            let _ =
                writeln!(differences, "{}: COMMAND DOCS is {ours}, the real one's is {theirs}", spec.name);
        }
    }
    real.send("", &command(&[b"COMMAND".to_vec(), b"LIST".to_vec()]));
    let Received::Reply(Wire::Items(_, names)) = real.receive("", PATIENCE) else {
        return Err("COMMAND LIST answers no array".into());
    };
    let ours = || ALL.iter().copied().flatten().copied();
    for name in names.iter().map(text) {
        let known =
            ours().any(|spec| spec.name == name || spec.subcommands.iter().any(|sub| sub.name == name));
        if !known && !absent().any(|(absent, _)| absent == name) {
            let _ = writeln!(differences, "{name}: neither there nor said to be absent");
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(format!("\n{differences}").into()) }
}

fn info(server: &mut impl Play, spec: &Spec) -> Result<Vec<Wire>, Failed> {
    server.send("", &command(&[b"COMMAND".to_vec(), b"INFO".to_vec(), spec.name.into()]));
    match server.receive("", PATIENCE) {
        Received::Reply(Wire::Items(_, infos)) => Ok(infos),
        _ => Err("COMMAND INFO answers no array".into()),
    }
}

/// The reply of COMMAND DOCS without the parts that each server words in its own way or omits.
fn docs(server: &mut impl Play, spec: &Spec) -> Result<String, Failed> {
    server.send("3", &command(&[b"COMMAND".to_vec(), b"DOCS".to_vec(), spec.name.into()]));
    let Received::Reply(mut docs) = server.receive("3", PATIENCE) else {
        return Err("COMMAND DOCS answers nothing".into());
    };
    without_words(&mut docs);
    let mut lines = Vec::new();
    docs.lines(0, &mut lines);
    Ok(lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" "))
}

/// The first formula of a text such as `O(log(N)+M) for ...`; empty if it has none.
fn formula(text: &str) -> String {
    let Some(begin) = text.find("O(") else { return String::new() };
    let mut open = 0;
    let end = text[begin..].find(|sign| {
        open += i32::from(sign == '(') - i32::from(sign == ')');
        open == 0 && sign == ')'
    });
    text[begin..=begin + end.unwrap_or(0)].to_owned()
}

/// Removes sentences, and sorts subcommands.
fn without_words(wire: &mut Wire) {
    let Wire::Items(_, items) = wire else { return };
    let mut at = 0;
    while at + 1 < items.len() {
        let is = |word: &str| items[at] == Wire::Bulk(word.as_bytes().to_vec());
        if is("summary") {
            items.drain(at..at + 2);
            continue;
        }
        if is("complexity") {
            items[at + 1] = Wire::Bulk(formula(&text(&items[at + 1])).into());
        } else if is("history")
            && let Wire::Items(_, entries) = &mut items[at + 1]
        {
            for entry in entries {
                let Wire::Items(_, entry) = entry else { panic!("no entry of a history: {entry:?}") };
                entry.pop();
            }
        }
        if items[at] == Wire::Bulk(b"subcommands".to_vec())
            && let Wire::Items(_, subcommands) = &mut items[at + 1]
        {
            let mut pairs: Vec<(Wire, Wire)> =
                subcommands.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
            pairs.sort_by_key(|(name, _)| text(name));
            *subcommands = pairs.into_iter().flat_map(|(name, about)| [name, about]).collect();
        }
        at += 1;
    }
    items.iter_mut().for_each(without_words);
}

/// Compares the replies themselves: categories, tips and key specifications of a command and of its
/// subcommands.
fn replies(ours: &Wire, theirs: &Wire, differences: &mut String) {
    let (Wire::Items(_, ours), Wire::Items(_, theirs)) = (ours, theirs) else { return };
    let name = text(&ours[0]);
    let compared = [
        (2, "flags"),
        (3, "first key"),
        (4, "last key"),
        (5, "step"),
        (6, "categories"),
        (7, "tips"),
        (8, "key specifications"),
    ];
    for (at, what) in compared {
        let (ours, theirs) = (shown(&ours[at]), shown(&theirs[at]));
        if ours != theirs {
            let _ = writeln!(differences, "{name}: {what} are {ours}, the real one's are {theirs}");
        }
    }
    for ours in items(&ours[9]) {
        let same = |theirs: &&Wire| text(&items(theirs)[0]) == text(&items(ours)[0]);
        if let Some(theirs) = items(&theirs[9]).iter().find(same) {
            replies(ours, theirs, differences);
        }
    }
}

/// A reply on one line, without the notes of key specifications, which each server words in its own
/// way.
fn shown(wire: &Wire) -> String {
    let Wire::Items(_, items) = wire else {
        return match wire {
            Wire::Integer(n) => n.to_string(),
            other => text(other),
        };
    };
    let items = match &items[..] {
        [Wire::Bulk(notes), _, rest @ ..] if notes == b"notes" => rest,
        all => all,
    };
    format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" "))
}

fn one(spec: &Spec, info: Option<&Wire>, differences: &mut String) {
    let Some(Wire::Items(_, info)) = info else {
        let _ = writeln!(differences, "{}: the real server has no such command", spec.name);
        return;
    };
    let mut differ = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            let _ = writeln!(differences, "{}: {what} is {ours}, the real one's is {theirs}", spec.name);
        }
    };
    differ("arity", spec.arity_in(REFERENCE).to_string(), integer(&info[1]).to_string());
    let theirs = [&info[3], &info[4], &info[5]].map(integer);
    match spec.keys {
        Keys::None => differ("first key, last key and step", format!("{:?}", [0; 3]), format!("{theirs:?}")),
        Keys::Range { first, last, step } => {
            let ours = [first as i64, last.into(), step as i64];
            differ("first key, last key and step", format!("{ours:?}"), format!("{theirs:?}"));
        }
        // The three numbers describe the first key; the flag shows that there are more.
        Keys::FirstAndCounted { .. } => {
            differ("first key, last key and step", format!("{:?}", [1; 3]), format!("{theirs:?}"));
            differ("movablekeys", spec.flags.contains(Flags::MOVABLEKEYS).to_string(), "true".into());
        }
        // Three numbers cannot describe these positions; the flag compared here says so.
        Keys::Counted { .. } | Keys::Found(_) => {
            differ("movablekeys", spec.flags.contains(Flags::MOVABLEKEYS).to_string(), "true".into());
        }
    }
    for subcommand in spec.subcommands_in(REFERENCE) {
        let theirs = items(&info[9]).iter().find(|info| text(&items(info)[0]) == subcommand.name);
        one(subcommand, theirs, differences);
    }
}

fn items(wire: &Wire) -> &[Wire] {
    if let Wire::Items(_, items) = wire { items } else { panic!("no array: {wire:?}") }
}

fn text(wire: &Wire) -> String {
    match wire {
        Wire::Status(bytes) | Wire::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("no text: {other:?}"),
    }
}

fn integer(wire: &Wire) -> i64 {
    if let Wire::Integer(n) = wire { *n } else { panic!("no integer: {wire:?}") }
}
