-- Takes the lock, or one more level of it, with a new token.
-- KEYS  lock hash, token counter
-- ARGV  lease in ms, owner field
-- Replies -1 and the token when granted, else the milliseconds that the holder has left (-1 when its key has no time
-- to live) and -1.
local lock, counter, lease, owner = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2]
local left = redis.call('PTTL', lock)
if left ~= -2 and redis.call('HEXISTS', lock, owner) == 0 then
  return { left, -1 }
end
local token = redis.call('INCR', counter)
redis.call('HINCRBY', lock, owner, 1)
-- A nested hold with a shorter lease must not cut the outer one short.
if left < lease then
  redis.call('PEXPIRE', lock, lease)
end
return { -1, token }
