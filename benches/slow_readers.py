#!/usr/bin/env python3
"""What clients cost that do not read what they have asked for: `lockstorm serve` beside `redis-server`, one after the other.

    benches/slow_readers.py [--server PATH] [--readers N] [--replies N] [--size BYTES]

Each of the readers asks for so many replies of one size in one go and reads nothing; another client sends PING all the while.
Prints for each server the longest time that PING waited for its answer, and the memory that the process had resident: before,
at the most, a second after the readers have gone without reading, and five seconds later.
"""

import argparse
import os
import socket
import sys
import threading
import time
from pathlib import Path

from throughput import ROOT, TARGET, Server

MB = 1e6


class Pinger(threading.Thread):
    """A client that asks again as soon as it is answered, and remembers the longest wait and the most memory."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.longest, self.most, self.ending = server, 0, 0, False
        self.connection = socket.create_connection(("127.0.0.1", server.port))

    def run(self):
        while not self.ending:
            begun = time.monotonic()
            self.connection.sendall(b"PING\r\n")
            assert self.connection.recv(7) == b"+PONG\r\n"
            self.longest = max(self.longest, time.monotonic() - begun)
            self.most = max(self.most, self.server.resident())
            time.sleep(0.001)


def unread(server):
    """How many bytes of replies the server keeps for clients."""
    clients = server.cli("CLIENT", "LIST").splitlines()
    return sum(int(field[5:]) for line in clients for field in line.split() if field.startswith("omem="))


def measure(server, arguments):
    server.cli("SETRANGE", "k", str(arguments.size - 1), "v")
    before = server.resident()
    pinger = Pinger(server)
    pinger.start()
    readers = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(arguments.readers)]
    for reader in readers:
        reader.sendall(b"GET k\r\n" * arguments.replies)
    # What the network takes by itself is no part of what waits.
    wanted = 0.9 * arguments.readers * arguments.replies * arguments.size
    while unread(server) < wanted:
        time.sleep(0.1)
    for reader in readers:
        reader.close()
    while unread(server) > 0:
        time.sleep(0.1)
    time.sleep(1)
    after = server.resident()
    time.sleep(5)
    later = server.resident()
    pinger.ending = True
    pinger.join()
    row = [f"{pinger.longest:.2f}"] + [f"{size / MB:.0f}" for size in (before, pinger.most, after, later)]
    print(f"| {server.name} | {' | '.join(row)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, default=TARGET / "dist/lockstorm", help="the binary to be measured")
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--replies", type=int, default=200, help="asked for by each of them")
    parser.add_argument("--size", type=int, default=1_000_000, help="bytes of a reply")
    arguments = parser.parse_args()
    if not arguments.server.exists():
        sys.exit(f"{arguments.server} is not there: cargo build --profile dist --bin lockstorm")
    print("| server | longest wait for PING, s | resident before, MB | at the most | a second after | five seconds later |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, command in [
        ("lockstorm", [str(arguments.server.resolve()), "serve", "--as", "redis-7.0", "--port", "{port}", "--end-with-stdin"]),
        ("redis-server", ["redis-server", "--port", "{port}", "--save", "", "--appendonly", "no"]),
    ]:
        with Server(name, command) as server:
            measure(server, arguments)


if __name__ == "__main__":
    main()
