-- Gives one level of the lock back.
-- KEYS  lock hash, channel, latch of this request, then latches of earlier requests, which are deleted
-- ARGV  message, owner field, publishing command, life of the latch in ms
-- The key keeps the longest lease of all levels, that of the one that is given back among them.
-- Replies 1 and the number of clients that the message has reached when the lock is free now, 0
-- when a level remains, nil when the owner did not hold it. A request that was obeyed before
-- changes nothing, and gets the same reply again, but for the clients. An error UNPUBLISHED means
-- that the lock is free now, and that the message was refused.
local lock, channel, latch = KEYS[1], KEYS[2], KEYS[3]
local message, owner, publish, latch_life = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local before = redis.call('GET', latch)
if before then
  return tonumber(before)
end
if redis.call('HEXISTS', lock, owner) == 0 then
  return nil
end
-- A server whose memory is full refuses the first write of a script if it may need more, and none that follow. There may be
-- no latch to delete, but a lock must be releasable also then.
redis.call('DEL', unpack(KEYS, 3))
if redis.call('HINCRBY', lock, owner, -1) > 0 then
  redis.call('SET', latch, 0, 'PX', latch_life)
  return 0
end
redis.call('DEL', lock)
redis.call('SET', latch, 1, 'PX', latch_life)
-- Last: the user may not publish there, and what is released is released.
local published = redis.pcall(publish, channel, message)
if type(published) == 'table' and published.err then
  return redis.error_reply('UNPUBLISHED ' .. published.err)
end
return 1 + published
