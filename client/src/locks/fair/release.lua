-- Gives one level of the lock back and notifies the head of the queue when that frees it.
-- KEYS  lock hash, queue, deadlines of the queued, channel base, times by which the queued ask again, latch of this
--       request, then latches of earlier requests, which are deleted
-- ARGV  message, owner field, the caller's wall clock in ms, publishing command, life of the latch in ms
-- The key keeps the longest lease of all levels, that of the one that is given back among them.
-- Replies 1 when the lock is free now, 0 when a level remains, nil when the owner did not hold it. A request that was
-- obeyed before gets the same reply again and changes nothing. An error UNPUBLISHED means that the lock is free now, and
-- that the message was refused.
local lock, queue, deadlines, channel, alive, latch = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local message, owner, now, publish, latch_life = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local before = redis.call('GET', latch)
if before then
  return tonumber(before)
end
-- A server whose memory is full refuses the first write of a script if it may need more, and none that follow. There may be
-- no latch to delete, but a lock must be releasable also then.
redis.call('DEL', unpack(KEYS, 6))
sweep(lock, queue, deadlines, alive, now)

-- The last thing that is done: the user may not publish there, and what is released is released.
local function tell_head(reply)
  local head = redis.call('LINDEX', queue, 0)
  local published = head and redis.pcall(publish, channel .. ':' .. head, message)
  if type(published) == 'table' and published.err then
    return redis.error_reply('UNPUBLISHED ' .. published.err)
  end
  return reply
end

if redis.call('HEXISTS', lock, owner) == 0 then
  -- The lease has run out, and the head may not have been notified.
  if redis.call('EXISTS', lock) == 0 then
    tell_head()
  end
  return nil
end
if redis.call('HINCRBY', lock, owner, -1) > 0 then
  redis.call('SET', latch, 0, 'PX', latch_life)
  return 0
end
redis.call('DEL', lock)
redis.call('SET', latch, 1, 'PX', latch_life)
return tell_head(1)
