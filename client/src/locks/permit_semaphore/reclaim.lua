-- Expired permits come back to a semaphore with the next script that runs.
-- KEYS  number of permits that are left, deadlines of those that are out by their ids, channel
-- ARGV  publishing command
local count, deadlines, channel, publish = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

-- Takes expired permits back. How many they were.
local function reclaim()
  local expired = redis.call('ZREMRANGEBYSCORE', deadlines, 0, now)
  if expired > 0 then
    redis.call('INCRBY', count, expired)
  end
  return expired
end

-- Publishes how many permits there are, if there are any. The error, if the server refuses that.
local function announce()
  local left = tonumber(redis.call('GET', count) or 0)
  local published = left > 0 and redis.pcall(publish, channel, left)
  return type(published) == 'table' and published.err
end
