"""Redisson and lockstorm-client share locks on groups of servers: a master that Sentinels watch, and a cluster.

The plays are those of one server (`../shared`), and some in which the master of a lock dies while it is held: whoever holds it then
holds it on the promoted replica, and whoever waits is woken there.
"""

import os
import sys
import time
from contextlib import ExitStack, contextmanager

import redis
from redis.crc import key_slot

import plays
from casts import REDISSON, Venue
from plays import HALVES, HOUR_MS, SINGLE, waits
from servers import Kind, free_port
from stage import Monitor, Peer, until

# Of both kinds of processes: those of one kind are played on one server.
MIXED = [0, 1]
# What Redisson does and our client does not.
REDISSON_ALONE = [2]
# A master that is silent for so long is dead: longer than a busy machine lets a process wait.
DOWN_AFTER_MS = 2_000
# Seconds for a group to settle. Where Sentinels split their votes they stand again after twice their own time-out.
SETTLES_S = 60
# Longer than a failover by far, of which a hold must outlast one.
WATCHDOG_MS = 12_000
SLOTS = 16384
# Where Sentinels tell each other of themselves.
HELLO = "__sentinel__:hello"
# A replica that comes back need not wait for others.
AT_ONCE = ("repl-diskless-sync-delay", 0)


def connect(server):
    return redis.Redis("127.0.0.1", server.port, decode_responses=True, socket_timeout=5)


class Group:
    """A group of nodes, as one server: each question about keys is asked of the master that has them."""

    def __init__(self, nodes):
        self.nodes = {connect(node): node for node in nodes}
        self.monitor = Monitor(list(self.nodes))
        self.dead = None
        # Who has the lock of the plays, by what was ordered.
        self.leader = None

    def prepare(self):
        """Everything is as it was ordered to be, whatever became of the play before."""
        if self.dead:
            self.restore("l")
        now = self.master_of("l")
        if self.leader not in (None, now):
            raise RuntimeError(f"a failover that nobody wanted: was the machine busy for more than {DOWN_AFTER_MS} ms?")
        self.leader = now

    def at(self, port):
        return next(node for node, server in self.nodes.items() if server.port == port)

    def up(self):
        return [connection for connection in self.nodes if connection is not self.dead]

    def __getattr__(self, command):
        return lambda key, *more, **options: getattr(self.master_of(key), command)(key, *more, **options)

    def keys(self):
        return [key for master in self.masters() for key in master.keys()]

    def flushall(self):
        for master in self.masters():
            master.flushall()

    def pubsub_channels(self):
        """Those of either kind, on any master."""
        masters = self.masters()
        heard = {channel for master in masters for channel in master.pubsub_channels()}
        return [*(heard - {HELLO}), *{channel for master in masters for channel in master.pubsub_shardchannels()}]

    def pubsub_numsub(self, channel):
        asked = [ask(channel) for master in self.masters() for ask in (master.pubsub_numsub, master.pubsub_shardnumsub)]
        return [(channel, sum(dict(answer).get(channel, 0) for answer in asked))]

    def fail(self, key):
        """The master of a key dies when its replica has all that it has, and the replica takes its place."""
        master = self.master_of(key)
        # WAIT is about what was written before the connection's own last command.
        until("the replica has it all", lambda: master.ping() and master.wait(1, 100) == 1)
        self.dead = master
        self.monitor.servers.remove(master)
        self.nodes[master].kill()
        until("the replica is promoted", self.is_promoted, SETTLES_S)
        self.leader = self.master_of(key)

    def hand_over(self, key):
        """The replica takes the place of a master that is well."""
        master, ordered = self.master_of(key), None

        def has_changed():
            nonlocal ordered
            if self.master_of(key) is not master:
                return True
            # Sentinels give up an order in which the replica is not reached in time.
            if ordered is None or time.monotonic() - ordered > SETTLES_S / 4:
                ordered = time.monotonic()
                self.order(key)
            return False

        until("the replica has taken over", has_changed, SETTLES_S)
        self.leader = self.master_of(key)

    def restore(self, key):
        """What was the master before, and is dead or deposed, becomes the replica of its successor."""
        if self.dead:
            self.nodes[self.dead].start()
            self.join(self.dead, key)
            self.monitor.servers.append(self.dead)
            self.dead = None
        until("it is a replica", lambda: self.has_replica(key), SETTLES_S)

    def has_replica(self, key):
        seen = self.master_of(key).info("replication")
        return seen["role"] == "master" and any(seen[name]["state"] == "online" for name in seen if name.startswith("slave"))


class Watched(Group):
    """A master with a replica, and three Sentinels."""

    def __init__(self, kind, running):
        self.kind = kind
        master = running.enter_context(kind.node(AT_ONCE))
        nodes = [master, running.enter_context(kind.node(AT_ONCE, ("replicaof", f"127.0.0.1 {master.port}")))]
        lines = [
            f"sentinel monitor mymaster 127.0.0.1 {master.port} 2",
            f"sentinel down-after-milliseconds mymaster {DOWN_AFTER_MS}",
            "sentinel failover-timeout mymaster 3000",
        ]
        sentinels = [running.enter_context(kind.sentinel(*lines)) for _ in range(3)]
        self.sentinels = [connect(sentinel) for sentinel in sentinels]
        super().__init__(nodes)
        self.url = f"redis+sentinel://{','.join(f'127.0.0.1:{sentinel.port}' for sentinel in sentinels)}/mymaster"
        until("the replica is known", lambda: self.has_replica("l"), SETTLES_S)

    def masters(self):
        return [self.master_of("l")]

    def ports(self):
        return {sentinel.sentinel_get_master_addr_by_name("mymaster")[1] for sentinel in self.sentinels}

    def master_of(self, _):
        return self.at(self.sentinels[0].sentinel_get_master_addr_by_name("mymaster")[1])

    def is_promoted(self):
        [replica] = self.up()
        return self.ports() == {self.nodes[replica].port} and replica.info("replication")["role"] == "master"

    def order(self, _):
        self.sentinels[0].sentinel_failover("mymaster")

    def join(self, node, key):
        node.replicaof("127.0.0.1", self.nodes[self.master_of(key)].port)

    def has_replica(self, key):
        """And all Sentinels know it: they promote none that they believe to be down."""
        def known(sentinel):
            replicas = sentinel.sentinel_slaves("mymaster")
            return any(not one["is_sdown"] and not one["is_disconnected"] for one in replicas)

        others = all(len(sentinel.sentinel_sentinels("mymaster")) == 2 for sentinel in self.sentinels)
        return others and super().has_replica(key) and all(map(known, self.sentinels))

    @contextmanager
    def fourth(self):
        """Another Sentinel that all know, with a user of its own at the nodes. They forget it afterwards."""
        [master] = self.masters()
        for node in self.nodes:
            node.execute_command("ACL SETUSER", "fourth", "on", ">fourth", "+@all", "allkeys", "allchannels")
        lines = [
            f"sentinel monitor mymaster 127.0.0.1 {self.nodes[master].port} 2",
            "sentinel auth-user mymaster fourth",
            "sentinel auth-pass mymaster fourth",
        ]
        try:
            with self.kind.sentinel(*lines) as sentinel:
                fourth = connect(sentinel)
                knows_all = lambda one: len(one.sentinel_sentinels("mymaster")) == 3
                until("all Sentinels know each other", lambda: all(map(knows_all, [fourth, *self.sentinels])), SETTLES_S)
                yield fourth, self.url.replace("/mymaster", f",127.0.0.1:{sentinel.port}/mymaster")
        finally:
            for sentinel in self.sentinels:
                sentinel.sentinel_reset("mymaster")
            for node in self.nodes:
                node.acl_deluser("fourth")

    def deafen(self, fourth):
        """It hears no more what the others know, neither at the nodes nor from them, and can make no node a replica: the master of now is
        the master for it whatever happens. The others reach it, and take it for well."""
        for node in self.nodes:
            node.execute_command("ACL SETUSER", "fourth", "resetchannels", "-replicaof", "-slaveof")
        fourth.execute_command("ACL SETUSER", "default", "-publish")


class Cluster(Group):
    """Three masters that share the slots, and a replica of the one that has the lock of the plays."""

    def __init__(self, kind, running):
        options = [AT_ONCE, ("cluster-enabled", "yes"), ("cluster-node-timeout", DOWN_AFTER_MS)]
        buses = [free_port() for _ in range(4)]
        nodes = [running.enter_context(kind.node(*options, ("cluster-port", bus))) for bus in buses]
        super().__init__(nodes)
        *masters, replica = self.nodes
        for at, node in enumerate(masters):
            share = at * SLOTS // 3, (at + 1) * SLOTS // 3 - 1
            node.execute_command("CLUSTER ADDSLOTSRANGE", *share)
            node.execute_command("CLUSTER SET-CONFIG-EPOCH", at + 1)
        for server, bus in list(zip(nodes, buses))[1:]:
            masters[0].execute_command("CLUSTER MEET", "127.0.0.1", server.port, bus)
        until("all have met", lambda: all(len(self.seen_by(node)) == 4 for node in self.nodes))
        mine = masters[key_slot(b"l") * 3 // SLOTS]
        replica.execute_command("CLUSTER REPLICATE", mine.execute_command("CLUSTER MYID"))
        self.url = f"redis+cluster://{','.join(f'127.0.0.1:{server.port}' for server in nodes)}"
        until("there is a replica", lambda: self.has_replica("l"))
        until("all agree", lambda: all(self.is_whole(node) for node in self.nodes))

    def seen_by(self, node):
        """Flags and slots of each node, by its port."""
        return {int(address.rsplit(":")[1]): seen for address, seen in node.cluster("NODES").items()}

    def is_whole(self, node):
        return node.cluster("INFO")["cluster_state"] == "ok" and any("slave" in seen["flags"] for seen in self.seen_by(node).values())

    def masters(self):
        return [node for node in self.up() if node.info("replication")["role"] == "master"]

    def master_of(self, key):
        """While a master is being replaced a node may know of none for a moment."""
        slot, known = key_slot(key.encode()), []

        def is_known():
            port = self.owner_by(self.up()[0], slot)
            known[:] = [node for node, server in self.nodes.items() if server.port == port]
            return known

        until("the slot has a master", is_known, SETTLES_S)
        return known[0]

    def is_promoted(self):
        """Everyone alive says so, and answers again."""
        dead = self.nodes[self.dead].port
        agreed = all(not self.seen_by(node)[dead]["slots"] for node in self.up())
        return agreed and all(node.cluster("INFO")["cluster_state"] == "ok" for node in self.up())

    def order(self, key):
        [replica] = set(self.up()) - set(self.masters())
        replica.execute_command("CLUSTER FAILOVER")

    def join(self, node, key):
        """It learns its place from the others."""

    def migrate(self, key, target=None):
        """The key's slot goes to another master, with all that it has."""
        slot, source = key_slot(key.encode()), self.master_of(key)
        target = target or next(master for master in self.masters() if master is not source)
        ids = {node: node.execute_command("CLUSTER MYID") for node in (source, target)}
        target.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
        source.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])
        keys = source.execute_command("CLUSTER GETKEYSINSLOT", slot, 100)
        source.execute_command("MIGRATE", "127.0.0.1", self.nodes[target].port, "", 0, 5000, "KEYS", *keys)
        for node in (target, source):
            node.execute_command("CLUSTER SETSLOT", slot, "NODE", ids[target])
        until("all know where it is", lambda: all(self.owner_by(node, slot) == self.nodes[target].port for node in self.nodes))
        self.leader = target

    def open_slot(self, key):
        """The key's slot is about to go to another master, and nothing of it has gone yet. Returns what ends that."""
        slot, source = key_slot(key.encode()), self.master_of(key)
        target = next(master for master in self.masters() if master is not source)
        ids = {node: node.execute_command("CLUSTER MYID") for node in (source, target)}
        target.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
        source.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])
        return lambda: [node.execute_command("CLUSTER SETSLOT", slot, "STABLE") for node in (source, target)]

    def owner_by(self, node, slot):
        ranges = node.execute_command("CLUSTER SLOTS")
        return next((port for start, end, (_, port, *_), *_ in ranges if start <= slot <= end), None)


def passes_on(s, change, kind, other=None):
    """The master changes: the new one knows who holds the lock, and who waits is woken there."""
    a, b, other = s.threads["a1"], s.threads["b1"], other or kind
    s.say("first", a("acquire", kind, "l", HOUR_MS))
    waiting = waits(b, other, "l")
    change("l")
    s.say("keys", s.keys())
    # The new master alone has this. For some time the old one would still answer.
    s.server.hset("{l}there", "anyone", 1)
    asked = [s.threads[name] for name in ("a2", "b2")]
    until("both ask there", lambda: all(thread("locked", "lock", "{l}there") == "true" for thread in asked))
    s.server.delete("{l}there")
    until("the waiter listens there", s.channels)
    s.say("channels", s.channels())
    s.say("beside it", s.threads["a2"]("try", "write" if other in ("read", "write") else other, "l", 0, HOUR_MS))
    s.say("second waits", waiting.pending())
    s.say("first", a("release", kind, "l"))
    s.say("second", waiting.get())
    s.say("keys", s.keys())
    s.say("first", a("release", kind, "l"))
    s.say("second", b("release", other, "l"))
    s.say("keys", s.keys())


def outlives_master(s, kind, other=None):
    """It dies."""
    passes_on(s, s.server.fail, kind, other)
    s.server.restore("l")


def follows_order(s, kind):
    """Its replica is ordered to take its place. A master that Sentinels have deposed so takes writes for ten seconds more."""
    passes_on(s, s.server.hand_over, kind)
    s.server.restore("l")


def follows_slot(s, kind):
    """Another master of the cluster gets the slot."""
    home = s.server.master_of("l")
    passes_on(s, s.server.migrate, kind)
    s.server.migrate("l", home)


def is_renewed_elsewhere(s):
    """The watchdog of each goes on at the master's successor."""
    holds = {(name, kind): f"{{l}}{kind} of {name}" for name in ("a1", "b1") for kind in (*SINGLE, "read", "write")}
    for (name, kind), lock in holds.items():
        s.say(lock, s.threads[name]("acquire", kind, lock, "-"))
    s.server.fail("l")
    left, renewed = {lock: s.server.pttl(lock) for lock in holds.values()}, set()
    s.say("keys", s.keys())

    def all_renewed():
        for lock in holds.values():
            before, left[lock] = left[lock], s.server.pttl(lock)
            if left[lock] > before:
                renewed.add(lock)
        return renewed == set(holds.values())

    until("each is renewed", all_renewed)
    for (name, kind), lock in holds.items():
        s.say(lock, s.threads[name]("release", kind, lock))
    s.say("keys", s.keys())
    s.server.restore("l")


def hands_permits_on(s):
    """A permit that is given back to the master's successor goes to who has waited at the master."""
    giver, taker = s.threads["a1"], s.threads["b1"]
    s.say("permits", giver("permits", "l", 1))
    s.say("giver", giver("take", "l", 1))
    since = plays.monitor.mark()
    waiting = taker.begin("take", "l", 1)
    until("it waits", lambda: plays.monitor.scripts(since, "l") >= 2)
    s.server.fail("l")
    until("the taker listens there", s.channels)
    s.say("giver", giver("give", "l", 1))
    s.say("taker", waiting.get())
    s.say("left", giver("left", "l"))
    s.server.restore("l")


def opens_elsewhere(s):
    """A latch that is counted down at the master's successor opens for who has waited at the master."""
    a, b = s.threads["a1"], s.threads["b1"]
    s.say("set", a("set", "l", 1))
    waiting = [s.threads[name].begin("await", "l") for name in ("a2", "b2")]
    heard = lambda: dict(s.server.pubsub_numsub(plays.LATCH_CHANNEL)) == {plays.LATCH_CHANNEL: 2}
    until("they wait", heard)
    s.server.fail("l")
    until("they listen there", heard)
    s.say("waiting", [answer.pending() for answer in waiting])
    s.say("second", b("count down", "l"))
    s.say("waiting", [answer.get() for answer in waiting])
    s.server.restore("l")


def demand(holds, what):
    """Both kinds of servers could be wrong alike: what Redisson is known to do with either is no matter of comparing them."""
    if not holds:
        raise RuntimeError(what)


def confirmations(thread, name):
    """What is asked of replicas before a lock is granted."""
    since = plays.monitor.mark()
    answer = thread("try", "lock", name, 0, HOUR_MS)
    demand(answer == "granted", f"{name} is {answer}")
    plays.monitor.mark()
    return [line for line in plays.monitor.lines[since:] if line.startswith("WAIT ")]


def counts_replicas_once(s, after):
    """A replica that is promoted has no replicas. Behind Sentinels a process of Redisson's still counts those of its predecessor then, waits for
    one in vain, takes the grant back, and grants the lock again without any; on a cluster it asks none at once. From then on it asks none, also
    when there is one again. `after` is what it asks first after the failover. The other processes have seen failovers before."""
    process = Peer("redisson", [*REDISSON, str(WATCHDOG_MS), s.server.url])
    try:
        a = process.thread(1)
        # It asks how many there are, and keeps the answer.
        confirmations(a, "{l}first")
        told = {"before": confirmations(a, "{l}before")}
        s.server.fail("l")
        until("it asks there", lambda: a("locked", "lock", "{l}before") == "true")
        s.say("replicas", s.server.master_of("l").info("replication")["connected_slaves"])
        told["after"] = confirmations(a, "{l}after")
        told["again"] = confirmations(a, "{l}again")
        s.server.restore("l")
        told["with a replica"] = confirmations(a, "{l}restored")
    finally:
        process.end()
    s.say("asks of replicas", told)
    one = ["WAIT 1 1000"]
    demand(told == {"before": one, "after": after, "again": [], "with a replica": []}, f"it asks {told}")


def believes_stale_sentinel(s):
    """Redisson asks one Sentinel at a time, and compares no epochs. One that has not heard of a failover leads it back to the old master
    whenever it is asked, and the next one away from there again. The old master lives, and has not been told that it is a replica."""
    old = s.server.master_of("l")
    with s.server.fourth() as (stale, url):
        process = Peer("redisson", [*REDISSON, str(WATCHDOG_MS), url])
        try:
            a, named = process.thread(1), stale.sentinel_get_master_addr_by_name("mymaster")
            s.server.deafen(stale)
            old.execute_command("ACL SETUSER", "default", "-replicaof", "-slaveof")
            s.server.hand_over("l")
            new, granted_by = s.server.master_of("l"), []

            def goes_back_and_forth():
                name = f"{{l}}{time.monotonic_ns()}"
                try:
                    a("try", "lock", name, 0, HOUR_MS)
                except RuntimeError:
                    # The connection that it has was closed.
                    return False
                # A grant that no replica has seen may be taken back.
                for by in [by for by, node in (("old", old), ("new", new)) if node.exists(name)]:
                    if granted_by[-1:] != [by]:
                        granted_by.append(by)
                return granted_by[-3:] == ["new", "old", "new"]

            until("it goes back and forth between the masters", goes_back_and_forth, SETTLES_S)
            s.say("locks are granted by the new master, by the old one and by the new one again", True)
            demand(stale.sentinel_get_master_addr_by_name("mymaster") == named, "the Sentinel is stale")
        finally:
            old.execute_command("ACL SETUSER", "default", "+replicaof", "+slaveof")
            process.end()
    # The Sentinels have forgotten it.
    s.server.join(old, "l")
    s.server.restore("l")


def sleeps_through_move(s):
    """A waiter of Redisson's goes on listening where the slot was. The release at the slot's new master does not wake it: it asks again when the
    lease of which it was told is over."""
    a, b = s.threads["a1"], s.threads["b1"]
    home, lease_s = s.server.master_of("l"), 8
    s.say("first", a("acquire", "lock", "l", lease_s * 1000))
    told = time.monotonic()
    waiting = waits(b, "lock", "l")
    s.server.migrate("l")
    try:
        s.say("first", a("release", "lock", "l"))
        demand(not s.server.exists("l"), "the lock is free where the slot is now")
        # Nothing tells of a waiter that it is not woken but the time that goes by: half of the lease.
        time.sleep(max(told + lease_s / 2 - time.monotonic(), 0))
        s.say("second sleeps although it is free", waiting.pending())
        demand(waiting.pending(), "the waiter was woken where the slot is now")
        s.say("second", waiting.get())
        demand(time.monotonic() - told > lease_s - 1, "it asked before the lease was over")
        s.say("second", b("release", "lock", "l"))
    finally:
        s.server.migrate("l", home)


def is_not_released_in_open_slot(s):
    """While a slot is about to move, a release of Redisson's is refused until it gives up, and its watchdog has stopped by then: the lock ends
    with its lease."""
    a = s.threads["a1"]
    s.say("first", a("acquire", "lock", "l", "-"))
    close = s.server.open_slot("l")
    try:
        try:
            answer = a("release", "lock", "l")
        except RuntimeError as refused:
            answer = str(refused)
        demand("TRYAGAIN" in answer and s.server.exists("l"), f"the release in an open slot was not refused: {answer}")
        s.say("release is refused", True)
        s.say("keys", s.keys())
    finally:
        close()
    until("the lock is over", lambda: not s.server.exists("l"), 2 * WATCHDOG_MS / 1000)


# Left out are names that make a lock of several slots, which is none of a cluster, and what is the clocks' matter and not the group's.
PLAYS = [
    *((f"{kind} {play.__name__}", MIXED, play, kind)
      for kind in SINGLE for play in (plays.excludes, plays.nests, plays.is_forced, outlives_master)),
    *((f"{kind} excludes", MIXED, plays.excludes, kind) for kind in ("non-reentrant", "non-reentrant fair")),
    ("read-write reads_and_writes", MIXED, plays.reads_and_writes),
    *((f"{kind}/{other} half_is_forced", MIXED, plays.half_is_forced, kind, other) for kind, other in HALVES),
    ("read/write outlives_master", [0], outlives_master, "read", "write"),
    ("write/read outlives_master", [1], outlives_master, "write", "read"),
    ("spin spins", MIXED, plays.spins),
    ("faster multi takes_values", MIXED, plays.takes_values),
    ("all is_renewed_elsewhere", [0], is_renewed_elsewhere),
    ("fenced fences", MIXED, plays.fences),
    ("semaphore permits", MIXED, plays.permits),
    ("semaphore hands_permits_on", MIXED, hands_permits_on),
    ("expirable semaphore lends", MIXED, plays.lends),
    ("latch opens", MIXED, plays.opens),
    ("latch opens_elsewhere", [0], opens_elsewhere),
    ("rate limits", MIXED, plays.limits),
    ("rate refills", MIXED, plays.refills),
]


# Where the master before goes on answering, a waiter of Redisson may go on listening to it until the lease is over, and always does when
# a slot has moved. So the one that waits is ours.
WATCHED = [
    *PLAYS,
    ("lock follows_order", [0], follows_order, "lock"),
    ("lock counts_replicas_once", REDISSON_ALONE, counts_replicas_once, ["WAIT 1 1000"]),
    ("lock believes_stale_sentinel", REDISSON_ALONE, believes_stale_sentinel),
]
CLUSTER = [
    *PLAYS,
    ("lock counts_replicas_once", REDISSON_ALONE, counts_replicas_once, []),
    ("lock sleeps_through_move", REDISSON_ALONE, sleeps_through_move),
    ("lock is_not_released_in_open_slot", REDISSON_ALONE, is_not_released_in_open_slot),
    ("lock follows_order", MIXED, follows_order, "lock"),
    ("lock follows_slot", [0], follows_slot, "lock"),
]


def main():
    kind, same = Kind(os.environ.get("LOCKSTORM")), []
    for group, programme in (Watched, WATCHED), (Cluster, CLUSTER):
        name = group.__name__.lower()
        with ExitStack() as running:
            deployment = group(kind, running)
            venue = Venue([deployment.url], [deployment], deployment.monitor, WATCHDOG_MS, "l", deployment.prepare)
            same.append(venue.perform([(f"{name}: {title}", *play) for title, *play in programme]))
    if not all(same):
        sys.exit("who shares with whom makes a difference")
    print("done")


main()
