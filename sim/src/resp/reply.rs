//! Replies, and their encoding in each protocol version.

use std::borrow::Cow;

use bytes::Bytes;

use crate::blob::Blob;

/// The protocol version of a connection, chosen with HELLO.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Protocol {
    /// RESP2, the default.
    #[default]
    Resp2,
    /// RESP3: maps, sets, doubles, booleans, pushes.
    Resp3,
}

/// One reply of a server. On a RESP2 connection the richer RESP3 kinds are encoded in their older
/// form.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// `+OK`: a short text without line breaks.
    Status(Cow<'static, str>),
    /// `-ERR ...`: code and text, without line breaks.
    Error(Cow<'static, str>),
    /// `:1`: a signed 64-bit number.
    Integer(i64),
    /// `$3`: any bytes.
    Bulk(Blob),
    /// `$-1` (RESP2) or `_` (RESP3): no value.
    Null,
    /// `*-1` (RESP2) or `_` (RESP3): no array, as in replies of EXEC and the blocking pops.
    NullArray,
    /// `*2`: a sequence of replies, perhaps of different kinds.
    Array(Vec<Reply>),
    /// `%1` in RESP3; a flat array of twice the length in RESP2.
    Map(Vec<(Reply, Reply)>),
    /// An array of arrays of two in RESP3, one flat array in RESP2, as ZRANGE replies with scores.
    Pairs(Vec<(Reply, Reply)>),
    /// `~2` in RESP3; an array in RESP2.
    Set(Vec<Reply>),
    /// `>3` in RESP3; an array in RESP2.
    Push(Vec<Reply>),
    /// `|1` in RESP3, nothing in RESP2: an attribute of the reply that follows.
    Attribute(Vec<(Reply, Reply)>),
    /// `,1.5` in RESP3; a bulk string in RESP2.
    Double(f64),
    /// `,1.5` in RESP3; a bulk string in RESP2: a number whose digits the command itself has
    /// chosen.
    Decimal(Bytes),
    /// `#t` in RESP3; `:1` or `:0` in RESP2.
    Boolean(bool),
    /// `=7 txt:...` in RESP3 with a three-letter format; a bulk string in RESP2.
    Verbatim([u8; 3], Bytes),
    /// `(123` in RESP3: an integer of any size as decimal text; a bulk string in RESP2.
    BigNumber(Bytes),
    /// Several replies to one command, one after the other, as for SUBSCRIBE with many channels.
    Several(Vec<Reply>),
    /// A reply that is already encoded: in a protocol that the connection has left since (HELLO in
    /// a transaction), or because it nests very deep (a script's tables).
    Written(Bytes),
    /// Nothing is written: the reply was suppressed, or comes later (a blocked client).
    Silence,
}

/// A destination of encoded replies.
pub trait Sink {
    /// Writes one byte.
    fn push(&mut self, byte: u8);

    /// Writes bytes.
    fn extend_from_slice(&mut self, bytes: &[u8]);

    /// Writes the bytes of a value; a sink may share them instead of copying.
    fn blob(&mut self, blob: &Blob) {
        self.extend_from_slice(blob);
    }
}

impl Sink for Vec<u8> {
    fn push(&mut self, byte: u8) {
        self.push(byte);
    }

    fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

impl Reply {
    /// The reply of a command that succeeded and has no result.
    pub const OK: Reply = Reply::Status(Cow::Borrowed("OK"));
    /// The reply to a command queued inside MULTI.
    pub const QUEUED: Reply = Reply::Status(Cow::Borrowed("QUEUED"));

    /// Returns a bulk string with a copy of `bytes`.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Reply {
        Reply::Bulk(Blob::copy(bytes.as_ref()))
    }

    /// Gives each double as few digits as identify it; see [`short_double`].
    pub fn shorten_doubles(&mut self) {
        match self {
            Reply::Double(value) => *self = Reply::Decimal(Bytes::from(short_double(*value))),
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) | Reply::Several(items) => {
                items.iter_mut().for_each(Reply::shorten_doubles);
            }
            Reply::Map(pairs) | Reply::Pairs(pairs) => pairs.iter_mut().for_each(|(first, second)| {
                first.shorten_doubles();
                second.shorten_doubles();
            }),
            _ => {}
        }
    }

    /// Returns the same reply encoded in `protocol`, whatever the protocol of the replies around
    /// it.
    pub fn written(&self, protocol: Protocol) -> Reply {
        let mut bytes = Vec::new();
        self.encode(protocol, &mut bytes);
        Reply::Written(bytes.into())
    }

    /// Returns true for an error reply itself; false for an array that contains errors.
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }

    /// Returns true for a pushed message, which is no reply to a command.
    pub fn is_push(&self) -> bool {
        match self {
            Reply::Push(_) => true,
            Reply::Several(replies) => replies.iter().all(Reply::is_push),
            _ => false,
        }
    }

    /// Appends the reply to `out` in the encoding of `protocol`.
    ///
    /// ```
    /// use lockstorm_sim::resp::{Protocol, Reply};
    /// let mut out = Vec::new();
    /// Reply::Map(vec![(Reply::bulk("a"), Reply::Integer(1))]).encode(Protocol::Resp2, &mut out);
    /// assert_eq!(out, b"*2\r\n$1\r\na\r\n:1\r\n");
    /// ```
    pub fn encode(&self, protocol: Protocol, out: &mut impl Sink) {
        let resp3 = protocol == Protocol::Resp3;
        match self {
            Reply::Status(text) => line(out, b'+', &quoted(text)),
            Reply::Error(text) => line(out, b'-', &quoted(text)),
            Reply::Integer(n) => number(out, b':', *n),
            Reply::Bulk(bytes) => {
                number(out, b'$', bytes.len() as i64);
                out.blob(bytes);
                out.extend_from_slice(b"\r\n");
            }
            Reply::Null if resp3 => out.extend_from_slice(b"_\r\n"),
            Reply::Null => out.extend_from_slice(b"$-1\r\n"),
            Reply::NullArray if resp3 => out.extend_from_slice(b"_\r\n"),
            Reply::NullArray => out.extend_from_slice(b"*-1\r\n"),
            Reply::Array(items) => sequence(out, b'*', items, protocol),
            Reply::Set(items) => sequence(out, if resp3 { b'~' } else { b'*' }, items, protocol),
            Reply::Push(items) => sequence(out, if resp3 { b'>' } else { b'*' }, items, protocol),
            Reply::Map(pairs) => {
                let (kind, len) = if resp3 { (b'%', pairs.len()) } else { (b'*', pairs.len() * 2) };
                number(out, kind, len as i64);
                for (key, value) in pairs {
                    key.encode(protocol, out);
                    value.encode(protocol, out);
                }
            }
            Reply::Written(bytes) => out.extend_from_slice(bytes),
            Reply::Attribute(_) if !resp3 => {}
            Reply::Attribute(pairs) => {
                number(out, b'|', pairs.len() as i64);
                for (key, value) in pairs {
                    key.encode(protocol, out);
                    value.encode(protocol, out);
                }
            }
            Reply::Pairs(pairs) => {
                number(out, b'*', (pairs.len() * if resp3 { 1 } else { 2 }) as i64);
                for (first, second) in pairs {
                    if resp3 {
                        number(out, b'*', 2);
                    }
                    first.encode(protocol, out);
                    second.encode(protocol, out);
                }
            }
            Reply::Double(value) if resp3 => line(out, b',', format_double(*value).as_bytes()),
            Reply::Double(value) => bulk(out, b'$', format_double(*value).as_bytes()),
            Reply::Decimal(digits) if resp3 => line(out, b',', digits),
            Reply::Decimal(digits) => bulk(out, b'$', digits),
            Reply::Boolean(value) if resp3 => {
                out.extend_from_slice(if *value { b"#t\r\n" } else { b"#f\r\n" })
            }
            Reply::Boolean(value) => number(out, b':', i64::from(*value)),
            Reply::Verbatim(format, text) if resp3 => {
                let mut body = Vec::with_capacity(text.len() + 4);
                body.extend_from_slice(format);
                body.push(b':');
                body.extend_from_slice(text);
                bulk(out, b'=', &body);
            }
            Reply::Verbatim(_, text) => bulk(out, b'$', text),
            Reply::BigNumber(digits) if resp3 => line(out, b'(', digits),
            Reply::BigNumber(digits) => bulk(out, b'$', digits),
            Reply::Several(replies) => replies.iter().for_each(|reply| reply.encode(protocol, out)),
            Reply::Silence => {}
        }
    }
}

impl From<i64> for Reply {
    fn from(n: i64) -> Reply {
        Reply::Integer(n)
    }
}

impl From<usize> for Reply {
    fn from(n: usize) -> Reply {
        Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Reply {
    /// Most commands reply with 1 and 0 for true and false, in both protocols.
    fn from(yes: bool) -> Reply {
        Reply::Integer(i64::from(yes))
    }
}

impl From<Blob> for Reply {
    fn from(bytes: Blob) -> Reply {
        Reply::Bulk(bytes)
    }
}

impl From<&Blob> for Reply {
    fn from(bytes: &Blob) -> Reply {
        Reply::Bulk(bytes.apart())
    }
}

impl From<Bytes> for Reply {
    fn from(bytes: Bytes) -> Reply {
        Reply::Bulk(bytes.into())
    }
}

impl From<&Bytes> for Reply {
    fn from(bytes: &Bytes) -> Reply {
        Reply::Bulk(bytes.into())
    }
}

impl<T: Into<Reply>> From<Option<T>> for Reply {
    fn from(value: Option<T>) -> Reply {
        value.map_or(Reply::Null, Into::into)
    }
}

impl From<Vec<Reply>> for Reply {
    fn from(items: Vec<Reply>) -> Reply {
        Reply::Array(items)
    }
}

/// Converts bytes of a client to the text of an error: one character for each byte, because they
/// need not be UTF-8. The encoder converts them back to bytes.
///
/// ```
/// use lockstorm_sim::resp::{quotable, quoted};
/// assert_eq!(quoted(&quotable(b"caf\xc3\xa9 \xff"))[..], b"caf\xc3\xa9 \xff"[..]);
/// ```
pub fn quotable(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Returns the bytes of the text of an error or status, see [`quotable`].
pub fn quoted(text: &str) -> Cow<'_, [u8]> {
    if text.is_ascii() {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match u8::try_from(letter) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// Writes a status or error line. Line breaks inside would end the line early, so they become
/// spaces.
fn line(out: &mut impl Sink, kind: u8, text: &[u8]) {
    out.push(kind);
    // Line breaks at the end of an error are omitted.
    let breaks = text.iter().rev().take_while(|b| kind == b'-' && matches!(b, b'\r' | b'\n')).count();
    let text = &text[..text.len() - breaks];
    for (at, part) in text.split(|b| matches!(b, b'\r' | b'\n')).enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}

fn number(out: &mut impl Sink, kind: u8, n: i64) {
    // Most numbers have one digit, and formatting machinery would be most of their cost.
    if (0..10).contains(&n) {
        out.extend_from_slice(&[kind, b'0' + n as u8, b'\r', b'\n']);
        return;
    }
    out.push(kind);
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn bulk(out: &mut impl Sink, kind: u8, bytes: &[u8]) {
    number(out, kind, bytes.len() as i64);
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

fn sequence(out: &mut impl Sink, kind: u8, items: &[Reply], protocol: Protocol) {
    number(out, kind, items.len() as i64);
    items.iter().for_each(|item| item.encode(protocol, out));
}

/// Formats a double as Redis prints scores: like C's `%.17g`, with whole numbers written without an
/// exponent or a point.
///
/// ```
/// use lockstorm_sim::resp::format_double;
/// assert_eq!(format_double(3.0), "3");
/// assert_eq!(format_double(0.1), "0.10000000000000001");
/// assert_eq!(format_double(f64::INFINITY), "inf");
/// ```
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan" } else { "nan" }.into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.into();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.into();
    }
    // Whole numbers in the range where a double is exact are written as integers.
    if value.fract() == 0.0 && value.abs() < 4_503_599_627_370_496.0 {
        return (value as i64).to_string();
    }
    general(value, 17)
}

/// The largest whole number that [`short_double`] writes as an integer in any case.
const WHOLE_MAX: f64 = 4_611_686_018_427_387_904.0;

/// Formats a double as servers from Redis 7.2 on print scores: with as few digits as identify it.
///
/// ```
/// use lockstorm_sim::resp::short_double;
/// assert_eq!(short_double(0.1), "0.1");
/// assert_eq!(short_double(1e17), "100000000000000000");
/// assert_eq!(short_double(123456789.123456789), "1.2345678912345679e+8");
/// assert_eq!(short_double(1e-7), "1e-7");
/// ```
pub fn short_double(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() || value == 0.0 {
        return format_double(value);
    }
    if value.fract() == 0.0 && value.abs() <= WHOLE_MAX {
        return (value as i64).to_string();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("`{:e}` writes an exponent");
    let exponent: i32 = exponent.parse().expect("`{:e}` writes a decimal exponent");
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i32;
    // The power of ten of the last digit.
    let last = exponent - digits + 1;
    let is_plain = match last >= 0 {
        true => exponent < digits + 7,
        false => last > -7 || exponent.abs() < 4,
    };
    if is_plain {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{}", exponent.abs())
}

/// Formats a finite, non-zero value like C's `%.{digits}g`.
fn general(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').expect("`{:e}` writes an exponent");
    let exponent: i32 = exponent.parse().expect("`{:e}` writes a decimal exponent");
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs());
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).expect("the exponent is below the digits");
    trim_zeros(&format!("{value:.decimals$}")).to_owned()
}

fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}
