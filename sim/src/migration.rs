//! A migration under way: the keys that MIGRATE has sent to another node, and what that node has answered so far.
//!
//! A server does nothing else meanwhile, so there is one at most.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;

use crate::{effect::Effects, event::ConnId, resp::Reply, time::Monotonic};

/// Bytes that an answer to what is sent may take at most. The answers are short lines.
const ANSWERS_MAX: usize = 1 << 20;

/// What MIGRATE is doing.
#[derive(Debug)]
pub struct Migration {
    /// The connection to the target.
    pub conn: ConnId,
    /// Who asked for it.
    pub client: ConnId,
    /// The database that the keys are in.
    pub db: usize,
    /// COPY: the keys stay here.
    pub copy: bool,
    /// How long each step may take.
    pub timeout: Duration,
    /// When the step that is under way fails.
    pub deadline: Monotonic,
    /// What is sent once the connection stands.
    pub request: Bytes,
    /// Answers still to come for AUTH and SELECT.
    pub preludes: usize,
    /// Keys whose answer is still to come, in order.
    pub sent: VecDeque<Bytes>,
    /// Keys that the target has taken.
    pub taken: Vec<Bytes>,
    /// If it stands in a transaction: the replies so far, and the commands after it.
    pub transaction: Option<(Vec<Reply>, Vec<Vec<Bytes>>)>,
    /// What the transaction did so far. Nobody hears of it before its end.
    pub held: Effects,
    /// The first error that the target answered to AUTH or SELECT: it stands for all keys.
    refused: Option<String>,
    /// The first error that the target answered.
    pub error: Option<String>,
    /// Bytes of an answer that is not whole.
    buffer: Vec<u8>,
    /// The connection stands.
    connected: bool,
}

/// How far a migration has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More answers are to come.
    Waiting,
    /// All is answered.
    Done,
    /// What came is no answer.
    Broken,
}

impl Migration {
    /// A migration whose connection is being dialed.
    pub fn new(conn: ConnId, client: ConnId, db: usize, timeout: Duration, now: Monotonic) -> Migration {
        Migration {
            conn,
            client,
            db,
            copy: false,
            timeout,
            deadline: now + timeout,
            request: Bytes::new(),
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

    /// The connection stands.
    pub fn connected(&mut self, now: Monotonic) {
        self.connected = true;
        self.deadline = now + self.timeout;
    }

    /// The error that says what could not be done: `late` when the time is up, and otherwise because the connection is lost. A
    /// server finds out that nobody took its connection only when it writes.
    pub fn failure(&self, late: bool) -> &'static str {
        match (self.connected, late) {
            (true, _) => "IOERR error or timeout reading to target instance",
            (false, true) => "IOERR error or timeout connecting to the client",
            (false, false) => "IOERR error or timeout writing to target instance",
        }
    }

    /// Takes in what the target answers.
    pub fn hear(&mut self, bytes: &[u8], now: Monotonic) -> Progress {
        self.deadline = now + self.timeout;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn migration(preludes: usize, keys: &[&'static str]) -> Migration {
        let timeout = Duration::from_secs(1);
        let mut migration = Migration::new(ConnId(9), ConnId(1), 0, timeout, Monotonic::ZERO);
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
    fn what_nobody_asked_for_breaks_it() {
        let mut talkative = migration(0, &["a"]);
        assert_eq!(talkative.hear(b"+OK\r\n+OK\r\n", Monotonic::ZERO), Progress::Broken);
        let mut endless = migration(0, &["a"]);
        assert_eq!(endless.hear(&[b'x'; ANSWERS_MAX + 1], Monotonic::ZERO), Progress::Broken);
    }
}
