-- Frees the lock, if the owner has it. DELIFEQ does the same, where servers have it.
-- KEYS  lock
-- ARGV  owner
-- Replies 1 when it was freed, else 0.
-- A key that has become a lock of another kind belongs to another owner, and is no error.
if redis.pcall('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
