-- Frees the lock for all owners and notifies the head of the queue, which stays.
-- KEYS  lock hash, queue, deadlines of the queued, channel base, times by which the queued ask again
-- ARGV  message, the caller's wall clock in ms, publishing command
-- Replies 1 when there was anything to free, else 0. An error UNPUBLISHED means that it was freed, and that the message was
-- refused.
local lock, queue, deadlines, channel, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
sweep(lock, queue, deadlines, alive, tonumber(ARGV[2]))
if redis.call('DEL', lock) == 0 then
  return 0
end
local head = redis.call('LINDEX', queue, 0)
local published = head and redis.pcall(ARGV[3], channel .. ':' .. head, ARGV[1])
if type(published) == 'table' and published.err then
  return redis.error_reply('UNPUBLISHED ' .. published.err)
end
return 1
