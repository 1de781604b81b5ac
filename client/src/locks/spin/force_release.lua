-- Frees the lock for all owners. Nothing is published.
-- KEYS  lock hash
-- Replies 1 when there was anything to free, else 0.
return redis.call('DEL', KEYS[1])
