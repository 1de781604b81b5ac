//! A model's rate limiter.

use lockstorm_client::{Env, wire};
use redis::Cmd;

use super::{
    commands::{Commands, script},
    lock::Shared,
};
use crate::{
    file::scenario::traits::Window,
    run::subject::{Failure, Patience},
    units::millis,
};

/// KEYS: the grants of the window. ARGV: the client's time in ms or an empty string, the window in
/// ms, 1 if windows begin at multiples of their length, the rate, the permits, the member. Removes
/// expired grants, and grants the permits if there are enough. Returns 1 or 0.
const TAKE: &str = "local time = redis.call('time') \
    local now = tonumber(ARGV[1]) or time[1] * 1000 + math.floor(time[2] / 1000) \
    local window = tonumber(ARGV[2]) local first = now - window \
    if ARGV[3] == '1' then first = now - now % window end \
    redis.call('zremrangebyscore', KEYS[1], '-inf', '(' .. first) \
    local taken = 0 for _, grant in ipairs(redis.call('zrange', KEYS[1], 0, -1)) do \
    taken = taken + struct.unpack('<i4', string.sub(grant, -4)) end \
    if taken + tonumber(ARGV[5]) > tonumber(ARGV[4]) then return 0 end \
    redis.call('zadd', KEYS[1], now, ARGV[6]) return 1";

impl Shared {
    /// Takes permits. Returns false if the wait ends before they are free.
    pub(super) async fn take(&self, permits: u32, wait: Patience) -> Result<bool, Failure> {
        let end = self.end(wait);
        loop {
            // A request without a reply may have been granted, so it is not sent again.
            if self.does(&self.request(permits)).await? {
                return Ok(true);
            }
            if end.is_some_and(|end| self.env.now() >= end) {
                return Ok(false);
            }
            let next = self.env.now() + self.spread();
            self.env.sleep_until(end.map_or(next, |end| next.min(end))).await;
        }
    }

    fn request(&self, permits: u32) -> Cmd {
        let (one, other) = (self.env.random().to_be_bytes(), self.env.random().to_be_bytes());
        let member = [&[16][..], &one, &other, &permits.to_le_bytes()].concat();
        let Commands { traits, names, counted_apart, .. } = &self.commands;
        let mut grants = wire::rate_grants(&names.lock);
        if *counted_apart {
            grants = format!("{grants}:{}", self.history.client_id());
        }
        let mut take = script(TAKE, &[&grants]);
        take.arg(self.time()).arg(millis(self.commands.window)).arg(u8::from(traits.window == Window::Fixed));
        take.arg(self.commands.number).arg(permits).arg(member);
        take
    }
}
