//! The tables of the commands as a document: `sim/COMMANDS.md`.

use std::fmt::Write as _;

use super::{ALL, Spec, absent, difference, differences::of_generations, sentinel};
use crate::generation::{FEATURES, Generation, Since};

/// The text before the tables.
const HEAD: &str = "\
# Commands

Printed from the tables by `cargo run -p lockstorm-sim --example commands > sim/COMMANDS.md`; `tests/tidy` fails when it is out
of date. A node is Redis 8.2 unless its configuration names another generation. Each command is compared with `redis-server` 7.0.15 by
its transcript below `tests/parity`, which the simulator plays as that generation, and what differs between generations of servers by
those below `tests/parity/generations`. *Since* is the release of Redis that introduced it, or of Valkey, *differs* lists the known
differences with their reasons, measured against 7.0.15. The texts of every HELP differ.
";

/// Writes the table of a group of commands.
fn table(out: &mut String, title: &str, specs: &[&Spec]) {
    let _ = writeln!(out, "\n## {title}\n");
    out.push_str("| command | since | what it does | differs |\n| --- | --- | --- | --- |\n");
    let all = specs.iter().flat_map(|spec| [*spec].into_iter().chain(spec.subcommands.iter().copied()));
    for spec in all {
        let name = spec.name.replace('|', " ").to_uppercase();
        let differs = difference(spec.name).unwrap_or_default();
        let _ = writeln!(out, "| {name} | {} | {} | {differs} |", spec.since, spec.summary);
    }
}

/// Writes the features and commands that not every generation of servers has.
fn generations(out: &mut String) {
    let names = Generation::ALL.map(Generation::name).join(" | ");
    let rule = " :-: |".repeat(Generation::ALL.len());
    let _ = writeln!(
        out,
        "\n## By generation\n\n`lockstorm serve --as` and `server` of a scenario's node choose one.\n"
    );
    let _ = writeln!(out, "| feature or command | {names} |\n| --- |{rule}");
    let mut row = |what: &str, since: Since| {
        let has = Generation::ALL.map(|generation| if since.includes(generation) { "yes" } else { "" });
        if has.contains(&"") {
            let _ = writeln!(out, "| {what} | {} |", has.join(" | "));
        }
    };
    for (_, since, what) in FEATURES {
        row(what, *since);
    }
    let specs = ALL.iter().copied().flatten();
    for spec in specs.flat_map(|spec| [*spec].into_iter().chain(spec.subcommands.iter().copied())) {
        row(&spec.name.replace('|', " ").to_uppercase(), Since::parse(spec.since));
    }
    out.push_str("\nKnown differences from servers of a generation, besides those in the tables above:\n\n");
    for (generation, text, missing) in of_generations() {
        let _ = writeln!(out, "* {generation}: {text} Missing: {}.", missing.join(", "));
    }
}

/// Returns a table of all commands as Markdown, with the differences from Redis.
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
        table(&mut out, first.group.name(), group);
    }
    table(&mut out, "of a Sentinel", sentinel::ALL);
    let shared: Vec<String> = sentinel::shared().map(str::to_uppercase).collect();
    let _ = writeln!(out, "\nA Sentinel also knows {}.", shared.join(", "));
    generations(&mut out);
    out.push_str("\n## Absent\n\n| command | why |\n| --- | --- |\n");
    for (name, why) in absent() {
        let _ = writeln!(out, "| {} | {why} |", name.to_uppercase());
    }
    out
}
