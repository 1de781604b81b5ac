//! CONFIG SET option value [option value ...]: changes all of the options, or none.

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Group, Keys, Origin, Spec, printable, wrong_arity},
    config::options::{self, Change, Kind, Opt},
    generation::Generation,
    log::Level,
    node::Node,
    resp::Reply,
};

pub(super) const SPEC: Spec = Spec {
    name: "config|set",
    group: Group::Server,
    since: "2.0.0",
    summary: "Changes options.",
    arity: -4,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    keys: Keys::None,
    subcommands: &[],
    run,
};

fn run(ctx: &mut Ctx<'_>, args: &[Bytes]) -> Result<Reply, Error> {
    let (pairs, rest) = args[2..].as_chunks::<2>();
    let generation = ctx.node.config.generation;
    let is_old = generation == Generation::Redis62;
    if is_old && args.len() != 4 {
        return Err(wrong_arity(generation, &SPEC, args));
    }
    if !rest.is_empty() {
        return Err(Error::SYNTAX);
    }
    let mut named: Vec<(&'static Opt, String)> = Vec::new();
    for (at, [name, value]) in pairs.iter().enumerate() {
        let found = options::find_in(generation, &String::from_utf8_lossy(name));
        let Some(option) = found.filter(|option| !is_old || option.change != Change::Never) else {
            if is_old {
                let name = printable(name, usize::MAX);
                return Err(Error(format!("ERR Unsupported CONFIG parameter: {name}").into()));
            }
            let text = "Unknown option or number of arguments for CONFIG SET";
            return Err(Error(format!("ERR {text} - '{}'", printable(name, usize::MAX)).into()));
        };
        match option.change {
            Change::Free => {}
            Change::Never => return Err(refused(name, "can't set immutable config")),
            // A running node cannot change its folder.
            Change::Protected
                if option.name != "dir"
                    && ctx.node.config.security.enable_protected_configs.allows(ctx.session().is_local()) => {
            }
            Change::Protected => return Err(refused(name, "can't set protected config")),
        }
        if pairs[..at].iter().any(|[earlier, _]| earlier.eq_ignore_ascii_case(name)) {
            return Err(refused(name, "duplicate parameter"));
        }
        if option.name == "appendonly" && (ctx.node.loading.is_some() || ctx.node.receiving().is_some()) {
            return Err(Error::LOADING);
        }
        named.push((option, String::from_utf8_lossy(value).into_owned()));
    }
    let mut config = ctx.node.config.clone();
    for (at, ((option, value), [name, _])) in named.iter().zip(pairs).enumerate() {
        match option.check(&config, value) {
            Ok(canonical) => option.set(&mut config, &canonical),
            Err(why) => {
                // Set the earlier options and this one again to the text of CONFIG GET, which may
                // lose information.
                for (option, _) in &named[..=at] {
                    let text = option.get(&ctx.node.config);
                    option.set(&mut ctx.node.config, &text);
                }
                return Err(if is_old {
                    refused_by_old(option, name, value, &why)
                } else {
                    refused(name, &why)
                });
            }
        }
    }
    if named.iter().any(|(option, _)| option.name == "maxclients") {
        let most = ctx.env.room_for_clients(config.clients.maxclients);
        if most < config.clients.maxclients {
            let why = "The operating system is not able to handle the specified number of clients, try with";
            return Err(refused(b"maxclients", &format!("{why} {most}")));
        }
    }
    let moves = |(option, _): &&(&Opt, String)| ["port", "bind"].contains(&option.name);
    if let Some((option, _)) = named.iter().find(moves)
        && let Some(ports) = &ctx.env.ports
    {
        let addresses = config.network.bind.clone();
        let addresses: Vec<&str> = addresses.split_ascii_whitespace().collect();
        if let Err(error) = ports.listen(&addresses, config.network.port, config.network.tcp_backlog) {
            ctx.env.log(Level::Warning, || error.to_string());
            return Err(refused(
                option.name.as_bytes(),
                match option.name {
                    "port" => "Unable to listen on this port. Check server logs.",
                    _ => "Failed to bind to specified addresses.",
                },
            ));
        }
    }
    let begins = config.aof.appendonly && !ctx.node.config.aof.appendonly;
    let ends = !config.aof.appendonly && ctx.node.config.aof.appendonly;
    if begins {
        let old = std::mem::replace(&mut ctx.node.config, config.clone());
        // Within EXEC the log starts later, so that its base contains the whole transaction.
        let later = ctx.origin == Origin::Exec;
        // If the disk does not accept the log, undo the change.
        if let Err(error) = ctx.node.start_log(ctx.env, later) {
            ctx.node.config = old;
            ctx.env.log(Level::Warning, || format!("The append-only file cannot be begun: {error}"));
            return Err(refused(b"appendonly", "Unable to turn on AOF. Check server logs."));
        }
    } else if ends {
        ctx.node.stop_log(ctx.env);
    }
    let password = named.iter().any(|(option, _)| option.name == "requirepass");
    ctx.node.config = config;
    let (now_secs, lag_max) = (ctx.env.wall.as_secs(), ctx.node.config.replication.min_replicas_max_lag);
    ctx.node.replication.count_good(now_secs, lag_max);
    if named.iter().any(|(option, _)| option.name == "repl-backlog-size") {
        ctx.node.config.replication.backlog_size = ctx.node.config.replication.backlog_size.max(BACKLOG_MIN);
    }
    let backlog_size = ctx.node.config.replication.backlog_size;
    ctx.node.replication.backlog.iter_mut().for_each(|backlog| backlog.resize(backlog_size));
    if let Some(cluster) = &mut ctx.node.cluster {
        cluster.note_options_set();
    }
    if password {
        let Node { acl, config, .. } = &mut **ctx.node;
        acl.set_default_password(&config.security.requirepass);
    }
    Ok(Reply::OK)
}

/// Minimum bytes of the backlog, once its size was set.
const BACKLOG_MIN: usize = 16 << 10;

/// Makes the error of Redis 6.2 for a value. It has no reason for values of special forms.
fn refused_by_old(option: &Opt, name: &[u8], value: &str, why: &str) -> Error {
    let (name, value) = (printable(name, usize::MAX), printable(value.as_bytes(), usize::MAX));
    let mut text = format!("ERR Invalid argument '{value}' for CONFIG SET '{name}'");
    if !matches!(option.kind, Kind::Checked(_) | Kind::CheckedText(_)) {
        text.push_str(" - ");
        text.push_str(&why.replace("argument(s)", "argument"));
    }
    Error(text.into())
}

fn refused(option: &[u8], why: &str) -> Error {
    let option = printable(option, usize::MAX);
    Error(format!("ERR CONFIG SET failed (possibly related to argument '{option}') - {why}").into())
}
