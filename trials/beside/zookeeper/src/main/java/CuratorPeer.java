import com.google.gson.GsonBuilder;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A peer with Apache Curator's InterProcessMutex on ZooKeeper.
 *
 * <p>The session's timeout is the length that `init` names. As Curator's documentation advises, the
 * states SUSPENDED and LOST of the connection are reports of a lost lock. With the argument `token`,
 * the zxid of the lock's node is the fencing token; it costs another request after a grant.
 */
public final class CuratorPeer {
    /** It tells its own node's path to this peer, which its class does for those that extend it. */
    private static final class Mutex extends InterProcessMutex {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        String node() {
            return getLockPath();
        }
    }

    private final boolean token;
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private final Map<Long, Mutex> holds = new ConcurrentHashMap<>();
    private CuratorFramework client;
    private String path;

    private CuratorPeer(boolean token) {
        this.token = token;
    }

    private synchronized void say(Map<String, Object> message) {
        out.println(new GsonBuilder().serializeNulls().create().toJson(message));
    }

    private static Long number(JsonObject asked, String name) {
        return asked.get(name).isJsonNull() ? null : (Long) asked.get(name).getAsLong();
    }

    private void open(JsonObject asked) throws Exception {
        var lock = asked.getAsJsonArray("locks").get(0).getAsJsonObject();
        path = "/" + lock.get("name").getAsString();
        var nodes = lock.getAsJsonArray("nodes").asList().stream().map(node -> node.getAsString()).toList();
        var builder = CuratorFrameworkFactory.builder().connectString(String.join(",", nodes));
        Long timeout = number(asked, "timeout_ms");
        if (timeout != null) {
            builder.connectionTimeoutMs(timeout.intValue());
        }
        // The retries are those of Curator's guide to getting started.
        builder.sessionTimeoutMs(number(asked, "watchdog_ms").intValue());
        client = builder.retryPolicy(new ExponentialBackoffRetry(1000, 3)).build();
        client.getConnectionStateListenable().addListener((of, state) -> {
            if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
                holds.keySet().forEach(hold -> say(Map.of("type", "lost", "hold", hold)));
            }
        });
        client.start();
        if (!client.blockUntilConnected(20, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection");
        }
    }

    private String answer(JsonObject asked, Map<String, Object> said) throws Exception {
        switch (asked.get("type").getAsString()) {
            case "init" -> {
                open(asked);
                return "ready";
            }
            case "acquire" -> {
                var mutex = new Mutex(client, path);
                Long wait = number(asked, "wait_ms");
                if (wait == null) {
                    mutex.acquire();
                } else if (!mutex.acquire(wait, TimeUnit.MILLISECONDS)) {
                    return "refused";
                }
                if (token) {
                    var node = client.checkExists().forPath(mutex.node());
                    if (node == null) {
                        throw new IllegalStateException("the node of the lock is gone");
                    }
                    said.put("token", node.getCzxid());
                }
                holds.put(number(asked, "id"), mutex);
                return "granted";
            }
            case "release" -> {
                var mutex = holds.get(number(asked, "hold"));
                mutex.release();
                holds.remove(number(asked, "hold"));
                return "released";
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
            said.put("type", "error");
            said.put("text", String.valueOf(error));
            said.put("definite", false);
        }
        say(said);
    }

    public static void main(String[] arguments) throws Exception {
        var token = List.of(arguments).contains("token");
        var peer = new CuratorPeer(token);
        // Loads Curator's classes before the hello, by a connection that is refused.
        var unused = CuratorFrameworkFactory.newClient("127.0.0.1:1", 1000, 100, new ExponentialBackoffRetry(10, 1));
        unused.start();
        unused.blockUntilConnected(200, TimeUnit.MILLISECONDS);
        unused.close();
        var jar = InterProcessMutex.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        var can = token ? List.of("wait", "watchdog", "token") : List.of("wait", "watchdog");
        var version = jar.replaceAll(".*-(\\d[^-]*)\\.jar$", "$1");
        peer.say(Map.of("type", "hello", "protocol", 1, "library", "Curator InterProcessMutex", "version", version, "can", can));
        // Curator knows a holder by its thread, so one thread does everything.
        var thread = Executors.newSingleThreadExecutor();
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String asked = line;
            thread.execute(() -> peer.obey(asked));
        }
        System.exit(0);
    }
}
