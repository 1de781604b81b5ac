//! From the words of a command to its specification, and running it.

use std::sync::LazyLock;

use bytes::Bytes;

use super::{ALL, Ctx, Error, Flags, Group, Origin, Spec, key_uses, server::monitor, timing::Timing};
use crate::{
    effect::{Cached, Propagated, Recipients},
    keyspace::Dict,
    resp::{Reply, quotable},
};

static BY_NAME: LazyLock<Dict<&'static Spec>> = LazyLock::new(|| {
    let mut by_name = Dict::default();
    for spec in ALL.iter().copied().flatten() {
        let twice = by_name.insert(Bytes::from_static(spec.name.as_bytes()), *spec);
        assert!(twice.is_none(), "{} is listed twice", spec.name);
    }
    by_name
});

/// The specification that `args` names: of the command, or of the subcommand if it is a container.
///
/// # Errors
/// The error reply for a name that is none, or for a subcommand that is none.
pub fn find(args: &[Bytes]) -> Result<&'static Spec, Error> {
    let name = args.first().map_or(&b""[..], |name| name);
    let mut lower = [0u8; 32];
    let spec = lower.get_mut(..name.len()).and_then(|lower| {
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        BY_NAME.get(lower).copied()
    });
    let Some(spec) = spec else { return Err(unknown(args)) };
    if spec.subcommands.is_empty() || args.len() < 2 {
        return Ok(spec);
    }
    let wanted = &args[1];
    let of = spec.subcommands.iter().find(|sub| {
        sub.name.split_once('|').is_some_and(|(_, sub)| sub.as_bytes().eq_ignore_ascii_case(wanted))
    });
    of.copied().ok_or_else(|| {
        let wanted = printable(wanted, 128);
        Error(
            format!("ERR unknown subcommand '{wanted}'. Try {} HELP.", spec.name.to_ascii_uppercase()).into(),
        )
    })
}

/// The error for a command that does not exist, with the beginning of its arguments.
pub fn unknown(args: &[Bytes]) -> Error {
    let mut beginning = String::new();
    for arg in args.iter().skip(1) {
        let len = beginning.chars().count();
        if len >= 128 {
            break;
        }
        beginning.push_str(&format!("'{}' ", printable(arg, 128 - len)));
    }
    let name = args.first().map_or(String::new(), |name| printable(name, 128));
    Error(format!("ERR unknown command '{name}', with args beginning with: {beginning}").into())
}

/// The beginning of what a client sent, for an error.
pub(super) fn printable(bytes: &[u8], len_max: usize) -> String {
    // A zero ends a text in C.
    let len = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    quotable(&bytes[..len.min(len_max)])
}

/// Runs a command that is allowed to run, and reports it for replication if it changed anything.
///
/// Whether it is allowed (AUTH, READONLY, OOM and so on) was decided before, in the gate.
pub fn run(ctx: &mut Ctx<'_>, spec: &Spec, args: &[Bytes]) -> Reply {
    if !spec.accepts(args.len()) {
        return Error::arity(spec.name).into();
    }
    let (dirty_before, errors_before) = (ctx.effects.dirty, ctx.node.stats.errors);
    let monitored = !ctx.node.monitors.is_empty();
    // A script is shown before the commands it calls, a transaction after those it queued.
    let shown_first = monitored && spec.flags.contains(Flags::SKIP_MONITOR);
    if shown_first {
        monitor::show(ctx, spec, args);
    }
    let timing = Timing::begin(ctx);
    let reply = (spec.run)(ctx, args).unwrap_or_else(Reply::from);
    timing.end(ctx, spec, args);
    if ctx.node.tracking.trackers > 0 {
        remember(ctx, spec, args);
    }
    // Nor is a command shown again when it goes on after a wait.
    if monitored && !shown_first && ctx.ready.is_none() {
        monitor::show(ctx, spec, args);
    }
    let calls = ctx.node.stats.calls_of(spec.name);
    // A command that has waited was counted when it came.
    let is_new = ctx.ready.is_none();
    calls.executed += u64::from(is_new);
    if let Reply::Error(text) = &reply {
        calls.failed += 1;
        // The error of a script is often that of a command it called, which has been counted then.
        if ctx.node.stats.errors == errors_before {
            ctx.node.stats.note_error(text);
        }
    }
    let rewritten = ctx.rewritten.take();
    let to = ctx.to;
    if to == Recipients::Nobody || !ctx.node.repeats() {
        // Nobody is there to repeat it, or nobody is to.
    } else if let Some(commands) = rewritten {
        let db = ctx.db;
        ctx.effects.propagated.extend(commands.into_iter().map(|args| Propagated { db, args, to }));
    } else if ctx.effects.dirty != dirty_before && !spec.flags.contains(Flags::NESTS) {
        ctx.effects.propagated.push(Propagated { db: ctx.db, args: args.to_vec(), to });
    }
    ctx.node.stats.commands += u64::from(is_new);
    reply
}

/// Remembers which keys a client that tracks has read. What a script reads counts as its declared keys, which it remembers itself.
fn remember(ctx: &mut Ctx<'_>, spec: &Spec, args: &[Bytes]) {
    let reads = spec.flags.contains(Flags::READONLY) && spec.group != Group::Scripting;
    let elsewhere = matches!(ctx.origin, Origin::Script | Origin::Replication) || ctx.ready.is_some();
    let found = spec.name != "xread" || names_streams(&args[1..]);
    if reads && !elsewhere && found && ctx.node.tracks_reads(ctx.conn) {
        for key in key_uses(spec, args) {
            ctx.effects.cache(Cached::Read(args[key.at].clone()));
        }
    }
}

/// Whether the keys of XREAD are found behind options that it has.
fn names_streams(mut options: &[Bytes]) -> bool {
    loop {
        options = match options {
            [word, rest @ ..] if word.eq_ignore_ascii_case(b"streams") => {
                return !rest.is_empty() && rest.len().is_multiple_of(2);
            }
            [word, _, rest @ ..]
                if ["block", "count"].iter().any(|name| word.eq_ignore_ascii_case(name.as_bytes())) =>
            {
                rest
            }
            _ => return false,
        }
    }
}
