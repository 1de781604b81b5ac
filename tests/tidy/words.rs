//! Checks every file's length, its first line, and the words that it must not contain.

use crate::sources;

/// The maximal number of lines of a file.
const LINES: usize = 600;

#[test]
fn files_stay_short() {
    for source in sources::all(&[".rs"]) {
        let lines = source.text.lines().count();
        assert!(lines <= LINES, "{} has {lines} lines, more than {LINES}", source.path);
    }
}

#[test]
fn files_open_by_saying_what_they_are_for() {
    for source in sources::all(&[".rs"]) {
        let first = source.text.lines().next().unwrap_or_default();
        assert!(first.starts_with("//! ") && first.len() > 12, "{} opens with {first:?}", source.path);
    }
    for source in sources::all(&[".lua"]) {
        assert!(source.text.starts_with("--"), "{} opens with a comment", source.path);
    }
}

/// The widest comment, in characters. rustfmt wraps code and no comments.
const COMMENT_WIDTH: usize = 100;

/// A paragraph that begins with one of these is a relative clause in place of a statement.
const RELATIVE: &[&str] = &["What", "Whether", "Which", "Where", "How", "Who", "Whose", "When"];

/// The comments of a file: the number of each line from 1, the whole line, its text without the
/// marker, and true for the first line of a block.
fn comments(text: &str) -> Vec<(usize, &str, &str, bool)> {
    let mut comments = Vec::new();
    let mut last = None;
    for (number, line) in text.lines().enumerate() {
        let inner = line.trim_start();
        let marker = ["///", "//!", "//"].into_iter().find(|marker| inner.starts_with(marker));
        if let Some(marker) = marker {
            let begins = last != Some(marker);
            comments.push((number + 1, line, inner[marker.len()..].trim(), begins));
        }
        last = marker;
    }
    comments
}

#[test]
fn comments_begin_with_a_statement() {
    let mut wrong = Vec::new();
    for source in sources::all(&[".rs"]) {
        for (number, _, text, begins) in comments(&source.text) {
            let first = text.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
            if begins && RELATIVE.contains(&first) {
                wrong.push(format!("{}:{number}: {text}", source.path));
            }
        }
    }
    assert!(wrong.is_empty(), "say who does what instead:\n{}", wrong.join("\n"));
}

/// Tables, code, and names that are longer than a line cannot be wrapped.
#[test]
fn comments_are_wrapped() {
    let mut wrong = Vec::new();
    for source in sources::all(&[".rs"]) {
        let mut is_code = false;
        for (number, line, text, begins) in comments(&source.text) {
            is_code &= !begins;
            is_code ^= text.starts_with("```");
            let is_one_name = text.split_whitespace().any(|word| word.chars().count() > COMMENT_WIDTH / 2);
            let wraps = !is_code && !text.starts_with('|') && !is_one_name;
            if wraps && line.chars().count() > COMMENT_WIDTH {
                wrong.push(format!("{}:{number}: {} characters", source.path, line.chars().count()));
            }
        }
    }
    assert!(wrong.is_empty(), "wider than {COMMENT_WIDTH}:\n{}", wrong.join("\n"));
}

#[test]
fn relative_clauses_and_wide_comments_are_seen() {
    let text = "/// Where it is.\n/// Who knows.\nfn a() {}\n// How.\n/// Returns it.\n";
    let begin = comments(text).into_iter().filter(|(.., begins)| *begins);
    assert_eq!(
        begin.map(|(number, _, text, _)| (number, text)).collect::<Vec<_>>(),
        [(1, "Where it is."), (4, "How."), (5, "Returns it."),]
    );
}

/// Marks of unfinished work, and paths of a developer's machine. Written in two halves, so that
/// this file does not match itself.
const FORBIDDEN: &[(&str, &str)] = &[
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X:"),
    ("HA", "CK:"),
    ("unsafe ", "{"),
    ("/ho", "me/"),
    ("/wo", "rk/"),
    ("/ro", "ot/"),
    ("lorem ", "ipsum"),
];

#[test]
fn no_file_has_a_mark_of_unfinished_work() {
    let mut sources = sources::all(&[".rs", ".lua", ".toml", ".md", ".redis", ".css", ".js"]);
    sources.extend(sources::top(&[".md", ".toml"]));
    for source in sources {
        for (one, other) in FORBIDDEN {
            let word = format!("{one}{other}");
            let line = source.text.lines().position(|line| line.contains(&word));
            assert_eq!(line.map(|line| line + 1), None, "{} says {word:?} in that line", source.path);
        }
    }
}

/// Words that hide the client, owner, waiter or replica of a sentence, or that the field has
/// another word for. GLOSSARY.md lists the words to use.
const RIDDLES: &[&str] = &[
    "anybody",
    "everybody",
    "nobody",
    "somebody",
    "whoever",
    "whomever",
    "for ever",
    "reckon",
    "reckons",
    "reckoned",
];

#[test]
fn comments_use_the_words_of_the_glossary() {
    let mut sources = sources::all(&[".rs", ".lua", ".toml", ".md", ".redis", ".py"]);
    sources.extend(sources::top(&[".md", ".toml"]));
    let mut found = Vec::new();
    for source in sources {
        for (at, line) in source.text.lines().enumerate() {
            let Some(comment) = comment(&source.path, line) else { continue };
            for riddle in RIDDLES.iter().filter(|riddle| has_word(comment, riddle)) {
                found.push(format!("{}:{}: {riddle:?}", source.path, at + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Forbids the same words in the names of functions and tests of the world, the simulator and
/// the client; underscores separate the parts of a name.
#[test]
fn functions_are_named_by_the_words_of_the_glossary() {
    let mut found = Vec::new();
    for source in ["world", "sim", "client"].iter().flat_map(|folder| sources::below(folder, &[".rs"])) {
        for (at, line) in source.text.lines().enumerate() {
            let Some(name) = function(line) else { continue };
            for riddle in RIDDLES.iter().filter(|riddle| name.split('_').any(|part| part == **riddle)) {
                found.push(format!("{}:{}: {name} has {riddle:?}", source.path, at + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_code = !before.contains(['"', '/']);
    let name = rest.split(['(', '<']).next()?;
    (is_code && !name.is_empty()).then_some(name)
}

/// The prose of a line: the whole line in a document, the comment in a source.
fn comment<'a>(path: &str, line: &'a str) -> Option<&'a str> {
    let (_, ending) = path.rsplit_once('.')?;
    let mark = match ending {
        "md" => return Some(line),
        "rs" => "//",
        "lua" => "--",
        _ => "#",
    };
    // A mark inside a line must follow a space; the one in an address does not.
    if line.trim_start().starts_with(mark) {
        return Some(line);
    }
    line.split_once(&format!(" {mark} ")).map(|(_, comment)| comment)
}

/// Returns true if a text contains these words as whole words, in any case.
fn has_word(text: &str, words: &str) -> bool {
    let text = text.to_lowercase();
    let inside = |side: Option<char>| side.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(words).any(|(at, _)| {
        !inside(text[..at].chars().next_back()) && !inside(text[at + words.len()..].chars().next())
    })
}

#[test]
fn comments_and_words_are_found_as_written() {
    assert_eq!(comment("a.rs", "    let a = \"redis://nobody\"; // the rest"), Some("the rest"));
    assert_eq!(comment("a.rs", "let nobody = 1;"), None);
    assert_eq!(comment("a.redis", "-ERR No such user 'nobody'"), None);
    assert_eq!(comment("a.redis", "# A client waits."), Some("# A client waits."));
    assert!(has_word("/// Nobody's.", "nobody"));
    assert!(!has_word("/// `nobody_else` is reckoning.", "nobody"));
    assert!(!has_word("/// It is reckoning.", "reckon"));
    assert_eq!(function("    pub(super) fn nobody_waits<T>(self) {"), Some("nobody_waits"));
    assert_eq!(function(concat!("    /", "/ fn nobody() {")), None);
}

/// `select` must be biased: otherwise it draws its order from the operating system.
#[test]
fn every_select_is_biased() {
    for source in sources::all(&[".rs"]) {
        for (at, _) in source.text.match_indices(concat!("select", "! {")) {
            let line = source.text[..at].lines().count();
            if source
                .text
                .lines()
                .nth(line.saturating_sub(1))
                .is_some_and(|line| line.trim_start().starts_with("//"))
            {
                continue;
            }
            let opening = source.text[at..].split('{').nth(1).unwrap_or_default().trim_start();
            assert!(opening.starts_with("biased;"), "{}: line {line}", source.path);
        }
    }
}

/// Every linked file of a document must exist.
#[test]
fn the_documents_name_files_that_exist() {
    for document in sources::top(&[".md"]) {
        for part in document.text.split("](").skip(1) {
            let target = part.split([')', '#']).next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            assert!(sources::root().join(target).exists(), "{} links to {target}", document.path);
        }
    }
}

#[test]
fn every_dependency_has_its_reason() {
    let manifest = sources::read("Cargo.toml");
    let reasons = sources::read("ARCHITECTURE.md");
    let table = manifest.split("[workspace.dependencies]").nth(1).expect("the table of dependencies");
    let table = table.split("\n[").next().expect("its end");
    for line in table.lines() {
        let Some((name, _)) = line.split_once(" = ") else { continue };
        if !name.starts_with('#') && !name.starts_with("lockstorm") {
            assert!(
                reasons.contains(&format!("`{name}`")),
                "ARCHITECTURE.md does not say why {name} is there"
            );
        }
    }
}
