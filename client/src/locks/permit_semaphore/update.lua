-- Sets a new lease on a permit that is out, be it longer or shorter.
-- KEYS  deadlines
-- ARGV  lease in ms, id
-- Replies 1 when it is out, else 0.
if not is_out(KEYS[1], ARGV[2]) then
  return 0
end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[1]), ARGV[2])
return 1
