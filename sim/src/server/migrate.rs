//! The node while MIGRATE runs: it reads only from the target, and continues when the target has
//! answered or the deadline has passed.

use bytes::Bytes;

use super::{Server, finish::Finished};
use crate::{
    commands::{Ctx, Error, Origin, resume_transaction},
    effect::{Class, PropagateTo, Propagated},
    env::Env,
    event::{Action, Event},
    node::{clients::BlockedOn, migration::Progress},
    resp::Reply,
    time::{Monotonic, Wall},
};

impl Server {
    /// Processes an event of the running migration or of a kept connection; returns any other
    /// event.
    pub(super) fn take_for_migration(&mut self, env: &mut Env, event: Event) -> Option<Event> {
        if let Event::Closed { conn } | Event::Bytes { conn, .. } = event
            && self.node.targets.forget(conn)
        {
            // No answer is expected on a kept connection.
            env.outbox.push(Action::Close { conn });
            return None;
        }
        let Some(migration) = &mut self.node.migration else { return Some(event) };
        let target = migration.conn;
        match &event {
            Event::Dialed { conn, .. } if *conn == target => {
                let bytes = migration.connected(None, env.monotonic);
                env.outbox.push(Action::Send { conn: target, bytes });
            }
            Event::Bytes { conn, bytes } if *conn == target => match migration.hear(bytes, env.monotonic) {
                Progress::Waiting => {}
                Progress::Done => self.end_migration(env, None),
                Progress::Broken => self.fail_migration(env, false),
            },
            // A kept connection may have been dead all along.
            Event::Closed { conn } if *conn == target && migration.reused => self.redial_target(env),
            Event::Closed { conn } if *conn == target => self.fail_migration(env, false),
            _ => return Some(event),
        }
        None
    }

    /// Returns the time at which a kept connection has been idle for too long.
    pub(super) fn targets_due(&self, env: &Env) -> Option<Monotonic> {
        let at = self.node.targets.idle_at()?;
        Some(env.monotonic + Wall::from_secs(at).since(env.wall))
    }

    /// Closes the kept connections that no migration has used for too long.
    pub(super) fn close_idle_targets(&mut self, env: &mut Env) {
        let idle = self.node.targets.take_idle(env.wall.as_secs());
        env.outbox.extend(idle.into_iter().map(|conn| Action::Close { conn }));
    }

    fn redial_target(&mut self, env: &mut Env) {
        let conn = self.node.next_dialed();
        let Some(migration) = &mut self.node.migration else { return };
        migration.redial(conn, env.monotonic);
        let (host, port) = migration.target.clone();
        env.outbox.push(Action::Dial { conn, host, port, from: None });
    }

    /// Fails a migration whose deadline has passed.
    pub(super) fn end_late_migration(&mut self, env: &mut Env) {
        if self.node.migration.as_ref().is_some_and(|migration| env.monotonic >= migration.deadline) {
            self.fail_migration(env, true);
        }
    }

    fn fail_migration(&mut self, env: &mut Env, late: bool) {
        let failure = self.node.migration.as_ref().map(|migration| Error::of(migration.failure(late)));
        self.end_migration(env, failure);
    }

    /// Deletes the keys that the target has accepted, continues the transaction if there is one,
    /// and replies.
    fn end_migration(&mut self, env: &mut Env, failure: Option<Error>) {
        let Some(migration) = self.node.migration.take() else { return };
        let unused = match failure {
            Some(_) => Some(migration.conn),
            None => {
                let selected = migration.error.is_none().then_some(migration.request.db);
                let now_secs = env.wall.as_secs();
                self.node.targets.keep(migration.target, migration.conn, selected, now_secs)
            }
        };
        env.outbox.extend(unused.map(|conn| Action::Close { conn }));
        let client = migration.client;
        let mut effects = migration.held;
        let now_ms = env.wall.as_millis();
        let mut ctx = Ctx::new(&mut self.node, env, &mut effects, client, migration.db, Origin::Exec, now_ms);
        if !migration.copy && !migration.taken.is_empty() {
            for key in &migration.taken {
                ctx.remove(key);
                ctx.changed(key, Class::Generic, "del");
            }
            let del = [Bytes::from_static(b"DEL")].into_iter().chain(migration.taken).collect();
            ctx.effects.propagated.push(Propagated { db: migration.db, args: del, to: PropagateTo::All });
        }
        let answered = migration
            .error
            .map(|error| Error(format!("ERR Target instance replied with error: {error}").into()));
        let mut reply = failure.or(answered).map_or(Reply::OK, Reply::from);
        if let Reply::Error(text) = &reply {
            ctx.node.stats.note_error(text);
        }
        if let Some((mut replies, rest)) = migration.transaction {
            replies.push(reply);
            reply = resume_transaction(&mut ctx, client, replies, rest);
            // Another command of the transaction makes its client wait.
            if ctx.node.migration.is_some() || ctx.node.busy.is_some() {
                return;
            }
        }
        let session = self.node.clients.sessions.get_mut(client);
        let blocked =
            session.and_then(|session| session.blocked.take_if(|blocked| blocked.on == BlockedOn::Migration));
        let args = blocked.map(|blocked| blocked.args).unwrap_or_default();
        self.finish(env, client, Finished { args, effects: Some(effects), reply, waited: true });
    }
}
