//! One argument of a command, as in `arguments.txt`:
//! `?*+name:type#key=token@since!deprecated(parts)`, where every part but the name is optional. `?`
//! marks an optional argument, `*` a repeatable one, `+` one whose token repeats with it. `#`
//! precedes the index of the key specification, `=` the word before the argument.

use crate::resp::Reply;

#[derive(Debug)]
pub(super) struct Argument {
    optional: bool,
    multiple: bool,
    multiple_token: bool,
    name: &'static str,
    kind: &'static str,
    key: Option<&'static str>,
    token: Option<&'static str>,
    since: Option<&'static str>,
    deprecated: Option<&'static str>,
    parts: Vec<Argument>,
}

impl Argument {
    /// Parses the arguments of a line.
    pub(super) fn all(line: &'static str) -> Vec<Argument> {
        let mut rest = line;
        list(&mut rest)
    }

    fn parse(rest: &mut &'static str) -> Argument {
        let optional = mark(rest, "?");
        let multiple = mark(rest, "*");
        let multiple_token = mark(rest, "+");
        let (name, kind) = until(rest, "#=@! ()").rsplit_once(':').unwrap_or_default();
        let mut part = |sign, ends| mark(rest, sign).then(|| until(rest, ends));
        let key = part("#", "=@! ()");
        // A token may be any character, or empty.
        let token = part("=", "@! ()").map(|token| if token == "\"\"" { "" } else { token });
        let since = part("@", "! ()");
        let deprecated = part("!", " ()");
        let mut parts = Vec::new();
        if mark(rest, "(") {
            parts = list(rest);
            mark(rest, ")");
        }
        Argument { optional, multiple, multiple_token, name, kind, key, token, since, deprecated, parts }
    }

    /// Returns the description in COMMAND DOCS.
    pub(super) fn describe(&self) -> Reply {
        let mut about = vec![("name", Reply::bulk(self.name)), ("type", Reply::bulk(self.kind))];
        about.extend(self.key.map(|key| ("key_spec_index", Reply::Integer(key.parse().unwrap_or(0)))));
        let texts = [("token", self.token), ("since", self.since), ("deprecated_since", self.deprecated)];
        about.extend(texts.into_iter().filter_map(|(what, text)| Some((what, Reply::bulk(text?)))));
        let flags = [
            (self.optional, "optional"),
            (self.multiple, "multiple"),
            (self.multiple_token, "multiple_token"),
        ];
        let flags: Vec<Reply> =
            flags.iter().filter(|(set, _)| *set).map(|(_, flag)| Reply::Status((*flag).into())).collect();
        if !flags.is_empty() {
            about.push(("flags", Reply::Set(flags)));
        }
        if !self.parts.is_empty() {
            about.push(("arguments", Reply::Array(self.parts.iter().map(Argument::describe).collect())));
        }
        Reply::Map(about.into_iter().map(|(what, value)| (Reply::bulk(what), value)).collect())
    }

    /// Writes the argument for people: words as they are, `<name>` for a value, `(a|b)` for
    /// alternatives, `[...]` for an optional part.
    pub(super) fn usage(&self) -> String {
        let (one, whole) = (self.once(), self.whole());
        match (self.optional, self.multiple) {
            (false, _) => whole,
            // An optional argument is named only once.
            (true, true) if !self.multiple_token => format!("[{one} ...]"),
            // Brackets already group the alternatives.
            (true, _) => match whole.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
                Some(inside) if self.kind == "oneof" => format!("[{inside}]"),
                _ => format!("[{whole}]"),
            },
        }
    }

    /// Formats the argument with its token and its repetition.
    fn whole(&self) -> String {
        let one = self.once();
        match (self.multiple, self.multiple_token) {
            (false, _) => one,
            (true, false) if self.token.is_some() => format!("{one} [{} ...]", self.value()),
            // Long arguments are not repeated.
            (true, _) if self.parts.is_empty() => format!("{one} [{one} ...]"),
            (true, _) => format!("{one} [...]"),
        }
    }

    /// Formats the argument with its token, without repetition.
    fn once(&self) -> String {
        let words = [self.token.unwrap_or_default().to_owned(), self.value()];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn value(&self) -> String {
        let parts = |usage: fn(&Argument) -> String, between| {
            self.parts.iter().map(usage).collect::<Vec<_>>().join(between)
        };
        match self.kind {
            "pure-token" => String::new(),
            "oneof" => format!("({})", parts(Argument::whole, "|")),
            "block" => parts(Argument::usage, " "),
            _ => format!("<{}>", self.name),
        }
    }
}

/// Parses arguments up to the end, or to the closing parenthesis.
fn list(rest: &mut &'static str) -> Vec<Argument> {
    let mut arguments = Vec::new();
    while !rest.is_empty() && !rest.starts_with(')') {
        arguments.push(Argument::parse(rest));
        mark(rest, " ");
    }
    arguments
}

/// Consumes a sign; returns true if the sign comes next.
fn mark(rest: &mut &'static str, sign: &str) -> bool {
    let after = rest.strip_prefix(sign);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

/// Consumes the text before the next of some signs; leaves the sign.
fn until(rest: &mut &'static str, signs: &str) -> &'static str {
    let end = rest.find(|sign| signs.contains(sign)).unwrap_or(rest.len());
    let (before, after) = rest.split_at(end);
    *rest = after;
    before
}
