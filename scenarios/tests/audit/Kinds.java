import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Plays a story with Redisson's other kinds of locks: Kinds PORT KIND STORY. record_kinds.py runs it. */
public final class Kinds {
    private static final TimeUnit MS = TimeUnit.MILLISECONDS;
    private static final List<RedissonClient> CLIENTS = new ArrayList<>();

    private interface Step {
        void run(RedissonClient client, Random draw) throws Exception;
    }

    private static RedissonClient client(int at) {
        return CLIENTS.get(at);
    }

    /** Every client repeats a step for a while. */
    private static void load(long ms, Step step) throws Exception {
        var threads = new ArrayList<Thread>();
        for (int at = 0; at < CLIENTS.size(); at++) {
            var client = client(at);
            var draw = new Random(at);
            var thread = new Thread(() -> {
                long end = System.currentTimeMillis() + ms;
                try {
                    while (System.currentTimeMillis() < end) {
                        step.run(client, draw);
                        Thread.sleep(60 + draw.nextInt(120));
                    }
                } catch (Exception error) {
                    error.printStackTrace();
                }
            });
            thread.start();
            threads.add(thread);
        }
        for (var thread : threads) {
            thread.join();
        }
    }

    private static void cli(int port, String... words) throws Exception {
        var command = new ArrayList<>(List.of("redis-cli", "-p", Integer.toString(port)));
        command.addAll(List.of(words));
        new ProcessBuilder(command).start().waitFor();
    }

    /** The story of a lost hold: `one` acquires and releases late, `other` takes the lock between. */
    private static void lost(int port, String story, Lock one, Lock other, String... keys) throws Exception {
        one.acquire(story.equals("deleted") || story.equals("flushed") ? -1 : 1000);
        Thread.sleep(200);
        switch (story) {
            case "deleted" -> {
                for (var key : keys) {
                    cli(port, "DEL", key);
                }
            }
            case "flushed" -> cli(port, "FLUSHALL");
            default -> Thread.sleep(1400);
        }
        if (!story.equals("late")) {
            other.acquire(-1);
            Thread.sleep(200);
        }
        try {
            one.release();
        } catch (IllegalMonitorStateException error) {
            System.out.println(error.getMessage());
        }
        if (!story.equals("late")) {
            other.release();
        }
    }

    /** A lock with its lease in milliseconds, -1 for the watchdog's. */
    private record Lock(org.redisson.api.RLock lock) {
        void acquire(long lease) {
            lock.lock(lease, MS);
        }

        void release() {
            lock.unlock();
        }
    }

    private static void readWrite(int port, String story) throws Exception {
        if (story.equals("clean")) {
            load(900, (client, draw) -> {
                var lock = client.getReadWriteLock(draw.nextInt(3) == 0 ? "orders" : "stock");
                if (draw.nextInt(3) > 0) {
                    lock.readLock().lock(draw.nextBoolean() ? -1 : 3000, MS);
                    Thread.sleep(draw.nextInt(150));
                    if (draw.nextInt(3) == 0) {
                        lock.readLock().lock();
                        lock.readLock().unlock();
                    }
                    lock.readLock().unlock();
                    return;
                }
                lock.writeLock().lock();
                Thread.sleep(draw.nextInt(60));
                switch (draw.nextInt(3)) {
                    case 0 -> {
                        lock.writeLock().lock();
                        lock.writeLock().unlock();
                    }
                    case 1 -> {
                        lock.readLock().lock();
                        lock.writeLock().unlock();
                        lock.readLock().unlock();
                        return;
                    }
                    default -> {}
                }
                lock.writeLock().unlock();
            });
        } else if (story.equals("watchdog")) {
            var lock = client(0).getReadWriteLock("stock");
            client(1).getReadWriteLock("stock").readLock().lock();
            lock.readLock().lock();
            Thread.sleep(3500);
            lock.readLock().unlock();
            client(1).getReadWriteLock("stock").readLock().unlock();
            lock.writeLock().lock();
            Thread.sleep(2500);
            lock.writeLock().unlock();
        } else if (story.equals("zombie")) {
            // The first reader's hold ends, and the second one keeps the hash.
            var one = client(0).getReadWriteLock("stock").readLock();
            var other = client(1).getReadWriteLock("stock").readLock();
            one.lock(500, MS);
            other.lock();
            Thread.sleep(1200);
            other.unlock();
            var writer = client(2).getReadWriteLock("stock").writeLock();
            writer.lock();
            Thread.sleep(200);
            try {
                one.unlock();
            } catch (IllegalMonitorStateException error) {
                System.out.println(error.getMessage());
            }
            writer.unlock();
        } else {
            var reader = new Lock(client(0).getReadWriteLock("stock").readLock());
            var writer = new Lock(client(1).getReadWriteLock("stock").writeLock());
            var first = new Lock(client(0).getReadWriteLock("stock").writeLock());
            lost(port, story, story.equals("stopped") || story.equals("flushed") ? reader : first, writer, "stock");
        }
    }

    private static void fair(int port, String story) throws Exception {
        if (story.equals("clean")) {
            load(500, (client, draw) -> {
                var lock = client.getFairLock("stock");
                lock.lock();
                Thread.sleep(draw.nextInt(60));
                lock.unlock();
            });
            return;
        }
        var held = client(0).getFairLock("stock");
        held.lock();
        var waits = new Thread(() -> {
            var lock = client(1).getFairLock("stock");
            lock.lock();
            lock.unlock();
        });
        waits.start();
        Thread.sleep(300);
        // A client that does not know the queue.
        var done = new boolean[1];
        var barges = new Thread(() -> {
            var lock = client(2).getLock("stock");
            while (!lock.tryLock()) {
                Thread.onSpinWait();
            }
            done[0] = true;
            try {
                Thread.sleep(300);
            } catch (InterruptedException error) {
                return;
            }
            lock.unlock();
        });
        if (story.equals("overtaken")) {
            barges.start();
            Thread.sleep(20);
            held.unlock();
            barges.join();
            waits.interrupt();
            Thread.sleep(200);
            // The release of a plain lock notifies no queue.
            client(0).getTopic("redisson_lock__channel:{stock}").publish(0L);
        } else {
            cli(port, "DEL", "redisson_lock_queue:{stock}", "redisson_lock_timeout:{stock}");
            var next = client(2).getFairLock("stock");
            held.unlock();
            next.lock();
            Thread.sleep(200);
            next.unlock();
        }
        waits.join(3000);
    }

    private static void semaphore(int port, String story) throws Exception {
        client(0).getSemaphore("stock").trySetPermits(2);
        if (story.equals("clean")) {
            load(900, (client, draw) -> {
                var semaphore = client.getSemaphore("stock");
                if (draw.nextInt(12) == 0) {
                    semaphore.addPermits(draw.nextInt(2) + 1);
                }
                if (semaphore.tryAcquire(2, java.time.Duration.ofMillis(2000))) {
                    Thread.sleep(draw.nextInt(60));
                    semaphore.release(2);
                }
            });
            return;
        }
        var one = client(0).getSemaphore("stock");
        var other = client(1).getSemaphore("stock");
        one.acquire();
        other.acquire();
        Thread.sleep(200);
        if (story.equals("flushed")) {
            cli(port, "FLUSHALL");
        }
        one.release();
        if (story.equals("beyond")) {
            one.release();
        }
        Thread.sleep(100);
        other.release();
    }

    private static void permits(int port, String story) throws Exception {
        client(0).getPermitExpirableSemaphore("stock").trySetPermits(story.equals("clean") ? 2 : 1);
        if (story.equals("clean")) {
            load(900, (client, draw) -> {
                var semaphore = client.getPermitExpirableSemaphore("stock");
                var id = semaphore.tryAcquire(2000, draw.nextBoolean() ? 3000 : 60000, MS);
                if (id != null) {
                    Thread.sleep(draw.nextInt(60));
                    semaphore.release(id);
                }
            });
            return;
        }
        var one = client(0).getPermitExpirableSemaphore("stock");
        var other = client(1).getPermitExpirableSemaphore("stock");
        var id = one.acquire(1000, MS);
        Thread.sleep(1500);
        String next = null;
        if (!story.equals("late")) {
            next = other.acquire(30000, MS);
            Thread.sleep(200);
        }
        System.out.println(one.tryRelease(id));
        if (next != null) {
            other.release(next);
        }
    }

    private static void latch(int port, String story) throws Exception {
        var latch = client(0).getCountDownLatch("stock");
        latch.trySetCount(2);
        var waits = new Thread(() -> {
            try {
                client(1).getCountDownLatch("stock").await();
            } catch (InterruptedException error) {
                return;
            }
        });
        waits.setDaemon(true);
        waits.start();
        Thread.sleep(500);
        client(2).getCountDownLatch("stock").countDown();
        if (story.equals("clean")) {
            Thread.sleep(300);
            latch.countDown();
            waits.join();
            return;
        }
        for (int second = 0; second < 70; second++) {
            Thread.sleep(1000);
            client(0).getBucket("other").isExists();
        }
    }

    public static void main(String[] args) throws Exception {
        int port = Integer.parseInt(args[0]);
        for (int at = 0; at < 3; at++) {
            var config = new Config();
            config.setLockWatchdogTimeout(1500);
            var server = config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
            server.setConnectionMinimumIdleSize(1).setConnectionPoolSize(4).setPingConnectionInterval(0);
            CLIENTS.add(Redisson.create(config));
        }
        switch (args[1]) {
            case "read-write" -> readWrite(port, args[2]);
            case "fair" -> fair(port, args[2]);
            case "semaphore" -> semaphore(port, args[2]);
            case "permits" -> permits(port, args[2]);
            default -> latch(port, args[2]);
        }
        Thread.sleep(200);
        System.exit(0);
    }
}
