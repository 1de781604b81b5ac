#!/usr/bin/env python3
"""Compares the cost of a simulated run between builds of lockstorm, turn by turn.

    benches/runs.py [NAME=]LOCKSTORM .. [--rounds N] [--instructions] [--only TEXT]

A cost is that of a further seed in one process: the difference between a process with more seeds and one with two, divided by the
number of further ones. (Before 2026-11-30 a process with a single seed repeated its run.) Prints milliseconds of processor time, the
middle of the rounds, and the ratio of the first build to each other one. `--instructions` counts instructions under valgrind instead,
once, as nothing else on the machine changes them; there SHA-256 runs without the processor's own instructions for it. Without it and
without `--only`, the time of `lockstorm claims` with two jobs follows, and what grows with the number of contenders: requests that
the node read in a run (`--monitor`), and the cost of each.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "benches/scenarios"
STORMS = [
    "cluster", "fair_crashes", "fair_queue", "faster_multi", "fenced", "fenced_failover", "latch", "lease", "multi", "nested_holds",
    "permits", "rate", "read_write", "redlock", "semaphore", "sentinel", "spin", "two_locks", "watchdog",
]
CONTENDERS = [3, 30, 100, 300]


def rows():
    """The name of each row, its arguments, and its number of further seeds."""
    yield "contend, eager", [SCENARIOS / "contend.toml#eager"], 4
    yield "contend, patient", [SCENARIOS / "contend.toml#patient"], 10
    yield "hold", [SCENARIOS / "hold.toml"], 100
    for count in CONTENDERS:
        yield f"{count} contenders, plain", [SCENARIOS / "contenders.toml", "--set", f"client.c.count={count}"], max(2, 30 // count)
    yield "contend, eager, 25 nodes", [SCENARIOS / "contend.toml#eager", "--set", "node.n.count=25"], 2
    yield "3 contenders, 100 minutes", [SCENARIOS / "contenders.toml", "--set", "run.storm=100m"], 1
    for storm in STORMS:
        yield f"storm/{storm}", [f"storm/{storm}.toml"], 20


def cost(command):
    """Seconds of processor time of a command, and of the clock."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 1, 3):
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - begun


def instructions(command):
    with tempfile.TemporaryDirectory() as folder:
        under = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out"]
        done = subprocess.run([*under, *command], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    counted = re.search(r"Collected : (\d+)", done.stderr)
    if not counted:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return int(counted[1])


def of_a_seed(build, arguments, seeds, measure):
    command = [build, "run", *arguments, "--jobs", "1", "--seeds"]
    two = measure([*command, "0..2"])
    return (measure([*command, f"0..{seeds + 2}"]) - two) / seeds


def requests(build, count):
    """The commands that the node reads in a run with so many contenders."""
    with tempfile.TemporaryDirectory() as folder:
        command = [build, "run", SCENARIOS / "contenders.toml", "--set", f"client.c.count={count}", "--seed", "0", "--monitor", folder]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return sum(' lua] "' not in line for path in files for line in path.read_text().splitlines())


def build(text):
    name, is_named, path = text.rpartition("=")
    if not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f"{path} is no program")
    return (name if is_named else path), Path(path).resolve()


def table(titles, lines):
    print("| " + " | ".join(titles) + " |\n| --- |" + " ---: |" * (len(titles) - 1))
    for line in lines:
        print("| " + " | ".join(line) + " |", flush=True)
    print()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("builds", nargs="+", type=build, metavar="[NAME=]LOCKSTORM")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--instructions", action="store_true", help="count instructions instead of time")
    options.add_argument("--only", default="", help="the rows whose name has this")
    options = options.parse_args()
    names, paths = zip(*options.builds)
    unit, size = ("million instructions", 1e6) if options.instructions else ("ms", 1e-3)
    titles = ["a run", *(f"{name}, {unit}" for name in names), *(f"{names[0]} to {name}" for name in names[1:])]

    def lines():
        for name, arguments, seeds in rows():
            if options.only not in name:
                continue
            if options.instructions:
                costs = [[of_a_seed(path, arguments, min(seeds, 2), instructions)] for path in paths]
            else:
                turns = [[of_a_seed(path, arguments, seeds, lambda command: cost(command)[0]) for path in paths]
                         for _ in range(options.rounds)]
                costs = list(zip(*turns))
            middle = [statistics.median(of_build) / size for of_build in costs]
            ratios = (middle[0] / other for other in middle[1:])
            yield [name, *(f"{value:,.1f}" for value in middle), *(f"{ratio:.2f}" for ratio in ratios)]

    table(titles, lines())
    if options.instructions or options.only:
        return
    claims = [statistics.median(cost([path, "claims", "--jobs", "2"])[1] for _ in range(options.rounds)) for path in paths]
    table(["", *names], [["`claims` with two jobs, s", *(f"{seconds:.1f}" for seconds in claims)]])

    def growth():
        for count in CONTENDERS:
            arguments = [SCENARIOS / "contenders.toml", "--set", f"client.c.count={count}"]
            asked = requests(paths[-1], count)
            seconds = of_a_seed(paths[-1], arguments, max(2, 30 // count), lambda command: cost(command)[0])
            yield [str(count), f"{asked:,}", f"{seconds:.2f}", f"{seconds * 1e6 / asked:.1f}"]

    table([f"contenders, {names[-1]}", "requests", "s a run", "µs a request"], growth())


if __name__ == "__main__":
    main()
