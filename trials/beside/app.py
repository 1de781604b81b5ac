"""A client of a run: an application that uses a peer's locks, and the record of what it asks,
believes and writes.
"""

import asyncio

from peer import Gone, Peer, Refusal
from record import in_millis

# How often a library is asked that does not wait, and how long after an error it is asked again.
AGAIN, RETRY = 0.05, 0.1
# Between the look at the lock and the write that follows it.
GAP = 0.02


class Hold:
    def __init__(self, app, number, until_ms, token):
        self.app, self.number, self.until_ms, self.token = app, number, until_ms, token
        self.over = asyncio.Event()

    def is_held(self):
        return not self.over.is_set() and (self.until_ms is None or self.app.history.wall_ms() < self.until_ms)

    def end(self, why):
        if not self.over.is_set():
            self.over.set()
            self.app.history.disbelieves(self.app.host, why)


class App:
    def __init__(self, run, name, host):
        self.run, self.name, self.host, self.holds, self.peer = run, name, host, {}, None
        self.runs = asyncio.Event()
        self.runs.set()
        self.looked = asyncio.Event()
        self.links = []

    @property
    def history(self):
        return self.run.history

    async def start(self, command, cwd, nodes, lock, watchdog_ms, timeout_ms):
        self.peer = await Peer.start(command, cwd, self.hear)
        _, answered = self.peer.ask(type="init", host=self.name, locks=[{"lock": "lock", "name": lock, "nodes": nodes}],
                                    watchdog_ms=watchdog_ms, timeout_ms=timeout_ms)
        try:
            Peer.answer_of(await asyncio.wait_for(answered, 30))
        except Refusal as failed:
            raise Gone(f"{self.name} did not connect: {failed}") from None

    def hear(self, said):
        hold = self.holds.get(said.get("hold"))
        if hold is None or hold.over.is_set():
            return
        if said["type"] == "lost":
            hold.end("lost")
        elif said["type"] == "renewed":
            hold.until_ms = said.get("until_ms")
            self.history.believes(self.host, hold.until_ms, hold.token)

    async def sleep(self, seconds):
        await asyncio.sleep(seconds)
        await self.runs.wait()

    async def until(self, second):
        await self.sleep(max(0, second - self.history.now() / 1e9))

    async def ask(self, call, **request):
        """A call of the application, as one event of the history."""
        op = self.history.invoke(self.host, call)
        number, answered = self.peer.ask(**request)
        try:
            said = Peer.answer_of(await answered)
        except Refusal as failed:
            self.history.returns(self.host, op, {"failed": {"definite": failed.definite, "message": failed.text[:200]}})
            raise
        return op, number, said

    async def acquire(self, wait_ms, lease_ms=2000, retry=False, relies_for=None):
        """Asks until the lock is granted or the wait is over. The application may rely on it for
        less time than its library promises.
        """
        call = {"acquire": {"wait": in_millis(wait_ms), "lease_ms": lease_ms, "mode": "exclusive"}}
        waits = self.peer.can("wait")
        begun = self.history.now() / 1e9
        op = None
        while True:
            op = op or self.history.invoke(self.host, call)
            number, answered = self.peer.ask(type="acquire", lock="lock", wait_ms=wait_ms if waits else 0, lease_ms=lease_ms)
            asked = self.history.now() / 1e9
            try:
                said = Peer.answer_of(await answered)
            except Refusal as failed:
                self.history.returns(self.host, op, {"failed": {"definite": failed.definite, "message": failed.text[:200]}})
                if not retry:
                    return None
                op = None
                await self.sleep(RETRY)
                continue
            if said["type"] == "granted":
                return self.granted(op, number, said, relies_for and asked + relies_for)
            if waits or self.history.now() / 1e9 - begun >= (wait_ms or 0) / 1000:
                self.history.returns(self.host, op, "refused")
                return None
            await self.sleep(AGAIN)

    async def take(self, *request, **options):
        """Acquires a lock that is free: otherwise nothing is on trial."""
        hold = await self.acquire(*request, **options)
        if hold is None:
            raise Gone(f"{self.name} was not granted a free lock")
        return hold

    def granted(self, op, number, said, until):
        hold = Hold(self, number, said.get("until_ms"), said.get("token"))
        self.holds[number] = hold
        self.history.believes(self.host, hold.until_ms, hold.token)
        self.history.returns(self.host, op, "ok")
        if until is not None:
            self.run.add(self.watch(hold, until))
        return hold

    async def watch(self, hold, until):
        # A paused application cannot look at its watch. What it believes ends then all the same, as
        # a deadline does.
        await asyncio.sleep(max(0, until - self.history.now() / 1e9))
        hold.end("expired")

    async def poll(self, every, until, lease_ms=2000):
        while True:
            hold = await self.acquire(0, lease_ms)
            if hold or self.history.now() / 1e9 >= until:
                return hold
            await self.sleep(every)

    async def release(self, hold, retry_after=None):
        hold.end("released")
        for _ in range(2):
            try:
                op, _, _ = await self.ask("release", type="release", hold=hold.number)
                self.history.returns(self.host, op, "ok")
                return
            except Refusal as failed:
                if failed.definite or retry_after is None:
                    return
                await self.sleep(retry_after)

    async def work(self, hold, until, write_every=None, until_lost=False):
        """Holds the lock until then, and writes to the resource. Before each write it looks if it
        has the lock.
        """
        while (now := self.history.now() / 1e9) < until:
            if until_lost and not hold.is_held():
                return
            if write_every is None:
                # It learns of a loss or of its deadline within 10 ms.
                await self.sleep(min(0.01 if until_lost else until - now, until - now))
                continue
            may_write = hold.is_held()
            self.looked.set()
            await self.sleep(GAP)
            if may_write:
                self.history.writes(self.host, hold.token, self.history.now())
            await self.sleep(max(0, write_every - GAP))

    def pause(self):
        self.runs.clear()
        self.peer.pause()
        self.history.event(self.host, "life", life="paused")

    def resume(self):
        self.peer.resume()
        self.history.event(self.host, "life", life="resumed")
        self.runs.set()

    def crash(self):
        self.peer.kill()
        # It asks and believes nothing more.
        self.runs.clear()
        self.holds.clear()
        self.history.event(self.host, "life", life="crashed")
