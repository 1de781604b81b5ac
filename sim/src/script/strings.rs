//! The `string` functions whose time and memory a script chooses freely, and `table.concat`. They
//! are charged to the script's budget: in C they would run without limit inside one instruction.
//! Patterns and `rep` are implemented here. The others call C, and are charged for the text that
//! they make, or for their arguments if they fail.
//!
//! Functions that call back into Lua are loops over `seek` in `sandbox.lua`, so that their errors
//! and budget are the script's.

use std::rc::Rc;

use mlua::{Function, Lua, MultiValue, Table, Value};

use super::{
    args::Args,
    context::{MEMORY_MAX, ScriptContext},
    convert::truncated,
    failure::{Failure, fault},
    pattern::{Captured, Fault, Matcher},
};

/// A pattern without these characters is plain text.
const SPECIAL: &[u8] = b"^$*+?.([%-";

/// Start and end of a match.
type Span = (usize, usize);

/// A matcher whose steps are charged to the script.
struct Search<'a> {
    lua: &'a Lua,
    context: Rc<ScriptContext>,
    text: &'a [u8],
    matcher: Matcher<'a, Rc<ScriptContext>>,
    anchored: bool,
}

impl<'a> Search<'a> {
    /// With `anchors`, a leading `^` ties the pattern to the start of the search.
    fn new(lua: &'a Lua, text: &'a [u8], pattern: &'a [u8], anchors: bool) -> Search<'a> {
        let anchored = anchors && pattern.starts_with(b"^");
        let context = ScriptContext::of(lua);
        let matcher = Matcher::new(text, &pattern[usize::from(anchored)..], Rc::clone(&context));
        Search { lua, context, text, matcher, anchored }
    }

    fn seek(&mut self, from: usize) -> mlua::Result<Option<Span>> {
        let (matcher, anchored) = (&mut self.matcher, self.anchored);
        let found = self.context.search(|fuel| matcher.seek(from, anchored, fuel));
        found.map_err(|fault| self.failed(fault))
    }

    fn failed(&self, fault: Fault) -> mlua::Error {
        match fault {
            Fault::Malformed(text) => Failure::library(self.lua, text),
            Fault::Spent => Failure::killed(),
        }
    }

    fn capture(&self, at: usize, whole: Span) -> mlua::Result<Value> {
        Ok(match self.matcher.capture(at, whole).map_err(|fault| self.failed(fault))? {
            Captured::Position(at) => position(at + 1),
            Captured::Text(from, to) => Value::String(self.lua.create_string(&self.text[from..to])?),
        })
    }

    /// Appends the captures of a match to `values`. A pattern without captures has `at_least` of
    /// them: the whole match, or none.
    fn captures(&self, mut values: MultiValue, whole: Span, at_least: usize) -> mlua::Result<MultiValue> {
        for at in 0..self.matcher.count().max(at_least) {
            values.push_back(self.capture(at, whole)?);
        }
        Ok(values)
    }
}

fn position(at: usize) -> Value {
    Value::Number(at as f64)
}

/// Returns the start index. Scripts count from 1; negative numbers count from the end.
fn start(args: &Args<'_>, at: usize, len: usize) -> mlua::Result<usize> {
    let init = truncated(args.number_or(at, 1.0)?);
    let init = if init < 0 { init.saturating_add(len as i64).saturating_add(1) } else { init };
    Ok((init.max(1) as usize - 1).min(len))
}

/// Returns the offset of `wanted` in `text`, at `from` or later.
fn plain(lua: &Lua, text: &[u8], wanted: &[u8], from: usize) -> mlua::Result<Option<usize>> {
    let Some(&first) = wanted.first() else { return Ok(Some(from)) };
    let mut at = from;
    while at + wanted.len() <= text.len() {
        let places = &text[at..=text.len() - wanted.len()];
        let found = places.iter().position(|&b| b == first);
        ScriptContext::charge_bytes(lua, found.unwrap_or(places.len()))?;
        let Some(skipped) = found else { break };
        at += skipped;
        let equal = text[at..].iter().zip(wanted).take_while(|(a, b)| a == b).count();
        if equal == wanted.len() {
            return Ok(Some(at));
        }
        ScriptContext::charge_bytes(lua, equal)?;
        at += 1;
    }
    Ok(None)
}

fn find(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = (args.string(0)?, args.string(1)?);
    let (text, pattern) = (&*text.as_bytes(), &*pattern.as_bytes());
    let from = start(args, 2, text.len())?;
    // Like C, Lua looks for special characters up to the first zero byte.
    let special = || pattern.iter().take_while(|&&b| b != 0).any(|b| SPECIAL.contains(b));
    if args.truth(3) || !special() {
        let found = plain(args.lua, text, pattern, from)?;
        return Ok(match found {
            Some(at) => [position(at + 1), position(at + pattern.len())].into_iter().collect(),
            None => std::iter::once(Value::Nil).collect(),
        });
    }
    let mut search = Search::new(args.lua, text, pattern, true);
    match search.seek(from)? {
        Some(whole) => {
            let bounds = [position(whole.0 + 1), position(whole.1)].into_iter().collect();
            search.captures(bounds, whole, 0)
        }
        None => Ok(std::iter::once(Value::Nil).collect()),
    }
}

fn first_match(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = (args.string(0)?, args.string(1)?);
    let (text, pattern) = (&*text.as_bytes(), &*pattern.as_bytes());
    let from = start(args, 2, text.len())?;
    let mut search = Search::new(args.lua, text, pattern, true);
    match search.seek(from)? {
        Some(whole) => search.captures(MultiValue::new(), whole, 1),
        None => Ok(std::iter::once(Value::Nil).collect()),
    }
}

/// Converts the arguments of `gmatch` to text.
fn gmatch_arguments(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = (args.string(0)?, args.string(1)?);
    Ok([text, pattern].into_iter().map(Value::String).collect())
}

/// Returns the arguments of `gsub` with a function or a table as the third: text, pattern, maximum
/// number of replacements, and true if the pattern has an anchor.
fn gsub_arguments(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = (args.string(0)?, args.string(1)?);
    let max = replacements(args, text.as_bytes().len())?;
    let anchored = pattern.as_bytes().starts_with(b"^");
    let values = [Value::String(text), Value::String(pattern), position(max), Value::Boolean(anchored)];
    Ok(values.into_iter().collect())
}

/// Returns the maximum number of replacements of `gsub`.
fn replacements(args: &Args<'_>, len: usize) -> mlua::Result<usize> {
    let max = truncated(args.number_or(3, len as f64 + 1.0)?) as i32;
    Ok(usize::try_from(max).unwrap_or(0))
}

/// `seek(text, pattern, from, anchors)`: returns the bounds of the next match, counted from 0, and
/// its captures.
fn seek(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = (args.string(0)?, args.string(1)?);
    let (text, pattern) = (&*text.as_bytes(), &*pattern.as_bytes());
    let mut search = Search::new(args.lua, text, pattern, args.truth(3));
    match search.seek(args.number(2)? as usize)? {
        Some(whole) => {
            let bounds = [position(whole.0), position(whole.1)].into_iter().collect();
            search.captures(bounds, whole, 1)
        }
        None => Ok(MultiValue::new()),
    }
}

/// `gsub` with a text as its third argument.
fn gsub(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let (text, pattern) = (args.string(0)?, args.string(1)?);
    let Some(Value::String(_) | Value::Integer(_) | Value::Number(_)) = args.values.get(2) else {
        return Err(args.error(2, "string/function/table expected"));
    };
    let with = args.string(2)?;
    let (text, pattern, with) = (&*text.as_bytes(), &*pattern.as_bytes(), &*with.as_bytes());
    let max = replacements(args, text.len())?;
    let mut search = Search::new(args.lua, text, pattern, true);
    let (mut out, mut at, mut count) = (Vec::new(), 0, 0);
    while count < max {
        let Some(whole) = search.seek(at)? else { break };
        count += 1;
        let written = out.len();
        out.extend_from_slice(&text[at..whole.0]);
        replace(&search, whole, with, &mut out)?;
        at = whole.1;
        let stays = whole.0 == whole.1;
        if stays {
            out.extend(text.get(at));
            at += 1;
        }
        ScriptContext::charge_bytes(args.lua, out.len() - written)?;
        if out.len() > MEMORY_MAX {
            return Err(Failure::out_of_memory());
        }
        if search.anchored || at > text.len() {
            break;
        }
    }
    out.extend_from_slice(text.get(at..).unwrap_or_default());
    Ok([Value::String(args.lua.create_string(out)?), position(count)].into_iter().collect())
}

/// Writes the replacement of one match: `%1` is its first capture, `%0` the whole match.
fn replace(search: &Search<'_>, whole: Span, with: &[u8], out: &mut Vec<u8>) -> mlua::Result<()> {
    let mut rest = with.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        // After a final `%`, C reads the zero byte that ends the text.
        match rest.next().copied().unwrap_or(0) {
            b'0' => out.extend_from_slice(&search.text[whole.0..whole.1]),
            digit @ b'1'..=b'9' => {
                let captured = search.capture(usize::from(digit - b'1'), whole)?;
                if let Some(captured) = search.lua.coerce_string(captured)? {
                    out.extend_from_slice(&captured.as_bytes());
                }
            }
            other => out.push(other),
        }
    }
    Ok(())
}

fn rep(args: &Args<'_>) -> mlua::Result<MultiValue> {
    let text = args.string(0)?;
    let text = &*text.as_bytes();
    // C keeps the lower 32 bits of the number.
    let times = usize::try_from(truncated(args.number(1)?) as i32).unwrap_or(0);
    let len = text.len().saturating_mul(times);
    if len > MEMORY_MAX {
        return Err(Failure::out_of_memory());
    }
    ScriptContext::charge_bytes(args.lua, len)?;
    let repeated = if text.is_empty() { Vec::new() } else { text.repeat(times) };
    Ok(std::iter::once(Value::String(args.lua.create_string(repeated)?)).collect())
}

/// Functions of C whose run time grows with their result, each with its library.
const CHARGED: [(&str, &str); 6] = [
    ("string", "format"),
    ("string", "lower"),
    ("string", "reverse"),
    ("string", "sub"),
    ("string", "upper"),
    ("table", "concat"),
];

/// Calls a function of C. Charges the script for the text it returns, or for its arguments if it
/// fails.
fn charged(function: &Function, args: &Args<'_>) -> mlua::Result<MultiValue> {
    let made: mlua::Result<MultiValue> = function.call(args.values.clone());
    let text = |value: &Value| value.as_string().map_or(0, |text| text.as_bytes().len());
    ScriptContext::charge_bytes(args.lua, made.as_ref().unwrap_or(&args.values).iter().map(text).sum())?;
    made.map_err(|error| as_called(args, &error))
}

/// Converts an error of a C function, which lacks the script's name for the function and the
/// position.
fn as_called(args: &Args<'_>, error: &mlua::Error) -> mlua::Error {
    let Failure::Library(text) = fault(error) else { return error.clone() };
    // mlua appends its own stack trace.
    let text = text.split_once("\nstack traceback:").map_or(&*text, |(text, _)| text);
    let of_argument = || {
        let (number, why) = text.strip_prefix("bad argument #")?.split_once(" to '?' (")?;
        let at = number.parse::<usize>().ok()?.checked_sub(1)?;
        Some(args.error(at, why.strip_suffix(')')?))
    };
    of_argument().unwrap_or_else(|| match text {
        "not enough memory" => Failure::out_of_memory(),
        text => Failure::library(args.lua, text),
    })
}

/// Makes the table of these functions for `sandbox.lua`.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    type Operation = fn(&Args<'_>) -> mlua::Result<MultiValue>;
    let table = lua.create_table()?;
    let operations: [(&'static str, Operation); 7] = [
        ("find", find),
        ("gmatch_arguments", gmatch_arguments),
        ("gsub", gsub),
        ("gsub_arguments", gsub_arguments),
        ("match", first_match),
        ("rep", rep),
        ("seek", seek),
    ];
    for (name, operation) in operations {
        let of = name.strip_suffix("_arguments").unwrap_or(name);
        let function = move |lua: &Lua, values: MultiValue| operation(&Args { lua, function: of, values });
        table.raw_set(name, lua.create_function(function)?)?;
    }
    for (own, name) in CHARGED {
        let function: Function = lua.globals().get::<Table>(own)?.get(name)?;
        let call =
            move |lua: &Lua, values: MultiValue| charged(&function, &Args { lua, function: name, values });
        table.raw_set(name, lua.create_function(call)?)?;
    }
    Ok(table)
}
