//! Lua's patterns, as section 5.4.1 of the Lua 5.1 manual describes them: finds matches and their
//! captures.
//!
//! A pattern like `.-.-.-x` can run for a very long time inside one instruction of Lua. So each
//! step is charged to the script's budget. The alternatives still to try are on a separate stack,
//! which grows no deeper than the pattern is long.

/// Maximum number of captures of a pattern.
const CAPTURES_MAX: usize = 32;
/// Bytes scanned in the time of one step, where no decision is made for each byte.
const BYTES_PER_STEP: usize = 16;

/// Reason why matching ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The pattern is malformed. The text is Lua's.
    Malformed(&'static str),
    /// The budget is used up.
    Spent,
}

const ENDS_WITH_ESCAPE: Fault = Fault::Malformed("malformed pattern (ends with '%')");
const MISSING_BRACKET: Fault = Fault::Malformed("malformed pattern (missing ']')");
const MISSING_SET: Fault = Fault::Malformed("missing '[' after '%f' in pattern");
const UNBALANCED: Fault = Fault::Malformed("unbalanced pattern");
const NO_OPEN_CAPTURE: Fault = Fault::Malformed("invalid pattern capture");
const UNFINISHED: Fault = Fault::Malformed("unfinished capture");
const TOO_MANY_CAPTURES: Fault = Fault::Malformed("too many captures");
const NO_SUCH_CAPTURE: Fault = Fault::Malformed("invalid capture index");

/// The content of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Captured {
    /// `()`: its offset in the text, counted from 0.
    Position(usize),
    /// The text between two offsets.
    Text(usize, usize),
}

#[derive(Debug, Clone, Copy)]
struct Capture {
    start: usize,
    extent: Extent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// The closing parenthesis is not reached yet.
    Open,
    Position,
    Len(usize),
}

/// An action to undo, or an alternative to try, when the match fails later. `p` and `rest` are
/// offsets in the pattern.
enum Choice {
    /// A capture began.
    Opened,
    /// A capture ended.
    Closed(usize),
    /// `*` and `+`: took `more` bytes beyond the minimum from `s` on.
    Greedy { s: usize, more: usize, rest: usize },
    /// `-`: may take one more byte at `s`.
    Lazy { s: usize, p: usize, end: usize },
    /// `?`: try without the byte.
    Without { s: usize, rest: usize },
}

/// Result of matching one item of the pattern.
enum Step {
    On(usize, usize),
    Failed,
    Matched(usize),
}

/// Supplies steps to a search that has used up its own.
pub(super) trait Fuel {
    /// Returns the number of further steps; 0 ends the search.
    fn more(&self) -> u64;
}

/// Matches a pattern against a text.
pub(super) struct Matcher<'a, F> {
    text: &'a [u8],
    pattern: &'a [u8],
    /// Steps left for the current search.
    fuel: u64,
    source: F,
    captures: [Capture; CAPTURES_MAX],
    level: usize,
    choices: Vec<Choice>,
}

impl<'a, F: Fuel> Matcher<'a, F> {
    /// Like C, Lua reads a pattern up to its first zero byte.
    pub(super) fn new(text: &'a [u8], pattern: &'a [u8], source: F) -> Matcher<'a, F> {
        let end = pattern.iter().position(|&b| b == 0).unwrap_or(pattern.len());
        let unused = Capture { start: 0, extent: Extent::Open };
        let captures = [unused; CAPTURES_MAX];
        Matcher { text, pattern: &pattern[..end], fuel: 0, source, captures, level: 0, choices: Vec::new() }
    }

    /// Finds the first match that begins at `from` or later, or with `anchored` exactly at `from`.
    /// Returns its start and end. Each step costs one unit of `fuel`.
    pub(super) fn seek(
        &mut self,
        from: usize,
        anchored: bool,
        fuel: &mut u64,
    ) -> Result<Option<(usize, usize)>, Fault> {
        self.fuel = *fuel;
        let found = self.seek_charged(from, anchored);
        *fuel = self.fuel;
        found
    }

    fn seek_charged(&mut self, from: usize, anchored: bool) -> Result<Option<(usize, usize)>, Fault> {
        for start in from..=self.text.len() {
            if let Some(end) = self.match_at(start)? {
                return Ok(Some((start, end)));
            }
            if anchored {
                break;
            }
        }
        Ok(None)
    }

    /// Returns the number of captures of the last match.
    pub(super) fn count(&self) -> usize {
        self.level
    }

    /// Returns capture `at` of the last match, whose span is `whole`. A pattern without captures
    /// captures the whole match.
    pub(super) fn capture(&self, at: usize, whole: (usize, usize)) -> Result<Captured, Fault> {
        if at >= self.level {
            return if at == 0 { Ok(Captured::Text(whole.0, whole.1)) } else { Err(NO_SUCH_CAPTURE) };
        }
        let Capture { start, extent } = self.captures[at];
        match extent {
            Extent::Open => Err(UNFINISHED),
            Extent::Position => Ok(Captured::Position(start)),
            Extent::Len(len) => Ok(Captured::Text(start, start + len)),
        }
    }

    fn spend(&mut self, steps: usize) -> Result<(), Fault> {
        self.fuel = self.fuel.saturating_sub(steps as u64);
        if self.fuel == 0 {
            self.fuel = self.source.more();
        }
        if self.fuel == 0 { Err(Fault::Spent) } else { Ok(()) }
    }

    /// Returns the byte of the pattern at `p`, or zero at its end.
    fn code(&self, p: usize) -> u8 {
        self.pattern.get(p).copied().unwrap_or(0)
    }

    fn match_at(&mut self, start: usize) -> Result<Option<usize>, Fault> {
        self.level = 0;
        self.choices.clear();
        let (mut s, mut p) = (start, 0);
        loop {
            self.spend(1)?;
            (s, p) = match self.item(s, p)? {
                Step::On(s, p) => (s, p),
                Step::Matched(end) => return Ok(Some(end)),
                Step::Failed => match self.otherwise()? {
                    Some(at) => at,
                    None => return Ok(None),
                },
            };
        }
    }

    /// Matches the item at `p` against the text at `s`.
    fn item(&mut self, s: usize, p: usize) -> Result<Step, Fault> {
        match (self.code(p), self.code(p + 1)) {
            (0, _) => Ok(Step::Matched(s)),
            (b'(', b')') => self.open(s, Extent::Position, p + 2),
            (b'(', _) => self.open(s, Extent::Open, p + 1),
            (b')', _) => self.close(s, p + 1),
            (b'%', b'b') => self.balanced(s, p + 2),
            (b'%', b'f') => self.frontier(s, p + 2),
            (b'%', digit @ b'0'..=b'9') => self.captured_again(s, digit, p + 2),
            (b'$', 0) => Ok(if s == self.text.len() { Step::On(s, p + 1) } else { Step::Failed }),
            _ => self.single(s, p),
        }
    }

    fn open(&mut self, start: usize, extent: Extent, rest: usize) -> Result<Step, Fault> {
        let capture = self.captures.get_mut(self.level).ok_or(TOO_MANY_CAPTURES)?;
        *capture = Capture { start, extent };
        self.level += 1;
        self.choices.push(Choice::Opened);
        Ok(Step::On(start, rest))
    }

    fn close(&mut self, s: usize, rest: usize) -> Result<Step, Fault> {
        let open = self.captures[..self.level].iter().rposition(|capture| capture.extent == Extent::Open);
        let at = open.ok_or(NO_OPEN_CAPTURE)?;
        self.captures[at].extent = Extent::Len(s - self.captures[at].start);
        self.choices.push(Choice::Closed(at));
        Ok(Step::On(s, rest))
    }

    /// `%bxy`
    fn balanced(&mut self, s: usize, p: usize) -> Result<Step, Fault> {
        let (opening, closing) = (self.code(p), self.code(p + 1));
        if opening == 0 || closing == 0 {
            return Err(UNBALANCED);
        }
        if self.text.get(s) != Some(&opening) {
            return Ok(Step::Failed);
        }
        let mut depth = 1;
        for at in s + 1..self.text.len() {
            self.spend(1)?;
            let byte = self.text[at];
            if byte == closing {
                depth -= 1;
                if depth == 0 {
                    return Ok(Step::On(at + 1, p + 2));
                }
            } else if byte == opening {
                depth += 1;
            }
        }
        Ok(Step::Failed)
    }

    /// `%f[set]`
    fn frontier(&mut self, s: usize, p: usize) -> Result<Step, Fault> {
        if self.code(p) != b'[' {
            return Err(MISSING_SET);
        }
        let end = self.single_end(p)?;
        let before = if s == 0 { 0 } else { self.text[s - 1] };
        let after = self.text.get(s).copied().unwrap_or(0);
        let passes = !self.in_set(before, p, end - 1) && self.in_set(after, p, end - 1);
        Ok(if passes { Step::On(s, end) } else { Step::Failed })
    }

    /// `%1`
    fn captured_again(&mut self, s: usize, digit: u8, rest: usize) -> Result<Step, Fault> {
        let at = usize::from(digit).checked_sub(usize::from(b'1'));
        let capture = at.and_then(|at| self.captures[..self.level].get(at)).ok_or(NO_SUCH_CAPTURE)?;
        let Capture { start, extent } = *capture;
        let len = match extent {
            Extent::Open => return Err(NO_SUCH_CAPTURE),
            Extent::Position => return Ok(Step::Failed),
            Extent::Len(len) => len,
        };
        self.spend(len / BYTES_PER_STEP)?;
        let again = self.text[s..].starts_with(&self.text[start..start + len]);
        Ok(if again { Step::On(s + len, rest) } else { Step::Failed })
    }

    /// Matches an item for one byte, with an optional `*`, `+`, `-` or `?` after it.
    fn single(&mut self, s: usize, p: usize) -> Result<Step, Fault> {
        let end = self.single_end(p)?;
        let fits = self.fits(s, p, end)?;
        let rest = end + 1;
        Ok(match self.code(end) {
            b'?' => {
                if fits {
                    self.choices.push(Choice::Without { s, rest });
                }
                Step::On(s + usize::from(fits), rest)
            }
            b'*' => self.greedy(s, p, end)?,
            b'+' if fits => self.greedy(s + 1, p, end)?,
            b'-' => {
                self.choices.push(Choice::Lazy { s, p, end });
                Step::On(s, rest)
            }
            b'+' => Step::Failed,
            _ if fits => Step::On(s + 1, end),
            _ => Step::Failed,
        })
    }

    fn greedy(&mut self, s: usize, p: usize, end: usize) -> Result<Step, Fault> {
        let mut more = 0;
        while self.fits(s + more, p, end)? {
            more += 1;
        }
        if more > 0 {
            self.choices.push(Choice::Greedy { s, more, rest: end + 1 });
        }
        Ok(Step::On(s + more, end + 1))
    }

    /// Returns to the last choice with an alternative left. `None` if no choice has one.
    fn otherwise(&mut self) -> Result<Option<(usize, usize)>, Fault> {
        while let Some(choice) = self.choices.pop() {
            match choice {
                Choice::Opened => self.level -= 1,
                Choice::Closed(at) => self.captures[at].extent = Extent::Open,
                Choice::Greedy { s, more, rest } => {
                    let more = more - 1;
                    if more > 0 {
                        self.choices.push(Choice::Greedy { s, more, rest });
                    }
                    return Ok(Some((s + more, rest)));
                }
                Choice::Lazy { s, p, end } => {
                    if self.fits(s, p, end)? {
                        self.choices.push(Choice::Lazy { s: s + 1, p, end });
                        return Ok(Some((s + 1, end + 1)));
                    }
                }
                Choice::Without { s, rest } => return Ok(Some((s, rest))),
            }
        }
        Ok(None)
    }

    /// Returns the end of the single-byte item at `p`.
    fn single_end(&mut self, p: usize) -> Result<usize, Fault> {
        match self.code(p) {
            b'%' if p + 1 >= self.pattern.len() => Err(ENDS_WITH_ESCAPE),
            b'%' => Ok(p + 2),
            b'[' => {
                let begin = p;
                let mut p = p + 1 + usize::from(self.code(p + 1) == b'^');
                // A bracket in first position is literal.
                loop {
                    let escape = self.code(p) == b'%';
                    if p >= self.pattern.len() {
                        return Err(MISSING_BRACKET);
                    }
                    p += 1;
                    p += usize::from(escape && p < self.pattern.len());
                    if self.code(p) == b']' {
                        self.spend((p - begin) / BYTES_PER_STEP)?;
                        return Ok(p + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Returns true if the byte of the text at `s` matches the item from `p` to `end`.
    fn fits(&mut self, s: usize, p: usize, end: usize) -> Result<bool, Fault> {
        self.spend(1 + (end - p) / BYTES_PER_STEP)?;
        let Some(&byte) = self.text.get(s) else { return Ok(false) };
        Ok(match self.code(p) {
            b'.' => true,
            b'%' => in_class(byte, self.code(p + 1)),
            b'[' => self.in_set(byte, p, end - 1),
            literal => literal == byte,
        })
    }

    /// Returns true if a byte is in the set whose `[` is at `p` and whose `]` is at `last`.
    fn in_set(&self, byte: u8, p: usize, last: usize) -> bool {
        let inverted = self.code(p + 1) == b'^';
        let mut p = p + 1 + usize::from(inverted);
        while p < last {
            let code = self.code(p);
            let found = if code == b'%' {
                p += 1;
                in_class(byte, self.code(p))
            } else if self.code(p + 1) == b'-' && p + 2 < last {
                p += 2;
                (code..=self.code(p)).contains(&byte)
            } else {
                code == byte
            };
            if found {
                return !inverted;
            }
            p += 1;
        }
        inverted
    }
}

/// Returns true if a byte is in the class: `%a` and the like, negated in upper case. Any other
/// class byte matches only itself.
fn in_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        // C's class includes the vertical tab.
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in != class.is_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use mlua::Lua;
    use proptest::prelude::*;

    use super::*;

    /// Supplies no steps beyond those a search begins with.
    struct Dry;

    impl Fuel for Dry {
        fn more(&self) -> u64 {
            0
        }
    }

    fn found(text: &[u8], pattern: &[u8], mut fuel: u64) -> Result<Option<(usize, usize)>, Fault> {
        Matcher::new(text, pattern, Dry).seek(0, false, &mut fuel)
    }

    #[test]
    fn a_match_that_would_take_for_ever_runs_out_of_budget_instead() {
        let (text, pattern) = ("x".repeat(100_000), format!("{}y", ".-".repeat(30)));
        assert_eq!(found(text.as_bytes(), pattern.as_bytes(), 1_000_000), Err(Fault::Spent));
        let set = format!("[{}]*$", "a".repeat(10_000));
        assert_eq!(found("aa".repeat(1000).as_bytes(), set.as_bytes(), 100_000), Err(Fault::Spent));
    }

    #[test]
    fn a_pattern_of_any_length_needs_no_stack() {
        let long = 1 << 20;
        for item in [".?", ".-", ".*", "a", "%f[x]", "()", "(", ")", "[", "%b"] {
            let _ = found(b"aaaa", item.repeat(long).as_bytes(), 1 << 24);
        }
    }

    /// Returns the match of the interpreter's own matcher.
    fn of_lua(lua: &Lua, text: &[u8], pattern: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let string: mlua::Table = lua.globals().get("string").expect("the library is there");
        // `find` skips the matcher if a pattern has no special character, and `gmatch` does not
        // support anchors.
        let matching: mlua::Function = string.get("match").expect("and has it");
        let arguments = [text, pattern].map(|bytes| lua.create_string(bytes).expect("there is memory"));
        let [text, pattern] = arguments;
        let found = matching.call::<mlua::Variadic<Option<mlua::LuaString>>>((text, pattern));
        let found = found.map_err(|error| error.to_string())?;
        Ok(found.iter().flatten().map(|capture| capture.as_bytes().to_vec()).collect())
    }

    fn of_ours(text: &[u8], pattern: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
        let anchored = pattern.first() == Some(&b'^');
        let mut matcher = Matcher::new(text, &pattern[usize::from(anchored)..], Dry);
        let Some(whole) = matcher.seek(0, anchored, &mut 10_000_000)? else { return Ok(Vec::new()) };
        let captures = (0..matcher.count().max(1)).map(|at| {
            Ok(match matcher.capture(at, whole)? {
                Captured::Position(at) => (at + 1).to_string().into_bytes(),
                Captured::Text(from, to) => text[from..to].to_vec(),
            })
        });
        captures.collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn it_finds_what_lua_finds(
            text in "[ab(). ]{0,12}",
            pattern in "\\^?(\\(|\\)|\\(\\)|\\[\\^?[ab%.\\]-]{0,4}\\]?|%[abflpsw1-3%]|%f\\[[ab%]{1,2}\\]|%b\\(\\)|[ab.$]|[ab.][*+?-]){0,7}",
        ) {
            let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
            match (of_lua(&Lua::new(), text, pattern), of_ours(text, pattern)) {
                (Ok(theirs), Ok(ours)) => prop_assert_eq!(ours, theirs, "{:?} in {:?}", pattern, text),
                (Err(theirs), Err(Fault::Malformed(ours))) => prop_assert!(theirs.contains(ours), "{} {}", ours, theirs),
                (theirs, ours) => prop_assert!(false, "{:?} in {:?}: {:?} and {:?}", pattern, text, ours, theirs),
            }
        }
    }
}
