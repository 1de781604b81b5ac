-- Takes the lock, or one more level of it, or a place in the queue.
-- KEYS  lock hash, queue, deadlines of the queued
-- ARGV  lease in ms, owner field, wait in ms after which a queued waiter counts as dead, the caller's wall clock in ms,
--       then, of a lock that does not nest, the status with which its own holder is refused
-- Replies nil when granted. To a waiter in the queue: the milliseconds that the holder has left, 0 when the lock is
-- free but another's turn. To a new one: how long those before it may take.
local lock, queue, deadlines = KEYS[1], KEYS[2], KEYS[3]
local lease, owner, wait, now = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
sweep(queue, deadlines, now)

local left = redis.call('PTTL', lock)
local head = redis.call('LINDEX', queue, 0)
local deadline = redis.call('ZSCORE', deadlines, owner)
if left == -2 then
  if not head or head == owner then
    redis.call('LPOP', queue)
    redis.call('ZREM', deadlines, owner)
    if deadline then
      -- The others need to wait for one less. They do not come nearer than the head had left: the next one has its own
      -- wait from now on.
      shift(deadlines, -math.max(0, math.min(wait, deadline - now)))
    end
    redis.call('HSET', lock, owner, 1)
    redis.call('PEXPIRE', lock, lease)
    return nil
  end
elseif redis.call('HEXISTS', lock, owner) == 1 then
  if ARGV[5] then
    return { ok = ARGV[5] }
  end
  redis.call('HINCRBY', lock, owner, 1)
  -- A nested hold with a shorter lease must not cut the outer one short.
  if left < lease then
    redis.call('PEXPIRE', lock, lease)
  end
  return nil
end

if deadline then
  local holders = math.max(0, left)
  -- A head that asks is alive, and gets its wait anew. Those behind keep their distances to it.
  if head == owner and deadline - now < wait then
    shift(deadlines, holders + wait - (deadline - now))
  end
  return holders
end

local before = left
local tail = redis.call('LINDEX', queue, -1)
if tail and tail ~= owner then
  local behind = redis.call('ZSCORE', deadlines, tail)
  if behind then
    before = tonumber(behind) - now
  end
end
if redis.call('ZADD', deadlines, before + wait + now, owner) == 1 then
  redis.call('RPUSH', queue, owner)
end
return before
