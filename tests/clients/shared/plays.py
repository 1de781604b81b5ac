"""What processes that share locks play with each other: how locks, permits, latches and rates pass between them.

Nothing relies on a sleep. A waiter counts as waiting when the server has seen it ask again after it subscribed; what it waits for is
leased for an hour, so that only a message can wake it in time.
"""

import time

from stage import until

HOUR_MS = 3_600_000
WATCHDOG_MS = 3_000
LATCH_CHANNEL = "redisson_countdownlatch__channel__{l}"
SINGLE = ["lock", "fair", "fenced"]
# Which half of a read-write lock is held, and which one is kept out by that.
HALVES = [("read", "write"), ("write", "read"), ("write", "write")]
# A tag of its own, half a tag, what a shell would mind, other alphabets.
NAMES = ["plain", "a{tag}b", "{", "a}b{", "two words", "it's \"quoted\"", "замок-錠-🔒", "a:b:c"]

# Set before the first play.
monitor = None


def waits(thread, kind, name, lease=HOUR_MS):
    """Begins to acquire, and returns when the thread is sure to wait for a message or the end of a lease."""
    since = monitor.mark()
    answer = thread.begin("acquire", kind, name, lease)
    until(f"{answer.asked} waits", lambda: monitor.scripts(since, thread.owner) >= 2)
    assert answer.pending(), f"{answer.asked}: not refused"
    return answer


def long_lease(server, name):
    return HOUR_MS - 60_000 < server.pttl(name) <= HOUR_MS


def excludes(s, kind):
    a, b, server = s.threads["a1"], s.threads["b1"], s.server
    s.say("first", a("acquire", kind, "l", HOUR_MS))
    s.say("keys", s.keys())
    s.say("for an hour", long_lease(server, "l"))
    s.say("second", b("try", kind, "l", 0, HOUR_MS))
    s.say("second sees", f"{b('locked', kind, 'l')} {b('levels', kind, 'l')}")
    waiting = waits(b, kind, "l")
    s.say("channels", s.channels())
    since = monitor.mark()
    s.say("first", a("release", kind, "l"))
    s.say("second", waiting.get())
    s.say("asked after the message", monitor.scripts(since, b.owner, until=monitor.mark()))
    s.say("keys", s.keys())
    s.say("for an hour", long_lease(server, "l"))
    s.say("second has", b("levels", kind, "l"))
    s.say("first", a("release", kind, "l"))
    s.say("first", a("try", kind, "l", 0, HOUR_MS))
    s.say("second", b("release", kind, "l"))
    s.say("first", a("try", kind, "l", 0, "-"))
    s.say("first", a("release", kind, "l"))
    s.say("keys", s.keys())


def nests(s, kind):
    a, b = s.threads["a1"], s.threads["b1"]
    for _ in range(2):
        s.say("first", a("acquire", kind, "l", HOUR_MS))
    s.say("keys", s.keys())
    s.say("first has", a("levels", kind, "l"))
    s.say("thread beside it", s.threads["a2"]("try", kind, "l", 0, HOUR_MS))
    waiting = waits(b, kind, "l")
    s.say("first", a("release", kind, "l"))
    s.say("keys", s.keys())
    s.say("for an hour", long_lease(s.server, "l"))
    s.say("second", b.peer.thread(9)("try", kind, "l", 0, HOUR_MS))
    s.say("first", a("release", kind, "l"))
    s.say("second", waiting.get())
    s.say("first has", a("levels", kind, "l"))
    s.say("second", b("release", kind, "l"))


def expires(s):
    """A lease that is not renewed ends for the other one as well; for all kinds at once."""
    a = s.threads["a1"]
    heirs = dict(zip(SINGLE, (s.threads[name] for name in ("b1", "b2", "b3"))))
    for kind in SINGLE:
        s.say(kind, a("acquire", kind, kind, 1_000))
    waiting = {kind: heir.begin("acquire", kind, kind, HOUR_MS) for kind, heir in heirs.items()}
    for kind, heir in heirs.items():
        s.say(kind, waiting[kind].get())
        s.say(kind, a("release", kind, kind))
    s.say("keys", s.keys())
    for kind, heir in heirs.items():
        s.say(kind, heir("release", kind, kind))


def is_forced(s, kind):
    a, b = s.threads["a1"], s.threads["b1"]
    s.say("first", a("acquire", kind, "l", HOUR_MS))
    waiting = waits(b, kind, "l")
    s.say("by force", s.threads["b2"]("force", kind, "l"))
    s.say("second", waiting.get())
    s.say("first", a("release", kind, "l"))
    s.say("by force", s.threads["a2"]("force", kind, "l"))
    late = b("release", kind, "l")
    if kind != "fair":
        # Redisson lets any owner release a free fair lock. To lockstorm-client it is an error, on purpose.
        s.say("second", late)
    s.say("by force", s.threads["a2"]("force", kind, "l"))
    s.say("keys", s.keys())


def renews(s):
    """The watchdog of each keeps the other out for longer than a lease; for all kinds at once."""
    kinds = [*((kind, kind) for kind in SINGLE), *HALVES]
    holds = [(holder, waiter, *kind, f"{'/'.join(kind)} of {holder}") for holder, waiter in ("ab", "ba") for kind in kinds]
    waiting = {}
    for at, (holder, waiter, kind, other, name) in enumerate(holds, start=20):
        s.say(name, s.threads[f"{holder}1"]("acquire", kind, name, "-"))
        thread = s.threads[f"{waiter}1"].peer.thread(at)
        waiting[name] = (thread, waits(thread, other, name, "-"))
    renewals, left = dict.fromkeys(waiting, 0), dict.fromkeys(waiting, WATCHDOG_MS)

    def renewed():
        for name in waiting:
            before, left[name] = left[name], s.server.pttl(name)
            renewals[name] += left[name] > before
        return min(renewals.values()) >= 3

    # Each comes a third of a lease after the one before.
    until("three renewals of each", renewed)
    s.say("waiting", [name for name, (_, answer) in waiting.items() if answer.pending()])
    for holder, _, kind, other, name in holds:
        waiter, answer = waiting[name]
        s.say(name, f"{s.threads[f'{holder}1']('release', kind, name)}, {answer.get()}, {waiter('release', other, name)}")


def is_named(s, kind, other=None):
    a, b, other = s.threads["a1"], s.threads["b1"], other or kind
    for name in NAMES:
        s.say(name, a("acquire", kind, name, HOUR_MS))
        waiting = waits(b, other, name)
        s.say("keys", s.keys())
        s.say("channels", s.channels())
        s.say("passed on", f"{a('release', kind, name)}, {waiting.get()}, {b('release', other, name)}")
        s.clear()


def gives_up(s):
    """One who waits only so long leaves the queue, and those behind need to wait for that much less."""
    casts = {"l": ("a1", "b1", "a2", "b2"), "m": ("b3", "a3", "b4", "a4")}
    brief, behind, before = {}, {}, {}

    def queue(lock):
        return s.server.lrange(f"redisson_lock_queue:{{{lock}}}", 0, -1)

    def deadlines(lock):
        return dict(s.server.zrange(f"redisson_lock_timeout:{{{lock}}}", 0, -1, withscores=True))

    for lock, (holder, impatient, *patient) in casts.items():
        s.threads[holder]("acquire", "fair", lock, HOUR_MS)
        brief[lock] = s.threads[impatient].begin("try", "fair", lock, 3_000, HOUR_MS)
        until("it queues", lambda: queue(lock))
        behind[lock] = [waits(s.threads[name], "fair", lock) for name in patient]
        before[lock] = deadlines(lock)
        s.say("queue", queue(lock))
    for lock, (holder, impatient, *patient) in casts.items():
        s.say("brief", brief[lock].get())
        # Redisson leaves the queue before it answers; lockstorm-client answers on time, and leaves it meanwhile.
        until("it leaves", lambda: s.threads[impatient].owner not in queue(lock))
        s.say("queue", queue(lock))
        s.say("nearer by", {name: int(before[lock][name] - score) for name, score in deadlines(lock).items()})
        s.threads[holder]("release", "fair", lock)
        for name, answer in zip(patient, behind[lock]):
            s.say(name, answer.get())
            s.threads[name]("release", "fair", lock)
    s.say("keys", s.keys())


def outlives(s):
    """A dead process at the head of the queue is swept out when its time is over, and not before."""
    dead, heirs = "285475da-9152-4c83-822a-67ee2f116a79:1", {"l": "a1", "m": "b1"}
    for lock in heirs:
        s.server.rpush(f"redisson_lock_queue:{{{lock}}}", dead)
        s.server.zadd(f"redisson_lock_timeout:{{{lock}}}", {dead: int(time.time() * 1000) + 2_000})
    for lock, heir in heirs.items():
        s.say("at once", s.threads[heir]("try", "fair", lock, 0, "-"))
    waiting = {lock: s.threads[heir].begin("acquire", "fair", lock, HOUR_MS) for lock, heir in heirs.items()}
    for lock, heir in heirs.items():
        s.say("in time", waiting[lock].get())
    s.say("keys", s.keys())
    for lock, heir in heirs.items():
        s.say("then", s.threads[heir]("release", "fair", lock))


def fences(s):
    """Each grant has a larger token than the one before, also across owners."""
    a, b = s.threads["a1"], s.threads["b1"]
    s.say("no token", f"{a('token', 'l')} {b('token', 'l')}")
    for thread in (a, b, b, a, b):
        s.say("token", thread("acquire", "fenced", "l", "-"))
        s.say("seen", f"{a('token', 'l')} {b('token', 'l')}")
        thread("release", "fenced", "l")
    s.say("keys", s.keys())


def votes(s):
    """RedLock over three servers."""
    a, b = s.threads["a1"], s.threads["b1"]
    s.say("first", a("acquire", "red", "l", HOUR_MS))
    s.say("on", [server.exists("l") for server in s.servers])
    s.say("second", b("try", "red", "l", 0, HOUR_MS))
    s.say("on", [server.exists("l") for server in s.servers])
    s.say("first", a("release", "red", "l"))
    until("all are free", lambda: not any(server.exists("l") for server in s.servers))
    s.say("second", b("try", "red", "l", 0, HOUR_MS))
    since = monitor.mark()
    waiting = a.begin("acquire", "red", "l", HOUR_MS)
    until("it asks", lambda: any(" l " in line for line in monitor.lines[since:]))
    s.say("second", b("release", "red", "l"))
    s.say("first", waiting.get())
    s.say("first", a("release", "red", "l"))
    until("all are free", lambda: not any(server.exists("l") for server in s.servers))


def nests_everywhere(s):
    """A RedLock, taken twice by one owner."""
    a, b = s.threads["a1"], s.threads["b1"]
    for _ in range(2):
        s.say("first", a("acquire", "red", "l", HOUR_MS))
    s.say("thread beside it", s.threads["a2"]("try", "red", "l", 0, HOUR_MS))
    s.say("first", a("release", "red", "l"))
    s.say("second", b("try", "red", "l", 0, HOUR_MS))
    # For how long is another matter: Redisson now gives it no more than its watchdog's time-out.
    s.say("first", a("release", "red", "l"))
    until("all are free", lambda: not any(server.exists("l") for server in s.servers))
    s.say("second", b("try", "red", "l", 0, HOUR_MS))
    s.say("second", b("release", "red", "l"))
    until("all are free", lambda: not any(server.exists("l") for server in s.servers))


def is_outvoted(s):
    """A minority of the servers is taken by plain locks, then a majority."""
    a, b = s.threads["a1"], s.threads["b1"]
    s.say("first on one", a("acquire", "lock@3", "l", HOUR_MS))
    s.say("second", b("try", "red", "l", 0, HOUR_MS))
    s.say("second", b("release", "red", "l"))
    until("the others are free", lambda: not any(server.exists("l") for server in s.servers[:2]))
    s.say("first on two", a("acquire", "lock@2", "l", HOUR_MS))
    s.say("second", b("try", "red", "l", 0, HOUR_MS))
    until("the other is free", lambda: not s.server.exists("l"))
    s.say("first", [a("release", f"lock@{server}", "l") for server in (2, 3)])
    s.say("second", b("try", "red", "l", 0, HOUR_MS))
    s.say("second", b("release", "red", "l"))
    until("all are free", lambda: not any(server.exists("l") for server in s.servers))


def queues(s):
    """A queue with all processes is served in the order in which it formed, and none overtakes it."""
    order = ["lockstorm 1", "redisson 1", "redisson' 1", "lockstorm' 1", "lockstorm 2", "redisson' 2", "redisson 2"]
    holder = s.threads["lockstorm' 2"]
    s.say("holder", holder("acquire", "fair", "l", HOUR_MS))
    waiting = [waits(s.threads[name], "fair", "l") for name in order]
    s.say("keys", s.keys())
    s.say("holder", holder("release", "fair", "l"))
    for at, name in enumerate(order):
        s.say(name, waiting[at].get())
        s.say("waiting", sum(answer.pending() for answer in waiting[at + 1:]))
        s.say("keys", s.keys())
        s.say("ahead of it", holder("try", "fair", "l", 0, "-"))
        s.threads[name]("release", "fair", "l")
    s.say("keys", s.keys())


def permits(s):
    """Permits are counted, refused, waited for and given back by any process."""
    a, b, c = s.threads["a1"], s.threads["b1"], s.threads["a2"]
    s.say("permits", a("permits", "l", 2))
    s.say("again", b("permits", "l", 9))
    s.say("first", b("take", "l", 2))
    s.say("in time", a("try to take", "l", 1, 100))
    for giver, taker in ((b, a), (a, b), (b, c)):
        since = monitor.mark()
        waiting = taker.begin("take", "l", 1)
        until("it waits", lambda: monitor.scripts(since, "l") >= 2)
        s.say("channels", s.channels())
        s.say("giver", giver("give", "l", 1))
        s.say("taker", waiting.get())
    s.say("left", b("left", "l"))
    s.say("giver", a("give", "l", 3))
    s.say("left", b("left", "l"))
    s.say("keys", s.keys())


def lends(s):
    """Permits with ids are given back by any process, and come back by themselves when their lease is over."""
    a, b, c = s.threads["a1"], s.threads["b1"], s.threads["a2"]

    def state():
        return s.server.get("l"), s.server.zcard("{l}:timeout")

    s.say("permits", a("ids", "l", 2))
    s.say("again", b("ids", "l", 9))
    out = [b("take id", "l", HOUR_MS), a("take id", "l", HOUR_MS)]
    s.say("ids", [len(set(out)), *map(len, out)])
    s.say("in time", a("try to take id", "l", 100, HOUR_MS))
    s.say("left", f"{a('ids left', 'l')} {b('ids left', 'l')} {state()}")
    for giver, taker in ((b, a), (a, b), (b, c), (c, a)):
        since = monitor.mark()
        waiting = taker.begin("take id", "l", HOUR_MS)
        until("it waits", lambda: monitor.scripts(since, "l") >= 2)
        s.say("channels", s.channels())
        gone = out.pop(0)
        s.say("giver", giver("give id", "l", gone))
        out.append(waiting.get())
        s.say("giver", giver("give id", "l", gone))
        s.say("state", state())
    s.say("given", [b("give id", "l", out[0]), a("give id", "l", out[1])])
    s.say("left", f"{a('ids left', 'l')} {b('ids left', 'l')} {state()}")
    for brief, heir in ((a, b), (b, a)):
        brief("take id", "l", HOUR_MS)
        late = brief("take id", "l", 1_000)
        s.say("heir", len(heir("take id", "l", 3_000)))
        s.say("late", brief("give id", "l", late))
        s.say("state", state())
        s.server.delete("l", "{l}:timeout")
        s.say("permits", a("ids", "l", 2))


def counts(s, kind):
    """All threads of all processes add to one number, which only the lock keeps right."""
    begun = [thread.begin("count up", kind, "l", "counter", 10) for thread in s.threads.values()]
    s.say("done", [answer.get() for answer in begun])
    s.say("keys", s.keys())


def opens(s):
    """A latch: closed until it was counted down by both, and then open for all who wait."""
    a, b, c = (s.threads[name] for name in ("a1", "b1", "b2"))
    s.say("set", a("set", "l", 2))
    s.say("again", b("set", "l", 9))
    waiting = [thread.begin("await", "l") for thread in (s.threads["a2"], c)]
    until("they wait", lambda: dict(s.server.pubsub_numsub(LATCH_CHANNEL)) == {LATCH_CHANNEL: 2})
    s.say("channels", s.channels())
    s.say("first", a("count down", "l"))
    s.say("keys", s.keys())
    s.say("waiting", [answer.pending() for answer in waiting])
    s.say("second", b("count down", "l"))
    s.say("waiting", [answer.get() for answer in waiting])
    s.say("keys", s.keys())
    s.say("open", a("await", "l"))
    s.say("used up", b("count down", "l"))
    s.say("keys", s.keys())


def vanishes(s):
    """Our deletion of a latch lets waiters of both kinds go; Redisson's own lets none of Redisson's."""
    waiters = [s.threads[name] for name in ("redisson 1", "lockstorm 1", "redisson' 1", "lockstorm' 1")]
    s.say("set", waiters[0]("set", "l", 2))
    waiting = [thread.begin("await", "l") for thread in waiters]
    until("they wait", lambda: dict(s.server.pubsub_numsub(LATCH_CHANNEL)) == {LATCH_CHANNEL: 4})
    s.say("deleted", s.threads["lockstorm 2"]("delete latch", "l"))
    s.say("waiting", [answer.get() for answer in waiting])
    s.say("set anew", waiters[1]("set", "l", 1))
    again = waiters[1].begin("await", "l")
    until("it waits", lambda: dict(s.server.pubsub_numsub(LATCH_CHANNEL)) == {LATCH_CHANNEL: 1})
    s.say("deleted", s.threads["redisson 2"]("delete latch", "l"))
    s.say("ours", again.get())


def limits(s):
    """A rate limiter that two processes share: each sees what the other has taken."""
    a, b = s.threads["a1"], s.threads["b1"]
    s.say("set", a("set rate", "l", "OVERALL", 3, HOUR_MS))
    s.say("again", b("set rate", "l", "PER_CLIENT", 9, HOUR_MS))
    s.say("rate", b("rate", "l"))
    s.say("first", a("limited", "l", 2, 0))
    s.say("too many", b("limited", "l", 2, 0))
    s.say("left", b("permits left", "l"))
    s.say("last", b("limited", "l", 1, 0))
    s.say("none", [thread("limited", "l", 1, 100) for thread in (a, b)])
    s.say("left", a("permits left", "l"))
    s.server.delete("l", "{l}:value", "{l}:permits")
    s.say("set", b("set rate", "l", "PER_CLIENT", 2, HOUR_MS))
    s.say("each", [thread("limited", "l", 2, 0) for thread in (a, b)])
    s.say("none", [thread("limited", "l", 1, 0) for thread in (a, b)])


def refills(s):
    """One permit at a time, for two processes in turn: who is refused waits for the end of what the other has taken."""
    a, b = s.threads["a1"], s.threads["b1"]
    s.say("set", a("set rate", "l", "OVERALL", 1, 500))
    begun = time.monotonic()
    s.say("turns", [thread("limited", "l", 1, "-") for thread in (a, b, a, b)])
    # By one machine's clock, in whole milliseconds.
    s.say("three windows at least", time.monotonic() - begun > 1.45)


def reads_and_writes(s):
    """Readers beside each other, a writer alone, who may read as well, then readers again."""
    a, b, c, d = (s.threads[name] for name in ("a1", "b1", "b2", "a2"))
    s.say("reader", a("acquire", "read", "l", "-"))
    s.say("nested reader", a("acquire", "read", "l", "-"))
    s.say("reader", b("acquire", "read", "l", "-"))
    writer = waits(c, "write", "l", "-")
    s.say("keys", s.keys())
    s.say("channels", s.channels())
    s.say("levels", [thread("levels", "read", "l") for thread in (a, b, d)])
    s.say("locked", [d("locked", half, "l") for half in ("read", "write")])
    s.say("reader", a("release", "read", "l"))
    s.say("keys", s.keys())
    s.say("nested reader", a("release", "read", "l"))
    s.say("writer waits", writer.pending())
    s.say("reader", b("release", "read", "l"))
    s.say("writer", writer.get())
    s.say("keys", s.keys())
    s.say("reader", a("try", "read", "l", 0, "-"))
    readers = [waits(a, "read", "l", "-"), waits(d, "read", "l", "-")]
    s.say("nested writer", c("acquire", "write", "l", "-"))
    s.say("nested reader", c("acquire", "read", "l", "-"))
    s.say("keys", s.keys())
    s.say("levels", [c("levels", half, "l") for half in ("read", "write")])
    s.say("nested reader", c("release", "read", "l"))
    s.say("nested writer", c("release", "write", "l"))
    s.say("readers wait", [answer.pending() for answer in readers])
    s.say("writer", c("release", "write", "l"))
    s.say("readers", [answer.get() for answer in readers])
    s.say("keys", s.keys())
    s.say("no writer", c("release", "write", "l"))
    s.say("readers", [thread("release", "read", "l") for thread in (a, d)])
    s.say("no reader", a("release", "read", "l"))
    s.say("keys", s.keys())


def downgrades(s):
    """A writer goes on as a reader. Readers enter beside it: Redisson's writer tells them nothing, but its lease is short."""
    a, b, c = s.threads["a1"], s.threads["b1"], s.threads["b2"]
    s.say("writer", a("acquire", "write", "l", "-"))
    s.say("reads", a("acquire", "read", "l", "-"))
    reader = waits(b, "read", "l", "-")
    s.say("writer", a("release", "write", "l"))
    s.say("reader", reader.get())
    s.say("keys", s.keys())
    s.say("writer", c("try", "write", "l", 0, "-"))
    writer = waits(c, "write", "l", "-")
    s.say("readers", [thread("release", "read", "l") for thread in (a, b)])
    s.say("writer", f"{writer.get()}, {c('release', 'write', 'l')}")
    s.say("keys", s.keys())


def upgrades(s):
    """A reader that asks to write is refused, by itself as well."""
    a, b = s.threads["a1"], s.threads["b1"]
    for thread, other in ((a, b), (b, a)):
        s.say("reader", thread("acquire", "read", "l", HOUR_MS))
        s.say("writes", [one("try", "write", "l", 300, HOUR_MS) for one in (thread, other)])
        s.say("keys", s.keys())
        until("no waiter listens any more", lambda: not s.channels())
        s.say("reader", thread("release", "read", "l"))
        s.say("writes", thread("try", "write", "l", 0, HOUR_MS))
        s.say("reader", other("try", "read", "l", 300, HOUR_MS))
        until("no waiter listens any more", lambda: not s.channels())
        s.say("writer", thread("release", "write", "l"))
        s.say("keys", s.keys())


def half_expires(s):
    """The lease of each half ends for the other one as well."""
    a, heirs = s.threads["a1"], {}
    for at, (kind, other) in enumerate(HALVES, start=1):
        name = f"{kind}/{other}"
        s.say(name, a("acquire", kind, name, 1_000))
        heirs[name] = s.threads[f"b{at}"]
        heirs[name].waiting = heirs[name].begin("acquire", other, name, HOUR_MS)
    for (kind, other), (name, heir) in zip(HALVES, heirs.items()):
        s.say(name, f"{heir.waiting.get()}, {a('release', kind, name)}")
    s.say("keys", s.keys())
    for (_, other), (name, heir) in zip(HALVES, heirs.items()):
        s.say(name, heir("release", other, name))
    # One of two readers is dead, and the lease of the other keeps the hash.
    s.say("reader", f"{a('acquire', 'read', 'l', 1_000)}, {s.threads['a2']('acquire', 'read', 'l', HOUR_MS)}")
    until("a level has ended", lambda: len([key for key in s.server.keys() if "rwlock_timeout" in key]) == 1)
    s.say("keys", s.keys())
    s.say("writer", s.threads["b1"]("try", "write", "l", 0, HOUR_MS))
    s.say("reader", s.threads["a2"]("release", "read", "l"))
    s.say("writer", s.threads["b1"]("try", "write", "l", 0, HOUR_MS))
    s.say("writer", s.threads["b1"]("release", "write", "l"))
    s.say("keys", s.keys())


def half_is_forced(s, kind, other):
    a, b = s.threads["a1"], s.threads["b1"]
    s.say("first", a("acquire", kind, "l", HOUR_MS))
    waiting = waits(b, other, "l")
    unlike = "write" if kind == "read" else "read"
    s.say("the other half by force", s.threads["b2"]("force", unlike, "l"))
    s.say("by force", s.threads["b2"]("force", kind, "l"))
    s.say("second", waiting.get())
    s.say("first", a("release", kind, "l"))
    s.say("by force", s.threads["a2"]("force", other, "l"))
    s.say("second", b("release", other, "l"))
    s.say("nothing by force", [s.threads["a2"]("force", half, "l") for half in ("read", "write")])


def spins(s):
    """Waiters ask again and again, and hear nothing."""
    a, b = s.threads["a1"], s.threads["b1"]
    for _ in range(2):
        s.say("first", a("acquire", "spin", "l", HOUR_MS))
    s.say("second", b("try", "spin", "l", 0, HOUR_MS))
    s.say("second", b("try", "spin", "l", 300, HOUR_MS))
    since = monitor.mark()
    waiting = b.begin("acquire", "spin", "l", HOUR_MS)
    until("it asks again and again", lambda: monitor.scripts(since, b.owner) >= 4)
    s.say("channels", s.channels())
    s.say("first", a("release", "spin", "l"))
    s.say("keys", s.keys())
    s.say("waits", waiting.pending())
    s.say("first", a("release", "spin", "l"))
    s.say("second", waiting.get())
    s.say("keys", s.keys())
    s.say("by force", a("force", "spin", "l"))
    s.say("second", b("release", "spin", "l"))
    s.say("keys", s.keys())


def nests_not(s, kind):
    a = s.threads["a1"]
    s.say("first", a("acquire", kind, "l", HOUR_MS))
    s.say("again", a("acquire", kind, "l", HOUR_MS))
    s.say("keys", s.keys())
    s.say("first", a("release", kind, "l"))
    s.say("keys", s.keys())


def takes_all(s):
    """A multi lock over three servers: all or none."""
    a, b = s.threads["a1"], s.threads["b1"]

    def taken():
        return [server.exists("l") for server in s.servers]

    s.say("first", a("acquire", "multi", "l", HOUR_MS))
    s.say("on", taken())
    s.say("second", b("try", "multi", "l", 0, HOUR_MS))
    s.say("one of them", b("try", "lock@2", "l", 0, HOUR_MS))
    waiting = b.begin("acquire", "multi", "l", HOUR_MS)
    s.say("first", a("release", "multi", "l"))
    s.say("second", waiting.get())
    s.say("on", taken())
    s.say("second", b("release", "multi", "l"))
    s.say("on", taken())
    s.say("one of them", b("acquire", "lock@3", "l", HOUR_MS))
    s.say("first", a("try", "multi", "l", 0, HOUR_MS))
    until("the others are free", lambda: taken() == [0, 0, 1])
    s.say("one of them", b("release", "lock@3", "l"))
    s.say("first", a("try", "multi", "l", 0, HOUR_MS))
    s.say("first", a("release", "multi", "l"))
    s.say("on", taken())


def takes_values(s):
    """Values of one hash, all or none: locks exclude each other where they have one in common."""
    a, b, server = s.threads["a1"], s.threads["b1"], s.server
    for _ in range(2):
        s.say("first", a("acquire", "values xy", "l", HOUR_MS))
    s.say("keys", s.keys())
    s.say("for an hour", long_lease(server, "l"))
    s.say("second", [b("try", f"values {values}", "l", 0, HOUR_MS) for values in ("y", "yz", "zx", "xy")])
    s.say("keys", s.keys())
    s.say("second", b("try", "values z", "l", 0, HOUR_MS))
    s.say("locked", [thread("locked", f"values {value}", "l") for thread in (a, b) for value in "xyzu"])
    waiting = waits(b, "values yz", "l")
    s.say("channels", s.channels())
    s.say("first", a("release", "values xy", "l"))
    s.say("second waits", waiting.pending())
    s.say("not its own", s.threads["b2"]("release", "values xy", "l"))
    s.say("first", a("release", "values xy", "l"))
    s.say("second", waiting.get())
    s.say("keys", s.keys())
    s.say("first", [a("try", f"values {values}", "l", 0, HOUR_MS) for values in ("xy", "x")])
    s.say("second", b("release", "values yz", "l"))
    s.say("keys", s.keys())
    # Redisson's script fails when one of the values is free.
    s.say("by force", s.threads["a2"]("force", "values z", "l"))
    s.say("second", b("release", "values z", "l"))
    s.say("first", a("release", "values x", "l"))
    s.say("keys", s.keys())
    # A lease that is not renewed ends for the other one as well, and no other value's.
    s.say("brief", a("acquire", "values xy", "l", 1_000))
    s.say("beside it", s.threads["a2"]("acquire", "values z", "l", HOUR_MS))
    s.say("second", b("acquire", "values yu", "l", HOUR_MS))
    s.say("late", a("release", "values xy", "l"))
    s.say("locked", [thread("locked", f"values {value}", "l") for thread in (a, b) for value in "xyzu"])
    s.say("released", [b("release", "values yu", "l"), s.threads["a2"]("release", "values z", "l")])


def renews_values(s):
    """The watchdog of each keeps values for longer than a lease: of a new name, as Redisson keeps the lease before in its lock."""
    for holder, waiter in (("a1", "b1"), ("b1", "a1")):
        holder, waiter = s.threads[holder], s.threads[waiter]
        s.say("holder", holder("acquire", "values xy", "m", "-"))
        waiting = waits(waiter, "values yz", "m", HOUR_MS)
        renewals, left = 0, WATCHDOG_MS

        def renewed():
            nonlocal renewals, left
            before, left = left, s.server.pttl("m")
            renewals += left > before
            return renewals >= 3

        until("three renewals", renewed)
        s.say("waits", waiting.pending())
        s.say("holder", holder("release", "values xy", "m"))
        s.say("waiter", f"{waiting.get()}, {waiter('release', 'values yz', 'm')}")
        s.say("keys", s.keys())
