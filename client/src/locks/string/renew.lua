-- Extends the leases of many locks at once.
-- KEYS  locks
-- ARGV  lease in ms, then the owner for each key
-- Replies a list: 1 where the owner holds the lock, 0 where it does not.
-- A lease that is longer already is left alone.
local lease = tonumber(ARGV[1])
local held = {}
for i, lock in ipairs(KEYS) do
  -- A key that is no such lock any more is not held, and must not keep the others from being renewed.
  if redis.pcall('GET', lock) == ARGV[i + 1] then
    if redis.call('PTTL', lock) < lease then
      redis.call('PEXPIRE', lock, lease)
    end
    held[i] = 1
  else
    held[i] = 0
  end
end
return held
