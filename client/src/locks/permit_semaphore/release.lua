-- Gives permits back.
-- KEYS  .., memory of this request, then memories of earlier requests, which are deleted
-- ARGV  .., life of the memory in ms, `all` when none is given back unless all are out, else `rest`, the ids
-- Replies 1 when they are back, also to a request that was obeyed before, else nil. An error UNPUBLISHED means that they are
-- back, and that the message was refused.
local memory, life, all, first = KEYS[4], ARGV[2], ARGV[3] == 'all', 4
if redis.call('EXISTS', memory) == 1 then
  return 1
end
local out = 0
for at = first, #ARGV do
  if is_out(deadlines, ARGV[at]) then
    out = out + 1
  end
end
if out == 0 or all and out <= #ARGV - first then
  return nil
end
-- A server whose memory is full refuses the first write of a script if it may need more, and none that follow.
redis.call('DEL', unpack(KEYS, 4))
local back = 0
for at = first, #ARGV do
  back = back + redis.call('ZREM', deadlines, ARGV[at])
end
redis.call('INCRBY', count, back)
reclaim()
redis.call('SET', memory, 1, 'PX', life)
local refused = announce()
if refused then
  return redis.error_reply('UNPUBLISHED ' .. refused)
end
return 1
