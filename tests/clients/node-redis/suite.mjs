// node-redis over RESP3: its typed replies, transactions, scripts, functions, pub/sub, and its client-side cache.
import { inspect } from "node:util";
import { BasicClientSideCache, createClient, defineScript } from "redis";

const url = `redis://${process.env.REDIS_HOST}:${process.env.REDIS_PORT}`;
const shown = (value) => {
  if (value instanceof Error) return `${value.constructor.name}: ${value.message}`;
  const plain = value && typeof value === "object" && !Array.isArray(value) && Object.getPrototypeOf(value) === null ? { ...value } : value;
  return inspect(plain, { depth: null, breakLength: Infinity, maxArrayLength: null, sorted: true });
};
const until = async (holds) => {
  for (const deadline = Date.now() + 20_000; !(await holds()); ) {
    if (Date.now() > deadline) throw new Error("what was waited for did not come");
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
};

const suite = async (RESP) => {
  const say = (what, value) => console.log(`resp${RESP} ${what}: ${shown(value)}`);
  const tell = async (what, promise) => say(what, await Promise.resolve(promise).catch((error) => error));
  const scripts = {
    add: defineScript({
      NUMBER_OF_KEYS: 1,
      SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
      parseCommand: (parser, key, by) => { parser.pushKey(key); parser.push(by.toString()); },
      transformReply: (reply) => reply,
    }),
  };
  const connect = async (options = {}) => createClient({ url, RESP, ...options }).on("error", () => {}).connect();
  const redis = await connect({ scripts, name: "suite" });
  const other = await connect();
  const blocked = async () => (await other.info("clients")).includes("blocked_clients:1");

  await redis.flushAll();
  await tell("ping", redis.ping());
  await tell("name", redis.clientGetName());
  await tell("set", redis.set("s", "1", { expiration: { type: "EX", value: 100 }, condition: "NX" }));
  // Whole seconds, of which a busy machine may lose some.
  await tell("ttl", redis.ttl("s").then((left) => left > 80 && left <= 100));
  await tell("wrong type", redis.lPush("s", "x"));
  await tell("unknown", redis.sendCommand(["NOSUCH", "a"]));
  await tell("hset", redis.hSet("h", { f: "1", g: "zwei" }));
  await tell("hgetall", redis.hGetAll("h"));
  // More than there are: all of them in their order, where fewer would be drawn by each server's own PRNG.
  await tell("hrandfield", redis.hRandFieldCountWithValues("h", 9));
  await tell("sadd", redis.sAdd("set", ["a", "b"]));
  await tell("sismember", redis.sIsMember("set", "a"));
  await tell("zadd", redis.zAdd("z", [{ score: 1.5, value: "a" }, { score: Infinity, value: "b" }]));
  await tell("zrange", redis.zRangeWithScores("z", 0, -1));
  await tell("zincrby", redis.zIncrBy("z", 0.1, "a"));
  await tell("config", redis.configGet("hash-max-listpack-*"));
  await tell("geoadd", redis.geoAdd("g", { longitude: 13.361389, latitude: 38.115556, member: "Palermo" }));
  await tell("geosearch", redis.geoSearchWith("g", { longitude: 15, latitude: 37 }, { radius: 300, unit: "km" }, ["WITHDIST", "WITHCOORD"]));
  await tell("lcs", redis.lcsIdx("s", "h"));
  await tell("dump", redis.dump("none"));
  await tell("command", redis.commandInfo(["get", "xadd"]));

  await tell("multi", redis.multi().set("a", "1").incr("a").get("a").exec());
  await tell("multi fails", redis.multi().set("a", "x").incr("a").exec());
  await tell("pipeline", Promise.all([redis.set("p", "1"), redis.incr("p"), redis.incrBy("p", 5), redis.get("p")]));
  await redis.watch("a");
  await other.set("a", "2");
  await tell("watched", redis.multi().get("a").exec());

  await tell("script", redis.add("n", 5));
  await redis.scriptFlush();
  await tell("script again", redis.add("n", 5));
  await tell("eval", redis.eval("redis.setresp(3); return {1, 'two', {double = 3.5}, {set = {x = true}}, true}"));
  await tell("function", redis.functionLoad("#!lua name=lib\nredis.register_function('f', function(k, a) return {map = {answer = 42}} end)", { REPLACE: true }));
  await tell("fcall", redis.fCall("f", { keys: [], arguments: [] }));
  await tell("functions", redis.functionListWithCode());
  await tell("stats", redis.functionStats());
  await tell("function delete", redis.functionDelete("lib"));

  const taker = await connect();
  const popped = taker.blPop(["q1", "q2"], 20);
  await until(blocked);
  await redis.rPush("q2", "x");
  await tell("blpop", popped);
  const moved = taker.bzPopMin("zq", 20);
  await until(blocked);
  await redis.zAdd("zq", { score: 2, value: "m" });
  await tell("bzpopmin", moved);

  const subscriber = await connect();
  const heard = [];
  await subscriber.subscribe("news", (message, channel) => heard.push([channel, message]));
  await subscriber.pSubscribe("n*", (message, channel) => heard.push(["pattern", channel, message]));
  await subscriber.sSubscribe("shard", (message, channel) => heard.push(["shard", channel, message]));
  await tell("publish", redis.publish("news", "hello"));
  await tell("spublish", redis.sPublish("shard", "hello"));
  await until(() => heard.length === 3);
  say("heard", heard);
  await tell("numsub", redis.pubSubNumSub(["news"]));

  await tell("xadd", redis.xAdd("x", "1-1", { f: "v" }));
  await tell("xadd", redis.xAdd("x", "2-1", { f: "w" }));
  await tell("xgroup", redis.xGroupCreate("x", "g", "0"));
  await tell("xreadgroup", redis.xReadGroup("g", "c", { key: "x", id: ">" }, { COUNT: 1 }));
  await tell("xpending", redis.xPending("x", "g"));
  await tell("xinfo", redis.xInfoStream("x"));
  await tell("xinfo groups", redis.xInfoGroups("x"));
  await tell("xautoclaim", redis.xAutoClaim("x", "g", "d", 0, "0-0"));
  const read = taker.xRead({ key: "x", id: "$" }, { BLOCK: 20_000 });
  await until(blocked);
  await redis.xAdd("x", "3-1", { late: "yes" });
  await tell("xread", read);

  await tell("acl", redis.aclSetUser("eve", ["on", ">secret", "~e:*", "+@read", "+ping"]));
  await tell("acl", redis.aclGetUser("eve"));
  const eve = await connect({ username: "eve", password: "secret" }).catch((error) => error);
  if (eve instanceof Error) say("eve", eve);
  else {
    await tell("eve", eve.get("e:1"));
    await tell("eve", eve.get("f:1"));
    await tell("eve", eve.set("e:1", "x"));
    eve.destroy();
  }
  const keys = [];
  for await (const found of redis.scanIterator({ COUNT: 2 })) keys.push(...found);
  say("scan", [...new Set(keys)].sort());

  if (RESP === 3) {
    const clientSideCache = new BasicClientSideCache({ ttl: 0, maxEntries: 0, evictPolicy: "LRU", recordStats: true });
    const cached = await connect({ clientSideCache });
    await redis.set("c", "1");
    for (let i = 0; i < 3; i++) await tell("cached", cached.get("c"));
    say("hits", clientSideCache.stats().hitCount);
    await redis.set("c", "2");
    await until(async () => (await cached.get("c")) === "2");
    await tell("after a change", cached.get("c"));
    cached.destroy();
  }
  for (const each of [redis, other, taker, subscriber]) await each.close();
};

await suite(2);
await suite(3);
console.log("done");
