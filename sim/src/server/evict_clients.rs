//! Client eviction: disconnects the largest clients first when all clients together use more memory
//! than `maxmemory-clients`.
//!
//! The memory of a client consists of incomplete commands, transactions, watched keys,
//! subscriptions, and unread replies.

use super::Server;
use crate::{
    env::Env,
    event::ConnId,
    log::Level,
    node::clients::{Role, Session},
};

/// The least limit that is applied. With less memory for its clients a server could not serve any,
/// not even to change the limit.
const LIMIT_MIN: u64 = 128 << 10;

impl Server {
    /// Disconnects the largest clients until the others fit.
    pub(super) fn evict_clients(&mut self, env: &mut Env) {
        let limit = match self.node.config.memory.maxmemory_clients.of(self.node.config.memory.maxmemory) {
            0 => return,
            limit => limit.max(LIMIT_MIN),
        };
        // The query buffers can add at most this much.
        let query_buffers = self.node.clients.sessions.len() * Session::QUERY_BUFFER_MAX;
        if self.node.clients.sessions.memory().saturating_add(query_buffers) as u64 <= limit {
            return;
        }
        self.node.resize_reply_buffers(env.monotonic);
        let counts = |session: &&Session| session.role == Role::Client && !session.is_leaving();
        let sizes = self
            .node
            .clients
            .sessions
            .iter()
            .filter(counts)
            .map(|session| session.memory(env.monotonic).total);
        let mut used = sizes.sum::<usize>() as u64;
        if used < limit {
            return;
        }
        let mut largest: Vec<(usize, ConnId)> = self
            .node
            .clients
            .sessions
            .iter()
            .filter(counts)
            .filter(|session| !session.no_evict)
            .map(|session| (session.memory(env.monotonic).total, session.id))
            .collect();
        largest.sort_by_key(|(size, id)| (std::cmp::Reverse(*size), *id));
        for (size, conn) in largest {
            if used < limit {
                return;
            }
            env.log(Level::Notice, || format!("Evicting client {conn}, which uses {size} bytes"));
            self.node.clients.kill(conn);
            self.node.stats.evicted_clients += 1;
            used = used.saturating_sub(size as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Config, Share},
        event::{Action, Event},
    };

    struct Bench {
        env: Env,
        server: Server,
    }

    impl Bench {
        /// A server with clients 1 to 4, and a limit on their total memory.
        fn new(limit: Share, maxmemory: u64) -> Bench {
            let mut env = Env::new(1);
            let config = Config::default().with(|config| {
                config.memory.maxmemory_clients = limit;
                config.memory.maxmemory = maxmemory;
            });
            let mut server = Server::new(config, &mut env);
            for id in 1..=4 {
                let (peer, local) = (format!("c{id}:1"), "n1:6379".into());
                server.step(&mut env, Event::Connected { conn: ConnId(id), peer, local });
            }
            env.outbox.clear();
            Bench { env, server }
        }

        /// Returns the connections that are closed when a client sends these bytes.
        fn send(&mut self, conn: u64, bytes: impl Into<bytes::Bytes>) -> Vec<u64> {
            self.server.step(&mut self.env, Event::Bytes { conn: ConnId(conn), bytes: bytes.into() });
            let closed = self.env.outbox.drain(..).filter_map(|action| match action {
                Action::Kill { conn, .. } => Some(conn.0),
                _ => None,
            });
            closed.collect()
        }
    }

    /// Returns the beginning of a command that is never completed.
    fn half(len: usize) -> Vec<u8> {
        let mut bytes = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${len}\r\n").into_bytes();
        bytes.resize(bytes.len() + len, b'x');
        bytes
    }

    #[test]
    fn the_largest_goes_first_and_only_as_many_as_need_to() {
        let mut bench = Bench::new(Share::Bytes(300_000), 0);
        assert_eq!(bench.send(1, half(60_000)), []);
        assert_eq!(bench.send(2, half(90_000)), []);
        assert_eq!(bench.send(3, half(80_000)), [2]);
        assert_eq!(bench.send(4, "PING\r\n"), []);
        assert_eq!(bench.server.node.stats.evicted_clients, 1);
    }

    #[test]
    fn a_long_argument_counts_as_soon_as_its_length_is_known() {
        let mut bench = Bench::new(Share::Bytes(300_000), 0);
        assert_eq!(bench.send(1, "*2\r\n$4\r\nECHO\r\n$100000\r\n"), []);
        assert_eq!(bench.send(2, "*2\r\n$4\r\nECHO\r\n$200000\r\n"), [2]);
    }

    #[test]
    fn what_the_network_has_not_taken_counts() {
        let mut bench = Bench::new(Share::Bytes(300_000), 0);
        bench.server.step(&mut bench.env, Event::Unsent { conn: ConnId(2), bytes: 100_000 });
        assert_eq!(bench.send(1, "PING\r\n"), []);
        bench.server.step(&mut bench.env, Event::Unsent { conn: ConnId(2), bytes: 300_000 });
        assert_eq!(bench.send(1, "PING\r\n"), [2]);
    }

    #[test]
    fn a_client_goes_between_two_of_its_commands() {
        let mut bench = Bench::new(Share::Bytes(300_000), 0);
        bench.send(1, "SETRANGE k 99999 x\r\n");
        assert_eq!(bench.send(2, "GET k\r\nGET k\r\nGET k\r\nSET after v\r\n"), [2]);
        assert!(!bench.server.node.dbs[0].contains(b"after"));
    }

    #[test]
    fn a_client_with_no_evict_stays() {
        let mut bench = Bench::new(Share::Bytes(200_000), 0);
        bench.send(1, "CLIENT NO-EVICT ON\r\n");
        assert_eq!(bench.send(1, half(400_000)), [2, 3, 4]);
        assert_eq!(bench.server.node.clients.sessions.len(), 1);
    }

    #[test]
    fn a_transaction_counts_and_a_percentage_is_one_of_maxmemory() {
        let mut bench = Bench::new(Share::Percent(10), 3_000_000);
        bench.send(1, "MULTI\r\n");
        let queued = format!("SET k {}\r\n", "v".repeat(50_000));
        let closed: Vec<_> = (0..6).flat_map(|_| bench.send(1, queued.clone())).collect();
        assert_eq!(closed, [1]);
        let mut unlimited = Bench::new(Share::Percent(10), 0);
        assert_eq!(unlimited.send(1, half(4_000_000)), []);
    }
}
