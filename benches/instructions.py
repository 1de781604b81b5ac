#!/usr/bin/env python3
"""What a request costs `lockstorm serve` and `redis-server` in instructions, counted by valgrind while redis-benchmark asks.

    benches/instructions.py [--server PATH] [--requests N] [--pipeline N] [TEST ..]

Prints, for each test, the instructions of a request outside of the kernel, and how often one waits for memory: reads that miss
a cache of 2 MiB, as a core has one here, and instructions that miss one of 32 KiB. Nothing else on the machine changes these
counts, so they tell a change in the code from a change in the weather, which `throughput.py` cannot. They are no times.
"""

import re
import subprocess
from pathlib import Path

from throughput import TESTS, Server, built, commands, fill, read_arguments

CACHES = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=2097152,16,64"]


class Counted(Server):
    """A private server under valgrind."""

    patience = 120

    def __init__(self, name, command):
        super().__init__(name, ["valgrind", "--tool=callgrind", *CACHES, *command])

    def counts(self):
        """The counts since the last time, by the names that callgrind has for them."""
        subprocess.run(["callgrind_control", "-d", str(self.process.pid)], check=True, capture_output=True)
        # Every dump is a file of its own, and the last one is the newest.
        written = max(Path(self.folder.name).glob("callgrind.out.*.*"), key=lambda file: int(file.suffix[1:]))
        text = written.read_text()
        events = re.search(r"^events: (.*)$", text, re.M)[1].split()
        totals = re.search(r"^totals: (.*)$", text, re.M)[1].split()
        return dict(zip(events, map(int, totals)))


def main():
    arguments = read_arguments(__doc__, ["valgrind", "callgrind_control"], requests=50_000, pipeline=16)
    both = commands(built(arguments.server))
    with Counted(*both[0]) as ours, Counted(*both[1]) as theirs:
        print("| test | lockstorm | redis-server | ratio | reads | redis-server | code | redis-server |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for test in arguments.tests or TESTS:
            counts = []
            for server in (ours, theirs):
                fill(server, test, arguments.requests)
                # The first requests of a kind are not like the others.
                server.throughput(test, arguments.pipeline, arguments.requests // 10)
                server.counts()
                server.throughput(test, arguments.pipeline, arguments.requests)
                counts.append({event: count / arguments.requests for event, count in server.counts().items()})
            our, their = counts
            cells = [f"{our['Ir']:,.0f}", f"{their['Ir']:,.0f}", f"{their['Ir'] / our['Ir']:.2f}"]
            cells += [f"{each[event]:.1f}" for event in ("DLmr", "I1mr") for each in (our, their)]
            print(f"| {test.upper()} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
