//! A script's access to its node: the node itself, lent for the duration of the run.
//!
//! The functions that Lua calls live as long as the interpreter, and cannot hold a borrowed
//! [`Ctx`]. So the run swaps node, environment and effects into a [`BorrowedNode`], which the
//! interpreter owns during the run, and swaps them back afterwards. A swap costs some ten
//! nanoseconds; making Lua functions over a borrowed context for each run costs microseconds.

use std::{borrow::Cow, fmt};

use bytes::Bytes;

use crate::{
    commands::{Ctx, Error, Flags, Late, Origin, Spec, access, find_in, permit, routing, run},
    config::Config,
    effect::{Cached, Effects, PropagateTo},
    env::Env,
    event::ConnId,
    generation::{Feature, Generation},
    node::Node,
    resp::{Protocol, Reply},
    script::Host,
    time::Monotonic,
};

/// A node lent to a script.
pub(super) struct BorrowedNode {
    node: Box<Node>,
    env: Env,
    effects: Effects,
    conn: ConnId,
    now_ms: i64,
    /// Set if the script may only read.
    pub(super) read_only: bool,
    /// Set if memory was full when the script began, and the script has not declared `allow-oom`.
    pub(super) out_of_memory: bool,
    /// Propagation targets of its commands (`redis.set_repl`).
    to: PropagateTo,
    /// The keys that the script declared, while any client tracks keys.
    pub(super) declared: Vec<Bytes>,
    /// Set once the script has called a command that writes.
    pub(super) wrote: bool,
    /// Set if the script's keys may be in several slots of a cluster.
    pub(super) crosses_slots: bool,
}

impl fmt::Debug for BorrowedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BorrowedNode")
            .field("conn", &self.conn)
            .field("wrote", &self.wrote)
            .finish_non_exhaustive()
    }
}

impl BorrowedNode {
    /// Makes an empty placeholder: the context holds its contents while the real node is lent.
    pub(super) fn new() -> BorrowedNode {
        let config = Config::default().with(|config| config.keyspace.databases = 0);
        BorrowedNode {
            node: Box::new(Node::new(config, String::new(), String::new(), Monotonic::default())),
            env: Env::new(0),
            effects: Effects::default(),
            conn: ConnId(0),
            now_ms: 0,
            read_only: false,
            out_of_memory: false,
            to: PropagateTo::All,
            declared: Vec::new(),
            wrote: false,
            crosses_slots: false,
        }
    }

    /// Takes what the context borrows.
    pub(super) fn lend(&mut self, ctx: &mut Ctx<'_>) {
        self.exchange(ctx);
        (self.conn, self.now_ms) = (ctx.conn, ctx.now_ms);
    }

    /// Resets the state of the previous script.
    pub(super) fn begin(&mut self) {
        (self.to, self.wrote) = (PropagateTo::All, false);
        self.declared.clear();
    }

    /// Swaps back what [`BorrowedNode::lend`] took.
    pub(super) fn exchange(&mut self, ctx: &mut Ctx<'_>) {
        std::mem::swap(ctx.node, &mut self.node);
        std::mem::swap(ctx.env, &mut self.env);
        std::mem::swap(ctx.effects, &mut self.effects);
    }

    fn admit(&mut self, words: &[Bytes]) -> Result<&'static Spec, Error> {
        let generation = self.node.config.generation;
        let in_script = |redis: &'static str, valkey: &'static str| {
            Error::of(if generation.is_valkey() { valkey } else { redis })
        };
        let found = find_in(&self.node.config, words);
        // Redis 6.2 has no command QUIT, which is answered where requests are read.
        let found = found.and_then(|spec| match generation {
            Generation::Redis62 if spec.name == "quit" => Err(Error::SYNTAX),
            _ => Ok(spec),
        });
        let spec = found.map_err(|error| match generation {
            Generation::Valkey91 if error.0.starts_with("ERR unknown subcommand") => error,
            _ => in_script(
                "ERR Unknown Redis command called from script",
                "ERR Unknown command called from script",
            ),
        })?;
        if !spec.accepts(generation, words.len()) {
            return Err(in_script(
                "ERR Wrong number of args calling Redis command from script",
                "ERR Wrong number of args calling command from script",
            ));
        }
        // Of the commands forbidden in scripts, only DEBUG is safe inside of one.
        let freed = self.node.debug.scripts_may_debug && spec.flags.contains(Flags::DEBUGS);
        let waits = spec.name == "wait" && generation.has(Feature::WaitInScripts)
            || spec.flags.contains(Flags::BLOCKING) && generation.has(Feature::BlockingInScripts);
        if spec.flags.contains(Flags::NOSCRIPT) && !freed && !waits {
            return Err(match generation {
                Generation::Valkey91 => Error::of("ERR This Valkey command is not allowed from script"),
                _ => Error::NOT_FROM_SCRIPT,
            });
        }
        permit::stale(&self.node, spec.flags)
            .map_err(|_| Error::of("ERR Can not execute the command on a stale replica"))?;
        access::refuse(&mut self.node, &self.env, self.conn, spec, words, "lua")
            .map_err(|denied| denied.error_in_script(spec, &self.node, self.conn))?;
        // Here, a command that may be propagated counts as a write; elsewhere it may not.
        if self.read_only && spec.flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE)) {
            return Err(Error::of("ERR Write commands are not allowed from read-only scripts."));
        }
        if spec.flags.contains(Flags::WRITE) {
            permit::write_in_script(&self.node)?;
        }
        // A script that has written continues to its end: stopping halfway would be worse than
        // exceeding the limit.
        if self.out_of_memory && !self.wrote && spec.flags.contains(Flags::DENYOOM) {
            return Err(Error::OUT_OF_MEMORY);
        }
        routing::route_in_script(&mut self.node, &mut self.env, self.conn, spec, words, self.crosses_slots)
            .map_err(|why| Error(format!("ERR {why}").into()))?;
        self.wrote |= spec.flags.contains(Flags::WRITE);
        Ok(spec)
    }
}

impl Host for BorrowedNode {
    fn call(&mut self, words: Vec<Bytes>) -> Result<Reply, Cow<'static, str>> {
        let spec = match self.admit(&words) {
            Ok(spec) => spec,
            Err(error) => {
                let found = find_in(&self.node.config, &words);
                if let Some(late) = Late::of(&self.node.config, &found, &words) {
                    let is_barred = |spec: &&Spec| spec.flags.contains(Flags::NOSCRIPT);
                    if late.container.subcommands.iter().any(is_barred) {
                        return Err(Error::NOT_FROM_SCRIPT.0);
                    }
                    self.node.stats.note_error(&late.error.0);
                    return Ok(late.error.into());
                }
                if self.node.config.generation.has(Feature::ErrorTables) {
                    if let Ok(spec) = found {
                        self.node.stats.calls_of(spec.name).rejected += 1;
                    }
                    self.node.stats.note_error(&error.0);
                }
                return Err(error.0);
            }
        };
        let db = self.node.clients.sessions.get(self.conn).map_or(0, |session| session.db);
        if !self.node.config.generation.has(Feature::FrozenScripts) {
            self.env.refresh(self.node.stalled_until);
        }
        let (node, env, effects) = (&mut self.node, &mut self.env, &mut self.effects);
        let mut ctx = Ctx::new(node, env, effects, self.conn, db, Origin::Script, self.now_ms);
        ctx.to = self.to;
        let reply = run(&mut ctx, spec, &words);
        if spec.flags.contains(Flags::READONLY) {
            let reads = self.declared.iter().cloned().map(Cached::Read);
            reads.for_each(|read| self.effects.cache(read));
        }
        Ok(reply)
    }

    fn may_call(&mut self, words: &[Bytes]) -> Option<bool> {
        let spec = find_in(&self.node.config, words).ok()?;
        let session = self.node.clients.sessions.get(self.conn);
        let user = session.and_then(|session| self.node.acl.user(&session.user));
        Some(user.is_none_or(|user| access::check(user, self.node.config.generation, spec, words).is_ok()))
    }

    fn set_protocol(&mut self, protocol: Protocol) {
        if let Some(session) = self.node.clients.sessions.get_mut(self.conn) {
            session.protocol = protocol;
        }
    }

    fn set_propagation(&mut self, aof: bool, replicas: bool) {
        self.to = match (aof, replicas) {
            (true, true) => PropagateTo::All,
            (true, false) => PropagateTo::Aof,
            (false, true) => PropagateTo::Replicas,
            (false, false) => PropagateTo::None,
        };
    }
}
