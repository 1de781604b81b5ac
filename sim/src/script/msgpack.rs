//! The library `cmsgpack`: MessagePack. Source: the MessagePack specification; `redis-server`
//! decides between the forms it allows.

use mlua::{Lua, MultiValue, Table, Value};

use super::{args::Args, context::ScriptContext, failure::Failure};

/// Tables nested deeper become nil, as in Redis.
const DEPTH_MAX: usize = 16;
/// Maximum bytes that one call writes: tables that share tables can describe more than fits in
/// memory.
const OUTPUT_MAX: usize = 64 << 20;
/// Maximum nesting when reading. Deeper data is an error.
const UNPACK_DEPTH_MAX: usize = 200;

fn head(out: &mut Vec<u8>, len: usize, fixed: Option<(u8, usize)>, codes: [(u8, usize); 3]) {
    if let Some((code, max)) = fixed
        && len <= max
    {
        out.push(code | len as u8);
        return;
    }
    for (code, width) in codes {
        if code != 0 && (width == 4 || len < 1 << (8 * width)) {
            out.push(code);
            out.extend_from_slice(&(len as u32).to_be_bytes()[4 - width..]);
            return;
        }
    }
}

fn pack_integer(out: &mut Vec<u8>, n: i64) {
    match n {
        0..=0x7f => out.push(n as u8),
        -32..=-1 => out.push(n as i8 as u8),
        0x80..=0xff => out.extend([0xcc, n as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend((n as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend((n as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xcf);
            out.extend((n as u64).to_be_bytes());
        }
        -0x80..=-33 => out.extend([0xd0, n as i8 as u8]),
        -0x8000..=-0x81 => {
            out.push(0xd1);
            out.extend((n as i16).to_be_bytes());
        }
        -0x8000_0000..=-0x8001 => {
            out.push(0xd2);
            out.extend((n as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend(n.to_be_bytes());
        }
    }
}

fn pack_value(context: &ScriptContext, out: &mut Vec<u8>, value: &Value, depth: usize) -> mlua::Result<()> {
    context.charge(1)?;
    match value {
        Value::String(text) => {
            let text = text.as_bytes();
            head(out, text.len(), Some((0xa0, 31)), [(0xd9, 1), (0xda, 2), (0xdb, 4)]);
            out.extend_from_slice(&text);
        }
        Value::Boolean(yes) => out.push(if *yes { 0xc3 } else { 0xc2 }),
        Value::Integer(n) => pack_integer(out, *n),
        Value::Number(n) if f64::from(*n as f32) == *n => {
            out.push(0xca);
            out.extend((*n as f32).to_be_bytes());
        }
        Value::Number(n) => {
            out.push(0xcb);
            out.extend(n.to_be_bytes());
        }
        Value::Table(_) if out.len() > OUTPUT_MAX => return Err(Failure::out_of_memory()),
        Value::Table(table) if depth < DEPTH_MAX => pack_table(context, out, table, depth)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

fn pack_table(context: &ScriptContext, out: &mut Vec<u8>, table: &Table, depth: usize) -> mlua::Result<()> {
    let (mut count, mut max, mut is_array) = (0usize, 0i64, true);
    for pair in table.pairs::<Value, Value>() {
        match pair?.0 {
            Value::Integer(n) if n > 0 => max = max.max(n),
            _ => is_array = false,
        }
        count += 1;
    }
    if is_array && max == count as i64 {
        head(out, count, Some((0x90, 15)), [(0, 0), (0xdc, 2), (0xdd, 4)]);
        for at in 1..=count {
            pack_value(context, out, &table.raw_get(at)?, depth + 1)?;
        }
    } else {
        head(out, count, Some((0x80, 15)), [(0, 0), (0xde, 2), (0xdf, 4)]);
        for pair in table.pairs::<Value, Value>() {
            let (key, value) = pair?;
            pack_value(context, out, &key, depth + 1)?;
            pack_value(context, out, &value, depth + 1)?;
        }
    }
    Ok(())
}

fn pack(args: &Args<'_>) -> mlua::Result<MultiValue> {
    if args.values.is_empty() {
        return Err(args.error_before_the_first("MessagePack pack needs input."));
    }
    let (context, mut out) = (ScriptContext::of(args.lua), Vec::new());
    for value in &args.values {
        pack_value(&context, &mut out, value, 0)?;
    }
    Ok([args.lua.create_string(out).map(Value::String)?].into_iter().collect())
}

/// Reason why the data could not be read.
enum Bad {
    Short,
    Format,
    Lua(mlua::Error),
}

impl From<mlua::Error> for Bad {
    fn from(error: mlua::Error) -> Bad {
        Bad::Lua(error)
    }
}

struct Reader<'a> {
    lua: &'a Lua,
    data: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take(&mut self, len: usize) -> Result<&[u8], Bad> {
        let taken = self.data.get(self.at..).and_then(|rest| rest.get(..len)).ok_or(Bad::Short)?;
        self.at += len;
        Ok(taken)
    }

    fn unsigned(&mut self, width: usize) -> Result<u64, Bad> {
        Ok(self.take(width)?.iter().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    }

    fn signed(&mut self, width: usize) -> Result<Value, Bad> {
        let unused = 64 - 8 * width as u32;
        Ok(Value::Number(((self.unsigned(width)? << unused) as i64 >> unused) as f64))
    }

    fn text(&mut self, len: usize) -> Result<Value, Bad> {
        let lua = self.lua;
        Ok(Value::String(lua.create_string(self.take(len)?)?))
    }

    fn array(&mut self, len: usize, depth: usize) -> Result<Value, Bad> {
        // The data claims this length: allocate only as elements arrive.
        let table = self.lua.create_table()?;
        for at in 1..=len {
            table.raw_set(at, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, len: usize, depth: usize) -> Result<Value, Bad> {
        let table = self.lua.create_table()?;
        for _ in 0..len {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match key {
                Value::Nil => return Err(Failure::plain("table index is nil").into()),
                Value::Number(n) if n.is_nan() => return Err(Failure::plain("table index is NaN").into()),
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }

    fn value(&mut self, depth: usize) -> Result<Value, Bad> {
        if depth > UNPACK_DEPTH_MAX {
            return Err(Bad::Format);
        }
        let code = self.unsigned(1)? as u8;
        let mut len = |width| self.unsigned(width).map(|n| n as usize);
        Ok(match code {
            0x00..=0x7f => Value::Number(f64::from(code)),
            0xe0..=0xff => Value::Number(f64::from(code as i8)),
            0x80..=0x8f => self.map(usize::from(code & 15), depth)?,
            0x90..=0x9f => self.array(usize::from(code & 15), depth)?,
            0xa0..=0xbf => self.text(usize::from(code & 31))?,
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Boolean(code == 0xc3),
            0xca => Value::Number(f64::from(f32::from_bits(self.unsigned(4)? as u32))),
            0xcb => Value::Number(f64::from_bits(self.unsigned(8)?)),
            // The largest unsigned numbers become negative.
            0xcc..=0xcf => Value::Number(self.unsigned(1 << (code - 0xcc))? as i64 as f64),
            0xd0..=0xd3 => self.signed(1 << (code - 0xd0))?,
            0xd9 => len(1).and_then(|len| self.text(len))?,
            0xda => len(2).and_then(|len| self.text(len))?,
            0xdb => len(4).and_then(|len| self.text(len))?,
            0xdc => len(2).and_then(|len| self.array(len, depth))?,
            0xdd => len(4).and_then(|len| self.array(len, depth))?,
            0xde => len(2).and_then(|len| self.map(len, depth))?,
            0xdf => len(4).and_then(|len| self.map(len, depth))?,
            _ => return Err(Bad::Format),
        })
    }
}

/// Reads `limit` values from `offset` on, and returns the offset where it stopped before them.
/// Reads all values if both are 0.
fn read(args: &Args<'_>, limit: f64, offset: f64) -> mlua::Result<MultiValue> {
    let data = args.text(0)?;
    ScriptContext::charge_bytes(args.lua, data.len())?;
    if limit < 0.0 || offset < 0.0 {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {}.", data.len());
        return Err(Failure::library(args.lua, text));
    }
    if offset > data.len() as f64 {
        let text = format!("Start offset {offset} greater than input length {}.", data.len());
        return Err(Failure::library(args.lua, text));
    }
    let mut reader = Reader { lua: args.lua, data: &data, at: offset as usize };
    let mut values = MultiValue::new();
    let all = limit == 0.0 && offset == 0.0;
    while reader.at < data.len() && (all || (values.len() as f64) < limit) {
        if values.len() >= 7_000 {
            return Err(Failure::library(args.lua, "stack overflow (too many results to unpack)"));
        }
        values.push_back(reader.value(0).map_err(|bad| match bad {
            Bad::Short => Failure::library(args.lua, "Missing bytes in input."),
            Bad::Format => Failure::library(args.lua, "Bad data format in input."),
            Bad::Lua(error) => error,
        })?);
    }
    if !all {
        let next = if reader.at < data.len() { reader.at as f64 } else { -1.0 };
        values.push_front(Value::Number(next));
    }
    Ok(values)
}

/// Makes the table `cmsgpack`.
pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    type Operation = fn(&Args<'_>) -> mlua::Result<MultiValue>;
    let table = lua.create_table()?;
    let operations: [(&'static str, Operation); 4] = [
        ("pack", pack),
        ("unpack", |args| read(args, 0.0, 0.0)),
        ("unpack_one", |args| read(args, 1.0, args.number_or(1, 0.0)?.trunc())),
        ("unpack_limit", |args| read(args, args.number(1)?.trunc(), args.number_or(2, 0.0)?.trunc())),
    ];
    for (name, operation) in operations {
        let function = move |lua: &Lua, values: MultiValue| operation(&Args { lua, function: name, values });
        table.raw_set(name, lua.create_function(function)?)?;
    }
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    Ok(table)
}
