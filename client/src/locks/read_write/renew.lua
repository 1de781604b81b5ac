-- Extends the leases of many read holds at once: those of the owners given, and of no others.
-- KEYS  for each, the lock hash and what the keys of the owner's read holds begin with
-- ARGV  lease in ms, then the owner field of each
-- Replies a list: 1 where the owner holds the lock, 0 where it does not, or each of its levels has ended.
-- A lease that is longer already is left alone, and one that has ended does not begin again.
local lease = tonumber(ARGV[1])
local held = {}
local function extend(key)
  local left = redis.call('PTTL', key)
  if left ~= -2 and left < lease then
    redis.call('PEXPIRE', key, lease)
  end
  return left ~= -2
end
for i = 1, #KEYS / 2 do
  local lock, hold = KEYS[2 * i - 1], KEYS[2 * i]
  -- A key that is no lock any more is not held, and must not keep the others from being renewed.
  local levels = redis.pcall('HGET', lock, ARGV[i + 1])
  held[i] = 0
  for level = 1, type(levels) == 'string' and tonumber(levels) or 0 do
    if extend(hold .. ':' .. level) then
      held[i] = 1
    end
  end
  if held[i] == 1 then
    extend(lock)
  end
end
return held
