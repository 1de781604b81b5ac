-- Takes the lock, or one more level of it, or a place in the queue.
-- KEYS  lock hash, queue, deadlines of the queued, times by which they ask again
-- ARGV  lease in ms, owner field, wait in ms after which a queued waiter counts as dead, the caller's wall clock in ms,
--       then, of a lock that does not nest, the status with which its own holder is refused
-- Replies nil when granted. To a waiter in the queue: the milliseconds that the holder has left, 0 when the lock is
-- free but another's turn. To a new one: how long those before it may take.
local lock, queue, deadlines, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lease, owner, wait, now = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
sweep(lock, queue, deadlines, alive, now, owner)

local left = redis.call('PTTL', lock)
local head = redis.call('LINDEX', queue, 0)
local deadline = redis.call('ZSCORE', deadlines, owner)
if left == -2 then
  if not head or head == owner then
    redis.call('LPOP', queue)
    redis.call('ZREM', deadlines, owner)
    if deadline then
      redis.call('ZREM', alive, owner)
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

-- This waiter is alive, and is to ask again within its wait. The key lasts as long as its place.
local function keep_alive(holders, place)
  redis.call('ZADD', alive, now + holders + wait, owner)
  if redis.call('PTTL', alive) < place then
    redis.call('PEXPIRE', alive, place)
  end
end

if deadline then
  local holders = math.max(0, left)
  -- A head that asks is alive, and gets its wait anew. Those behind keep their distances to it.
  if head == owner and deadline - now < wait then
    shift(deadlines, holders + wait - (deadline - now))
  end
  keep_alive(holders, math.max(holders + wait, deadline - now))
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
keep_alive(math.max(0, left), math.max(0, before) + wait)
return before
