-- Joined before a release script, which then does without the latch: for a user who may use the key of the lock, and not those
-- beside it. Nothing is remembered, so that the caller must not send it twice where that would do harm.
-- KEYS  the first key of the script
-- ARGV  how many keys the script has, all but the first of them, the last of which is the latch, and its arguments
local given, server = ARGV, redis
local KEYS, ARGV = { KEYS[1] }, {}
local count = tonumber(given[1])
for at = 2, count do
  KEYS[at] = given[at]
end
for at = count + 1, #given do
  ARGV[#ARGV + 1] = given[at]
end
local redis = { pcall = server.pcall, error_reply = server.error_reply }
function redis.call(...)
  local command, key = ...
  if key ~= KEYS[count] then
    return server.call(...)
  end
  if command == 'DEL' then
    -- The first write of the script, which a server whose memory is full must not refuse, stays a harmless one.
    server.pcall('HDEL', KEYS[1], '')
  end
  return command == 'EXISTS' and 0
end
