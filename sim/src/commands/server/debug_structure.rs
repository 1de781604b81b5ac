//! DEBUG reports about the representation of values and tables.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, integer},
    keyspace::Value,
    resp::Reply,
};

/// DEBUG HTSTATS db: the tables of a database, without chains here.
pub(super) fn tables(ctx: &Ctx<'_>, db: &[u8]) -> Result<Reply, Error> {
    let db = integer(db)?;
    let db = usize::try_from(db).ok().and_then(|db| ctx.node.dbs.get(db));
    let db = db.ok_or(Error::of("ERR Out of range database"))?;
    let text = format!("[Dictionary HT]\n{}[Expires HT]\n{}", table(db.len()), table(db.volatile_len()));
    Ok(Reply::Verbatim(*b"txt", text.into()))
}

/// DEBUG HTSTATS-KEY key: the table of a value.
pub(super) fn table_of(ctx: &mut Ctx<'_>, key: &[u8]) -> Result<Reply, Error> {
    let entry = ctx.raw_db().get(key).ok_or(Error::NO_SUCH_KEY)?;
    let len = match &entry.value {
        Value::Hash(hash) if entry.value.encoding() == "hashtable" => hash.len(),
        Value::Set(set) if entry.value.encoding() == "hashtable" => set.len(),
        Value::SortedSet(set) if entry.value.encoding() == "skiplist" => set.len(),
        _ => {
            return Err(Error::of(
                "ERR The value stored at the specified key is not represented using an hash table",
            ));
        }
    };
    Ok(Reply::Verbatim(*b"txt", table(len).into()))
}

fn table(len: usize) -> String {
    let head = "Hash table 0 stats (main hash table):\n";
    if len == 0 {
        return format!("{head}No stats available for empty dictionaries\n");
    }
    let size = len.next_power_of_two().max(4);
    format!("{head} table size: {size}\n number of elements: {len}\n")
}

/// DEBUG LISTPACK and QUICKLIST: checks that a value has this encoding. A server prints its
/// structure; here nothing is printed.
pub(super) fn structure(ctx: &mut Ctx<'_>, kind: &'static str, key: &Bytes) -> Result<Reply, Error> {
    let entry = ctx.raw_db().get(key).ok_or(Error::NO_SUCH_KEY)?;
    if entry.value.encoding() != kind {
        return Err(Error(format!("ERR Not a {kind} encoded object.").into()));
    }
    let name = if kind == "listpack" { "Listpack" } else { "Quicklist" };
    Ok(Reply::Status(format!("{name} structure printed on stdout").into()))
}
