//! Makes small mistakes in a script, one at a time.

use std::collections::BTreeSet;

use serde::Serialize;

/// A script with one mistake.
#[derive(Serialize)]
pub(crate) struct Mistake {
    /// The number of the line, from 1.
    pub(crate) number: usize,
    /// The mistaken line without its indentation; a removed statement reads `-- ...`.
    pub(crate) line: String,
    pub(crate) text: String,
}

/// The replacements; each occurrence is replaced by itself.
const SWAPS: &[(&str, &str)] = &[
    (" == ", " ~= "),
    (" ~= ", " == "),
    (" < ", " <= "),
    (" < ", " > "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" > ", " < "),
    (" >= ", " > "),
    (" and ", " or "),
    (" or ", " and "),
    (" + ", " - "),
    (" - ", " + "),
    (", -", ", "),
    (", 0, ", ", 1, "),
    (", 1)", ", 0)"),
    (", -1)", ", 1)"),
    (" = 0", " = 1"),
    (" = 1", " = 0"),
    ("return 0", "return 1"),
    ("return 1", "return 0"),
    ("return nil", "return 1"),
    ("if not ", "if "),
];

/// Every mistake of the known kinds in a script: operators and constants replaced by similar ones,
/// inverted conditions, removed statements.
pub(crate) fn mistakes(script: &str) -> Vec<Mistake> {
    let lines: Vec<&str> = script.lines().collect();
    let mut all = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.split("--").next().unwrap_or_default().trim_end();
        for changed in changed(code) {
            let mut text = lines.clone();
            text[at] = &changed;
            let text = text.join("\n") + "\n";
            all.push(Mistake { number: at + 1, line: changed.trim_start().to_owned(), text });
        }
    }
    all
}

fn changed(code: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (from, to) in SWAPS {
        for (at, _) in code.match_indices(from) {
            all.push(format!("{}{to}{}", &code[..at], &code[at + from.len()..]));
        }
    }
    let statement = code.trim_start();
    let indent = &code[..code.len() - statement.len()];
    for keyword in ["if ", "elseif "] {
        if let Some(condition) = statement.strip_prefix(keyword).and_then(|rest| rest.strip_suffix(" then")) {
            all.push(format!("{indent}{keyword}not ({condition}) then"));
        }
    }
    // A call whose result is not used.
    let called = statement.split('(').next().unwrap_or_default();
    if statement.ends_with(')') && called.chars().all(|c| c.is_ascii_alphanumeric() || "._".contains(c)) {
        all.push(format!("{indent}-- {statement}"));
    }
    let mut seen = BTreeSet::new();
    all.retain(|changed| seen.insert(changed.clone()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mistake_is_made_once_and_none_in_a_comment() {
        let all = mistakes("local x = f(y, -1) > 0 -- a == b\nif not x then\n  f(x)\nend\n");
        let lines: Vec<(usize, &str)> = all.iter().map(|one| (one.number, one.line.as_str())).collect();
        let expected = [
            (1, "local x = f(y, -1) >= 0"),
            (1, "local x = f(y, -1) < 0"),
            (1, "local x = f(y, 1) > 0"),
            (2, "if x then"),
            (2, "if not (not x) then"),
            (3, "-- f(x)"),
        ];
        assert_eq!(lines, expected);
    }
}
