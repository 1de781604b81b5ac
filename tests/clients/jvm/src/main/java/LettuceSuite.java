import io.lettuce.core.Consumer;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanArgs;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.ScriptOutputType;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.XAddArgs;
import io.lettuce.core.XReadArgs;
import io.lettuce.core.ZAddArgs;
import io.lettuce.core.ScoredValue;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.util.ArrayList;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/** Lettuce: RESP3 by itself, everything asynchronous below, and a client-side cache. */
final class LettuceSuite {
    static void run(Suite suite) throws Exception {
        var client = RedisClient.create(RedisURI.create(Suite.HOST, Suite.PORT));
        try (var connection = client.connect(); var second = client.connect(); var third = client.connect()) {
            var redis = connection.sync();
            var other = second.sync();
            redis.flushall();
            suite.tell("ping", redis::ping);
            suite.tell("set", () -> redis.set("s", "1"));
            suite.tell("incrbyfloat", () -> redis.incrbyfloat("s", 0.25));
            suite.tell("wrong type", () -> redis.lpush("s", "x"));
            suite.tell("hset", () -> redis.hset("h", Map.of("f", "1", "g", "2")));
            suite.tell("hgetall", () -> redis.hgetall("h"));
            suite.tell("sadd", () -> redis.sadd("set", "a", "b"));
            suite.tell("smembers", () -> redis.smembers("set"));
            suite.tell("zadd", () -> redis.zadd("z", ZAddArgs.Builder.ch(), ScoredValue.just(1.5, "a"), ScoredValue.just(2, "b")));
            suite.tell("zrange", () -> redis.zrangeWithScores("z", 0, -1));
            suite.tell("zscore", () -> redis.zscore("z", "a"));
            suite.tell("geoadd", () -> redis.geoadd("g", 13.361389, 38.115556, "Palermo"));
            suite.tell("geopos", () -> redis.geopos("g", "Palermo"));
            suite.tell("eval", () -> redis.eval("return {1, 'two'}", ScriptOutputType.MULTI));
            suite.tell("boolean", () -> redis.eval("redis.setresp(3); return true", ScriptOutputType.BOOLEAN));
            suite.tell("multi", () -> {
                redis.multi();
                redis.set("a", "1");
                redis.incr("a");
                redis.lpush("a", "x");
                return redis.exec().stream().toList();
            });
            suite.tell("pipeline", () -> {
                var async = connection.async();
                var replies = new ArrayList<>();
                for (int i = 0; i < 100; i++) {
                    replies.add(async.incr("n"));
                }
                return async.incr("n").get();
            });
            var popped = third.async().blpop(20, "q1", "q2");
            Suite.until(() -> redis.info("clients").contains("blocked_clients:1"));
            suite.tell("rpush", () -> redis.rpush("q2", "x"));
            suite.tell("blpop", popped::get);

            suite.tell("xadd", () -> redis.xadd("x", XAddArgs.Builder.maxlen(10).id("1-1"), "f", "v"));
            suite.tell("xgroup", () -> redis.xgroupCreate(XReadArgs.StreamOffset.from("x", "0"), "g"));
            suite.tell("xreadgroup", () -> redis.xreadgroup(Consumer.from("g", "c"), XReadArgs.StreamOffset.lastConsumed("x")));
            suite.tell("xpending", () -> redis.xpending("x", "g"));
            suite.tell("xack", () -> redis.xack("x", "g", "1-1"));
            suite.tell("scan", () -> {
                var keys = new TreeSet<String>();
                for (var each = ScanIterator.scan(redis, ScanArgs.Builder.limit(2).match("?")); each.hasNext(); ) {
                    keys.add(each.next());
                }
                return keys;
            });

            // A cache that the server keeps fresh: what another client changes must vanish from it.
            var cache = new ConcurrentHashMap<String, String>();
            var frontend = ClientSideCaching.enable(CacheAccessor.forMap(cache), third, TrackingArgs.Builder.enabled());
            other.set("cached", "old");
            suite.say("cached", frontend.get("cached"));
            suite.say("cache", cache);
            other.set("cached", "new");
            Suite.until(cache::isEmpty);
            suite.say("cached", frontend.get("cached"));
            suite.say("cache", cache);
            // Not FLUSHALL: its message names no key, and this version of Lettuce drops it with an exception.
            other.del("cached");
            Suite.until(cache::isEmpty);
            suite.say("cached", frontend.get("cached"));
        }
        client.shutdown();
    }
}
