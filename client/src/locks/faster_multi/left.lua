-- Tells for how long any of the values is held, by any owner.
-- KEYS  hash of the group
-- ARGV  the values
-- Replies the milliseconds until the last of them is over, -2 when none is held.
local last
for _, value in ipairs(ARGV) do
  local holder, deadline = holder_of(KEYS[1], value)
  last = holder and math.max(last or deadline, deadline) or last
end
return last and last - now or -2
