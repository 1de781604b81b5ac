//! Lists against folders: what is in a folder is in its list, and the other way round.

use std::collections::BTreeSet;

use lockstorm::{checker, fault, library, scenario::SubjectName, subject};
use lockstorm_sim::commands::{ALL, Spec};

use crate::sources;

/// Every command and subcommand.
fn specs() -> Vec<&'static Spec> {
    ALL.iter()
        .copied()
        .flatten()
        .flat_map(|spec| std::iter::once(*spec).chain(spec.subcommands.iter().copied()))
        .collect()
}

/// What a command is called as a file: `config|get` is in `config_get`.
fn as_file(name: &str) -> String {
    name.replace(['|', '-'], "_")
}

/// The folder of a command's group.
fn group(spec: &Spec) -> String {
    as_file(spec.group.name())
}

#[test]
fn each_command_has_its_file_and_each_file_its_command() {
    let listed: BTreeSet<String> = specs()
        .iter()
        .map(|spec| format!("sim/src/commands/{}/{}.rs", group(spec), as_file(spec.name)))
        .collect();
    let files: BTreeSet<String> = sources::below("sim/src/commands", &[".rs"])
        .into_iter()
        .filter(|source| source.text.contains("const SPEC: Spec"))
        .map(|source| source.path)
        .collect();
    let unlisted: Vec<&String> = files.difference(&listed).collect();
    let missing: Vec<&String> = listed.difference(&files).collect();
    assert!(unlisted.is_empty() && missing.is_empty(), "in no list: {unlisted:?}\nhas no file: {missing:?}");
}

#[test]
fn each_group_is_sorted_by_name() {
    for group in ALL {
        assert!(
            group.is_sorted_by_key(|spec| spec.name),
            "{:?}",
            group.iter().map(|spec| spec.name).collect::<Vec<_>>()
        );
    }
}

/// A subcommand may share the transcript of its container, when it is played there.
#[test]
fn each_command_has_a_transcript() {
    let mut missing = Vec::new();
    for spec in specs() {
        let folder = format!("tests/parity/{}", group(spec));
        let names = sources::names_in(&folder, ".redis");
        let own = names.iter().any(|name| as_file(name) == as_file(spec.name));
        let shared = || {
            let (container, subcommand) = spec.name.split_once('|')?;
            let names = sources::names_in(&folder, ".redis").into_iter().filter(|name| name == container);
            let played = format!("{container} {subcommand}");
            names
                .map(|name| sources::read(&format!("{folder}/{name}.redis")).to_lowercase())
                .find(|text| text.contains(&played))
        };
        if !own && shared().is_none() {
            missing.push(spec.name);
        }
    }
    assert!(missing.is_empty(), "no transcript under tests/parity plays {missing:?}");
}

#[test]
fn each_fault_has_its_file_and_each_file_its_fault() {
    let listed: Vec<&str> = fault::LIST.iter().map(|(name, _)| *name).collect();
    assert!(listed.is_sorted(), "{listed:?}");
    let files: Vec<String> = sources::below("scenarios/src/fault", &[".rs"])
        .into_iter()
        .filter(|source| source.text.contains("const ABOUT: &str"))
        .map(|source| stem(&source.path))
        .collect();
    assert_eq!(listed, files);
}

#[test]
fn each_checker_has_its_file_and_each_file_its_checker() {
    // The four layers come first in the list, so only the sets are compared.
    let listed: BTreeSet<String> = checker::LIST.iter().map(|checker| as_file(checker.name)).collect();
    let files: BTreeSet<String> = sources::below("scenarios/src/checker", &[".rs"])
        .into_iter()
        .filter(|source| source.text.contains(": Checker ="))
        // l1_server is the file of l1.
        .map(|source| stem(&source.path))
        .map(|name| {
            if name.starts_with('l') && name.as_bytes()[1].is_ascii_digit() {
                name[..2].to_owned()
            } else {
                name
            }
        })
        .collect();
    assert_eq!(listed, files);
}

#[test]
fn each_stock_scenario_is_embedded() {
    let listed: Vec<&str> = library::ALL.iter().map(|stock| stock.path).collect();
    let files: Vec<String> = sources::below("scenarios/files", &[".toml"])
        .into_iter()
        .map(|source| source.path.trim_start_matches("scenarios/files/").to_owned())
        .collect();
    assert_eq!(listed, files);
}

#[test]
fn each_subject_says_what_it_is() {
    let mut lines = BTreeSet::new();
    for &name in SubjectName::ALL {
        let (about, _) = subject::of(name);
        assert!(
            !about.is_empty() && lines.insert(about),
            "{name:?} is described as another one is: {about:?}"
        );
    }
}

#[test]
fn each_subcommand_has_its_file() {
    let root = sources::read("scenarios/src/cli/mod.rs");
    for variant in ["claims", "run", "replay", "twice", "check", "list", "schema", "new", "serve"] {
        assert!(root.contains(&format!("mod {variant};")), "{variant}");
        assert!(
            sources::names_in("scenarios/src/cli", ".rs").iter().any(|name| name == variant),
            "{variant}"
        );
    }
}

fn stem(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rs").to_owned()
}
