-- Frees the lock for all owners.
-- KEYS  lock hash, channel
-- ARGV  message, publishing command
-- Replies 1 when there was anything to free, else 0. An error UNPUBLISHED means that it was freed, and that the message was
-- refused.
if redis.call('DEL', KEYS[1]) == 0 then
  return 0
end
local published = redis.pcall(ARGV[2], KEYS[2], ARGV[1])
if type(published) == 'table' and published.err then
  return redis.error_reply('UNPUBLISHED ' .. published.err)
end
return 1
