//! Runs one command of a connection, from its words to its reply and its effects.

use bytes::Bytes;

use super::{Server, finish::Finished, gate::Passage};
use crate::{
    commands::{Ctx, Flags, Origin, run},
    effect::{Effects, Framing},
    env::Env,
    event::ConnId,
    log::Level,
    node::clients::Role,
    resp::Reply,
};

/// Returns the log line for an error between a master and its replica: their data may differ from
/// here on.
pub(super) fn critical(what: &str, error: &str, command: &str) -> String {
    format!("== CRITICAL == {what}: '{error}' after processing the command '{command}'")
}

impl Server {
    /// Takes one command of a connection through the gate, runs it, and settles its effects.
    pub(super) fn command(&mut self, env: &mut Env, conn: ConnId, args: Vec<Bytes>) {
        // Clients are evicted before keys, and the sender of this command may be one of them.
        self.node.clients.sessions.account(conn);
        self.evict_clients(env);
        let Some(session) = self.node.clients.sessions.get_mut(conn).filter(|session| !session.closing)
        else {
            return;
        };
        session.argv = (args.iter().map(Bytes::len).sum(), args.len());
        if session.role == Role::Source {
            return self.import(env, conn, &args);
        }
        let spec = match self.gate(env, conn, &args) {
            Passage::Run(spec) => spec,
            Passage::Answer(reply) => {
                self.answer(env, conn, &reply);
                return self.node.clients.command_over(conn);
            }
            Passage::Hold => return self.hold(conn, &args),
            Passage::Close => return self.node.clients.kill(conn),
        };
        let Some(session) = self.node.clients.sessions.get_mut(conn) else { return };
        let db = session.db;
        let now_ms = env.wall.as_millis();
        // Expired keys that such a command happens to find are unrelated, so their deletions are
        // propagated separately.
        let is_separate = spec.flags.contains(Flags::TOUCHES_ARBITRARY_KEYS);
        let framing = if is_separate { Framing::Never } else { Framing::default() };
        let mut effects = Effects { framing, ..Effects::default() };
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, conn, db, Origin::Client, now_ms);
        let reply = run(&mut ctx, spec, &args);
        if let Some(blocked) = ctx.take_block() {
            ctx.node.clients.wait(conn, blocked);
        }
        self.finish(env, conn, Finished { args, effects: Some(effects), reply, waited: false });
        self.serve_ready(env);
        self.end_killed(env);
    }

    /// Sends a reply. A replica expects nothing but the stream: a replica whose command causes a
    /// reply is disconnected.
    pub(super) fn answer(&mut self, env: &mut Env, conn: ConnId, reply: &Reply) {
        let replica = self.node.clients.sessions.get(conn).filter(|session| session.role == Role::Replica);
        let Some(session) = replica.filter(|_| *reply != Reply::Silence) else {
            return self.node.send(conn, reply);
        };
        let (command, peer) = (session.last_command, &session.peer);
        if let Reply::Error(error) = reply {
            self.node.stats.unexpected_errors += 1;
            env.log(Level::Warning, || {
                critical("This master is sending an error to its replica", error, command)
            });
        }
        env.log(Level::Warning, || {
            format!("Replica generated a reply to command '{command}', disconnecting it: {peer}")
        });
        self.node.clients.kill(conn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Config,
        event::{Action, Event},
    };

    #[test]
    fn a_replica_that_makes_its_master_answer_is_hung_up_on_without_an_answer() {
        let mut env = Env::new(1);
        env.logging = Some(Level::Notice);
        let mut server = Server::new(Config::default(), &mut env);
        for (number, (command, said)) in [
            ("PING", "Replica generated a reply to command 'ping'"),
            ("XINFO HELP", "Replica generated a reply to command 'xinfo|help'"),
            ("GET k", "'ERR Replica can't interact with the keyspace' after processing the command 'get'"),
        ]
        .into_iter()
        .enumerate()
        {
            let conn = ConnId(number as u64 + 1);
            server.step(&mut env, Event::Connected { conn, peer: "r:1".into(), local: "n:6379".into() });
            server.step(&mut env, Event::Bytes { conn, bytes: "SYNC\r\n".into() });
            env.outbox.clear();
            env.log.clear();
            server.step(&mut env, Event::Bytes { conn, bytes: format!("{command}\r\n").into() });
            let sent = |action: &Action| matches!(action, Action::Send { .. });
            assert!(!env.outbox.iter().any(sent), "{command}");
            assert!(env.outbox.contains(&Action::Kill { conn, discard: false }), "{command}");
            assert!(env.log.iter().any(|line| line.text.contains(said)), "{command}: {:?}", env.log);
        }
    }
}
