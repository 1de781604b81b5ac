-- Extends one node of a Redlock, if it still has this value. A lease that is longer already is left alone.
-- KEYS  lock
-- ARGV  value, lease in ms
-- Replies 1 when the node has the lock for that long, 0 when another owner has it, -1 when no
-- owner has: the node has lost it, and is set again (SET with NX) if a majority says 1.
local lease = tonumber(ARGV[2])
local value = redis.pcall('GET', KEYS[1])
if not value then
  return -1
end
-- A key that has become a lock of another kind belongs to another owner, and is no error.
if value ~= ARGV[1] then
  return 0
end
if redis.call('PTTL', KEYS[1]) < lease then
  redis.call('PEXPIRE', KEYS[1], lease)
end
return 1
