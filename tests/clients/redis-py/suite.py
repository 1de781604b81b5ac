"""redis-py, in both protocols."""

import os
import queue
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.exceptions import LockError, NoScriptError, RedisError, ResponseError, WatchError
from redis.retry import Retry

HOST, PORT = os.environ["REDIS_HOST"], int(os.environ["REDIS_PORT"])


def connect(protocol, **more):
    return redis.Redis(HOST, PORT, protocol=protocol, decode_responses=True, **more)


def shown(value):
    """A value as text, the same for the same value: sets have no order of their own."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(k)}: {shown(value[k])}" for k in sorted(value, key=str)) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(shown, value))) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {value}"
    return repr(value)


class Suite:
    def __init__(self, protocol):
        self.protocol = protocol
        self.redis = connect(protocol)

    def say(self, what, value):
        print(f"resp{self.protocol} {what}: {shown(value)}")

    def tell(self, what, call, *args, **named):
        """Says what a call returns, or how it fails."""
        try:
            self.say(what, call(*args, **named))
        except RedisError as error:
            self.say(what, error)

    def run(self):
        self.redis.flushall()
        for name in sorted(vars(Suite)):
            if name.startswith("on_"):
                getattr(self, name)()
                self.redis.flushall()

    def on_connection(self):
        r = self.redis
        self.tell("ping", r.ping)
        self.tell("echo", r.echo, "päng")
        self.tell("name", r.client_setname, "suite")
        self.tell("name", r.client_getname)
        info = r.client_info()
        self.say("client info", {k: info[k] for k in ("name", "db", "sub", "multi", "user", "resp", "lib-name") if k in info})
        server = r.info("server")
        # Valkey has another name for it.
        self.say("info", {k: server[k] for k in ("redis_mode", "server_mode", "arch_bits") if k in server})
        self.say("sections", sorted(k for k in r.info("clients")))
        self.tell("config", r.config_get, "maxmemory*")
        self.tell("config set", r.config_set, "maxmemory", "nonsense")
        self.tell("wrong", r.execute_command, "NOSUCH", "a", "b")
        self.tell("arity", r.execute_command, "GET")
        self.tell("unblock nobody", r.client_unblock, 123456)
        self.tell("select", r.execute_command, "SELECT", 99)

    def on_strings(self):
        r = self.redis
        self.tell("set", r.set, "s", "1", ex=100)
        # Whole seconds, of which a busy machine may lose some.
        self.say("ttl", 80 < r.ttl("s") <= 100)
        self.tell("set nx", r.set, "s", "2", nx=True)
        self.tell("set get", r.set, "s", "3", get=True, keepttl=True)
        self.tell("incr", r.incr, "s", 5)
        self.tell("incrbyfloat", r.incrbyfloat, "s", 0.1)
        self.tell("incr", r.incr, "s")
        self.tell("append", r.append, "s", "xyz")
        self.tell("range", r.getrange, "s", -3, -1)
        self.tell("setrange", r.setrange, "s", 6, "äß")
        self.tell("mset", r.mset, {"a": 1, "b": 2})
        self.tell("mget", r.mget, "a", "b", "c")
        self.tell("getex", r.getex, "a", persist=True)
        self.tell("getdel", r.getdel, "a")
        self.tell("lcs", r.lcs, "s", "b", idx=True)
        self.tell("object", r.object, "ENCODING", "b")
        self.tell("wrong type", r.lpush, "s", 1)

    def on_collections(self):
        r = self.redis
        self.tell("hset", r.hset, "h", mapping={"f": "1", "g": "zwei"})
        self.tell("hgetall", r.hgetall, "h")
        self.tell("hincrbyfloat", r.hincrbyfloat, "h", "f", 1.5)
        self.tell("hmget", r.hmget, "h", ["f", "x"])
        self.tell("hrandfield", r.hrandfield, "h", 2, withvalues=True)
        self.say("hscan", sorted(r.hscan_iter("h")))
        self.tell("rpush", r.rpush, "l", *range(10))
        self.tell("lrange", r.lrange, "l", 2, -3)
        self.tell("lpos", r.lpos, "l", "3")
        self.tell("lmove", r.lmove, "l", "m", "LEFT", "RIGHT")
        self.tell("lmpop", r.lmpop, 2, "none", "l", direction="RIGHT", count=2)
        self.tell("sadd", r.sadd, "s1", 1, 2, 3)
        self.tell("sadd", r.sadd, "s2", 2, 3, 4)
        self.tell("sinter", r.sinter, "s1", "s2")
        self.tell("sintercard", r.sintercard, 2, ["s1", "s2"])
        self.tell("smismember", r.smismember, "s1", [1, 9])
        self.tell("zadd", r.zadd, "z", {"a": 1, "b": 2.5, "c": "inf"})
        self.tell("zadd", r.zadd, "z", {"a": 3}, gt=True, ch=True)
        self.tell("zrange", r.zrange, "z", 0, -1, withscores=True)
        self.tell("zrangebyscore", r.zrangebyscore, "z", "(2.5", "+inf", withscores=True)
        self.tell("zrank", r.zrank, "z", "b")
        self.tell("zscore", r.zscore, "z", "c")
        self.tell("zpopmin", r.zpopmin, "z")
        self.tell("zmscore", r.zmscore, "z", ["a", "x"])
        self.tell("zunion", r.zunion, ["z", "s1"], aggregate="MAX", withscores=True)
        self.tell("sort", r.sort, "s1", desc=True)
        self.say("scan", sorted(r.scan_iter(match="s*")))
        self.tell("type", r.type, "z")
        self.tell("copy", r.copy, "z", "zz")
        self.tell("dump", lambda: r.restore("zzz", 0, r.dump("z")))
        self.tell("rename", r.rename, "none", "x")

    def on_bits_and_places(self):
        r = self.redis
        self.tell("setbit", r.setbit, "b", 7, 1)
        self.tell("bitcount", r.bitcount, "b")
        self.tell("bitpos", r.bitpos, "b", 1)
        self.tell("bitfield", lambda: r.bitfield("b", "SAT").set("u8", 8, 250).incrby("u8", 8, 10).execute())
        self.tell("bitop", r.bitop, "NOT", "c", "b")
        self.tell("pfadd", r.pfadd, "p", *"abcdefg")
        self.tell("pfcount", r.pfcount, "p")
        self.tell("geoadd", r.geoadd, "g", (13.361389, 38.115556, "Palermo", 15.087269, 37.502669, "Catania"))
        self.tell("geodist", r.geodist, "g", "Palermo", "Catania", unit="km")
        self.tell("geopos", r.geopos, "g", "Palermo", "none")
        self.tell("geohash", r.geohash, "g", "Palermo")
        self.tell("geosearch", r.geosearch, "g", longitude=15, latitude=37, radius=200, unit="km",
                  withcoord=True, withdist=True, sort="ASC")

    def on_pipelines(self):
        r = self.redis
        with r.pipeline(transaction=False) as p:
            p.set("a", 1).incr("a").lpush("a", 1).get("a").hgetall("h")
            self.say("pipeline", p.execute(raise_on_error=False))
        with r.pipeline(transaction=False) as p:
            for i in range(1000):
                p.incr("n")
            self.say("thousand", p.execute()[-1])

    def on_transactions(self):
        r, other = self.redis, connect(self.protocol)
        with r.pipeline() as p:
            p.set("a", 1).incr("a").lpush("a", 1)
            self.say("multi", p.execute(raise_on_error=False))
        with r.pipeline() as p:
            p.watch("a")
            other.set("a", 7)
            p.multi()
            p.get("a")
            self.tell("watched", p.execute)
        with r.pipeline() as p:
            p.watch("a")
            p.multi()
            p.get("a")
            self.tell("unchanged", p.execute)
        with r.pipeline() as p:
            p.set("a", 1).execute_command("SET", "a")
            self.tell("aborted", p.execute)

    def on_scripts(self):
        r = self.redis
        script = r.register_script("redis.call('SET', KEYS[1], ARGV[1]); return {1, 'two', false, 3.9, {ok='fine'}}")
        self.tell("script", script, keys=["k"], args=["v"])
        self.say("exists", r.script_exists(script.sha, "0" * 40))
        r.script_flush()
        try:
            r.evalsha(script.sha, 1, "k", "v")
        except NoScriptError as error:
            self.say("noscript", error)
        self.tell("again", script, keys=["k"], args=["w"])
        self.tell("error", r.eval, "return redis.error_reply('MINE own words')", 0)
        self.tell("fails", r.eval, "return redis.call('INCR', KEYS[1])", 1, "k")
        self.tell("read only", r.eval_ro, "return redis.call('SET', KEYS[1], 'x')", 1, "k")
        self.tell("cjson", r.eval, "return cjson.encode({1, 2, {a = 'b'}})", 0)
        self.tell("double", r.eval, "redis.setresp(3); return {double = 3.25}", 0)
        library = "#!lua name=mylib\nredis.register_function('twice', function(keys, args) return args[1] * 2 end)"
        self.tell("load", r.function_load, library)
        self.tell("load again", r.function_load, library)
        self.tell("fcall", r.fcall, "twice", 0, 21)
        self.tell("functions", r.function_list)
        self.tell("delete", r.function_delete, "mylib")
        self.tell("gone", r.fcall, "twice", 0, 21)

    def on_blocking(self):
        r = self.redis
        answers = queue.Queue()

        def wait(who):
            answers.put((who, connect(self.protocol).blpop(["q1", "q2"], timeout=20)))

        threads = []
        for who in ("first", "second"):
            threads.append(threading.Thread(target=wait, args=(who,)))
            threads[-1].start()
            self.until(lambda: r.info("clients")["blocked_clients"] == len(threads))
        r.rpush("q2", "x")
        self.say("handed to", answers.get(timeout=20))
        r.rpush("q1", "y", "z")
        self.say("handed to", answers.get(timeout=20))
        for thread in threads:
            thread.join()
        self.tell("left", r.lrange, "q1", 0, -1)
        self.tell("none comes", r.blpop, ["nothing"], timeout=1)
        self.tell("bzpopmin", r.bzpopmin, ["nothing"], timeout=0.01)
        r.rpush("q3", 1, 2)
        self.tell("blmove", r.blmove, "q3", "q4", 1, "LEFT", "RIGHT")
        self.tell("brpop", r.brpop, "q3", 1)

    def until(self, holds):
        deadline = time.monotonic() + 20
        while not holds():
            if time.monotonic() > deadline:
                raise TimeoutError("what was waited for did not come")
            time.sleep(0.002)

    def on_publishing(self):
        r = self.redis
        p = r.pubsub()
        p.subscribe("news", "weather")
        p.psubscribe("n*")
        for _ in range(3):
            self.say("subscribed", p.get_message(timeout=20))
        self.tell("publish", r.publish, "news", "hällo")
        for _ in range(2):
            self.say("message", p.get_message(timeout=20))
        self.tell("numsub", r.pubsub_numsub, "news", "none")
        self.tell("numpat", r.pubsub_numpat)
        self.tell("channels", lambda: sorted(r.pubsub_channels()))
        p.ping()
        self.say("pong", p.get_message(timeout=20))
        p.unsubscribe()
        for _ in range(2):
            self.say("unsubscribed", dict(p.get_message(timeout=20), channel="one of both"))
        p.close()
        r.config_set("notify-keyspace-events", "KEA")
        p = r.pubsub()
        p.psubscribe("__key*__:*")
        p.get_message(timeout=20)
        r.set("watched", 1)
        r.expire("watched", 100)
        for _ in range(4):
            self.say("event", p.get_message(timeout=20))
        p.close()
        r.config_set("notify-keyspace-events", "")

    def on_streams(self):
        r = self.redis
        for i in range(1, 6):
            self.tell("xadd", r.xadd, "x", {"n": i, "f": "v"}, id=f"{i}-1")
        self.tell("xadd", r.xadd, "x", {"n": 0}, id="1-1")
        self.tell("xrange", r.xrange, "x", "2", "(4-1")
        self.tell("xread", r.xread, {"x": "3"}, count=1)
        self.tell("group", r.xgroup_create, "x", "g", id="0")
        self.tell("group", r.xgroup_create, "x", "g", id="0")
        self.tell("readgroup", r.xreadgroup, "g", "alice", {"x": ">"}, count=2)
        self.tell("readgroup", r.xreadgroup, "g", "bob", {"x": ">"}, count=1)
        self.tell("own", r.xreadgroup, "g", "alice", {"x": "0"})
        self.tell("ack", r.xack, "x", "g", "1-1", "9-9")
        self.tell("pending", r.xpending, "x", "g")
        self.say("pending of", [dict(p, time_since_delivered=0) for p in r.xpending_range("x", "g", "-", "+", 10)])
        self.tell("claim", r.xclaim, "x", "g", "bob", 0, ["2-1"])
        self.tell("autoclaim", r.xautoclaim, "x", "g", "carol", 0, "0-0", count=1)
        self.tell("info", r.xinfo_stream, "x")
        self.tell("groups", r.xinfo_groups, "x")
        self.say("consumers", [{"name": c["name"], "pending": c["pending"]} for c in r.xinfo_consumers("x", "g")])
        self.tell("trim", r.xtrim, "x", maxlen=2, approximate=False)
        self.tell("len", r.xlen, "x")
        self.tell("del", r.xdel, "x", "5-1")
        self.tell("no group", r.xreadgroup, "none", "c", {"x": ">"})
        self.tell("waits", r.xread, {"x": "$"}, block=10)

    def on_locks(self):
        r = self.redis
        first, second = r.lock("guard", timeout=100), r.lock("guard", timeout=100, blocking=False)
        self.say("first", first.acquire())
        self.say("second", second.acquire())
        self.say("extended", first.extend(50))
        self.say("owned", (first.owned(), second.owned()))
        first.release()
        self.say("second", second.acquire())
        try:
            first.release()
        except LockError as error:
            self.say("released twice", error)
        second.release()

    def on_users(self):
        r = self.redis
        self.tell("setuser", r.acl_setuser, "eve", enabled=True, passwords=["+secret"], keys=["e:*"],
                  commands=["+get", "+set", "+acl|whoami"])
        eve = connect(self.protocol, username="eve", password="secret")
        self.tell("whoami", eve.acl_whoami)
        self.tell("own key", eve.set, "e:1", 1)
        self.tell("other key", eve.set, "f:1", 1)
        self.tell("other command", eve.delete, "e:1")
        # Asked once: by default it asks again and again, for seconds.
        stranger = connect(self.protocol, username="eve", password="no", retry=Retry(NoBackoff(), 0))
        self.tell("wrong password", stranger.ping)
        # The order of commands is that of a hash table, which differs from one run of a server to the next.
        user = r.acl_getuser("eve")
        self.say("getuser", dict(user, commands=sorted(user["commands"])))
        self.tell("dryrun", r.acl_dryrun, "eve", "get", "x")
        self.tell("deluser", r.acl_deluser, "eve")

    def on_tracking(self):
        """Client-side caching without the library's own cache, which refuses servers before 7.4."""
        if self.protocol != 3:
            return
        seen = []
        r = connect(3, single_connection_client=True)
        parser = r.connection._parser
        parser.set_invalidation_push_handler(lambda message: seen.append(message))
        self.tell("tracking", r.execute_command, "CLIENT TRACKING", "ON")
        self.tell("cached", r.get, "k")
        self.redis.set("k", "changed")
        self.until(lambda: r.ping() and seen)
        self.say("invalidated", seen)
        self.tell("cached", r.get, "k")
        self.redis.flushall()
        self.until(lambda: r.ping() and len(seen) > 1)
        self.say("invalidated", seen)


for protocol in (2, 3):
    Suite(protocol).run()
print("done")
