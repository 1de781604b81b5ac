-- Tells what an owner has of values.
-- KEYS  hash of the group
-- ARGV  owner field, the values
-- Replies a list: for each value how many levels of it the owner holds, and behind them the milliseconds until the first of
-- those that it holds is over.
local group, owner, first = KEYS[1], ARGV[1], 2
local levels, next = {}, nil
for at = first, #ARGV do
  local holder, deadline = holder_of(group, ARGV[at])
  local is_held = holder == owner
  local count = is_held and tonumber(redis.call('HGET', group, levels_field(ARGV[at], owner)) or 0)
  levels[#levels + 1] = count or 0
  next = is_held and math.min(next or deadline, deadline) or next
end
levels[#levels + 1] = next and next - now or 0
return levels
