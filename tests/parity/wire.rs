//! Replies in their form on the wire, and in their form in transcripts.

use bytes::{Buf, BytesMut};

/// The kinds of replies that contain others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Array,
    /// Keys and values alternate.
    Map,
    Set,
    Push,
    /// Keys and values that describe the next reply.
    Attribute,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] = [Kind::Array, Kind::Map, Kind::Set, Kind::Push, Kind::Attribute];

    pub(crate) fn mark(self) -> char {
        match self {
            Kind::Array => '*',
            Kind::Map => '%',
            Kind::Set => '~',
            Kind::Push => '>',
            Kind::Attribute => '|',
        }
    }

    /// The number of replies in one counted element.
    pub(crate) fn width(self) -> usize {
        if matches!(self, Kind::Map | Kind::Attribute) { 2 } else { 1 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wire {
    Status(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    NullBulk,
    NullArray,
    Null,
    Double(Vec<u8>),
    Boolean(bool),
    Big(Vec<u8>),
    Verbatim(Vec<u8>),
    Items(Kind, Vec<Wire>),
}

impl Wire {
    /// Removes one complete reply from the front of `buffer`, with the line breaks before it, which
    /// a server sends to keep a replica from its timeout; `None` while it is incomplete.
    ///
    /// # Panics
    /// If the bytes are no reply: then a server is broken, and so is the rest of its stream.
    pub(crate) fn take(buffer: &mut BytesMut) -> Option<Wire> {
        let breaks = buffer.iter().take_while(|byte| **byte == b'\n').count();
        let mut rest = &buffer[breaks..];
        let wire = Wire::read(&mut rest)?;
        let used = buffer.len() - rest.len();
        buffer.advance(used);
        Some(wire)
    }

    /// Removes a snapshot from the front of `buffer`, with the line breaks before it; nothing
    /// follows it.
    pub(crate) fn take_snapshot(buffer: &mut BytesMut) -> Option<Wire> {
        let begin = buffer.iter().position(|byte| *byte != b'\n')?;
        let end = begin + buffer[begin..].windows(2).position(|two| two == b"\r\n")?;
        let digits = buffer[begin..end].strip_prefix(b"$").expect("a snapshot has a length or an end");
        if let Some(mark) = digits.strip_prefix(b"EOF:") {
            let len = buffer[end + 2..].windows(mark.len()).position(|part| part == mark)?;
            let (bytes, behind) = (buffer[end + 2..][..len].to_vec(), end + 2 + len + mark.len());
            buffer.advance(behind);
            return Some(Wire::Bulk(bytes));
        }
        let len: usize = std::str::from_utf8(digits).ok()?.parse().expect("a length");
        let bytes = buffer.get(end + 2..end + 2 + len)?.to_vec();
        buffer.advance(end + 2 + len);
        Some(Wire::Bulk(bytes))
    }

    fn read(rest: &mut &[u8]) -> Option<Wire> {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let (head, body) = (&rest[..end], &rest[end + 2..]);
        *rest = body;
        let text = &head[1..];
        let number = || {
            let digits = std::str::from_utf8(text).ok().and_then(|digits| digits.parse::<i64>().ok());
            digits.unwrap_or_else(|| panic!("no number in {}", quote(head)))
        };
        Some(match head[0] {
            b'+' => Wire::Status(text.to_vec()),
            b'-' => Wire::Error(text.to_vec()),
            b':' => Wire::Integer(number()),
            b',' => Wire::Double(text.to_vec()),
            b'(' => Wire::Big(text.to_vec()),
            b'_' => Wire::Null,
            b'#' => Wire::Boolean(text == b"t"),
            b'$' if number() < 0 => Wire::NullBulk,
            b'*' if number() < 0 => Wire::NullArray,
            mark @ (b'$' | b'=') => {
                let len = usize::try_from(number()).expect("a bulk has a length");
                let bytes = rest.get(..len + 2)?[..len].to_vec();
                *rest = &rest[len + 2..];
                if mark == b'$' { Wire::Bulk(bytes) } else { Wire::Verbatim(bytes) }
            }
            mark => {
                let kind = Kind::ALL.into_iter().find(|kind| kind.mark() == char::from(mark));
                let kind = kind.unwrap_or_else(|| panic!("no reply begins with {}", quote(head)));
                let len = usize::try_from(number()).expect("a sequence has a length") * kind.width();
                let mut items = Vec::new();
                for _ in 0..len {
                    items.push(Wire::read(rest)?);
                }
                Wire::Items(kind, items)
            }
        })
    }

    /// Writes the reply in the form of a transcript: one line per reply, with nested ones indented.
    pub(crate) fn lines(&self, indent: usize, out: &mut Vec<String>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let line = match self {
            Wire::Status(bytes) => format!("+{}", text(bytes)),
            Wire::Error(bytes) if !bytes.is_ascii() => format!("-{}", quote(bytes)),
            Wire::Error(bytes) => format!("-{}", text(bytes)),
            Wire::Integer(n) => format!(":{n}"),
            Wire::Bulk(bytes) => quote(bytes),
            Wire::NullBulk => "$nil".into(),
            Wire::NullArray => "*nil".into(),
            Wire::Null => "_".into(),
            Wire::Double(bytes) => format!(",{}", text(bytes)),
            Wire::Boolean(value) => if *value { "#t" } else { "#f" }.into(),
            Wire::Big(bytes) => format!("({}", text(bytes)),
            Wire::Verbatim(bytes) => format!("={}", quote(bytes)),
            Wire::Items(kind, items) => format!("{}{}", kind.mark(), items.len() / kind.width()),
        };
        out.push(format!("{:indent$}{line}", ""));
        if let Wire::Items(_, items) = self {
            items.iter().for_each(|item| item.lines(indent + 2, out));
        }
    }
}

/// Quotes bytes with the escapes that redis-cli reads and writes.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b'\n' => quoted.push_str("\\n"),
            b'\r' => quoted.push_str("\\r"),
            b'\t' => quoted.push_str("\\t"),
            b' '..=b'~' => quoted.push(char::from(byte)),
            other => quoted.push_str(&format!("\\x{other:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// Sorts the rules for single commands in a user's line: a real server keeps them unordered.
#[allow(dead_code, reason = "not every suite looks at users")]
pub(crate) fn permits_in_order(line: &str) -> String {
    let selectors = line.trim().trim_matches('"').split('(').map(|selector| {
        let mut words: Vec<&str> = selector.split(' ').collect();
        // The categories come first, in their effective order.
        let single = |word: &&str| word.starts_with(['+', '-']) && !word[1..].starts_with('@');
        let first = words.iter().position(single).unwrap_or(words.len());
        words[first..].sort_unstable();
        words.join(" ").replace(')', "")
    });
    selectors.collect::<Vec<_>>().join("(")
}

/// Encodes a command as the multibulk array that clients send.
pub(crate) fn command(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
