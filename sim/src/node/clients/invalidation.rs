//! Invalidations: messages to connections whose copies of keys may be out of date.

use bytes::Bytes;

use crate::{
    effect::{Cached, Changer, Touch},
    env::Env,
    event::ConnId,
    node::Node,
    resp::{Protocol, Reply},
};

/// The channel on which RESP2 connections receive redirected invalidations.
const CHANNEL: &str = "__redis__:invalidate";
/// An empty array on the wire.
const EMPTY: &[u8] = b"*0\r\n";

impl Node {
    /// Records that a command has read a key, emptied databases, or changed its connection's
    /// tracking. Returns true if the client `by` itself must get the invalidation of all keys,
    /// which is sent after its reply.
    pub fn note_cached(&mut self, cached: Cached, by: Option<ConnId>) -> bool {
        match (cached, by) {
            (Cached::Read(key), Some(conn)) => self.clients.tracking.remember(conn, &key),
            (Cached::Flushed, _) => return self.invalidate_all(by),
            // The connection may have been closed since.
            (Cached::TrackingChanged(way), Some(conn)) if self.clients.sessions.contains(conn) => {
                self.clients.tracking.turn(conn, way);
            }
            (Cached::Read(_) | Cached::TrackingChanged(_), _) => {}
        }
        false
    }

    /// Sends the invalidation of a key that the command of `by` has changed. Returns true if that
    /// client itself must get it, which is sent after its reply.
    pub fn invalidate(&mut self, touch: &Touch, by: Option<ConnId>) -> bool {
        if self.clients.tracking.is_empty() {
            return false;
        }
        match touch.changer {
            Changer::Client => self.clients.tracking.note(&touch.key, by),
            // No client has made this change, even if a command has detected it.
            Changer::Server => self.clients.tracking.note(&touch.key, None),
            Changer::Pusher => {}
        }
        self.invalidate_for_readers(&touch.key, by)
    }

    fn invalidate_for_readers(&mut self, key: &Bytes, by: Option<ConnId>) -> bool {
        let mut own = false;
        for conn in self.clients.tracking.forget(key) {
            let way = self.clients.tracking.way(conn).filter(|way| way.prefixes.is_none());
            let Some(no_loop) = way.map(|way| way.no_loop) else { continue };
            if Some(conn) != by {
                self.send_invalidation(conn, Some(std::slice::from_ref(key)));
            } else {
                own |= !no_loop;
            }
        }
        own
    }

    /// Sends all tracking clients the invalidation of all keys, after whole databases have changed.
    /// Returns true if the client `by` itself must get it, which is sent after its reply.
    pub fn invalidate_all(&mut self, by: Option<ConnId>) -> bool {
        let mut own = false;
        for conn in self.clients.tracking.told().collect::<Vec<_>>() {
            if Some(conn) == by {
                own = true;
            } else {
                self.send_invalidation(conn, None);
            }
        }
        self.clients.tracking.clear();
        own
    }

    /// Sends broadcasting clients (`BCAST`) the keys with their prefixes that changed in this step.
    pub fn send_broadcasts(&mut self) {
        if self.clients.tracking.prefixes_len() == 0 {
            return;
        }
        for (conn, keys) in self.clients.tracking.take_notices() {
            self.send_invalidation(conn, Some(&keys));
        }
    }

    /// Forgets random keys and sends their readers invalidations, until no more than
    /// `tracking-table-max-keys` are left.
    pub fn limit_tracking(&mut self, env: &mut Env) {
        let limit = self.config.clients.tracking_table_max_keys;
        while limit > 0
            && self.clients.tracking.keys_len() > limit
            && let Some(key) = self.clients.tracking.any(|len| env.random_below(len))
        {
            self.invalidate_for_readers(&key, None);
        }
    }

    /// Sends a connection, or the connection it redirects to, an invalidation of `keys`; `None`
    /// means all keys.
    pub fn send_invalidation(&mut self, conn: ConnId, keys: Option<&[Bytes]>) {
        let sessions = &mut self.clients.sessions;
        let Some((own, redirect)) = sessions.get(conn).map(|session| (session.protocol, session.redirect))
        else {
            return;
        };
        let target = redirect.unwrap_or(conn);
        let Some(session) = sessions.get(target) else {
            if let Some(session) = sessions.get_mut(conn) {
                session.redirect_broken = true;
            }
            // The REDIRECT target is gone: the client itself gets `tracking-redir-broken`.
            if own == Protocol::Resp3 {
                let id = i64::try_from(target.0).unwrap_or(i64::MAX);
                let push = vec![Reply::bulk("tracking-redir-broken"), Reply::Integer(id)];
                self.send(conn, &Reply::Push(push));
            }
            return;
        };
        let head = match session.protocol {
            Protocol::Resp3 => vec![Reply::bulk("invalidate")],
            Protocol::Resp2 if target != conn && session.is_subscriber() => {
                vec![Reply::bulk("message"), Reply::bulk(CHANNEL)]
            }
            Protocol::Resp2 => return,
        };
        let body = keys.unwrap_or_default().iter().map(Reply::from).collect();
        let push = Reply::Push(head.into_iter().chain([Reply::Array(body)]).collect());
        if keys.is_some() {
            return self.send(target, &push);
        }
        // Null means all keys. It is encoded in the protocol of the tracking connection, even if a
        // connection with another protocol receives it.
        let mut bytes = Vec::new();
        push.encode(session.protocol, &mut bytes);
        bytes.truncate(bytes.len() - EMPTY.len());
        Reply::Null.encode(own, &mut bytes);
        if !session.closing {
            self.clients.send_raw(target, &bytes);
        }
    }
}
