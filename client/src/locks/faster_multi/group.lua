-- How every script of a faster multi-lock begins: the server's own clock decides until when a value is held.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- In the hash of a group a value is three fields: `value` is its owner, `value:owner:expire_time` until when, in Unix
-- milliseconds, and `value:owner:lock_count` how many levels that owner has.
local function deadline_field(value, owner)
  return value .. ':' .. owner .. ':expire_time'
end

local function levels_field(value, owner)
  return value .. ':' .. owner .. ':lock_count'
end

-- Who holds a value, and until when. Nothing when its time is over, and when it has none.
local function holder_of(group, value)
  local owner = redis.call('HGET', group, value)
  if not owner then
    return nil
  end
  local deadline = tonumber(redis.call('HGET', group, deadline_field(value, owner)) or 0) or 0
  if deadline > now then
    return owner, deadline
  end
end

-- Leaves nothing of a value, nor of the owner that had it last.
local function clear(group, value)
  local owner = redis.call('HGET', group, value)
  if owner then
    redis.call('HDEL', group, value, deadline_field(value, owner), levels_field(value, owner))
  end
end
