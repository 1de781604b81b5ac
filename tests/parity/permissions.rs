//! Access lists on both servers: users with drawn rules, and the commands that they allow.

use std::fmt::Write as _;

use libtest_mimic::Failed;
use lockstorm_sim::{commands::ALL, env::Env};

use crate::{
    PATIENCE,
    servers::{Play, REFERENCE, Real, Received, Simulated},
    wire::{Wire, command, permits_in_order},
};

/// Rules, or prefixes that a name may follow.
const RULES: &[&str] = &[
    "on",
    "off",
    "nopass",
    "resetpass",
    "reset",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "clearselectors",
    "sanitize-payload",
    "skip-sanitize-payload",
    ">a",
    ">b",
    "<a",
    "~*",
    "~a*",
    "~b",
    "%R~c*",
    "%W~c*",
    "%RW~d",
    "%R~*",
    "&*",
    "&a*",
    "&b",
    "+@all",
    "-@all",
    "+@read",
    "-@read",
    "+@write",
    "-@write",
    "+@dangerous",
    "-@dangerous",
    "+@string",
    "-@hash",
    "+@fast",
    "-@slow",
    "+@pubsub",
    "-@admin",
    "+@connection",
    "-@keyspace",
    "+select|0",
    "+@scripting",
    "-@sortedset",
    "+get|x",
    "()",
    "(+get ~a*)",
    "(%W~c* +@write &a*)",
    "(+@all -set ~*)",
    "+nosuch",
    "nonsense",
    "",
];

/// Words for arguments.
const WORDS: &[&str] =
    &["a", "aa", "b", "c", "cc", "d", "x", "0", "1", "2", "STORE", "GET", "KEYS", "STREAMS"];

/// The number of users, and of commands that each is asked about.
const USERS: usize = 150;
const ASKED: usize = 60;

/// Compares the permissions that both servers derive from the same rules; the error lists all
/// differences.
pub(crate) fn compare() -> Result<(), Failed> {
    let (mut real, mut own) = (Real::start(), Simulated::start());
    let mut prng = Env::new(2);
    let top = ALL.iter().copied().flatten().copied();
    let names: Vec<&str> = top
        .flat_map(|spec| std::iter::once(spec).chain(spec.subcommands.iter().copied()))
        .filter(|spec| spec.is_in(REFERENCE))
        .map(|spec| spec.name)
        .collect();
    let mut differences = String::new();
    let mut both = |words: &[String]| {
        let bytes = command(&words.iter().map(|word| word.clone().into_bytes()).collect::<Vec<_>>());
        real.send("", &bytes);
        own.send("", &bytes);
        let (theirs, ours) = (real.receive("", PATIENCE), own.receive("", PATIENCE));
        let (theirs, ours) = (shown(theirs, &words[1]), shown(ours, &words[1]));
        if ours != theirs {
            let _ = writeln!(differences, "{words:?}\n  answers {ours}\n  the real one {theirs}");
        }
    };
    for _ in 0..USERS {
        let user = ["u1", "u2", "u3"][prng.random_below(3)].to_owned();
        let mut words = vec!["ACL".to_owned(), "SETUSER".into(), user.clone()];
        for _ in 0..prng.random_below(6) {
            words.push(match prng.random_below(3) {
                0 => format!("+{}", names[prng.random_below(names.len())]),
                1 if prng.random_below(2) == 0 => format!("-{}", names[prng.random_below(names.len())]),
                _ => RULES[prng.random_below(RULES.len())].into(),
            });
        }
        both(&words);
        both(&["ACL".into(), "GETUSER".into(), user.clone()]);
        for _ in 0..ASKED {
            let name = names[prng.random_below(names.len())];
            let mut words = vec!["ACL".to_owned(), "DRYRUN".into(), user.clone()];
            words.extend(name.split('|').map(str::to_owned));
            words.extend((0..prng.random_below(5)).map(|_| WORDS[prng.random_below(WORDS.len())].to_owned()));
            both(&words);
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(format!("\n{differences}").into()) }
}

/// A reply on one line. In GETUSER a real server does not order the rules for single commands.
fn shown(received: Received, subcommand: &str) -> String {
    let Received::Reply(wire) = received else { return format!("{received:?}") };
    let mut lines = Vec::new();
    wire.lines(0, &mut lines);
    match wire {
        Wire::Items(..) if subcommand == "GETUSER" => {
            lines.iter().map(|line| permits_in_order(line)).collect::<Vec<_>>().join(" / ")
        }
        _ => lines.join(" "),
    }
}
