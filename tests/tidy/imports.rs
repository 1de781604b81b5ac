//! Checks that a module imports only modules listed before it in `lib.rs`: no circles, and an order
//! for reading.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{self, CRATES};

/// The files that declare the modules of a folder in the order of reading.
const ORDERED: &[&str] = &[
    "world/src/lib.rs",
    "sim/src/lib.rs",
    "client/src/lib.rs",
    "scenarios/src/lib.rs",
    "scenarios/src/judge/mod.rs",
    "scenarios/src/file/mod.rs",
    "cli/src/main.rs",
    "cli/src/study/mod.rs",
];

#[test]
fn a_module_imports_only_those_before_it() {
    let mut wrong = Vec::new();
    for list in ORDERED {
        let order = modules(&sources::read(list));
        assert!(order.len() > 1, "{list} has modules");
        let (folder, _) = list.rsplit_once('/').expect("a path");
        let above: Vec<&str> = folder.split('/').skip(2).collect();
        let place = |module: &str| order.iter().position(|listed| listed == module);
        for source in sources::below(folder, &[".rs"]) {
            let inside = source.path.strip_prefix(&format!("{folder}/")).expect("below the folder");
            let module = inside.split('/').next().expect("a path").trim_end_matches(".rs");
            // The list itself is no module; tests may use later modules to drive their own.
            let Some(own) = place(module).filter(|_| !inside.ends_with("tests.rs")) else { continue };
            for path in crate_paths(code(&source.text)) {
                let Some((folders, [imported, ..])) = path.split_at_checked(above.len()) else { continue };
                if folders == above && place(imported).is_some_and(|other| other > own) {
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
const CIRCLES: &[&str] = &["sim/src/drive", "scenarios/src/run/subject/model"];

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

/// The table at the beginning of such a file names each module once, in the order of declaration.
#[test]
fn the_map_of_a_folder_is_whole() {
    for list in ORDERED {
        let text = sources::read(list);
        let rows = text.lines().filter_map(|line| line.strip_prefix("//! | ")?.split(" | ").next());
        let named = |row: &str| {
            let parts = row.split('`').skip(1).step_by(2);
            parts
                .map(|part| part.trim_end_matches('/').trim_start_matches("mod@").to_owned())
                .collect::<Vec<_>>()
        };
        let map: Vec<String> = rows.flat_map(named).collect();
        assert_eq!(map, modules(&text), "the map in {list}, and its modules");
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
    // The world knows no server and no protocol of one.
    ("world/src", &["lockstorm", "redis", "Redis"]),
    // The protocol knows no command.
    ("sim/src/resp", &["commands::", "keyspace::"]),
    // A command is a function of its arguments and the keys: no wire, no task, no world.
    ("sim/src/commands", &["tokio::", "turmoil", "world::"]),
    // The keys know no client and no command, and only the clock that they are given.
    ("sim/src/keyspace", &["commands::", "session::", "tokio::"]),
    // The server is stepped; it owns no socket, clock, thread or task.
    ("sim/src/server", &["tokio::", "turmoil", "std::thread", "std::net::Tcp"]),
    // A checker is a pure function of a history: it cannot start anything.
    ("scenarios/src/judge/checker", &["tokio::", "crate::run", "crate::file", "lockstorm_client"]),
    // A question decides and writes no sentence.
    ("scenarios/src/judge/checker/questions", &["words::", "Verdict::", "Witness"]),
    // A plan is drawn before anything runs.
    ("scenarios/src/file/plan", &["tokio::", "crate::run", "lockstorm_client"]),
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

/// The modules that a file declares, in order.
fn modules(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim();
        let name = ["pub mod ", "pub(crate) mod ", "mod "].iter().find_map(|word| line.strip_prefix(word))?;
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
    if name.is_empty() {
        return;
    }
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
    assert_eq!(imports_from(text, "crate::"), ["a", "d", "g"]);
    assert_eq!(crate_paths(text), [vec!["a", "B"], vec!["a", "c"], vec!["d"], vec!["g", "h"]]);
}
