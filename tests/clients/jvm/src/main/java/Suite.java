import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.function.BooleanSupplier;

/** Three clients of the JVM: Jedis, Lettuce and Redisson. */
public final class Suite {
    static final String HOST = System.getenv("REDIS_HOST");
    static final int PORT = Integer.parseInt(System.getenv("REDIS_PORT"));

    private final String name;

    Suite(String name) {
        this.name = name;
    }

    void say(String what, Object value) {
        System.out.println(name + " " + what + ": " + shown(value));
    }

    /** Says what a call returns, or how it fails. */
    <T> void tell(String what, Callable<T> call) {
        try {
            say(what, call.call());
        } catch (Exception failure) {
            Throwable cause = failure;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            // Redisson adds the random name that it gave itself.
            String words = String.valueOf(cause.getMessage()).replaceAll(" by node id: .*", "");
            say(what, cause.getClass().getSimpleName() + ": " + words);
        }
    }

    static void until(BooleanSupplier holds) throws InterruptedException {
        for (long deadline = System.nanoTime() + 20_000_000_000L; !holds.getAsBoolean(); Thread.sleep(2)) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("what was waited for did not come");
            }
        }
    }

    private static String shown(Object value) {
        if (value instanceof byte[] bytes) {
            return new String(bytes, java.nio.charset.StandardCharsets.UTF_8);
        }
        if (value instanceof Map<?, ?> map) {
            Map<String, String> sorted = new TreeMap<>();
            map.forEach((key, held) -> sorted.put(shown(key), shown(held)));
            return sorted.toString();
        }
        if (value instanceof Collection<?> items) {
            var texts = items.stream().map(Suite::shown);
            return (value instanceof java.util.Set ? texts.sorted() : texts).toList().toString();
        }
        return String.valueOf(value);
    }

    public static void main(String[] arguments) throws Exception {
        JedisSuite.run(new Suite("jedis"));
        LettuceSuite.run(new Suite("lettuce"));
        RedissonSuite.run(new Suite("redisson"));
        System.out.println("done");
        // The libraries leave threads behind that would keep the process for some seconds.
        System.exit(0);
    }
}
