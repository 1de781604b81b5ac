//! DEBUG SLEEP, OBJECT, SET-ACTIVE-EXPIRE, ERROR, RELOAD, CHANGE-REPL-ID: what tests need.

use std::time::Duration;

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Spec, integer},
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "debug",
    group: Group::Server,
    since: "1.0.0",
    summary: "Does what tests need.",
    arity: -2,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    match (&args[1].to_ascii_lowercase()[..], args.get(2)) {
        (b"sleep", Some(seconds)) if args.len() == 3 => {
            // Text that is no number counts as none, as C reads it.
            let seconds: f64 =
                std::str::from_utf8(seconds).ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
            if let Ok(time) = Duration::try_from_secs_f64(seconds)
                && !time.is_zero()
            {
                ctx.node.stalled_until = Some(ctx.env.monotonic + time);
            }
            Ok(Reply::OK)
        }
        (b"object", Some(key)) if args.len() <= 4 => {
            let now_ms = ctx.now_ms;
            let entry = ctx.raw_db().get(key).ok_or(Error::NO_SUCH_KEY)?;
            let idle = entry.usage.idle_ms(now_ms) / 1000;
            let text = format!(
                "Value at:0x7f0000000000 refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{idle}",
                entry.value.encoding(),
                entry.value.memory(),
                (now_ms / 1000 - idle) & 0x00ff_ffff,
            );
            Ok(Reply::Status(text.into()))
        }
        (b"set-active-expire", Some(on)) if args.len() == 3 => {
            ctx.node.active_expire = integer(on).is_ok_and(|on| on != 0);
            Ok(Reply::OK)
        }
        (b"error", Some(text)) if args.len() == 3 => {
            Err(Error(String::from_utf8_lossy(text).into_owned().into()))
        }
        (b"reload", None) => {
            let now_secs = ctx.env.wall.as_secs();
            ctx.node.save(now_secs);
            let now_ms = ctx.now_ms;
            ctx.node.reload(now_ms).map_err(|error| Error(format!("ERR {error}").into()))?;
            Ok(Reply::OK)
        }
        (b"change-repl-id", None) => {
            let id = ctx.env.random_id();
            ctx.node.replication.history.fork(id);
            Ok(Reply::OK)
        }
        (b"help", None) => {
            let lines = [
                "SLEEP <seconds>",
                "OBJECT <key>",
                "SET-ACTIVE-EXPIRE <0|1>",
                "ERROR <text>",
                "RELOAD",
                "CHANGE-REPL-ID",
                "HELP",
            ];
            Ok(Reply::Array(lines.into_iter().map(|line| Reply::Status(line.into())).collect()))
        }
        _ => Err(Error::subcommand("debug", &args[1])),
    }
}
