//! The connections to an instance: one for commands, and for masters and replicas one that
//! subscribes to their hello channel.

use std::collections::VecDeque;

use crate::{event::ConnId, resp::Answers};

/// Commands without a reply, beyond which no more are sent.
pub(super) const PENDING_MAX: usize = 100;

/// What a command whose reply is outstanding has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Ping,
    Info,
    Hello,
    IsMasterDown,
    /// One whose reply does not matter.
    Nothing,
}

/// A command whose reply is outstanding.
#[derive(Debug)]
pub(super) struct Request {
    /// The master for whose sake it was sent: a link to a Sentinel serves all masters that both
    /// watch.
    pub(super) of: String,
    pub(super) asked: Asked,
}

/// Which of the two connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Commands,
    Pubsub,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) conn: ConnId,
    pub(super) since: i64,
    pub(super) answers: Answers,
    /// Replies that come before that to SUBSCRIBE, and say nothing.
    pub(super) introductions: usize,
    /// This end's address, once it is connected.
    pub(super) local: Option<String>,
}

impl Line {
    pub(super) fn new(conn: ConnId, now: i64) -> Line {
        Line { conn, since: now, answers: Answers::default(), introductions: 0, local: None }
    }
}

/// The connections to an instance. Times are milliseconds of the wall clock, 0 for never.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) commands: Option<Line>,
    pub(super) pubsub: Option<Line>,
    /// One of the two is missing.
    pub(super) disconnected: bool,
    /// The commands without a reply, in order.
    pub(super) asked: VecDeque<Request>,
    /// When something last came by the subscription.
    pub(super) pubsub_heard: i64,
    /// When it was last dialed.
    pub(super) dialed: i64,
    /// The oldest PING without an accepted answer; 0 if there is none.
    pub(super) act_ping: i64,
    pub(super) last_ping: i64,
    /// The last accepted answer to PING.
    pub(super) last_avail: i64,
    /// The last answer to PING.
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

    /// The connections that are there.
    pub(super) fn conns(&self) -> impl Iterator<Item = ConnId> {
        [&self.commands, &self.pubsub].into_iter().flatten().map(|line| line.conn)
    }

    /// The replies to what was sent for the sake of a master, which is of no interest any more,
    /// will be ignored.
    pub(super) fn forget(&mut self, master: &str) {
        let forgotten = self.asked.iter_mut().filter(|request| request.of == master);
        forgotten.for_each(|request| request.asked = Asked::Nothing);
    }

    /// The IP address that this end has for the instance.
    pub(super) fn local_ip(&self) -> Option<&str> {
        let local = self.commands.as_ref()?.local.as_deref()?;
        let ip = local.rsplit_once(':').map_or(local, |(ip, _)| ip);
        Some(ip.trim_start_matches('[').trim_end_matches(']'))
    }
}

/// Takes a connection out of a link.
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
