//! The cron of a node, which runs `hz` times a second: active expiry, idle clients, background
//! saves and rewrites.
//!
//! A real server wakes for every tick. Here ticks without work are skipped, and the alarm is set
//! for the first tick with work, so that an idle node sleeps. Work still happens on the same grid
//! of ticks.

use std::time::Duration;

use super::Server;
use crate::{
    blob::Blob,
    effect::{Effects, Framing},
    env::Env,
    keyspace::{Entry, ExpiryRule},
    node::clients::{Role, Session},
    time::Monotonic,
};

/// The maximum number of keys that one tick examines. The rest waits for the next tick, so that a
/// mass expiry does not block the node.
const EXPIRED_PER_TICK_MAX: usize = 10_000;

/// Milliseconds after which a key that a slot migration hides is examined again.
const HIDDEN_MS: i64 = 100;

/// The node's position on the grid of ticks.
#[derive(Debug)]
pub(super) struct Cron {
    /// The latest tick that has been processed.
    last: Monotonic,
}

impl Cron {
    /// Returns a grid that begins at `start`.
    pub(super) fn new(start: Monotonic) -> Cron {
        Cron { last: start }
    }

    /// Returns the first tick after the last one that is not before `at`.
    fn tick_from(&self, at: Monotonic, period: Duration) -> Monotonic {
        let periods = at.since(self.last).as_nanos().div_ceil(period.as_nanos()).max(1);
        let nanos = u64::try_from(periods * period.as_nanos()).unwrap_or(u64::MAX);
        self.last + Duration::from_nanos(nanos)
    }
}

impl Server {
    fn period(&self) -> Duration {
        Duration::from_millis(1000 / u64::from(self.node.config.server.hz.clamp(1, 500)))
    }

    /// Returns the first tick after `at`.
    pub(super) fn tick_after(&self, at: Monotonic) -> Monotonic {
        self.cron.tick_from(at + Duration::from_nanos(1), self.period())
    }

    /// Does the work of a passed tick, if any is due.
    pub(super) fn run_cron(&mut self, env: &mut Env) {
        if self.work_due(env).is_none_or(|due| env.monotonic < self.cron.tick_from(due, self.period())) {
            return;
        }
        let period = self.period();
        let passed = env.monotonic.since(self.cron.last).as_nanos() / period.as_nanos();
        let nanos = u64::try_from(passed * period.as_nanos()).unwrap_or(u64::MAX);
        self.cron.last += Duration::from_nanos(nanos);
        let began = env.begin();
        self.end_background(env);
        self.expire_actively(env);
        self.node.note_spike(env, "expire-cycle", began);
        self.close_idle(env);
    }

    /// Returns the time for an alarm at the next tick with work.
    ///
    /// The future speed of the wall clock is unknown. So the alarm for a distant expiry is set to
    /// half the time, to check again: it rings in time on any clock that runs at up to twice the
    /// speed of the monotonic one.
    pub(super) fn cron_due(&self, env: &Env) -> Option<Monotonic> {
        let due = self.work_due(env)?;
        let ahead = due.since(env.monotonic);
        let look = if ahead > 2 * self.period() { env.monotonic + ahead / 2 } else { due };
        Some(self.cron.tick_from(look, self.period()))
    }

    /// Returns the time at which the cron next has work.
    fn work_due(&self, env: &Env) -> Option<Monotonic> {
        if self.node.debug.cron_paused {
            return None;
        }
        let expiry = self.node.next_expiry_ms().map(|when_ms| {
            // A key has expired once the millisecond of its expiry is over.
            let wall_ns = i128::from(when_ms).saturating_add(1).saturating_mul(1_000_000);
            let ahead_ns = wall_ns - i128::from(env.wall.as_nanos());
            let at = i128::from(env.monotonic.as_nanos()) + ahead_ns;
            Monotonic::from_nanos(at.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
        });
        let first = self.node.clients.idle_queue.first();
        let idle = self.idle_after().zip(first).map(|(after, (since, _))| *since + after);
        let written = self.node.persistence.background.as_ref().map(|background| background.until);
        [expiry, idle, written].into_iter().flatten().min()
    }

    /// Deletes expired keys and fields, the longest expired first. A real server finds them by
    /// sampling, and leaves some for later ticks if they are few among many. Here only the limit
    /// per tick delays a key.
    fn expire_actively(&mut self, env: &mut Env) {
        let rule = self.node.config.expiry_rule(env.wall.as_millis());
        for _ in 0..EXPIRED_PER_TICK_MAX {
            let expired = |when_ms: i64| rule.is_past(when_ms);
            if !self.node.next_expiry_ms().is_some_and(expired) {
                return;
            }
            if self.node.is_replica() {
                self.expire_own(env, rule);
                continue;
            }
            for db in 0..self.node.dbs.len() {
                if self.node.dbs[db].next_field_ms().is_some_and(expired) {
                    self.expire_fields(env, db, rule);
                }
                if !self.node.dbs[db].next_expiry_ms().is_some_and(expired) {
                    continue;
                }
                let Some(key) = self.node.dbs[db].next_expired().map(Blob::to_bytes) else { continue };
                // The source of a migration decides about the keys in its slots.
                if self.node.hides(&key) {
                    self.node.dbs[db].postpone_expired(env.wall.as_millis().saturating_add(HIDDEN_MS));
                    continue;
                }
                let mut effects = Effects::default();
                self.node.expire(env, &mut effects, db, key);
                self.settle(env, effects);
            }
        }
    }

    /// Deletes the expired fields of the hash that is due next, if any has expired.
    fn expire_fields(&mut self, env: &mut Env, db: usize, rule: ExpiryRule) {
        let Some(key) = self.node.dbs[db].next_timed() else { return };
        if self.node.hides(&key) {
            return self.node.dbs[db].postpone_timed(env.wall.as_millis().saturating_add(HIDDEN_MS));
        }
        let mut effects = Effects::default();
        self.node.expire_fields(&mut effects, db, &key, rule);
        if !self.node.config.generation.is_valkey() {
            effects.framing = Framing::Never;
        }
        self.settle(env, effects);
    }

    /// Deletes the next key that this replica expires by itself, if it is still expired.
    fn expire_own(&mut self, env: &mut Env, rule: ExpiryRule) {
        let Some((db, key)) = self.node.replication.own_expiries.take_due(rule) else { return };
        match self.node.dbs[db].get(&key).and_then(Entry::expires_ms) {
            Some(when_ms) if rule.is_past(when_ms) => {
                let mut effects = Effects::default();
                self.node.expire(env, &mut effects, db, key);
                self.settle(env, effects);
            }
            Some(when_ms) => self.node.replication.own_expiries.note(db, &key, when_ms),
            None => {}
        }
    }

    /// Returns the time after which a silent client is disconnected (`timeout`).
    fn idle_after(&self) -> Option<Duration> {
        let seconds = self.node.config.network.timeout;
        // The server counts whole seconds, and disconnects only after more of them than the limit.
        (seconds > 0).then(|| Duration::from_secs(seconds.saturating_add(1)))
    }

    fn close_idle(&mut self, env: &mut Env) {
        let Some(after) = self.idle_after() else { return };
        while let Some(&(since, conn)) = self.node.clients.idle_queue.first()
            && since + after <= env.monotonic
        {
            let Some(session) = self.node.clients.sessions.get_mut(conn) else { return };
            // A client that may not be disconnected for idleness subscribes or is blocked. It will
            // be active when that ends.
            let active = if may_idle_out(session) { session.last_active } else { env.monotonic };
            let is_idle = active + after <= env.monotonic;
            let looked = if is_idle { env.monotonic } else { active };
            self.node.clients.note_active(conn, looked);
            if is_idle {
                self.node.clients.kill(conn);
            }
        }
    }
}

/// Returns true if `timeout` applies. Subscribers and blocked clients may stay silent; replicas and
/// masters have other timeouts.
fn may_idle_out(session: &Session) -> bool {
    session.role == Role::Client
        && session.blocked.is_none()
        && !session.is_subscriber()
        && !session.is_leaving()
}
