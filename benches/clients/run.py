#!/usr/bin/env python3
"""Our lock client beside those that one might pick instead, on one private `redis-server`, turn by turn in one run.

    benches/clients/run.py [--rounds N] [--millis N] [--threads N] [CLIENT ..]

Each client is a process that lives through the whole run, so that a JVM is warm: ours, ours with its string lock
(`strings`), the crates rslock and redlock, and Redisson. Prints, for each workload, the medians of the rounds: acquisitions with their releases per second, microseconds of
the client's processor time for each and of the server's, and how long an acquisition took; and the ratio of ours to each of
the others. Of all tasks on one lock it prints the hand-offs per second: a grant to the task that has just released the lock is
none. `--threads` is for the
runtime of the Rust clients, redlock excepted, which blocks a thread for each task; Redisson has its defaults.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

from throughput import TARGET, Server  # noqa: E402

RUST = ["lockstorm", "strings", "rslock", "redlock"]
CLIENTS = [*RUST, "redisson"]
# What is played, with so many tasks, and which clients can.
WORKLOADS = [("cycles", tasks, CLIENTS) for tasks in (1, 16, 64)]
WORKLOADS += [("plain", 16, CLIENTS), ("fair", 16, ["lockstorm", "redisson"])]
TICKS = os.sysconf("SC_CLK_TCK")


class Client:
    """A running process that measures one client."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def processor(self):
        """Seconds of processor time that all threads of the process have used, ended ones included."""
        after_name = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / TICKS

    def play(self, workload, tasks, millis, server):
        before = self.processor(), server.processor()
        self.process.stdin.write(f"{workload} {tasks} {millis}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if len(answer) != 4:
            sys.exit(f"{self.name} ended at {workload} with {tasks} tasks")
        grants, hand_offs, p50, p99 = map(float, answer)
        per_second = 1000 / millis
        each = 1e6 / grants if grants else float("nan")
        spent, served = (self.processor() - before[0]) * each, (server.processor() - before[1]) * each
        return {"grants": grants * per_second, "hand-offs": hand_offs * per_second, "spent": spent, "served": served,
                "p50": p50, "p99": p99}

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


def build(names):
    """The command that starts each client; `{port}` stands for the server's port."""
    subprocess.run(["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", HERE / "Cargo.toml",
                    "--target-dir", TARGET], check=True)
    binary = str(TARGET / "release" / "lockstorm-bench-clients")
    commands = {name: [binary, name, "{threads}", "{port}"] for name in RUST}
    if "redisson" in names:
        built = TARGET / "clients" / "redisson-bench"
        subprocess.run(["mvn", "-q", "-B", "package", "dependency:copy-dependencies", f"-Dbuild={built}"],
                       cwd=HERE / "redisson", check=True)
        commands["redisson"] = ["java", "-cp", f"{built}/bench.jar:{built}/dependency/*", "Bench", "{port}"]
    return commands


def table(workload, tasks, medians):
    """One row for each client, beside ours where it is among them."""
    done = "grants" if workload == "cycles" else "hand-offs"
    ours = medians.get("lockstorm")
    for name, row in medians.items():
        ratio = f"{ours[done] / row[done]:.2f}" if ours and row[done] else ""
        cells = [f"{row[done]:,.0f}", ratio, f"{row['spent']:.1f}", f"{row['served']:.1f}", f"{row['p50']:,.0f}", f"{row['p99']:,.0f}"]
        print(f"| {workload} | {tasks} | {name} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"of {', '.join(CLIENTS)}; all without one")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--millis", type=int, default=2000, help="how long each client does each workload in a round")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    names = arguments.clients or CLIENTS
    if unknown := set(names) - set(CLIENTS):
        parser.error(f"no client {', '.join(sorted(unknown))}; there are {', '.join(CLIENTS)}")
    commands = build(names)
    server = Server("redis-server", ["redis-server", "--port", "{port}", "--save", "", "--appendonly", "no"])
    with server:
        places = {"{port}": str(server.port), "{threads}": str(arguments.threads)}
        clients = [Client(name, [places.get(part, part) for part in commands[name]]) for name in names]
        print("| workload | tasks | client | per second | ours to it | CPU, µs | server, µs | p50, µs | p99, µs |")
        print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for workload, tasks, able in WORKLOADS:
            playing = [client for client in clients if client.name in able]
            rounds = {client.name: [] for client in playing}
            # The first turn warms up.
            for turn in range(arguments.rounds + 1):
                # Who comes first changes, so that none always has the warmer machine.
                for client in playing[:: 1 if turn % 2 == 0 else -1]:
                    measured = client.play(workload, tasks, arguments.millis, server)
                    if turn > 0:
                        rounds[client.name].append(measured)
            medians = {
                name: {key: statistics.median(row[key] for row in rows) for key in rows[0]} for name, rows in rounds.items()
            }
            table(workload, tasks, medians)
        for client in clients:
            client.end()


if __name__ == "__main__":
    main()
