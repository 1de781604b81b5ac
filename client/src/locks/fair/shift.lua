-- Shared opening of the fair lock's scripts: moves every deadline by `by` ms, which keeps the distances between them.
local function shift(deadlines, by)
  local scored = redis.call('ZRANGE', deadlines, 0, -1, 'WITHSCORES')
  -- Many at once, and no more than Lua hands to a function.
  for first = 1, #scored, 1000 do
    local moved = {}
    for i = first, math.min(first + 999, #scored), 2 do
      moved[#moved + 1] = scored[i + 1] + by
      moved[#moved + 1] = scored[i]
    end
    redis.call('ZADD', deadlines, unpack(moved))
  end
end

