-- Takes the lock for writing, or one more level of it.
-- KEYS  lock hash
-- ARGV  lease in ms, owner field of the writer
-- Replies nil when granted, else the milliseconds that the lock has left, -1 when its key has no time to live.
local lock, lease, writer = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local left = redis.call('PTTL', lock)
if left == -2 then
  redis.call('HSET', lock, 'mode', 'write')
elseif redis.call('HGET', lock, 'mode') ~= 'write' or redis.call('HEXISTS', lock, writer) == 0 then
  return left
end
redis.call('HINCRBY', lock, writer, 1)
-- A nested hold with a shorter lease must not cut the outer one short.
if left < lease then
  redis.call('PEXPIRE', lock, lease)
end
return nil
