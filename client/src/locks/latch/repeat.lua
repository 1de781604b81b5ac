-- How every change of a latch begins: a request that was obeyed before gets the same reply again, and changes nothing.
-- KEYS  count, memory of this request, then memories of earlier requests, which are deleted
-- ARGV  publishing command, life of the memory in ms, channel, then what the change needs. The channel is no key: in a cluster
--       the one of a name with braces has another slot, for which a node rejects the whole script.
local count, memory, publish, life, channel = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local before = redis.call('GET', memory)
if before then
  return tonumber(before)
end
-- A server whose memory is full refuses the first write of a script if it may need more, and none that follow.
redis.call('DEL', unpack(KEYS, 2))

-- Remembers `reply` and publishes `message`, if there is one, which may be refused: what is done is done.
local function done(reply, message)
  redis.call('SET', memory, reply, 'PX', life)
  local published = message and redis.pcall(publish, channel, message)
  if type(published) == 'table' and published.err then
    return redis.error_reply('UNPUBLISHED ' .. published.err)
  end
  return reply
end
