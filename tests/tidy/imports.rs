//! Checks that a module imports only modules listed before it in `lib.rs`: no circles, and an order
//! for reading.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{self, CRATES};

#[test]
fn a_module_imports_only_those_before_it() {
    let mut wrong = Vec::new();
    for name in CRATES {
        let order = modules(&sources::read(&format!("{name}/src/lib.rs")));
        assert!(order.len() > 5, "{name} has its modules in lib.rs");
        let place = |module: &str| order.iter().position(|listed| listed == module);
        for source in sources::below(&format!("{name}/src"), &[".rs"]) {
            let inside = source.path.strip_prefix(&format!("{name}/src/")).expect("below src");
            let module = inside.split('/').next().expect("a path").trim_end_matches(".rs");
            // lib.rs and main.rs are not modules; tests may use later modules to drive their own.
            let Some(own) = place(module).filter(|_| !inside.ends_with("tests.rs")) else { continue };
            for imported in imports(code(&source.text)) {
                if place(&imported).is_some_and(|other| other > own) {
                    wrong.push(format!("{}: imports {imported}, which comes after {module}", source.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Folders in which modules import each other. A driver of a node spawns a task for each
/// connection, which steps the driver. A lock of a model makes holds, which ask the nodes through
/// the lock. Each is one unit in two files.
const CIRCLES: &[&str] = &["sim/src/drive", "scenarios/src/subject/model"];

#[test]
fn the_modules_of_a_folder_do_not_import_each_other() {
    let mut with_circles = BTreeSet::new();
    for name in CRATES {
        let sources = sources::below(&format!("{name}/src"), &[".rs"]);
        // The imported sibling modules, by folder and module.
        let mut beside: BTreeMap<&str, BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
        for source in &sources {
            let path = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
            let Some((folder, module)) = path.rsplit_once('/') else { continue };
            let text = code(&source.text);
            let mut imported: BTreeSet<String> = imports_from(text, "super::").into_iter().collect();
            // The same imports by their full paths.
            let above: Vec<&str> = folder.split('/').skip(2).collect();
            imported.extend(crate_paths(text).into_iter().filter_map(|path| {
                let (folders, rest) = path.split_at_checked(above.len())?;
                (folders == above).then(|| rest.first().cloned())?
            }));
            imported.remove(module);
            beside.entry(folder).or_default().insert(module, imported);
        }
        for (folder, modules) in beside {
            let reached = |from: &str| {
                let (mut found, mut next) = (BTreeSet::new(), vec![from]);
                while let Some(module) = next.pop() {
                    for other in modules.get(module).into_iter().flatten() {
                        if let Some((&other, _)) = modules.get_key_value(other.as_str())
                            && found.insert(other)
                        {
                            next.push(other);
                        }
                    }
                }
                found.contains(from)
            };
            if modules.keys().any(|module| reached(module)) {
                with_circles.insert(folder.to_owned());
            }
        }
    }
    let known: BTreeSet<String> = CIRCLES.iter().map(|folder| (*folder).to_owned()).collect();
    assert_eq!(with_circles, known, "folders whose modules import each other");
}

/// The table at the beginning of a `lib.rs` names each module once, in the order of declaration.
#[test]
fn the_map_of_a_crate_is_whole() {
    for name in CRATES {
        let text = sources::read(&format!("{name}/src/lib.rs"));
        let rows = text.lines().filter_map(|line| line.strip_prefix("//! | ")?.split(" | ").next());
        let named = |row: &str| {
            let parts = row.split('`').skip(1).step_by(2);
            parts
                .map(|part| part.trim_end_matches('/').trim_start_matches("mod@").to_owned())
                .collect::<Vec<_>>()
        };
        let map: Vec<String> = rows.flat_map(named).collect();
        assert_eq!(map, modules(&text), "the map in {name}/src/lib.rs, and its modules");
    }
}

#[test]
fn client_and_sim_never_meet() {
    for (one, other) in [("client", "lockstorm_sim"), ("sim", "lockstorm_client"), ("client", "lockstorm::")]
    {
        let meeting = sources::below(&format!("{one}/src"), &[".rs"]);
        let meeting: Vec<&str> = meeting
            .iter()
            .filter(|source| code(&source.text).lines().any(|line| !is_comment(line) && line.contains(other)))
            .map(|source| source.path.as_str())
            .collect();
        assert!(meeting.is_empty(), "{other} is imported by {meeting:?}");
    }
}

/// Words that must not occur in the code of a module, each with the reason.
const ABSENCES: &[(&str, &[&str])] = &[
    // The protocol knows no command.
    ("sim/src/resp", &["commands::", "keyspace::"]),
    // A command is a function of its arguments and the keys: no wire, no task, no world.
    ("sim/src/commands", &["tokio::", "turmoil", "world::"]),
    // The keys know no client and no command, and only the clock that they are given.
    ("sim/src/keyspace", &["commands::", "session::", "tokio::"]),
    // The server is stepped; it owns no socket, clock, thread or task.
    ("sim/src/server", &["tokio::", "turmoil", "std::thread", "std::net::Tcp"]),
    // A checker is a pure function of a history: it cannot start anything.
    (
        "scenarios/src/checker",
        &["tokio::", "crate::run", "crate::plan", "crate::scenario", "lockstorm_client"],
    ),
    // A plan is drawn before anything runs.
    ("scenarios/src/plan", &["tokio::", "crate::run", "lockstorm_client"]),
];

#[test]
fn what_must_not_be_there_is_not() {
    let mut wrong = Vec::new();
    for (folder, words) in ABSENCES {
        for source in sources::below(folder, &[".rs"]) {
            for line in code(&source.text).lines().filter(|line| !is_comment(line)) {
                for word in *words {
                    if line.contains(word) {
                        wrong.push(format!("{}: {word} in `{}`", source.path, line.trim()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The modules of a `lib.rs`, in order.
fn modules(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim();
        let name = line.strip_prefix("pub mod ").or_else(|| line.strip_prefix("mod "))?;
        name.strip_suffix(';').map(str::to_owned)
    });
    lines.collect()
}

/// A file without the tests at its end.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// The modules of its own crate that a file imports.
fn imports(text: &str) -> Vec<String> {
    imports_from(text, "crate::")
}

/// The names that follow this path in a file.
fn imports_from(text: &str, path: &str) -> Vec<String> {
    let text: String = text.lines().filter(|line| !is_comment(line)).flat_map(|line| [line, "\n"]).collect();
    let mut found = Vec::new();
    for (at, _) in text.match_indices(path) {
        // `super::super::` is the folder above.
        if text[..at].ends_with("super::") {
            continue;
        }
        let rest = &text[at + path.len()..];
        match rest.strip_prefix('{') {
            None => found.push(word(rest)),
            Some(list) => found.extend(top_level(list).into_iter().map(word)),
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

/// Every path from the root of the crate, with its lists expanded.
fn crate_paths(text: &str) -> Vec<Vec<String>> {
    let text: String = text.lines().filter(|line| !is_comment(line)).flat_map(|line| [line, "\n"]).collect();
    let mut found = Vec::new();
    for (at, root) in text.match_indices("crate::") {
        expand(&text[at + root.len()..], Vec::new(), &mut found);
    }
    found
}

fn expand(rest: &str, mut above: Vec<String>, found: &mut Vec<Vec<String>>) {
    if let Some(list) = rest.strip_prefix('{') {
        top_level(list).into_iter().for_each(|item| expand(item.trim_start(), above.clone(), found));
        return;
    }
    let name = word(rest);
    let after = &rest[name.len()..];
    above.push(name);
    match after.strip_prefix("::") {
        Some(rest) => expand(rest, above, found),
        None => found.push(above),
    }
}

/// The items of a `{..}` list after its opening brace, without splitting inner lists.
fn top_level(list: &str) -> Vec<&str> {
    let (mut depth, mut from, mut items) = (0, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                items.push(&list[from..at]);
                return items;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&list[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    items
}

fn word(text: &str) -> String {
    text.trim_start().chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

#[test]
fn imports_are_read_as_written() {
    let text = "use crate::{\n    a::{B, c},\n    d,\n};\n// crate::e\nfn f() { crate::g::h() }\n";
    assert_eq!(imports(text), ["a", "d", "g"]);
}
