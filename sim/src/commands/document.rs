//! The tables of the commands as a document: `sim/COMMANDS.md`.

use std::fmt::Write as _;

use super::{ALL, Spec, absent, difference};

/// The text before the tables.
const HEAD: &str = "\
# Commands

Printed from the tables by `cargo run -p lockstorm-sim --example commands > sim/COMMANDS.md`; `tests/tidy` fails when it is out
of date. Each command is compared with `redis-server` 7.0 by its transcript below `tests/parity`. *Since* is the version of Redis
that introduced it, *differs* lists the known differences with their reasons. The texts of every HELP differ.
";

/// The document.
pub fn markdown() -> String {
    let mut out = String::from(HEAD);
    // Writing to a String cannot fail.
    let specs = ALL.iter().copied().flatten();
    let (commands, subcommands) =
        specs.fold((0, 0), |(commands, all), spec| (commands + 1, all + spec.subcommands.len()));
    let _ = writeln!(out, "\n{commands} commands, {subcommands} subcommands.");
    let mut groups: Vec<&[&Spec]> = ALL.to_vec();
    groups.sort_by_key(|group| group.first().map(|spec| spec.group.name()));
    for group in groups {
        let Some(first) = group.first() else { continue };
        let _ = writeln!(out, "\n## {}\n", first.group.name());
        out.push_str("| command | since | what it does | differs |\n| --- | --- | --- | --- |\n");
        for spec in
            group.iter().copied().flat_map(|spec| [spec].into_iter().chain(spec.subcommands.iter().copied()))
        {
            let name = spec.name.replace('|', " ").to_uppercase();
            let differs = difference(spec.name).unwrap_or_default();
            let _ = writeln!(out, "| {name} | {} | {} | {differs} |", spec.since, spec.summary);
        }
    }
    out.push_str("\n## Absent\n\n| command | why |\n| --- | --- |\n");
    for (name, why) in absent() {
        let _ = writeln!(out, "| {} | {why} |", name.to_uppercase());
    }
    out
}
