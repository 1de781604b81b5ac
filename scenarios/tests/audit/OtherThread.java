import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import org.redisson.Redisson;
import org.redisson.config.Config;

/** An application that releases its lock on another thread than it acquired it: java OtherThread.java PORT. */
public final class OtherThread {
    public static void main(String[] arguments) throws Exception {
        var config = new Config();
        config.setLockWatchdogTimeout(1_500);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[0]).setConnectionMinimumIdleSize(2);
        var redisson = Redisson.create(config);
        var lock = redisson.getLock("stock");
        lock.lock();
        try {
            CompletableFuture.runAsync(lock::unlock).join();
        } catch (CompletionException error) {
            System.out.println(error.getCause());
        }
        // The watchdog renews the lock that nobody releases.
        Thread.sleep(2_500);
        redisson.shutdown();
    }
}
