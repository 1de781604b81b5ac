//! Measures and records the duration of commands: INFO commandstats and latencystats, SLOWLOG,
//! LATENCY.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{Ctx, Flags, Origin, Spec, find_in, secrets::secrets};
use crate::{
    env::Env,
    event::ConnId,
    generation::Generation,
    node::{Node, slowlog::Slow},
    script::ScriptErrors,
    time::Monotonic,
};

/// The measurement of a running command.
pub(super) struct Timing {
    /// Start time; `None` if commands are not timed.
    began: Option<Instant>,
    /// Time for which the node had already been blocked (DEBUG SLEEP). Other commands of a
    /// transaction have their own times.
    stood_still: Duration,
    was_busy: bool,
}

impl Timing {
    /// Starts the measurement of a command.
    pub(super) fn begin(ctx: &Ctx<'_>) -> Timing {
        let (stood_still, was_busy) = (ctx.node.stood_still, ctx.node.busy.is_some());
        let began = if ctx.origin == Origin::Script { ctx.env.begin_refreshed() } else { ctx.env.begin() };
        Timing { began, stood_still, was_busy }
    }

    /// Records the end of a command. A blocked command continues later; a busy script ends only
    /// when it returns or is killed.
    pub(super) fn end(self, ctx: &mut Ctx<'_>, spec: &Spec, args: &[Bytes]) {
        let real = ctx.env.took(self.began);
        if ctx.node.busy.is_some() && !self.was_busy {
            return;
        }
        let took = real + ctx.node.stood_still.saturating_sub(self.stood_still);
        // Valkey logs the calls of a script under the script's client.
        let has_client = ctx.origin != Origin::Script || ctx.node.config.generation.is_valkey();
        let conn = has_client.then_some(ctx.conn);
        note(ctx.node, ctx.env, conn, spec, args, Took { all: took, waits: ctx.block.is_some() });
    }
}

/// Records the end of a script that began in an earlier turn.
pub(super) fn note_ended(ctx: &mut Ctx<'_>, command: &[Bytes], since: Monotonic, errors: &ScriptErrors) {
    let Ok(spec) = find_in(&ctx.node.config, command) else { return };
    let failed = ctx.node.stats.note_script_errors(errors);
    ctx.node.stats.calls_of(spec.name).failed += failed;
    let took = Took { all: ctx.env.monotonic.since(since), waits: false };
    note(ctx.node, ctx.env, Some(ctx.conn), spec, command, took);
}

struct Took {
    all: Duration,
    /// Set if the command is blocked and continues later.
    waits: bool,
}

/// Records the duration of a command for its connection. `conn` is `None` for a script's calls.
fn note(node: &mut Node, env: &Env, conn: Option<ConnId>, spec: &Spec, args: &[Bytes], took: Took) {
    let Took { all: took, waits } = took;
    // All values are whole microseconds.
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let took = Duration::from_micros(took_us);
    let tracks = node.config.monitoring.latency_tracking && !waits;
    let calls = node.stats.calls_of(spec.name);
    calls.took_us = calls.took_us.saturating_add(took_us);
    if tracks {
        calls.latencies.get_or_insert_default().add(took);
    }
    if node.config.monitoring.latency_monitor_threshold > 0 {
        let event = if spec.flags.contains(Flags::FAST) { "fast-command" } else { "command" };
        node.latency.note(event, env.wall.as_secs(), took, node.config.monitoring.latency_monitor_threshold);
    }
    let is_slow =
        u64::try_from(node.config.monitoring.slowlog_slower_than).is_ok_and(|least| took_us >= least);
    if waits || !is_slow || spec.flags.contains(Flags::SKIP_SLOWLOG) {
        return;
    }
    let took_us = i64::try_from(took_us).unwrap_or(i64::MAX);
    let slow = entry(node, env, conn, spec, args, took_us);
    let len_max = node.config.monitoring.slowlog_max_len;
    node.slowlog.push(slow, len_max);
}

/// Describes a command for a log, without its secrets.
pub(super) fn entry(
    node: &Node,
    env: &Env,
    conn: Option<ConnId>,
    spec: &Spec,
    args: &[Bytes],
    measure: i64,
) -> Slow {
    let mut args = args.to_vec();
    secrets(spec.name, &args).into_iter().for_each(|at| args[at] = Bytes::from_static(b"(redacted)"));
    let session = conn.and_then(|conn| node.clients.sessions.get(conn));
    let (peer, name) = session.map_or_else(
        || {
            let unknown = if node.config.generation == Generation::Redis82 { "" } else { "?:0" };
            (unknown.to_owned(), Bytes::new())
        },
        |session| (session.peer.clone(), session.name.clone()),
    );
    Slow { id: 0, at: env.wall.as_secs(), measure, args, peer, name }
}
