-- Takes permits, all or none.
-- ARGV  permits, member of this grant
-- Replies nil when granted, also to a request that was obeyed before, else the milliseconds after which there will be enough, -1
-- when there is no rate, -2 when there never are so many.
local limiter, permits, grant = look(false), tonumber(ARGV[1]), ARGV[2]
if not limiter then
  return -1
end
if redis.call('ZSCORE', limiter.grants, grant) then
  return nil
end
if permits > limiter.rate then
  return -2
end
if permits <= limiter.left then
  redis.call('ZADD', limiter.grants, now, grant)
  redis.call('DECRBY', limiter.count, permits)
  keep(limiter)
  return nil
end
keep(limiter)
local left, at = limiter.left, 0
while true do
  -- The oldest first, as many at once as will do for most.
  local grants = redis.call('ZRANGE', limiter.grants, at, at + 31, 'WITHSCORES')
  for i = 1, #grants, 2 do
    left = left + permits_of(grants[i])
    if left >= permits then
      return math.max(grants[i + 1] + limiter.interval + 1 - now, 1)
    end
  end
  if #grants == 0 then
    return limiter.interval
  end
  at = at + 32
end
