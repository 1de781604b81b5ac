//! Glob patterns, matched as in Redis: KEYS, SCAN, PSUBSCRIBE, CONFIG GET.

/// Returns true if `text` matches `pattern`: `*` any bytes, `?` one byte, `[a-z]` and `[^a-z]`
/// classes, `\` quotes the next byte.
///
/// The work is bounded by the product of both lengths, whatever the pattern.
///
/// ```
/// use lockstorm_sim::glob::matches;
/// assert!(matches(b"h[ae]llo*", b"hallo world"));
/// assert!(!matches(b"h[^a]llo", b"hallo"));
/// ```
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Redis takes no step into an empty text, so not even a star matches it.
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut p, mut t) = (0, 0);
    // The position to backtrack to when a match fails: after the last star, which then takes one
    // more byte.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') {
            p += 1;
            star = Some((p, t));
            continue;
        }
        if t < text.len() {
            if let Some(next) = one(pattern, p, text[t]) {
                (p, t) = (next, t + 1);
                continue;
            }
        } else if p >= pattern.len() {
            return true;
        }
        match star {
            Some((after, from)) if from < text.len() => {
                (p, t) = (after, from + 1);
                star = Some((after, from + 1));
            }
            _ => return false,
        }
    }
}

/// Like [`matches()`], except that a lone `*` also matches the empty name: KEYS, the scans.
pub fn selects(pattern: &[u8], name: &[u8]) -> bool {
    pattern == b"*" || matches(pattern, name)
}

/// Like [`matches()`], without regard to case: CONFIG GET, COMMAND LIST, FUNCTION LIST.
pub fn matches_in_any_case(pattern: &[u8], name: &[u8]) -> bool {
    matches(&pattern.to_ascii_lowercase(), &name.to_ascii_lowercase())
}

/// Matches one byte against the element of the pattern at `p`; returns the index after the element.
fn one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'\\' if p + 1 < pattern.len() => (pattern[p + 1] == byte).then_some(p + 2),
        b'[' => class(pattern, p + 1, byte),
        literal => (literal == byte).then_some(p + 1),
    }
}

fn class(pattern: &[u8], mut p: usize, byte: u8) -> Option<usize> {
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut hit = false;
    loop {
        match pattern.get(p..).unwrap_or_default() {
            // A class without a closing bracket ends with the pattern.
            [] => break,
            [b']', ..] => {
                p += 1;
                break;
            }
            [b'\\', quoted, ..] => {
                hit |= *quoted == byte;
                p += 2;
            }
            [low, b'-', high, ..] => {
                let (low, high) = (low.min(high), low.max(high));
                hit |= (*low..=*high).contains(&byte);
                p += 3;
            }
            [literal, ..] => {
                hit |= *literal == byte;
                p += 1;
            }
        }
    }
    (hit != negated).then_some(p)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("", "", true),
            // Not even a star matches empty text: 7.0 does not begin to compare.
            ("*", "", false),
            ("a*b*c", "aXXbYYc", true),
            ("a*b*c", "aXXbYY", false),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[c-a]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[\\]]", "]", true),
            ("[ab", "b", true),
            ("a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} on {text}");
        }
    }
}
