#!/usr/bin/env python3
"""A peer of `lockstorm trial` with one of Python's lock libraries: peer.py LIBRARY.

Each library is a class below: what it calls its keys, what it can do, and how a lock is acquired, released and extended by it, with the
library's own defaults where the trial does not say otherwise. Those after `Broken` are locks with a mistake, for trials of the trial.
"""

import importlib
import json
import random
import sys
import threading
import time
import uuid
from importlib.metadata import version

OUT = threading.Lock()


def say(**message):
    with OUT:
        print(json.dumps(message), flush=True)


class Granted:
    """What a library has granted: its own object, and what it says of it."""

    def __init__(self, held, owner=None, until_ms=None):
        self.held, self.owner, self.until_ms = held, owner, until_ms


class NotHeld(Exception):
    """The library says that the lock is not held; nothing has changed."""


def connect(node, timeout_ms):
    from redis import Redis

    host, port = node.rsplit(":", 1)
    timeout = timeout_ms / 1000 if timeout_ms else None
    return Redis(host=host, port=int(port), socket_timeout=timeout)


def seconds(lease_ms):
    """For libraries that know whole seconds alone: no less than what was asked for."""
    return -(-lease_ms // 1000)


class RedisPy:
    """`Redis.lock` of redis-py."""

    library, package, key, can = "redis-py Lock", "redis", "{}", ["wait", "extend"]
    # What is imported before anything is timed.
    modules = ["redis"]

    def __init__(self, init):
        self.init = init

    def connections(self, lock):
        timeout = self.init["timeout_ms"]
        return [connect(node, timeout) for node in lock["nodes"]]

    def open(self, lock):
        self.redis = self.connections(lock)[0]
        self.redis.ping()

    def acquire(self, name, wait, lease_ms):
        lock = self.redis.lock(name, timeout=lease_ms / 1000, thread_local=False)
        wait = {"blocking": False} if wait == 0 else {"blocking_timeout": wait}
        if lock.acquire(**wait):
            return Granted(lock, lock.local.token.decode())

    def release(self, lock):
        from redis.exceptions import LockError

        try:
            lock.release()
        except LockError as error:
            raise NotHeld(error)

    def extend(self, lock, lease_ms):
        from redis.exceptions import LockError

        try:
            lock.extend(lease_ms / 1000, replace_ttl=True)
        except LockError as error:
            raise NotHeld(error)


class RedisPyAdds(RedisPy):
    """It extends as `extend` does by default: it adds to what is left of the lease."""

    library = "redis-py Lock, extend() that adds"

    def extend(self, lock, lease_ms):
        from redis.exceptions import LockError

        try:
            lock.extend(lease_ms / 1000)
        except LockError as error:
            raise NotHeld(error)


class PythonRedisLock(RedisPy):
    """`redis_lock.Lock` of python-redis-lock, whose leases are whole seconds."""

    library, package, key, can = "python-redis-lock", "python-redis-lock", "lock:{}", ["wait", "extend", "watchdog"]
    modules = ["redis", "redis_lock"]

    def acquire(self, name, wait, lease_ms):
        from redis_lock import Lock

        renewal = lease_ms is None
        lease_ms = self.init["watchdog_ms"] if renewal else lease_ms
        lock = Lock(self.redis, name, expire=seconds(lease_ms), auto_renewal=renewal)
        deadline = None if wait is None else time.monotonic() + wait
        # It knows no timeout that is longer than the lease, nor less than a second.
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left < 1:
                got = lock.acquire(blocking=False)
            else:
                longest = seconds(lease_ms)
                got = lock.acquire(timeout=longest if left is None else max(1, min(int(left), longest)))
            if got:
                return Granted(lock, lock.id)
            if deadline is not None and time.monotonic() >= deadline:
                return None
            time.sleep(0.02)

    def release(self, lock):
        from redis_lock import NotAcquired

        try:
            lock.release()
        except NotAcquired as error:
            raise NotHeld(error)

    def extend(self, lock, lease_ms):
        from redis_lock import NotAcquired

        try:
            lock.extend(seconds(lease_ms))
        except NotAcquired as error:
            raise NotHeld(error)


class Sherlock(RedisPy):
    """`sherlock.RedisLock`, whose leases are whole seconds."""

    library, package, key, can = "sherlock RedisLock", "sherlock", "{}", ["wait", "extend"]
    modules = ["redis", "sherlock"]

    def acquire(self, name, wait, lease_ms):
        import sherlock

        limit = 10**9 if wait is None else wait
        lock = sherlock.RedisLock(name, client=self.redis, expire=seconds(lease_ms), timeout=limit)
        try:
            return Granted(lock, str(lock._owner)) if lock.acquire(blocking=wait != 0) else None
        except sherlock.LockTimeoutException:
            return None

    def release(self, lock):
        import sherlock

        try:
            lock.release()
        except sherlock.LockException as error:
            raise NotHeld(error)

    def extend(self, lock, lease_ms):
        if not lock.renew():
            raise NotHeld("it was not renewed")


class RedlockPy(RedisPy):
    """redlock-py, which asks three times at most."""

    library, package, key, can = "redlock-py", "redlock-py", "{}", ["quorum"]
    modules = ["redis", "redlock"]

    def open(self, lock):
        from redlock import Redlock

        self.redlock = Redlock(self.connections(lock), retry_count=1)

    def acquire(self, name, wait, lease_ms):
        lock = self.redlock.lock(name, lease_ms)
        return Granted(lock, lock.key.decode(), int(time.time() * 1000) + lock.validity) if lock else None

    def release(self, lock):
        self.redlock.unlock(lock)


class Pottery(RedisPy):
    """`Redlock` of pottery."""

    library, package, key, can = "pottery Redlock", "pottery", "redlock:{}", ["wait", "extend", "quorum"]
    modules = ["redis", "pottery"]

    def open(self, lock):
        self.masters = set(self.connections(lock))

    def acquire(self, name, wait, lease_ms):
        from pottery import Redlock

        lock = Redlock(key=name, masters=self.masters, auto_release_time=lease_ms / 1000)
        begun = time.time()
        limits = {"blocking": False} if wait == 0 else {"timeout": -1 if wait is None else wait}
        if lock.acquire(**limits):
            # What is left by its own account, which costs another round trip.
            left = lock.locked()
            return Granted(lock, lock._uuid, int((time.time() + left) * 1000) if left else int(begun * 1000))

    def release(self, lock):
        from pottery import ReleaseUnlockedLock

        try:
            lock.release()
        except ReleaseUnlockedLock as error:
            raise NotHeld(error)

    def extend(self, lock, lease_ms):
        from pottery import ExtendUnlockedLock

        try:
            lock.extend()
        except ExtendUnlockedLock as error:
            raise NotHeld(error)
        return int((time.time() + lock.locked()) * 1000)


class Broken(RedisPy):
    """SET NX PX and what a right lock does with it; the classes that follow have a mistake each."""

    package = None
    can = ["extend"]
    RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"

    def acquire(self, name, wait, lease_ms):
        token = uuid.uuid4().hex
        return Granted((name, token), token) if self.redis.set(name, token, nx=True, px=lease_ms) else None

    def release(self, held):
        self.redis.eval(self.RELEASE, 1, *held)

    def extend(self, held, lease_ms):
        name, token = held
        if self.redis.get(name) != token.encode() or not self.redis.pexpire(name, lease_ms):
            raise NotHeld("the key has another value")


class BareDel(Broken):
    """It releases whatever lock is there."""

    library = "control: release by DEL"

    def release(self, held):
        self.redis.delete(held[0])


class BlindExtend(Broken):
    """It extends whatever lock is there."""

    library = "control: extension by PEXPIRE"

    def extend(self, held, lease_ms):
        if not self.redis.pexpire(held[0], lease_ms):
            raise NotHeld("there is no key")


class AddingExtend(Broken):
    """It adds to what is left of its lock's lease, so that an extension that is sent twice counts twice."""

    library = "control: extension that adds"
    ADD = """if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end
        return redis.call('pexpire', KEYS[1], redis.call('pttl', KEYS[1]) + ARGV[2])"""

    def extend(self, held, lease_ms):
        if not self.redis.eval(self.ADD, 1, *held, lease_ms):
            raise NotHeld("the key has another value")


class LookThenSet(Broken):
    """It looks whether the lock is free and takes it by another command."""

    library = "control: EXISTS, then SET"

    def acquire(self, name, wait, lease_ms):
        token = uuid.uuid4().hex
        if self.redis.exists(name):
            return None
        self.redis.set(name, token, px=lease_ms)
        return Granted((name, token), token)


class NoLease(Broken):
    """Its lock has no lease, so that a crash leaves it behind."""

    library = "control: no lease"

    def acquire(self, name, wait, lease_ms):
        token = uuid.uuid4().hex
        return Granted((name, token), token) if self.redis.set(name, token, nx=True) else None


class LateDeadline(Broken):
    """It lets its holder rely on the lock for twice the lease."""

    library = "control: a deadline that is too late"

    def acquire(self, name, wait, lease_ms):
        granted = super().acquire(name, wait, lease_ms)
        if granted:
            granted.until_ms = int(time.time() * 1000) + 2 * lease_ms
        return granted


class NeverRenews(Broken):
    """It promises to renew, and does not."""

    library, can = "control: a watchdog that never renews", ["watchdog"]

    def acquire(self, name, wait, lease_ms):
        return super().acquire(name, wait, lease_ms or self.init["watchdog_ms"])


class SilentWatchdog(Broken):
    """It renews its own lock, and does not say when it cannot."""

    library, can = "control: a watchdog that tells no loss", ["watchdog"]
    RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"

    def acquire(self, name, wait, lease_ms):
        lease_ms = lease_ms or self.init["watchdog_ms"]
        granted = super().acquire(name, wait, lease_ms)
        if granted:
            threading.Thread(target=self.renew, args=(granted.held, lease_ms), daemon=True).start()
        return granted

    def renew(self, held, lease_ms):
        from redis import RedisError

        while True:
            time.sleep(lease_ms / 3000)
            try:
                if not self.redis.eval(self.RENEW, 1, *held, lease_ms):
                    return
            except RedisError:
                pass


class Quorum(Broken):
    """A majority of independent nodes, with the deadline that it leaves; the classes that follow have a mistake each."""

    can = ["quorum"]

    def open(self, lock):
        self.nodes = self.connections(lock)

    def each(self, ask, nodes=None):
        """What each node answers; nothing of one that does not."""
        from redis import RedisError

        answers = []
        for node in nodes or self.nodes:
            try:
                answers.append(ask(node))
            except RedisError:
                answers.append(None)
        return answers

    def acquire(self, name, wait, lease_ms):
        token, begun = uuid.uuid4().hex, time.time()
        got = self.each(lambda node: node.set(name, token, nx=True, px=lease_ms))
        until_ms = int(begun * 1000 + lease_ms - lease_ms / 100 - 2)
        if 2 * sum(map(bool, got)) > len(self.nodes) and time.time() * 1000 < until_ms:
            return Granted((name, token), token, until_ms)
        self.give_back((name, token))

    def give_back(self, held):
        self.each(lambda node: node.eval(self.RELEASE, 1, *held))

    def release(self, held):
        self.give_back(held)


class QuorumOfOne(Quorum):
    """It is content with the first node that grants."""

    library = "control: a quorum of one"

    def acquire(self, name, wait, lease_ms):
        token, begun = uuid.uuid4().hex, time.time()
        for node in random.sample(self.nodes, len(self.nodes)):
            if any(self.each(lambda node: node.set(name, token, nx=True, px=lease_ms), [node])):
                return Granted((name, token), token, int(begun * 1000) + lease_ms)


class QuorumBareDel(Quorum):
    """It releases whatever lock is there, on all nodes."""

    library = "control: release of a quorum by DEL"

    def release(self, held):
        self.each(lambda node: node.delete(held[0]))


LIBRARIES = {
    "redis-py": RedisPy,
    "redis-py-adds": RedisPyAdds,
    "python-redis-lock": PythonRedisLock,
    "sherlock": Sherlock,
    "redlock-py": RedlockPy,
    "pottery": Pottery,
    "bare-del": BareDel,
    "blind-extend": BlindExtend,
    "adding-extend": AddingExtend,
    "look-then-set": LookThenSet,
    "no-lease": NoLease,
    "late-deadline": LateDeadline,
    "never-renews": NeverRenews,
    "silent-watchdog": SilentWatchdog,
    "quorum-of-one": QuorumOfOne,
    "quorum-bare-del": QuorumBareDel,
}


class Peer:
    def __init__(self, library):
        self.library = library
        self.names, self.holds = {}, {}

    def answer(self, asked):
        """What the library comes to, as the fields of an answer."""
        kind = asked["type"]
        if kind == "init":
            self.locks = self.library(asked)
            for lock in asked["locks"]:
                self.names[lock["lock"]] = lock["name"]
                self.locks.open(lock)
            return {"type": "ready"}
        if kind == "acquire":
            wait = None if asked["wait_ms"] is None else asked["wait_ms"] / 1000
            granted = self.locks.acquire(self.names[asked["lock"]], wait, asked["lease_ms"])
            if granted is None:
                return {"type": "refused"}
            self.holds[asked["id"]] = granted.held
            return {"type": "granted", "owner": granted.owner, "until_ms": granted.until_ms}
        if kind == "release":
            self.locks.release(self.holds[asked["hold"]])
            return {"type": "released"}
        if kind == "extend":
            until_ms = self.locks.extend(self.holds[asked["hold"]], asked["lease_ms"])
            return {"type": "extended", "until_ms": until_ms}
        raise ValueError(f"no request of type {kind}")

    def obey(self, asked):
        try:
            answer = self.answer(asked)
        except NotHeld as error:
            answer = {"type": "error", "text": str(error), "definite": True}
        except Exception as error:  # Whatever a library raises is what its user sees.
            answer = {"type": "error", "text": f"{type(error).__name__}: {error}", "definite": False}
        say(id=asked["id"], **answer)


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in LIBRARIES:
        sys.exit(f"usage: peer.py {'|'.join(LIBRARIES)}")
    library = LIBRARIES[sys.argv[1]]
    peer = Peer(library)
    for module in library.modules:
        importlib.import_module(module)
    about = {"library": library.library, "version": version(library.package) if library.package else ""}
    if library.package != "redis":
        about["driver"] = f"redis-py {version('redis')}"
    say(type="hello", protocol=1, key=library.key, can=library.can, **about)
    for line in sys.stdin:
        threading.Thread(target=peer.obey, args=(json.loads(line),), daemon=True).start()


if __name__ == "__main__":
    main()
