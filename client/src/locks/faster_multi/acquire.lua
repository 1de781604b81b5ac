-- Takes values, or one more level of them, all or none.
-- KEYS  hash of the group
-- ARGV  lease in ms, owner field, the values
-- Replies nil when granted, else the milliseconds until the last of those that other owners hold is over.
local group, lease, owner = KEYS[1], tonumber(ARGV[1]), ARGV[2]
local left = 0
for at = 3, #ARGV do
  local holder, deadline = holder_of(group, ARGV[at])
  if holder and holder ~= owner then
    left = math.max(left, deadline - now)
  end
end
if left > 0 then
  return left
end
local life = redis.call('PTTL', group)
for at = 3, #ARGV do
  local value = ARGV[at]
  local holder, deadline = holder_of(group, value)
  if not holder then
    -- Levels of a hold that is over count no more. And a client of Redisson's that releases late takes its own deadline, if it
    -- finds one, for a proof that it holds the value.
    clear(group, value)
    redis.call('HSET', group, value, owner, levels_field(value, owner), 0)
  end
  -- A nested hold with a shorter lease must not cut the outer one short.
  redis.call('HSET', group, deadline_field(value, owner), math.max(deadline or 0, now + lease))
  redis.call('HINCRBY', group, levels_field(value, owner), 1)
end
if life == -2 or life >= 0 and life < lease then
  redis.call('PEXPIRE', group, lease)
end
return nil
