"""The claims, each as the script of its clients and faults. Times are seconds after all clients are
connected.

They are the claims T1..T11 of the scoreboard that ask for no view of the server, with the same
leases (2 s) and time-outs (0.5 s). A claim's faults come at a time that the seed draws.
"""

from dataclasses import dataclass


@dataclass
class Claim:
    key: str
    says: str
    clients: int
    script: object
    expect: dict
    # The second at which the run ends, if its clients are not done before.
    end: float = 8
    timeout_ms: int | None = None
    fence: bool = False
    # Only for locks that are renewed, or that belong to a session.
    renewed: bool = False
    failover: bool = False


HOLDS = {"l2": "holds"}


def within(seconds):
    return HOLDS | {"progress": {"holds": {"stalled": f"..{seconds}s"}}}


def bound(expect):
    """The bound of `progress` in seconds, or None."""
    if progress := expect.get("progress"):
        return float(progress["holds"]["stalled"].strip(".s"))


async def one_at_a_time(run, draw):
    async def contend(app, number):
        import random

        own = random.Random(run.seed * 10 + number)
        rounds_in_calm = 0
        while True:
            calm = run.second() >= 5
            hold = await app.acquire(10_000)
            if hold:
                await app.work(hold, run.second() + own.uniform(0.25, 0.4), write_every=0.05)
                await app.release(hold)
                if calm:
                    return
            rounds_in_calm += calm
            await app.sleep(own.uniform(0.001, 0.05))

    run.calm_at(5)
    await run.all(*(contend(app, at) for at, app in enumerate(run.apps.values())))


async def late_release(run, draw):
    async def first(app):
        await app.until(0.5)
        hold = await app.take(1000, relies_for=1)
        await app.until(3.5 + draw.uniform(0, 0.2))
        await app.release(hold)

    await run.all(first(run.c1), second(run.c2, 1.5, 4.5, 5), third(run.c3, 4.2))


async def second(app, start, until, release):
    await app.until(start)
    # Its lease is longer than the rest of the run.
    hold = await app.poll(0.05, until, lease_ms=6000)
    if hold:
        await app.work(hold, max(release, app.history.now() / 1e9 + 0.5))
        await app.release(hold)


async def third(app, at):
    await app.until(at)
    hold = await app.acquire(0)
    if hold:
        await app.work(hold, at + 0.4)
        await app.release(hold)


async def paused_release(run, draw):
    async def first(app):
        await app.until(0.5)
        hold = await app.take(1000, relies_for=1)
        run.add(run.pause(app, after=0.2 + draw.uniform(0, 0.3), length=3.7))
        await app.until(1.5)
        await app.release(hold)

    await run.all(first(run.c1), second(run.c2, 1.5, 6, 6), third(run.c3, 5.2))


async def paused_holder(run, draw):
    async def first(app):
        await app.until(0.5)
        hold = await app.take(1000)
        run.add(run.pause(app, after=0.3 + draw.uniform(0, 0.3), length=3.7, in_gap=True))
        await app.work(hold, 6, write_every=0.05, until_lost=True)
        await app.release(hold)

    async def next_one(app):
        await app.until(1.5)
        hold = await app.poll(0.05, 7)
        if hold:
            await app.work(hold, max(6, run.second() + 0.5), write_every=0.05)
            await app.release(hold)

    await run.all(first(run.c1), next_one(run.c2))


def dead_holder(cut):
    async def script(run, draw):
        async def first(app):
            await app.until(0.5)
            await app.take(1000)
            await app.sleep(0.3 + draw.uniform(0, 0.4))
            if cut:
                run.cut(app)
            run.crash(app)
            # Nothing more of it.
            await app.runs.wait()

        async def next_one(app):
            await app.until(0.65)
            hold = await app.acquire(10_000, retry=True)
            if hold:
                await app.work(hold, run.second() + 0.1)
                await app.release(hold)

        run.calm_at(0.7)
        run.add(first(run.c1))
        await next_one(run.c2)

    return script


async def lost_acquire_reply(run, draw):
    async def first(app):
        await app.until(0.5)
        await app.release(await app.take(1000))
        await app.until(1.8 + draw.uniform(0, 0.2))
        run.lose_reply(app)
        await asks(app, 2.0)

    async def asks(app, at):
        await app.until(at)
        hold = await app.acquire(8000, retry=True)
        if hold:
            await app.work(hold, run.second() + 0.3)
            await app.release(hold)

    run.calm_at(2)
    await run.all(first(run.c1), asks(run.c2, 2.7))


async def lost_release_reply(run, draw):
    async def first(app):
        await app.until(0.5)
        await app.release(await app.take(1000))
        await app.until(1.2)
        hold = await app.take(1000, lease_ms=5000)
        await app.until(1.4)
        run.lose_reply(app)
        await app.until(1.5 + draw.uniform(0, 0.1))
        await app.release(hold, retry_after=0.5)

    async def next_one(app):
        await app.until(1.6)
        hold = await app.poll(0.02, 7, lease_ms=5000)
        if hold:
            await app.work(hold, run.second() + 4)
            await app.release(hold)

    async def third_one(app):
        await app.until(2.5)
        while run.second() < 7:
            hold = await app.acquire(0)
            if hold:
                await app.work(hold, run.second() + 0.3)
                await app.release(hold)
            await app.sleep(0.2)

    await run.all(first(run.c1), next_one(run.c2), third_one(run.c3))


async def kept(run, draw):
    async def first(app):
        await app.until(0.5)
        hold = await app.take(1000, lease_ms=None)
        await app.work(hold, 5.5 + draw.uniform(0, 0.5))
        await app.release(hold)

    await run.all(first(run.c1), second(run.c2, 1.5, 7, 6.5))


async def cut_off(run, draw):
    async def first(app):
        await app.until(0.5)
        hold = await app.take(1000, lease_ms=None)
        run.add(run.cut_for(app, after=0.8 + draw.uniform(0, 0.6), length=4))
        await app.work(hold, 6.5, until_lost=True)
        if run.second() >= 6.4:
            await app.release(hold)

    await run.all(first(run.c1), second(run.c2, 1.5, 7, 6.5))


async def failover(run, draw):
    async def first(app):
        await app.until(0.5)
        await run.cluster.before_grant()
        hold = await app.take(3000, lease_ms=10_000)
        await app.until(1.5 + draw.uniform(0, 0.5))
        run.add(run.fail_over())
        await app.work(hold, 7, until_lost=True)

    async def next_one(app):
        await app.until(3)
        hold = await app.poll(0.1, 6.5, lease_ms=10_000)
        if hold:
            await app.work(hold, 7)
            await app.release(hold)

    await run.all(first(run.c1), next_one(run.c2))


CLAIMS = [
    Claim("T1", "Without faults one client at a time has the lock, and every client gets it.",
          3, one_at_a_time, within(3) | {"l3": "holds"}, end=10),
    Claim("T2", "A release that comes late does not take the lock from its next owner.",
          3, late_release, HOLDS, end=6),
    Claim("T3", "A client that was paused beyond its lease or session does not take the lock from its next owner when it releases.",
          3, paused_release, HOLDS, end=7),
    Claim("T4", "A holder that was paused beyond its lease or session does not believe that it has the lock while another one has it.",
          2, paused_holder, HOLDS, end=8, fence=True),
    Claim("T5", "The lock of a process that was killed is free within 2.5 s.",
          2, dead_holder(cut=False), within(2.5), end=12),
    Claim("T5m", "The lock of a machine that vanished, so that its connections are not closed, is free within 2.5 s.",
          2, dead_holder(cut=True), within(2.5), end=12),
    Claim("T6", "An acquisition whose connection falls silent after it was carried out costs at most 4 s.",
          2, lost_acquire_reply, within(4), end=12, timeout_ms=500),
    Claim("T7", "A release that is repeated, after its connection fell silent, does not take the lock from its next owner.",
          3, lost_release_reply, HOLDS, end=9, timeout_ms=500),
    Claim("T9", "The lock is kept for as long as its holder runs.",
          2, kept, HOLDS, end=8, renewed=True),
    Claim("T10", "A holder that is cut off learns that the lock is lost before another client has it.",
          2, cut_off, HOLDS, end=8, timeout_ms=500, renewed=True),
    Claim("T11", "A failover does not give one lock to two owners.",
          2, failover, HOLDS, end=8, failover=True),
]
# The same run as T4, asked by other checkers.
OF_T4 = [
    ("L3", "A write that a holder had decided on before its pause does not reach the resource after the next owner's, without a fence.", "l3"),
    ("L4", "The same, where the resource refuses old fencing tokens.", "l4"),
]
