-- Gives one level of each value back.
-- KEYS  hash of the group, channel, latch of this request, then latches of earlier requests, which are deleted
-- ARGV  message, owner field, publishing command, life of the latch in ms, the values
-- Replies 1 when the owner holds none of them any more, 0 when a level of any remains, nil when it did not hold them all; those
-- that it did hold are given back then, too. A request that was obeyed before gets the same reply again and changes nothing. An
-- error UNPUBLISHED means that all are given back, and that the message was refused.
local group, channel, latch = KEYS[1], KEYS[2], KEYS[3]
local message, owner, publish, latch_life, first = ARGV[1], ARGV[2], ARGV[3], ARGV[4], 5
local missing = -1
local before = tonumber(redis.call('GET', latch))
if before then
  return before ~= missing and before or nil
end
local held = {}
for at = first, #ARGV do
  if holder_of(group, ARGV[at]) == owner then
    held[#held + 1] = ARGV[at]
  end
end
if #held == 0 then
  return nil
end
-- A server whose memory is full refuses the first write of a script if it may need more, and none that follow. There may be
-- no latch to delete, but a lock must be releasable also then.
redis.call('DEL', unpack(KEYS, 3))
local freed = 0
for _, value in ipairs(held) do
  if redis.call('HINCRBY', group, levels_field(value, owner), -1) <= 0 then
    clear(group, value)
    freed = freed + 1
  end
end
local result = freed == #held and 1 or 0
if #held <= #ARGV - first then
  result = missing
end
redis.call('SET', latch, result, 'PX', latch_life)
-- Last: the user may not publish there, and what is released is released.
local published = freed > 0 and redis.pcall(publish, channel, message)
if result == missing then
  return nil
end
if type(published) == 'table' and published.err then
  return redis.error_reply('UNPUBLISHED ' .. published.err)
end
return result
