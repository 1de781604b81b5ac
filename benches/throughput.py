#!/usr/bin/env python3
"""`lockstorm serve` beside `redis-server`, both asked by redis-benchmark over loopback, turn by turn in one run.

    benches/throughput.py [--server PATH] [--rounds N] [--requests N] [--pipeline P ..] [TEST ..]

Prints, for each test and length of pipeline, the middle of the rounds in thousands of requests per second and their ratio,
and the same for the processor time that each server used for a request, in microseconds; then memory for a million small
keys in a fresh server and the longest wait while they come, and how long a server takes from its start to its first answer.
Whatever else the machine does spoils the requests per second of both alike, and processor time less: the ratios are what
counts, and 1 or more is in favour of lockstorm.
"""

import argparse
import csv
import itertools
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))

# A reentrant lock's acquire, written for this comparison: four calls on a free key, as a lock makes them.
ACQUIRE = (
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then "
    "redis.call('hincrby', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end "
    "return redis.call('pttl', KEYS[1])"
)
BUILT_IN = ["set", "get", "incr", "lpush", "rpop", "sadd", "hset", "zadd", "zpopmin", "lrange_100", "mset"]
TESTS = BUILT_IN + ["evalsha"]
KEYS = 100_000


class Server:
    """A private server on a free port, with the time it took to answer."""

    # Seconds to wait for the first answer.
    patience = 10

    def __init__(self, name, command):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.name, self.command = name, [part.replace("{port}", str(self.port)) for part in command]

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        begun = time.monotonic()
        # Its standard input ends with this process, however that ends.
        self.process = subprocess.Popen(
            self.command,
            cwd=self.folder.name,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                    connection.sendall(b"PING\r\n")
                    assert connection.recv(7) == b"+PONG\r\n"
                break
            except ConnectionRefusedError:
                if self.process.poll() is not None or time.monotonic() - begun > self.patience:
                    sys.exit(f"{' '.join(self.command)} does not answer on port {self.port}")
                time.sleep(0.0005)
        self.started_ms = 1000 * (time.monotonic() - begun)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=3 * self.patience)
        self.folder.cleanup()

    def cli(self, *words):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def resident(self):
        """Bytes of memory that the process has."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def processor(self):
        """Seconds of processor time that the process has used, in user and kernel mode."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9

    def throughput(self, test, pipeline, requests):
        """Requests per second, as redis-benchmark computes them, and microseconds of the server's processor time for each."""
        before = self.processor()
        asked = ["redis-benchmark", "-p", str(self.port), "-P", str(pipeline), "-n", str(requests), "-r", str(KEYS), "--csv"]
        if test == "evalsha":
            sha = self.cli("SCRIPT", "LOAD", ACQUIRE)
            asked += ["EVALSHA", sha, "1", "lock:__rand_int__", "30000", "owner:1"]
        else:
            asked += ["-t", test]
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        # LRANGE fills its list first, in a row of its own; the row asked for is the last.
        rows = [row for row in csv.DictReader(said.splitlines())]
        return float(rows[-1]["rps"]), (self.processor() - before) / requests * 1e6


def fill(server, test, requests):
    """Leaves a server with the keys that a test wants to find, and no others."""
    server.cli("FLUSHALL")
    filled = {"rpop": "lpush", "zpopmin": "zadd", "get": "set"}.get(test)
    if filled:
        server.throughput(filled, 16, requests)


def compare(servers, arguments):
    print("| test | pipeline | lockstorm | redis-server | ratio | lockstorm, µs | redis-server, µs | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for test in arguments.tests or TESTS:
        for pipeline in arguments.pipeline:
            rates = {server.name: [] for server in servers}
            for turn in range(arguments.rounds):
                # Who comes first changes, so that neither always has the warmer machine.
                for server in servers[:: 1 if turn % 2 == 0 else -1]:
                    fill(server, test, arguments.requests)
                    rates[server.name].append(server.throughput(test, pipeline, arguments.requests))
            (ours, our_us), (theirs, their_us) = (
                map(statistics.median, zip(*rates[server.name])) for server in servers
            )
            done = f"{ours / 1000:.0f} | {theirs / 1000:.0f} | {ours / theirs:.2f}"
            spent = f"{our_us:.2f} | {their_us:.2f} | {their_us / our_us:.2f}"
            print(f"| {test.upper()} | {pipeline} | {done} | {spent} |", flush=True)


def weigh(commands):
    print("\n| a million keys of 10 bytes, values of 3 | lockstorm | redis-server |\n| --- | ---: | ---: |")
    taken, longest = [], []
    for name, command in commands:
        # A server of its own: what another one has freed before would be used again.
        with Server(name, command) as server:
            before = server.resident()
            lines = (f"*3\r\n$3\r\nSET\r\n$10\r\nkey:{n:06x}\r\n$3\r\nxxx\r\n" for n in range(1_000_000))
            with socket.create_connection(("127.0.0.1", server.port)) as connection:
                replies, waits = connection.makefile("rb"), []
                while batch := list(itertools.islice(lines, 100)):
                    begun = time.monotonic()
                    connection.sendall("".join(batch).encode())
                    for _ in batch:
                        assert replies.readline() == b"+OK\r\n"
                    waits.append(1000 * (time.monotonic() - begun))
            taken.append((server.resident() - before) / 1e6)
            longest.append(max(waits))
    print(f"| bytes a key, resident | {taken[0]:.0f} | {taken[1]:.0f} |")
    print(f"| ms for a hundred of them, at the longest | {longest[0]:.1f} | {longest[1]:.1f} |")


def start(commands):
    print("\n| from start to first answer | lockstorm | redis-server |\n| --- | ---: | ---: |")
    medians = []
    for name, command in commands:
        times = []
        for _ in range(11):
            with Server(name, command) as server:
                times.append(server.started_ms)
        medians.append(statistics.median(times))
    print(f"| ms | {medians[0]:.1f} | {medians[1]:.1f} |")


def built(server):
    """The lockstorm to measure: the one given, or one that is built as it is installed."""
    if server is None:
        subprocess.run(["cargo", "build", "--profile", "dist", "--quiet", "--bin", "lockstorm"], cwd=ROOT, check=True)
        server = TARGET / "dist" / "lockstorm"
    return server.resolve()


def commands(server):
    """The two servers by name, with the command that starts each; `{port}` stands for its port."""
    return [
        ("lockstorm", [str(server), "serve", "--as", "redis-7.0", "--port", "{port}", "--option", "save=", "--end-with-stdin"]),
        ("redis-server", ["redis-server", "--port", "{port}", "--save", "", "--appendonly", "no"]),
    ]


def read_arguments(description, tools, **options):
    """What was asked for: the tests, the server, and `options` by their defaults. Ends the program where that cannot be done."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="*", metavar="TEST", help=f"of {', '.join(TESTS)}; all without one")
    parser.add_argument("--server", type=Path, help="a built lockstorm; without it, one is built as it is installed")
    for name, default in options.items():
        parser.add_argument(f"--{name}", type=int, nargs="+" if isinstance(default, list) else None, default=default)
    arguments = parser.parse_args()
    unknown = [test for test in arguments.tests if test not in TESTS]
    if unknown:
        parser.error(f"no test {', '.join(unknown)}; there are {', '.join(TESTS)}")
    for tool in ("redis-server", "redis-benchmark", "redis-cli", *tools):
        if not shutil.which(tool):
            sys.exit(f"{tool} is not on the PATH")
    return arguments


def main():
    arguments = read_arguments(__doc__, [], rounds=5, requests=200_000, pipeline=[1, 16])
    both = commands(built(arguments.server))
    with Server(*both[0]) as ours, Server(*both[1]) as theirs:
        compare([ours, theirs], arguments)
    if not arguments.tests:
        weigh(both)
        start(both)


if __name__ == "__main__":
    main()
