-- Replies how many permits there are, -1 when there is no rate.
local limiter = look(false)
return limiter and math.max(limiter.left, 0) or -1
