-- Tells what a reader has, after a reply was lost.
-- KEYS  lock hash, what the keys of the owner's read holds begin with
-- ARGV  owner field of the reader
-- Replies how many of its levels have not ended, and the milliseconds that the last one has left.
local level = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local left, living = -2, 0
for i = 1, level do
  left = redis.call('PTTL', KEYS[2] .. ':' .. i)
  living = living + (left > 0 and 1 or 0)
end
return { living, left }
