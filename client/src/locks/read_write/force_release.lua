-- Frees the lock for all owners, if it is taken in the mode given.
-- KEYS  lock hash, channel
-- ARGV  mode, message, publishing command
-- Replies 1 when there was anything to free, else 0. An error UNPUBLISHED means that it was freed, and that the message was
-- refused.
if redis.call('HGET', KEYS[1], 'mode') ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
return publish(ARGV[3], KEYS[2], ARGV[2], 1)
