#!/usr/bin/env python3
"""Records a capture of this folder again: record.py SERVER LIBRARY STORY.

Peers of `lockstorm trial` (trials/setup installs them) or an application of this folder play a story on a private server, while
redis-cli records MONITOR. SERVER is a program in target/trials/servers, LIBRARY an argument of a peer, STORY one of those in ../audit.rs.
"""

import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
JAVA = (
    "exec java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "
    "-cp 'target/trials/jvm/target/peer.jar:target/trials/jvm/target/dependency/*' Peer "
)
COMMANDS = {
    "redisson": JAVA + "redisson",
    "spring": JAVA + "spring",
    "shedlock": JAVA + "shedlock",
    "shedlock-safe": JAVA + "shedlock-safe",
    "redsync": "exec target/trials/go/peer redsync",
    "redlock": "exec node target/trials/node/peer.mjs redlock",
    "redis-semaphore": "exec node target/trials/node/peer.mjs redis-semaphore",
    "ours": "exec target/trials/ours",
}
# Applications that play a story by themselves; the port of the server is their argument.
APPLICATIONS = {
    ("redisson", "thread"): "exec java -cp 'target/trials/jvm/target/dependency/*' scenarios/tests/audit/OtherThread.java",
    ("redlock", "shared"): "exec node scenarios/tests/audit/shared_key.mjs",
}
LOCKS = ("stock", "orders", "mail")
LEASE_MS = 1000
WATCHDOG_MS = 1500


class Peer:
    """A process of a lock library."""

    def __init__(self, library, port):
        command = COMMANDS.get(library, f"exec target/trials/python/bin/python trials/python/peer.py {library}")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(["sh", "-c", command], cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        self.hello = json.loads(self.process.stdout.readline())
        self.key = self.hello.get("key", "{}").replace("{}", "stock")
        self.answers, self.number = {}, 0
        threading.Thread(target=self.read, daemon=True).start()
        locks = [{"lock": lock, "name": lock, "nodes": [f"127.0.0.1:{port}"]} for lock in LOCKS]
        self.ask("init", host="c", watchdog_ms=WATCHDOG_MS, timeout_ms=3000, locks=locks)

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if said.get("id") in self.answers:
                self.answers[said["id"]].put(said)

    def ask(self, kind, **what):
        self.number += 1
        number, answer = self.number, queue.Queue()
        self.answers[number] = answer
        self.process.stdin.write(json.dumps({"id": number, "type": kind, **what}) + "\n")
        self.process.stdin.flush()
        return {**answer.get(timeout=60), "id": number}

    def acquire(self, lease_ms):
        """Asks again until the lock is granted, and returns the hold."""
        for _ in range(200):
            answer = self.ask("acquire", lock="stock", wait_ms=0, lease_ms=lease_ms)
            if answer["type"] == "granted":
                return answer["id"]
            time.sleep(0.05)
        sys.exit(f"not granted: {answer}")

    def release(self, hold):
        print(self.ask("release", hold=hold))

    def extend(self, hold):
        print(self.ask("extend", hold=hold, lease_ms=LEASE_MS))

    def stopped(self, is_stopped):
        os.kill(self.process.pid, signal.SIGSTOP if is_stopped else signal.SIGCONT)


def load(peer, seed, seconds, lease_ms):
    """Acquires and releases for a while."""
    draw, end = random.Random(seed), time.monotonic() + seconds
    wait_ms = 5000 if "wait" in peer.hello["can"] else 0
    while time.monotonic() < end:
        answer = peer.ask("acquire", lock=draw.choice(LOCKS), wait_ms=wait_ms, lease_ms=lease_ms)
        if answer["type"] == "granted":
            time.sleep(draw.uniform(0.01, 0.08))
            peer.ask("release", hold=answer["id"])
        time.sleep(draw.uniform(0.02, 0.1))


def play(story, peers, lease_ms, cli):
    """Plays a story with the first two peers, or a load with all."""
    one, other, third = peers[0], peers[1], peers[-1]
    if story == "clean":
        seconds = 2 if lease_ms is None else 5
        threads = [threading.Thread(target=load, args=(peer, at, seconds, lease_ms)) for at, peer in enumerate(peers)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        return
    hold = one.acquire(LEASE_MS if story in ("late", "renewed") else lease_ms)
    time.sleep(0.2)
    if story in ("stopped", "bare"):
        if story == "stopped":
            one.stopped(True)
        else:
            time.sleep(1)
        next_hold = other.acquire(lease_ms)
        if story == "stopped":
            one.stopped(False)
    elif story in ("deleted", "flushed"):
        cli(*(["DEL", one.key] if story == "deleted" else ["FLUSHALL"]))
        next_hold = other.acquire(lease_ms)
    elif story == "overrun":
        # The work takes longer than the lease.
        next_hold = other.acquire(lease_ms)
        time.sleep(0.3)
        one.release(hold)
        # It is granted the lock if that release deleted the next owner's.
        answer = third.ask("acquire", lock="stock", wait_ms=0, lease_ms=lease_ms)
        time.sleep(0.3)
        other.release(next_hold)
        time.sleep(0.1)
        if answer["type"] == "granted":
            third.release(answer["id"])
        return
    elif story == "late":
        one.stopped(True)
        time.sleep(1.6)
        one.stopped(False)
        return one.release(hold)
    elif story == "renewed":
        for _ in range(3):
            time.sleep(0.3)
            one.extend(hold)
        one.stopped(True)
        time.sleep(1.3)
        one.stopped(False)
        return one.extend(hold)
    elif story == "watchdog":
        time.sleep(4)
        return one.release(hold)
    time.sleep(0.3)
    one.release(hold)
    time.sleep(0.1)
    other.release(next_hold)


def main():
    server, library, story = sys.argv[1:4]
    port = random.randint(21000, 29000)
    # The watchdogs of these renew a hold without a lease.
    has_watchdog = library in ("redisson", "ours") or (library, story) == ("redis-semaphore", "watchdog")
    has_watchdog = has_watchdog and story != "overrun"
    lease_ms = None if has_watchdog else LEASE_MS

    def cli(*words):
        subprocess.run(["redis-cli", "-p", str(port), *words], check=True, stdout=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as folder, open(FOLDER / f"{library}-{story}.monitor", "w") as capture:
        program = [ROOT / "target/trials/servers" / server, "--port", str(port), "--save", "", "--dir", folder]
        processes = [subprocess.Popen(program, stdout=subprocess.DEVNULL)]
        try:
            time.sleep(0.5)
            processes.append(subprocess.Popen(["redis-cli", "-p", str(port), "monitor"], stdout=capture))
            time.sleep(0.2)
            # The audit trusts the first SET NX only after a lease.
            cli("PING")
            time.sleep(1.3)
            if application := APPLICATIONS.get((library, story)):
                subprocess.run(["sh", "-c", f"{application} {port}"], cwd=ROOT, check=True)
                time.sleep(0.2)
                return
            peers = [Peer(library, port) for _ in range(3 if story in ("clean", "overrun") else 2)]
            processes += [peer.process for peer in peers]
            play(story, peers, lease_ms, cli)
            time.sleep(0.2)
        finally:
            for process in reversed(processes):
                process.kill()


if __name__ == "__main__":
    main()
