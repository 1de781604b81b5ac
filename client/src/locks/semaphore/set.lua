-- Sets the number of permits, unless there is one.
-- ARGV  .., permits
-- Replies 1 when it is set, else 0.
if not redis.call('SET', count, ARGV[3], 'NX') then
  return done(0, 0)
end
return done(1, tonumber(ARGV[3]))
