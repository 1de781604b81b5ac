//! The connections of the bus. Each node dials every other node, and answers on the connections
//! that others dialed. The link of a migration to its target is numbered like them.

use bytes::Bytes;

use super::{
    Around, Cluster,
    message::{Kind, Taken, take},
    node::{Flags, Key, Link},
    state::Inbound,
};
use crate::{
    env::Env,
    event::{Action, ConnId},
};

impl Cluster {
    /// Records a connection that another node dialed.
    pub fn connected(&mut self, conn: ConnId, peer: &str, local: String, now: i64) {
        let (node, ip, buffer) = (None, ip_of(peer).to_owned(), Vec::new());
        self.inbound.insert(conn, Inbound { node, created: now, ip, local, buffer, unsent: 0 });
    }

    /// Handles an established connection that this node dialed: sends PING, or MEET to a new node.
    pub fn dialed(&mut self, env: &mut Env, around: &mut Around<'_>, conn: ConnId, local: String) {
        if self.job_dialed(around, conn) {
            return;
        }
        let Some(&key) = self.dialed.get(&conn) else { return self.kill(conn) };
        let node = self.known_mut(key);
        let Some(link) = &mut node.link else { return };
        (link.connected, link.local) = (true, local);
        // An unanswered earlier ping keeps its time.
        let (asked, meets) = (node.ping_sent, node.is(Flags::MEET));
        node.flags -= Flags::MEET;
        self.ping(env, around, key, if meets { Kind::Meet } else { Kind::Ping });
        if asked != 0 {
            self.known_mut(key).ping_sent = asked;
        }
    }

    /// Handles the end of a connection, or a failed dial.
    pub fn disconnected(&mut self, around: &Around<'_>, conn: ConnId) {
        if let Some(inbound) = self.inbound.remove(&conn) {
            if let Some(node) = inbound.node.and_then(|key| self.nodes.get_mut(&key)) {
                node.inbound = node.inbound.filter(|other| *other != conn);
            }
            return;
        }
        if self.target_lost(around, conn) {
            return;
        }
        let Some(key) = self.dialed.remove(&conn) else { return };
        let node = self.known_mut(key);
        let stood = node.link.take().is_some_and(|link| link.connected);
        // A loopback address refuses a connection within the call, before a ping can be sent. Count
        // that ping as sent.
        if !stood && node.ping_sent == 0 && is_loopback(&node.address.ip) {
            node.ping_sent = around.now;
        }
    }

    /// Appends received bytes to the connection's buffer, and handles every whole message in it.
    pub fn received(&mut self, env: &mut Env, around: &mut Around<'_>, conn: ConnId, bytes: &Bytes) {
        if self.job_heard(around, conn, bytes) {
            return;
        }
        match self.buffer(conn) {
            Some(buffer) => buffer.extend_from_slice(bytes),
            None => return,
        }
        // Look the buffer up for each message: a message may end its own connection.
        while let Some(buffer) = self.buffer(conn) {
            match take(buffer) {
                Ok(None) => return,
                Ok(Some(Taken::Senseless(kind))) => {
                    if let Some(kind) = kind {
                        *self.received.entry(kind).or_default() += 1;
                    }
                }
                Ok(Some(Taken::Light { kind, channel, message })) => {
                    self.process_light(around.now, conn, kind, channel, message);
                }
                Ok(Some(Taken::Message(message))) => self.process(env, around, conn, *message),
                Err(_) => {
                    self.log("Bad message length or signature received from the Cluster bus");
                    return self.lose(around, conn);
                }
            }
        }
    }

    /// Records the number of sent bytes that the network has not taken yet.
    pub fn unsent(&mut self, conn: ConnId, bytes: usize) {
        if self.job_unsent(conn, bytes) {
            return;
        }
        if let Some(inbound) = self.inbound.get_mut(&conn) {
            inbound.unsent = bytes;
        } else if let Some(link) =
            self.dialed.get(&conn).and_then(|key| self.nodes.get_mut(key)?.link.as_mut())
        {
            link.unsent = bytes;
        }
    }

    fn buffer(&mut self, conn: ConnId) -> Option<&mut Vec<u8>> {
        if let Some(inbound) = self.inbound.get_mut(&conn) {
            return Some(&mut inbound.buffer);
        }
        let key = self.dialed.get(&conn)?;
        Some(&mut self.nodes.get_mut(key)?.link.as_mut()?.buffer)
    }

    /// Closes a connection and forgets it.
    fn lose(&mut self, around: &Around<'_>, conn: ConnId) {
        self.disconnected(around, conn);
        self.kill(conn);
    }

    fn kill(&mut self, conn: ConnId) {
        self.out.actions.push(Action::Kill { conn, discard: false });
    }

    /// Refuses a connection: closes it.
    pub fn refuse(&mut self, conn: ConnId) {
        self.kill(conn);
    }

    /// Returns the number of the next connection that this node dials.
    pub(super) fn next_dialed(&mut self) -> ConnId {
        self.dials += 1;
        ConnId(ConnId::BUS_DIALED + self.dials)
    }

    pub(super) fn dial(&mut self, around: &Around<'_>, key: Key) {
        let conn = self.next_dialed();
        let from = around.config.network.bind_source_addr.parse().ok();
        let node = self.known_mut(key);
        let (host, port) = (node.address.ip.clone(), node.address.bus_port);
        let (buffer, local) = (Vec::new(), String::new());
        let link = Link { conn, created: around.now, connected: false, buffer, local, unsent: 0 };
        node.link = Some(link);
        self.dialed.insert(conn, key);
        self.out.actions.push(Action::Dial { conn, host, port, from });
    }

    /// Drops the connection to a node; the periodic work dials again.
    pub(super) fn drop_link(&mut self, key: Key) {
        if let Some(link) = self.known_mut(key).link.take() {
            self.dialed.remove(&link.conn);
            self.kill(link.conn);
        }
    }

    /// Drops the connection from a node.
    pub(super) fn drop_inbound(&mut self, key: Key) {
        if let Some(conn) = self.known_mut(key).inbound.take() {
            self.inbound.remove(&conn);
            self.kill(conn);
        }
    }

    /// Records which node a connection comes from, and closes the earlier connection from that
    /// node.
    pub(super) fn identify(&mut self, conn: ConnId, key: Key) {
        let Some(inbound) = self.inbound.get_mut(&conn).filter(|inbound| inbound.node.is_none()) else {
            return;
        };
        inbound.node = Some(key);
        let older = self.known_mut(key).inbound.replace(conn);
        if let Some(older) = older.filter(|older| *older != conn) {
            self.inbound.remove(&older);
            self.kill(older);
        }
    }

    /// Drops connections whose unsent bytes exceed `cluster-link-sendbuf-limit`.
    pub(super) fn limit_links(&mut self, around: &Around<'_>) {
        let limit = around.config.cluster.link_send_buffer_limit;
        if limit == 0 {
            return;
        }
        let over = |unsent: usize| unsent as u64 > limit;
        let inbound = self.inbound.iter().filter(|(_, inbound)| over(inbound.unsent)).map(|(conn, _)| *conn);
        let links = self.nodes.values().filter_map(|node| node.link.as_ref());
        let links = links.filter(|link| over(link.unsent)).map(|link| link.conn);
        for conn in inbound.chain(links).collect::<Vec<_>>() {
            self.limit_exceeded += 1;
            self.lose(around, conn);
        }
    }
}

/// Strips the port from an address, and the brackets of an IPv6 host.
pub(super) fn ip_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}

fn is_loopback(ip: &str) -> bool {
    ip.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}
