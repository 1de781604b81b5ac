-- Takes the lock, or one more level of it.
-- KEYS  lock hash
-- ARGV  lease in ms, owner field, then, of a lock that does not nest, the status with which its own holder is refused
-- Replies nil when granted, else the milliseconds that the holder has left, -1 when its key has no time to live.
local lock, lease, owner, refusal = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local left = redis.call('PTTL', lock)
if left ~= -2 and redis.call('HEXISTS', lock, owner) == 0 then
  return left
end
if left ~= -2 and refusal then
  return { ok = refusal }
end
redis.call('HINCRBY', lock, owner, 1)
-- A nested hold with a shorter lease must not cut the outer one short.
if left < lease then
  redis.call('PEXPIRE', lock, lease)
end
return nil
