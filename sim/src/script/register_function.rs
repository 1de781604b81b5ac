//! `redis.register_function`, with separate arguments or a table.

use bytes::Bytes;
use mlua::{Lua, MultiValue, Table, Value};

use super::{
    Flags,
    context::{Registered, ScriptContext},
    convert::lossy,
    failure::Failure,
    library::check_name,
    registry::keep,
};

fn wrong(why: &str) -> mlua::Error {
    Failure::reply(format!("ERR {why}"))
}

/// Returns text; converts a number to text.
fn text(lua: &Lua, value: Value) -> mlua::Result<Option<Bytes>> {
    let text = lua.coerce_string(value)?;
    Ok(text.map(|text| Bytes::copy_from_slice(&text.as_bytes())))
}

fn flags(lua: &Lua, names: &Table) -> mlua::Result<Flags> {
    let mut flags = Flags::empty();
    for at in 1.. {
        let name: Value = names.raw_get(at)?;
        if name.is_nil() {
            break;
        }
        let named = text(lua, name)?.and_then(|name| Flags::named(&name.to_ascii_lowercase()));
        flags |= named.ok_or_else(|| wrong("unknown flag given"))?;
    }
    Ok(flags)
}

fn from_table(lua: &Lua, arguments: &Table) -> mlua::Result<Registered> {
    let (mut name, mut callback, mut description, mut declared) = (None, None, None, Flags::empty());
    for pair in arguments.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let key = text(lua, key)?;
        let key =
            key.ok_or_else(|| wrong("named argument key given to redis.register_function is not a string"))?;
        match &key.to_ascii_lowercase()[..] {
            b"function_name" => {
                let given = text(lua, value)?;
                name = Some(given.ok_or_else(|| {
                    wrong("function_name argument given to redis.register_function must be a string")
                })?);
            }
            b"description" => {
                let given = text(lua, value)?;
                description = Some(given.ok_or_else(|| {
                    wrong("description argument given to redis.register_function must be a string")
                })?);
            }
            b"callback" => {
                let Value::Function(given) = value else {
                    return Err(wrong(
                        "callback argument given to redis.register_function must be a function",
                    ));
                };
                callback = Some(keep(lua, given)?);
            }
            b"flags" => {
                let Value::Table(given) = value else {
                    return Err(wrong(
                        "flags argument to redis.register_function must be a table representing function flags",
                    ));
                };
                declared = flags(lua, &given)?;
            }
            _ => return Err(wrong("unknown argument given to redis.register_function")),
        }
    }
    let name = name.ok_or_else(|| wrong("redis.register_function must get a function name argument"))?;
    let callback = callback.ok_or_else(|| wrong("redis.register_function must get a callback argument"))?;
    Ok(Registered { name: lossy(&name), description, flags: declared, callback })
}

fn from_pair(lua: &Lua, name: &Value, callback: &Value) -> mlua::Result<Registered> {
    let name = text(lua, name.clone())?;
    let name = name.ok_or_else(|| wrong("first argument to redis.register_function must be a string"))?;
    let Value::Function(callback) = callback else {
        return Err(wrong("second argument to redis.register_function must be a function"));
    };
    let callback = keep(lua, callback.clone())?;
    Ok(Registered { name: lossy(&name), description: None, flags: Flags::empty(), callback })
}

/// `redis.register_function(name, callback)` or `redis.register_function{function_name=...,
/// callback=...}`.
pub(super) fn register(lua: &Lua, context: &ScriptContext, args: MultiValue) -> mlua::Result<Value> {
    // A library function may keep a reference to this one after loading.
    if context.host.borrow().is_some() {
        return Err(wrong("redis.register_function can only be called on FUNCTION LOAD command"));
    }
    let args: Vec<Value> = args.into_iter().collect();
    let function = match &args[..] {
        [Value::Table(arguments)] => from_table(lua, arguments)?,
        [_] => {
            return Err(wrong(
                "calling redis.register_function with a single argument is only applicable to Lua table (representing \
                 named arguments).",
            ));
        }
        [name, callback] => from_pair(lua, name, callback)?,
        _ => return Err(wrong("wrong number of arguments to redis.register_function")),
    };
    let mut registered = context.registered.borrow_mut();
    // Valkey checks the names when the code has run.
    if !context.generation.get().is_valkey() {
        check(&registered, &function).map_err(wrong)?;
    }
    registered.push(function);
    Ok(Value::Nil)
}

fn check(registered: &[Registered], function: &Registered) -> Result<(), &'static str> {
    check_name(&function.name)?;
    let is_taken = registered.iter().any(|known| known.name.eq_ignore_ascii_case(&function.name));
    if is_taken { Err("Function already exists in the library") } else { Ok(()) }
}

/// Checks the names of registered functions as Valkey does.
///
/// # Errors
/// The text of the error reply, without its code.
pub(super) fn check_all(registered: &[Registered]) -> Result<(), String> {
    for (at, function) in registered.iter().enumerate() {
        check(&registered[..at], function).map_err(|why| why.replace("Library names", "Function names"))?;
    }
    Ok(())
}
