-- Frees one node of a RedLock, if it still has this value.
-- KEYS  lock
-- ARGV  value
-- Replies 1 when it was freed, else 0.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
