-- Extends the leases of permits that are out. A lease that is longer already stays.
-- KEYS  the deadlines of each semaphore
-- ARGV  lease in ms, then for each semaphore the ids, one behind the other, each of 16 bytes
-- Replies for each semaphore 1 when all of them are out, else 0.
local deadline, held = now + tonumber(ARGV[1]), {}
for at, deadlines in ipairs(KEYS) do
  local ids = ARGV[at + 1]
  held[at] = 1
  for from = 1, #ids, 16 do
    local id = string.sub(ids, from, from + 15)
    if is_out(deadlines, id) then
      if tonumber(redis.call('ZSCORE', deadlines, id)) < deadline then
        redis.call('ZADD', deadlines, deadline, id)
      end
    else
      held[at] = 0
    end
  end
end
return held
