-- Replies the milliseconds that the owner's lease has left, -1 when its key has no time to live, -2 when the owner does not hold
-- the lock. Changes nothing.
-- KEYS  lock
-- ARGV  owner
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PTTL', KEYS[1])
end
return -2
