-- Takes waiters out of the queue; those behind each need to wait for one less.
-- KEYS  queue, deadlines of the queued, lock hash, channel base, times by which the queued ask again
-- ARGV  the caller's wall clock in ms, message, publishing command, then of each waiter its owner field and the wait in
--       ms that it had asked with
-- Replies how many of them were in the queue.
-- The queue is walked once, however many leave.
local queue, deadlines, lock, channel, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local now, message, publish = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local leaving, names = {}, {} -- the wait of each
for i = 4, #ARGV, 2 do
  leaving[ARGV[i]] = tonumber(ARGV[i + 1])
  names[#names + 1] = ARGV[i]
end

local deadline_of = {}
local scored = redis.call('ZRANGE', deadlines, 0, -1, 'WITHSCORES')
for i = 1, #scored, 2 do
  deadline_of[scored[i]] = tonumber(scored[i + 1])
end

local gone, moved, nearer, head_leaves = {}, {}, 0, false
for place, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
  local wait, deadline = leaving[waiter], deadline_of[waiter]
  if wait then
    gone[#gone + 1] = waiter
    if #gone == place then
      head_leaves = true
      -- The next one has its own wait from now on: it does not come nearer than the head had left.
      wait = math.max(0, math.min(wait, (deadline or now) - nearer - now))
    end
    nearer = nearer + wait
  elseif deadline and nearer > 0 then
    moved[#moved + 1] = deadline - nearer
    moved[#moved + 1] = waiter
  end
end

-- What takes memory comes last: a server that is full lets a script do so only after it has freed some.
for _, waiter in ipairs(gone) do
  redis.call('LREM', queue, 1, waiter)
end
for first = 1, #names, 1000 do
  local last = math.min(first + 999, #names)
  redis.call('ZREM', deadlines, unpack(names, first, last))
  redis.call('ZREM', alive, unpack(names, first, last))
end
for first = 1, #moved, 1000 do
  redis.call('ZADD', deadlines, unpack(moved, first, math.min(first + 999, #moved)))
end

-- The release may have been published to a waiter that leaves.
local head = redis.call('LINDEX', queue, 0)
if head_leaves and head and redis.call('EXISTS', lock) == 0 then
  redis.call(publish, channel .. ':' .. head, message)
end
return #gone
