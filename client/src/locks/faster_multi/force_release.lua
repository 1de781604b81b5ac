-- Frees values for all owners.
-- KEYS  hash of the group, channel
-- ARGV  message, publishing command, the values
-- Replies 1 when any of them was held, else 0. An error UNPUBLISHED means that they were freed, and that the message was
-- refused.
local group, channel, message, publish, first = KEYS[1], KEYS[2], ARGV[1], ARGV[2], 3
local was_held = false
for at = first, #ARGV do
  was_held = holder_of(group, ARGV[at]) ~= nil or was_held
  clear(group, ARGV[at])
end
if not was_held then
  return 0
end
local published = redis.pcall(publish, channel, message)
if type(published) == 'table' and published.err then
  return redis.error_reply('UNPUBLISHED ' .. published.err)
end
return 1
