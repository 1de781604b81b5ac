//! Mutation tests of our Lua scripts: each is run with one small mutation at a time, on the node and not in the client, and
//! some stock scenario must yield an unexpected verdict.
//!
//! `cargo test --release --test script_mutants` tries them all and prints the score of each script; `-- fair/release` those of
//! one. A mistake that nothing can notice stands in [`UNNOTICED`] with the reason; one that is noticed after all must go from
//! there.

mod mistakes;

use libtest_mimic::{Arguments, Failed, Trial as Test};
use lockstorm::{
    library,
    run::Engine,
    runner::{Runner, Stop},
    scenario::{ScriptEdit, Source, parse},
    verdict::Match,
};
use mistakes::{Mistake, mistakes};

/// So many seeds of each storm. What a seed draws decides whether a mistake matters.
const SEEDS_OF_A_STORM: u64 = 40;

/// A script, and where it runs: the folders of stock scenarios, or single ones, that are tried in this order.
struct Script {
    name: &'static str,
    text: &'static str,
    noticed_by: &'static [&'static str],
}

macro_rules! script {
    ($name:literal, $path:literal, $noticed_by:expr) => {
        Script {
            name: $name,
            text: include_str!(concat!("../../client/src/", $path)),
            noticed_by: $noticed_by,
        }
    };
}

const PLAIN: &[&str] = &[
    "storm/nested_holds.toml",
    "storm/watchdog.toml",
    "storm/two_locks.toml",
    "wake/",
    "single/",
    "watchdog/",
];
const FAIR: &[&str] = &["storm/fair_queue.toml", "storm/fair_crashes.toml", "fair/"];
const FENCED: &[&str] = &["storm/fenced.toml", "storm/fenced_failover.toml", "single/"];
const RED: &[&str] = &["storm/redlock.toml", "redlock/"];
const RENEWAL: &[&str] = &["storm/two_locks.toml", "storm/watchdog.toml", "watchdog/"];

/// The scripts that scenarios run. No scenario frees a lock by force: `client/tests` does.
const SCRIPTS: &[Script] = &[
    script!("reentrant/acquire", "locks/reentrant/acquire.lua", PLAIN),
    script!("reentrant/release", "locks/reentrant/release.lua", PLAIN),
    script!("fenced/acquire", "locks/fenced/acquire.lua", FENCED),
    script!("fair/sweep", "locks/fair/sweep.lua", FAIR),
    script!("fair/acquire", "locks/fair/acquire.lua", FAIR),
    script!("fair/release", "locks/fair/release.lua", FAIR),
    script!("fair/abandon", "locks/fair/abandon.lua", FAIR),
    script!("redlock/extend", "locks/redlock/extend.lua", RED),
    script!("redlock/release", "locks/redlock/release.lua", RED),
    script!("renew", "renew/renew.lua", RENEWAL),
];

/// Mistakes that no scenario can notice, or none does yet: the script, the line with its mistake, and why.
const UNNOTICED: &[(&str, &str, &str)] = &[];

/// The stock scenarios of a list, with a script as it is or with a mistake in it.
fn sources(noticed_by: &[&str], edit: Option<&ScriptEdit>) -> Vec<Source> {
    let stock =
        noticed_by.iter().flat_map(|path| library::ALL.iter().filter(move |one| one.path.starts_with(path)));
    let parsed = stock.map(|stock| parse(stock.path, stock.text).expect("stock scenarios are valid"));
    parsed
        .map(|mut source| {
            for variant in &mut source.variants {
                for node in variant.scenario.node.values_mut() {
                    node.script_edit = edit.cloned();
                }
            }
            source
        })
        .collect()
}

/// Which run came out otherwise than expected, if one did.
fn unexpected(noticed_by: &[&str], edit: Option<&ScriptEdit>) -> Option<String> {
    sources(noticed_by, edit).into_iter().find_map(|source| {
        let is_storm = source.file.starts_with("storm/");
        let sources = [source];
        let trial = Runner::new(&sources)
            .seeds(is_storm.then_some(0..SEEDS_OF_A_STORM))
            .engine(Engine::Event)
            .stop(Stop::AtUnexpected);
        let judged = trial.run(&|_| {});
        let found = judged.iter().find(|one| !matches!(one.verdict(), Match::AsExpected));
        found.map(|one| trial.token(one.case))
    })
}

fn test(script: &Script) -> Result<(), Failed> {
    let Script { name, text, noticed_by } = script;
    if let Some(run) = unexpected(noticed_by, None) {
        return Err(format!("{run} is not as expected without any mistake").into());
    }
    let excepted =
        |mistake: &Mistake| UNNOTICED.iter().any(|(of, line, _)| of == name && *line == mistake.line);
    let (mut noticed, mut wrong) = (0, Vec::new());
    let all = mistakes(text);
    for mistake in &all {
        let edit = ScriptEdit { find: (*text).to_owned(), replace: mistake.text.clone() };
        match (unexpected(noticed_by, Some(&edit)), excepted(mistake)) {
            (Some(_), false) => noticed += 1,
            (Some(run), true) => wrong.push(format!("{run} notices {:?}", mistake.line)),
            (None, false) => {
                wrong.push(format!("nothing notices line {}: {:?}", mistake.number, mistake.line))
            }
            (None, true) => {}
        }
    }
    println!("{name}: {noticed} of {} mistakes noticed", all.len());
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn main() {
    let tests = SCRIPTS.iter().map(|script| Test::test(script.name, || test(script)));
    libtest_mimic::run(&Arguments::from_args(), tests.collect()).exit();
}
