import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.lettuce.core.RedisClient;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.redisson.Redisson;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * A peer of `lockstorm trial` with one of the JVM's lock libraries: Peer LIBRARY.
 *
 * <p>Each library is a class below: what it calls its keys, what it can do, and how it acquires, releases and extends a lock, with its own
 * defaults where the trial does not say otherwise. All of them know a holder by its thread, so that one thread does everything.
 */
public final class Peer {
    /** The library says that the lock is not held; nothing has changed. */
    private static final class NotHeld extends Exception {
        NotHeld(Throwable cause) {
            super(cause.toString());
        }
    }

    /** What the trial says at first. */
    private record Init(String host, int port, long watchdogMs, Integer timeoutMs) {}

    private interface Library {
        Map<String, Object> hello();

        void open(Init init);

        /** What was granted, or null. No limit of the wait is null, and the watchdog's lease as well. */
        Object acquire(String name, Long waitMs, Long leaseMs) throws Exception;

        /** The time until which the owner of a lease may rely on it by the library's account, in milliseconds of Unix time, or null. */
        default Long untilMs(Object held) {
            return null;
        }

        /** The fencing token of what was granted, or null. */
        default Long token(Object held) {
            return null;
        }

        void release(Object held) throws Exception;

        default Object extend(Object held, long leaseMs) throws Exception {
            throw new UnsupportedOperationException("extend");
        }
    }

    private static String versionOf(Class<?> of) {
        // The jars are called artifact-version.jar.
        String jar = of.getProtectionDomain().getCodeSource().getLocation().getPath();
        return jar.replaceAll(".*-(\\d[^-]*)\\.jar$", "$1");
    }

    private static String lettuceVersion() {
        return "Lettuce " + versionOf(RedisClient.class);
    }

    /**
     * With its defaults; or careful: with an interval of pings as long as the time-out, by which Redisson finds out that a connection is silent,
     * and with the remaining time that a lock tells when it is asked.
     */
    private static final class RedissonLibrary implements Library {
        private final boolean careful;

        RedissonLibrary(boolean careful) {
            this.careful = careful;
        }

        private RedissonClient client;

        @Override
        public Map<String, Object> hello() {
            var can = List.of("wait", "watchdog");
            var library = careful ? "Redisson RLock, pingConnectionInterval and remainTimeToLive()" : "Redisson RLock";
            return Map.of("library", library, "version", versionOf(Redisson.class), "can", can);
        }

        @Override
        public void open(Init init) {
            var config = new Config();
            config.setLockWatchdogTimeout(init.watchdogMs);
            var server = config.useSingleServer().setAddress("redis://" + init.host + ":" + init.port);
            if (init.timeoutMs != null) {
                server.setTimeout(init.timeoutMs);
                if (careful) {
                    server.setPingConnectionInterval(init.timeoutMs);
                }
            }
            client = Redisson.create(config);
        }

        @Override
        public Object acquire(String name, Long waitMs, Long leaseMs) throws Exception {
            RLock lock = client.getLock(name);
            long lease = leaseMs == null ? -1 : leaseMs;
            if (waitMs == null) {
                lock.lock(lease, TimeUnit.MILLISECONDS);
                return lock;
            }
            return lock.tryLock(waitMs, lease, TimeUnit.MILLISECONDS) ? lock : null;
        }

        @Override
        public Long untilMs(Object held) {
            if (!careful) {
                return null;
            }
            var lock = (RLock) held;
            // Counted from before it was asked for. It is the time of the key, which may be another owner's.
            long asked = System.currentTimeMillis();
            long left = lock.remainTimeToLive();
            return lock.isHeldByCurrentThread() && left > 0 ? asked + left : asked;
        }

        @Override
        public void release(Object held) throws NotHeld {
            try {
                ((RLock) held).unlock();
            } catch (IllegalMonitorStateException error) {
                throw new NotHeld(error);
            }
        }
    }

    /** Its lock with fencing tokens. */
    private static final class FencedLibrary implements Library {
        private final RedissonLibrary redisson = new RedissonLibrary(false);

        private record Held(RFencedLock lock, Long token) {}

        @Override
        public Map<String, Object> hello() {
            var can = List.of("wait", "watchdog", "token");
            return Map.of("library", "Redisson RFencedLock", "version", versionOf(Redisson.class), "can", can);
        }

        @Override
        public void open(Init init) {
            redisson.open(init);
        }

        @Override
        public Object acquire(String name, Long waitMs, Long leaseMs) {
            RFencedLock lock = redisson.client.getFencedLock(name);
            long lease = leaseMs == null ? -1 : leaseMs;
            Long token = waitMs == null
                    ? lock.lockAndGetToken(lease, TimeUnit.MILLISECONDS)
                    : lock.tryLockAndGetToken(waitMs, lease, TimeUnit.MILLISECONDS);
            return token == null ? null : new Held(lock, token);
        }

        @Override
        public Long token(Object held) {
            return ((Held) held).token;
        }

        @Override
        public void release(Object held) throws NotHeld {
            redisson.release(((Held) held).lock);
        }
    }

    private static LettuceConnectionFactory lettuce(Init init) {
        var client = LettuceClientConfiguration.builder();
        if (init.timeoutMs != null) {
            client.commandTimeout(Duration.ofMillis(init.timeoutMs));
        }
        var factory = new LettuceConnectionFactory(new RedisStandaloneConfiguration(init.host, init.port), client.build());
        factory.afterPropertiesSet();
        factory.start();
        factory.getConnection().ping();
        return factory;
    }

    /** Its leases are those of a registry. */
    private static final class SpringLibrary implements Library {
        private final Map<Long, RedisLockRegistry> registries = new HashMap<>();
        private final ThreadPoolTaskScheduler renewals = new ThreadPoolTaskScheduler();
        private RedisLockRegistry renewed;
        private LettuceConnectionFactory redis;

        private record Held(RedisLockRegistry registry, String name, Lock lock) {}

        @Override
        public Map<String, Object> hello() {
            var can = List.of("wait", "extend", "watchdog");
            var version = versionOf(RedisLockRegistry.class);
            var library = "Spring Integration RedisLockRegistry";
            return Map.of("library", library, "version", version, "driver", lettuceVersion(), "key", "trial:{}", "can", can);
        }

        @Override
        public void open(Init init) {
            redis = lettuce(init);
            renewals.initialize();
            renewed = new RedisLockRegistry(redis, "trial", init.watchdogMs);
            renewed.setRenewalTaskScheduler(renewals);
        }

        @Override
        public Object acquire(String name, Long waitMs, Long leaseMs) throws Exception {
            var registry = leaseMs == null
                    ? renewed
                    : registries.computeIfAbsent(leaseMs, lease -> new RedisLockRegistry(redis, "trial", lease));
            Lock lock = registry.obtain(name);
            if (waitMs == null) {
                lock.lock();
            } else if (!lock.tryLock(waitMs, TimeUnit.MILLISECONDS)) {
                return null;
            }
            return new Held(registry, name, lock);
        }

        @Override
        public void release(Object held) throws NotHeld {
            try {
                ((Held) held).lock.unlock();
            } catch (IllegalStateException | ConcurrentModificationException error) {
                throw new NotHeld(error);
            }
        }

        @Override
        public Object extend(Object held, long leaseMs) throws NotHeld {
            try {
                ((Held) held).registry.renewLock(((Held) held).name);
                return held;
            } catch (IllegalStateException error) {
                throw new NotHeld(error);
            }
        }
    }

    /** Its provider compares the value of a key before it changes it only if it is told to. */
    private static final class ShedLibrary implements Library {
        private final boolean safeUpdate;

        ShedLibrary(boolean safeUpdate) {
            this.safeUpdate = safeUpdate;
        }

        private RedisLockProvider provider;

        @Override
        public Map<String, Object> hello() {
            var version = versionOf(RedisLockProvider.class);
            var library = safeUpdate ? "ShedLock with safeUpdate" : "ShedLock";
            var can = List.of("extend");
            return Map.of("library", library, "version", version, "driver", lettuceVersion(), "key", "job-lock:trial:{}", "can", can);
        }

        @Override
        public void open(Init init) {
            var builder = new RedisLockProvider.Builder(lettuce(init)).environment("trial");
            // Otherwise its default is on trial.
            provider = (safeUpdate ? builder.safeUpdate(true) : builder).build();
        }

        @Override
        public Object acquire(String name, Long waitMs, Long leaseMs) {
            var lease = Duration.ofMillis(leaseMs);
            return provider.lock(new LockConfiguration(Instant.now(), name, lease, Duration.ZERO)).orElse(null);
        }

        @Override
        public void release(Object held) {
            ((SimpleLock) held).unlock();
        }

        @Override
        public Object extend(Object held, long leaseMs) throws NotHeld {
            var extended = ((SimpleLock) held).extend(Duration.ofMillis(leaseMs), Duration.ZERO);
            return extended.orElseThrow(() -> new NotHeld(new IllegalStateException("it was not extended")));
        }
    }

    private final Library library;
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final Gson gson = new GsonBuilder().serializeNulls().create();
    private final Map<String, String> names = new HashMap<>();
    private final Map<Long, Object> holds = new HashMap<>();

    private Peer(Library library) {
        this.library = library;
    }

    private synchronized void say(Map<String, Object> message) {
        out.println(gson.toJson(message));
    }

    private static Long number(JsonObject asked, String name) {
        return asked.get(name).isJsonNull() ? null : (Long) asked.get(name).getAsLong();
    }

    private String answer(JsonObject asked, Map<String, Object> said) throws Exception {
        switch (asked.get("type").getAsString()) {
            case "init" -> {
                for (var each : asked.getAsJsonArray("locks")) {
                    var lock = each.getAsJsonObject();
                    names.put(lock.get("lock").getAsString(), lock.get("name").getAsString());
                    String[] address = lock.getAsJsonArray("nodes").get(0).getAsString().split(":");
                    Long timeout = number(asked, "timeout_ms");
                    var timeoutMs = timeout == null ? null : (Integer) timeout.intValue();
                    long watchdog = number(asked, "watchdog_ms");
                    library.open(new Init(address[0], Integer.parseInt(address[1]), watchdog, timeoutMs));
                }
                return "ready";
            }
            case "acquire" -> {
                String name = names.get(asked.get("lock").getAsString());
                Long lease = number(asked, "lease_ms");
                Object held = library.acquire(name, number(asked, "wait_ms"), lease);
                if (held == null) {
                    return "refused";
                }
                // A lock that is renewed has no end that is known beforehand.
                said.put("until_ms", lease == null ? null : library.untilMs(held));
                if (library.token(held) != null) {
                    said.put("token", library.token(held));
                }
                holds.put(number(asked, "id"), held);
                return "granted";
            }
            case "release" -> {
                library.release(holds.get(number(asked, "hold")));
                return "released";
            }
            case "extend" -> {
                long hold = number(asked, "hold");
                holds.put(hold, library.extend(holds.get(hold), number(asked, "lease_ms")));
                return "extended";
            }
            default -> throw new IllegalArgumentException("no request of type " + asked.get("type"));
        }
    }

    private void obey(String line) {
        var asked = JsonParser.parseString(line).getAsJsonObject();
        var said = new HashMap<String, Object>();
        said.put("id", number(asked, "id"));
        try {
            said.put("type", answer(asked, said));
        } catch (Throwable error) {
            said.remove("until_ms");
            said.remove("token");
            said.put("type", "error");
            said.put("text", String.valueOf(error));
            said.put("definite", error instanceof NotHeld);
        }
        say(said);
    }

    /** Loads the classes of the library, by a connection that is refused: that takes seconds, and is not what is on trial. */
    private static void warmUp(Library library) {
        try {
            library.open(new Init("127.0.0.1", 1, 30_000, 100));
        } catch (RuntimeException refused) {
            // Nothing listens on that port.
        }
    }

    public static void main(String[] arguments) throws Exception {
        Library library = switch (arguments.length == 1 ? arguments[0] : "") {
            case "redisson" -> new RedissonLibrary(false);
            case "redisson-careful" -> new RedissonLibrary(true);
            case "redisson-fenced" -> new FencedLibrary();
            case "spring" -> new SpringLibrary();
            case "shedlock" -> new ShedLibrary(false);
            case "shedlock-safe" -> new ShedLibrary(true);
            default -> {
                System.err.println("usage: Peer redisson|redisson-careful|redisson-fenced|spring|shedlock|shedlock-safe");
                System.exit(1);
                yield null;
            }
        };
        warmUp(library);
        var peer = new Peer(library);
        var hello = new HashMap<>(library.hello());
        hello.put("type", "hello");
        hello.put("protocol", 1);
        peer.say(hello);
        var thread = Executors.newSingleThreadExecutor();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String asked = line;
            thread.execute(() -> peer.obey(asked));
        }
        System.exit(0);
    }
}
