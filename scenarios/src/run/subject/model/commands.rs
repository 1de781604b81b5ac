//! The commands that models send to nodes.

use std::time::Duration;

use lockstorm_client::wire;
use redis::{Cmd, Value};

use crate::{
    file::scenario::traits::{Fencing, Grant, Key, LeaseOn, Pace, Release, Renewal, Replicas, Traits},
    judge::{history::Mode, object::HOLDER_FIELD},
    units::millis,
};

/// KEYS: the lock. ARGV: the owner's token. Deletes the key if it holds the token. Returns the
/// number of deleted keys.
const RELEASE: &str =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

/// KEYS: the lock. ARGV: the token, the channel. Like `RELEASE`, and notifies the waiters.
const RELEASE_AND_TELL: &str = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end \
    redis.call('publish', ARGV[2], '0') return redis.call('del', KEYS[1])";

/// KEYS: the lock, the memory of this release. ARGV: the token. Like `RELEASE`, and remembers the
/// release for 20 seconds.
const RELEASE_AND_REMEMBER: &str = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end \
    redis.call('set', KEYS[2], 1, 'px', 20000) return redis.call('del', KEYS[1])";

/// KEYS: the lock. ARGV: the token, the lease in ms. Sets the TTL if the key holds the token.
/// Returns 1 or 0.
const RENEW: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

/// KEYS: the lock, the counter. ARGV: the token, the lease in ms. Sets the key if it is free.
/// Returns the fencing token, or 0.
const ACQUIRE_FENCED: &str = "if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) \
    then return redis.call('incr', KEYS[2]) end return 0";

/// KEYS: the lock, the key that delays the next grant. ARGV: the token, the lease in ms, the delay
/// in ms. Sets both keys if both are free. Returns 1 or 0.
const ACQUIRE_DELAYED: &str = "if redis.call('exists', KEYS[1], KEYS[2]) > 0 then return 0 end \
    redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) redis.call('set', KEYS[2], ARGV[1], 'px', ARGV[2] + ARGV[3]) return 1";

/// KEYS: as for `ACQUIRE_DELAYED`. ARGV: the token. Deletes both if the lock holds the token.
/// Returns the number of deleted keys.
const RELEASE_DELAYED: &str =
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1], KEYS[2])";

/// KEYS: as for `ACQUIRE_DELAYED`. ARGV: the token, the lease in ms, the delay in ms. Sets both
/// TTLs if the lock holds the token. Returns 1 or 0.
const RENEW_DELAYED: &str = "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end \
    redis.call('pexpire', KEYS[2], ARGV[2] + ARGV[3]) return redis.call('pexpire', KEYS[1], ARGV[2])";

/// KEYS: the lock. ARGV: the token, the lease in ms, the time in seconds for which the script works
/// first. Sets the key if it is free. Returns 1 or 0.
const ACQUIRE_AFTER_WORK: &str = "redis.call('debug', 'sleep', ARGV[3]) \
    if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then return 1 end return 0";

/// KEYS: the lock. ARGV: the token, the lease in ms, the timeout in ms. Sets the key if it is free.
/// Deletes it unless WAIT counts a replica. Returns 1 or 0.
const ACQUIRE_AND_WAIT: &str = "if not redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then return 0 end \
    if redis.call('wait', 1, ARGV[3]) >= 1 then return 1 end redis.call('del', KEYS[1]) return 0";

/// KEYS: the lock. ARGV: the token, the field. Deletes the key if the field holds the token.
/// Returns the number of deleted keys.
const RELEASE_FIELD: &str =
    "if redis.call('hget', KEYS[1], ARGV[2]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])";

/// KEYS: the lock. ARGV: the token, the lease in ms, the field. Sets the field's TTL if it holds
/// the token. Returns 1 or 0.
const RENEW_FIELD: &str = "if redis.call('hget', KEYS[1], ARGV[3]) ~= ARGV[1] then return 0 end \
    return redis.call('hpexpire', KEYS[1], ARGV[2], 'fields', 1, ARGV[3])[1]";

/// KEYS: the lock, the queue. ARGV: the token, the lease in ms, 1 to join the queue, 1 to ignore
/// the owner's place in the queue, the longest allowed queue. Sets the key if it is free and it is
/// the owner's turn; otherwise the owner may join the queue. Returns 1 or 0.
const ACQUIRE_QUEUED: &str = "local head = redis.call('lindex', KEYS[2], 0) \
    local turn = not head or head == ARGV[1] or ARGV[4] == '1' \
    if redis.call('exists', KEYS[1]) == 0 and turn then \
    redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) redis.call('lrem', KEYS[2], 0, ARGV[1]) return 1 end \
    if ARGV[3] == '1' and not redis.call('lpos', KEYS[2], ARGV[1]) then redis.call('rpush', KEYS[2], ARGV[1]) end \
    if redis.call('llen', KEYS[2]) > tonumber(ARGV[5]) then redis.call('lpop', KEYS[2]) end return 0";

/// KEYS: the lock. ARGV: the owner, the lease in ms. Adds a level if the key is free or the
/// owner's. Returns 1 or 0.
const ACQUIRE_COUNTED: &str = "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then \
    redis.call('hincrby', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], ARGV[2]) return 1 end return 0";

/// Like `ACQUIRE_COUNTED`, with the lease on the owner's field.
const ACQUIRE_COUNTED_FIELD: &str = "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then \
    redis.call('hincrby', KEYS[1], ARGV[1], 1) redis.call('hpexpire', KEYS[1], ARGV[2], 'fields', 1, ARGV[1]) return 1 end return 0";

/// KEYS: the lock. ARGV: the owner. Removes one level, and the key with the last one. Returns the
/// remaining levels, or -1 if there was none.
const RELEASE_COUNTED: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return -1 end \
    local left = redis.call('hincrby', KEYS[1], ARGV[1], -1) if left <= 0 then redis.call('del', KEYS[1]) end return left";

/// KEYS: the lock. ARGV: the owner, the lease in ms. Sets the TTL if the owner holds the lock.
/// Returns 1 or 0.
const RENEW_COUNTED: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

/// Like `RENEW_COUNTED`, with the lease on the owner's field.
const RENEW_COUNTED_FIELD: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end \
    return redis.call('hpexpire', KEYS[1], ARGV[2], 'fields', 1, ARGV[1])[1]";

/// KEYS: the lock, the prefix of the owner's lease keys. ARGV: the owner, the lease in ms, the
/// owner as a writer, 1 to let a reader in beside a writer (a mistake). Adds a level with a lease
/// of its own beside readers, under the owner's own write hold, or if the lock is free. Returns 1
/// or 0.
const ACQUIRE_READ: &str = "local mode = redis.call('hget', KEYS[1], 'mode') \
    if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[3]) == 0 and ARGV[4] ~= '1' then return 0 end \
    if not mode then redis.call('hset', KEYS[1], 'mode', 'read') end \
    redis.call('set', KEYS[2] .. ':' .. redis.call('hincrby', KEYS[1], ARGV[1], 1), 1, 'px', ARGV[2]) \
    if redis.call('pttl', KEYS[1]) < tonumber(ARGV[2]) then redis.call('pexpire', KEYS[1], ARGV[2]) end return 1";

/// KEYS: the lock. ARGV: the owner as a writer, the lease in ms, 1 to let a writer in beside
/// readers (a mistake), 1 to add leases up (a mistake). Adds a level if the lock is free or the
/// owner writes. Returns 1 or 0.
const ACQUIRE_WRITE: &str = "local mode = redis.call('hget', KEYS[1], 'mode') \
    if mode and redis.call('hexists', KEYS[1], ARGV[1]) == 0 and not (mode == 'read' and ARGV[3] == '1') then return 0 end \
    redis.call('hset', KEYS[1], 'mode', 'write') redis.call('hincrby', KEYS[1], ARGV[1], 1) \
    local left, lease = redis.call('pttl', KEYS[1]), tonumber(ARGV[2]) \
    if ARGV[4] == '1' and left > 0 then lease = left + lease end \
    if left < lease then redis.call('pexpire', KEYS[1], lease) end return 1";

/// Defines a function that returns the remaining time of the longest reader's lease, in ms.
const LONGEST_READ: &str = "local function longest(tag) local longest, fields = 0, redis.call('hgetall', KEYS[1]) \
    for i = 1, #fields, 2 do for level = 1, tonumber(fields[i + 1]) or 0 do \
    longest = math.max(longest, redis.call('pttl', tag .. ':' .. fields[i] .. ':rwlock_timeout:' .. level)) end end \
    return longest end ";

/// KEYS: the lock, the prefix of the owner's lease keys, the prefix of all lease keys. ARGV: the
/// owner, 1 to replace a writer's lease by that of the readers (a mistake), the channel if the
/// release is published. Removes one level. Frees the lock when no reader's lease lasts. Returns 1
/// or 0.
const RELEASE_READ: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end \
    local left = redis.call('hincrby', KEYS[1], ARGV[1], -1) redis.call('del', KEYS[2] .. ':' .. left + 1) \
    if left == 0 then redis.call('hdel', KEYS[1], ARGV[1]) end \
    local writes, lasts = redis.call('hget', KEYS[1], 'mode') == 'write', longest(KEYS[3]) \
    if lasts > 0 and (not writes or ARGV[2] == '1') then redis.call('pexpire', KEYS[1], lasts) end \
    if lasts <= 0 and not writes then redis.call('del', KEYS[1]) if ARGV[3] then redis.call('publish', ARGV[3], 0) end end return 1";

/// KEYS: the lock, the prefix of all lease keys. ARGV: the owner as a writer, 1 to publish a
/// downgrade, the channel if the release is published. Removes one level. A read hold of the owner
/// keeps the lock for readers. Returns 1 or 0.
const RELEASE_WRITE: &str = "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end \
    if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then return 1 end \
    redis.call('hdel', KEYS[1], ARGV[1]) local lasts = longest(KEYS[2]) \
    if lasts > 0 then redis.call('hset', KEYS[1], 'mode', 'read') redis.call('pexpire', KEYS[1], lasts) \
    else redis.call('del', KEYS[1]) end \
    if ARGV[3] and (lasts <= 0 or ARGV[2] == '1') then redis.call('publish', ARGV[3], 1) end return 1";

/// KEYS: the lock, the prefix of all lease keys. ARGV: the owner, the lease in ms, 1 to extend the
/// leases of all readers (a mistake). Extends each unexpired lease of the owner, and the lock.
/// Returns 1 or 0.
const RENEW_READ: &str = "local held, fields = 0, redis.call('hgetall', KEYS[1]) \
    for i = 1, #fields, 2 do if fields[i] == ARGV[1] or ARGV[3] == '1' then for level = 1, tonumber(fields[i + 1]) or 0 do \
    local extended = redis.call('pexpire', KEYS[2] .. ':' .. fields[i] .. ':rwlock_timeout:' .. level, ARGV[2]) \
    if fields[i] == ARGV[1] then held = math.max(held, extended) end end end end \
    if held == 1 then redis.call('pexpire', KEYS[1], ARGV[2]) end return held";

/// The common beginning of the scripts about values. KEYS: the hash. ARGV: the client's time in ms
/// or an empty string, the owner, the lease in ms, a number, the fields of the values. The client's
/// clock, if given, decides which values are held.
const VALUES: &str = "local group, owner, lease, number = KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]) \
    local function deadline(value, owner) return value .. ':' .. owner .. ':expire_time' end \
    local function levels(value, owner) return value .. ':' .. owner .. ':lock_count' end \
    local function holder(value) local owner = redis.call('hget', group, value) \
    if owner and tonumber(redis.call('hget', group, deadline(value, owner)) or 0) > now then return owner end end ";

/// ARGV: .., the number of values that must be free. Takes all values if those are free. Returns 1
/// or 0.
const ACQUIRE_VALUES: &str = "for at = 5, 4 + number do if holder(ARGV[at]) then return 0 end end \
    for at = 5, #ARGV do local value = ARGV[at] redis.call('hset', group, value, owner, \
    deadline(value, owner), now + lease, levels(value, owner), 1) end \
    if redis.call('pttl', group) < lease then redis.call('pexpire', group, lease) end return 1";

/// ARGV: .., 1 to release only the owner's values. Releases the values. Returns 1 or 0.
const RELEASE_VALUES: &str = "local freed = 0 for at = 5, #ARGV do local value = ARGV[at] \
    local owner = number == 1 and owner or redis.call('hget', group, value) \
    if owner and redis.call('hget', group, value) == owner then freed = 1 \
    redis.call('hdel', group, value, deadline(value, owner), levels(value, owner)) end end return freed";

/// ARGV: .., an ignored number. Sets new deadlines if the owner holds all values. Returns 1 or 0.
const RENEW_VALUES: &str = "for at = 5, #ARGV do if holder(ARGV[at]) ~= owner then return 0 end end \
    for at = 5, #ARGV do redis.call('hset', group, deadline(ARGV[at], owner), now + lease) end \
    if redis.call('pttl', group) < lease then redis.call('pexpire', group, lease) end return 1";

/// KEYS: the free permits. ARGV: the number of permits, the number that must be free. Takes one.
/// Returns 1 or 0.
const ACQUIRE_PERMIT: &str = "local left = tonumber(redis.call('get', KEYS[1]) or ARGV[1]) \
    if left < tonumber(ARGV[2]) then return 0 end redis.call('set', KEYS[1], left - 1) return 1";

/// The common beginning of the scripts about permits with leases. KEYS: the free permits, the
/// deadlines of those in use. ARGV: the client's time in ms or an empty string. The client's clock,
/// if given, decides which permits have expired.
const NOW: &str = "local time = redis.call('time') \
    local now = tonumber(ARGV[1]) or time[1] * 1000 + math.floor(time[2] / 1000) ";

/// ARGV: .., the lease in ms, the number of permits, the number that must be free, the ID. Takes
/// expired permits back, and then takes one. Returns 1 or 0.
const ACQUIRE_LEASED: &str = "local left = tonumber(redis.call('get', KEYS[1]) or ARGV[3]) \
    + redis.call('zremrangebyscore', KEYS[2], 0, now) \
    redis.call('set', KEYS[1], left) if left < tonumber(ARGV[4]) then return 0 end \
    redis.call('set', KEYS[1], left - 1) redis.call('zadd', KEYS[2], now + ARGV[2], ARGV[5]) return 1";

/// ARGV: .., the ID, 1 to require that the permit is in use. Releases the permit. Returns 1 or 0.
const RELEASE_LEASED: &str = "if redis.call('zrem', KEYS[2], ARGV[2]) == 0 and ARGV[3] == '1' then return 0 end \
    redis.call('incr', KEYS[1]) return 1";

/// ARGV: .., the ID, the lease in ms. Sets a new deadline if the permit is in use. Returns 1 or 0.
const RENEW_LEASED: &str = "local deadline = redis.call('zscore', KEYS[2], ARGV[2]) \
    if not deadline or tonumber(deadline) <= now then return 0 end \
    redis.call('zadd', KEYS[2], now + ARGV[3], ARGV[2]) return 1";

/// The longest queue of the model that keeps its queue short by mistake.
const LINE_MAX: usize = 2;

/// The keys and the channel of a model's lock. They have Redisson's names, because the witness of a
/// node looks for those.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) lock: String,
    queue: String,
    counter: String,
    delay: String,
    pub(super) channel: String,
}

impl Names {
    pub(super) fn of(lock: &str, key: Key) -> Names {
        let channel = if key == Key::Mode { wire::rw_channel } else { wire::lock_channel };
        Names {
            lock: lock.to_owned(),
            queue: wire::fair_queue(lock),
            counter: wire::fencing_token(lock),
            delay: format!("{}:delay", wire::suffix_tag(lock)),
            channel: channel(lock),
        }
    }
}

/// Builds a model's commands.
#[derive(Debug, Clone)]
pub(super) struct Commands {
    pub(super) traits: Traits,
    pub(super) names: Names,
    /// The number of permits, or the count of a latch.
    pub(super) number: u32,
    /// The time in which `number` permits are granted.
    pub(super) window: Duration,
    /// True if each client has its own key for its grants in the window.
    pub(super) counted_apart: bool,
    /// The time after an expired lease in which the lock is not granted.
    pub(super) delay: Duration,
    /// The time for which the script of an acquisition works first.
    pub(super) script_time: Duration,
    /// The longest wait for a replica's acknowledgement.
    pub(super) replica_timeout: Duration,
    /// The fields of the values that are held together.
    pub(super) values: [String; 2],
}

pub(super) fn script(source: &str, keys: &[&str]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(source).arg(keys.len()).arg(keys);
    command
}

/// Returns the name of an owner that writes.
fn writer(token: &str) -> String {
    format!("{token}:write")
}

impl Commands {
    /// Acquires the lock. With `waits` the owner joins the queue.
    pub(super) fn acquire(&self, token: &str, lease: Duration, mode: Mode, waits: bool, now: &str) -> Cmd {
        let Names { lock, queue, counter, delay, .. } = &self.names;
        let lease = millis(lease);
        let grant = self.traits.grant;
        let mut command;
        match self.traits.key {
            Key::Token if self.traits.fence == Fencing::WithGrant => {
                command = script(ACQUIRE_FENCED, &[lock, counter]);
                command.arg(token).arg(lease);
            }
            Key::Token if grant == Grant::AfterDelay => {
                command = script(ACQUIRE_DELAYED, &[lock, delay]);
                command.arg(token).arg(lease).arg(millis(self.delay));
            }
            Key::Token if grant == Grant::AfterWork => {
                command = script(ACQUIRE_AFTER_WORK, &[lock]);
                command.arg(token).arg(lease).arg(self.script_time.as_secs_f64());
            }
            Key::Token if self.traits.replicas == Replicas::InScript => {
                command = script(ACQUIRE_AND_WAIT, &[lock]);
                command.arg(token).arg(lease).arg(millis(self.replica_timeout));
            }
            Key::Token if self.has_field_lease() && grant == Grant::TwoSteps => {
                command = redis::cmd("HSETNX");
                command.arg(lock).arg(HOLDER_FIELD).arg(token);
            }
            Key::Token if self.has_field_lease() => {
                command = redis::cmd("HSETEX");
                command.arg(lock).arg("FNX").arg("PX").arg(lease);
                command.arg("FIELDS").arg(1).arg(HOLDER_FIELD).arg(token);
            }
            Key::Token if grant == Grant::TwoSteps => {
                command = redis::cmd("SETNX");
                command.arg(lock).arg(token);
            }
            Key::Token => {
                command = redis::cmd("SET");
                command.arg(lock).arg(token).arg("NX").arg("PX").arg(lease);
            }
            Key::Queue => {
                let line_max = if grant == Grant::ShortLine { LINE_MAX } else { usize::from(u16::MAX) };
                command = script(ACQUIRE_QUEUED, &[lock, queue]);
                command.arg(token).arg(lease).arg(u8::from(waits));
                command.arg(u8::from(grant == Grant::AnybodyInLine)).arg(line_max);
            }
            Key::Count => {
                let source = if self.has_field_lease() { ACQUIRE_COUNTED_FIELD } else { ACQUIRE_COUNTED };
                command = script(source, &[lock]);
                command.arg(token).arg(lease);
            }
            Key::Mode if mode == Mode::Shared => {
                command = script(ACQUIRE_READ, &[lock, &wire::read_holds(lock, token)]);
                let mistaken = u8::from(grant == Grant::ReadUnderWrite);
                command.arg(token).arg(lease).arg(writer(token)).arg(mistaken);
            }
            Key::Mode => {
                command = script(ACQUIRE_WRITE, &[lock]);
                command.arg(writer(token)).arg(lease).arg(u8::from(grant == Grant::WriteUnderRead));
                command.arg(u8::from(grant == Grant::SumsLeases));
            }
            Key::Permits => {
                let needed = if grant == Grant::AnyPermit { i64::MIN / 2 } else { 1 };
                command = script(ACQUIRE_PERMIT, &[lock]);
                command.arg(self.number).arg(needed);
            }
            Key::Values => {
                let looked_at = if grant == Grant::FirstValue { 1 } else { self.values.len() };
                command = self.about_values(ACQUIRE_VALUES, now, token, lease, looked_at);
            }
            Key::Leases => {
                let needed = if grant == Grant::AnyPermit { i64::MIN / 2 } else { 1 };
                command = self.about_permits(ACQUIRE_LEASED, now);
                command.arg(lease).arg(self.number).arg(needed).arg(id(token));
            }
            // These have no holder.
            Key::Latch | Key::Rate => return self.look(),
        }
        command
    }

    fn has_field_lease(&self) -> bool {
        self.traits.lease == LeaseOn::Field
    }

    /// Builds a script about permits with leases.
    fn about_permits(&self, source: &str, now: &str) -> Cmd {
        let deadlines = wire::permit_deadlines(&self.names.lock);
        let mut command = script(&format!("{NOW}{source}"), &[&self.names.lock, &deadlines]);
        command.arg(now);
        command
    }

    /// Builds a call of a script about values of a faster multi-lock.
    fn about_values(&self, source: &str, now: &str, token: &str, lease_ms: u64, number: usize) -> Cmd {
        let mut command = script(&format!("{NOW}{VALUES}{source}"), &[&self.names.lock]);
        command.arg(now).arg(token).arg(lease_ms).arg(number).arg(&self.values);
        command
    }

    /// Sets the TTL, for a grant in two steps.
    pub(super) fn expire(&self, lease: Duration) -> Cmd {
        let on_field = self.has_field_lease();
        let mut command = redis::cmd(if on_field { "HPEXPIRE" } else { "PEXPIRE" });
        command.arg(&self.names.lock).arg(millis(lease));
        if on_field {
            command.arg("FIELDS").arg(1).arg(HOLDER_FIELD);
        }
        command
    }

    /// Increments the fencing token, for a token that is counted after the grant.
    pub(super) fn fence(&self) -> Cmd {
        let mut command = redis::cmd("INCR");
        command.arg(&self.names.counter);
        command
    }

    /// Reads the owner's token, for a release in two steps and for a watchdog that only looks.
    pub(super) fn look(&self) -> Cmd {
        let mut command = redis::cmd("GET");
        command.arg(&self.names.lock);
        command
    }

    /// Reads the remaining TTL of the lock.
    pub(super) fn rest(&self) -> Cmd {
        let mut command = redis::cmd("PTTL");
        command.arg(&self.names.lock);
        command
    }

    /// Releases the lock.
    pub(super) fn release(&self, token: &str, mode: Mode) -> Cmd {
        let lock = &*self.names.lock;
        let tells = matches!(self.traits.pace, Pace::Message | Pace::MessageWithoutRecheck);
        let mut command = match (self.traits.release, self.traits.key) {
            (release, Key::Leases) => {
                let mut command = self.about_permits(RELEASE_LEASED, "");
                command.arg(id(token)).arg(u8::from(release == Release::Compare));
                return command;
            }
            (release, Key::Values) => {
                let must_be_own = usize::from(release == Release::Compare);
                return self.about_values(RELEASE_VALUES, "", token, 0, must_be_own);
            }
            (Release::Delete | Release::GetThenDelete, _) => {
                let mut command = redis::cmd("DEL");
                command.arg(lock);
                return command;
            }
            (Release::DelIfEq, Key::Token) => {
                let mut command = redis::cmd("DELIFEQ");
                command.arg(lock).arg(token);
                return command;
            }
            (Release::Remember, Key::Token | Key::Queue) => {
                let mut command = script(RELEASE_AND_REMEMBER, &[lock, &wire::unlock_latch(lock, token)]);
                command.arg(token);
                return command;
            }
            (_, Key::Permits | Key::Latch | Key::Rate) => {
                let mut command = redis::cmd("INCR");
                command.arg(lock);
                return command;
            }
            (_, Key::Mode) => {
                let (mistake, tag) = (self.traits.release, wire::suffix_tag(lock));
                let mut command;
                if mode == Mode::Shared {
                    let source = format!("{LONGEST_READ}{RELEASE_READ}");
                    command = script(&source, &[lock, &wire::read_holds(lock, token), &tag]);
                    command.arg(token).arg(u8::from(mistake == Release::ShortensWriter));
                } else {
                    command = script(&format!("{LONGEST_READ}{RELEASE_WRITE}"), &[lock, &tag]);
                    command.arg(writer(token)).arg(u8::from(mistake != Release::SilentDowngrade));
                }
                if tells {
                    command.arg(&self.names.channel);
                }
                return command;
            }
            (_, Key::Token) if self.traits.grant == Grant::AfterDelay => {
                script(RELEASE_DELAYED, &[lock, &self.names.delay])
            }
            (_, Key::Token) if self.has_field_lease() => {
                let mut command = script(RELEASE_FIELD, &[lock]);
                command.arg(token).arg(HOLDER_FIELD);
                return command;
            }
            (_, Key::Token | Key::Queue) => script(if tells { RELEASE_AND_TELL } else { RELEASE }, &[lock]),
            (_, Key::Count) => script(RELEASE_COUNTED, &[lock]),
        };
        command.arg(token);
        if tells {
            command.arg(&self.names.channel);
        }
        command
    }

    /// Leaves the queue.
    pub(super) fn leave(&self, token: &str) -> Cmd {
        let mut command = redis::cmd("LREM");
        command.arg(&self.names.queue).arg(0).arg(token);
        command
    }

    /// Sets a new lease on the lock.
    pub(super) fn renew(&self, token: &str, lease: Duration, mode: Mode, now: &str) -> Cmd {
        let lock = &*self.names.lock;
        let mut command = match (self.traits.renewal, self.traits.key) {
            (_, Key::Leases) => {
                let mut command = self.about_permits(RENEW_LEASED, now);
                command.arg(id(token)).arg(millis(lease));
                return command;
            }
            (_, Key::Values) => return self.about_values(RENEW_VALUES, now, token, millis(lease), 0),
            (Renewal::Anybody, _) => return self.expire(lease),
            (Renewal::Recreate, _) => {
                let mut command = redis::cmd("SET");
                command.arg(lock).arg(token).arg("PX").arg(millis(lease));
                return command;
            }
            (Renewal::SetIfEq, Key::Token) => {
                let mut command = redis::cmd("SET");
                command.arg(lock).arg(token).arg("IFEQ").arg(token).arg("PX").arg(millis(lease));
                return command;
            }
            (mistake, Key::Mode) if mode == Mode::Shared => {
                let mut command = script(RENEW_READ, &[lock, &wire::suffix_tag(lock)]);
                command.arg(token).arg(millis(lease)).arg(u8::from(mistake == Renewal::AllReaders));
                return command;
            }
            (_, Key::Mode) => {
                let mut command = script(RENEW_COUNTED, &[lock]);
                command.arg(writer(token)).arg(millis(lease));
                return command;
            }
            (_, Key::Count) if self.has_field_lease() => script(RENEW_COUNTED_FIELD, &[lock]),
            (_, Key::Count) => script(RENEW_COUNTED, &[lock]),
            (_, Key::Token) if self.has_field_lease() => {
                let mut command = script(RENEW_FIELD, &[lock]);
                command.arg(token).arg(millis(lease)).arg(HOLDER_FIELD);
                return command;
            }
            (_, Key::Token) if self.traits.grant == Grant::AfterDelay => {
                let mut command = script(RENEW_DELAYED, &[lock, &self.names.delay]);
                command.arg(token).arg(millis(lease)).arg(millis(self.delay));
                return command;
            }
            _ => script(RENEW, &[lock]),
        };
        command.arg(token).arg(millis(lease));
        command
    }
}

/// Returns the bytes of a permit's ID. The ID is a token of hexadecimal digits.
fn id(token: &str) -> Vec<u8> {
    let digits: Vec<u32> = token.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// Returns the number with which a node granted a request, or `None` if it refused.
pub(super) fn granted(answer: &Value) -> Option<u64> {
    match answer {
        Value::Okay => Some(1),
        Value::Int(number) => u64::try_from(*number).ok().filter(|number| *number > 0),
        _ => None,
    }
}
