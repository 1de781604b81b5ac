-- Takes the lock, or one more level of it, or a place in the queue.
-- KEYS  lock hash, queue, deadlines of the queued
-- ARGV  lease in ms, owner field, wait in ms after which a queued waiter counts as dead, the caller's wall clock in ms
-- Replies nil when granted. To a waiter in the queue: the milliseconds that the holder has left, 0 when the lock is
-- free but another's turn. To a new one: how long those before it may take.
local lock, queue, deadlines = KEYS[1], KEYS[2], KEYS[3]
local lease, owner, wait, now = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
sweep(queue, deadlines, now)

local left = redis.call('PTTL', lock)
if left == -2 then
  local head = redis.call('LINDEX', queue, 0)
  if not head or head == owner then
    redis.call('LPOP', queue)
    redis.call('ZREM', deadlines, owner)
    -- The others need to wait for one less.
    for _, waiter in ipairs(redis.call('ZRANGE', deadlines, 0, -1)) do
      redis.call('ZINCRBY', deadlines, -wait, waiter)
    end
    redis.call('HSET', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return nil
  end
elseif redis.call('HEXISTS', lock, owner) == 1 then
  redis.call('HINCRBY', lock, owner, 1)
  -- A nested hold with a shorter lease must not cut the outer one short.
  if left < lease then
    redis.call('PEXPIRE', lock, lease)
  end
  return nil
end

if redis.call('ZSCORE', deadlines, owner) then
  return math.max(0, left)
end

local before = left
local tail = redis.call('LINDEX', queue, -1)
if tail and tail ~= owner then
  local deadline = redis.call('ZSCORE', deadlines, tail)
  if deadline then
    before = tonumber(deadline) - now
  end
end
if redis.call('ZADD', deadlines, before + wait + now, owner) == 1 then
  redis.call('RPUSH', queue, owner)
end
return before
