#!/usr/bin/env python3
"""Lock libraries of five languages under load on a real server without faults, while `lockstorm audit` watches: it must find nothing.

    trials/quiet.py [--lockstorm PATH] [--server PROGRAM] [--minutes N] [--processes N] [--only NAME,..]

Each library of trials/peers.toml has locks of its own, and some processes that share them. A watchdog, where there is one, also keeps holds
for longer than their lease. The audit must also have seen every lock and as many grants as the processes were given: one that sees nothing
finds nothing. Without --minutes it takes 20 seconds. The holds have leases of 10 s, so that a slow machine is no fault.
"""

import argparse
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
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
NAMES = ("stock", "orders", "mail")
LEASE_MS = 10_000
WATCHDOG_MS = 6_000
# A share of the holds of a watchdog that outlasts its lease.
LONG = 0.02


class Peer:
    """A process of a lock library, and the grants that it got."""

    def __init__(self, name, number, command, port):
        self.name, self.number, self.grants = name, number, {}
        pipe, log = subprocess.PIPE, subprocess.DEVNULL
        self.process = subprocess.Popen(["sh", "-c", command], cwd=ROOT, stdin=pipe, stdout=pipe, stderr=log, text=True)
        self.hello = json.loads(self.process.stdout.readline())
        self.answers, self.asked, self.lock, self.failed = {}, 0, threading.Lock(), None
        threading.Thread(target=self.read, daemon=True).start()
        self.keys = {f"{name}:{lock}": self.hello.get("key", "{}").replace("{}", f"{name}:{lock}") for lock in NAMES}
        locks = [{"lock": lock, "name": lock, "nodes": [f"127.0.0.1:{port}"]} for lock in self.keys]
        self.ask("init", host=f"c{number}", watchdog_ms=WATCHDOG_MS, timeout_ms=5000, locks=locks)

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if said.get("id") in self.answers:
                self.answers.pop(said["id"]).put(said)

    def ask(self, kind, **what):
        with self.lock:
            self.asked += 1
            number, answer = self.asked, queue.Queue()
            self.answers[number] = answer
            self.process.stdin.write(json.dumps({"id": number, "type": kind, **what}) + "\n")
            self.process.stdin.flush()
        return {**answer.get(timeout=60), "id": number}

    def work(self, end):
        try:
            self.load(end)
        except Exception as error:
            self.failed = f"process {self.number} of {self.name} did not work until the end: {error!r}"

    def load(self, end):
        """Acquires and releases until the end."""
        draw = random.Random(f"{self.name} {self.number}")
        wait_ms = 5000 if "wait" in self.hello["can"] else 0
        while time.monotonic() < end:
            lock = draw.choice(list(self.keys))
            is_renewed = "watchdog" in self.hello["can"] and draw.random() < 0.5
            lease_ms = None if is_renewed else LEASE_MS
            answer = self.ask("acquire", lock=lock, wait_ms=wait_ms, lease_ms=lease_ms)
            if answer["type"] == "granted":
                self.grants[lock] = self.grants.get(lock, 0) + 1
                is_long = is_renewed and draw.random() < LONG and time.monotonic() + 8 < end
                time.sleep(8 if is_long else draw.uniform(0.001, 0.03))
                self.ask("release", hold=answer["id"])
            time.sleep(draw.uniform(0.001, 0.05))


def peers_of(listed, only):
    """The libraries, without the locks that are broken on purpose."""
    peers = {name: peer["command"] for name, peer in listed["peer"].items() if "control" not in peer}
    unknown = set(only) - set(peers)
    if unknown:
        sys.exit(f"no library is called {', '.join(sorted(unknown))}")
    return {name: command for name, command in peers.items() if not only or name in only}


def is_known(finding):
    """A mistake of a library, and no false alarm: the watchdog of Redisson 4.7.0 forgets a hold if the reply to a renewal of the
    previous one is late, which happens about once an hour on a busy machine. findings/redisson-watchdog-forgets-a-hold.sh shows it.
    """
    return finding["lock"].startswith("redisson") and "after no renewal" in finding["says"]


def wrong_in(summary, peers):
    """The findings, and the locks whose grants the audit did not see."""
    wrong = []
    for finding in summary["findings"]:
        told = f"{finding['kind']}: {finding['lock']} at {finding['at']}: {finding['says']}\n" + "\n".join(
            f"    line {one['line']} {one['at']} {one['client']} {one['role']}: {one['command']}" for one in finding["evidence"]
        )
        if is_known(finding):
            print(f"of a known mistake: {told}")
        else:
            wrong.append(told)
    rows = {row["lock"]: row for row in summary["locks"]}
    for name in sorted({peer.name for peer in peers}):
        own = [peer for peer in peers if peer.name == name]
        granted = seen = 0
        for lock, key in own[0].keys.items():
            granted += sum(peer.grants.get(lock, 0) for peer in own)
            seen += rows[key]["grants"] if key in rows else 0
        print(f"{name}: {granted} grants, the audit saw {seen}")
        if granted == 0:
            wrong.append(f"{name}: its processes were granted nothing")
        elif seen != granted:
            wrong.append(f"{name}: its processes were granted {granted} holds, and the audit saw {seen}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstorm", type=Path, default=TARGET / "debug/lockstorm", help="a built lockstorm")
    parser.add_argument("--server", type=Path, default=TARGET / "trials/servers/redis-8.2", help="a server program")
    parser.add_argument("--minutes", type=float, default=1 / 3)
    parser.add_argument("--processes", type=int, default=2, help="processes of each library")
    parser.add_argument("--only", default="", help="names of libraries, with commas between them")
    options = parser.parse_args()
    listed = tomllib.loads((ROOT / "trials/peers.toml").read_text())
    commands = peers_of(listed, [name for name in options.only.split(",") if name])
    port, processes, peers = random.randint(21000, 29000), [], []
    with tempfile.TemporaryDirectory() as folder:
        try:
            server = [options.server.resolve(), "--port", str(port), "--save", "", "--dir", folder]
            processes.append(subprocess.Popen(server, stdout=subprocess.DEVNULL))
            time.sleep(0.5)
            audit = subprocess.Popen(
                [options.lockstorm.resolve(), "audit", f"redis://127.0.0.1:{port}", "--json"], stdout=subprocess.PIPE, text=True
            )
            processes.append(audit)
            time.sleep(0.5)
            # The audit trusts the first SET NX only after a lease.
            subprocess.run(["redis-cli", "-p", str(port), "PING"], check=True, stdout=subprocess.DEVNULL)
            begun = time.monotonic()
            for name, command in commands.items():
                peers += [Peer(name, number, command, port) for number in range(options.processes)]
                processes += [peer.process for peer in peers[-options.processes:]]
            print(f"{len(peers)} processes of {len(commands)} libraries on {options.server.name}", flush=True)
            time.sleep(max(0.0, begun + LEASE_MS / 1000 + 0.5 - time.monotonic()))
            end = time.monotonic() + options.minutes * 60
            threads = [threading.Thread(target=peer.work, args=(end,)) for peer in peers]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            time.sleep(0.5)
            audit.send_signal(signal.SIGINT)
            said, _ = audit.communicate(timeout=60)
            summary = json.loads(said)
            print(f"{summary['nodes'][0]['commands']} commands, {len(summary['notices'])} notices")
            wrong = [peer.failed for peer in peers if peer.failed] + wrong_in(summary, peers)
        finally:
            for process in reversed(processes):
                process.kill()
                process.wait()
    if wrong:
        sys.exit("\n".join(wrong))
    print("no other finding" if any(map(is_known, summary["findings"])) else "no finding")


if __name__ == "__main__":
    main()
