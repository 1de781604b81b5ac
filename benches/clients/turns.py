#!/usr/bin/env python3
"""How evenly contenders of one lock get it, ours beside Redisson and rslock, on one private `redis-server`, turn by turn in one run.

    benches/clients/turns.py [--rounds N] [--millis N] [--before BINARY] [CLIENT ..]

Each contender is a client with connections of its own, and all of one library are in one process. For 5 and for 64 of them, and for holds
and pauses of nothing and of a millisecond, prints the medians of the rounds: hand-offs per second (a grant to another contender than the
last one), the 99th percentile and the longest of the waits in milliseconds, Jain's index of the grants (1 when all get as many), how many
contenders got nothing in the worst round, and microseconds of the server's processor time for each grant. `--before` is this program's binary
built of another state of our client: it plays each round beside ours, and the last column is the median of the ratios of ours to it.
"""

import argparse
import statistics
import subprocess
import sys

from run import Client, Server, build

CONTENDERS = (5, 64)
# Microseconds that the lock is held, and that its client pauses then.
PACES = ((1000, 1000), (0, 0))
ABLE = ["lockstorm", "rslock", "redisson"]
HEAD = ["contenders", "hold and pause", "client", "hand-offs/s", "p99, ms", "longest, ms", "Jain", "without", "server, µs", "to before"]


def play(client, server, contenders, millis, pace):
    """The figures of one round."""
    before = server.processor()
    client.process.stdin.write(f"turns {contenders} {millis} {pace[0]} {pace[1]}\n")
    client.process.stdin.flush()
    answer = client.process.stdout.readline().split()
    if len(answer) != 7:
        sys.exit(f"{client.name} ended with {contenders} contenders")
    grants, hand_offs, _, p99, longest, jain, without = map(float, answer)
    served = (server.processor() - before) * 1e6 / max(grants, 1)
    return {"hand-offs": hand_offs * 1000 / millis, "p99": p99 / 1000, "longest": longest / 1000, "jain": jain, "without": without, "served": served}


def row(contenders, pace, name, rounds, before):
    median = {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
    ratio = ""
    if before:
        ratios = [ours["hand-offs"] / theirs["hand-offs"] for ours, theirs in zip(rounds, before)]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    cells = [f"{contenders}", f"{pace[0] / 1000:g} ms", name, f"{median['hand-offs']:,.0f}", f"{median['p99']:,.1f}", f"{median['longest']:,.1f}",
             f"{median['jain']:.2f}", f"{max(each['without'] for each in rounds):.0f}", f"{median['served']:.0f}", ratio]
    print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(ABLE)}; all without one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--millis", type=int, default=4000, help="how long each client plays in a round")
    parser.add_argument("--before", metavar="BINARY", help="lockstorm-bench-clients of another state of our client")
    arguments = parser.parse_args()
    names = arguments.clients or ABLE
    if unknown := set(names) - set(ABLE):
        parser.error(f"no client {', '.join(sorted(unknown))}; there are {', '.join(ABLE)}")
    commands = build(names)
    if arguments.before:
        commands["before"] = [arguments.before, "lockstorm", "{threads}", "{port}"]
        # Right beside ours.
        names.insert(names.index("lockstorm") + 1 if "lockstorm" in names else 0, "before")
    server = Server("redis-server", ["redis-server", "--port", "{port}", "--save", "", "--appendonly", "no", "--bind", "127.0.0.1"])
    with server:
        places = {"{port}": str(server.port), "{threads}": "1"}
        clients = [Client(name, [places.get(part, part) for part in commands[name]]) for name in names]
        print(f"| {' | '.join(HEAD)} |")
        print("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for contenders in CONTENDERS:
            for pace in PACES:
                rounds = {name: [] for name in names}
                # The first turn warms up, and who comes first changes.
                for turn in range(arguments.rounds + 1):
                    for client in clients[:: 1 if turn % 2 == 0 else -1]:
                        measured = play(client, server, contenders, arguments.millis, pace)
                        if turn > 0:
                            rounds[client.name].append(measured)
                for name in names:
                    row(contenders, pace, name, rounds[name], rounds.get("before") if name == "lockstorm" else None)
        for client in clients:
            client.end()


if __name__ == "__main__":
    main()
