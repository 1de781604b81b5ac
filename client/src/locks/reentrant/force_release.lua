-- Frees the lock whoever holds it.
-- KEYS  lock hash, channel
-- ARGV  message, publishing command
-- Replies 1 when there was anything to free, else 0.
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
redis.call(ARGV[2], KEYS[2], ARGV[1])
return 1
