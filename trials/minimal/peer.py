"""The least peer of `lockstorm trial`: the lock of redis-py, which neither waits nor renews here.

What another library needs is other lines in `acquire`, `extend` and `release`. One request after the other is answered; a peer that can
`wait` must not do so, for a request that waits would hold up the release that it waits for.
"""

import json
import sys

import redis
from redis.exceptions import LockError

nodes, names, holds = {}, {}, {}


def say(**message):
    print(json.dumps(message), flush=True)


def answer(asked):
    match asked["type"]:
        case "init":
            timeout = asked["timeout_ms"] and asked["timeout_ms"] / 1000
            for lock in asked["locks"]:
                node = redis.Redis.from_url(f"redis://{lock['nodes'][0]}", socket_timeout=timeout)
                node.ping()
                nodes[lock["lock"]], names[lock["lock"]] = node, lock["name"]
            return {"type": "ready"}
        case "acquire":
            lock = nodes[asked["lock"]].lock(names[asked["lock"]], timeout=asked["lease_ms"] / 1000)
            if not lock.acquire(blocking=False):
                return {"type": "refused"}
            holds[asked["id"]] = lock
            return {"type": "granted", "owner": lock.local.token.decode()}
        case "extend":
            holds[asked["hold"]].extend(asked["lease_ms"] / 1000, replace_ttl=True)
            return {"type": "extended"}
        case "release":
            holds[asked["hold"]].release()
            return {"type": "released"}


say(type="hello", protocol=1, library="redis-py Lock", version=redis.__version__, key="{}", can=["extend"])
for line in sys.stdin:
    asked = json.loads(line)
    try:
        say(id=asked["id"], **answer(asked))
    except redis.RedisError as error:
        # LockError says that the lock is not this owner's (any more): nothing has changed.
        say(id=asked["id"], type="error", text=f"{type(error).__name__}: {error}", definite=isinstance(error, LockError))
