//! The connections to an instance: one for commands, and for masters and replicas one that
//! subscribes to their hello channel.

use std::collections::VecDeque;

use crate::{event::ConnId, resp::ReplyReader};

/// Number of outstanding commands at which no periodic command is sent.
pub(super) const PENDING_MAX: usize = 100;

/// The kind of a command whose reply is outstanding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Ping,
    Info,
    Hello,
    IsMasterDown,
    /// A command whose reply is ignored.
    Nothing,
}

/// A command whose reply is outstanding.
#[derive(Debug)]
pub(super) struct Request {
    /// The master for which it was sent: a link to a Sentinel serves all masters that both watch.
    pub(super) of: String,
    pub(super) asked: Asked,
}

/// One of the two connections of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Commands,
    Pubsub,
}

/// A connection of a link.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) conn: ConnId,
    pub(super) since: i64,
    pub(super) answers: ReplyReader,
    /// Number of replies that come before the one to SUBSCRIBE, and are ignored.
    pub(super) introductions: usize,
    /// The address of this end, once connected.
    pub(super) local: Option<String>,
}

impl Line {
    pub(super) fn new(conn: ConnId, now: i64) -> Line {
        Line { conn, since: now, answers: ReplyReader::default(), introductions: 0, local: None }
    }
}

/// The connections to an instance. Times are milliseconds of the wall clock, 0 for never.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) commands: Option<Line>,
    pub(super) pubsub: Option<Line>,
    /// True while a connection is missing; of a Sentinel, only `commands` can be.
    pub(super) disconnected: bool,
    /// The outstanding commands, in order.
    pub(super) asked: VecDeque<Request>,
    /// The time of the last message on the subscription.
    pub(super) pubsub_heard: i64,
    /// The time of the last dial.
    pub(super) dialed: i64,
    /// The time of the oldest PING without an accepted answer; 0 if there is none.
    pub(super) act_ping: i64,
    pub(super) last_ping: i64,
    /// The time of the last accepted answer to PING.
    pub(super) last_avail: i64,
    /// The time of the last answer to PING.
    pub(super) last_pong: i64,
}

impl Link {
    pub(super) fn new(now: i64) -> Link {
        Link {
            commands: None,
            pubsub: None,
            disconnected: true,
            asked: VecDeque::new(),
            pubsub_heard: 0,
            dialed: 0,
            act_ping: now,
            last_ping: 0,
            last_avail: now,
            last_pong: now,
        }
    }

    /// The connections that exist.
    pub(super) fn conns(&self) -> impl Iterator<Item = ConnId> {
        [&self.commands, &self.pubsub].into_iter().flatten().map(|line| line.conn)
    }

    /// Ignores the replies to the outstanding commands of a master.
    pub(super) fn forget(&mut self, master: &str) {
        let forgotten = self.asked.iter_mut().filter(|request| request.of == master);
        forgotten.for_each(|request| request.asked = Asked::Nothing);
    }

    /// The IP address of this end of the command connection.
    pub(super) fn local_ip(&self) -> Option<&str> {
        let local = self.commands.as_ref()?.local.as_deref()?;
        let ip = local.rsplit_once(':').map_or(local, |(ip, _)| ip);
        Some(ip.trim_start_matches('[').trim_end_matches(']'))
    }
}

/// Takes a connection out of a link. The one for commands loses its outstanding commands.
pub(super) fn lose(link: &mut Link, channel: Channel) -> Option<ConnId> {
    let line = match channel {
        Channel::Commands => {
            link.asked.clear();
            link.commands.take()
        }
        Channel::Pubsub => link.pubsub.take(),
    };
    link.disconnected = true;
    line.map(|line| line.conn)
}
