-- Frees one node of a Redlock, if it still has this value.
-- KEYS  lock
-- ARGV  value
-- Replies 1 when it was freed, else 0.
-- A key that has become a lock of another kind belongs to another owner, and is no error.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
