//! Reads MONITOR captures: lines of bytes to commands with their time, database and sender.
//!
//! A bad line becomes a [`Problem`] with its place, and the rest of the capture is read. Memory is
//! bounded by the longest line that is kept.

use std::{
    borrow::Cow,
    fmt,
    io::{self, BufRead},
    ops::Range,
};

use serde::Serialize;

/// The most bytes of one line that are kept. The words beyond it are no names of keys.
const LINE_MAX: usize = 1 << 20;

/// The most problems that are kept one by one; further ones are counted.
const PROBLEMS_MAX: usize = 100;

/// A clock that goes back by less than this is no step: a server stamps a script's commands and
/// those of a transaction out of order by microseconds.
const STEP_US: i64 = 1_000;

/// A line of MONITOR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    /// The server's wall clock in microseconds since 1970.
    pub at_us: i64,
    /// The number of the database.
    pub db: u32,
    /// The sender of the command.
    pub from: From<'a>,
    /// Name and arguments in the quotes of MONITOR.
    pub command: &'a [u8],
}

/// The sender of a command that MONITOR shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From<'a> {
    /// A connection, by the address at the client's end.
    Client(&'a [u8]),
    /// The script or function that the last command of a connection called.
    Script,
}

/// A defect of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Defect {
    /// The line does not begin with a time in seconds and microseconds.
    NoTime,
    /// The time is not followed by the database and the sender in brackets.
    NoSender,
    /// No quoted word follows.
    NoCommand,
    /// A word has no closing quote.
    CutOff,
    /// The line has bytes that MONITOR writes only as escapes.
    Binary,
    /// The line is longer than a mebibyte.
    TooLong,
    /// The time is earlier than that of a line before, by this many microseconds.
    Back(i64),
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Defect::NoTime => f.write_str("does not begin with a time, such as 1700000000.123456"),
            Defect::NoSender => f.write_str("has no database and sender, such as [0 10.0.0.1:50000]"),
            Defect::NoCommand => f.write_str("has no command in quotes"),
            Defect::CutOff => f.write_str("ends inside a word"),
            Defect::Binary => f.write_str("has bytes that MONITOR never writes"),
            Defect::TooLong => write!(f, "is longer than {LINE_MAX} bytes, and is read up to there"),
            Defect::Back(by) => {
                let (secs, micros) = (by / 1_000_000, by % 1_000_000);
                write!(
                    f,
                    "is {secs}.{micros:06} s earlier than the line before: the server's clock was set back, "
                )?;
                f.write_str("or captures of several servers are mixed in one file (give each its own --node)")
            }
        }
    }
}

impl<'a> Line<'a> {
    /// Parses a line such as `1700000000.123456 [0 127.0.0.1:50000] "SET" "a" "b"`, with or without
    /// the `+` of the protocol.
    ///
    /// # Errors
    /// If it is no line of MONITOR.
    pub fn parse(text: &'a [u8]) -> Result<Line<'a>, Defect> {
        Ok(Layout::of(text)?.line(text))
    }

    /// Returns the command's name as it was sent.
    pub fn name(&self) -> &'a [u8] {
        let rest = self.command.get(1..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b'"').unwrap_or(rest.len());
        &rest[..end]
    }

    /// Returns name and arguments without quotes and escapes.
    pub fn words(&self) -> Words<'a> {
        Words { rest: self.command }
    }
}

/// The parts of a line, by their places in its text.
#[derive(Debug, Clone, Default)]
struct Layout {
    at_us: i64,
    db: u32,
    sender: Range<usize>,
    /// The first byte of the command, which ends with the line.
    command: usize,
}

impl Layout {
    fn of(text: &[u8]) -> Result<Layout, Defect> {
        if text.iter().any(|byte| !(b' '..=b'~').contains(byte)) {
            return Err(Defect::Binary);
        }
        let begin = usize::from(text.first() == Some(&b'+'));
        let (at, rest) = split(&text[begin..], b" [").ok_or(Defect::NoTime)?;
        let at_us = micros(at).ok_or(Defect::NoTime)?;
        let (sender, command) = split(rest, b"] ").ok_or(Defect::NoSender)?;
        let (db, sender) = split(sender, b" ").ok_or(Defect::NoSender)?;
        let db = number(db).and_then(|db| u32::try_from(db).ok()).ok_or(Defect::NoSender)?;
        if command.first() != Some(&b'"') {
            return Err(Defect::NoCommand);
        }
        if !is_whole(command) {
            return Err(Defect::CutOff);
        }
        let command = text.len() - command.len();
        // The two bytes between sender and command are those of `] `.
        let end = command - 2;
        Ok(Layout { at_us, db, sender: end - sender.len()..end, command })
    }

    /// Returns the line whose layout this is.
    fn line<'a>(&self, text: &'a [u8]) -> Line<'a> {
        let sender = &text[self.sender.clone()];
        let from = if sender == b"lua" { From::Script } else { From::Client(sender) };
        Line { at_us: self.at_us, db: self.db, from, command: &text[self.command..] }
    }
}

/// Splits at the first occurrence of `at`, which is not part of the result.
fn split<'a>(text: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (first, rest) = at.split_first()?;
    let mut from = 0;
    loop {
        let found = from + text[from..].iter().position(|byte| byte == first)?;
        let after = &text[found + 1..];
        if let Some(after) = after.strip_prefix(rest) {
            return Some((&text[..found], after));
        }
        from = found + 1;
    }
}

/// Parses a number of at most 18 decimal digits.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits
        .iter()
        .try_fold(0_i64, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + i64::from(digit - b'0')))
}

fn micros(text: &[u8]) -> Option<i64> {
    let (secs, micros) = split(text, b".")?;
    if micros.len() != 6 {
        return None;
    }
    number(secs)?.checked_mul(1_000_000)?.checked_add(number(micros)?)
}

/// Returns true if the last word has its closing quote.
fn is_whole(command: &[u8]) -> bool {
    let Some(text) = command.strip_suffix(b"\"") else { return false };
    // An escaped quote ends no word: an odd number of backslashes precedes it.
    let escapes = text.iter().rev().take_while(|byte| **byte == b'\\').count();
    command.len() > 1 && escapes % 2 == 0
}

/// The words of a command, one after the other.
#[derive(Debug, Clone)]
pub struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Words<'a> {
    type Item = Cow<'a, [u8]>;

    fn next(&mut self) -> Option<Cow<'a, [u8]>> {
        let begin = self.rest.iter().position(|byte| *byte == b'"')? + 1;
        let text = &self.rest[begin..];
        let mut at = 0;
        let mut has_escapes = false;
        loop {
            match text.get(at)? {
                b'"' => break,
                b'\\' => {
                    has_escapes = true;
                    at += 2;
                }
                _ => at += 1,
            }
        }
        self.rest = &text[at + 1..];
        Some(if has_escapes { Cow::Owned(unescaped(&text[..at])) } else { Cow::Borrowed(&text[..at]) })
    }
}

/// Replaces the escapes of MONITOR by their bytes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'\\' {
            bytes.push(*first);
            continue;
        }
        let Some((escaped, after)) = rest.split_first() else { break };
        rest = after;
        bytes.push(match escaped {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'a' => 0x07,
            b'b' => 0x08,
            b'x' => {
                let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                    Some(byte) => {
                        rest = &rest[2..];
                        byte
                    }
                    None => b'x',
                }
            }
            other => *other,
        });
    }
    bytes
}

/// The unit in which a source counts the places of its commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Lines of a capture.
    Line,
    /// Bytes of an append-only file.
    Byte,
    /// Keyspace events of a server, counted from the first one.
    Event,
}

impl Unit {
    /// Returns the name of one of them, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Line => "line",
            Unit::Byte => "byte",
            Unit::Event => "event",
        }
    }
}

/// The exactness of a node's times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// To the microsecond, as MONITOR shows them.
    #[default]
    Exact,
    /// To the second, by the annotations of an append-only file.
    Seconds,
    /// An append-only file without annotations.
    Unknown,
}

/// A defect with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The name of the node, which is that of its file if the user gave it no other.
    pub node: String,
    /// The number of the line, from 1, or the offset in the file.
    pub line: u64,
    /// The unit of the number.
    pub unit: Unit,
    /// The defect in words, as the end of a sentence about the line or the file.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { node, line, what, .. } = self;
        match self.unit {
            Unit::Line => write!(f, "{node}:{line}: the line {what}"),
            Unit::Byte => write!(f, "{node}: the file {what}, from byte {line} on"),
            Unit::Event => write!(f, "{node}: event {line} {what}"),
        }
    }
}

/// The problems of a capture: the first ones, and the number of all.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Problems {
    /// The first problems.
    pub first: Vec<Problem>,
    /// The number of all problems.
    pub count: u64,
}

impl Problems {
    pub(super) fn add(&mut self, node: &str, (line, unit): (u64, Unit), what: &dyn fmt::Display) {
        self.count += 1;
        if self.first.len() < PROBLEMS_MAX {
            self.first.push(Problem { node: node.to_owned(), line, unit, what: what.to_string() });
        }
    }
}

/// The capture of one node, read line by line.
pub struct Capture<'a> {
    /// The name of the node.
    pub name: String,
    from: Box<dyn BufRead + 'a>,
    /// The present line without its end.
    line: Vec<u8>,
    /// The number of the present line, from 1.
    number: u64,
    last_us: i64,
    /// The parts of the present line; `None` before the first one.
    layout: Option<Layout>,
    /// Set if the present line is the first of a further connection.
    is_after_gap: bool,
}

impl fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capture({} at line {})", self.name, self.number)
    }
}

impl<'a> Capture<'a> {
    /// Begins to read a capture.
    pub fn new(name: impl Into<String>, from: impl BufRead + 'a) -> Capture<'a> {
        let (line, number, last_us, layout) = (Vec::new(), 0, i64::MIN, None);
        Capture {
            name: name.into(),
            from: Box::new(from),
            line,
            number,
            last_us,
            layout,
            is_after_gap: false,
        }
    }

    /// Moves to the next line that is one of MONITOR, and adds the defects of those before it to
    /// `problems`. Returns false at the end.
    ///
    /// # Errors
    /// If the capture cannot be read.
    pub(super) fn advance(&mut self, problems: &mut Problems) -> io::Result<bool> {
        self.layout = None;
        self.is_after_gap = false;
        loop {
            let Some(is_long) = self.read_line()? else { return Ok(false) };
            self.number += 1;
            // The reply to MONITOR, and the last line of redis-cli after a server's end.
            if self.line.is_empty() || self.line == b"OK" || self.line == b"+OK" {
                // The monitor has connected again: commands are missing in between.
                self.is_after_gap |= !self.line.is_empty() && self.last_us > i64::MIN;
                continue;
            }
            if is_long {
                problems.add(&self.name, (self.number, Unit::Line), &Defect::TooLong);
                close(&mut self.line);
            }
            match Layout::of(&self.line) {
                Ok(layout) => {
                    let at_us = layout.at_us;
                    if at_us < self.last_us.saturating_sub(STEP_US) {
                        problems.add(
                            &self.name,
                            (self.number, Unit::Line),
                            &Defect::Back(self.last_us - at_us),
                        );
                    }
                    (self.layout, self.last_us) = (Some(layout), at_us);
                    return Ok(true);
                }
                Err(defect) => problems.add(&self.name, (self.number, Unit::Line), &defect),
            }
        }
    }

    /// Returns the present line. `None` before the first one.
    pub(super) fn line(&self) -> Option<(u64, Line<'_>)> {
        Some((self.number, self.layout.as_ref()?.line(&self.line)))
    }

    /// Returns true if commands may be missing before the present line.
    pub(super) fn is_after_gap(&self) -> bool {
        self.is_after_gap
    }

    /// Returns the present line's time.
    pub(super) fn at_us(&self) -> i64 {
        self.layout.as_ref().map_or(0, |layout| layout.at_us)
    }

    /// Reads a line without its end. Returns true if it was longer than what is kept, and `None` at
    /// the end of the capture.
    fn read_line(&mut self) -> io::Result<Option<bool>> {
        self.line.clear();
        let (mut is_long, mut any) = (false, false);
        loop {
            let read = match self.from.fill_buf() {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if read.is_empty() {
                return Ok(any.then_some(is_long));
            }
            any = true;
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            let room = LINE_MAX.saturating_sub(self.line.len());
            is_long |= part.len() > room;
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let used = end.map_or(read.len(), |end| end + 1);
            self.from.consume(used);
            if end.is_some() {
                if self.line.last() == Some(&b'\r') {
                    self.line.pop();
                }
                return Ok(Some(is_long));
            }
        }
    }
}

/// Closes the last word of a line that was cut.
fn close(line: &mut Vec<u8>) {
    while line.last() == Some(&b'\\') {
        line.pop();
    }
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_when_where_who_and_what() {
        let client = |text: &'static str| From::Client(text.as_bytes());
        let line = |db, from, command: &'static str| {
            Ok(Line { at_us: 1_700_000_000_123_456, db, from, command: command.as_bytes() })
        };
        let rows: [(&str, Result<Line<'_>, Defect>); 13] = [
            (
                r#"1700000000.123456 [0 127.0.0.1:50000] "SET" "a" "x] y""#,
                line(0, client("127.0.0.1:50000"), r#""SET" "a" "x] y""#),
            ),
            (
                r#"+1700000000.123456 [15 [::1]:50000] "GET" "a""#,
                line(15, client("[::1]:50000"), r#""GET" "a""#),
            ),
            (r#"1700000000.123456 [3 lua] "get" "a""#, line(3, From::Script, r#""get" "a""#)),
            (
                r#"1700000000.123456 [0 unix:/run/redis.sock] "PING""#,
                line(0, client("unix:/run/redis.sock"), r#""PING""#),
            ),
            (r#"1700000000.123456 [0 1:2] "SET" "a\"""#, line(0, client("1:2"), r#""SET" "a\"""#)),
            ("Error: Server closed the connection", Err(Defect::NoTime)),
            (r#"1700000000 [0 1:2] "PING""#, Err(Defect::NoTime)),
            (r#"9223372036854775807.000001 [0 1:2] "PING""#, Err(Defect::NoTime)),
            (r#"1700000000.123456 [1:2] "PING""#, Err(Defect::NoSender)),
            (r#"1700000000.123456 [0 1:2] PING"#, Err(Defect::NoCommand)),
            (r#"1700000000.123456 [0 1:2] "SET" "a"#, Err(Defect::CutOff)),
            (r#"1700000000.123456 [0 1:2] "SET" "a\""#, Err(Defect::CutOff)),
            ("1700000000.123456 [0 1:2] \"SET\" \"\u{7}\"", Err(Defect::Binary)),
        ];
        for (text, expected) in rows {
            assert_eq!(Line::parse(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn the_words_of_a_line_are_what_was_sent() {
        let command = br#""EVAL" "a \"b\\\n" "" "\xd0\xb7 \x07\a" "c1:1""#;
        let line = Line { at_us: 0, db: 0, from: From::Script, command };
        let words: Vec<Vec<u8>> = line.words().map(Cow::into_owned).collect();
        let expected: [&[u8]; 5] = [b"EVAL", b"a \"b\\\n", b"", b"\xd0\xb7 \x07\x07", b"c1:1"];
        assert_eq!(words, expected);
        assert_eq!(line.name(), b"EVAL");
    }

    fn read(text: &[u8]) -> (Vec<(u64, String)>, Vec<String>) {
        let (mut lines, mut problems) = (Vec::new(), Problems::default());
        let mut capture = Capture::new("n1", text);
        while capture.advance(&mut problems).expect("it is in memory") {
            let (number, line) = capture.line().expect("there is a line");
            lines.push((number, String::from_utf8_lossy(line.name()).into_owned()));
        }
        (lines, problems.first.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_bad_line_is_named_and_the_rest_is_read() {
        let text = b"OK\n1700000000.000001 [0 1:2] \"PING\"\r\n\xff\xfe\n1700000000.000003 [0 1:2] \"GE\n\n\
            1700000000.000002 [0 1:2] \"GET\" \"a\"\n1690000000.000000 [0 1:2] \"DEL\" \"a\"\n\
            1690000001.000000 [0 1:2] \"SET\" \"a";
        let (lines, problems) = read(text);
        assert_eq!(lines, [(2, "PING".to_owned()), (6, "GET".to_owned()), (7, "DEL".to_owned())]);
        assert_eq!(problems[0], "n1:3: the line has bytes that MONITOR never writes");
        assert_eq!(problems[1], "n1:4: the line ends inside a word");
        assert!(
            problems[2].starts_with("n1:7: the line is 10000000.000002 s earlier than"),
            "{}",
            problems[2]
        );
        assert_eq!(problems[3], "n1:8: the line ends inside a word");
        assert_eq!(problems.len(), 4);
    }

    #[test]
    fn a_further_connection_follows_a_gap() {
        let text = b"OK\n1700000000.000001 [0 1:2] \"PING\"\n1700000000.000002 [0 1:2] \"PING\"\nOK\n\n\
            1700000009.000000 [0 1:2] \"PING\"\n1700000009.000001 [0 1:2] \"PING\"\n";
        let (mut gaps, mut problems) = (Vec::new(), Problems::default());
        let mut capture = Capture::new("n1", &text[..]);
        while capture.advance(&mut problems).expect("it is in memory") {
            gaps.push(capture.is_after_gap());
        }
        assert_eq!(gaps, [false, false, true, false]);
        assert_eq!(problems.count, 0);
    }

    #[test]
    fn a_line_of_any_length_takes_bounded_memory() {
        let mut text = b"1700000000.000001 [0 1:2] \"SET\" \"a\" \"".to_vec();
        text.resize(3 << 20, b'x');
        text.extend_from_slice(b"\"\n1700000000.000002 [0 1:2] \"PING\"\n");
        let (lines, problems) = read(&text);
        assert_eq!(lines, [(1, "SET".to_owned()), (2, "PING".to_owned())]);
        assert_eq!(problems, ["n1:1: the line is longer than 1048576 bytes, and is read up to there"]);
    }
}
