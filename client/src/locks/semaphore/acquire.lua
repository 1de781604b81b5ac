-- Takes permits, all or none.
-- KEYS  number of permits that are left, memory of this request
-- ARGV  permits, life of the memory in ms
-- Replies 1 when granted, also to a request that was obeyed before, else 0.
local left, memory, permits, life = redis.call('GET', KEYS[1]), KEYS[2], tonumber(ARGV[1]), ARGV[2]
if redis.call('EXISTS', memory) == 1 then
  return 1
end
if not left or tonumber(left) < permits then
  return 0
end
redis.call('DECRBY', KEYS[1], permits)
redis.call('SET', memory, permits, 'PX', life)
return 1
