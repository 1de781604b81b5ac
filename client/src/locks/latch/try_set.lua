-- Sets the count, unless there is one.
-- ARGV  .., count
-- Replies 1 when it is set, else 0.
if not redis.call('SET', count, ARGV[4], 'NX') then
  return done(0)
end
return done(1, '1')
