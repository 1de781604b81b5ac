-- Gives one level of a write hold back. With the last one, read holds of the same owner keep the lock for reading.
-- KEYS  lock hash, channel, what the keys of all read holds begin with, latch of this request, then latches of earlier
--       requests, which are deleted
-- ARGV  message, owner field of the writer, publishing command, life of the latch in ms
-- While a level remains the key keeps the longest lease of all, that of the one that is given back among them.
-- Replies 1 when no write hold is left, 0 when a level remains, nil when the writer did not hold it. A request that was
-- obeyed before gets the same reply again and changes nothing. An error UNPUBLISHED means that the level was given back, and
-- that the message was refused.
local lock, channel, tag, latch = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local message, writer, command, latch_life = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local before = redis.call('GET', latch)
if before then
  return tonumber(before)
end
if redis.call('HGET', lock, 'mode') ~= 'write' or redis.call('HEXISTS', lock, writer) == 0 then
  return nil
end
-- A server whose memory is full refuses the first write of a script if it may need more, and none that follow. There may be
-- no latch to delete, but a lock must be releasable also then.
redis.call('DEL', unpack(KEYS, 4))
if redis.call('HINCRBY', lock, writer, -1) > 0 then
  redis.call('SET', latch, 0, 'PX', latch_life)
  return 0
end
redis.call('HDEL', lock, writer)
local longest = redis.call('HLEN', lock) > 1 and longest_read(lock, tag) or 0
if longest > 0 then
  redis.call('HSET', lock, 'mode', 'read')
  redis.call('PEXPIRE', lock, longest)
else
  redis.call('DEL', lock)
end
redis.call('SET', latch, 1, 'PX', latch_life)
-- Whether it is free or only readable now: all readers that wait can have it.
return publish(command, channel, message, 1)
