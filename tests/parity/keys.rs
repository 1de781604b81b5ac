//! The keys among a command's arguments, and its access to them: every command with drawn
//! arguments, on both servers.

use std::fmt::Write as _;

use libtest_mimic::Failed;
use lockstorm_sim::{commands::ALL, env::Env};

use crate::{
    PATIENCE,
    servers::{Play, REFERENCE, Real, Received, Simulated},
    wire::command,
};

/// Words with a meaning to some command's search for keys.
const WORDS: &[&str] = &[
    "a",
    "b",
    "c",
    "d",
    "",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "x",
    "STORE",
    "storedist",
    "GET",
    "BY",
    "LIMIT",
    "KEYS",
    "keys",
    "STREAMS",
    "BLOCK",
    "COUNT",
    "GROUP",
    "NOACK",
    "SET",
    "INCRBY",
    "OVERFLOW",
    "AUTH",
    "AUTH2",
    "COPY",
    "REPLACE",
    "9999999999999999999",
];

/// The number of drawn argument lists for each command.
const DRAWS: usize = 40;

/// Compares COMMAND GETKEYSANDFLAGS for every command and subcommand; the error lists all
/// differences.
pub(crate) fn compare() -> Result<(), Failed> {
    let (mut real, mut own) = (Real::start(), Simulated::start());
    let mut prng = Env::new(1);
    let mut differences = String::new();
    for spec in ALL.iter().copied().flatten().filter(|spec| spec.is_in(REFERENCE)) {
        let subcommands = spec.subcommands_in(REFERENCE).map(|subcommand| subcommand.name);
        for name in std::iter::once(spec.name).chain(subcommands) {
            for _ in 0..DRAWS {
                let mut words: Vec<Vec<u8>> = vec![b"COMMAND".to_vec(), b"GETKEYSANDFLAGS".to_vec()];
                words.extend(name.split('|').map(|word| word.as_bytes().to_vec()));
                let drawn = prng.random_below(9);
                words.extend((0..drawn).map(|_| WORDS[prng.random_below(WORDS.len())].into()));
                let bytes = command(&words);
                real.send("", &bytes);
                own.send("", &bytes);
                let (theirs, ours) = (real.receive("", PATIENCE), own.receive("", PATIENCE));
                if ours == theirs {
                    continue;
                }
                let line: Vec<_> = words[2..].iter().map(|word| String::from_utf8_lossy(word)).collect();
                let _ = writeln!(
                    differences,
                    "{line:?}\n  is {}\n  the real one's {}",
                    shown(&ours),
                    shown(&theirs)
                );
            }
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(format!("\n{differences}").into()) }
}

fn shown(received: &Received) -> String {
    let Received::Reply(wire) = received else { return format!("{received:?}") };
    let mut lines = Vec::new();
    wire.lines(0, &mut lines);
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
