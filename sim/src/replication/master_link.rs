//! The link to the master of this node: the dial, the handshake, the snapshot and the stream.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::{event::ConnId, resp::Decoder};

/// A handshake command whose reply is outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The reply to AUTH: a refusal ends the attempt.
    Auth,
    /// The reply to one of the REPLCONFs, which old masters may refuse.
    Introduction,
}

/// The length of a snapshot being received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Not announced yet.
    Unannounced,
    /// This number of bytes.
    Sized(usize),
    /// All bytes up to these forty.
    Marked([u8; 40]),
}

/// The progress of the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// It must be dialed.
    Down {
        /// True to dial at once, for a new link or one that was up until now; false to wait for the
        /// next cron.
        redial: bool,
    },
    /// It is being dialed.
    Connecting,
    /// PING was sent.
    Pinging,
    /// AUTH and REPLCONF were sent; these replies are outstanding.
    Introducing(VecDeque<Answer>),
    /// PSYNC was sent.
    Asking,
    /// The snapshot comes next: a full resynchronization is promised, or SYNC was sent because
    /// PSYNC was not understood.
    Transfer {
        /// The position of the snapshot, id and offset; `None` with SYNC.
        position: Option<(String, u64)>,
        /// The announced length of the snapshot.
        payload: Payload,
    },
    /// The stream is being received.
    Connected,
}

/// The link of a replica to its master, from the dial to the stream.
#[derive(Debug)]
pub struct MasterLink {
    /// The master's host, as REPLICAOF named it.
    pub host: String,
    /// The master's port for clients.
    pub port: u16,
    /// The connection; `None` until it is dialed.
    pub conn: Option<ConnId>,
    /// The stage that the handshake or the synchronization has reached.
    pub stage: Stage,
    /// The wall-clock second of the last data from the master, or of the start of the attempt.
    pub last_io_secs: i64,
    /// The wall-clock second since which the link is down; `None` while it is up, and before the
    /// first link.
    pub down_since: Option<i64>,
    /// The database selected in the stream; `None` if this node cannot continue from its position
    /// in it.
    pub resume: Option<usize>,
    /// Received bytes of the handshake, the snapshot or the stream that are not processed yet.
    pub buffer: BytesMut,
    /// Splits the stream into commands. It has received all of `buffer` while the link is up.
    pub decoder: Decoder,
    /// True once loading the snapshot in `buffer` has taken its simulated time.
    pub read: bool,
    /// The commands since MULTI, which are applied at EXEC.
    pub batch: Option<Vec<Vec<Bytes>>>,
}

impl MasterLink {
    /// Creates a link that is dialed at once.
    pub fn new(host: String, port: u16, resume: Option<usize>, now_secs: i64) -> MasterLink {
        MasterLink {
            host,
            port,
            conn: None,
            stage: Stage::Down { redial: true },
            last_io_secs: now_secs,
            down_since: None,
            resume,
            buffer: BytesMut::new(),
            decoder: Decoder::default(),
            read: false,
            batch: None,
        }
    }

    /// Records that CLIENT KILL was called for this connection, which is closed at the end of the
    /// step.
    pub fn killed(&mut self, conn: ConnId, now_secs: i64) {
        if self.conn == Some(conn) && self.is_up() {
            self.down_since = Some(now_secs);
        }
    }

    /// Records that the connection is closed or given up, and discards received bytes that are not
    /// applied. Returns the connection.
    pub fn lost(&mut self, now_secs: i64) -> Option<ConnId> {
        let redial = matches!(self.stage, Stage::Connected | Stage::Transfer { .. });
        if self.is_up() {
            self.down_since.get_or_insert(now_secs);
        }
        self.stage = Stage::Down { redial };
        self.buffer.clear();
        self.decoder = Decoder::default();
        self.batch = None;
        self.read = false;
        self.conn.take()
    }

    /// Returns true while the stream is being received.
    pub fn is_up(&self) -> bool {
        self.stage == Stage::Connected
    }

    /// Takes the next line of the handshake, without its end; `None` until it is complete.
    ///
    /// # Errors
    /// If the peer sends a line longer than any reply of the handshake.
    pub fn line(&mut self) -> Result<Option<String>, LineTooLong> {
        const LINE_LEN_MAX: usize = 1024;
        match self.buffer.iter().take(LINE_LEN_MAX).position(|&byte| byte == b'\n') {
            Some(end) => {
                let line = self.buffer.split_to(end + 1);
                Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
            }
            None if self.buffer.len() >= LINE_LEN_MAX => Err(LineTooLong),
            None => Ok(None),
        }
    }

    /// The name of the state in ROLE.
    pub fn state(&self) -> &'static str {
        match self.stage {
            Stage::Down { .. } => "connect",
            Stage::Connecting => "connecting",
            Stage::Pinging | Stage::Introducing(_) | Stage::Asking => "handshake",
            Stage::Transfer { .. } => "sync",
            Stage::Connected => "connected",
        }
    }
}

/// The peer sends an endless line in the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineTooLong;

#[cfg(test)]
mod tests {
    use super::*;

    /// A replica that slept after it had killed its link once dated the loss from its waking, and
    /// stood for election with old data.
    #[test]
    fn a_killed_link_is_down_from_then_on() {
        let conn = ConnId(7);
        let mut link = MasterLink::new("host".into(), 1, None, 0);
        (link.conn, link.stage) = (Some(conn), Stage::Connected);
        link.killed(ConnId(8), 5);
        link.killed(conn, 10);
        assert_eq!(link.lost(30), Some(conn));
        assert_eq!(link.down_since, Some(10));
    }
}
