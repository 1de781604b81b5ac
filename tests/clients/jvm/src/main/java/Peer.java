import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import org.redisson.config.SubscriptionMode;
import redis.clients.jedis.Jedis;

/**
 * A process that shares locks with others: Redisson, told what to do one line at a time. The words are those of
 * `shared/peer.rs`; it knows some more, for what only Redisson has.
 */
public final class Peer {
    /** How often a group is asked who its master is. */
    private static final int SCAN_MS = 500;
    private static final long DAY_MS = 24 * 3_600_000L;
    private final List<RedissonClient> clients = new ArrayList<>();
    private final URI first;
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Peer(String[] arguments) {
        for (int server = 1; server < arguments.length; server++) {
            var config = new Config();
            // How values are encoded: text as it is.
            config.setCodec(StringCodec.INSTANCE);
            config.setLockWatchdogTimeout(Long.parseLong(arguments[0]));
            find(config, URI.create(arguments[server]));
            clients.add(Redisson.create(config));
        }
        first = URI.create(arguments[1]);
    }

    /** Where the servers are, by the URL that our client is given. */
    private static void find(Config config, URI url) {
        String[] nodes = Arrays.stream(url.getAuthority().split(",")).map(node -> "redis://" + node).toArray(String[]::new);
        switch (url.getScheme()) {
            case "redis" -> config.useSingleServer().setAddress(nodes[0]).setConnectionMinimumIdleSize(2);
            case "redis+sentinel" -> config.useSentinelServers()
                    .setMasterName(url.getPath().substring(1))
                    .addSentinelAddress(nodes)
                    .setReadMode(ReadMode.MASTER)
                    .setSubscriptionMode(SubscriptionMode.MASTER)
                    .setScanInterval(SCAN_MS)
                    .setMasterConnectionMinimumIdleSize(2);
            case "redis+cluster" -> config.useClusterServers()
                    .addNodeAddress(nodes)
                    .setReadMode(ReadMode.MASTER)
                    .setSubscriptionMode(SubscriptionMode.MASTER)
                    .setScanInterval(SCAN_MS)
                    .setMasterConnectionMinimumIdleSize(2);
            default -> throw new IllegalArgumentException("no scheme " + url.getScheme());
        }
    }

    private RLock lock(String kind, String name) {
        String[] parts = kind.split("@");
        var client = clients.get(parts.length > 1 ? Integer.parseInt(parts[1]) - 1 : 0);
        // The values of a faster multi-lock follow the word, a letter each.
        String[] letters = parts[0].split(" ");
        return switch (letters[0].equals("values") ? letters[0] : parts[0]) {
            case "lock" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "fenced" -> client.getFencedLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            case "spin" -> client.getSpinLock(name);
            case "non-reentrant" -> client.getNonReentrantLock(name);
            case "non-reentrant fair" -> client.getNonReentrantFairLock(name);
            case "red" -> client.getRedLock(everywhere(name));
            case "multi" -> client.getMultiLock(everywhere(name));
            case "values" -> client.getMultiLock(name, List.<Object>of(letters[1].split("")));
            default -> throw new IllegalArgumentException("no kind " + kind);
        };
    }

    private RLock[] everywhere(String name) {
        return clients.stream().map(client -> client.getLock(name)).toArray(RLock[]::new);
    }

    /** What one thread holds: the objects that it locked, because Redisson keeps the lease in them. */
    private final class Work {
        private final Map<String, RLock> locks = new HashMap<>();

        private RLock mine(String kind, String name) {
            return locks.computeIfAbsent(kind + '\t' + name, ignored -> lock(kind, name));
        }

        private String obey(String[] words) throws Exception {
            switch (words[0]) {
                case "owner":
                    return clients.get(0).getId() + ":" + Thread.currentThread().getId();
                case "acquire": {
                    RLock lock = mine(words[1], words[2]);
                    if (lock instanceof RFencedLock fenced && words[3].equals("-")) {
                        return "granted " + fenced.lockAndGetToken();
                    } else if (lock instanceof RFencedLock fenced) {
                        // There is no form that waits forever with a lease.
                        return "granted " + fenced.tryLockAndGetToken(DAY_MS, millis(words[3]), TimeUnit.MILLISECONDS);
                    }
                    try {
                        lock.lock(millis(words[3]), TimeUnit.MILLISECONDS);
                        return "granted";
                    } catch (IllegalMonitorStateException held) {
                        return "held already";
                    }
                }
                case "try":
                    return tried(mine(words[1], words[2]), millis(words[3]), millis(words[4]));
                case "release":
                    try {
                        mine(words[1], words[2]).unlock();
                        return "released";
                    } catch (IllegalMonitorStateException notHeld) {
                        return "not held";
                    }
                case "force":
                    return mine(words[1], words[2]).forceUnlock() ? "freed" : "was free";
                case "locked":
                    return String.valueOf(mine(words[1], words[2]).isLocked());
                case "levels":
                    return String.valueOf(mine(words[1], words[2]).getHoldCount());
                case "token": {
                    Long token = ((RFencedLock) mine("fenced", words[1])).getToken();
                    // Its zero is no token either: the first one is 1.
                    return token == null || token == 0 ? "none" : token.toString();
                }
                case "count up":
                    countUp(lock(words[1], words[2]), words[3], Integer.parseInt(words[4]));
                    return "counted";
                default:
                    return others(words);
            }
        }
    }

    private static String tried(RLock lock, long wait, long lease) throws InterruptedException {
        if (lock instanceof RFencedLock fenced) {
            Long token = fenced.tryLockAndGetToken(Math.max(wait, 0), lease, TimeUnit.MILLISECONDS);
            return token == null ? "refused" : "granted " + token;
        }
        boolean granted = wait <= 0 && lease <= 0
                ? lock.tryLock()
                : lock.tryLock(Math.max(wait, 0), lease, TimeUnit.MILLISECONDS);
        return granted ? "granted" : "refused";
    }

    /** Adds one to a number without any help of the server, once for each turn with the lock. */
    private void countUp(RLock lock, String counter, int turns) {
        try (Jedis keys = new Jedis(first)) {
            for (int turn = 0; turn < turns; turn++) {
                lock.lock();
                String count = keys.get(counter);
                keys.set(counter, String.valueOf((count == null ? 0 : Long.parseLong(count)) + 1));
                lock.unlock();
            }
        }
    }

    /** What is no lock. */
    private String others(String[] words) throws InterruptedException {
        var client = clients.get(0);
        return switch (words[0]) {
            case "permits" -> String.valueOf(client.getSemaphore(words[1]).trySetPermits(Integer.parseInt(words[2])));
            case "left" -> String.valueOf(client.getSemaphore(words[1]).availablePermits());
            case "take" -> {
                client.getSemaphore(words[1]).acquire(Integer.parseInt(words[2]));
                yield "taken";
            }
            case "try to take" -> {
                var wait = Duration.ofMillis(Long.parseLong(words[3]));
                yield client.getSemaphore(words[1]).tryAcquire(Integer.parseInt(words[2]), wait) ? "taken" : "refused";
            }
            case "give" -> {
                client.getSemaphore(words[1]).release(Integer.parseInt(words[2]));
                yield "given";
            }
            case "ids" -> String.valueOf(
                    client.getPermitExpirableSemaphore(words[1]).trySetPermits(Integer.parseInt(words[2])));
            case "ids left" -> String.valueOf(client.getPermitExpirableSemaphore(words[1]).availablePermits());
            case "take id" -> client.getPermitExpirableSemaphore(words[1])
                    .acquire(Long.parseLong(words[2]), TimeUnit.MILLISECONDS);
            case "try to take id" -> {
                String id = client.getPermitExpirableSemaphore(words[1])
                        .tryAcquire(Long.parseLong(words[2]), Long.parseLong(words[3]), TimeUnit.MILLISECONDS);
                yield id == null ? "refused" : id;
            }
            case "give id" ->
                client.getPermitExpirableSemaphore(words[1]).tryRelease(words[2]) ? "given" : "not out";
            case "set" -> String.valueOf(client.getCountDownLatch(words[1]).trySetCount(Long.parseLong(words[2])));
            case "count down" -> {
                client.getCountDownLatch(words[1]).countDown();
                yield "counted";
            }
            case "await" -> {
                client.getCountDownLatch(words[1]).await();
                yield "open";
            }
            case "delete latch" -> String.valueOf(client.getCountDownLatch(words[1]).delete());
            default -> rate(client.getRateLimiter(words[1]), words);
        };
    }

    private static String rate(RRateLimiter limiter, String[] words) {
        switch (words[0]) {
            case "set rate": {
                var interval = Duration.ofMillis(Long.parseLong(words[4]));
                return String.valueOf(limiter.trySetRate(RateType.valueOf(words[2]), Long.parseLong(words[3]), interval));
            }
            case "rate": {
                var config = limiter.getConfig();
                return config.getRate() + " in " + config.getRateInterval() + " ms, " + config.getRateType();
            }
            case "permits left":
                return String.valueOf(limiter.availablePermits());
            case "limited": {
                long permits = Long.parseLong(words[2]);
                if (words[3].equals("-")) {
                    limiter.acquire(permits);
                    return "granted";
                }
                long wait = Long.parseLong(words[3]);
                boolean granted = wait == 0
                        ? limiter.tryAcquire(permits)
                        : limiter.tryAcquire(permits, Duration.ofMillis(wait));
                return granted ? "granted" : "refused";
            }
            default:
                throw new IllegalArgumentException("no verb " + words[0]);
        }
    }

    /** `-` is none, which is -1 to Redisson. */
    private static long millis(String text) {
        return text.equals("-") ? -1 : Long.parseLong(text);
    }

    private void serve() throws Exception {
        Map<String, ExecutorService> threads = new HashMap<>();
        Map<String, Work> works = new ConcurrentHashMap<>();
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split("\t");
            threads.computeIfAbsent(words[1], ignored -> Executors.newSingleThreadExecutor()).execute(() -> {
                String outcome;
                try {
                    var work = works.computeIfAbsent(words[1], ignored -> new Work());
                    outcome = work.obey(Arrays.copyOfRange(words, 2, words.length));
                } catch (Exception failure) {
                    outcome = "error: " + failure.toString().replaceAll("\\s+", " ");
                }
                out.println(words[0] + '\t' + outcome);
            });
        }
    }

    public static void main(String[] arguments) throws Exception {
        new Peer(arguments).serve();
        // Threads may still wait for locks that will not be granted now.
        Runtime.getRuntime().halt(0);
    }
}
