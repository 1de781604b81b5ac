//! Clients that wait for keys: serves them in order of arrival when data has come, and ends their
//! waits at their deadlines.

use bytes::Bytes;

use super::{Server, finish::Finished};
use crate::{
    commands::{Ctx, Flags, Group, Origin, Spec, find_in, run},
    effect::{Class, Effects, Touch},
    env::Env,
    event::ConnId,
    generation::Generation,
    keyspace::{Found, Kind},
    node::{active_expiry::Purpose, clients::BlockedOn},
    resp::Reply,
};

impl Server {
    /// Records the touched keys on which clients are blocked. They are served after the whole
    /// batch.
    pub(super) fn note_ready(&mut self, touched: &[Touch]) {
        if self.node.clients.waiting.is_empty() {
            return;
        }
        for touch in touched {
            let brings_data = match touch.class {
                Class::New => true,
                // No client is blocked on an existing value of the type that it waits for, except
                // if the key was overwritten. In that case, as in Redis, no client is served until
                // the key is created again.
                Class::List | Class::SortedSet => continue,
                // XREADGROUP is also served when its group ceases to exist, but by no other event
                // of the group.
                Class::StreamEntry | Class::StreamGroupGone => true,
                _ => false,
            };
            let at = (touch.db, touch.key.clone());
            if self.ready.contains(&at) || self.node.clients.waiting.queue(at.0, &at.1).is_empty() {
                continue;
            }
            let kind = self.node.dbs[at.0].get(&at.1).map(|entry| entry.value.kind());
            // No client is blocked on a string, so the key is not even looked up. A lookup could
            // delete a key that expires as soon as it is created.
            let is_new_text = || {
                let here = || touched.iter().filter(|other| other.db == at.0 && other.key == at.1);
                let is_new = here().any(|touch| touch.class == Class::New);
                let made = |touch: &Touch| matches!(touch.class, Class::New | Class::String | Class::Expiry);
                is_new && here().all(made)
            };
            // For streams: also record the key when the stream no longer exists.
            if (brings_data || kind != Some(Kind::Stream)) && !(kind == Some(Kind::String) && is_new_text()) {
                self.ready.push_back(at);
            }
        }
    }

    /// Records the keys of a swapped or replaced database on which clients are blocked.
    pub(super) fn note_replaced(&mut self, db: usize) {
        for key in self.node.clients.waiting.keys(db) {
            let at = (db, key.clone());
            if !self.ready.contains(&at) {
                self.ready.push_back(at);
            }
        }
    }

    /// Serves the clients blocked on keys that have become ready, and on keys that serving makes
    /// ready in turn. While the node is stalled no client is served; a key may have expired when
    /// the node continues.
    pub(super) fn serve_ready(&mut self, env: &mut Env) {
        while !self.is_stalled()
            && let Some((db, key)) = self.ready.pop_front()
        {
            self.expire_ready(env, db, &key);
            for conn in self.node.clients.waiting.queue(db, &key) {
                let rule = self.node.config.expiry_rule(env.wall.as_millis());
                let live = self.node.dbs[db].get(&key).filter(|entry| !entry.is_expired(rule));
                let kind = live.map(|entry| entry.value.kind());
                self.serve(env, conn, &key, kind);
            }
        }
    }

    /// Deletes a ready key that has expired by now.
    fn expire_ready(&mut self, env: &mut Env, db: usize, key: &Bytes) {
        let rule = self.node.config.expiry_rule(env.wall.as_millis());
        let is_awaited = !self.node.clients.waiting.queue(db, key).is_empty();
        if is_awaited
            && self.node.dbs[db].find_by(key, rule) == Found::Expired
            && self.node.deletes_expired(Purpose::Read)
        {
            let mut effects = Effects::default();
            self.node.expire(env, &mut effects, db, key.clone());
            self.settle(env, effects);
        }
    }

    /// Runs the command of a waiting client again, for the one ready key. The client continues to
    /// wait if the command blocks again.
    fn serve(&mut self, env: &mut Env, conn: ConnId, key: &Bytes, kind: Option<Kind>) {
        let Some(session) = self.node.clients.sessions.get(conn) else { return };
        let Some(blocked) = session.blocked.as_ref().filter(|_| !session.closing) else { return };
        let (db, args) = (session.db, blocked.args.clone());
        let Ok(spec) = find_in(&self.node.config, &args) else { return };
        if !waits_for(spec, kind, self.node.config.generation) {
            return;
        }
        let mut effects = Effects::default();
        let now_ms = env.wall.as_millis();
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, conn, db, Origin::Client, now_ms)
            .woken_by(key.clone());
        let reply = run(&mut ctx, spec, &args);
        let waits_on = ctx.take_block().is_some();
        if !waits_on {
            self.node.clients.stop_waiting(conn);
        }
        if waits_on {
            // The command may have found expired keys, and its client may subscribe to their
            // events.
            self.settle_for(env, conn, effects).send(&mut self.node, conn);
        } else {
            self.finish(env, conn, Finished { args, effects: Some(effects), reply, waited: true });
        }
    }

    /// Replies to the clients whose deadlines have passed.
    pub(super) fn end_waits(&mut self, env: &mut Env) {
        for conn in self.node.clients.waiting.overdue(env.monotonic) {
            if let Some(blocked) = self.node.clients.stop_waiting(conn) {
                let reply = if blocked.on == BlockedOn::Clock { Reply::OK } else { Reply::NullArray };
                let args = blocked.args;
                self.finish(env, conn, Finished { args, effects: None, reply, waited: true });
            }
        }
    }
}

/// Returns true if a blocking command is to run again for a key with a value of type `kind` or with
/// no value. Most commands continue to wait while the key has another type. XREADGROUP, the only
/// writing command of its group, also runs when the stream no longer exists, from Redis 7.0 on.
fn waits_for(spec: &Spec, kind: Option<Kind>, generation: Generation) -> bool {
    match spec.group {
        Group::List => kind == Some(Kind::List),
        Group::SortedSet => kind == Some(Kind::SortedSet),
        Group::Stream => {
            kind == Some(Kind::Stream)
                || spec.flags.contains(Flags::WRITE) && generation != Generation::Redis62
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        config::Config,
        env::Observation,
        event::{Action, Event},
        time::Monotonic,
    };

    /// A server with three clients.
    struct Bench {
        env: Env,
        server: Server,
    }

    impl Bench {
        fn new() -> Bench {
            let mut env = Env::new(1);
            let mut server = Server::new(Config::default(), &mut env);
            for id in 1..=3 {
                let (peer, local) = (format!("c{id}:1"), "n1:6379".into());
                server.step(&mut env, Event::Connected { conn: ConnId(id), peer, local });
            }
            env.outbox.clear();
            Bench { env, server }
        }

        /// Returns the replies that one event causes, per connection.
        fn step(&mut self, event: Event) -> Vec<(u64, String)> {
            self.server.step(&mut self.env, event);
            let sent = self.env.outbox.drain(..).filter_map(|action| match action {
                Action::Send { conn, bytes } => Some((conn.0, String::from_utf8_lossy(&bytes).into_owned())),
                _ => None,
            });
            sent.collect()
        }

        fn send(&mut self, conn: u64, command: &str) -> Vec<(u64, String)> {
            self.step(Event::Bytes { conn: ConnId(conn), bytes: format!("{command}\r\n").into() })
        }

        fn waits_for_nothing(&self) -> bool {
            self.server.node.clients.waiting.is_empty()
                && self.server.node.clients.waiting.first_deadline().is_none()
        }
    }

    #[test]
    fn a_client_that_is_gone_takes_nothing() {
        let mut bench = Bench::new();
        assert_eq!(bench.send(1, "BLPOP q 5"), []);
        bench.step(Event::Closed { conn: ConnId(1) });
        assert!(bench.waits_for_nothing());
        assert_eq!(bench.send(2, "RPUSH q a"), [(2, ":1\r\n".into())]);
        assert_eq!(bench.send(2, "LLEN q"), [(2, ":1\r\n".into())]);
    }

    #[test]
    fn a_wait_ends_at_its_deadline_and_what_was_sent_behind_it_runs_then() {
        let mut bench = Bench::new();
        assert_eq!(bench.send(1, "BZPOPMIN z 2"), []);
        assert_eq!(bench.send(1, "PING"), []);
        let deadline = Monotonic::ZERO + Duration::from_secs(2);
        assert_eq!(bench.server.node.clients.waiting.first_deadline(), Some(deadline));
        bench.env.monotonic = deadline;
        assert_eq!(bench.step(Event::Alarm), [(1, "*-1\r\n+PONG\r\n".into())]);
        assert!(bench.waits_for_nothing());
    }

    /// An observer sees the node at the end of a step. Once, a command that client 1 had sent
    /// behind its WAIT ran in the same step as another client's command, and so did all commands of
    /// a pipeline: the observer took the result of the last command for that of the first.
    #[test]
    fn commands_that_run_at_one_instant_are_observed_one_by_one() {
        let mut bench = Bench::new();
        bench.env.observing = true;
        let mut seen = Vec::new();
        // A step that ends early asks for another one with an alarm due immediately.
        let mut look = |bench: &mut Bench, mut event: Event| {
            loop {
                bench.server.step(&mut bench.env, event);
                let is_there = bench.server.node.dbs[0].entries().iter().any(|(key, _)| &**key == b"k");
                let before = seen.len();
                seen.extend(bench.env.observations.drain(..).filter_map(|observation| match observation {
                    Observation::Command { conn, args } => {
                        Some((conn.0, String::from_utf8(args.concat()).unwrap(), is_there))
                    }
                    _ => None,
                }));
                if seen.len() == before {
                    break;
                }
                assert_eq!(seen.len(), before + 1, "one at a time: {seen:?}");
                event = Event::Alarm;
            }
        };
        let bytes = |text: &'static str| text.into();
        look(&mut bench, Event::Bytes { conn: ConnId(1), bytes: bytes("WAIT 1 500\r\nDEL k\r\n") });
        bench.env.monotonic = Monotonic::ZERO + Duration::from_millis(500);
        look(&mut bench, Event::Bytes { conn: ConnId(2), bytes: bytes("SET k v\r\nGET k\r\n") });
        look(&mut bench, Event::Bytes { conn: ConnId(3), bytes: bytes("SET k v\r\nDEL k\r\nSET k v\r\n") });
        let seen: Vec<_> =
            seen.iter().map(|(conn, words, is_there)| (*conn, words.as_str(), *is_there)).collect();
        assert_eq!(
            seen,
            [
                (1, "WAIT1500", false),
                (2, "SETkv", true),
                (2, "GETk", true),
                (1, "DELk", false),
                (3, "SETkv", true),
                (3, "DELk", false),
                (3, "SETkv", true),
            ]
        );
    }

    #[test]
    fn client_unblock_ends_a_wait_for_keys_either_way() {
        for (how, expected) in
            [("TIMEOUT", "*-1\r\n"), ("ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")]
        {
            let mut bench = Bench::new();
            bench.send(1, "BLMOVE a b LEFT LEFT 9");
            let mut sent = bench.send(2, &format!("CLIENT UNBLOCK 1 {how}"));
            sent.sort();
            assert_eq!(sent, [(1, expected.into()), (2, ":1\r\n".into())]);
            assert!(bench.waits_for_nothing());
        }
    }

    // A waiter's pop is a change of its own, which a third client that watches the list must see.
    #[test]
    fn serving_a_waiter_breaks_watches_and_counts_as_a_change() {
        let mut bench = Bench::new();
        bench.send(1, "BLPOP q 0");
        bench.send(3, "WATCH q");
        let dirty = bench.server.node.stats.dirty;
        let mut sent = bench.send(2, "RPUSH q a");
        sent.sort();
        assert_eq!(sent, [(1, "*2\r\n$1\r\nq\r\n$1\r\na\r\n".into()), (2, ":1\r\n".into())]);
        assert_eq!(bench.server.node.stats.dirty - dirty, 2);
        bench.send(3, "MULTI");
        assert_eq!(bench.send(3, "EXEC"), [(3, "*-1\r\n".into())]);
    }
}
