//! The transcript format: bytes to send, the connection to send them on, and the expected replies.
//!
//! ```text
//! # A comment.
//! ! option cluster-enabled yes  an option of the server; before all else
//! > SET k v PX 100        a command on the default connection; words as in redis-cli
//! +OK                     its reply; also -error :1 "bulk" $nil *nil *2 %1 ~2 >3 |1 ,1.5 #t (12
//!                         ="txt:.." _
//! 2> SUBSCRIBE ch         a command on connection `2`; several replies, or none while it waits
//! 2< >3                   a later reply without a command
//!   "message"             elements are indented by two spaces
//!   ...
//! 2>> "*1\r\n$4\r\nPI"    raw bytes
//! > CLIENT KILL ID {id:2}  the ID of connection `2`
//! ! sleep 150             milliseconds; virtual on the simulator
//! ! close 2               closes connection `2`
//! ! follow 2              a replica that has read the snapshot; the stream follows
//! ! disk full             the disk has no room for snapshots until
//! ! disk free
//! ```
//!
//! Patterns: `...` is any reply, `*~2` and `%~2` have any order (sets always have), `:~100±20` is a
//! near integer, `$~id=* db=?` is a bulk string that matches a glob, `-"ERR \xff"` an error that is
//! not text. `closed` means that the server closes the connection.

use std::fmt;

use lockstorm_sim::{
    glob::matches,
    resp::{Decoder, Limits},
};

use crate::wire::{Kind, Wire, command};

/// One step of a transcript, with the number of its line.
pub(crate) struct Step {
    pub(crate) line: usize,
    /// The text as written.
    pub(crate) text: String,
    pub(crate) action: Action,
    /// The expected replies, each with its lines as written.
    pub(crate) expected: Vec<(Expected, Vec<String>)>,
}

pub(crate) enum Action {
    /// A comment or an empty line, kept for recording.
    Nothing,
    Send(String, Sent),
    Receive(String),
    Sleep(u64),
    Close(String),
    Follow(String),
    Disk {
        full: bool,
    },
    /// An option with which the server starts.
    Option(String, String),
}

/// The bytes of a step.
pub(crate) enum Sent {
    /// A command. In it `{id:2}` stands for the reply to CLIENT ID on connection `2`.
    Words(Vec<Vec<u8>>),
    /// Bytes sent unchanged.
    Raw(Vec<u8>),
}

impl Sent {
    /// The bytes, with the IDs of connections from `id`.
    pub(crate) fn encode(&self, mut id: impl FnMut(&str) -> i64) -> Vec<u8> {
        match self {
            Sent::Raw(bytes) => bytes.clone(),
            Sent::Words(words) => {
                let number = |word: &Vec<u8>| {
                    let name = word.strip_prefix(b"{id:").and_then(|rest| rest.strip_suffix(b"}"));
                    name.map_or_else(
                        || word.clone(),
                        |name| id(&String::from_utf8_lossy(name)).to_string().into(),
                    )
                };
                command(&words.iter().map(number).collect::<Vec<_>>())
            }
        }
    }
}

/// A pattern for a reply.
pub(crate) enum Expected {
    Any,
    Closed,
    Exactly(Wire),
    Near { value: i64, tolerance: u64 },
    Glob(String),
    Items { kind: Kind, ordered: bool, items: Vec<Expected> },
}

/// The number of an invalid line, and the error.
#[derive(Debug)]
pub(crate) struct Unreadable(pub usize, pub String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.0, self.1)
    }
}

pub(crate) fn parse(text: &str) -> Result<Vec<Step>, Unreadable> {
    let lines: Vec<&str> = text.lines().collect();
    let mut steps: Vec<Step> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let number = at + 1;
        let unreadable = |why: &str| Unreadable(number, format!("{why}: {line}"));
        let mut step =
            Step { line: number, text: line.into(), action: Action::Nothing, expected: Vec::new() };
        if line.is_empty() || line.starts_with('#') && !matches!(line, "#t" | "#f") {
            at += 1;
            steps.push(step);
        } else if let Some(rest) = line.strip_prefix("! ") {
            step.action = match rest.split_whitespace().collect::<Vec<_>>()[..] {
                ["sleep", ms] => {
                    Action::Sleep(ms.parse().map_err(|_| unreadable("no number of milliseconds"))?)
                }
                ["close", name] => Action::Close(name.into()),
                ["follow", name] => Action::Follow(name.into()),
                ["disk", "full"] => Action::Disk { full: true },
                ["disk", "free"] => Action::Disk { full: false },
                ["option", name, value] => Action::Option(name.into(), value.into()),
                _ => return Err(unreadable("no such directive")),
            };
            at += 1;
            steps.push(step);
        } else if let Some((name, mark, rest)) = step_line(line) {
            step.action = match mark {
                "<" => Action::Receive(name.into()),
                _ => {
                    let words = words(rest).ok_or_else(|| unreadable("unbalanced quotes"))?;
                    let sent = if mark == ">>" { Sent::Raw(words.concat()) } else { Sent::Words(words) };
                    Action::Send(name.into(), sent)
                }
            };
            at += 1;
            if mark == "<" && !rest.is_empty() {
                step.text = line[..line.len() - rest.len()].trim_end().into();
                step.expected.push(expected(rest, &lines, &mut at, 0)?);
            }
            steps.push(step);
        } else {
            let Some(step) = steps.iter_mut().rev().find(|step| !matches!(step.action, Action::Nothing))
            else {
                return Err(unreadable("a reply to nothing"));
            };
            if !matches!(step.action, Action::Send(..) | Action::Receive(_)) {
                return Err(unreadable("a reply to a directive"));
            }
            at += 1;
            step.expected.push(expected(line, &lines, &mut at, 0)?);
        }
    }
    Ok(steps)
}

/// Splits `name> words`, `name>> bytes` or `name< reply`; the name may be empty.
fn step_line(line: &str) -> Option<(&str, &str, &str)> {
    let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let (name, rest) = line.split_at(end);
    ["> ", ">> ", "< ", "<"].into_iter().find_map(|mark| {
        let rest = rest.strip_prefix(mark)?;
        (mark != "<" || rest.is_empty()).then_some((name, mark.trim_end(), rest))
    })
}

/// Splits words like redis-cli and inline commands.
fn words(text: &str) -> Option<Vec<Vec<u8>>> {
    let mut decoder = Decoder::default();
    // An inline command may not begin with the mark of an array, so a word of our own goes first.
    decoder.feed(b"words ");
    decoder.feed(text.as_bytes());
    decoder.feed(b"\n");
    let limits = Limits { inline_len_max: usize::MAX, ..Limits::default() };
    Some(decoder.next(&limits).ok()??.into_iter().skip(1).map(Vec::from).collect())
}

/// Reads a reply whose first line is `first` and whose further lines begin at `at`.
fn expected(
    first: &str,
    lines: &[&str],
    at: &mut usize,
    indent: usize,
) -> Result<(Expected, Vec<String>), Unreadable> {
    let begin = *at;
    let unreadable = |why: &str| Unreadable(begin, format!("{why}: {first}"));
    let number = |text: &str| text.parse::<i64>().map_err(|_| unreadable("no number"));
    let Some(mark) = first.chars().next() else { return Err(unreadable("no reply")) };
    let rest = &first[mark.len_utf8()..];
    let bytes = || rest.as_bytes().to_vec();
    let quoted = |text: &str| match words(text).as_deref() {
        Some([word]) => Ok(word.clone()),
        _ => Err(unreadable("no quoted text")),
    };
    let reply = match (mark, rest) {
        ('.', "..") => Expected::Any,
        ('c', "losed") => Expected::Closed,
        ('+', _) => Expected::Exactly(Wire::Status(bytes())),
        ('-', text) if text.starts_with('"') => Expected::Exactly(Wire::Error(quoted(text)?)),
        ('-', _) => Expected::Exactly(Wire::Error(bytes())),
        (':', near) if near.starts_with('~') => {
            let (value, tolerance) = near[1..].split_once('±').ok_or_else(|| unreadable("no tolerance"))?;
            Expected::Near { value: number(value)?, tolerance: number(tolerance)?.unsigned_abs() }
        }
        (':', _) => Expected::Exactly(Wire::Integer(number(rest)?)),
        ('"', _) => Expected::Exactly(Wire::Bulk(quoted(first)?)),
        ('$', "nil") => Expected::Exactly(Wire::NullBulk),
        ('$', glob) if glob.starts_with('~') => Expected::Glob(glob[1..].into()),
        ('*', "nil") => Expected::Exactly(Wire::NullArray),
        ('_', "") => Expected::Exactly(Wire::Null),
        (',', _) => Expected::Exactly(Wire::Double(bytes())),
        ('#', "t" | "f") => Expected::Exactly(Wire::Boolean(rest == "t")),
        ('(', _) => Expected::Exactly(Wire::Big(bytes())),
        ('=', _) => Expected::Exactly(Wire::Verbatim(quoted(rest)?)),
        _ => {
            let kind = Kind::ALL.into_iter().find(|kind| kind.mark() == mark);
            let kind = kind.ok_or_else(|| unreadable("neither a step nor a reply"))?;
            let count = rest.strip_prefix('~').unwrap_or(rest);
            let len = usize::try_from(number(count)?).map_err(|_| unreadable("no length"))?;
            let mut items = Vec::new();
            for _ in 0..len * kind.width() {
                let line = lines.get(*at).and_then(|line| line.strip_prefix(&" ".repeat(indent + 2)));
                let line = line.ok_or_else(|| unreadable("too few elements"))?;
                *at += 1;
                items.push(expected(line, lines, at, indent + 2)?.0);
            }
            Expected::Items { kind, ordered: count.len() == rest.len() && kind != Kind::Set, items }
        }
    };
    let written =
        std::iter::once(first).chain(lines[begin..*at].iter().copied()).map(str::to_owned).collect();
    Ok((reply, written))
}

impl Expected {
    /// Returns true if a reply, or the end of the connection (`None`), is as expected.
    pub(crate) fn accepts(&self, reply: Option<&Wire>) -> bool {
        match (self, reply) {
            (Expected::Closed, reply) => reply.is_none(),
            (_, None) => false,
            (Expected::Any, _) => true,
            (Expected::Exactly(wire), Some(reply)) => wire == reply,
            (Expected::Near { value, tolerance }, Some(Wire::Integer(n))) => n.abs_diff(*value) <= *tolerance,
            (Expected::Glob(glob), Some(Wire::Bulk(text) | Wire::Verbatim(text))) => {
                matches(glob.as_bytes(), text)
            }
            (Expected::Items { kind, ordered, items }, Some(Wire::Items(of, replies))) => {
                if kind != of || items.len() != replies.len() {
                    return false;
                }
                let mut left: Vec<&[Wire]> = replies.chunks(kind.width()).collect();
                items.chunks(kind.width()).all(|wanted| {
                    let found = left.iter().position(|replies| {
                        wanted.iter().zip(*replies).all(|(wanted, reply)| wanted.accepts(Some(reply)))
                    });
                    let found = found.filter(|at| !ordered || *at == 0);
                    found.map(|at| left.remove(at)).is_some()
                })
            }
            (Expected::Near { .. } | Expected::Glob(_) | Expected::Items { .. }, Some(_)) => false,
        }
    }
}
