-- Sets the rate. What was granted before counts on.
-- KEYS  .., memory of this request, then memories of earlier requests, which are deleted
-- ARGV  rate, interval in ms, type, whether to do so only when there is none, life of the memory in ms
-- Replies 1 when it is set, else 0. A request that was obeyed before gets the same reply again, and changes nothing.
local before = redis.call('GET', KEYS[6])
if before then
  return tonumber(before)
end
redis.call('DEL', unpack(KEYS, 6))
local reply = 0
if ARGV[4] == '0' or redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('HSET', KEYS[1], 'rate', ARGV[1], 'interval', ARGV[2], 'type', ARGV[3], 'keepAliveTime', 0)
  -- Of a limiter that was to end when it is not used.
  for _, key in ipairs({KEYS[1], KEYS[2], KEYS[4]}) do
    redis.call('PERSIST', key)
  end
  look(true)
  reply = 1
end
redis.call('SET', KEYS[6], reply, 'PX', ARGV[5])
return reply
