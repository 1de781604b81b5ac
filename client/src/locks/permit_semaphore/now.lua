-- How every script of an expirable semaphore begins: the server's own clock decides which permits have expired.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Whether a permit is out and has not expired.
local function is_out(deadlines, id)
  local deadline = redis.call('ZSCORE', deadlines, id)
  return deadline and tonumber(deadline) > now
end
