//! Finds the specification of a command, and runs the command.

use std::sync::LazyLock;

use bytes::Bytes;

use super::{
    ALL, Ctx, Error, Flags, Group, Origin, Spec, key_uses, large_commands, server::monitor, timing::Timing,
};
use crate::{
    config::Config,
    effect::{Cached, Framing, PropagateTo, Propagated},
    generation::{Feature, Generation, Since},
    keyspace::Dict,
    resp::{Reply, quotable},
};

/// Each command, with the releases that have it.
static BY_NAME: LazyLock<Dict<(&'static Spec, Since)>> = LazyLock::new(|| {
    let mut by_name = Dict::default();
    for spec in ALL.iter().copied().flatten() {
        let twice =
            by_name.insert(Bytes::from_static(spec.name.as_bytes()), (*spec, Since::parse(spec.since)));
        assert!(twice.is_none(), "{} is listed twice", spec.name);
    }
    by_name
});

/// Finds the command of a generation that `args` names, or its subcommand if the command is a
/// container.
///
/// # Errors
/// The error reply for an unknown command or subcommand.
pub fn find(generation: Generation, args: &[Bytes]) -> Result<&'static Spec, Error> {
    find_named(generation, args.first().map_or(&b""[..], |name| name), args)
}

/// Finds the command `name`, or the subcommand that `args` names if the command is a container.
fn find_named(generation: Generation, name: &[u8], args: &[Bytes]) -> Result<&'static Spec, Error> {
    let mut lower = [0u8; 32];
    let spec = lower.get_mut(..name.len()).and_then(|lower| {
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        BY_NAME.get(lower).copied()
    });
    let Some((spec, _)) = spec.filter(|(_, since)| since.includes(generation)) else {
        return Err(unknown(generation, args));
    };
    subcommand(generation, spec, args)
}

/// Finds the subcommand that `args` names, if the command is a container.
pub(super) fn subcommand(
    generation: Generation,
    spec: &'static Spec,
    args: &[Bytes],
) -> Result<&'static Spec, Error> {
    if spec.subcommands.is_empty() || args.len() < 2 {
        return Ok(spec);
    }
    let wanted = &args[1];
    let of = spec.subcommands.iter().find(|sub| {
        sub.name.split_once('|').is_some_and(|(_, sub)| sub.as_bytes().eq_ignore_ascii_case(wanted))
    });
    of.copied().filter(|sub| sub.is_in(generation)).ok_or_else(|| {
        if generation == Generation::Redis62 {
            return unknown_subcommand(&args[0], wanted);
        }
        let (wanted, container) = (printable(wanted, 128), printable(&args[0].to_ascii_uppercase(), 128));
        Error(format!("ERR unknown subcommand '{wanted}'. Try {container} HELP.").into())
    })
}

/// Finds the command that `args` names, if the configuration renames commands.
///
/// # Errors
/// Those of [`find`], also for the original name of a renamed command.
pub fn find_in(config: &Config, args: &[Bytes]) -> Result<&'static Spec, Error> {
    if config.security.renames.is_empty() {
        return find(config.generation, args);
    }
    let name = args.first().map_or(&b""[..], |name| name);
    let called = |known: &str| known.as_bytes().eq_ignore_ascii_case(name);
    if let Some((old, _)) = config.security.renames.iter().find(|(_, new)| called(new)) {
        return find_named(config.generation, old.as_bytes(), args);
    }
    if config.security.renames.iter().any(|(old, _)| called(old)) {
        return Err(unknown(config.generation, args));
    }
    find(config.generation, args)
}

/// Checks that the configured command names are possible.
///
/// # Errors
/// The text of the first error.
pub fn check_renames(config: &Config) -> Result<(), String> {
    let exists =
        |name: &str| BY_NAME.get(name.as_bytes()).is_some_and(|(_, since)| since.includes(config.generation));
    for (at, (old, new)) in config.security.renames.iter().enumerate() {
        let earlier = &config.security.renames[..at];
        let is_gone = |name: &String| earlier.iter().any(|(old, _)| old == name);
        if !exists(old) || is_gone(old) {
            return Err(format!("`rename-command`: there is no command `{old}`"));
        }
        let is_given = !new.is_empty() && earlier.iter().any(|(_, given)| given == new);
        if is_given || (exists(new) && !is_gone(new)) {
            return Err(format!("`rename-command`: there is a command `{new}` already"));
        }
    }
    Ok(())
}

/// A command whose subcommand is unknown or has other arguments. Redis 6.2 finds the error when it
/// runs the command, later servers before they look at rights and state.
#[derive(Debug)]
pub struct Late {
    /// The command that has subcommands.
    pub container: &'static Spec,
    /// The subcommand if there is one, or else the container: rights may be for one subcommand,
    /// also if its arguments are wrong.
    pub spec: &'static Spec,
    /// The error. Without a cluster, CLUSTER has no subcommands.
    pub error: Error,
}

impl Late {
    /// Returns `None` if the server is no Redis 6.2, or if the command has no such error. `found`
    /// is the result of [`find_in`].
    pub fn of(config: &Config, found: &Result<&'static Spec, Error>, args: &[Bytes]) -> Option<Late> {
        let is_right = found.as_ref().is_ok_and(|spec| spec.accepts(config.generation, args.len()));
        if config.generation.has(Feature::Subcommands) || is_right || args.len() < 2 {
            return None;
        }
        let container = find_in(config, &args[..1]).ok().filter(|spec| !spec.subcommands.is_empty())?;
        let error = match found {
            _ if container.group == Group::Cluster && !config.cluster.enabled => Error::NO_CLUSTER,
            Ok(spec) => wrong_arity(config.generation, spec, args),
            Err(error) => error.clone(),
        };
        Some(Late { container, spec: found.as_ref().map_or(container, |spec| *spec), error })
    }
}

/// Makes the error for a wrong number of arguments. Redis 6.2 does not know if the subcommand is
/// wrong or their number.
pub fn wrong_arity(generation: Generation, spec: &Spec, args: &[Bytes]) -> Error {
    match args {
        [container, subcommand, ..] if generation == Generation::Redis62 && spec.name.contains('|') => {
            unknown_subcommand(container, subcommand)
        }
        _ => Error::arity(spec.name),
    }
}

/// Makes the error of Redis 6.2 for a subcommand that does not exist or has other arguments.
fn unknown_subcommand(container: &[u8], subcommand: &[u8]) -> Error {
    let (wanted, container) = (printable(subcommand, 128), printable(&container.to_ascii_uppercase(), 128));
    let text =
        format!("Unknown subcommand or wrong number of arguments for '{wanted}'. Try {container} HELP.");
    Error(format!("ERR {text}").into())
}

/// Makes the error for an unknown command, with the first of its arguments.
pub fn unknown(generation: Generation, args: &[Bytes]) -> Error {
    let mut beginning = String::new();
    for arg in args.iter().skip(1) {
        let len = beginning.chars().count();
        if len >= 128 {
            break;
        }
        let arg = printable(arg, 128 - len);
        beginning.push_str(&match generation {
            Generation::Redis62 => format!("`{arg}`, "),
            _ => format!("'{arg}' "),
        });
    }
    let name = args.first().map_or(String::new(), |name| printable(name, 128));
    let name = if generation == Generation::Redis62 { format!("`{name}`") } else { format!("'{name}'") };
    Error(format!("ERR unknown command {name}, with args beginning with: {beginning}").into())
}

/// Returns the start of client input in printable form, for an error.
pub(super) fn printable(bytes: &[u8], len_max: usize) -> String {
    // In C, a zero byte ends a text.
    let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    quotable(&bytes[..len.min(len_max)])
}

/// Runs a command that may run, and reports it for replication if it changed anything.
///
/// The gate has checked the permission before (AUTH, READONLY, OOM and so on).
pub fn run(ctx: &mut Ctx<'_>, spec: &Spec, args: &[Bytes]) -> Reply {
    if !spec.accepts(ctx.node.config.generation, args.len()) {
        return wrong_arity(ctx.node.config.generation, spec, args).into();
    }
    let dirty_before = ctx.effects.dirty;
    let monitored = !ctx.node.clients.monitors.is_empty() || ctx.env.monitor.is_some();
    // MONITOR shows a script before the commands it calls, and a transaction after its queued
    // commands.
    let shown_first = monitored && spec.flags.contains(Flags::SKIP_MONITOR);
    if shown_first {
        monitor::show(ctx, spec, args);
    }
    let timing = Timing::begin(ctx);
    large_commands::begin(ctx, args);
    let generation = ctx.node.config.generation;
    let mut reply = (spec.run)(ctx, args).unwrap_or_else(|error| worded(generation, error).into());
    if spec.group == Group::SortedSet && generation.has(Feature::ShortDoubles) {
        reply.shorten_doubles();
    }
    timing.end(ctx, spec, args);
    large_commands::end(ctx, spec, args, &reply);
    if !spec.flags.contains(Flags::NOTES_OWN_READS) {
        note_reads(ctx, spec, args);
    }
    // MONITOR shows a blocked command only once.
    if monitored && !shown_first && ctx.ready.is_none() {
        monitor::show(ctx, spec, args);
    }
    // A blocked command was counted when it arrived.
    let is_new = ctx.ready.is_none();
    let failed = match (ctx.script_errors.take(), &reply) {
        (Some(errors), _) => ctx.node.stats.note_script_errors(&errors),
        (None, Reply::Error(text)) => {
            ctx.node.stats.note_error(text);
            1
        }
        (None, _) => 0,
    };
    let calls = ctx.node.stats.calls_of(spec.name);
    calls.executed += u64::from(is_new);
    calls.failed += failed;
    let rewritten = ctx.rewritten.take();
    let to = ctx.to;
    if to == PropagateTo::None || !ctx.node.propagates() {
        // No replica and no AOF exist, or the command must not be propagated.
    } else if let Some(commands) = rewritten {
        let db = ctx.db;
        ctx.effects.propagated.extend(commands.into_iter().map(|args| Propagated { db, args, to }));
    } else if ctx.effects.dirty != dirty_before && !spec.flags.contains(Flags::NESTS) {
        let mut args = args.to_vec();
        // Replicas and the AOF know the command by its original name.
        if !ctx.node.config.security.renames.is_empty()
            && let Some(first) = args.first_mut()
        {
            *first = Bytes::from_static(spec.name.split('|').next().unwrap_or(spec.name).as_bytes());
        }
        ctx.effects.propagated.push(Propagated { db: ctx.db, args, to });
    }
    if ctx.effects.dirty != dirty_before
        && matches!(ctx.origin, Origin::Script | Origin::Exec)
        && !ctx.node.config.generation.has(Feature::BareSingleWrites)
    {
        ctx.effects.framing = Framing::Always;
    }
    ctx.node.stats.commands += u64::from(is_new);
    // A blocked command has not run yet.
    if ctx.block.is_none()
        && let Some(session) = ctx.node.clients.sessions.get_mut(ctx.conn)
    {
        session.commands += 1;
    }
    reply
}

/// Returns the error of a command in the words of the generation.
fn worded(generation: Generation, error: Error) -> Error {
    if generation != Generation::Redis62 {
        return error.worded(generation);
    }
    let expire = "ERR invalid expire time in ";
    if let Some(quoted) = error.0.strip_prefix(expire)
        && let Some(command) = quoted.strip_prefix('\'').and_then(|quoted| quoted.strip_suffix("' command"))
    {
        return Error(format!("{expire}{command}").into());
    }
    match error.0.strip_prefix("ERR unknown subcommand or ") {
        Some(rest) => Error(format!("ERR Unknown subcommand or {rest}").into()),
        None => error,
    }
}

/// Records the keys that a tracking client has read, so that it gets their invalidations. For a
/// script they are those of its commands, or before Redis 7.2 those that it declares.
pub(super) fn note_reads(ctx: &mut Ctx<'_>, spec: &Spec, args: &[Bytes]) {
    let declares = !ctx.node.config.generation.has(Feature::ScriptReads);
    let elsewhere = match ctx.origin {
        Origin::Replication => true,
        Origin::Script => declares,
        Origin::Client | Origin::Exec => ctx.ready.is_some() || spec.group == Group::Scripting && !declares,
    };
    if ctx.node.clients.tracking.trackers > 0
        && spec.flags.contains(Flags::READONLY)
        && !elsewhere
        && ctx.node.clients.tracks_reads(ctx.conn)
    {
        for key in key_uses(spec, args) {
            ctx.effects.cache(Cached::Read(args[key.at].clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_answers_to_the_name_it_was_given_and_no_longer_to_its_own() {
        let renames = [("flushdb", "badger"), ("config", "setup"), ("keys", "")];
        let renames = renames.map(|(old, new)| (old.to_owned(), new.to_owned())).to_vec();
        let config = Config::default().with(|config| config.security.renames = renames);
        let found = |line: &str| {
            let words: Vec<Bytes> =
                line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
            find_in(&config, &words).map(|spec| spec.name).map_err(|error| error.0.into_owned())
        };
        for (line, name) in [("BADGER", "flushdb"), ("setup get x", "config|get"), ("get k", "get")] {
            assert_eq!(found(line), Ok(name), "{line}");
        }
        for line in ["FlushDB x", "config get x", "KEYS *"] {
            let (name, rest) = line.split_once(' ').expect("a word and another");
            let beginning: String = rest.split(' ').map(|word| format!("'{word}' ")).collect();
            let error = format!("ERR unknown command '{name}', with args beginning with: {beginning}");
            assert_eq!(found(line), Err(error));
        }
    }

    #[test]
    fn only_a_name_that_is_free_is_given_and_only_to_a_command() {
        for (renames, fits) in [
            (&[("get", "fetch")][..], true),
            (&[("get", "set")], false),
            (&[("nothing", "fetch")], false),
            (&[("set", ""), ("get", "set")], true),
            (&[("set", "a"), ("get", "a")], false),
            (&[("set", "a"), ("set", "b")], false),
        ] {
            let renames = renames.iter().map(|(old, new)| (old.to_string(), new.to_string())).collect();
            let checked = check_renames(&Config::default().with(|config| config.security.renames = renames));
            assert_eq!(checked.is_ok(), fits, "{checked:?}");
        }
    }
}
