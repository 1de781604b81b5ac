//! The link to the master this node follows: from dialing over the handshake and the snapshot to
//! the stream.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use crate::{event::ConnId, resp::Decoder};

/// A handshake command whose reply is outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// To AUTH: a refusal ends the attempt.
    Auth,
    /// To one of the REPLCONFs, which old masters may refuse.
    Introduction,
}

/// A snapshot being received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    /// Its announcement has not come yet.
    Unannounced,
    /// So many bytes.
    Sized(usize),
    /// Up to these forty bytes.
    Marked([u8; 40]),
}

/// How far the link has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// To be dialed: at once, or by the next cron.
    Down {
        /// At once, because the link stood until now.
        redial: bool,
    },
    /// Dialed.
    Connecting,
    /// PING is sent.
    Pinging,
    /// AUTH and REPLCONF are sent; these replies are outstanding.
    Introducing(VecDeque<Answer>),
    /// PSYNC is sent.
    Asking,
    /// PSYNC was not understood, SYNC is sent, or a full resynchronisation is promised: the
    /// snapshot comes next.
    Transfer {
        /// The position of the snapshot, id and offset; `None` with SYNC.
        position: Option<(String, u64)>,
        /// What is known of its length.
        payload: Payload,
    },
    /// The stream flows.
    Connected,
}

/// The link to a master.
#[derive(Debug)]
pub struct MasterLink {
    /// The master's host as REPLICAOF named it.
    pub host: String,
    /// The master's port.
    pub port: u16,
    /// The connection, from dialing on.
    pub conn: Option<ConnId>,
    /// How far it has come.
    pub stage: Stage,
    /// The wall-clock second of the last data from the master (or of the begin of the attempt).
    pub last_io_secs: i64,
    /// Since which wall-clock second the link is down; `None` while it is up, and before the first
    /// one.
    pub down_since: Option<i64>,
    /// The database selected in the stream, if this node's position in it can be continued from.
    pub resume: Option<usize>,
    /// Bytes received and not processed yet: of the handshake, or of the stream and not applied.
    pub buffer: BytesMut,
    /// Splits the stream into commands; it has been fed all of `buffer` while the link is up.
    pub decoder: Decoder,
    /// Loading the snapshot in `buffer` has taken its simulated time.
    pub read: bool,
    /// The commands since MULTI, to be applied at EXEC.
    pub batch: Option<Vec<Vec<Bytes>>>,
}

impl MasterLink {
    /// A link to be dialed at once.
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

    /// CLIENT KILL was called for this connection, which is closed at the end of the step.
    pub fn killed(&mut self, conn: ConnId, now_secs: i64) {
        if self.conn == Some(conn) && self.is_up() {
            self.down_since = Some(now_secs);
        }
    }

    /// The connection is closed, or given up: bytes received and not applied are discarded.
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

    /// Whether the stream flows.
    pub fn is_up(&self) -> bool {
        self.stage == Stage::Connected
    }

    /// The next line of the handshake, without its end; `None` until it is whole.
    ///
    /// # Errors
    /// When the peer sends a line longer than any answer of the handshake.
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

    /// The state as ROLE names it.
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

/// A peer answers the handshake with an endless line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineTooLong;

#[cfg(test)]
mod tests {
    use super::*;

    /// A replica that slept after it had killed the link dated its data from its waking, and stood
    /// for election with old data.
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
