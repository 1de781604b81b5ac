//! Reads the keys of locks on a real server in one step.

use lockstorm_sim::generation::Generation;

use crate::file::server::Server;

/// The way to read the keys: the command of a script, and the parts of the script that find the
/// expiry time of a key and of a hash's field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reads {
    pub(super) command: &'static str,
    expiry: &'static str,
    field_expiry: &'static str,
    /// The generation that the shadow copy imitates.
    pub(super) generation: Generation,
}

impl Reads {
    /// Returns the way for this server. One that was not asked is taken for a Redis 7.0.
    pub(super) fn on(server: Option<&Server>) -> Reads {
        let has = |name: &str| server.is_none_or(|server| server.has_command(name));
        Reads {
            command: if has("EVAL_RO") { "EVAL_RO" } else { "EVAL" },
            expiry: if has("PEXPIRETIME") { EXPIRETIME } else { TTL_AND_TIME },
            field_expiry: if server.is_some_and(|server| server.has_command("HPEXPIRETIME")) {
                FIELD_EXPIRETIME
            } else {
                NO_FIELD_EXPIRES
            },
            generation: server.map_or(Generation::Redis70, Server::nearest),
        }
    }

    /// Returns the script that reads the keys.
    pub(super) fn script(self) -> String {
        format!("{}{}{READ}", self.expiry, self.field_expiry)
    }
}

/// Finds the expiry time with a command of Redis 7.
const EXPIRETIME: &str = "
local function expiry(key) return redis.call('PEXPIRETIME', key) end";

/// Finds the expiry time of a field, with a command of Redis 7.4 and Valkey 9.
const FIELD_EXPIRETIME: &str = "
local function field_expiry(key, field)
    local ends = redis.call('HPEXPIRETIME', key, 'FIELDS', 1, field)
    return ends and ends[1] or -2
end";

/// Fields do not expire.
const NO_FIELD_EXPIRES: &str = "
local function field_expiry(key, field) return -1 end";

/// Finds the expiry time from the time to live, which Redis 6.2 computes with its clock at the
/// call. A millisecond that begins meanwhile is seen, and the key read again.
const TTL_AND_TIME: &str = "
local function clock()
    local now = redis.call('TIME')
    return now[1] * 1000 + math.floor(now[2] / 1000)
end
local function expiry(key)
    local ends
    for attempt = 1, 20 do
        local before = clock()
        local left = redis.call('PTTL', key)
        if left < 0 then return left end
        ends = before + left
        if clock() == before then return ends end
    end
    return ends
end";

/// Reads the keys in one atomic step. Returns the number of evicted keys, then for each key its
/// type, its content, its expiry time, its leases, and the expiry time of the only field of a hash
/// that does not expire itself. ARGV has for each key the prefix of its lease keys, or an empty
/// string.
const READ: &str = "
local evicted = tonumber(redis.call('INFO', 'stats'):match('evicted_keys:(%d+)'))
local answer = {}
for at, key in ipairs(KEYS) do
    local leases = {}
    local kind = redis.call('TYPE', key).ok
    local words = {}
    if kind == 'string' then words = {redis.call('GET', key)} end
    if kind == 'hash' then words = redis.call('HGETALL', key) end
    if kind == 'list' then words = redis.call('LRANGE', key, 0, -1) end
    if kind == 'zset' then words = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
    for field = 1, (kind == 'hash' and ARGV[at] ~= '') and #words or 0, 2 do
        for level = 1, math.min(tonumber(words[field + 1]) or 0, 1000) do
            local ends = expiry(ARGV[at] .. ':' .. words[field] .. ':rwlock_timeout:' .. level)
            if ends ~= -2 then leases[#leases + 1] = {words[field], level, ends} end
        end
    end
    local ends, of_field = expiry(key), -1
    if kind == 'hash' and #words == 2 and ends == -1 then of_field = field_expiry(key, words[1]) end
    answer[at] = {kind, words, ends, leases, of_field}
end
return {evicted, answer}";
