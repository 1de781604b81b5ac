//! Loading data. It takes time only if `key-load-delay` says so; clients get LOADING until it is
//! done.

use std::time::Duration;

use super::Server;
use crate::{
    durability::{LogState, Parts},
    env::Env,
    event::ConnId,
    keyspace::Db,
    log::Level,
    node::{Loading, Node, Purpose, clients::BlockedOn},
    resp::Reply,
    time::Monotonic,
};

impl Node {
    /// Returns the time to load `keys`: `key-load-delay` microseconds for each. A negative delay is
    /// the number of keys loaded per microsecond.
    pub fn load_time(&self, keys: usize) -> Duration {
        key_time(self.config.persistence.key_load_delay, keys)
    }

    /// Hides the data for the time that loading `keys` takes. Returns false if it takes no time.
    ///
    /// A server serves its clients between two pieces of the file, whose size is
    /// `loading-process-events-interval-bytes`. With a shorter file it is blocked until the end.
    pub fn begin_loading(
        &mut self,
        keys: usize,
        len: usize,
        purpose: Purpose,
        now: Monotonic,
        now_secs: i64,
    ) -> bool {
        let time = self.load_time(keys);
        if time.is_zero() {
            return false;
        }
        let empty = (0..self.dbs.len()).map(|_| Db::default()).collect();
        let dbs = std::mem::replace(&mut self.dbs, empty);
        // The data of a master's snapshot is installed after the loading.
        let dbs = if purpose == Purpose::Master { Vec::new() } else { dbs };
        let until = now + time;
        self.loading = Some(Loading { until, since: now_secs, len, dbs, purpose });
        let piece = self.config.persistence.loading_process_events_interval_bytes;
        if piece == 0 || (len as u64) < piece {
            self.stall(now, time);
        }
        true
    }

    /// Returns the number of keys in all databases.
    pub fn keys_len(&self) -> usize {
        self.dbs.iter().map(Db::len).sum()
    }
}

/// Returns the time to process `keys`: `delay` microseconds for each. A negative delay is the
/// number of keys processed per microsecond.
pub(super) fn key_time(delay: i64, keys: usize) -> Duration {
    let keys = u64::try_from(keys).unwrap_or(u64::MAX);
    Duration::from_micros(match u64::try_from(delay) {
        Ok(delay) => keys.saturating_mul(delay),
        Err(_) => keys / delay.unsigned_abs(),
    })
}

impl Server {
    /// Continues when the simulated loading time is over.
    pub(super) fn end_loading(&mut self, env: &mut Env) {
        let Some(loading) = self.node.loading.take_if(|loading| env.monotonic >= loading.until) else {
            return;
        };
        env.log(Level::Notice, || "The data is loaded".into());
        if loading.purpose != Purpose::Master {
            self.node.dbs = loading.dbs;
        }
        match loading.purpose {
            Purpose::Start => self.started(env),
            Purpose::Client(conn) => self.answer_loader(conn, &Reply::OK),
            Purpose::Master => {
                if let Some(link) = &mut self.node.replication.master {
                    link.read = true;
                    self.read_from_master(env, b"");
                }
            }
        }
    }

    /// Reads the append-only file again for the client that asked for it (DEBUG LOADAOF).
    pub(super) fn reload_log(&mut self, env: &mut Env) {
        let Some(conn) = self.node.persistence.reload_wanted.take() else { return };
        let len = match self.read_log_again(env) {
            Ok(len) => len,
            Err(why) => {
                env.log(Level::Warning, || format!("{why}: exiting"));
                return self.node.abort();
            }
        };
        self.node.stats.dirty = 0;
        self.node.data_replaced();
        self.node.invalidate_all(None);
        let (now, now_secs) = (env.monotonic, env.wall.as_secs());
        let keys = self.node.keys_len();
        if !self.node.begin_loading(keys, len, Purpose::Client(conn), now, now_secs) {
            self.answer_loader(conn, &Reply::OK);
        }
    }

    fn read_log_again(&mut self, env: &mut Env) -> Result<usize, String> {
        const NONE: &str = "There is no append-only file to load";
        if env.folder.is_some() {
            // The file must also contain the commands of this step.
            self.node.write_log(env);
            let empty = (0..self.node.dbs.len()).map(|_| Db::default()).collect();
            self.node.dbs = empty;
            let len = self.read_parts(env).map_err(|error| error.to_string())?;
            let parts = self.node.persistence.aof.parts.as_ref();
            return if parts.is_none_or(Parts::is_empty) { Err(NONE.into()) } else { Ok(len) };
        }
        // BGREWRITEAOF leaves a file that can be read even if the append-only file is off.
        if !self.load_log(env) {
            return Err(NONE.into());
        }
        if self.node.persistence.aof.state == LogState::On {
            self.node.persistence.aof.resume(env.wall.as_secs());
        }
        Ok(self.node.persistence.disk.data_len())
    }

    fn answer_loader(&mut self, conn: ConnId, reply: &Reply) {
        let Some(session) = self.node.clients.sessions.get_mut(conn) else { return };
        if session.blocked.take_if(|blocked| blocked.on == BlockedOn::Loading).is_some() {
            self.node.answer_waited(conn, reply);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::{
        config::{Config, Fsync},
        durability::Disk,
        env::Env,
        event::{Action, ConnId, DiskFault, Event},
        server::Server,
    };

    const CONN: ConnId = ConnId(1);

    fn start(config: Config, disk: Disk) -> (Server, Env) {
        let mut env = Env::new(1);
        let mut server = Server::restart(config, disk, &mut env);
        server.step(&mut env, Event::Connected { conn: CONN, peer: "c:1".into(), local: "n:1".into() });
        (server, env)
    }

    /// Returns the replies to one line, joined.
    fn ask(server: &mut Server, env: &mut Env, line: &str) -> String {
        env.outbox.clear();
        server.step(env, Event::Bytes { conn: CONN, bytes: format!("{line}\r\n").into() });
        let sent = env.outbox.iter().filter_map(|action| match action {
            Action::Send { bytes, .. } => Some(String::from_utf8_lossy(bytes).trim_end().to_owned()),
            _ => None,
        });
        sent.collect()
    }

    #[test]
    fn a_start_takes_as_long_as_there_are_keys_and_says_so() {
        let (mut server, mut env) = start(Config::default(), Disk::default());
        for key in ["a", "b", "c"] {
            ask(&mut server, &mut env, &format!("SET {key} 1"));
        }
        ask(&mut server, &mut env, "SAVE");
        let config = Config::default().with(|config| {
            config.persistence.key_load_delay = 1_000_000;
            config.persistence.loading_process_events_interval_bytes = 1024;
        });
        let disk = server.kill();
        // Three keys take a second each; a file this short is read without serving clients.
        let (mut server, mut env) = start(config.clone(), disk.clone());
        assert_eq!(ask(&mut server, &mut env, "ECHO x"), "");
        env.monotonic += Duration::from_secs(3);
        assert_eq!(ask(&mut server, &mut env, "DBSIZE"), "$1\r\nx\r\n:3");
        let long = [&disk.snapshot.expect("it was saved")[..], &[0; 1024]].concat();
        let (mut server, mut env) = start(config, Disk { snapshot: Some(long.into()), ..Disk::default() });
        assert_eq!(ask(&mut server, &mut env, "ECHO x"), "$1\r\nx");
        assert_eq!(ask(&mut server, &mut env, "GET a"), "-LOADING Redis is loading the dataset in memory");
        env.monotonic += Duration::from_secs(3);
        assert_eq!(ask(&mut server, &mut env, "DBSIZE"), ":3");
    }

    #[test]
    fn what_a_full_disk_did_not_take_is_lost_with_the_process_and_written_when_there_is_room() {
        let config = Config::default().with(|config| {
            config.aof.appendonly = true;
            config.aof.appendfsync = Fsync::No;
        });
        for room in [false, true] {
            let (mut server, mut env) = start(config.clone(), Disk::default());
            server.step(&mut env, Event::Disk { fault: Some(DiskFault::Full) });
            assert_eq!(ask(&mut server, &mut env, "SET a 1"), "+OK");
            let refused = "-MISCONF Errors writing to the AOF file: No space left on device";
            assert_eq!(ask(&mut server, &mut env, "SET a 2"), refused);
            if room {
                server.step(&mut env, Event::Disk { fault: None });
                assert_eq!(ask(&mut server, &mut env, "SET b 1"), "+OK");
            }
            let (mut server, mut env) = start(config.clone(), server.kill());
            assert_eq!(ask(&mut server, &mut env, "EXISTS a b"), if room { ":2" } else { ":0" });
        }
    }

    #[test]
    fn a_save_point_that_fails_is_tried_again_after_some_seconds() {
        let config = Config::default().with(|config| config.persistence.save = vec![(1, 1)]);
        let (mut server, mut env) = start(config, Disk::default());
        server.step(&mut env, Event::Disk { fault: Some(DiskFault::Full) });
        ask(&mut server, &mut env, "SET a 1");
        let wait = |server: &mut Server, env: &mut Env, secs| {
            for _ in 0..10 * secs {
                env.monotonic += Duration::from_millis(100);
                env.wall += Duration::from_millis(100);
                server.step(env, Event::Alarm);
            }
            server.node().persistence.save_failed
        };
        assert!(!wait(&mut server, &mut env, 2), "it has only begun");
        assert!(wait(&mut server, &mut env, 1));
        server.step(&mut env, Event::Disk { fault: None });
        assert!(wait(&mut server, &mut env, 5));
        assert!(!wait(&mut server, &mut env, 1));
    }
}
