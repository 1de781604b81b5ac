"""One run: a claim's clients and faults with one lock, and lockstorm's findings about its
history.
"""

import asyncio
import random

from app import App
from claims import bound
from peer import Gone, Peer
from record import History, judge
from systems import ROOT
from wire import Link

# A session's time-out, and the lease that a watchdog renews.
SESSION_MS = 2000


class Run:
    numbers = 0

    def __init__(self, row, claim, seed, version, server, again):
        self.row, self.claim, self.seed, self.server, self.cluster = row, claim, seed, server, None
        self.version, self.again, self.tasks, self.apps, self.died = version, again, [], {}, None
        Run.numbers += 1
        self.number = Run.numbers

    def __getattr__(self, name):
        return self.__dict__["apps"][name]

    def second(self):
        return self.history.now() / 1e9

    def add(self, work):
        self.tasks.append(asyncio.create_task(work))

    def calm_at(self, second):
        self.history.calm = int(second * 1e9)

    async def all(self, *work):
        await asyncio.gather(*work)

    # The faults.

    async def pause(self, app, after, length, in_gap=False):
        await asyncio.sleep(after)
        if in_gap:
            # Between a look at the lock and the write that follows it.
            app.looked.clear()
            await app.looked.wait()
        fault = self.history.fault("pause", f"{app.name} stands still", [app.host], True)
        app.pause()
        await asyncio.sleep(length)
        app.resume()
        fault["until"] = self.history.now()

    def crash(self, app):
        self.history.fault("crash", f"{app.name} crashes", [app.host], False)
        app.crash()
        self.died = self.history.now()

    def cut(self, app):
        for link in app.links:
            link.cut()
        return self.history.fault("cut", f"nothing gets through between {app.name} and the system", [0, app.host], True)

    async def cut_for(self, app, after, length):
        await asyncio.sleep(after)
        fault = self.cut(app)
        await asyncio.sleep(length)
        for link in app.links:
            link.heal()
        fault["until"] = self.history.now()

    def lose_reply(self, app):
        def lost():
            self.history.fault("lost", f"the connection of {app.name} falls silent after its request", [app.host], False)
            for link in app.links:
                link.loses = None

        for link in app.links:
            link.loses = (b"lock", lost)

    async def fail_over(self):
        self.history.fault("failover", self.cluster.words, [0], False)
        await self.cluster.take_away()

    # The run.

    async def play(self, lockstorm, path):
        """The findings by the checker's name, and the seconds from a holder's death until the next
        grant.
        """
        try:
            if self.claim.failover:
                self.cluster = self.row.failover()
                await self.cluster.start()
            await self.open()
            script = asyncio.create_task(self.claim.script(self, random.Random(self.seed)))
            gone = [app.peer.gone for app in self.apps.values()]
            end = asyncio.create_task(asyncio.sleep(self.claim.end))
            # A peer that a fault killed has ended by itself for no one.
            waits = {script, end}
            while not (script.done() or end.done()):
                done, _ = await asyncio.wait({*waits, *(each for each in gone if not each.done())}, return_when=asyncio.FIRST_COMPLETED)
                ended = [each for each in gone if each in done and self.died is None]
                if ended:
                    raise Gone(ended[0].result())
            if script.done():
                script.result()
            end.cancel()
            script.cancel()
            self.history.write_to(path, self.claim.expect, bound(self.claim.expect))
        finally:
            await self.close()
        return await asyncio.to_thread(judge, lockstorm, path), self.freed()

    async def open(self):
        names = [f"c{at + 1}" for at in range(self.claim.clients)]
        fence = self.claim.fence and (self.row.with_token or self.row.command)
        lock = f"lock-{self.number}"
        self.apps = {name: App(self, name, at) for at, name in enumerate(names, 1)}
        starts = []
        for name, app in self.apps.items():
            nodes = self.cluster.nodes(name) if self.cluster else [self.server.node]
            app.links = [Link(node) for node in nodes]
            addresses = [link.address for link in app.links]
            starts.append(app.start(fence or self.row.command, ROOT, addresses, lock, SESSION_MS, self.claim.timeout_ms))
        await asyncio.gather(*starts)
        scenario = f"beside/{self.claim.key}/{self.row.key}"
        self.history = History(scenario, self.claim.says, self.seed, self.again, self.version, names, ">" if self.claim.fence else "none")

    def freed(self):
        if self.died is None:
            return None
        after = [event["at"] for event in self.history.events if event["what"] == "believes" and event["at"] > self.died]
        return (after[0] - self.died) / 1e9 if after else None

    async def close(self):
        for task in self.tasks:
            task.cancel()
        for app in self.apps.values():
            if app.peer:
                await app.peer.end()
            for link in app.links:
                link.close()
        if self.cluster:
            self.cluster.end()


async def cost(row, server, rounds):
    """The milliseconds of an acquisition of a free lock, as a client alone sees it, without a proxy
    between: all of them, sorted.
    """
    peer = await Peer.start(row.command, ROOT, lambda said: None)
    try:
        locks = [{"lock": "lock", "name": "lock-of-cost", "nodes": [server.node]}]
        _, answered = peer.ask(type="init", host="c1", locks=locks, watchdog_ms=30_000, timeout_ms=None)
        Peer.answer_of(await answered)
        loop, took = asyncio.get_running_loop(), []
        for at in range(rounds + rounds // 4):
            begun = loop.time()
            number, answered = peer.ask(type="acquire", lock="lock", wait_ms=0, lease_ms=30_000)
            said = Peer.answer_of(await answered)
            # A quarter of them warms it up.
            if at >= rounds // 4:
                took.append((loop.time() - begun) * 1000)
            if said["type"] != "granted":
                raise Gone(f"a free lock was not granted: {said}")
            _, answered = peer.ask(type="release", hold=number)
            Peer.answer_of(await answered)
        return sorted(took)
    finally:
        await peer.end()
