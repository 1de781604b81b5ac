-- What all scripts of a rate limiter begin with.
-- KEYS  configuration; permits left, of all clients and of this one; grants, of all clients and of this one
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- The permits of a grant: the last four bytes of its member.
local function permits_of(grant)
  return struct.unpack('<i4', string.sub(grant, -4))
end

-- How many permits the grants in the set have, of those from the `first` on.
local function granted(set)
  local permits = 0
  for _, grant in ipairs(redis.call('ZRANGE', set, 0, -1)) do
    permits = permits + permits_of(grant)
  end
  return permits
end

-- Takes grants out that the window has left behind, and returns the configuration with what is left now; nil when there is no
-- rate. With `anew` the permits that are left are counted, as after a change of the rate.
local function look(anew)
  local config = redis.call('HMGET', KEYS[1], 'rate', 'interval', 'type', 'keepAliveTime')
  local rate, interval = tonumber(config[1]), tonumber(config[2])
  if not rate or not interval then
    return nil
  end
  local each = config[3] == '1'
  local count, grants = KEYS[each and 3 or 2], KEYS[each and 5 or 4]
  -- No grant is from the future: the clock was set back, or that of the client was ahead. It counts from now on.
  for _, grant in ipairs(redis.call('ZRANGEBYSCORE', grants, '(' .. now, '+inf')) do
    redis.call('ZADD', grants, now, grant)
  end
  -- A grant of the millisecond in which the window begins may be within it.
  local until_ms, back = '(' .. (now - interval), 0
  local past = redis.call('ZRANGEBYSCORE', grants, '-inf', until_ms)
  if #past > 0 then
    for _, grant in ipairs(past) do
      back = back + permits_of(grant)
    end
    redis.call('ZREMRANGEBYSCORE', grants, '-inf', until_ms)
  end
  local before, left = tonumber(redis.call('GET', count) or nil), nil
  if redis.call('ZCARD', grants) == 0 then
    left = rate
  elseif anew or not before then
    left = rate - granted(grants)
  else
    left = math.min(before + back, rate)
  end
  if left ~= before then
    redis.call('SET', count, left, 'KEEPTTL')
  end
  return {rate = rate, interval = interval, each = each, life = tonumber(config[4]) or 0, count = count, grants = grants, left = left}
end

-- Lets what stands in the keys end when it is of no more use.
local function keep(limiter)
  local life = limiter.life
  if life > 0 then
    redis.call('PEXPIRE', KEYS[1], life)
  else
    life = redis.call('PTTL', KEYS[1])
    if life < 0 and limiter.each then
      -- Those of a client that is gone no other client reads.
      life = 2 * limiter.interval
    end
  end
  if life > 0 then
    redis.call('PEXPIRE', limiter.count, life)
    redis.call('PEXPIRE', limiter.grants, life)
  end
end
