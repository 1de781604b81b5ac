-- How every change of a number of permits begins that is not a grant: a request that was obeyed before gets the same reply
-- again, and changes nothing.
-- KEYS  number of permits that are left, channel, memory of this request, then memories of earlier requests, which are deleted
-- ARGV  publishing command, life of the memory in ms, then what the change needs
local count, channel, memory, publish, life = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
local before = redis.call('GET', memory)
if before then
  return tonumber(before)
end
-- A server whose memory is full refuses the first write of a script if it may need more, and none that follow. There may be
-- nothing to delete, but permits must be releasable also then.
redis.call('DEL', unpack(KEYS, 3))

-- Remembers `reply` and publishes how many permits there are now, which may be refused: what is done is done. Redisson's
-- listeners fail at a negative number, and no waiter has any use for it.
local function done(reply, total)
  redis.call('SET', memory, reply, 'PX', life)
  local published = total > 0 and redis.pcall(publish, channel, total)
  if type(published) == 'table' and published.err then
    return redis.error_reply('UNPUBLISHED ' .. published.err)
  end
  return reply
end
