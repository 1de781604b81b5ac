-- Takes the lock, or one more level of it, without a place in the queue.
-- KEYS  lock hash, queue, deadlines of the queued, times by which they ask again
-- ARGV  lease in ms, owner field, the caller's wall clock in ms, wait in ms by which the queued come closer, then, of a
--       lock that does not nest, the status with which its own holder is refused
-- Replies nil when granted, else 1.
local lock, queue, deadlines, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease, owner, now, wait = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
sweep(lock, queue, deadlines, alive, now, owner)

local left = redis.call('PTTL', lock)
if left == -2 then
  local head = redis.call('LINDEX', queue, 0)
  if head and head ~= owner then
    return 1
  end
  local deadline = redis.call('ZSCORE', deadlines, owner)
  redis.call('LPOP', queue)
  redis.call('ZREM', deadlines, owner)
  if deadline then
    redis.call('ZREM', alive, owner)
    shift(deadlines, -math.max(0, math.min(wait, deadline - now)))
  end
  redis.call('HSET', lock, owner, 1)
  redis.call('PEXPIRE', lock, lease)
  return nil
end
if redis.call('HEXISTS', lock, owner) == 0 then
  return 1
end
if ARGV[5] then
  return { ok = ARGV[5] }
end
redis.call('HINCRBY', lock, owner, 1)
-- A nested hold with a shorter lease must not cut the outer one short.
if left < lease then
  redis.call('PEXPIRE', lock, lease)
end
return nil
