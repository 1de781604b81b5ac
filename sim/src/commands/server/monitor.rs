//! MONITOR: sends every command that runs from now on to the connection.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec, secrets::secrets},
    event::ConnId,
    resp::Reply,
    time::Wall,
};

pub(super) const SPEC: Spec = Spec {
    name: "monitor",
    group: Group::Server,
    since: "1.0.0",
    summary: "Shows every command as it runs.",
    arity: 1,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, _: &[Bytes]) -> Result<Reply, Error> {
    if ctx.origin == Origin::Exec {
        return Err(Error::of("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    let conn = ctx.conn;
    ctx.session().monitor = true;
    ctx.node.clients.monitors.insert(conn);
    Ok(Reply::OK)
}

/// Sends a command to the monitoring connections and to [`Env::monitor`](crate::env::Env::monitor),
/// without its secrets.
pub(in crate::commands) fn show(ctx: &mut Ctx<'_>, spec: &Spec, args: &[Bytes]) {
    if spec.flags.contains(Flags::ADMIN) {
        return;
    }
    let from = match ctx.origin {
        Origin::Script => "lua".to_owned(),
        _ => ctx.node.clients.sessions.get(ctx.conn).map_or_else(String::new, |session| session.peer.clone()),
    };
    let line = line(ctx.env.wall, ctx.db, &from, spec.name, args);
    if let Some(monitor) = &ctx.env.monitor {
        // No one may read the lines any more.
        let _ = monitor.send(line.clone());
    }
    let monitors: Vec<ConnId> = ctx.node.clients.monitors.iter().copied().collect();
    for conn in monitors {
        let line = Reply::Status(line.clone().into());
        if conn == ctx.conn {
            // Send the connection's own reply first.
            ctx.effects.monitor_lines.push(line);
        } else {
            ctx.node.send(conn, &line);
        }
    }
}

fn line(wall: Wall, db: usize, from: &str, name: &str, args: &[Bytes]) -> String {
    let micros = wall.as_micros();
    let mut line =
        format!("{}.{:06} [{db} {from}]", micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let secrets = secrets(name, args);
    for (at, arg) in args.iter().enumerate() {
        if secrets.contains(&at) {
            line.push_str(" \"(redacted)\"");
            continue;
        }
        line.push_str(" \"");
        for &byte in arg {
            match byte {
                b'\\' | b'"' => line.extend(['\\', char::from(byte)]),
                b'\n' => line.push_str("\\n"),
                b'\r' => line.push_str("\\r"),
                b'\t' => line.push_str("\\t"),
                7 => line.push_str("\\a"),
                8 => line.push_str("\\b"),
                b' '..=b'~' => line.push(char::from(byte)),
                _ => line.push_str(&format!("\\x{byte:02x}")),
            }
        }
        line.push('"');
    }
    line
}
