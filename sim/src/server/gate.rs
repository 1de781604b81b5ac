//! The gate: decides if a command may run now. It checks authentication, arity, memory, role,
//! protocol state, pauses and transactions, in the order of `redis-server`.

use bytes::Bytes;

use super::Server;
use crate::{
    commands::{
        Error, Flags, Late, Spec, access, debug, declared, find_for, find_in, permit, routing, wrong_arity,
    },
    env::Env,
    event::ConnId,
    generation::{Feature, Generation},
    node::{PauseMode, Receiving, clients::Role},
    resp::{Protocol, Reply},
};

/// The decision of the gate.
pub(super) enum Passage {
    /// The command may run.
    Run(&'static Spec),
    /// The command was queued or refused, with this reply.
    Answer(Reply),
    /// The command waits for the end of CLIENT PAUSE.
    Hold,
    /// The words are no command but an HTTP request that a web page sent: close the connection.
    Close,
}

/// The reason why a command may not run.
enum Refusal {
    /// The command is not allowed.
    Error(Error),
    /// Another node serves the keys.
    Elsewhere(Error),
    /// The command waits until the node knows if it is still the master.
    Hold,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Error(error)
    }
}

impl Server {
    /// Decides if a client's command runs, waits, or is refused.
    pub(super) fn gate(&mut self, env: &mut Env, conn: ConnId, args: &[Bytes]) -> Passage {
        // `POST / HTTP/1.1` and `Host: ...`: a web page can make a browser send these to this port.
        if args
            .first()
            .is_some_and(|name| [&b"post"[..], b"host:"].iter().any(|web| name.eq_ignore_ascii_case(web)))
        {
            return Passage::Close;
        }
        let found = find_for(&self.node, args);
        if let Some(session) = self.node.clients.sessions.get_mut(conn) {
            session.last_command = found.as_ref().map_or("NULL", |spec| spec.name);
        }
        let may_be_strange = found.as_ref().is_ok_and(|spec| spec.flags.contains(Flags::NO_AUTH));
        if self.node.config.generation.has(Feature::EarlyAuth)
            && !may_be_strange
            && self.node.clients.sessions.get(conn).is_some_and(|session| !session.authenticated)
            && !self.node.acl.admits_strangers()
        {
            return self.refuse(conn, None, Error::NO_AUTH);
        }
        let generation = self.node.config.generation;
        let (spec, late) = match found {
            Ok(spec) if spec.accepts(generation, args.len()) => (spec, None),
            found => match (Late::of(&self.node.config, &found, args), found) {
                (Some(late), _) if self.node.sentinel.is_none() => (late.spec, Some(late.error)),
                (_, Ok(spec)) => {
                    let error = wrong_arity(generation, spec, args);
                    return self.refuse(conn, Some(spec), error);
                }
                (_, Err(error)) => return self.refuse(conn, None, error),
            },
        };
        if let Some(session) = self.node.clients.sessions.get_mut(conn)
            && session.transaction.is_none()
        {
            session.asking = std::mem::take(&mut session.asks);
        }
        // The subcommands of a container have the same flags in Redis 6.2.
        let mut flags = match spec.subcommands_in(generation).next().filter(|_| late.is_some()) {
            Some(any) => any.flags_in(generation),
            None => self.flags_with_queue(conn, spec, args),
        };
        // A command that fails late changes no modules and debugs nothing.
        if late.is_some() {
            flags -= Flags::CHANGES_MODULES | Flags::DEBUGS;
        }
        match self.admit(env, conn, spec, flags, args) {
            Ok(()) => {}
            Err(Refusal::Error(error)) => return self.refuse(conn, Some(spec), error),
            Err(Refusal::Elsewhere(error)) => return self.redirect(conn, spec, error),
            Err(Refusal::Hold) => return Passage::Hold,
        }
        let may_replicate = flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE));
        let session = self.node.clients.sessions.live(conn);
        // A monitor is a kind of replica in Redis.
        if session.role == Role::Replica || session.monitor {
            if may_replicate || flags.contains(Flags::READONLY) {
                let error = match self.node.config.generation {
                    Generation::Redis62 => "ERR Replica can't interract with the keyspace",
                    _ => "ERR Replica can't interact with the keyspace",
                };
                return self.refuse(conn, Some(spec), Error::of(error));
            }
        } else {
            // A command that advances the clock ends the pause, so it must not wait for it.
            let moves_clock = env.manual_clock && debug::is_clock(args);
            match self.node.pause() {
                Some(PauseMode::All) if !moves_clock => return Passage::Hold,
                Some(PauseMode::Write) if may_replicate => return Passage::Hold,
                _ => {}
            }
        }
        let session = self.node.clients.sessions.get_mut(conn).expect("the gate is for live connections");
        match &mut session.transaction {
            Some(transaction) if !spec.flags.contains(Flags::NOT_QUEUED) => {
                transaction.push(args.to_vec());
                Passage::Answer(Reply::QUEUED)
            }
            _ => match late {
                Some(error) => self.refuse(conn, Some(spec), error),
                None => Passage::Run(spec),
            },
        }
    }

    /// Returns the flags of a command: for EXEC together with those of the queued commands, for a
    /// script those it declares.
    fn flags_with_queue(&self, conn: ConnId, spec: &Spec, args: &[Bytes]) -> Flags {
        let queue = match &self.node.clients.sessions.live(conn).transaction {
            Some(transaction) if spec.flags.contains(Flags::RUNS_QUEUE) => &transaction.queue[..],
            _ => return declared(&self.node, spec, args),
        };
        let asks = Flags::READONLY | Flags::WRITE | Flags::DENYOOM | Flags::MAY_REPLICATE;
        let allowed = Flags::LOADING | Flags::STALE;
        queue.iter().fold(spec.flags_in(self.node.config.generation), |flags, args| {
            let Ok(queued) = find_in(&self.node.config, args) else { return flags };
            let queued = declared(&self.node, queued, args);
            (flags - allowed) | (flags & queued & allowed) | (queued & asks)
        })
    }

    fn admit(
        &mut self,
        env: &mut Env,
        conn: ConnId,
        spec: &Spec,
        flags: Flags,
        args: &[Bytes],
    ) -> Result<(), Refusal> {
        let node = &mut self.node;
        let session = node.clients.sessions.get_mut(conn).expect("the gate is for live connections");
        // A queue may use up any amount of memory by itself.
        let queuing = !node.config.generation.has(Feature::QueueBeyondMemory)
            && session.transaction.is_some()
            && !flags.contains(Flags::ENDS_TRANSACTION);
        if flags.contains(Flags::DEBUGS)
            && !node.config.security.enable_debug_command.allows(session.is_local())
        {
            return Err(Error::DEBUG_DISABLED.into());
        }
        if flags.contains(Flags::CHANGES_MODULES)
            && !node.config.security.enable_module_command.allows(session.is_local())
        {
            return Err(Error::MODULE_DISABLED.into());
        }
        if !session.authenticated && !node.acl.admits_strangers() && !flags.contains(Flags::NO_AUTH) {
            return Err(Error::NO_AUTH.into());
        }
        let generation = node.config.generation;
        let is_barred = flags.contains(Flags::NO_MULTI)
            || spec.name == "client|reply" && generation.has(Feature::NoReplyModesInMulti);
        if session.transaction.is_some() && is_barred {
            return Err(Error::not_in_multi(spec.name, generation).into());
        }
        // The master's stream is executed whatever the state of this node.
        let obeys = session.role == Role::Master;
        let context = if session.transaction.is_some() { "multi" } else { "toplevel" };
        let confined = session.protocol == Protocol::Resp2 && session.is_subscriber();
        access::refuse(node, env, conn, spec, args, context)
            .map_err(|denied| denied.error(spec, node, conn))?;
        routing::route(node, env, conn, spec, args)
            .map_err(|elsewhere| Refusal::Elsewhere(Error(elsewhere.text().into())))?;
        if let Some(master) = routing::master_for(node, conn, flags) {
            let hands_over = node.replication.failover.is_some();
            return Err(if hands_over { Refusal::Hold } else { Refusal::Elsewhere(master) });
        }
        self.make_room(env);
        self.node.limit_tracking(env);
        let node = &mut self.node;
        if node.out_of_memory && (flags.contains(Flags::DENYOOM) || queuing) && !obeys {
            return Err(Error::OUT_OF_MEMORY.into());
        }
        if flags.contains(Flags::WRITE) && !obeys {
            permit::write(node)?;
        } else if flags.contains(Flags::NEEDS_DISK) {
            permit::disk(node)?;
        }
        if confined && !flags.contains(Flags::IN_SUBSCRIBER_MODE) {
            return Err(Error::in_subscription(spec.name, self.node.config.generation).into());
        }
        permit::stale(node, flags)?;
        let receiving = node.receiving();
        if (receiving == Some(Receiving::WithoutData) && !flags.contains(Flags::LOADING))
            || (receiving == Some(Receiving::BesideData) && flags.contains(Flags::NO_ASYNC_LOADING))
        {
            return Err(Error::LOADING.into());
        }
        if node.loading.is_some() && !flags.contains(Flags::LOADING) {
            return Err(Error::LOADING.into());
        }
        if let Some(busy) = node.busy.as_ref().filter(|_| !flags.contains(Flags::ALLOW_BUSY)) {
            return Err(Error::busy(busy).into());
        }
        Ok(())
    }

    /// Replies that another node serves the keys. A redirected EXEC ends its transaction; another
    /// redirected command breaks it.
    fn redirect(&mut self, conn: ConnId, spec: &Spec, error: Error) -> Passage {
        if spec.flags.contains(Flags::RUNS_QUEUE) {
            self.node.clients.discard(conn);
        } else if let Some(session) = self.node.clients.sessions.get_mut(conn)
            && let Some(transaction) = &mut session.transaction
        {
            transaction.broken = true;
        }
        self.node.stats.calls_of(spec.name).rejected += 1;
        self.node.stats.note_error(&error.0);
        Passage::Answer(error.into())
    }

    /// Refuses a command. A refused EXEC ends its transaction; another refused command breaks it,
    /// so that it will not run.
    fn refuse(&mut self, conn: ConnId, spec: Option<&'static Spec>, error: Error) -> Passage {
        let session = self.node.clients.sessions.get_mut(conn).expect("the gate is for live connections");
        let mut error = error.worded(self.node.config.generation);
        if spec.is_some_and(|spec| spec.flags.contains(Flags::RUNS_QUEUE)) {
            self.node.clients.discard(conn);
            error = Error::exec_aborted(&error);
        } else if let Some(transaction) = &mut session.transaction {
            transaction.broken = true;
        }
        if let Some(spec) = spec {
            self.node.stats.calls_of(spec.name).rejected += 1;
        }
        self.node.stats.note_error(&error.0);
        Passage::Answer(error.into())
    }
}
