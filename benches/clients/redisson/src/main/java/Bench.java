import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * A process with Redisson, measured: {@code Bench PORT}. The words that it reads and writes are those of
 * {@code ../src/main.rs}; a task is a thread, as a lock of Redisson belongs to one. All settings are its defaults.
 */
public final class Bench {
    private Bench() {}

    /** What all tasks of a workload write to. */
    private static final class Board {
        final long until;
        final AtomicInteger last = new AtomicInteger(-1);
        final AtomicLong handOffs = new AtomicLong();

        Board(long millis) {
            until = System.nanoTime() + millis * 1_000_000;
        }

        boolean isOpen() {
            return System.nanoTime() < until;
        }
    }

    private static RLock lock(RedissonClient client, String workload, int task) {
        return switch (workload) {
            case "cycles" -> client.getLock("own:" + task);
            case "plain" -> client.getLock("plain");
            case "fair" -> client.getFairLock("fair");
            default -> throw new IllegalArgumentException("no workload " + workload + "; there are cycles, plain, fair");
        };
    }

    /** The nanoseconds that each acquisition took. */
    private static long[] work(RLock lock, int task, Board board) {
        long[] waits = new long[1024];
        int count = 0;
        while (board.isOpen()) {
            long begun = System.nanoTime();
            lock.lock();
            long now = System.nanoTime();
            if (now < board.until) {
                if (count == waits.length) {
                    waits = Arrays.copyOf(waits, 2 * count);
                }
                waits[count++] = now - begun;
                if (board.last.getAndSet(task) != task) {
                    board.handOffs.incrementAndGet();
                }
            }
            lock.unlock();
        }
        return Arrays.copyOf(waits, count);
    }

    private static double quantile(long[] sorted, double share) {
        int place = Math.min((int) (sorted.length * share), sorted.length - 1);
        return place < 0 ? Double.NaN : sorted[place] / 1e3;
    }

    private static String measure(RedissonClient client, String workload, int tasks, long millis) throws Exception {
        try (var pool = new Pool(tasks)) {
            var board = new Board(millis);
            var works = IntStream.range(0, tasks)
                    .<Callable<long[]>>mapToObj(task -> () -> work(lock(client, workload, task), task, board))
                    .toList();
            var all = new long[0];
            for (Future<long[]> done : pool.threads.invokeAll(works)) {
                long[] waits = done.get();
                int length = all.length;
                all = Arrays.copyOf(all, length + waits.length);
                System.arraycopy(waits, 0, all, length, waits.length);
            }
            Arrays.sort(all);
            return "%d %d %.1f %.1f".formatted(all.length, board.handOffs.get(), quantile(all, 0.5), quantile(all, 0.99));
        }
    }

    /** One client of Redisson for each contender, with few threads, as there may be many. */
    private static RedissonClient contender(String port) {
        var config = new Config();
        config.setThreads(2);
        config.setNettyThreads(2);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port).setConnectionMinimumIdleSize(1).setConnectionPoolSize(2);
        return Redisson.create(config);
    }

    private static void pass(long micros) throws InterruptedException {
        if (micros > 0) {
            Thread.sleep(micros / 1000, (int) (micros % 1000) * 1000);
        }
    }

    /** See {@code turns.rs}. */
    private static String turns(List<RedissonClient> clients, long millis, long hold, long think) throws Exception {
        int count = clients.size();
        var board = new Board(millis);
        try (var pool = new Pool(count)) {
            var grants = new long[count];
            var works = IntStream.range(0, count)
                    .<Callable<List<Long>>>mapToObj(task -> () -> {
                        var lock = clients.get(task).getLock("turns");
                        var waits = new ArrayList<Long>();
                        while (board.isOpen()) {
                            long begun = System.nanoTime();
                            lock.lock();
                            long now = System.nanoTime();
                            waits.add(Math.min(now, board.until) - begun);
                            if (now < board.until) {
                                grants[task]++;
                                if (board.last.getAndSet(task) != task) {
                                    board.handOffs.incrementAndGet();
                                }
                                pass(hold);
                            }
                            lock.unlock();
                            pass(think);
                        }
                        return waits;
                    })
                    .toList();
            var waits = new ArrayList<Long>();
            for (Future<List<Long>> done : pool.threads.invokeAll(works)) {
                waits.addAll(done.get());
            }
            long[] sorted = waits.stream().mapToLong(Long::longValue).sorted().toArray();
            double all = Arrays.stream(grants).sum();
            double squares = Arrays.stream(grants).mapToDouble(one -> (double) one * one).sum();
            long starved = Arrays.stream(grants).filter(one -> one == 0).count();
            return "%.0f %d %.1f %.1f %.1f %.4f %d".formatted(all, board.handOffs.get(), quantile(sorted, 0.5), quantile(sorted, 0.99),
                    quantile(sorted, 1), all * all / (count * squares), starved);
        }
    }

    /** As many threads as there are tasks; Java 17 has no executor that can be closed. */
    private record Pool(java.util.concurrent.ExecutorService threads) implements AutoCloseable {
        Pool(int tasks) {
            this(Executors.newFixedThreadPool(tasks));
        }

        @Override
        public void close() {
            threads.shutdown();
        }
    }

    public static void main(String[] arguments) throws Exception {
        var config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[0]);
        var client = Redisson.create(config);
        var input = new BufferedReader(new InputStreamReader(System.in));
        var contenders = new ArrayList<RedissonClient>();
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("turns")) {
                int count = Integer.parseInt(words[1]);
                while (contenders.size() < count) {
                    contenders.add(contender(arguments[0]));
                }
                System.out.println(turns(contenders.subList(0, count), Long.parseLong(words[2]), Long.parseLong(words[3]), Long.parseLong(words[4])));
                continue;
            }
            System.out.println(measure(client, words[0], Integer.parseInt(words[1]), Long.parseLong(words[2])));
        }
        contenders.forEach(RedissonClient::shutdown);
        client.shutdown();
    }
}
