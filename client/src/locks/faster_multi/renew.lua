-- Extends the leases of values in many groups at once.
-- KEYS  hash of each group
-- ARGV  lease in ms, then for each group the owner field, how many values, and the values
-- Replies a list: 1 where the owner holds all of the values, else 0, and nothing is extended there.
-- A lease that is longer already is left alone.
local lease, at, held = tonumber(ARGV[1]), 2, {}
for i, group in ipairs(KEYS) do
  local owner, first, last = ARGV[at], at + 2, at + 1 + tonumber(ARGV[at + 1])
  held[i] = 1
  for value = first, last do
    -- A key that is no hash any more is not held, and must not keep the others from being renewed.
    local is_told, holder = pcall(holder_of, group, ARGV[value])
    if not is_told or holder ~= owner then
      held[i] = 0
    end
  end
  if held[i] == 1 then
    for value = first, last do
      local _, deadline = holder_of(group, ARGV[value])
      if deadline < now + lease then
        redis.call('HSET', group, deadline_field(ARGV[value], owner), now + lease)
      end
    end
    local left = redis.call('PTTL', group)
    if left >= 0 and left < lease then
      redis.call('PEXPIRE', group, lease)
    end
  end
  at = last + 1
end
return held
