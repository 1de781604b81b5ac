//! Error replies as scripts see them: tables with the text in `err`.

use mlua::{Lua, Table, Value};

use super::word::Word;
use crate::resp::quoted;

/// Field that marks an error reply as counted. The name is Redis's own, because scripts can see it.
const COUNTED: &str = "ignore_error_stats_update";

/// Makes the table of an error reply that has not been counted.
pub(super) fn reply_table(lua: &Lua, text: &str) -> mlua::Result<Table> {
    let table = lua.create_table_with_capacity(0, 3)?;
    table.raw_set("err", Word(&quoted(text)))?;
    Ok(table)
}

/// Makes the table of a called command's error reply, marked as counted.
pub(super) fn counted_table(lua: &Lua, text: &str) -> mlua::Result<Table> {
    let table = reply_table(lua, text)?;
    table.raw_set(COUNTED, true)?;
    Ok(table)
}

/// Returns true if the error reply in a table has been counted.
pub(super) fn is_counted(table: &Table) -> mlua::Result<bool> {
    Ok(matches!(table.raw_get(COUNTED)?, Value::Boolean(true)))
}
