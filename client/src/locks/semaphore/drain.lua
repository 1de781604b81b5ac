-- Takes all permits that are left.
-- Replies how many that were.
local left = tonumber(redis.call('GET', count) or 0)
if left ~= 0 then
  redis.call('INCRBY', count, -left)
end
return done(left, 0)
