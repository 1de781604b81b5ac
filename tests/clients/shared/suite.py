"""Redisson and lockstorm-client share locks: two processes of each on one server, told what to do line by line."""

import os
import sys

import redis

from casts import Venue
from plays import (
    HALVES,
    SINGLE,
    counts,
    downgrades,
    excludes,
    expires,
    fences,
    gives_up,
    half_expires,
    half_is_forced,
    is_forced,
    is_named,
    is_outvoted,
    lends,
    limits,
    nests,
    nests_everywhere,
    nests_not,
    opens,
    outlives,
    permits,
    queues,
    reads_and_writes,
    refills,
    renews,
    renews_values,
    spins,
    takes_all,
    takes_values,
    upgrades,
    vanishes,
    votes,
)
from stage import Monitor

EVERY = [0, 1, 2, 3]
# These have a part for each cast of one and one in themselves.
ONCE = [0]
# For two processes, of any kind or of both kinds.
PLAYS = [
    *((f"{kind} {play.__name__}", EVERY, play, kind)
      for kind in SINGLE for play in (excludes, nests, is_forced, is_named)),
    *((f"{kind} {play.__name__}", EVERY, play, kind)
      for kind in ("non-reentrant", "non-reentrant fair") for play in (excludes, nests_not)),
    ("read-write reads_and_writes", EVERY, reads_and_writes),
    ("read-write downgrades", EVERY, downgrades),
    ("read-write upgrades", EVERY, upgrades),
    ("read-write half_expires", EVERY, half_expires),
    *((f"{kind}/{other} {play.__name__}", EVERY, play, kind, other)
      for kind, other in HALVES for play in (half_is_forced, is_named)),
    ("spin spins", EVERY, spins),
    ("multi takes_all", EVERY, takes_all),
    ("faster multi takes_values", EVERY, takes_values),
    ("faster multi renews_values", ONCE, renews_values),
    ("fair gives_up", ONCE, gives_up),
    ("fair outlives", ONCE, outlives),
    ("all expires", EVERY, expires),
    ("fenced fences", EVERY, fences),
    ("red votes", EVERY, votes),
    ("red nests_everywhere", EVERY, nests_everywhere),
    ("red is_outvoted", EVERY, is_outvoted),
    ("all renews", ONCE, renews),
    ("semaphore permits", EVERY, permits),
    ("expirable semaphore lends", EVERY, lends),
    ("latch opens", EVERY, opens),
    ("rate limits", EVERY, limits),
    ("rate refills", EVERY, refills),
]
# For all four, and for what only two of them have.
CROWDS = [
    ("fair queues", queues),
    *((f"{kind} counts", counts, kind) for kind in SINGLE),
    ("latch vanishes", vanishes),
    ("write counts", counts, "write"),
]


def main():
    ports = os.environ["REDIS_PORTS"].split(",")
    servers = [redis.Redis("127.0.0.1", int(port), decode_responses=True) for port in ports]
    venue = Venue([f"redis://127.0.0.1:{port}" for port in ports], servers, Monitor(servers[:1]))
    if not venue.perform(PLAYS, CROWDS):
        sys.exit("who shares with whom makes a difference")
    print("done")


main()
