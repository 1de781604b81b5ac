#!/usr/bin/env python3
"""Placements a second of `lockstorm hunt`: with runs that share their beginnings, and with whole runs.

    benches/hunt.py [--lockstorm PATH] [--rounds N] [--budget RUNS] [--jobs N] [FILE#VARIANT ..]

Both kinds of hunt take turns in each round of one run, so whatever else the machine does spoils both alike. Each hunt ends with
its budget or its placements. Prints, for each scenario, the placements that were run, the middle of the rounds in placements a
second of time and of processor time, and the ratio. Fails if the two kinds print different results.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from throughput import ROOT, TARGET

# Scenarios with their work spread over the run, each with the checkers that no single fault violates, so that a hunt in it has
# no early end.
SCENARIOS = {
    "redlock/flapping_partitions.toml": ["permits"],
    "fair/live_waiter.toml": ["permits"],
}
KINDS = {"shared": [], "whole runs": ["--no-share"]}


def spent():
    """Processor time of all processes that have ended so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def hunt(arguments, scenario, checkers, options):
    """What a hunt prints, the placements that it ran, and its time and processor time."""
    command = [arguments.lockstorm, "hunt", scenario, "--json", "--budget", str(arguments.budget)]
    command += ["--jobs", str(arguments.jobs), *options]
    for checker in checkers:
        command += ["--checker", checker]
    begun, before = time.monotonic(), spent()
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    took, processor = time.monotonic() - begun, spent() - before
    if ended.returncode not in (0, 1, 2) or not ended.stdout.startswith("{"):
        sys.exit(f"{' '.join(map(str, command))}: {ended.stderr}")
    return ended.stdout, took, processor


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lockstorm", type=Path, default=TARGET / "release/lockstorm")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=int, default=2_000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("scenarios", nargs="*", metavar="FILE#VARIANT")
    arguments = parser.parse_args()
    scenarios = {name: SCENARIOS.get(name, ["permits"]) for name in arguments.scenarios} or SCENARIOS
    print("| scenario | placements | a second: shared | whole runs | ratio | of a processor: shared | whole runs | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for scenario, checkers in scenarios.items():
        rates = {kind: [] for kind in KINDS}
        printed = set()
        for _ in range(arguments.rounds):
            for kind, options in KINDS.items():
                text, took, processor = hunt(arguments, scenario, checkers, options)
                printed.add(text)
                tried = int(text.split('"tried":')[1].split(",")[0])
                rates[kind].append((tried / took, tried / processor))
        if len(printed) > 1:
            sys.exit(f"{scenario}: the two kinds of hunt have different results:\n" + "\n".join(printed))
        cells = []
        for column in (0, 1):
            shared, whole = (statistics.median(rate[column] for rate in rates[kind]) for kind in KINDS)
            cells += [f"{shared:,.1f}", f"{whole:,.1f}", f"{shared / whole:.1f}"]
        print(f"| `{scenario}` | {tried:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
