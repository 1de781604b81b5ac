//! DEBUG RELOAD and DEBUG LOADAOF: replace the data in memory by the data on disk.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Origin},
    durability::rdb,
    effect::Cached,
    log::Level,
    node::{Purpose, clients::BlockedOn},
    resp::Reply,
    script::Libraries,
};

const NOT_LOADED: Error = Error::of("ERR Error trying to load the RDB dump");

/// DEBUG RELOAD [NOSAVE] [NOFLUSH] [MERGE]: saves a snapshot and reads it. Options make it read the
/// existing snapshot, or add it to the data.
pub(super) fn reload(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    // A snapshot's libraries are code, which cannot be loaded while other code runs.
    if ctx.origin == Origin::Script {
        return Err(Error::NOT_FROM_SCRIPT);
    }
    let (mut save, mut flush, mut merge) = (true, true, false);
    for option in &args[2..] {
        match &option.to_ascii_lowercase()[..] {
            b"nosave" => save = false,
            b"noflush" => flush = false,
            b"merge" => merge = true,
            _ => {
                return Err(Error::of(
                    "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
                ));
            }
        }
    }
    let (now, now_secs, now_ms) = (ctx.env.monotonic, ctx.env.wall.as_secs(), ctx.now_ms);
    let node = &mut **ctx.node;
    if save && node.save(ctx.env).is_err() {
        return Err(Error::BARE);
    }
    if flush {
        node.dbs.iter_mut().for_each(|db| *db = Default::default());
        node.libraries = Libraries::default();
        node.data_replaced();
        ctx.effects.cache(Cached::Flushed);
    }
    let node = &mut **ctx.node;
    let snapshot = node.kept_snapshot(ctx.env).unwrap_or_default();
    let opened = rdb::open(&snapshot, &node.config, now_ms, node.is_replica()).map_err(|_| NOT_LOADED)?;
    if flush {
        node.take_in(opened.dbs, &opened.libraries).map_err(|_| NOT_LOADED)?;
    } else {
        let loaded = Libraries::of(&node.scripts, &opened.libraries).map_err(|_| NOT_LOADED)?;
        for library in loaded.iter() {
            node.libraries.add(library.clone(), merge).map_err(|_| NOT_LOADED)?;
        }
        let twice = |(db, loaded): (&crate::keyspace::Db, &crate::keyspace::Db)| {
            loaded.entries().iter().any(|(key, _)| db.contains(key))
        };
        if !merge && node.dbs.iter().zip(&opened.dbs).any(twice) {
            ctx.env.log(Level::Warning, || "A key of the snapshot is there already: exiting".into());
            ctx.node.abort();
            return Ok(Reply::Silence);
        }
        for (db, loaded) in node.dbs.iter_mut().zip(opened.dbs) {
            for (key, entry) in loaded.entries().iter() {
                db.insert(key, entry.value.clone(), entry.expires_ms(), entry.usage);
            }
        }
    }
    let (keys, len, purpose) = (ctx.node.keys_len(), snapshot.len(), Purpose::Client(ctx.conn));
    if ctx.may_block() && ctx.node.begin_loading(keys, len, purpose, now, now_secs) {
        ctx.block(args, Vec::new(), None, BlockedOn::Loading);
        return Ok(Reply::Silence);
    }
    Ok(Reply::OK)
}

/// DEBUG LOADAOF: reads the AOF. The server does so after this command, because the file consists
/// of commands.
pub(super) fn load_log(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    if !ctx.may_block() {
        return Err(Error::of("ERR DEBUG LOADAOF isn't allowed for DENY BLOCKING client"));
    }
    ctx.node.persistence.reload_wanted = Some(ctx.conn);
    ctx.block(args, Vec::new(), None, BlockedOn::Loading);
    Ok(Reply::Silence)
}
