-- Takes permits, all or none.
-- ARGV  .., permits, lease in ms, the id of each permit
-- Replies the status OK when granted, also to a request that was obeyed before, else the milliseconds until the next permit
-- expires, nil when none will.
local permits, lease, first = tonumber(ARGV[2]), tonumber(ARGV[3]), 4
-- Redisson's deadline of a permit without a lease.
local never = 922337203685477
local reclaimed, granted = reclaim(), is_out(deadlines, ARGV[first])
if not granted and tonumber(redis.call('GET', count) or 0) >= permits then
  granted = true
  redis.call('DECRBY', count, permits)
  for at = first, #ARGV do
    redis.call('ZADD', deadlines, now + lease, ARGV[at])
  end
  local life = redis.call('PTTL', count)
  if life > 0 then
    redis.call('PEXPIRE', deadlines, life)
  end
end
if reclaimed > 0 then
  announce()
end
if granted then
  return redis.status_reply('OK')
end
local next = redis.call('ZRANGE', deadlines, 0, 0, 'WITHSCORES')[2]
if next and tonumber(next) < never then
  return tonumber(next) - now
end
return nil
