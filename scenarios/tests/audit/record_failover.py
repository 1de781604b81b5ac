#!/usr/bin/env python3
"""Audits a master that dies while redis-py holds a lock that its replica lacks: record_failover.py LOCKSTORM.

Starts a master, a replica and three Sentinels of target/trials/servers/redis-8.2, has the binary LOCKSTORM follow them, and prints
what it says. Runs with the Python of target/trials/python, in which trials/setup installs redis-py.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import redis
from redis.exceptions import LockNotOwnedError
from redis.lock import Lock

SERVER = Path(__file__).resolve().parents[3] / "target/trials/servers/redis-8.2"
MASTER, REPLICA, SENTINELS = 27101, 27102, (27201, 27202, 27203)
LEASE_SECS = 8
SENTINEL = f"""
sentinel monitor mymaster 127.0.0.1 {MASTER} 2
sentinel down-after-milliseconds mymaster 1000
sentinel failover-timeout mymaster 10000
"""


def start(folder, port, *arguments):
    own = Path(folder) / str(port)
    own.mkdir()
    if not arguments:
        (own / "sentinel.conf").write_text(f"port {port}\ndir {own}{SENTINEL}")
        arguments = (own / "sentinel.conf", "--sentinel")
    else:
        arguments = ("--port", str(port), "--save", "", "--dir", own, *arguments)
    return subprocess.Popen([SERVER, *arguments], stdout=subprocess.DEVNULL)


def lock(port):
    Lock.lua_release = None
    return Lock(redis.Redis(port=port), "stock", timeout=LEASE_SECS)


def play(master):
    """The replica lacks the last grant. Its owner comes back to the new master."""
    warm = lock(MASTER)
    warm.acquire()
    warm.release()
    # The audit trusts a SET NX only after a lease.
    time.sleep(LEASE_SECS + 0.5)
    redis.Redis(port=REPLICA).replicaof("NO", "ONE")
    lost = lock(MASTER)
    lost.acquire()
    time.sleep(0.3)
    master.kill()
    sentinel = redis.Redis(port=SENTINELS[0], decode_responses=True)
    while int(sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster")[1]) != REPLICA:
        time.sleep(0.05)
    time.sleep(1.5)
    following = lock(REPLICA)
    following.acquire()
    back = lock(REPLICA)
    back.local.token = lost.local.token
    try:
        back.release()
    except LockNotOwnedError as error:
        print(error)
    following.release()


def main():
    with tempfile.TemporaryDirectory() as folder:
        processes = [start(folder, MASTER, "--appendonly", "no")]
        try:
            processes.append(start(folder, REPLICA, "--replicaof", f"127.0.0.1 {MASTER}"))
            time.sleep(1)
            processes += [start(folder, port) for port in SENTINELS]
            time.sleep(3)
            url = f"redis+sentinel://127.0.0.1:{SENTINELS[0]},127.0.0.1:{SENTINELS[1]}/mymaster"
            audit = subprocess.Popen([sys.argv[1], "audit", url, "--for", "20s"])
            time.sleep(1.5)
            play(processes[0])
            audit.wait()
        finally:
            for process in processes:
                process.kill()


if __name__ == "__main__":
    main()
