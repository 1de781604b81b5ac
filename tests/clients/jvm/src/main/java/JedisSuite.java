import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.args.ListDirection;
import redis.clients.jedis.params.GetExParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XAddParams;
import redis.clients.jedis.params.XAutoClaimParams;
import redis.clients.jedis.params.XReadGroupParams;

/** Jedis: one connection, used as most code uses it. */
final class JedisSuite {
    static void run(Suite suite) throws Exception {
        try (Jedis jedis = new Jedis(Suite.HOST, Suite.PORT); Jedis other = new Jedis(Suite.HOST, Suite.PORT)) {
            jedis.flushAll();
            suite.tell("ping", jedis::ping);
            suite.tell("set", () -> jedis.set("s", "1", SetParams.setParams().ex(100).nx()));
            // Whole seconds, of which a busy machine may lose some.
            suite.tell("ttl", () -> jedis.ttl("s") > 80 && jedis.ttl("s") <= 100);
            suite.tell("getex", () -> jedis.getEx("s", GetExParams.getExParams().persist()));
            suite.tell("incrBy", () -> jedis.incrBy("s", 41));
            suite.tell("wrong type", () -> jedis.lpush("s", "x"));
            suite.tell("hset", () -> jedis.hset("h", Map.of("f", "1", "g", "zwei")));
            suite.tell("hgetAll", () -> jedis.hgetAll("h"));
            suite.tell("rpush", () -> jedis.rpush("l", "a", "b", "c"));
            suite.tell("lmpop", () -> jedis.lmpop(ListDirection.LEFT, 2, "none", "l"));
            suite.tell("zadd", () -> jedis.zadd("z", Map.of("a", 1.5, "b", 2.0)));
            suite.tell("zrange", () -> jedis.zrangeWithScores("z", 0, -1));
            suite.tell("geoadd", () -> jedis.geoadd("g", 13.361389, 38.115556, "Palermo"));
            suite.tell("geopos", () -> jedis.geopos("g", "Palermo", "none"));
            suite.tell("pfadd", () -> jedis.pfadd("p", "a", "b", "c"));
            suite.tell("pfcount", () -> jedis.pfcount("p"));
            suite.tell("bitfield", () -> jedis.bitfield("b", "SET", "u4", "#1", "9", "GET", "u8", "0"));
            suite.tell("dump and restore", () -> jedis.restore("h2", 0, jedis.dump("h")));
            suite.tell("restored", () -> jedis.hgetAll("h2"));

            suite.tell("pipeline", () -> {
                var pipeline = jedis.pipelined();
                pipeline.set("a", "1");
                pipeline.incr("a");
                pipeline.lpush("a", "x");
                pipeline.get("a");
                return pipeline.syncAndReturnAll();
            });
            suite.tell("multi", () -> {
                var transaction = jedis.multi();
                transaction.incr("a");
                transaction.get("a");
                return transaction.exec();
            });
            suite.tell("watched", () -> {
                jedis.watch("a");
                other.set("a", "7");
                var transaction = jedis.multi();
                transaction.get("a");
                return transaction.exec();
            });
            suite.tell("eval", () -> jedis.eval("return {KEYS[1], ARGV[1], 3.9, false}", List.of("k"), List.of("v")));
            suite.tell("evalsha", () -> jedis.evalsha("ffffffffffffffffffffffffffffffffffffffff"));
            suite.tell("function", () -> jedis.functionLoad("#!lua name=lib\nredis.register_function('f', function() return 42 end)"));
            suite.tell("fcall", () -> jedis.fcall("f", List.of(), List.of()));

            var popped = CompletableFuture.supplyAsync(() -> other.blpop(20, "q1", "q2"));
            Suite.until(() -> jedis.info("clients").contains("blocked_clients:1"));
            suite.tell("rpush", () -> jedis.rpush("q2", "x"));
            suite.tell("blpop", popped::get);
            suite.tell("none", () -> other.blpop(0.01, "none"));

            var heard = new LinkedBlockingQueue<String>();
            var listener = new JedisPubSub() {
                @Override
                public void onMessage(String channel, String message) {
                    heard.add(channel + " " + message);
                }

                @Override
                public void onSubscribe(String channel, int channels) {
                    heard.add("subscribed " + channel + " " + channels);
                }
            };
            var listening = CompletableFuture.runAsync(() -> other.subscribe(listener, "news"));
            suite.say("heard", heard.poll(20, TimeUnit.SECONDS));
            suite.tell("publish", () -> jedis.publish("news", "hello"));
            suite.say("heard", heard.poll(20, TimeUnit.SECONDS));
            listener.unsubscribe();
            listening.get(20, TimeUnit.SECONDS);

            suite.tell("xadd", () -> jedis.xadd("x", Map.of("f", "v"), XAddParams.xAddParams().id("1-1")));
            suite.tell("xadd", () -> jedis.xadd("x", Map.of("f", "w"), XAddParams.xAddParams().id("1-*")));
            suite.tell("xgroup", () -> jedis.xgroupCreate("x", "g", new StreamEntryID(0, 0), false));
            suite.tell("xreadgroup", () -> jedis.xreadGroup(
                    "g", "c", XReadGroupParams.xReadGroupParams().count(1),
                    Map.of("x", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY)));
            suite.tell("xpending", () -> jedis.xpending("x", "g").getConsumerMessageCount());
            suite.tell("xautoclaim", () -> jedis.xautoclaim(
                    "x", "g", "d", 0, new StreamEntryID(0, 0), XAutoClaimParams.xAutoClaimParams()));
            suite.tell("xack", () -> jedis.xack("x", "g", new StreamEntryID(1, 1)));
            suite.tell("xinfo", () -> jedis.xinfoStream("x").getStreamInfo());
            suite.tell("acl", () -> jedis.aclSetUser("eve", "on", "nopass", "+get", "~e:*"));
            suite.tell("acl", () -> jedis.aclDryRun("eve", "SET", "e:1", "x"));
            suite.tell("acl", () -> jedis.aclDelUser("eve"));
        }
    }
}
