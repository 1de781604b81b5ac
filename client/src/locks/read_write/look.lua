-- Tells how the lock is taken.
-- KEYS  lock hash
-- Replies the mode, and whether there are read holds: 1 or 0. Nil instead of the mode when it is free, or of another kind.
local mode = redis.call('HGET', KEYS[1], 'mode')
-- Besides the mode and the writer.
local with_reads = mode == 'read' or mode == 'write' and redis.call('HLEN', KEYS[1]) > 2
return { mode, with_reads and 1 or 0 }
