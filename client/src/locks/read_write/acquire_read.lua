-- Takes the lock for reading, or one more level of it.
-- KEYS  lock hash, what the keys of the owner's read holds begin with
-- ARGV  lease in ms, owner field of the reader, owner field of the same owner as the writer
-- Replies nil when granted, else the milliseconds that the lock has left, -1 when its key has no time to live.
local lock, hold, lease, reader, writer = KEYS[1], KEYS[2], tonumber(ARGV[1]), ARGV[2], ARGV[3]
local left = redis.call('PTTL', lock)
if left == -2 then
  redis.call('HSET', lock, 'mode', 'read')
else
  local mode = redis.call('HGET', lock, 'mode')
  -- The hash of another kind of lock has no mode: its holder excludes readers as a writer does.
  if mode ~= 'read' and not (mode == 'write' and redis.call('HEXISTS', lock, writer) == 1) then
    return left
  end
end
local level = redis.call('HINCRBY', lock, reader, 1)
redis.call('SET', hold .. ':' .. level, 1, 'PX', lease)
if left < lease then
  redis.call('PEXPIRE', lock, lease)
end
return nil
