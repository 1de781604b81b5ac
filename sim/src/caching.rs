//! Telling connections that keys they may have kept a copy of have changed.

use bytes::Bytes;

use crate::{
    effect::{Cached, Changer, Effects, Signal, Touch},
    env::Env,
    event::ConnId,
    node::Node,
    resp::{Protocol, Reply},
    tracking::Owed,
};

/// Where connections with the older protocol, to which others have redirected, hear of changes.
const CHANNEL: &str = "__redis__:invalidate";
/// An array of nothing, on the wire.
const EMPTY: &[u8] = b"*0\r\n";

impl Node {
    /// Tells of what a batch has done since that was last told. A command that changes how its connection is told (CLIENT
    /// TRACKING in a transaction) calls this before: what was done until then goes by what was.
    pub fn tell_so_far(&mut self, effects: &mut Effects, by: ConnId) {
        let mut cached = std::mem::take(&mut effects.cached).into_iter().peekable();
        for (at, touch) in effects.touched.iter().enumerate().skip(effects.told) {
            while let Some((_, cached)) = cached.next_if(|(before, _)| *before <= at) {
                self.note_cached(cached, Some(by));
            }
            if touch.signal != Signal::Apart {
                self.invalidate(touch, Some(by));
            }
        }
        cached.for_each(|(_, cached)| self.note_cached(cached, Some(by)));
        effects.told = effects.touched.len();
    }

    /// A command has read a key, or emptied databases.
    pub fn note_cached(&mut self, cached: Cached, by: Option<ConnId>) {
        match (cached, by) {
            (Cached::Read(key), Some(conn)) => self.tracking.remember(conn, &key),
            (Cached::Read(_), None) => {}
            (Cached::Flushed, _) => self.invalidate_all(by),
        }
    }

    /// A key has changed, by the command of `by`. Who runs it hears of it behind its reply.
    pub fn invalidate(&mut self, touch: &Touch, by: Option<ConnId>) {
        if self.tracking.is_empty() {
            return;
        }
        match touch.changer {
            Changer::Client => self.tracking.note(&touch.key, by),
            // Nobody's command, even where one has found it out.
            Changer::Server => self.tracking.note(&touch.key, None),
            Changer::Pusher => {}
        }
        self.tell_readers(&touch.key, by);
    }

    fn tell_readers(&mut self, key: &Bytes, by: Option<ConnId>) {
        for conn in self.tracking.forget(key) {
            let tracking = self.sessions.get(conn).and_then(|session| session.tracking.as_ref());
            let Some(tracking) = tracking.filter(|tracking| tracking.prefixes.is_none()) else { continue };
            if Some(conn) != by {
                self.tell(conn, Some(std::slice::from_ref(key)));
            } else if !tracking.no_loop {
                let redirect = tracking.redirect;
                self.owed.push(Owed { key: Some(key.clone()), redirect });
            }
        }
    }

    /// Whole databases have changed: whoever tracks is told that nothing it has is worth anything.
    pub fn invalidate_all(&mut self, by: Option<ConnId>) {
        let tracks = self
            .sessions
            .iter()
            .filter_map(|session| Some((session.id, session.tracking.as_ref()?.redirect)));
        for (conn, redirect) in tracks.collect::<Vec<_>>() {
            if Some(conn) == by {
                self.owed.push(Owed { key: None, redirect });
            } else {
                self.tell(conn, None);
            }
        }
        self.tracking.clear();
    }

    /// Tells a connection of what its own command has changed, now that it has its reply.
    pub fn tell_owed(&mut self, conn: ConnId) {
        for Owed { key, redirect } in std::mem::take(&mut self.owed) {
            let Some(session) = self.sessions.get(conn) else { return };
            let redirect = session.tracking.as_ref().map_or(redirect, |tracking| tracking.redirect);
            self.tell_through(conn, redirect, key.as_ref().map(std::slice::from_ref));
        }
    }

    /// Tells those who listen to prefixes of all that this step has changed.
    pub fn tell_audiences(&mut self) {
        if self.tracking.prefixes_len() == 0 {
            return;
        }
        let sessions = &self.sessions;
        let spares = |conn: ConnId| {
            let tracking = sessions.get(conn).and_then(|session| session.tracking.as_ref());
            tracking.is_some_and(|tracking| tracking.no_loop)
        };
        for (conn, keys) in self.tracking.take_notices(spares) {
            self.tell(conn, Some(&keys));
        }
    }

    /// Forgets keys, telling their readers, until there are no more of them than `tracking-table-max-keys` allows.
    pub fn limit_tracking(&mut self, env: &mut Env) {
        let limit = self.config.tracking_table_max_keys;
        while limit > 0
            && self.tracking.keys_len() > limit
            && let Some(key) = self.tracking.any(|len| env.random_below(len))
        {
            self.tell_readers(&key, None);
        }
    }

    /// Tells a connection, or whom it has redirected to, that keys have changed; `None` for all of them.
    fn tell(&mut self, conn: ConnId, keys: Option<&[Bytes]>) {
        let tracking = self.sessions.get(conn).and_then(|session| session.tracking.as_ref());
        if let Some(redirect) = tracking.map(|tracking| tracking.redirect) {
            self.tell_through(conn, redirect, keys);
        }
    }

    fn tell_through(&mut self, conn: ConnId, redirect: Option<ConnId>, keys: Option<&[Bytes]>) {
        let sessions = &mut self.sessions;
        let Some(own) = sessions.get(conn).map(|session| session.protocol) else { return };
        let target = redirect.unwrap_or(conn);
        let Some(session) = sessions.get(target) else {
            if let Some(tracking) = sessions.get_mut(conn).and_then(|session| session.tracking.as_mut()) {
                tracking.broken = true;
            }
            // There is nobody to tell but the one who does not listen here.
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
        // In the place of all keys stands null, as the protocol of the one who tracks writes it, whoever is told.
        let mut bytes = Vec::new();
        push.encode(session.protocol, &mut bytes);
        bytes.truncate(bytes.len() - EMPTY.len());
        Reply::Null.encode(own, &mut bytes);
        if !session.closing {
            self.send_raw(target, &bytes);
        }
    }
}
