//! The tables of the commands against COMMAND INFO of the real server: arity, flags, positions of the keys.

use std::fmt::Write as _;

use libtest_mimic::Failed;
use lockstorm_sim::commands::{ALL, Flags, Keys, Spec};

use crate::{
    PATIENCE,
    servers::{Play, Real, Received},
    transcript::command,
    wire::Wire,
};

/// Compares every specification with the real server's; every difference is in the error.
pub(crate) fn compare() -> Result<(), Failed> {
    let mut server = Real::start();
    let mut differences = String::new();
    for spec in ALL.iter().copied().flatten() {
        server.send("", &command(&[b"COMMAND".to_vec(), b"INFO".to_vec(), spec.name.into()]));
        let Received::Reply(Wire::Items(_, infos)) = server.receive("", PATIENCE) else {
            return Err("COMMAND INFO answers no array".into());
        };
        one(spec, infos.first(), &mut differences);
    }
    if differences.is_empty() { Ok(()) } else { Err(format!("\n{differences}").into()) }
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
    differ("arity", spec.arity.to_string(), integer(&info[1]).to_string());
    differ("flags", sorted(spec.flags.names().collect()), sorted(items(&info[2]).iter().map(text).collect()));
    let theirs = [&info[3], &info[4], &info[5]].map(integer);
    match spec.keys {
        Keys::None => differ("first key, last key and step", format!("{:?}", [0; 3]), format!("{theirs:?}")),
        Keys::Range { first, last, step } => {
            let ours = [first as i64, last.into(), step as i64];
            differ("first key, last key and step", format!("{ours:?}"), format!("{theirs:?}"));
        }
        // The three numbers say where the first key is, the flag that there are more.
        Keys::FirstAndCounted { .. } => {
            differ("first key, last key and step", format!("{:?}", [1; 3]), format!("{theirs:?}"));
            differ("movablekeys", spec.flags.contains(Flags::MOVABLEKEYS).to_string(), "true".into());
        }
        // Three numbers cannot say where these are; that they cannot is the flag, which was compared.
        Keys::Counted { .. } | Keys::Found(_) => {
            differ("movablekeys", spec.flags.contains(Flags::MOVABLEKEYS).to_string(), "true".into());
        }
    }
    for subcommand in spec.subcommands {
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

fn sorted(mut names: Vec<String>) -> String {
    names.sort();
    names.join(" ")
}
