-- Shared opening of the fair lock's scripts: drops the dead from the head of the queue. It needs
-- `shift`.
--
-- A place has two ends, and is dead past either. Its deadline, which Redisson's scripts know as
-- well, comes its own wait after that of the place before it: the deadlines of waiters that die
-- together add up, one wait for each of them. The other end is `alive`, a key of these scripts
-- alone: a waiter asks again within half of its wait wherever it stands, and one that has not asked
-- for a whole wait, and what the holder had left then, is dead also behind others. So those that
-- die together are over together. A place without an entry there is one that Redisson's scripts
-- gave, whose waiters ask when they like: it has its deadline alone.
--
-- `asking` is alive, as it asks, however late.
local function sweep(lock, queue, deadlines, alive, now, asking)
  local last
  while true do
    local head = redis.call('LINDEX', queue, 0)
    if not head then
      break
    end
    local deadline = tonumber(redis.call('ZSCORE', deadlines, head))
    local asks_by = head ~= asking and redis.call('ZSCORE', alive, head)
    if deadline and deadline > now and not (asks_by and tonumber(asks_by) <= now) then
      break
    end
    redis.call('ZREM', deadlines, head)
    redis.call('ZREM', alive, head)
    redis.call('LPOP', queue)
    last = deadline or last
  end
  if last and last > now then
    -- Those behind come nearer, but for what the holder has left: the next one has its own wait
    -- from then on, whether its client asks for it anew or leaves it alone.
    local holders = math.max(0, redis.call('PTTL', lock))
    shift(deadlines, -math.max(0, last - now - holders))
  end
end

