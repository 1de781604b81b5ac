"""valkey-glide, on one server in both protocols, and on a cluster of three masters."""

import asyncio
import os
import socket
import time
from contextlib import ExitStack

from glide import (
    Batch,
    ClusterBatch,
    ConditionalChange,
    ExpireOptions,
    ExpiryGetEx,
    ExpirySet,
    ExpiryType,
    ExpiryTypeGetEx,
    FlushMode,
    GlideClient,
    GlideClientConfiguration,
    GlideClusterClient,
    GlideClusterClientConfiguration,
    GlideError,
    HashFieldConditionalChange,
    LogLevel,
    Logger,
    NodeAddress,
    OnlyIfEqual,
    ProtocolVersion,
    RangeByScore,
    ScoreBoundary,
    Script,
    StreamAddOptions,
    StreamGroupOptions,
    StreamReadGroupOptions,
    StreamReadOptions,
)

from servers import Kind

# A request waits for a busy machine.
PATIENCE_MS = 20_000
SLOTS = 16384
HELD = """
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
    redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    return false
end
return redis.call('PTTL', KEYS[1]) > 0
"""
FREED = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end"


def shown(value):
    """A value as text, the same for the same value."""
    if isinstance(value, bytes):
        return repr(value.decode(errors="backslashreplace"))
    if isinstance(value, dict):
        return "{" + ", ".join(sorted(f"{shown(key)}: {shown(value[key])}" for key in value)) + "}"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(shown, value))) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(shown, value)) + "]"
    if isinstance(value, Exception):
        return f"{type(value).__name__}: {value}"
    return repr(value)


class Suite:
    def __init__(self, name, client):
        self.name, self.client = name, client

    def say(self, what, value):
        print(f"{self.name} {what}: {shown(value)}")

    async def tell(self, what, call):
        """Says what a call returns, or how it fails."""
        try:
            value = await call
        except GlideError as error:
            value = error
        self.say(what, value)
        return value

    async def run(self, parts):
        for part in parts:
            await self.client.custom_command(["FLUSHALL"])
            await part(self)


async def on_connection(suite):
    client, tell = suite.client, suite.tell
    await tell("ping", client.ping())
    await tell("echo", client.echo("päng"))
    await tell("name", client.client_getname())
    await tell("config", client.config_get(["maxmemory"]))
    await tell("wrong", client.custom_command(["NOSUCH", "a", "b"]))
    await tell("arity", client.custom_command(["GET"]))
    await tell("no touch", client.custom_command(["CLIENT", "NO-TOUCH", "ON"]))
    await tell("caps", client.custom_command(["CLIENT", "CAPA", "redirect"]))


async def on_locks(suite):
    """Locks as people write them with one key."""
    client, tell = suite.client, suite.tell
    free, minute = ConditionalChange.ONLY_IF_DOES_NOT_EXIST, ExpirySet(ExpiryType.MILLSEC, 60_000)
    await tell("acquire", client.set("{l}lock", "me", conditional_set=free, expiry=minute))
    await tell("acquire again", client.set("{l}lock", "you", conditional_set=free, expiry=minute))
    await tell("who holds", client.set("{l}lock", "you", conditional_set=free, expiry=minute, return_old_value=True))
    suite.say("lease", 40_000 < await client.pttl("{l}lock") <= 60_000)
    await tell("renew mine", client.set("{l}lock", "me", conditional_set=OnlyIfEqual("me"), expiry=minute))
    await tell("renew yours", client.set("{l}lock", "you", conditional_set=OnlyIfEqual("you"), expiry=minute))
    await tell("longer", client.pexpire("{l}lock", 90_000, ExpireOptions.NewExpiryGreaterThanCurrent))
    await tell("shorter", client.pexpire("{l}lock", 30_000, ExpireOptions.NewExpiryGreaterThanCurrent))
    await tell("delete yours", client.custom_command(["DELIFEQ", "{l}lock", "you"]))
    await tell("delete mine", client.custom_command(["DELIFEQ", "{l}lock", "me"]))
    await tell("exists", client.exists(["{l}lock"]))
    await tell("wrong type", client.lpush("{l}list", ["a"]))
    await tell("wrong type", client.set("{l}list", "me", conditional_set=OnlyIfEqual("me")))
    await tell("wait", client.wait(0, 10))


async def on_scripts(suite):
    client, tell = suite.client, suite.tell
    held, freed = Script(HELD), Script(FREED)
    for owner in "me", "me", "you":
        await tell(f"hold {owner}", client.invoke_script(held, keys=["{l}held"], args=["60000", owner]))
    await tell("holders", client.hgetall("{l}held"))
    await client.set("{l}lock", "me")
    await tell("free yours", client.invoke_script(freed, keys=["{l}lock"], args=["you"]))
    # The script is sent again after it was forgotten.
    await tell("flush", client.script_flush(FlushMode.SYNC))
    await tell("known", client.script_exists([held.get_hash(), freed.get_hash()]))
    await tell("nobody knows", client.custom_command(["EVALSHA", freed.get_hash(), "1", "{l}lock", "me"]))
    await tell("free mine", client.invoke_script(freed, keys=["{l}lock"], args=["me"]))
    await tell("known", client.script_exists([held.get_hash(), freed.get_hash()]))
    await tell("show", client.custom_command(["SCRIPT", "SHOW", freed.get_hash()]))
    for body in (
        "return {1, 'two', {3.7, false, 4}}", "return {err='MY own'}", "return redis.call('NOSUCH')", "return nosuch",
        "return redis.call('GET', KEYS[1], 'more')", "return 'ok", "return redis.status_reply('FINE')", "x = 1",
        "redis.setresp(3) return redis.call('HGETALL', KEYS[1])", "return {double = 0.1}", "return redis.call()",
        "return redis.call('BLPOP', KEYS[1] .. 'none', 0)", "return redis.call('WAIT', 0, 0)", "error('mine')",
    ):
        await tell(body, client.invoke_script(Script(body), keys=["{l}held"]))


async def on_fields(suite):
    """Hashes whose fields have a time to live."""
    client, tell = suite.client, suite.tell
    none, every = HashFieldConditionalChange.ONLY_IF_NONE_EXIST, HashFieldConditionalChange.ONLY_IF_ALL_EXIST
    minute = ExpirySet(ExpiryType.SEC, 60)
    await tell("set", client.hsetex("h", {"a": "1", "b": "2"}, none, minute))
    await tell("set again", client.hsetex("h", {"a": "3"}, none, minute))
    await tell("replace", client.hsetex("h", {"a": "4"}, every, ExpirySet(ExpiryType.KEEP_TTL, None)))
    await tell("get", client.hgetex("h", ["a", "b", "c"], ExpiryGetEx(ExpiryTypeGetEx.PERSIST, None)))
    await tell("left", client.httl("h", ["a", "b", "c"]))
    await tell("expire", client.hexpire("h", 100, ["a", "c"]))
    await tell("expire", client.hpexpire("h", 50_000, ["a"], ExpireOptions.NewExpiryGreaterThanCurrent))
    await tell("left", client.httl("h", ["a"]))
    await tell("persist", client.hpersist("h", ["a", "b"]))
    await tell("expire at", client.hexpireat("h", 9_999_999_999, ["a"]))
    await tell("expires at", client.hexpiretime("h", ["a", "b"]))
    await tell("in the past", client.hexpireat("h", 1, ["b"]))
    await tell("all", client.hgetall("h"))
    await tell("take", client.hgetdel("h", ["a"]))
    await tell("exists", client.exists(["h"]))
    await tell("soon", client.hsetex("h", {"a": "1"}, None, ExpirySet(ExpiryType.MILLSEC, 1)))
    await asyncio.sleep(0.05)
    await tell("gone", client.hget("h", "a"))


async def on_sets(suite):
    client, tell = suite.client, suite.tell
    await tell("add", client.zadd("z", {"a": 0.1, "b": 1.7e9 + 0.123456, "c": 1e17, "d": 3}))
    await tell("score", client.zscore("z", "b"))
    await tell("add to", client.zincrby("z", 0.2, "a"))
    await tell("range", client.zrange_withscores("z", RangeByScore(ScoreBoundary(0), ScoreBoundary(1e18))))
    await tell("rank", client.zrank_withscore("z", "b"))
    await tell("pop", client.zpopmin("z"))
    await tell("wait", client.bzpopmin(["z"], 1))


async def on_streams(suite):
    client, tell = suite.client, suite.tell
    for at in "1-1", "2-1", "2-2":
        await tell("add", client.xadd("s", [("f", at)], StreamAddOptions(id=at)))
    await tell("read", client.xread({"s": "1-1"}, StreamReadOptions(count=1)))
    await tell("last", client.xread({"s": "+"}))
    await tell("group", client.xgroup_create("s", "g", "0"))
    await tell("group again", client.xgroup_create("s", "g", "0"))
    await tell("no stream", client.xgroup_create("none", "g", "0"))
    await tell("made", client.xgroup_create("made", "g", "$", StreamGroupOptions(make_stream=True)))
    await tell("mine", client.xreadgroup({"s": ">"}, "g", "me", StreamReadGroupOptions(count=2)))
    await tell("done", client.xack("s", "g", ["1-1"]))
    await tell("pending", client.xpending("s", "g"))
    await tell("again", client.xreadgroup({"s": "0"}, "g", "me"))
    await tell("nothing", client.xread({"s": "9-9"}, StreamReadOptions(block_ms=10)))


async def on_transactions(suite):
    client, tell = suite.client, suite.tell
    batch = Batch(is_atomic=True) if isinstance(client, GlideClient) else ClusterBatch(is_atomic=True)
    batch.set("{t}a", "1")
    batch.incr("{t}a")
    batch.custom_command(["LPUSH", "{t}a", "x"])
    batch.get("{t}a")
    await tell("batch", client.exec(batch, raise_on_error=False))
    if isinstance(client, GlideClient):
        await tell("watch", client.watch(["{t}a"]))
        await client.set("{t}a", "7")
        again = Batch(is_atomic=True)
        again.get("{t}a")
        await tell("broken", client.exec(again, raise_on_error=False))


async def on_listening(suite, listen):
    """Messages, to a client that only listens."""
    kinds = GlideClientConfiguration.PubSubChannelModes
    subscribed = GlideClientConfiguration.PubSubSubscriptions({kinds.Exact: {"news"}, kinds.Pattern: {"lock:*"}}, None, None)
    listener = await listen(subscribed)
    for message, channel in ("one", "news"), ("two", "lock:free"), ("three", "none"):
        await suite.tell("publish", suite.client.publish(message, channel))
    for _ in range(2):
        heard = await asyncio.wait_for(listener.get_pubsub_message(), PATIENCE_MS / 1000)
        suite.say("heard", [heard.message, heard.channel, heard.pattern])
    await listener.close()


def options(protocol, ports, **more):
    addresses = [NodeAddress("127.0.0.1", port) for port in ports]
    return dict(addresses=addresses, protocol=protocol, request_timeout=PATIENCE_MS, client_name="suite", **more)


async def on_server(port):
    for name, protocol in ("resp2", ProtocolVersion.RESP2), ("resp3", ProtocolVersion.RESP3):
        client = await GlideClient.create(GlideClientConfiguration(**options(protocol, [port])))
        suite = Suite(name, client)

        async def listen(subscribed, protocol=protocol):
            more = options(protocol, [port], pubsub_subscriptions=subscribed)
            return await GlideClient.create(GlideClientConfiguration(**more))

        parts = [on_connection, on_locks, on_scripts, on_fields, on_sets, on_streams, on_transactions]
        # Messages come by RESP3 alone.
        if protocol == ProtocolVersion.RESP3:
            parts.append(lambda suite: on_listening(suite, listen))
        await suite.run(parts)
        await client.close()


def ask(port, *words):
    """Sends a command, and returns all that comes at once."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_MS / 1000) as connection:
        connection.sendall((" ".join(map(str, words)) + "\r\n").encode())
        return connection.recv(65536).decode()


def join(ports):
    """Makes a cluster of masters, each with a third of the slots."""
    for at, port in enumerate(ports):
        first, end = SLOTS * at // len(ports), SLOTS * (at + 1) // len(ports)
        # Redis 6.2 takes no range.
        ask(port, "CLUSTER", "ADDSLOTS", *range(first, end))
        ask(port, "CLUSTER", "SET-CONFIG-EPOCH", at + 1)
        ask(ports[0], "CLUSTER", "MEET", "127.0.0.1", port)
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not all(
        "cluster_state:ok" in (info := ask(port, "CLUSTER", "INFO")) and f"cluster_known_nodes:{len(ports)}" in info
        for port in ports
    ):
        if time.monotonic() > deadline:
            raise TimeoutError("the nodes do not become a cluster")
        time.sleep(0.05)


async def on_cluster(ports):
    client = await GlideClusterClient.create(GlideClusterClientConfiguration(**options(ProtocolVersion.RESP3, ports)))
    suite = Suite("cluster", client)

    async def on_slots(suite):
        # One key on each node.
        keys = ["b", "c", "a"]
        await suite.tell("set all", client.mset({key: f"{key}1" for key in keys}))
        await suite.tell("get all", client.mget(keys))
        await suite.tell("delete all", client.delete(keys))
        await suite.tell("across slots", client.custom_command(["SDIFF", "a", "b"]))

    await suite.run([on_slots, on_locks, on_scripts, on_fields, on_streams, on_transactions])
    await client.close()


async def main():
    kind = Kind(os.environ.get("LOCKSTORM"))
    with ExitStack() as running:
        await on_server(running.enter_context(kind.node()).port)
        nodes = [running.enter_context(kind.node(("cluster-enabled", "yes"))) for _ in range(3)]
        ports = [node.port for node in nodes]
        join(ports)
        await on_cluster(ports)
    print("done")


Logger.init(LogLevel.OFF)
asyncio.run(main())
