//! Checks that lists and folders agree: every entry has its file, and every file its entry.

use std::collections::BTreeSet;

use lockstorm::{
    file::{
        fault, library,
        scenario::{Step, TABLE, Workload},
    },
    judge::checker,
};
use lockstorm_sim::{
    commands::{ALL, SENTINEL, Spec},
    generation::Generation,
};

use crate::sources;

/// Every command and subcommand.
fn specs() -> Vec<&'static Spec> {
    ALL.iter()
        .copied()
        .flatten()
        .flat_map(|spec| std::iter::once(*spec).chain(spec.subcommands.iter().copied()))
        .collect()
}

/// The file name of a command: `config|get` is in `config_get`.
fn as_file(name: &str) -> String {
    name.replace(['|', '-'], "_")
}

/// The folder of a command's group.
fn group(spec: &Spec) -> String {
    as_file(spec.group.name())
}

#[test]
fn each_command_has_its_file_and_each_file_its_command() {
    let listed = specs().into_iter().map(|spec| (group(spec), spec));
    // Commands that a Sentinel executes in its own way are in one folder, whatever their group.
    let of_sentinel =
        SENTINEL.iter().flat_map(|spec| [*spec].into_iter().chain(spec.subcommands.iter().copied()));
    let listed = listed.chain(of_sentinel.map(|spec| ("sentinel".to_owned(), spec)));
    let listed: BTreeSet<String> =
        listed.map(|(folder, spec)| format!("sim/src/commands/{folder}/{}.rs", as_file(spec.name))).collect();
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

/// The transcript of a command's or subcommand's name sends it and expects a reply; the transcript
/// of a subcommand's container may do that instead. Commands that Redis 7.0 lacks are in the
/// transcripts of other generations.
#[test]
fn each_command_has_a_transcript() {
    let mut missing = Vec::new();
    let of_generations = sources::below("tests/parity/generations", &[".redis"]);
    for spec in specs() {
        if !spec.is_in(Generation::Redis70) {
            if !of_generations.iter().any(|source| plays(&source.text, spec.name)) {
                missing.push(spec.name);
            }
            continue;
        }
        let folder = format!("tests/parity/{}", group(spec));
        let container = spec.name.split('|').next().expect("a name");
        let names = sources::names_in(&folder, ".redis");
        let mut own =
            names.iter().filter(|name| [as_file(spec.name), as_file(container)].contains(&as_file(name)));
        if !own.any(|name| plays(&sources::read(&format!("{folder}/{name}.redis")), spec.name)) {
            missing.push(spec.name);
        }
    }
    assert!(missing.is_empty(), "no transcript under tests/parity plays {missing:?}");
}

/// Returns true if a transcript sends a command (`> CONFIG GET x`, `2> config get x`, or in bytes
/// after `>>`) and expects a reply that is not just any reply.
fn plays(text: &str, command: &str) -> bool {
    let words = command.replace('|', " ");
    let mut sent = false;
    for line in text.lines() {
        let step = line.split_once('>').filter(|(name, _)| name.chars().all(char::is_alphanumeric));
        match step {
            // A RESP3 reply such as `>3` has its number right after the sign.
            Some((_, rest)) if rest.starts_with(' ') || rest.starts_with('>') => {
                let rest = rest.trim_start_matches('>').to_lowercase().replace("\\r\\n", " ");
                let said: Vec<&str> = rest.split_whitespace().map(|word| word.trim_matches('"')).collect();
                let wanted: Vec<&str> = words.split(' ').collect();
                sent = said.windows(wanted.len()).any(|some| some == wanted);
            }
            _ if sent && !line.is_empty() && !line.starts_with('#') && line != "..." => return true,
            _ => {}
        }
    }
    false
}

#[test]
fn a_transcript_plays_what_it_sends_and_expects() {
    assert!(plays("> CONFIG GET x\n*0\n", "config|get"));
    assert!(plays("2> config get x\n*0\n", "config"));
    assert!(plays(">> \"PING\\r\\n\"\n+PONG\n", "ping"));
    assert!(!plays("# CONFIG GET x\n> PING\n+PONG\n", "config|get"), "a comment plays nothing");
    assert!(!plays("> CONFIG GET x\n...\n", "config|get"), "any reply is no expectation");
    assert!(!plays("> PING\n+PONG\n", "config|get"));
}

#[test]
fn the_document_of_the_commands_is_up_to_date() {
    let printed = lockstorm_sim::commands::markdown();
    let how = "cargo run -p lockstorm-sim --example commands > sim/COMMANDS.md";
    assert!(sources::read("sim/COMMANDS.md") == printed, "sim/COMMANDS.md is not what the tables say; {how}");
}

#[test]
fn each_fault_has_its_file_and_each_file_its_fault() {
    let listed: Vec<&str> = fault::LIST.iter().map(|(name, _)| *name).collect();
    assert!(listed.is_sorted(), "{listed:?}");
    let files: Vec<String> = sources::below("scenarios/src/file/fault", &[".rs"])
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
    let files: BTreeSet<String> = sources::below("scenarios/src/judge/checker", &[".rs"])
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

/// `wording/` also has files of words that several questions share.
#[test]
fn each_question_has_its_words() {
    let stems = |folder: &str| -> BTreeSet<String> {
        let below = sources::below(&format!("scenarios/src/judge/checker/{folder}"), &[".rs"]);
        below.iter().map(|source| stem(&source.path)).collect()
    };
    let (questions, words) = (stems("questions"), stems("wording"));
    let without: Vec<_> = questions.difference(&words).collect();
    assert!(without.is_empty(), "questions without words: {without:?}");
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

/// The files of the scenarios crate that contain this text.
fn files_with(text: &str) -> Vec<String> {
    let files = sources::below("scenarios/src", &[".rs"]);
    files.into_iter().filter(|source| source.text.contains(text)).map(|source| source.path).collect()
}

/// Converts `try_acquire` to `TryAcquire`.
fn as_type(name: &str) -> String {
    let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(upper).collect()
}

/// Each is declared in the table of `scenario/` and executed in one file, as CONTRIBUTING promises.
#[test]
fn each_step_and_each_workload_is_carried_out_in_one_place() {
    let tables = [
        ("Step", Step::LIST, "scenarios/src/run/script.rs"),
        ("Workload", Workload::LIST, "scenarios/src/run/workload.rs"),
    ];
    for (table, list, place) in tables {
        for (name, about) in list {
            assert!(!about.is_empty(), "{name} is not documented");
            assert_eq!(files_with(&format!("{table}::{}(", as_type(name))), [place], "{table} {name}");
        }
    }
}

/// Its `mod` and its entry in the table; the rest of the crate does not name it.
#[test]
fn each_fault_is_registered_in_two_lines() {
    let table = "scenarios/src/file/fault/mod.rs";
    for (name, _) in fault::LIST {
        let text = sources::read(table);
        let line = format!("{name}: {},", as_type(name));
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|found| *found == line).collect();
        assert_eq!(lines.len(), 1, "{line} is in the table");
        assert_eq!(text.matches(&format!("mod {name};")).count(), 1, "{name}");
        let path = format!("{name}::");
        let elsewhere =
            files_with(&path).into_iter().filter(|file| file.contains("/fault/") && file != table);
        assert_eq!(elsewhere.collect::<Vec<_>>(), [""; 0], "{name} is used by another fault");
    }
}

/// The adapter and the handle of the production client, as CONTRIBUTING promises. `traits.rs` also
/// names the kinds of models whose keys do not hold owners, and `lock.rs` the default. The checkers
/// use the guarantee of a lock, another enum.
#[test]
fn each_kind_of_lock_has_an_adapter_and_a_handle_and_no_other_place() {
    let adapters = sources::read("scenarios/src/judge/object/mod.rs");
    let body = adapters.split_once("pub enum LockKind {").expect("the enum").1;
    let body = body.split_once("\n}").expect("its end").0;
    let kinds = body
        .lines()
        .filter_map(|line| line.trim().strip_suffix(','))
        .filter(|kind| kind.starts_with(char::is_uppercase) && kind.chars().all(char::is_alphanumeric));
    let kinds: Vec<&str> = kinds.collect();
    assert!(kinds.len() > 8, "{kinds:?}");
    let all = adapters.split_once("const ALL: &[LockKind] = &[").expect("the list").1;
    let all = all.split_once("];").expect("its end").0;
    for kind in kinds {
        let name = format!("LockKind::{kind}");
        assert!(all.contains(&format!("{name},")), "{kind} is missing in LockKind::ALL");
        let is_named = |path: &str| {
            let text = sources::read(path);
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            code.match_indices(&name)
                .any(|(at, _)| !code[at + name.len()..].starts_with(|next: char| next.is_alphanumeric()))
        };
        assert!(is_named("scenarios/src/run/subject/client.rs"), "{kind} has no handle");
        let elsewhere = files_with(&name).into_iter().filter(|path| is_named(path)).filter(|path| {
            let inside = path.trim_start_matches("scenarios/src/");
            let is_test = path.ends_with("/tests.rs");
            let known = [
                "judge/object/",
                "run/subject/client.rs",
                "file/scenario/traits.rs",
                "file/scenario/lock.rs",
            ];
            let of_guarantees = ["judge/history/", "judge/checker/"];
            !is_test && !known.iter().chain(&of_guarantees).any(|start| inside.starts_with(start))
        });
        assert_eq!(elsewhere.collect::<Vec<_>>(), [""; 0], "{kind} is known elsewhere");
    }
}

/// Only the table names a subject; no code selects one by its name.
#[test]
fn each_subject_is_named_in_one_place() {
    // `client` is also a word of the format.
    for subject in TABLE.iter().filter(|subject| subject.name != "client" && subject.name != "semaphore") {
        // A test inside a file may use a subject.
        let files = files_with(&format!("model(\n        \"{}\"", subject.name)).len()
            + files_with(&format!("(\"{}\",", subject.name)).len()
            + files_with(&format!("client(\n        \"{}\"", subject.name)).len();
        assert_eq!(files, 1, "{}", subject.name);
        let arms = files_with(&format!("\"{}\" =>", subject.name));
        assert_eq!(arms, [""; 0], "{} is matched by name", subject.name);
    }
}

#[test]
fn each_subject_says_what_it_is() {
    let (mut names, mut lines) = (BTreeSet::new(), BTreeSet::new());
    for subject in TABLE {
        let about = subject.about;
        assert!(names.insert(subject.name), "two subjects are called {:?}", subject.name);
        assert!(
            !about.is_empty() && lines.insert(about),
            "{} is described as another one is: {about:?}",
            subject.name
        );
    }
}

#[test]
fn each_subcommand_has_its_file() {
    let root = sources::read("cli/src/cli/mod.rs");
    // `Claims(claims::Claims),` in the enum.
    let declared = root.lines().filter_map(|line| line.trim().strip_suffix("),")?.split_once('('));
    let declared = declared.filter_map(|(name, path)| Some((name, path.strip_suffix(&format!("::{name}"))?)));
    let variants: Vec<&str> = declared.map(|(_, module)| module).collect();
    assert!(variants.len() > 10, "{variants:?}");
    for variant in variants {
        assert!(root.contains(&format!("mod {variant};")), "{variant}");
        assert!(sources::names_in("cli/src/cli", ".rs").iter().any(|name| name == variant), "{variant}");
    }
}

/// Each `cargo test --test NAME` in a document, a comment or a script names existing tests.
#[test]
fn each_command_names_tests_that_are_there() {
    let crates = sources::CRATES.iter().map(|name| format!("{name}/tests"));
    let folders = crates.chain(["tests".to_owned()]);
    let mut known: BTreeSet<String> = folders.flat_map(|folder| sources::names_in(&folder, ".rs")).collect();
    let mut texts = sources::all(&[".rs", ".py", ".toml"]);
    texts.extend(sources::below("book", &[".md"]));
    texts.extend(sources::top(&[".md", ".toml"]));
    for manifest in texts.iter().filter(|source| source.path.ends_with("Cargo.toml")) {
        let names = manifest.text.lines().filter_map(|line| line.strip_prefix("name = \""));
        known.extend(names.map(|name| name.trim_end_matches('"').to_owned()));
    }
    let mut named = 0;
    for source in &texts {
        let words: Vec<&str> = source.text.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| pair[0] == "--test") {
            let name = pair[1].trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            // `NAME` stands for any test, and `{}` in this file.
            assert!(
                ["", "NAME"].contains(&name) || known.contains(name),
                "{}: --test {}",
                source.path,
                pair[1]
            );
            named += 1;
        }
    }
    assert!(named > 10, "only {named} are named");
}

fn stem(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rs").to_owned()
}

/// The storms of the most common locks draw faults of every kind, or explain in their heads why one
/// is missing. Faults that need replicas do not apply to a single node, and faults of slots belong
/// to `storm/cluster.toml`.
#[test]
fn each_storm_of_locks_draws_every_fault_or_says_why_not() {
    const OF_SLOTS: &[&str] = &["failover", "reshard"];
    const OF_REPLICAS: &[&str] = &["follow", "promote"];
    let storms = ["fair_crashes", "fenced", "fenced_failover", "nested_holds", "two_locks", "watchdog"];
    let mut missing = Vec::new();
    for storm in storms {
        let path = format!("storm/{storm}.toml");
        let text = library::ALL.iter().find(|stock| stock.path == path).expect("it is there").text;
        for (kind, _) in fault::LIST {
            let alone = !text.contains("replica_of");
            let draws = text.lines().any(|line| line.starts_with(&format!("{kind} = ")));
            let mut head = text.lines().take_while(|line| !line.starts_with('['));
            let says = head.any(|line| line.starts_with('#') && line.contains(&format!("`{kind}`")));
            if !(draws || says || OF_SLOTS.contains(kind) || alone && OF_REPLICAS.contains(kind)) {
                missing.push(format!("{path}: {kind}"));
            }
        }
    }
    assert!(missing.is_empty(), "neither drawn nor explained:\n{}", missing.join("\n"));
}
