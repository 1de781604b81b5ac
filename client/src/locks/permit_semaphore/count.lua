-- Counts permits, and leaves them as they are.
-- KEYS  number of permits that are left, deadlines
-- Replies how many can be had, expired ones among them, and how many are out.
local left = tonumber(redis.call('GET', KEYS[1]) or 0)
local expired = redis.call('ZCOUNT', KEYS[2], 0, now)
return { left + expired, redis.call('ZCOUNT', KEYS[2], '(' .. now, '+inf') }
