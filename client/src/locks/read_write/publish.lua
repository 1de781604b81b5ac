-- Joined before the release scripts: publishes, which the user may not be allowed to. What is released is released then, and
-- the error UNPUBLISHED says so.
local function publish(command, channel, message, reply)
  local published = redis.pcall(command, channel, message)
  if type(published) == 'table' and published.err then
    return redis.error_reply('UNPUBLISHED ' .. published.err)
  end
  return reply
end
