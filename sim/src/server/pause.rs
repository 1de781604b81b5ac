//! CLIENT PAUSE: commands wait, and run in order of arrival when the pause ends.

use bytes::Bytes;

use super::Server;
use crate::{
    env::Env,
    event::ConnId,
    node::clients::{Blocked, BlockedOn, Session},
    time::Monotonic,
};

impl Server {
    /// Blocks a connection with its command until the pause ends.
    pub(super) fn hold(&mut self, conn: ConnId, args: &[Bytes]) {
        let ticket = self.node.clients.tickets;
        self.node.clients.tickets += 1;
        if let Some(session) = self.node.clients.sessions.get_mut(conn) {
            let args = args.to_vec();
            let on = BlockedOn::Pause;
            // The command goes through the gate again, so ASKING must still apply to it.
            session.asks |= session.asking;
            session.blocked = Some(Blocked { args, keys: Vec::new(), deadline: None, ticket, on });
            self.held += 1;
        }
    }

    /// Ends a pause that has timed out or was called off, and lets the held commands run.
    pub(super) fn end_pause(&mut self, env: &mut Env) {
        if self.node.paused.is_some_and(|(until, _)| env.monotonic >= until) {
            self.node.paused = None;
        }
        if self.node.is_paused() {
            return;
        }
        let link = self.node.replication.master.as_ref();
        if link.is_some_and(|link| link.is_up() && link.decoder.unread() > 0) {
            self.resume_master_stream(env);
        }
        if self.held == 0 {
            return;
        }
        self.held = 0;
        let held = |session: &Session| {
            let blocked = session.blocked.as_ref().filter(|blocked| blocked.on == BlockedOn::Pause)?;
            Some((blocked.ticket, session.id))
        };
        let mut waiting: Vec<(u64, ConnId)> = self.node.clients.sessions.iter().filter_map(held).collect();
        waiting.sort_unstable();
        self.node.clients.woken.extend(waiting.into_iter().map(|(_, conn)| conn));
    }

    /// Returns the end of CLIENT PAUSE, if one is active.
    pub(super) fn pause_due(&self) -> Option<Monotonic> {
        // The work of the cluster ends the pause of a manual failover.
        self.node.paused.map(|(until, _)| until)
    }
}
