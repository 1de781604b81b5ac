//! Patterns of keys: the locks that a user names, with their kinds.

use serde::Deserialize;
use toml::Spanned;

/// The most patterns of a file.
const PATTERNS_MAX: usize = 1_000;

/// A kind of lock that a user can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// The value is the owner's token, with or without NX.
    Token,
    /// The field of a hash is the owner, and its value the number of levels.
    Hash,
    /// A hash with the field `mode`, and owners of any name.
    ReadWrite,
    /// A number of permits that scripts change.
    Semaphore,
    /// A number that scripts count down.
    Latch,
    /// No lock.
    None,
}

impl Kind {
    /// Returns true for a lock whose key has its only owner, as the value or as a field.
    pub(super) fn has_owner(self) -> bool {
        matches!(self, Kind::Token | Kind::Hash)
    }
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    lock: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    keys: Spanned<String>,
    kind: Kind,
}

/// Patterns of keys with the kinds of their locks. The first pattern that fits a key counts.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    rows: Vec<(String, Kind)>,
}

impl Patterns {
    /// Reads a file of tables `[[lock]]` with `keys`, a pattern with `*` and `?`, and `kind`.
    ///
    /// # Errors
    /// If the text is no such file, with the line.
    pub fn parse(text: &str) -> Result<Patterns, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
        let mut rows = Vec::new();
        for Row { keys, kind } in file.lock {
            let line = text.get(..keys.span().start).map_or(0, |before| before.matches('\n').count()) + 1;
            if keys.get_ref().is_empty() {
                return Err(format!("line {line}: `keys` is empty: write a pattern such as \"orders:*\""));
            }
            if rows.len() >= PATTERNS_MAX {
                return Err(format!("line {line}: more than {PATTERNS_MAX} patterns"));
            }
            rows.push((keys.into_inner(), kind));
        }
        if rows.is_empty() {
            return Err("the file has no table [[lock]]".to_owned());
        }
        Ok(Patterns { rows })
    }

    /// Returns the kind that a pattern gives a key.
    pub(super) fn kind(&self, key: &[u8]) -> Option<Kind> {
        if self.rows.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(key);
        self.rows.iter().find(|(pattern, _)| matches(pattern, &text)).map(|(_, kind)| *kind)
    }
}

/// Returns true if text fits a pattern with `*` for any characters and `?` for one.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut from, mut star) = (0, 0, None);
    while from < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(char) if *char == '?' || *char == text[from] => (at, from) = (at + 1, from + 1),
            _ => {
                let Some((star_at, begun)) = star else { return false };
                star = Some((star_at, begun + 1));
                (at, from) = (star_at + 1, begun + 1);
            }
        }
    }
    pattern[at..].iter().all(|char| *char == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_of_keys() {
        let rows = [
            ("lock:*", "lock:a", true),
            ("lock:*", "block:a", false),
            ("*:a?c", "x:y:abc", true),
            ("*", "", true),
            ("a", "ab", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
        ];
        for (pattern, text, expected) in rows {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn the_first_pattern_that_fits_gives_the_kind() {
        let text = "[[lock]]\nkeys = \"orders:cache:*\"\nkind = \"none\"\n\n[[lock]]\nkeys = \"orders:*\"\nkind = \"read-write\"\n";
        let patterns = Patterns::parse(text).expect("a file");
        let kinds = ["orders:cache:7", "orders:7", "mail"].map(|key| patterns.kind(key.as_bytes()));
        assert_eq!(kinds, [Some(Kind::None), Some(Kind::ReadWrite), None]);
    }

    #[test]
    fn an_error_has_its_line() {
        let rows = [
            ("[[lock]]\nkeys = \"a\"\nkind = \"mutex\"\n", "line 3", "unknown variant `mutex`"),
            ("[[lock]]\nkeys = \"a\"\n", "line 1", "missing field `kind`"),
            ("[[lock]]\nkeys = \"a\"\nkind = \"token\"\nttl = 5\n", "line 4", "unknown field `ttl`"),
            ("[[lock]]\nkind = \"token\"\nkeys = \"\"\n", "line 3", "`keys` is empty"),
            ("[[lock]\n", "line 1", ""),
            ("", "", "no table [[lock]]"),
        ];
        for (text, line, part) in rows {
            let error = Patterns::parse(text).expect_err(text);
            assert!(error.contains(line) && error.contains(part), "{text}\n{error}");
        }
    }
}
