// ioredis: pipelines, transactions, scripts as commands, pub/sub, blocking, streams, scanning.
import { inspect } from "node:util";
import Redis from "ioredis";

const address = { host: process.env.REDIS_HOST, port: Number(process.env.REDIS_PORT) };
const connect = (options = {}) => new Redis({ ...address, ...options });
const redis = connect();
const shown = (value) =>
  inspect(value instanceof Error ? `${value.name}: ${value.message}` : value, { depth: null, breakLength: Infinity, maxArrayLength: null });
const say = (what, value) => console.log(`${what}: ${shown(value)}`);
const tell = async (what, promise) => say(what, await promise.catch((error) => error));
const until = async (holds) => {
  for (const deadline = Date.now() + 20_000; !(await holds()); ) {
    if (Date.now() > deadline) throw new Error("what was waited for did not come");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
};

await redis.flushall();
await tell("ping", redis.ping());
await tell("set", redis.set("s", "ä", "EX", 100, "NX"));
await tell("set again", redis.set("s", "ö", "NX"));
await tell("get", redis.get("s"));
await tell("buffer", redis.getBuffer("s"));
// Whole seconds, of which a busy machine may lose some.
await tell("ttl", redis.ttl("s").then((left) => left > 80 && left <= 100));
await tell("wrong type", redis.lpush("s", 1));
await tell("arity", redis.call("GET"));
await tell("unknown", redis.call("NOSUCH", "a"));
await tell("hset", redis.hset("h", { f: 1, g: "zwei" }));
await tell("hgetall", redis.hgetall("h"));
await tell("zadd", redis.zadd("z", 1, "a", 2.5, "b", "-inf", "c"));
await tell("zrange", redis.zrange("z", 0, -1, "WITHSCORES"));
await tell("zpopmax", redis.zpopmax("z"));
await tell("geoadd", redis.geoadd("g", 13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"));
await tell("geosearch", redis.geosearch("g", "FROMMEMBER", "Palermo", "BYRADIUS", 200, "km", "ASC", "WITHDIST", "WITHCOORD"));
await tell("bitfield", redis.bitfield("b", "INCRBY", "i5", 100, 1, "GET", "u4", 0));
await tell("pfadd", redis.pfadd("p", "a", "b", "c"));
await tell("pfcount", redis.pfcount("p"));
await tell("object", redis.object("ENCODING", "h"));

await tell("pipeline", redis.pipeline().set("a", 1).incr("a").lpush("a", 1).get("a").exec());
const many = redis.pipeline();
for (let i = 0; i < 1000; i++) many.rpush("many", i);
await tell("thousand", many.exec().then((replies) => replies.at(-1)));
await tell("multi", redis.multi().set("a", 5).incr("a").lpush("a", 1).exec());
await tell("aborted", redis.multi().set("a").exec());
await redis.watch("a");
const other = connect();
await other.set("a", 9);
await tell("watched", redis.multi().get("a").exec());

redis.defineCommand("both", { numberOfKeys: 2, lua: "return {redis.call('GET', KEYS[1]), KEYS[2], ARGV[1]}" });
await tell("script", redis.both("a", "k", "argument"));
await redis.script("FLUSH");
await tell("script again", redis.both("a", "k", "argument"));
await tell("script error", redis.eval("return redis.call('LPUSH', KEYS[1], 1)", 1, "a"));
await tell("function", redis.call("FUNCTION", "LOAD", "#!lua name=l\nredis.register_function{function_name='f', callback=function(k, a) return redis.call('GET', k[1]) end, flags={'no-writes'}}"));
await tell("fcall", redis.call("FCALL_RO", "f", 1, "a"));
await tell("function list", redis.call("FUNCTION", "LIST"));

const blocked = connect();
const popped = blocked.blpop("q1", "q2", 20);
await until(async () => (await redis.info("clients")).includes("blocked_clients:1"));
await tell("rpush", redis.rpush("q2", "x", "y"));
await tell("blpop", popped);
await tell("blpop of nothing", blocked.blpop("nothing", 0.01));
const waiting = blocked.brpop("nothing", 0).catch((error) => error);
await until(async () => (await redis.info("clients")).includes("blocked_clients:1"));
const id = (await redis.client("LIST")).split("\n").find((line) => line.includes("cmd=brpop")).match(/^id=(\d+)/)[1];
await tell("unblock", redis.client("UNBLOCK", id, "ERROR"));
say("unblocked", await waiting);

const subscriber = connect();
const heard = [];
subscriber.on("message", (...message) => heard.push(["message", ...message]));
subscriber.on("pmessage", (...message) => heard.push(["pmessage", ...message]));
subscriber.on("smessage", (...message) => heard.push(["smessage", ...message]));
await tell("subscribe", subscriber.subscribe("news", "weather"));
await tell("psubscribe", subscriber.psubscribe("n*"));
await tell("ssubscribe", subscriber.call("SSUBSCRIBE", "shard").catch((error) => error));
await tell("publish", redis.publish("news", "hello"));
await until(() => heard.length >= 2);
say("heard", heard);
await tell("unsubscribe", subscriber.unsubscribe("news"));
await tell("numsub", redis.pubsub("NUMSUB", "news", "weather"));

for (let i = 1; i <= 3; i++) await tell("xadd", redis.xadd("x", `${i}-0`, "n", i));
await tell("xgroup", redis.xgroup("CREATE", "x", "g", "0"));
await tell("xreadgroup", redis.xreadgroup("GROUP", "g", "c", "COUNT", 2, "STREAMS", "x", ">"));
await tell("xack", redis.xack("x", "g", "1-0"));
await tell("xpending", redis.xpending("x", "g"));
const next = blocked.xread("BLOCK", 20_000, "STREAMS", "x", "$");
await until(async () => (await redis.info("clients")).includes("blocked_clients:1"));
await redis.xadd("x", "9-9", "late", "1");
await tell("xread", next);
await tell("xautoclaim", redis.xautoclaim("x", "g", "d", 0, "-"));

const seen = [];
for await (const keys of redis.scanStream({ match: "?", count: 3 })) seen.push(...keys);
say("scan", [...new Set(seen)].sort());
await tell("monitor", (async () => {
  const asking = connect();
  // What it asks when it connects must not be what the monitor sees.
  await asking.ping();
  const monitor = await asking.monitor();
  const line = new Promise((resolve) => monitor.on("monitor", (_, args) => resolve(args)));
  await redis.set("monitored", "yes");
  const args = await line;
  monitor.disconnect();
  asking.disconnect();
  return args;
})());
await tell("quit", redis.quit());
for (const each of [other, blocked, subscriber]) each.disconnect();
console.log("done");
