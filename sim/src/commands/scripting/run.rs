//! Runs a script for a client, from the arguments of EVAL to the reply: the steps that the commands
//! share.

use std::{any::Any, time::Duration};

use bytes::Bytes;

use super::{borrowed_node::BorrowedNode, script_debug};
use crate::{
    commands::{self, Ctx, Error, integer, permit, timing, transactions},
    generation::Feature,
    node::{
        Busy,
        clients::{Blocked, BlockedOn},
    },
    resp::{Protocol, Reply},
    script::{Callee, Flags, Host, LoadedBy, Outcome, Run},
};

/// The error for an unknown SHA-1.
fn no_script(ctx: &Ctx<'_>) -> Error {
    match ctx.node.config.generation.is_valkey() {
        true => Error::of("NOSCRIPT No matching script."),
        false => Error::of("NOSCRIPT No matching script. Please use EVAL."),
    }
}

/// Permissions of a script on the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Read and write.
    Full,
    /// Read only (the `_RO` commands).
    ReadOnly,
}

impl Access {
    /// Returns the flags of a command that runs scripts with these permissions.
    pub(super) const fn flags(self) -> commands::Flags {
        use commands::Flags;
        let both = Flags::NOSCRIPT
            .union(Flags::STALE)
            .union(Flags::SKIP_MONITOR)
            .union(Flags::NO_MANDATORY_KEYS)
            .union(Flags::MOVABLEKEYS)
            .union(Flags::NESTS);
        match self {
            Access::Full => both.union(Flags::MAY_REPLICATE),
            // The declared keys count as the keys that a script reads.
            Access::ReadOnly => both.union(Flags::READONLY).union(Flags::NOTES_OWN_READS),
        }
    }
}

/// Runs EVAL: the first argument is the script.
pub(super) fn by_body(ctx: &mut Ctx<'_>, args: &[Bytes], access: Access) -> Result<Reply, Error> {
    script_debug::refuse_session(ctx)?;
    let keys = key_count(args)?;
    let script = ctx.node.scripts.load(&args[1], LoadedBy::Eval).map_err(|error| Error(error.0.into()))?;
    ctx.node.scripts.note_use(&script);
    run(ctx, Callee::Script(&script), args, keys, access)
}

/// Runs EVALSHA: the first argument is the SHA-1 of a script.
pub(super) fn by_sha(ctx: &mut Ctx<'_>, args: &[Bytes], access: Access) -> Result<Reply, Error> {
    if args[1].len() != 40 {
        return Err(no_script(ctx));
    }
    script_debug::refuse_name(ctx)?;
    let keys = key_count(args)?;
    let script = ctx.node.scripts.script(&args[1]).ok_or_else(|| no_script(ctx))?;
    ctx.node.scripts.note_use(&script);
    run(ctx, Callee::Script(&script), args, keys, access)
}

/// Runs FCALL: the first argument is the name of a function.
pub(super) fn by_name(ctx: &mut Ctx<'_>, args: &[Bytes], access: Access) -> Result<Reply, Error> {
    let function = ctx.node.libraries.function(&args[1]).cloned();
    let function = function.ok_or(Error::of("ERR Function not found"))?;
    if integer(&args[2]).is_err() {
        return Err(Error::of("ERR Bad number of keys provided"));
    }
    let keys = key_count(args)?;
    run(ctx, Callee::Function(&function), args, keys, access)
}

fn key_count(args: &[Bytes]) -> Result<usize, Error> {
    let keys = integer(&args[2])?;
    if keys > (args.len() - 3) as i64 {
        return Err(Error::of("ERR Number of keys can't be greater than number of args"));
    }
    usize::try_from(keys).map_err(|_| Error::of("ERR Number of keys can't be negative"))
}

/// Checks the declared flags of a script against the state of the node. Without flags, each command
/// is checked when it is called.
fn admit(ctx: &Ctx<'_>, flags: Flags, access: Access) -> Result<(), Error> {
    let node = &*ctx.node;
    if flags.contains(Flags::COMPAT) {
        return permit::stale(node, crate::commands::Flags::empty());
    }
    if flags.contains(Flags::NO_CLUSTER) && node.cluster.is_some() {
        return Err(Error::of("ERR Can not run script on cluster, 'no-cluster' flag is set."));
    }
    if node.is_stale()
        && !node.config.replication.replica_serve_stale_data
        && !flags.contains(Flags::ALLOW_STALE)
    {
        return Err(Error::MASTER_DOWN);
    }
    if !flags.contains(Flags::NO_WRITES) {
        if access == Access::ReadOnly {
            return Err(Error::of("ERR Can not execute a script with write flag using *_ro command."));
        }
        if permit::read_only_replica(node).is_err() {
            return Err(Error::of("READONLY Can not run script with write flag on readonly replica."));
        }
        permit::disk(node)?;
        permit::replicas(node)?;
        if node.out_of_memory && !flags.contains(Flags::ALLOW_OOM) {
            return Err(Error::of(
                "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
            ));
        }
    }
    Ok(())
}

fn run(
    ctx: &mut Ctx<'_>,
    callee: Callee<'_>,
    args: &[Bytes],
    keys: usize,
    access: Access,
) -> Result<Reply, Error> {
    let flags = callee.flags();
    admit(ctx, flags, access)?;
    let engine = ctx.node.scripts.clone();
    let idle = engine.idle_host().map(|host| -> Box<dyn Any> { host });
    let mut borrowed = idle
        .and_then(|host| host.downcast::<BorrowedNode>().ok())
        .unwrap_or_else(|| Box::new(BorrowedNode::new()));
    borrowed.begin();
    borrowed.crosses_slots = flags.intersects(Flags::COMPAT.union(Flags::ALLOW_CROSS_SLOT_KEYS));
    borrowed.read_only = access == Access::ReadOnly || flags.contains(Flags::NO_WRITES);
    borrowed.out_of_memory = ctx.node.out_of_memory && !flags.contains(Flags::ALLOW_OOM);
    if !ctx.node.config.generation.has(Feature::ScriptReads)
        && ctx.node.clients.tracking.trackers > 0
        && ctx.node.clients.tracks_reads(ctx.conn)
    {
        borrowed.declared.extend_from_slice(&args[3..3 + keys]);
    }
    let config = &ctx.node.config;
    let (budget, turn) = (config.scripts.budget, Duration::from_millis(config.scripts.busy_reply_threshold));
    // A script has its own database and protocol.
    let session = ctx.session();
    let own = (session.db, std::mem::replace(&mut session.protocol, Protocol::Resp2));

    let (since, now_ms) = (ctx.env.monotonic, ctx.now_ms);
    let (keys, argv) = args[3..].split_at(keys);
    let run = Run { callee, keys, args: argv, budget, turn, client_protocol: own.1 };
    let (borrowed, outcome) = with_borrowed_node(ctx, borrowed, |borrowed| engine.run(borrowed, &run));
    Ok(match outcome {
        Outcome::Reply(reply, errors) => {
            restore_client(ctx, borrowed, own);
            ctx.script_errors = Some(errors);
            reply
        }
        Outcome::Suspended(script) => {
            let function = match callee {
                Callee::Script(_) => None,
                Callee::Function(function) => Some(function.name.clone()),
            };
            let (conn, wrote, command) = (ctx.conn, borrowed.wrote, args.to_vec());
            let (held, transaction) = (std::mem::take(ctx.effects), None);
            let host: Box<dyn Host> = borrowed;
            suspend(
                ctx,
                Busy {
                    conn,
                    script,
                    host,
                    wrote,
                    function,
                    command,
                    since,
                    now_ms,
                    own,
                    held,
                    transaction,
                    killed: false,
                    hung_up: false,
                },
            )
        }
    })
}

/// Lends what the context borrows for one turn of a script.
fn with_borrowed_node(
    ctx: &mut Ctx<'_>,
    mut borrowed: Box<BorrowedNode>,
    turn: impl FnOnce(Box<dyn Host>) -> (Box<dyn Host>, Outcome),
) -> (Box<BorrowedNode>, Outcome) {
    borrowed.lend(ctx);
    let (host, outcome) = turn(borrowed);
    let mut borrowed = borrowed_of(host);
    borrowed.exchange(ctx);
    (borrowed, outcome)
}

fn borrowed_of(host: Box<dyn Host>) -> Box<BorrowedNode> {
    let host: Box<dyn Any> = host;
    host.downcast::<BorrowedNode>().expect("the engine hands back what it was lent")
}

/// Gives the client its database and protocol back, after a script has ended.
fn restore_client(ctx: &mut Ctx<'_>, borrowed: Box<BorrowedNode>, own: (usize, Protocol)) {
    ctx.node.scripts.keep_host(borrowed as Box<dyn Host>);
    if let Some(session) = ctx.node.clients.sessions.get_mut(ctx.conn) {
        (session.db, session.protocol) = own;
    }
}

/// Suspends a script that has used up its limits. With a clock, its next turn comes after others
/// have had theirs. Without a clock, a script that used up its budget is assumed to be endless: its
/// client waits, and the node does nothing until `busy-reply-threshold` has passed. After that it
/// replies with BUSY.
fn suspend(ctx: &mut Ctx<'_>, busy: Busy) -> Reply {
    if ctx.env.script_clock.is_none() {
        let threshold = Duration::from_millis(ctx.node.config.scripts.busy_reply_threshold);
        ctx.node.stall(ctx.env.monotonic, threshold);
    }
    ctx.node.busy = Some(busy);
    let ticket = ctx.node.clients.tickets;
    ctx.node.clients.tickets += 1;
    let (args, keys, deadline) = (Vec::new(), Vec::new(), None);
    ctx.session().blocked = Some(Blocked { args, keys, deadline, ticket, on: BlockedOn::Script });
    Reply::Silence
}

/// Length of a script's turn between those of others.
const TURN: Duration = Duration::from_millis(10);

/// Gives a suspended script its next turn, in a context of its client. After the script ends,
/// continues its transaction. Returns the reply to all of it, or `None` if this or a later script
/// is suspended again.
pub(crate) fn next_turn(ctx: &mut Ctx<'_>, busy: Busy) -> Option<Reply> {
    let engine = ctx.node.scripts.clone();
    let Busy { script, host, held, own, .. } = busy;
    // New effects are appended to those of earlier time slices.
    let news = std::mem::replace(ctx.effects, held);
    let (borrowed, outcome) =
        with_borrowed_node(ctx, borrowed_of(host), |borrowed| engine.resume(borrowed, script, TURN));
    let wrote = borrowed.wrote;
    let (reply, errors) = match outcome {
        Outcome::Suspended(script) => {
            let held = std::mem::replace(ctx.effects, news);
            let host: Box<dyn Host> = borrowed;
            ctx.node.busy = Some(Busy { script, host, held, wrote, ..busy });
            return None;
        }
        Outcome::Reply(reply, errors) => (reply, errors),
    };
    restore_client(ctx, borrowed, own);
    let done = std::mem::replace(ctx.effects, news);
    ctx.effects.append(done);
    ctx.env.refresh(ctx.node.stalled_until);
    timing::note_ended(ctx, &busy.command, busy.since, &errors);
    // Time has advanced for all clients except the script.
    ctx.now_ms = ctx.wall_ms();
    let reply = match busy.transaction {
        None => reply,
        Some((mut replies, rest)) => {
            replies.push(reply);
            transactions::resume_transaction(ctx, busy.conn, replies, rest)
        }
    };
    match &mut ctx.node.busy {
        Some(next) => {
            next.hung_up = busy.hung_up;
            None
        }
        None => Some(reply),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{
        config::Config,
        env::Env,
        event::{Action, ConnId, Event},
        generation::Generation,
        server::Server,
    };

    /// A node on which scripts count as endless after a million instructions, with clients 1 and 2.
    struct Rig {
        server: Server,
        env: Env,
    }

    impl Rig {
        fn new() -> Rig {
            Rig::of(Generation::default())
        }

        fn of(generation: Generation) -> Rig {
            let mut env = Env::new(1);
            let (script_budget, busy_reply_threshold) = (1_000_000, 5000);
            let config = Config::of(generation).with(|config| {
                config.scripts.budget = script_budget;
                config.scripts.busy_reply_threshold = busy_reply_threshold;
            });
            let mut server = Server::new(config, &mut env);
            for conn in [ConnId(1), ConnId(2)] {
                server.step(&mut env, Event::Connected { conn, peer: "c:1".into(), local: "n:1".into() });
            }
            Rig { server, env }
        }

        /// Returns what one event makes the server send, by connection.
        fn step(&mut self, event: Event) -> Vec<(u64, String)> {
            self.server.step(&mut self.env, event);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
            let sent = self.env.outbox.drain(..).filter_map(|action| match action {
                Action::Send { conn, bytes } => Some((conn.0, text(&bytes))),
                _ => None,
            });
            sent.collect()
        }

        fn send(&mut self, conn: u64, line: &str) -> Vec<(u64, String)> {
            self.step(Event::Bytes { conn: ConnId(conn), bytes: format!("{line}\r\n").into() })
        }

        fn wait(&mut self, ms: u64) -> Vec<(u64, String)> {
            self.env.monotonic += Duration::from_millis(ms);
            self.step(Event::Alarm)
        }
    }

    const BUSY: &str =
        "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";

    #[test]
    fn an_endless_script_silences_the_node_then_makes_it_busy_until_it_is_killed() {
        let mut rig = Rig::new();
        assert_eq!(rig.send(1, "EVAL 'while true do end' 0"), []);
        assert_eq!(rig.send(2, "GET k"), [], "nothing is answered before busy-reply-threshold");
        assert_eq!(rig.wait(4999), []);
        assert_eq!(rig.wait(1), [(2, BUSY.into())]);
        assert_eq!(rig.send(2, "GET k"), [(2, BUSY.into())]);
        let sent = rig.send(2, "SCRIPT KILL");
        assert!(sent.contains(&(2, "+OK".into())), "{sent:?}");
        let killed = sent.iter().find(|(conn, _)| *conn == 1).map(|(_, text)| text.as_str());
        assert!(
            killed.is_some_and(
                |text| text.starts_with("-ERR Script killed by user with SCRIPT KILL... script: ")
            )
        );
        assert_eq!(rig.send(1, "GET k"), [(1, "$-1".into())]);
    }

    /// A plain search for a missing text was free: such a loop took hours before it counted as
    /// endless.
    #[test]
    fn a_search_for_what_is_not_there_was_not_charged() {
        let mut rig = Rig::new();
        let script = "local s = ('x'):rep(1e7) while true do s:find('y', 1, true) end";
        assert_eq!(rig.send(1, &format!("EVAL \"{script}\" 0")), []);
        rig.wait(5000);
        assert_eq!(rig.send(2, "GET k"), [(2, BUSY.into())]);
    }

    /// Rust can hold only some 8,000 Lua values at once. Scripts and functions that are not running
    /// must not be among them. Redis 7.0 evicts no script.
    #[test]
    fn there_may_be_any_number_of_scripts_and_functions() {
        let mut rig = Rig::of(Generation::Redis70);
        for n in 0..9_000 {
            assert_eq!(rig.send(1, &format!("EVAL 'return {n}' 0")), [(1, format!(":{n}"))]);
        }
        assert_eq!(rig.send(1, "EVAL 'return #{unpack(KEYS)}' 2 a b"), [(1, ":2".into())]);
        for n in 0..9 {
            let library = format!(
                "FUNCTION LOAD \"#!lua name=l{n}\\nfor n = 1, 1000 do redis.register_function('f{n}_' .. n, function() return n end) end\""
            );
            assert_eq!(rig.send(1, &library), [(1, format!("$2\r\nl{n}"))]);
        }
        assert_eq!(rig.send(1, "FCALL f0_7 0"), [(1, ":7".into())]);
        assert_eq!(rig.send(1, "FCALL f8_1000 0"), [(1, ":1000".into())]);
    }

    #[test]
    fn a_script_that_wrote_cannot_be_killed() {
        let mut rig = Rig::new();
        rig.send(1, "EVAL \"redis.call('set', 'k', 'v') while true do end\" 0");
        rig.wait(5000);
        let sent = rig.send(2, "SCRIPT KILL");
        assert!(matches!(&sent[..], [(2, text)] if text.starts_with("-UNKILLABLE ")), "{sent:?}");
    }

    #[test]
    fn a_script_cannot_catch_its_own_end() {
        for body in [
            "while true do pcall(function() while true do end end) end",
            "while true do xpcall(function() while true do end end, function() end) end",
            "while true do coroutine.resume(coroutine.create(function() while true do end end)) end",
        ] {
            let mut rig = Rig::new();
            assert_eq!(rig.send(1, &format!("EVAL '{body}' 0")), [], "{body}");
            assert!(rig.server.node().busy.is_some(), "{body}");
        }
    }

    #[test]
    fn a_pattern_that_would_be_matched_for_ever_makes_the_node_busy() {
        for body in [
            "return (\"x\"):rep(100000):find((\".-\"):rep(30)..\"y\")",
            "return (\"x\"):rep(100000):match((\".-\"):rep(30)..\"y\")",
            "return (\"x\"):rep(100000):gsub((\".-\"):rep(30)..\"y\", \"\")",
            "return (\"x\"):rep(100000):gsub((\".-\"):rep(30)..\"y\", {})",
            "for k in (\"x\"):rep(100000):gmatch((\".-\"):rep(30)..\"y\") do end",
            "return (\"x\"):rep(1e7):find((\"x\"):rep(5e6)..\"y\", 1, true)",
            "return pcall(string.find, (\"(\"):rep(1e7), \"%b()\")",
            "while true do (\"x\"):rep(1e7) end",
            "local s = (\"x\"):rep(1e7) while true do s:upper() end",
            "local s = (\"x\"):rep(1e7) while true do s:lower() end",
            "local s = (\"x\"):rep(1e7) while true do s:reverse() end",
            "local s = (\"x\"):rep(1e7) while true do s:sub(2) end",
            "local s = (\"x\"):rep(1e7) while true do (\"%s\"):format(s) end",
            "local s = (\"x\"):rep(1e7) while true do pcall(string.format, \"%q%d\", s, \"x\") end",
            "local t = {(\"x\"):rep(1e7)} while true do table.concat(t) end",
            "local s = (\"x\"):rep(1e7) while true do redis.sha1hex(s) end",
            "local t = {} for _ = 1, 14 do t = {t, t, t, t, t, t} end return cmsgpack.pack(t)",
            "local t = {} for _ = 1, 14 do t = {t, t, t, t, t, t} end return cjson.encode(t)",
            "table.insert({}, -2147483648, 1)",
            "while true do loadstring((\"x\"):rep(1e6)) end",
        ] {
            let mut rig = Rig::new();
            assert_eq!(rig.send(1, &format!("EVAL '{body}' 0")), [], "{body}");
            assert_eq!(rig.wait(5000), [], "{body}");
            assert_eq!(rig.send(2, "GET k"), [(2, BUSY.into())], "{body}");
            assert!(rig.send(2, "SCRIPT KILL").contains(&(2, "+OK".into())), "{body}");
        }
    }

    /// Each call cost as little as one without a reply, regardless of the length of the reply's
    /// text.
    #[test]
    fn long_replies_are_paid_for_by_their_length() {
        let mut rig = Rig::new();
        let script = "local s = (\"x\"):rep(1e6) while true do redis.call(\"echo\", s) end";
        assert_eq!(rig.send(1, &format!("EVAL '{script}' 0")), []);
        assert_eq!(rig.wait(5000), []);
        assert_eq!(rig.send(2, "GET k"), [(2, BUSY.into())]);
        assert!(rig.send(2, "SCRIPT KILL").contains(&(2, "+OK".into())));
    }

    #[test]
    fn a_script_that_is_to_be_debugged_is_refused_and_changes_nothing() {
        let mut rig = Rig::new();
        let refused =
            "-ERR there is no debugger on a simulated node: SCRIPT DEBUG NO runs scripts without it";
        for mode in ["YES", "SYNC"] {
            assert_eq!(rig.send(1, &format!("SCRIPT DEBUG {mode}")), [(1, "+OK".into())]);
            for command in ["EVAL", "EVAL_RO"] {
                let script = format!("{command} \"return redis.call('incr', 'k')\" 0");
                assert_eq!(rig.send(1, &script), [(1, refused.into())], "{mode} {command}");
            }
            assert_eq!(rig.send(2, "EVAL 'return 1' 0"), [(2, ":1".into())], "others are not concerned");
        }
        assert_eq!(rig.send(1, "SCRIPT DEBUG NO"), [(1, "+OK".into())]);
        assert_eq!(rig.send(1, "EVAL \"return redis.call('incr', 'k')\" 0"), [(1, ":1".into())]);
    }

    #[test]
    fn a_transaction_goes_on_behind_a_script_that_was_killed() {
        let mut rig = Rig::new();
        for line in ["MULTI", "SET a 1", "EVAL 'while true do end' 0", "SET b 2"] {
            rig.send(1, line);
        }
        assert_eq!(rig.send(1, "EXEC"), []);
        rig.wait(5000);
        let sent = rig.send(2, "SCRIPT KILL");
        let reply = sent.iter().find(|(conn, _)| *conn == 1).map_or("", |(_, text)| text);
        assert!(
            reply.starts_with("*3\r\n+OK\r\n-ERR Script killed") && reply.ends_with("\r\n+OK"),
            "{reply}"
        );
    }

    #[test]
    fn what_a_script_no_longer_uses_makes_room_for_what_it_does() {
        let mut rig = Rig::new();
        rig.server = Server::new(Config::default(), &mut rig.env);
        let conn = ConnId(1);
        let connected = Event::Connected { conn, peer: "c:1".into(), local: "n:1".into() };
        rig.server.step(&mut rig.env, connected);
        for body in [
            "for i = 1, 30 do local s = (\"x\"):rep(2e7) end return 1",
            "local s = (\"x\"):rep(2e7) for i = 1, 30 do local t = s .. i end return 1",
            "for i = 1, 30 do local t = {(\"x\"):rep(2e7):upper()} end return 1",
        ] {
            assert_eq!(rig.send(1, &format!("EVAL '{body}' 0")), [(1, ":1".into())], "{body}");
        }
    }

    #[test]
    fn a_script_that_asks_for_too_much_memory_fails_alone() {
        for body in ["local s = \"x\" while true do s = s .. s end", "return string.rep(\"x\", 1e10)"] {
            let mut rig = Rig::new();
            let sent = rig.send(1, &format!("EVAL '{body}' 0"));
            assert!(
                matches!(&sent[..], [(1, text)] if text.contains("not enough memory")),
                "{body}: {sent:?}"
            );
            assert_eq!(rig.send(1, "EVAL 'return 1' 0"), [(1, ":1".into())]);
        }
    }
}
