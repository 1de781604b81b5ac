-- Adds permits, or takes them away for good when the number is negative. What is left may be negative then.
-- ARGV  .., permits
-- Replies 1.
return done(1, redis.call('INCRBY', count, ARGV[3]))
