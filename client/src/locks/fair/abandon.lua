-- Leaves the queue; those behind need to wait for one less.
-- KEYS  queue, deadlines of the queued, lock hash, channel base
-- ARGV  owner field, the wait in ms that it had asked with, message, publishing command
-- Replies 1 when the owner was in the queue, else 0.
local queue, deadlines, lock, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, wait, message, publish = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local was_head = redis.call('LINDEX', queue, 0) == owner
local found = 0
for _, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
  if waiter == owner then
    found = 1
  elseif found == 1 and redis.call('ZSCORE', deadlines, waiter) then
    redis.call('ZINCRBY', deadlines, -wait, waiter)
  end
end
redis.call('ZREM', deadlines, owner)
redis.call('LREM', queue, 0, owner)
-- The release may have been told to the one who leaves.
local head = redis.call('LINDEX', queue, 0)
if was_head and head and redis.call('EXISTS', lock) == 0 then
  redis.call(publish, channel .. ':' .. head, message)
end
return found
