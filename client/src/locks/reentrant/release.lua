-- Gives one level of the lock back.
-- KEYS  lock hash, channel, latch of this request
-- ARGV  message, lease in ms of what remains, owner field, publishing command, life of the latch in ms
-- Replies 1 when the lock is free now, 0 when a level remains, nil when the owner did not hold it. A request that was
-- obeyed before gets the same reply again and changes nothing.
local lock, channel, latch = KEYS[1], KEYS[2], KEYS[3]
local message, lease, owner, publish, latch_life = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local before = redis.call('GET', latch)
if before then
  return tonumber(before)
end
if redis.call('HEXISTS', lock, owner) == 0 then
  return nil
end
local freed = 0
if redis.call('HINCRBY', lock, owner, -1) > 0 then
  if redis.call('PTTL', lock) < lease then
    redis.call('PEXPIRE', lock, lease)
  end
else
  redis.call('DEL', lock)
  redis.call(publish, channel, message)
  freed = 1
end
redis.call('SET', latch, freed, 'PX', latch_life)
return freed
