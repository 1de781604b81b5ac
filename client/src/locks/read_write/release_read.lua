-- Gives one level of a read hold back.
-- KEYS  lock hash, channel, what the keys of the owner's read holds begin with, what those of all owners begin with, latch of
--       this request, then latches of earlier requests, which are deleted
-- ARGV  message, owner field of the reader, publishing command, life of the latch in ms, lease in ms of what the reader keeps
-- Replies 1 when the lock is free now, 0 when any owner still holds it, nil when the reader did not hold it. A request
-- that was obeyed before gets the same reply again and changes nothing. An error UNPUBLISHED means that the level was given
-- back, and that the message was refused.
local lock, channel, hold, tag, latch = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local message, reader, command, latch_life, lease = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local before = redis.call('GET', latch)
if before then
  return tonumber(before)
end
local mode = redis.call('HGET', lock, 'mode')
if not mode or redis.call('HEXISTS', lock, reader) == 0 then
  return nil
end
-- A server whose memory is full refuses the first write of a script if it may need more, and none that follow. There may be
-- no latch to delete, but a lock must be releasable also then.
redis.call('DEL', unpack(KEYS, 5))
local level = redis.call('HINCRBY', lock, reader, -1)
local last = hold .. ':' .. level + 1
local left = redis.call('PTTL', last)
redis.call('DEL', last)
if level == 0 then
  redis.call('HDEL', lock, reader)
else
  -- The level that is given back need not be the last, whose key is deleted: what remains keeps its own lease. Where that is the
  -- deleted key's, it is not longer than what that had left, however long this request was under way.
  if left ~= -1 then
    lease = math.min(lease, left)
  end
  if lease > 1 and redis.call('PTTL', hold .. ':' .. level) < lease then
    redis.call('SET', hold .. ':' .. level, 1, 'PX', lease)
  end
end
if mode == 'write' then
  -- The writer's lease is that of the hash, and no read hold under it may end it earlier.
  redis.call('SET', latch, 0, 'PX', latch_life)
  return 0
end
local longest = redis.call('HLEN', lock) > 1 and longest_read(lock, tag) or 0
if longest <= 0 then
  redis.call('DEL', lock)
  redis.call('SET', latch, 1, 'PX', latch_life)
  return publish(command, channel, message, 1)
end
left = redis.call('PTTL', lock)
redis.call('PEXPIRE', lock, longest)
redis.call('SET', latch, 0, 'PX', latch_life)
-- A waiting writer sleeps for what it was told that the lock has left, which is less now.
if left > longest then
  return publish(command, channel, message, 0)
end
return 0
