#!/usr/bin/env python3
"""The speed and the memory of `lockstorm audit` for a large capture.

    benches/audit.py [--lockstorm PATH] [--commands N] [--keep FILE] [--requests]

Writes a capture of N commands (10 million without --commands) to a temporary file, as 200 clients make them in 50,000 commands per second:
five in six on a cache, the rest on 2,000 locks as Redisson and redis-py use them, scripts with the commands that they run. One command
in five hundred is a SET NX that marks a request as done, for an hour, on a key that is never used again. Prints the wall time of the audit, its commands per second,
and the most memory that it had resident. With --requests every second command is such a SET NX, for a day. --keep writes the capture to a file, and reads it if it exists.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PER_SECOND = 50_000
CLIENTS = 200
LOCKS = 2_000
ACQUIRE = "e2b3d9a4aef218717f37d8f1cb62715f1aff3a2b"
RELEASE = "50495e059291d45c14ac4178cb78f3194549f8b1"
RELEASE_TOKEN = "c3f8721cbb97f72bc19e972846bd7aaf91901658"
LEASE_MS = 30_000


def redisson(draw, lock, address, client):
    """The commands of one hold, in the order of a script each."""
    owner = f"00000000-0000-4000-8000-{client:012d}:{draw.randrange(1, 9)}"
    latch = f"redisson_unlock_latch:{{{lock}}}:{draw.getrandbits(128):032x}"
    channel = f"redisson_lock__channel:{{{lock}}}"
    yield [
        f'{address}] "EVALSHA" "{ACQUIRE}" "1" "{lock}" "{LEASE_MS}" "{owner}"',
        f'lua] "pttl" "{lock}"',
        f'lua] "hincrby" "{lock}" "{owner}" "1"',
        f'lua] "pexpire" "{lock}" "{LEASE_MS}"',
    ]
    yield [
        f'{address}] "EVALSHA" "{RELEASE}" "3" "{lock}" "{channel}" "{latch}" "0" "{owner}" "PUBLISH" "20000"',
        f'lua] "get" "{latch}"',
        f'lua] "hexists" "{lock}" "{owner}"',
        f'lua] "hincrby" "{lock}" "{owner}" "-1"',
        f'lua] "del" "{lock}"',
        f'lua] "publish" "{channel}" "0"',
        f'lua] "set" "{latch}" "1" "px" "20000"',
    ]


def redis_py(draw, lock, address, _):
    token = f"{draw.getrandbits(128):032x}"
    yield [f'{address}] "SET" "{lock}" "{token}" "NX" "PX" "{LEASE_MS}"']
    yield [
        f'{address}] "EVALSHA" "{RELEASE_TOKEN}" "1" "{lock}" "{token}"',
        f'lua] "get" "{lock}"',
        f'lua] "del" "{lock}"',
    ]


def cache(draw, address):
    key, kind = draw.randrange(1_000_000), draw.random()
    if kind < 0.70:
        return f'{address}] "GET" "cache:{key}"'
    if kind < 0.85:
        return f'{address}] "SET" "cache:{key}" "{draw.getrandbits(512):0128x}" "EX" "600"'
    if kind < 0.95:
        return f'{address}] "HGET" "user:{key}" "name"'
    return f'{address}] "INCR" "visits:{key % 1000}"'


def write(path, count, marking):
    """Writes a capture of `count` lines, a share of which mark a request as done. No two owners hold a lock at once, and each is given back in its lease."""
    draw = random.Random(1)
    addresses = [f"10.0.{at % 20}.{at % 7}:{40000 + at}" for at in range(CLIENTS)]
    # The rest of the present hold of each lock.
    holds = [None] * LOCKS
    step_us, at_us, written, requests = 1_000_000 // PER_SECOND, 1_700_000_000_000_000, 0, 0
    with open(path, "w") as file:
        file.write("OK\n")
        while written < count:
            client = draw.randrange(CLIENTS)
            address, kind = addresses[client], draw.random()
            if kind < 0.05:
                at = draw.randrange(LOCKS)
                if holds[at] is None:
                    play = redisson if at % 2 else redis_py
                    holds[at] = play(draw, f"lock:{at}", address, client)
                lines = next(holds[at], None)
                if lines is None:
                    holds[at] = None
                    continue
            elif kind < 0.05 + marking:
                requests += 1
                lines = [f'{address}] "SET" "request:{requests:036d}" "1" "NX" "EX" "{86400 if marking > 0.1 else 3600}"']
            else:
                lines = [cache(draw, address)]
            stamp = f"{at_us // 1_000_000}.{at_us % 1_000_000:06d} [0 "
            file.write("".join(f"{stamp}{line}\n" for line in lines))
            at_us += step_us * len(lines)
            written += len(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstorm", type=Path, default=TARGET / "release/lockstorm", help="a built lockstorm")
    parser.add_argument("--commands", type=int, default=10_000_000)
    parser.add_argument("--keep", type=Path, help="the capture's file")
    parser.add_argument("--requests", action="store_true", help="mark many requests as done")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "large.monitor"
        if not path.exists():
            write(path, options.commands, 0.5 if options.requests else 0.002)
        begun = time.monotonic()
        audit = subprocess.Popen([options.lockstorm.resolve(), "audit", path], stdout=subprocess.PIPE, text=True)
        said = audit.stdout.read()
        _, status, used = os.wait4(audit.pid, 0)
        took = time.monotonic() - begun
    code = os.waitstatus_to_exitcode(status)
    print("\n".join(said.splitlines()[:4]))
    processor = used.ru_utime + used.ru_stime
    print(f"{took:.1f} s, of them {processor:.1f} s of a processor: {options.commands / took:,.0f} commands per second")
    print(f"{used.ru_maxrss / 1000:.0f} MB resident at the most")
    if code != 0:
        sys.exit(f"the capture has locks without a fault, and the audit ends with {code}")


if __name__ == "__main__":
    main()
