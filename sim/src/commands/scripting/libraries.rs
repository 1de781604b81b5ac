//! Loads libraries of functions, for FUNCTION LOAD and FUNCTION RESTORE.

use std::rc::Rc;

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error},
    durability::rdb::{self, Input, opcode},
    script::{Header, Libraries, Library},
};

/// Treatment of the existing libraries in a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// Keeps them; a library of the same name is an error.
    Append,
    /// Keeps them, except those of the same names.
    Replace,
    /// Removes them.
    Flush,
}

fn wrong(why: impl std::fmt::Display) -> Error {
    Error(format!("ERR {why}").into())
}

/// Compiles a library and adds it to the existing ones; returns its name.
pub(super) fn create(ctx: &mut Ctx<'_>, code: &Bytes, replace: bool) -> Result<String, Error> {
    let node = &mut ctx.node;
    let header = Header::read(code).map_err(wrong)?;
    if !replace && node.libraries.get(&header.name).is_some() {
        return Err(wrong(format_args!("Library '{}' already exists", header.name)));
    }
    let library = Library::compile(&node.scripts, code, &header).map_err(wrong)?;
    node.libraries.add(library, replace).map_err(wrong)?;
    Ok(header.name)
}

/// Loads the libraries of a payload: all of them, or none if one has an error.
pub(super) fn restore(ctx: &mut Ctx<'_>, payload: &[u8], policy: Policy) -> Result<(), Error> {
    let payload = rdb::unseal(payload, !ctx.node.debug.skip_checksums, ctx.node.config.generation)
        .map_err(|_| Error::BAD_PAYLOAD)?;
    let codes = read(payload).map_err(wrong)?;
    let new = Libraries::of(&ctx.node.scripts, &codes).map_err(wrong)?;
    let mut all = if policy == Policy::Flush { Libraries::default() } else { ctx.node.libraries.clone() };
    for library in new.iter() {
        all.add(Rc::clone(library), policy == Policy::Replace).map_err(wrong)?;
    }
    ctx.node.libraries = all;
    Ok(())
}

/// Reads the code of each library in a payload.
fn read(payload: &[u8]) -> Result<Vec<Bytes>, &'static str> {
    let mut input = Input::new(payload);
    let mut codes = Vec::new();
    while input.left() > 0 {
        let kind = input.byte("the type of a library").map_err(|_| "failed to read data type")?;
        if kind != opcode::FUNCTION2 {
            return Err("given type is not a function");
        }
        codes.push(input.string().map_err(|_| "Failed loading library code")?);
    }
    Ok(codes)
}
