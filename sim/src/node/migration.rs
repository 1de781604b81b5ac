//! A running migration: the keys that MIGRATE has sent to another node, and the answers of that
//! node so far.
//!
//! A server does nothing else during a migration, so there is at most one. The connection to the
//! target is kept for a while for the next migration to the same target.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use bytes::Bytes;

use crate::{effect::Effects, event::ConnId, replication::encode, resp::Reply, time::Monotonic};

/// The maximum length in bytes of an incomplete answer. Answers are short lines.
const ANSWERS_MAX: usize = 1 << 20;

/// The maximum number of connections kept.
const KEPT_MAX: usize = 64;

/// A connection is closed when it has been idle for more seconds than this.
const IDLE_SECS_MAX: i64 = 10;

/// Another node: its host and its port.
pub type Target = (String, u16);

/// The state of MIGRATE.
#[derive(Debug)]
pub struct Migration {
    /// The node that receives the keys.
    pub target: Target,
    /// The connection to the target.
    pub conn: ConnId,
    /// Set while the connection is reused from an earlier migration and has not delivered an answer
    /// to this one.
    pub reused: bool,
    /// The client that called MIGRATE.
    pub client: ConnId,
    /// The database of the keys.
    pub db: usize,
    /// COPY: the keys are not deleted here.
    pub copy: bool,
    /// The time limit of each step.
    pub timeout: Duration,
    /// The end of the time limit of the present step.
    pub deadline: Monotonic,
    /// The bytes to send once the connection is made.
    pub request: Request,
    /// The number of answers to AUTH and SELECT that have not arrived.
    preludes: usize,
    /// The keys whose answers have not arrived, in order.
    pub sent: VecDeque<Bytes>,
    /// The keys that the target has accepted.
    pub taken: Vec<Bytes>,
    /// Inside a transaction: the replies so far, and the commands after MIGRATE.
    pub transaction: Option<(Vec<Reply>, Vec<Vec<Bytes>>)>,
    /// The effects of the transaction so far, which are delivered at its end.
    pub held: Effects,
    /// The target's first error to AUTH or SELECT: it counts as the answer for every key.
    refused: Option<String>,
    /// The first error that the target answered for a key.
    pub error: Option<String>,
    /// The bytes of an incomplete answer.
    buffer: Vec<u8>,
    /// Set once the connection is made.
    connected: bool,
}

/// The request to the target.
#[derive(Debug, Default)]
pub struct Request {
    /// The AUTH command; empty if none was asked for.
    pub auth: Vec<u8>,
    /// The database to select at the target.
    pub db: String,
    /// The RESTORE commands for the keys.
    pub restores: Vec<u8>,
}

/// The progress of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Some answers have not arrived.
    Waiting,
    /// All answers have arrived.
    Done,
    /// The target sent something that is no valid answer.
    Broken,
}

impl Migration {
    /// Returns a migration whose connection is being dialed.
    pub fn new(
        target: Target,
        conn: ConnId,
        client: ConnId,
        db: usize,
        timeout: Duration,
        now: Monotonic,
    ) -> Migration {
        Migration {
            target,
            conn,
            reused: false,
            client,
            db,
            copy: false,
            timeout,
            deadline: now + timeout,
            request: Request::default(),
            preludes: 0,
            sent: VecDeque::new(),
            taken: Vec::new(),
            transaction: None,
            held: Effects::default(),
            refused: None,
            error: None,
            buffer: Vec::new(),
            connected: false,
        }
    }

    /// Starts the request on a new connection, which may have a database selected already. Returns
    /// the bytes to send.
    pub fn connected(&mut self, selected: Option<&str>, now: Monotonic) -> Bytes {
        self.connected = true;
        self.deadline = now + self.timeout;
        let mut bytes = self.request.auth.clone();
        self.preludes = usize::from(!bytes.is_empty());
        if selected != Some(&self.request.db) {
            encode(&["SELECT", &self.request.db], &mut bytes);
            self.preludes += 1;
        }
        bytes.extend_from_slice(&self.request.restores);
        bytes.into()
    }

    /// Prepares to send the same request on another connection, which is being dialed.
    pub fn redial(&mut self, conn: ConnId, now: Monotonic) {
        (self.conn, self.reused, self.connected) = (conn, false, false);
        self.deadline = now + self.timeout;
    }

    /// Returns the error for the client: `late` if the time limit has passed, otherwise because the
    /// connection is lost. A server notices only when it writes that its connection was refused.
    pub fn failure(&self, late: bool) -> &'static str {
        match (self.connected, late) {
            (true, _) => "IOERR error or timeout reading to target instance",
            (false, true) => "IOERR error or timeout connecting to the client",
            (false, false) => "IOERR error or timeout writing to target instance",
        }
    }

    /// Reads the target's answers.
    pub fn hear(&mut self, bytes: &[u8], now: Monotonic) -> Progress {
        self.deadline = now + self.timeout;
        self.reused = false;
        self.buffer.extend_from_slice(bytes);
        while let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
            let line: Vec<u8> = self.buffer.drain(..end + 2).take(end).collect();
            let line = String::from_utf8_lossy(&line);
            let error = line.strip_prefix('-').map(str::to_owned);
            if self.preludes > 0 {
                self.preludes -= 1;
                self.refused = self.refused.take().or(error);
                continue;
            }
            let Some(key) = self.sent.pop_front() else { return Progress::Broken };
            match self.refused.clone().or(error) {
                Some(error) => self.error = self.error.take().or(Some(error)),
                None => self.taken.push(key),
            }
        }
        match self.sent.is_empty() {
            true => Progress::Done,
            false if self.buffer.len() > ANSWERS_MAX => Progress::Broken,
            false => Progress::Waiting,
        }
    }
}

/// The connections to targets that are kept for later migrations.
#[derive(Debug, Default)]
pub struct Targets {
    kept: BTreeMap<Target, Kept>,
}

#[derive(Debug)]
struct Kept {
    conn: ConnId,
    /// The database selected on the connection, if known.
    selected: Option<String>,
    /// The wall-clock second of the last migration.
    used_at: i64,
}

impl Targets {
    /// Takes the connection to a target out, with the database selected on it.
    pub fn take(&mut self, target: &Target) -> Option<(ConnId, Option<String>)> {
        self.kept.remove(target).map(|kept| (kept.conn, kept.selected))
    }

    /// Keeps a connection. Returns the least recently used one to close, if too many are kept.
    pub fn keep(
        &mut self,
        target: Target,
        conn: ConnId,
        selected: Option<String>,
        now_secs: i64,
    ) -> Option<ConnId> {
        let oldest = self.kept.iter().min_by_key(|(_, kept)| kept.used_at);
        let crowded_out = oldest.filter(|_| self.kept.len() >= KEPT_MAX).map(|(target, _)| target.clone());
        let closed = crowded_out.and_then(|target| self.take(&target));
        self.kept.insert(target, Kept { conn, selected, used_at: now_secs });
        closed.map(|(conn, _)| conn)
    }

    /// Forgets a connection; returns true if it was kept.
    pub fn forget(&mut self, conn: ConnId) -> bool {
        let before = self.kept.len();
        self.kept.retain(|_, kept| kept.conn != conn);
        self.kept.len() < before
    }

    /// Returns the first wall-clock second in which a connection has been idle for too long.
    pub fn idle_at(&self) -> Option<i64> {
        self.kept.values().map(|kept| kept.used_at.saturating_add(IDLE_SECS_MAX + 1)).min()
    }

    /// Takes out the connections that have been idle for too long.
    pub fn take_idle(&mut self, now_secs: i64) -> Vec<ConnId> {
        let is_idle = |kept: &Kept| now_secs.saturating_sub(kept.used_at) > IDLE_SECS_MAX;
        let idle = self.kept.extract_if(.., |_, kept| is_idle(kept));
        idle.map(|(_, kept)| kept.conn).collect()
    }

    /// Returns the number of connections kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns true if no connection is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_kept_while_they_are_used_and_not_too_many_of_them() {
        let mut targets = Targets::default();
        let target = |n: u64| (format!("n{n}"), 6379);
        for n in 0..KEPT_MAX as u64 {
            assert_eq!(targets.keep(target(n), ConnId(n), Some("0".into()), 100 + n as i64), None);
        }
        assert_eq!(targets.keep(target(99), ConnId(99), None, 200), Some(ConnId(0)));
        assert_eq!(targets.take(&target(1)), Some((ConnId(1), Some("0".into()))));
        assert_eq!(targets.take(&target(1)), None);
        assert!(targets.forget(ConnId(2)) && !targets.forget(ConnId(2)));
        assert_eq!((targets.len(), targets.idle_at()), (KEPT_MAX - 2, Some(114)));
        assert_eq!(targets.take_idle(113), []);
        assert_eq!(targets.take_idle(115), [ConnId(3), ConnId(4)]);
    }

    fn migration(preludes: usize, keys: &[&'static str]) -> Migration {
        let timeout = Duration::from_secs(1);
        let target = ("n1".into(), 6379);
        let mut migration = Migration::new(target, ConnId(9), ConnId(1), 0, timeout, Monotonic::ZERO);
        migration.preludes = preludes;
        migration.sent = keys.iter().map(|key| Bytes::from_static(key.as_bytes())).collect();
        migration
    }

    #[test]
    fn answers_are_taken_however_they_are_cut() {
        let answers = b"+OK\r\n+OK\r\n-BUSYKEY Target key name already exists.\r\n+OK\r\n";
        for cut in 0..answers.len() {
            let mut migration = migration(1, &["a", "b", "c"]);
            assert_eq!(migration.hear(&answers[..cut], Monotonic::ZERO), Progress::Waiting);
            assert_eq!(migration.hear(&answers[cut..], Monotonic::ZERO), Progress::Done);
            assert_eq!(migration.taken, ["a", "c"]);
            assert_eq!(migration.error.as_deref(), Some("BUSYKEY Target key name already exists."));
        }
    }

    #[test]
    fn a_refused_password_stands_for_every_key() {
        let mut migration = migration(2, &["a", "b"]);
        let answers = b"-WRONGPASS no\r\n-NOAUTH Authentication required.\r\n-NOAUTH x\r\n-NOAUTH x\r\n";
        assert_eq!(migration.hear(answers, Monotonic::ZERO), Progress::Done);
        assert!(migration.taken.is_empty());
        assert_eq!(migration.error.as_deref(), Some("WRONGPASS no"));
    }

    #[test]
    fn an_unexpected_reply_breaks_it() {
        let mut talkative = migration(0, &["a"]);
        assert_eq!(talkative.hear(b"+OK\r\n+OK\r\n", Monotonic::ZERO), Progress::Broken);
        let mut endless = migration(0, &["a"]);
        assert_eq!(endless.hear(&[b'x'; ANSWERS_MAX + 1], Monotonic::ZERO), Progress::Broken);
    }
}
