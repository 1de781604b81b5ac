-- Joined before the release scripts: the milliseconds that the longest read hold of the lock has left. Not positive when none
-- is left.
local function longest_read(lock, tag)
  local longest = 0
  local fields = redis.call('HGETALL', lock)
  for i = 1, #fields, 2 do
    -- The mode is no number, and a writer's levels have no keys of their own.
    for level = tonumber(fields[i + 1]) or 0, 1, -1 do
      local left = redis.call('PTTL', tag .. ':' .. fields[i] .. ':rwlock_timeout:' .. level)
      longest = math.max(longest, left)
    end
  end
  return longest
end
