-- Deletes the latch, and lets its waiters go.
-- Replies 1 when there was one, else 0.
if redis.call('DEL', count) == 0 then
  return done(0)
end
return done(1, '0')
