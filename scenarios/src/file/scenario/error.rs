//! Errors about a scenario file: the place, the mistake, the expected input and the nearest name.

use std::ops::Range;

use super::form::{self, Keys};

/// A mistake in a scenario file, with its place. A mistake in a request about the whole file has no
/// place in it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{file}{place}: {message}", place = place(*.line, *.column))]
pub struct ScenarioError {
    /// The path of the file, as the caller gave it.
    pub file: String,
    /// Line, from 1; 0 if the mistake has no place in the file.
    pub line: usize,
    /// Column in characters, from 1; 0 if the mistake has no place in the file.
    pub column: usize,
    /// The mistake, and the expected input.
    pub message: String,
    /// The file with the mistake, and the bytes of the mistake in it.
    pub(super) excerpt: Option<(Text, Range<usize>)>,
    help: Option<String>,
}

/// The text of a file, with its name.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "miette"), expect(dead_code, reason = "only miette shows it"))]
pub(super) struct Text {
    pub(super) file: String,
    pub(super) text: String,
}

impl ScenarioError {
    /// Returns the hint that follows the message, such as the nearest name.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Makes the error that neither a file nor a stock scenario has this name.
    pub(crate) fn absent<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> ScenarioError {
        let help = nearest(name, known).map(|near| format!("did you mean `{near}`?"));
        let help =
            help.or_else(|| Some("`lockstorm list scenarios` names those that are built in".to_owned()));
        let message = "there is no such file, and no stock scenario of this name".to_owned();
        Mistake { span: 0..0, message, help }.without_place(name)
    }
}

/// A mistake whose file is not known yet.
#[derive(Debug, Clone)]
pub(super) struct Mistake {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<String>,
}

impl Mistake {
    pub(super) fn at(span: Range<usize>, message: impl Into<String>) -> Mistake {
        Mistake { span, message: message.into(), help: None }
    }

    /// Makes the mistake that a name refers to nothing, with the nearest name that exists.
    pub(super) fn unknown<'a>(
        span: Range<usize>,
        what: &str,
        name: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Mistake {
        let known: Vec<&str> = known.collect();
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => format!("the scenario has no {what}"),
            None => format!("there are: {}", known.join(", ")),
        };
        Mistake { span, message: format!("there is no {what} `{name}`"), help: Some(help) }
    }

    pub(super) fn of_toml(error: &toml::de::Error) -> Mistake {
        let message = error.message().trim().to_owned();
        // serde lists the expected names; the nearest of them is most likely the intended one.
        let mut quoted = message.split('`').skip(1).step_by(2);
        let help = match quoted.next() {
            Some(found) if message.starts_with("unknown") => nearest(found, quoted),
            _ => None,
        };
        let help = help.map(|near| format!("did you mean `{near}`?"));
        Mistake { span: error.span().unwrap_or(0..0), message: plain(&message), help }
    }

    pub(super) fn in_file(self, file: &str, text: &str) -> ScenarioError {
        let start = self.span.start.min(text.len());
        let end = self.span.end.clamp(start, text.len());
        let before = &text[..text.floor_char_boundary(start)];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        ScenarioError {
            file: file.to_owned(),
            line,
            column,
            message: self.message,
            excerpt: Some((Text { file: file.to_owned(), text: text.to_owned() }, start..end)),
            help: self.help,
        }
    }

    /// Makes an error about the file as a whole, without a line.
    pub(super) fn without_place(self, file: &str) -> ScenarioError {
        ScenarioError {
            file: file.to_owned(),
            line: 0,
            column: 0,
            message: self.message,
            excerpt: None,
            help: self.help,
        }
    }
}

/// Formats a place as it follows the name of its file.
fn place(line: usize, column: usize) -> String {
    if line == 0 { String::new() } else { format!(":{line}:{column}") }
}

/// Rewrites serde's message about a value of another type in words of the file format, without the
/// types of the code that reads it.
fn plain(message: &str) -> String {
    let types = message.strip_prefix("invalid type: ").and_then(|types| types.split_once(", expected "));
    let Some((found, expected)) = types else { return message.to_owned() };
    let expected = match expected {
        "a sequence" => "a list".to_owned(),
        "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number".to_owned(),
        _ => expected.strip_prefix("struct ").map_or(expected.to_owned(), table),
    };
    format!("expected {expected}, found {found}")
}

/// Describes the contents of a table, by the name of its type in the schema.
fn table(name: &str) -> String {
    let Keys { must, may } = form::keys(name);
    let list = |keys: &[String]| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    match (&must[..], &may[..]) {
        ([], []) => "a table".to_owned(),
        ([], may) => format!("a table with any of {}", list(may)),
        (must, []) => format!("a table with {}", list(must)),
        (must, may) => format!("a table with {} and perhaps {}", list(must), list(may)),
    }
}

/// Returns the candidate nearest to `name`, if it is near enough to be the intended one.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| {
            (strsim::damerau_levenshtein(&name.to_lowercase(), &candidate.to_lowercase()), candidate)
        })
        .filter(|(distance, candidate)| *distance <= candidate.len().max(name.len()).div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
