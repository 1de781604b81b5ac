//! Shared code of RESTORE and RESTORE-ASKING.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, integer},
    durability::rdb,
    effect::Class,
    keyspace::Usage,
    log::Level,
    node::lazy_free::deletion,
    resp::Reply,
};

/// The options after the payload.
#[derive(Debug, Default)]
struct Options {
    replace: bool,
    /// ABSTTL: the TTL argument is a point in time.
    absolute: bool,
    idle_secs: Option<i64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(words: &[Bytes]) -> Result<Options, Error> {
        let mut parsed = Options::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.to_ascii_lowercase().as_slice() {
                b"replace" => parsed.replace = true,
                b"absttl" => parsed.absolute = true,
                b"idletime" if words.len() > 0 && parsed.frequency.is_none() => {
                    let secs = integer(words.next().ok_or(Error::SYNTAX)?)?;
                    if secs < 0 {
                        return Err(Error::of("ERR Invalid IDLETIME value, must be >= 0"));
                    }
                    parsed.idle_secs = Some(secs);
                }
                b"freq" if words.len() > 0 && parsed.idle_secs.is_none() => {
                    let frequency = integer(words.next().ok_or(Error::SYNTAX)?)?;
                    let frequency = u8::try_from(frequency);
                    let wrong = Error::of("ERR Invalid FREQ value, must be >= 0 and <= 255");
                    parsed.frequency = Some(frequency.map_err(|_| wrong)?);
                }
                _ => return Err(Error::SYNTAX),
            }
        }
        Ok(parsed)
    }
}

/// Makes the key `args[1]` from the payload `args[3]`.
pub(in crate::commands) fn restore(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (key, ttl, payload) = (&args[1], &args[2], &args[3]);
    let options = Options::parse(&args[4..])?;
    if !options.replace && ctx.exists_for_write(key) {
        return Err(Error::of("BUSYKEY Target key name already exists."));
    }
    let ttl_ms = integer(ttl)?;
    if ttl_ms < 0 {
        return Err(Error::of("ERR Invalid TTL value, must be >= 0"));
    }
    rdb::unseal(payload, !ctx.node.debug.skip_checksums, ctx.node.config.generation)
        .map_err(|_| Error::BAD_PAYLOAD)?;
    // As in Redis, a value that is too long reads into the trailer of the payload.
    let value = rdb::restore(payload, &ctx.node.config).map_err(|why| {
        ctx.env.log(Level::Warning, || format!("A payload cannot be restored: {why}"));
        Error::of("ERR Bad data format")
    })?;
    // The replaced key is not looked up, so its expiry does not matter.
    let replaced = options.replace && ctx.raw_db().remove(key).is_some();
    let origin_ms = if options.absolute { 0 } else { ctx.wall_ms() };
    let expires_ms = (ttl_ms > 0).then(|| ttl_ms.wrapping_add(origin_ms));
    if expires_ms.is_some_and(|when_ms| ctx.is_past(when_ms)) {
        if replaced {
            ctx.changed(key, Class::Generic, "del");
            ctx.propagate_as(vec![deletion(ctx.node.config.memory.lazy_free.server_del, key)]);
        }
        return Ok(Reply::OK);
    }
    ctx.put(key, value, expires_ms);
    let by_frequency = ctx.node.config.memory.maxmemory_policy.counts_uses();
    let usage = match (options.frequency, options.idle_secs) {
        (Some(frequency), _) if by_frequency => Some(Usage::counted(ctx.now_ms, frequency)),
        (_, Some(secs)) if !by_frequency => Some(Usage::idle_for(ctx.now_ms, secs)),
        _ => None,
    };
    if let Some(usage) = usage {
        ctx.raw_db().set_usage(key, usage);
    }
    if let Some(when_ms) = expires_ms.filter(|_| !options.absolute) {
        let mut repeated = args.to_vec();
        repeated[2] = when_ms.to_string().into();
        repeated.push("ABSTTL".into());
        ctx.propagate_as(vec![repeated]);
    }
    ctx.changed(key, Class::Generic, "restore");
    Ok(Reply::OK)
}
