-- Shared opening of the fair lock's scripts: drops the dead from the head of the queue.
local function sweep(queue, deadlines, now)
  while true do
    local head = redis.call('LINDEX', queue, 0)
    if not head then
      return
    end
    local deadline = redis.call('ZSCORE', deadlines, head)
    if deadline and tonumber(deadline) > now then
      return
    end
    redis.call('ZREM', deadlines, head)
    redis.call('LPOP', queue)
  end
end

