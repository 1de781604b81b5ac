//! Reads JSON: a tokenizer, and a parser that reports the expected token, like lua-cjson.

use mlua::{LuaString, Table, Value};

use super::{
    args::Args,
    context::ScriptContext,
    failure::Failure,
    json_settings::{Settings, allowed},
};

/// A token of the text.
#[derive(Debug, Clone, PartialEq)]
enum Token {
    Begin(u8),
    End(u8),
    Colon,
    Comma,
    String(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Finish,
    Error(&'static str),
}

impl Token {
    fn name(&self) -> &'static str {
        match self {
            Token::Begin(b'{') => "T_OBJ_BEGIN",
            Token::Begin(_) => "T_ARR_BEGIN",
            Token::End(b'}') => "T_OBJ_END",
            Token::End(_) => "T_ARR_END",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::String(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Finish => "T_END",
            Token::Error(text) => text,
        }
    }
}

struct Parser<'a> {
    args: &'a Args<'a>,
    settings: &'a Settings,
    text: &'a [u8],
    at: usize,
    /// Start of the last token.
    start: usize,
}

/// `cjson.decode(text)`.
pub(super) fn decode(args: &Args<'_>, settings: &Settings) -> mlua::Result<Value> {
    if args.values.len() != 1 {
        return Err(args.error(0, "expected 1 argument"));
    }
    let text = args.text(0)?;
    ScriptContext::charge_bytes(args.lua, text.len())?;
    // Text in UTF-16 or UTF-32 has a zero in one of the first two bytes.
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err(Failure::library(args.lua, "JSON parser does not support UTF-16 or UTF-32"));
    }
    let mut parser = Parser { args, settings, text: &text, at: 0, start: 0 };
    let value = parser.document()?;
    match parser.next() {
        Token::Finish => Ok(value),
        other => Err(parser.expected("the end", &other)),
    }
}

impl Parser<'_> {
    fn expected(&self, what: &str, found: &Token) -> mlua::Error {
        let text = format!("Expected {what} but found {} at character {}", found.name(), self.start + 1);
        Failure::library(self.args.lua, text)
    }

    fn next(&mut self) -> Token {
        while self.text.get(self.at).is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.start = self.at;
        let rest = &self.text[self.at..];
        let Some(&first) = rest.first() else { return Token::Finish };
        let word = |word: &[u8]| rest.starts_with(word);
        let (token, len) = match first {
            b'{' | b'[' => (Token::Begin(first), 1),
            b'}' | b']' => (Token::End(first), 1),
            b':' => (Token::Colon, 1),
            b',' => (Token::Comma, 1),
            b'"' => return self.string(),
            b't' if word(b"true") => (Token::Boolean(true), 4),
            b'f' if word(b"false") => (Token::Boolean(false), 5),
            b'n' if word(b"null") => (Token::Null, 4),
            b'-' | b'0'..=b'9' | b'+' | b'i' | b'I' | b'n' | b'N' => return self.number(),
            _ => return Token::Error("invalid token"),
        };
        self.at += len;
        token
    }

    fn string(&mut self) -> Token {
        let mut out = Vec::new();
        let mut at = self.at + 1;
        loop {
            match self.text.get(at) {
                None => return self.fail(at, "unexpected end of string"),
                Some(b'"') => break,
                Some(b'\\') => {
                    let plain = match self.text.get(at + 1) {
                        Some(&b @ (b'"' | b'\\' | b'/')) => b,
                        Some(b'b') => 8,
                        Some(b'f') => 12,
                        Some(b'n') => b'\n',
                        Some(b'r') => b'\r',
                        Some(b't') => b'\t',
                        Some(b'u') => {
                            let Some(len) = unicode(&self.text[at..], &mut out) else {
                                return self.fail(at, "invalid unicode escape code");
                            };
                            at += len;
                            continue;
                        }
                        _ => return self.fail(at, "invalid escape code"),
                    };
                    out.push(plain);
                    at += 2;
                }
                Some(&b) => {
                    out.push(b);
                    at += 1;
                }
            }
        }
        self.at = at + 1;
        Token::String(out)
    }

    fn fail(&mut self, at: usize, text: &'static str) -> Token {
        self.start = at;
        Token::Error(text)
    }

    fn number(&mut self) -> Token {
        let rest = &self.text[self.at..];
        if !self.settings.decode_invalid && is_invalid_number(rest) {
            return Token::Error(if rest[0].is_ascii_alphabetic() || rest[0] == b'+' {
                "invalid token"
            } else {
                "invalid number"
            });
        }
        let Some((n, len)) = c_number(rest) else {
            return Token::Error(if rest[0].is_ascii_alphabetic() {
                "invalid token"
            } else {
                "invalid number"
            });
        };
        self.at += len;
        Token::Number(n)
    }

    /// Reads a whole value. The tables being filled are on a separate stack, because text may nest
    /// them deeper than the process's stack allows.
    fn document(&mut self) -> mlua::Result<Value> {
        let mut open: Vec<Open> = Vec::new();
        let mut token = self.next();
        loop {
            let mut value = match token {
                Token::String(text) => Value::String(self.args.lua.create_string(text)?),
                Token::Number(n) => Value::Number(n),
                Token::Boolean(yes) => Value::Boolean(yes),
                Token::Null => Value::NULL,
                Token::Begin(kind) => {
                    self.may_nest(open.len() + 1)?;
                    let table = self.args.lua.create_table()?;
                    let first = self.next();
                    if first == Token::End(kind + 2) {
                        Value::Table(table)
                    } else if kind == b'{' {
                        let key = self.key(first)?;
                        open.push(Open { table, place: Place::Object { key } });
                        token = self.next();
                        continue;
                    } else {
                        open.push(Open { table, place: Place::Array { at: 1 } });
                        token = first;
                        continue;
                    }
                }
                other => return Err(self.expected("value", &other)),
            };
            // The value is complete: add it to the table around it. After its last value that table
            // is complete as well.
            token = loop {
                let Some(Open { table, place }) = open.last_mut() else { return Ok(value) };
                match place {
                    Place::Array { at } => {
                        table.raw_set(*at, value)?;
                        *at += 1;
                    }
                    Place::Object { key } => table.raw_set(&*key, value)?,
                }
                let in_array = matches!(place, Place::Array { .. });
                match self.next() {
                    Token::Comma if in_array => break self.next(),
                    Token::Comma => {
                        let token = self.next();
                        *place = Place::Object { key: self.key(token)? };
                        break self.next();
                    }
                    Token::End(b']') if in_array => {}
                    Token::End(b'}') if !in_array => {}
                    other if in_array => return Err(self.expected("comma or array end", &other)),
                    other => return Err(self.expected("comma or object end", &other)),
                }
                let whole = open.pop().expect("it was the last");
                value = Value::Table(whole.table);
            };
        }
    }

    fn may_nest(&self, depth: usize) -> mlua::Result<()> {
        if depth <= allowed(self.settings.decode_depth_max) {
            return Ok(());
        }
        let text = format!("Found too many nested data structures ({depth}) at character {}", self.at);
        Err(Failure::library(self.args.lua, text))
    }

    /// Reads a key and its colon.
    fn key(&mut self, token: Token) -> mlua::Result<LuaString> {
        let Token::String(key) = token else { return Err(self.expected("object key string", &token)) };
        match self.next() {
            Token::Colon => self.args.lua.create_string(key),
            other => Err(self.expected("colon", &other)),
        }
    }
}

/// A table being filled, with the position of the next value.
struct Open {
    table: Table,
    place: Place,
}

enum Place {
    Array { at: i64 },
    Object { key: LuaString },
}

/// Returns true for a number that C accepts but JSON does not: extra signs or zeros, hexadecimal,
/// infinity, NaN.
fn is_invalid_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    match digits {
        [b'0', b'x' | b'X' | b'0'..=b'9', ..] => true,
        [b'0'..=b'9', ..] => false,
        _ => true,
    }
}

/// Reads the number at the start of `text` like C's `strtod`; returns it and its length.
fn c_number(text: &[u8]) -> Option<(f64, usize)> {
    let sign = usize::from(text.starts_with(b"-") || text.starts_with(b"+"));
    let factor = if text.starts_with(b"-") { -1.0 } else { 1.0 };
    let digits = &text[sign..];
    for (word, value) in [(&b"infinity"[..], f64::INFINITY), (b"inf", f64::INFINITY), (b"nan", f64::NAN)] {
        if digits.len() >= word.len() && digits[..word.len()].eq_ignore_ascii_case(word) {
            return Some((factor * value, sign + word.len()));
        }
    }
    if digits.starts_with(b"0x") || digits.starts_with(b"0X") {
        let len = digits[2..].iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let add = |n: f64, b: &u8| n * 16.0 + f64::from(char::from(*b).to_digit(16).unwrap_or(0));
        let n = digits[2..2 + len].iter().fold(0.0, add);
        return if len > 0 { Some((factor * n, sign + 2 + len)) } else { Some((0.0, sign + 1)) };
    }
    let run = |from: usize| digits[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut len = run(0);
    let fraction = if digits.get(len) == Some(&b'.') { run(len + 1) } else { 0 };
    if len + fraction == 0 {
        return None;
    }
    if digits.get(len) == Some(&b'.') {
        len += 1 + fraction;
    }
    if matches!(digits.get(len), Some(b'e' | b'E')) {
        let signed = len + 1 + usize::from(matches!(digits.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits.get(signed..).map_or(0, |_| run(signed));
        if exponent > 0 {
            len = signed + exponent;
        }
    }
    let n = std::str::from_utf8(&digits[..len]).ok()?.parse::<f64>().ok()?;
    Some((factor * n, sign + len))
}

/// Decodes `\uXXXX` at the start of `text`, or two of them for a surrogate pair, to UTF-8. Returns
/// the length read.
fn unicode(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |n, &b| Some(n << 4 | char::from(b).to_digit(16)?))
    };
    let first = unit(0)?;
    let (code, len) = match first {
        0xD800..0xDC00 => {
            let second = unit(6).filter(|second| (0xDC00..0xE000).contains(second))?;
            (0x10000 + ((first & 0x3FF) << 10) + (second & 0x3FF), 12)
        }
        0xDC00..0xE000 => return None,
        _ => (first, 6),
    };
    out.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut [0; 4]).as_bytes());
    Some(len)
}
