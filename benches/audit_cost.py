#!/usr/bin/env python3
"""The cost of `lockstorm audit` for a busy server: without an audit, with one by MONITOR, and with a gentle one.

    benches/audit_cost.py [--server PATH] [--binary PATH] [--rounds N] [--requests N] [--clients N]

A real server with keyspace events off and on, loaded by redis-benchmark without pipelines: with requests for locks that are
held and refused (SET NX PX), with locks that a script acquires and releases, and with commands on other keys (INCR). The kinds
of audit take turns in each round of one run, so whatever else the machine does spoils all alike. Prints, for each load, the
middle of the rounds in thousands of requests per second and the ratio to no audit, and the same for the server's processor
time for a request.
"""

import argparse
import signal
import statistics
import subprocess
import time

from throughput import TARGET, Server

# Three events: set, expire and del.
CYCLE = "if redis.call('set', KEYS[1], 'token', 'NX', 'PX', 30000) then return redis.call('del', KEYS[1]) end return 0"
LOADS = {
    "refused": ["SET", "lock:__rand_int__", "token", "NX", "PX", "30000"],
    "acquired and released": ["EVAL", CYCLE, "1", "lock:__rand_int__"],
    "others": ["INCR", "count:__rand_int__"],
}
KINDS = {
    "none": (None, ""),
    "none, events on": (None, "Kg$hxe"),
    "MONITOR": ([], ""),
    "gentle": (["--gentle", "--lock", "lock:*"], "Kg$hxe"),
}


class Audit:
    """An audit of the server that has begun, or none."""

    def __init__(self, binary, server, arguments):
        self.binary, self.server, self.arguments = binary, server, arguments
        self.process = None

    def __enter__(self):
        if self.arguments is not None:
            url = f"redis://127.0.0.1:{self.server.port}"
            command = [self.binary, "audit", url, *self.arguments]
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            while "name=lockstorm-audit" not in self.server.cli("CLIENT", "LIST"):
                assert self.process.poll() is None, self.process.stderr.read()
                time.sleep(0.01)
            time.sleep(0.5)
        return self

    def __exit__(self, *_):
        if self.process is not None:
            assert self.process.poll() is None, f"the audit ended early: {self.process.stderr.read()}"
            self.process.send_signal(signal.SIGINT)
            # It has no findings, or has seen no locks.
            assert self.process.wait(30) in (0, 2), self.process.stderr.read()


def measure(server, load, requests, clients):
    """Thousands of requests per second, and microseconds of the server's processor time for each."""
    command = ["redis-benchmark", "-p", str(server.port), "-c", str(clients), "-n", str(requests), "-r", "1000", "-q", "--csv"]
    before, begun = server.processor(), time.monotonic()
    subprocess.run(command + load, check=True, stdout=subprocess.DEVNULL)
    return requests / (time.monotonic() - begun) / 1e3, (server.processor() - before) / requests * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="redis-server")
    parser.add_argument("--binary", default=str(TARGET / "release/lockstorm"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=50)
    arguments = parser.parse_args()
    found = {(load, kind): [] for load in LOADS for kind in KINDS}
    with Server("server", [arguments.server, "--port", "{port}", "--save", ""]) as server:
        for round_ in range(arguments.rounds):
            # Each kind comes first in some round.
            kinds = list(KINDS)
            for kind in kinds[round_ % len(kinds) :] + kinds[: round_ % len(kinds)]:
                asked, events = KINDS[kind]
                server.cli("CONFIG", "SET", "notify-keyspace-events", events)
                for load, words in LOADS.items():
                    server.cli("FLUSHALL")
                    with Audit(arguments.binary, server, asked):
                        found[load, kind].append(measure(server, words, arguments.requests, arguments.clients))
    print("| load | audit | 1000 requests/s | ratio | server, µs | ratio |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for load in LOADS:
        middle = {kind: [statistics.median(column) for column in zip(*found[load, kind])] for kind in KINDS}
        for kind in KINDS:
            (rate, micros), (rate_0, micros_0) = middle[kind], middle["none"]
            print(f"| {load} | {kind} | {rate:.1f} | {rate / rate_0:.2f} | {micros:.1f} | {micros / micros_0:.2f} |")


if __name__ == "__main__":
    main()
