import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import redis.clients.jedis.Jedis;

/** Redisson: the locks that lockstorm is about, as their own library takes and gives them, and the keys that this leaves. */
final class RedissonSuite {
    private static RedissonClient connect() {
        var config = new Config();
        config.useSingleServer().setAddress("redis://" + Suite.HOST + ":" + Suite.PORT);
        return Redisson.create(config);
    }

    static void run(Suite suite) throws Exception {
        var first = connect();
        var second = connect();
        try (Jedis keys = new Jedis(Suite.HOST, Suite.PORT)) {
            keys.flushAll();
            mutual(suite, "lock", first.getLock("l"), second.getLock("l"));
            mutual(suite, "fair lock", first.getFairLock("f"), second.getFairLock("f"));
            mutual(suite, "spin lock", first.getSpinLock("s"), second.getSpinLock("s"));
            mutual(suite, "write lock", first.getReadWriteLock("rw").writeLock(), second.getReadWriteLock("rw").readLock());
            mutual(suite, "fenced lock", first.getFencedLock("t"), second.getFencedLock("t"));

            var lock = first.getLock("kept");
            lock.lock(1, TimeUnit.HOURS);
            lock.lock(1, TimeUnit.HOURS);
            suite.say("type", keys.type("kept"));
            suite.say("holds", keys.hvals("kept"));
            suite.say("ttl", keys.ttl("kept") > 3500);
            suite.say("holds", lock.getHoldCount());
            lock.unlock();
            suite.say("held", lock.isHeldByCurrentThread());
            suite.tell("not mine", () -> { second.getLock("kept").unlock(); return "unlocked"; });
            suite.say("forced", second.getLock("kept").forceUnlock());

            var readers = first.getReadWriteLock("many");
            readers.readLock().lock();
            suite.say("second reader", second.getReadWriteLock("many").readLock().tryLock());
            suite.say("writer", second.getReadWriteLock("many").writeLock().tryLock());
            readers.readLock().unlock();
            second.getReadWriteLock("many").readLock().unlock();

            var semaphore = first.getSemaphore("sem");
            suite.say("permits", semaphore.trySetPermits(2));
            suite.say("acquired", semaphore.tryAcquire(2));
            var third = CompletableFuture.supplyAsync(() -> {
                try {
                    return second.getSemaphore("sem").tryAcquire(1, 20, TimeUnit.SECONDS);
                } catch (InterruptedException interrupted) {
                    return false;
                }
            });
            semaphore.release(2);
            suite.say("waited for", third.get());
            suite.say("left", semaphore.availablePermits());

            var latch = first.getCountDownLatch("latch");
            suite.say("count", latch.trySetCount(2));
            var opened = CompletableFuture.supplyAsync(() -> {
                try {
                    return second.getCountDownLatch("latch").await(20, TimeUnit.SECONDS);
                } catch (InterruptedException interrupted) {
                    return false;
                }
            });
            latch.countDown();
            latch.countDown();
            suite.say("opened", opened.get());
            var limiter = first.getRateLimiter("rate");
            suite.say("rate", limiter.trySetRate(org.redisson.api.RateType.OVERALL, 2, java.time.Duration.ofHours(1)));
            suite.say("within", limiter.tryAcquire(2));
            suite.say("beyond", limiter.tryAcquire(1));
            // The limiter's have random names, and an unlock latch goes when its client has received the result.
            suite.say("keys left", keys.keys("*").stream().sorted()
                    .filter(key -> !key.startsWith("{rate}") && !key.startsWith("redisson_unlock_latch")).toList());
        } finally {
            first.shutdown();
            second.shutdown();
        }
    }

    /** One holds, the other does not get it, waits, and has it as soon as it is free; then a crowd counts. */
    private static void mutual(Suite suite, String name, RLock mine, RLock theirs) throws Exception {
        mine.lock();
        var threads = Executors.newFixedThreadPool(4);
        suite.say(name + " meanwhile", threads.submit(() -> theirs.tryLock()).get());
        var asked = new CountDownLatch(1);
        var waited = threads.submit(() -> {
            asked.countDown();
            boolean got = theirs.tryLock(20, TimeUnit.SECONDS);
            theirs.unlock();
            return got;
        });
        asked.await();
        // Long enough to have subscribed, mostly. A thread that did not gets the lock at the first attempt, and says the same.
        Thread.sleep(50);
        mine.unlock();
        suite.say(name + " after waiting", waited.get());
        int[] counter = {0};
        var crowd = new java.util.ArrayList<java.util.concurrent.Future<?>>();
        for (int thread = 0; thread < 4; thread++) {
            crowd.add(threads.submit(() -> {
                for (int turn = 0; turn < 10; turn++) {
                    mine.lock();
                    counter[0]++;
                    mine.unlock();
                }
            }));
        }
        for (var each : crowd) {
            each.get();
        }
        suite.say(name + " counted", counter[0]);
        suite.say(name + " left", mine.isLocked());
        threads.shutdown();
    }
}
