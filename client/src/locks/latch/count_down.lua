-- Counts down by one, and deletes a count that is used up.
-- Replies what is left; -1 when there was nothing to count down.
if redis.call('EXISTS', count) == 0 then
  return done(-1)
end
local left = redis.call('DECR', count)
if left <= 0 then
  redis.call('DEL', count)
end
return done(left, left == 0 and '0')
