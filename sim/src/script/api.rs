//! The `redis` table, and the sandbox functions written in Rust.

use std::{borrow::Cow, rc::Rc};

use bytes::Bytes;
use mlua::{Lua, MultiValue, Table, Value};

use super::{
    bits,
    context::{BYTES_PER_INSTRUCTION, MEMORY_MAX, ScriptContext},
    convert::{argument, to_lua},
    dialect::Dialect,
    error_table::reply_table,
    failure::Failure,
    json, math, msgpack, position,
    register_function::register,
    sha1::sha1_hex,
    strings, structs,
};
use crate::{
    generation::{Feature, Generation},
    resp::{Protocol, Reply},
};

/// Makes the table for `sandbox.lua`: functions for its own use, and the libraries.
pub(super) fn functions(
    lua: &Lua,
    context: &Rc<ScriptContext>,
    dialect: Dialect,
    generation: Generation,
) -> mlua::Result<Table> {
    let rust = lua.create_table()?;
    rust.raw_set("explain", lua.create_function(position::explain)?)?;
    rust.raw_set("locate", lua.create_function(position::locate)?)?;
    let of = Rc::clone(context);
    rust.raw_set(
        "random",
        lua.create_function(move |lua, args: MultiValue| math::random(&of.random, lua, &args))?,
    )?;
    let of = Rc::clone(context);
    let reseed = move |lua: &Lua, args: MultiValue| math::randomseed(&of.random, lua, &args);
    rust.raw_set("randomseed", lua.create_function(reseed)?)?;
    let libraries = lua.create_table()?;
    libraries.raw_set("bit", bits::library(lua)?)?;
    libraries.raw_set("cjson", json::library(lua, &lua.globals().raw_get("next")?)?)?;
    libraries.raw_set("cmsgpack", msgpack::library(lua)?)?;
    libraries.raw_set("redis", redis(lua, context, dialect, generation)?)?;
    rust.raw_set("loading", loading(lua, context, generation)?)?;
    libraries.raw_set("struct", structs::library(lua)?)?;
    if generation.has(Feature::ScriptClock) {
        let of = Rc::clone(context);
        let library = lua.create_table()?;
        library.raw_set("clock", lua.create_function(move |_, ()| Ok(of.processor_time()))?)?;
        libraries.raw_set("os", library)?;
    }
    if generation.has(Feature::ServerGlobal) {
        rust.raw_set("also", "server")?;
    }
    if generation == Generation::Redis62 {
        rust.raw_set("is_old", true)?;
    }
    rust.raw_set("libraries", libraries)?;
    rust.raw_set("strings", strings::library(lua)?)?;
    let of = Rc::clone(context);
    rust.raw_set(
        "charge",
        lua.create_function(move |_, instructions: f64| of.charge(instructions as usize))?,
    )?;
    let complain = |lua: &Lua, text: String| -> mlua::Result<()> { Err(Failure::library(lua, text)) };
    rust.raw_set("complain", lua.create_function(complain)?)?;
    Ok(rust)
}

type Api = fn(&Lua, &ScriptContext, MultiValue) -> mlua::Result<Value>;

fn set(
    lua: &Lua,
    context: &Rc<ScriptContext>,
    table: &Table,
    functions: &[(&str, Api)],
    generation: Generation,
) -> mlua::Result<()> {
    for &(name, function) in functions {
        let context = Rc::clone(context);
        table.raw_set(name, lua.create_function(move |lua, args| function(lua, &context, args))?)?;
    }
    for (name, value) in [("LOG_DEBUG", 0), ("LOG_VERBOSE", 1), ("LOG_NOTICE", 2), ("LOG_WARNING", 3)] {
        table.raw_set(name, value)?;
    }
    let mut versions = vec![("REDIS", generation.redis_version())];
    if generation.is_valkey() {
        table.raw_set("SERVER_NAME", generation.server())?;
        versions.push(("VALKEY", generation.version()));
    }
    // Redis 6.2 gives scripts no version.
    versions.retain(|_| generation != Generation::Redis62);
    for (name, version) in versions {
        table.raw_set(format!("{name}_VERSION"), version)?;
        // A byte for each of the three numbers.
        let numbers = version.split('.').filter_map(|number| number.parse::<u32>().ok());
        table.raw_set(format!("{name}_VERSION_NUM"), numbers.fold(0, |all, number| all << 8 | number))?;
    }
    Ok(())
}

/// Makes the table that library code sees as `redis` while it loads.
fn loading(lua: &Lua, context: &Rc<ScriptContext>, generation: Generation) -> mlua::Result<Table> {
    let redis = lua.create_table()?;
    set(lua, context, &redis, &[("register_function", register), ("log", log)], generation)?;
    Ok(redis)
}

fn redis(
    lua: &Lua,
    context: &Rc<ScriptContext>,
    dialect: Dialect,
    generation: Generation,
) -> mlua::Result<Table> {
    let redis = lua.create_table()?;
    let functions: [(&str, Api); 9] = [
        ("call", call),
        ("pcall", pcall),
        ("error_reply", |lua, context, args| single_field(lua, context, "err", args)),
        ("status_reply", |lua, context, args| single_field(lua, context, "ok", args)),
        ("sha1hex", sha1hex),
        ("log", log),
        ("setresp", set_protocol),
        ("set_repl", set_propagation),
        ("acl_check_cmd", may_call),
    ];
    // Redis 6.2 lacks the last one.
    let known = functions.len() - usize::from(generation == Generation::Redis62);
    set(lua, context, &redis, &functions[..known], generation)?;
    if dialect == Dialect::Scripts {
        let functions: [(&str, Api); 3] = [
            // Replicas always get the effects; scripts from when that was optional still ask for
            // it.
            ("replicate_commands", |_, _, _| Ok(Value::Boolean(true))),
            // No debugger exists to stop in.
            ("breakpoint", |_, _, _| Ok(Value::Boolean(false))),
            ("debug", |_, _, _| Ok(Value::Nil)),
        ];
        set(lua, context, &redis, &functions, generation)?;
    }
    let propagation =
        [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];
    for (name, value) in propagation {
        redis.raw_set(name, value)?;
    }
    Ok(redis)
}

/// Converts the arguments of `redis.call` and `redis.pcall` to the words of a command.
fn words(context: &ScriptContext, args: &MultiValue) -> Result<Vec<Bytes>, &'static str> {
    let generation = context.generation.get();
    let (no_words, no_word) = match generation.is_valkey() {
        false => (
            "ERR Please specify at least one argument for this redis lib call",
            "ERR Lua redis lib command arguments must be strings or integers",
        ),
        true => (
            "ERR Please specify at least one argument for this call",
            "ERR Command arguments must be strings or integers",
        ),
    };
    if args.is_empty() {
        return Err(no_words);
    }
    let has_short = generation.has(Feature::ShortDoubles);
    args.iter().map(|arg| argument(arg, has_short).ok_or(no_word)).collect()
}

/// Makes the error of a function of the table `redis`, which Valkey names `server`.
fn misused(context: &ScriptContext, function: &str, why: &str) -> mlua::Error {
    let table = if context.generation.get().is_valkey() { "server" } else { "redis" };
    Failure::reply(format!("ERR {table}.{function}() {why}"))
}

/// Instructions that every command costs.
const CALL_COST: usize = 20;

/// Runs a command. The inner error means that the arguments form no command, or on Redis 6.2
/// that the script may not run it.
fn called(
    lua: &Lua,
    context: &ScriptContext,
    args: &MultiValue,
) -> mlua::Result<Result<Reply, Cow<'static, str>>> {
    let has_tables = || context.generation.get().has(Feature::ErrorTables);
    let words = match words(context, args) {
        Ok(words) => words,
        Err(why) if has_tables() => return Ok(Err(why.into())),
        Err(why) => return Ok(Err(refused_before_tables(lua, why))),
    };
    let reply = match context.ask(|host| host.call(words))? {
        Err(why) if !has_tables() => {
            context.charge(CALL_COST)?;
            return Ok(Err(refused_before_tables(lua, &why)));
        }
        Err(why) => Reply::Error(why),
        Ok(reply) => reply,
    };
    context.charge(CALL_COST + cost(&reply))?;
    Ok(Ok(reply))
}

/// Returns the error of Redis 6.2 for a command that a script may not run.
fn refused_before_tables(lua: &Lua, why: &str) -> Cow<'static, str> {
    position::behind_caller(lua, &Generation::refused_before_tables(why)).into()
}

/// Returns the instructions that a reply costs: one for each element, and those for copying its
/// bytes.
fn cost(reply: &Reply) -> usize {
    let of = |items: &[Reply]| items.len() + items.iter().map(cost).sum::<usize>();
    match reply {
        Reply::Bulk(bytes) => bytes.len() / BYTES_PER_INSTRUCTION,
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) | Reply::Several(items) => of(items),
        Reply::Map(pairs) | Reply::Pairs(pairs) => {
            2 * pairs.len() + pairs.iter().map(|(key, value)| cost(key) + cost(value)).sum::<usize>()
        }
        _ => 0,
    }
}

fn call(lua: &Lua, context: &ScriptContext, args: MultiValue) -> mlua::Result<Value> {
    match called(lua, context, &args)? {
        Err(text) => Err(Failure::reply(text)),
        Ok(Reply::Error(text)) => Err(Failure::called(text)),
        Ok(reply) => made(lua, reply, context.protocol.get()),
    }
}

/// Converts a reply to a Lua value with the memory limit lifted, which avoids protected calls.
fn made(lua: &Lua, reply: Reply, protocol: Protocol) -> mlua::Result<Value> {
    if let Reply::Integer(_) | Reply::Null | Reply::NullArray = reply {
        return to_lua(lua, reply, protocol);
    }
    lua.set_memory_limit(0)?;
    let value = to_lua(lua, reply, protocol);
    lua.set_memory_limit(MEMORY_MAX)?;
    value
}

fn pcall(lua: &Lua, context: &ScriptContext, args: MultiValue) -> mlua::Result<Value> {
    match called(lua, context, &args)? {
        Ok(Reply::Error(text)) if !context.generation.get().has(Feature::ErrorTables) => {
            Ok(Value::Table(reply_table(lua, &text)?))
        }
        Ok(reply) => made(lua, reply, context.protocol.get()),
        Err(text) => {
            let table = lua.create_table_with_capacity(0, 1)?;
            table.raw_set("err", &*text)?;
            Ok(Value::Table(table))
        }
    }
}

/// Makes a table with one field, for `redis.error_reply` and `redis.status_reply`.
fn single_field(lua: &Lua, context: &ScriptContext, name: &str, args: MultiValue) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    match (args.len(), args.front()) {
        (1, Some(Value::String(text))) if name == "err" => {
            let is_old = context.generation.get() == Generation::Redis62;
            let text = text.as_bytes();
            let text = text.strip_prefix(b"-").filter(|_| !is_old).unwrap_or(&text);
            // A text without a space has no error code yet; Redis 6.2 adds none.
            let has_code = text.contains(&b' ') || is_old;
            let code: &[u8] = if has_code { b"" } else { b"ERR " };
            table.raw_set(name, lua.create_string([code, text].concat())?)?;
        }
        (1, Some(Value::String(text))) => table.raw_set(name, text)?,
        _ if context.generation.get() == Generation::Redis62 => {
            table.raw_set("err", position::behind_caller(lua, "wrong number or type of arguments"))?;
        }
        _ => table.raw_set("err", "ERR wrong number or type of arguments")?,
    }
    Ok(Value::Table(table))
}

fn sha1hex(lua: &Lua, _: &ScriptContext, args: MultiValue) -> mlua::Result<Value> {
    let (1, Some(arg)) = (args.len(), args.front()) else {
        return Err(Failure::reply("ERR wrong number of arguments"));
    };
    // Like Lua, convert numbers to text. Any other value counts as empty.
    let text = lua.coerce_string(arg.clone())?;
    ScriptContext::charge_bytes(lua, text.as_ref().map_or(0, |text| text.as_bytes().len()))?;
    let digits = text.map_or_else(|| sha1_hex(b""), |text| sha1_hex(&text.as_bytes()));
    lua.create_string(digits).map(Value::String)
}

/// `redis.log`: checks its arguments like Redis, but writes nothing: a simulated node has no log
/// file.
fn log(lua: &Lua, context: &ScriptContext, args: MultiValue) -> mlua::Result<Value> {
    if args.len() < 2 {
        return Err(misused(context, "log", "requires two arguments or more."));
    }
    let level = integer(lua, &args[0])?;
    let level = level.ok_or_else(|| Failure::reply("ERR First argument must be a number (log level)."))?;
    if !(0..=3).contains(&level) {
        let is_old = context.generation.get().is_before_7_2();
        let kind = if is_old { "debug" } else { "log" };
        return Err(Failure::reply(format!("ERR Invalid {kind} level.")));
    }
    Ok(Value::Nil)
}

fn integer(lua: &Lua, value: &Value) -> mlua::Result<Option<i64>> {
    Ok(lua.coerce_number(value.clone())?.map(|n| n as i64))
}

fn set_protocol(lua: &Lua, context: &ScriptContext, args: MultiValue) -> mlua::Result<Value> {
    let (1, Some(arg)) = (args.len(), args.front()) else {
        return Err(misused(context, "setresp", "requires one argument."));
    };
    let protocol = match integer(lua, arg)? {
        Some(2) => Protocol::Resp2,
        Some(3) => Protocol::Resp3,
        _ => return Err(Failure::reply("ERR RESP version must be 2 or 3.")),
    };
    context.protocol.set(protocol);
    context.ask(|host| host.set_protocol(protocol))?;
    Ok(Value::Nil)
}

fn set_propagation(lua: &Lua, context: &ScriptContext, args: MultiValue) -> mlua::Result<Value> {
    let (1, Some(arg)) = (args.len(), args.front()) else {
        let is_old = context.generation.get().is_before_7_2();
        let number = if is_old { "two arguments" } else { "one argument" };
        return Err(misused(context, "set_repl", &format!("requires {number}.")));
    };
    // A value that is not a number selects neither.
    let mask @ 0..=3 = integer(lua, arg)?.unwrap_or(0) else {
        let text = "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.";
        return Err(Failure::reply(text));
    };
    context.ask(|host| host.set_propagation(mask & 1 != 0, mask & 2 != 0))?;
    Ok(Value::Nil)
}

fn may_call(_: &Lua, context: &ScriptContext, args: MultiValue) -> mlua::Result<Value> {
    let words = words(context, &args).map_err(Failure::reply)?;
    match context.ask(|host| host.may_call(&words))? {
        Some(allowed) => Ok(Value::Boolean(allowed)),
        None => {
            let table = if context.generation.get().is_valkey() { "server" } else { "redis" };
            Err(Failure::reply(format!("ERR Invalid command passed to {table}.acl_check_cmd()")))
        }
    }
}
