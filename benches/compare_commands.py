#!/usr/bin/env python3
"""The cost of a token lock's renewal and release: SET IFEQ and DELIFEQ beside the Lua scripts with the same effect.

    benches/compare_commands.py --server PATH [--rounds N] [--cycles N] [--pipeline P ..]

PATH is a server that has both commands, such as Valkey 9.1 (`trials/setup servers` installs it). A cycle of
release is SET NX PX and one command that releases the lock, and a cycle of renewal is one command that renews it: the script, the
command that compares, or DEL and PEXPIRE, which compare nothing.
The forms alternate in one run. Prints the middle of the rounds: processor time of the server for a cycle, bytes that a cycle
sends, and the ratio to the script.
"""

import argparse
import hashlib
import socket
import statistics
import sys
from pathlib import Path

from throughput import Server

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
RENEW = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"
TOKEN = "6f1c3a52-90d4-4e0b-8a57-2f5b7c0e9d31"
LEASE = "30000"


def sha1(script):
    return hashlib.sha1(script.encode()).hexdigest()


# The name of the form, and its command on a key.
FORMS = {
    "release": {
        "script": lambda key: ["EVALSHA", sha1(RELEASE), "1", key, TOKEN],
        "DELIFEQ": lambda key: ["DELIFEQ", key, TOKEN],
        "DEL": lambda key: ["DEL", key],
    },
    "renewal": {
        "script": lambda key: ["EVALSHA", sha1(RENEW), "1", key, TOKEN, LEASE],
        "SET IFEQ": lambda key: ["SET", key, TOKEN, "IFEQ", TOKEN, "PX", LEASE],
        "PEXPIRE": lambda key: ["PEXPIRE", key, LEASE],
    },
}


def encoded(words):
    parts = [f"${len(word)}\r\n{word}\r\n" for word in words]
    return f"*{len(words)}\r\n{''.join(parts)}".encode()


class Connection:
    """A connection that counts the replies it reads."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.lines = self.socket.makefile("rb")

    def batch(self, commands):
        """Sends the commands at once, and reads a reply of one line for each."""
        self.socket.sendall(b"".join(commands))
        for _ in commands:
            line = self.lines.readline()
            if not line.startswith((b"+OK", b":1")):
                sys.exit(f"the server answers {line!r}")


def cycles(server, of, form, arguments, pipeline):
    """Microseconds of the server's processor time for a cycle, and its bytes."""
    server.cli("FLUSHALL")
    connection = Connection(server.port)
    keys = [f"lock:{number}" for number in range(1000)]
    acquire = [encoded(["SET", key, TOKEN, "NX", "PX", LEASE]) for key in keys]
    then = [encoded(FORMS[of][form](key)) for key in keys]
    if of == "renewal":
        # The lock of a renewal is not free afterwards: each round of the keys renews what one acquisition has left.
        connection.batch(acquire)
        commands = then
    else:
        commands = [one for pair in zip(acquire, then) for one in pair]
    rounds = max(1, arguments.cycles // len(keys))
    before = server.processor()
    for _ in range(rounds):
        for at in range(0, len(commands), pipeline):
            connection.batch(commands[at : at + pipeline])
    return (server.processor() - before) / (rounds * len(keys)) * 1e6, len(then[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, required=True, help="a server that has SET IFEQ and DELIFEQ")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="measurements of each form [default: 7]")
    parser.add_argument("--cycles", type=int, default=50_000, metavar="N", help="cycles of a measurement [default: 50000]")
    parser.add_argument("--pipeline", type=int, nargs="+", default=[1, 50], metavar="P", help="commands at a time [default: 1 50]")
    arguments = parser.parse_args()
    with Server("server", [str(arguments.server.resolve()), "--port", "{port}", "--save", ""]) as server:
        if not server.cli("COMMAND", "INFO", "DELIFEQ").strip():
            sys.exit(f"{arguments.server} has no DELIFEQ")
        for script in (RELEASE, RENEW):
            server.cli("SCRIPT", "LOAD", script)
        print("| cycle | form | pipeline | bytes of the command | server, µs a cycle | of the script |")
        print("| --- | --- | ---: | ---: | ---: | ---: |")
        for of, forms in FORMS.items():
            for pipeline in arguments.pipeline:
                measured = {form: [] for form in forms}
                for _ in range(arguments.rounds):
                    for form in forms:
                        measured[form].append(cycles(server, of, form, arguments, pipeline))
                script = statistics.median(time for time, _ in measured["script"])
                for form, rounds in measured.items():
                    time = statistics.median(time for time, _ in rounds)
                    print(f"| {of} | {form} | {pipeline} | {rounds[0][1]} | {time:.2f} | {time / script:.2f} |")


if __name__ == "__main__":
    main()
